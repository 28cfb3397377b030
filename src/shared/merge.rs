//! What becomes of a file that lies here and in the store: a choice between three versions of it, and nothing else.

/// The right of this host to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Right {
    /// The file is of a sync of another host, or of none: where both have changed, the store wins.
    None,
    /// The file is of a sync of another host, and is written by who looks after it: a late word of ours counts only where
    /// nobody has ever had the file.
    Late,
    /// The file is of a sync of ours, and people write to it on any host: where both have changed, ours wins.
    First,
    /// The file is of a sync of ours, and is written by who looks after it: only our changes count.
    Alone,
}

/// The next step for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Nothing: both are as they were.
    Nothing,
    /// Both are alike, which has to be noted.
    Note,
    /// Here and in the store there is none any more, which has to be noted.
    Forget,
    /// The store gets what is here, also if that is nothing.
    Push {
        /// The store has something that would be lost.
        is_conflict: bool,
    },
    /// This host gets what is in the store, also if that is nothing.
    Take {
        /// Here is something that would be lost.
        is_conflict: bool,
    },
}

/// Chooses. `base` is what both had when they were last alike; each is the digest of its content, or that there is none.
pub(super) fn choose(base: Option<&str>, local: Option<&str>, store: Option<&str>, right: Right) -> Choice {
    if local == store {
        return match local {
            _ if local == base => Choice::Nothing,
            Some(_) => Choice::Note,
            None => Choice::Forget,
        };
    }
    if right == Right::Late && (base.is_some() || store.is_some()) {
        return Choice::Take { is_conflict: local.is_some() && local != base };
    }
    match (local == base, store == base) {
        (_, true) => Choice::Push { is_conflict: false },
        // Without a base there is nothing here that could be out of date: it is a host that has lost its files, or is new.
        (true, false) if right == Right::Alone && base.is_some() => Choice::Push { is_conflict: store.is_some() },
        (true, false) => Choice::Take { is_conflict: false },
        (false, false) if right == Right::None => Choice::Take { is_conflict: local.is_some() },
        (false, false) => Choice::Push { is_conflict: store.is_some() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHTS: [Right; 4] = [Right::None, Right::First, Right::Alone, Right::Late];

    fn of(letter: char) -> Option<&'static str> {
        match letter {
            'a' => Some("a"),
            'b' => Some("b"),
            'c' => Some("c"),
            _ => None,
        }
    }

    /// `versions` are what was, what is here and what is in the store; `-` is nothing.
    fn check(versions: &str, expected: [Choice; 4]) {
        let letters: Vec<char> = versions.chars().collect();
        let [base, local, store] = letters[..] else { unreachable!("there are three versions") };
        let found = RIGHTS.map(|right| choose(of(base), of(local), of(store), right));
        assert_eq!(found, expected, "{versions}");
    }

    #[test]
    fn every_case_has_its_choice() {
        use Choice::{Forget, Note, Nothing};
        const PUSH: Choice = Choice::Push { is_conflict: false };
        const TAKE: Choice = Choice::Take { is_conflict: false };
        const OVER: Choice = Choice::Push { is_conflict: true };
        const LOSE: Choice = Choice::Take { is_conflict: true };
        // Nothing was known.
        check("---", [Nothing; 4]);
        check("-a-", [PUSH; 4]);
        check("--a", [TAKE; 4]);
        check("-aa", [Note; 4]);
        check("-ab", [LOSE, OVER, OVER, LOSE]);
        // It was there.
        check("aaa", [Nothing; 4]);
        check("a--", [Forget; 4]);
        check("abb", [Note; 4]);
        // One has changed.
        check("aba", [PUSH, PUSH, PUSH, LOSE]);
        check("a-a", [PUSH, PUSH, PUSH, TAKE]);
        check("aab", [TAKE, TAKE, OVER, TAKE]);
        check("aa-", [TAKE, TAKE, PUSH, TAKE]);
        // Both have.
        check("abc", [LOSE, OVER, OVER, LOSE]);
        check("ab-", [LOSE, PUSH, PUSH, LOSE]);
        check("a-b", [TAKE, OVER, OVER, TAKE]);
    }

    #[test]
    fn only_what_is_kept_aside_is_ever_lost() {
        let all = ['-', 'a', 'b', 'c'];
        for (base, local, store) in all.iter().flat_map(|a| all.iter().flat_map(move |b| all.map(|c| (*a, *b, c)))) {
            for right in RIGHTS {
                let choice = choose(of(base), of(local), of(store), right);
                // What one side alone has, and the other never had, stays.
                match choice {
                    Choice::Take { is_conflict: false } => assert!(local == '-' || local == base),
                    Choice::Push { is_conflict: false } => assert!(store == '-' || store == base),
                    Choice::Take { .. } => assert_ne!(local, '-'),
                    Choice::Push { .. } => assert_ne!(store, '-'),
                    Choice::Nothing | Choice::Note | Choice::Forget => assert_eq!(local, store),
                }
            }
        }
    }
}
