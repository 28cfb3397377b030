//! The cause of a difference: the source has moved since the last report, or the cluster has, or it never was as it
//! should be.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::diff::Class;
use crate::object::ObjectId;

/// The digests of what two sides of an object looked like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sides {
    /// The digest of what was wanted; empty: nothing.
    pub wanted: String,
    /// The digest of the live object; empty: nothing.
    pub live: String,
    /// The proof that nothing differs and nothing is left to others, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<Proof>,
}

/// The kind of proof that an object is as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// By an estimate.
    Estimate,
    /// By a dry run.
    DryRun,
}

impl Sides {
    /// Returns how it was found out that two sides agree that still look as they did then.
    pub fn proof(&self, before: Option<&Self>) -> Option<Proof> {
        let is_same = |before: &&Self| before.wanted == self.wanted && before.live == self.live;
        before.filter(is_same).and_then(|before| before.matched)
    }
}

/// The account of an object in an earlier report.
#[derive(Clone, Copy, Debug)]
pub struct Before<'a> {
    /// The digests of the two sides; `None`: nobody wanted it and nobody had it.
    pub sides: Option<&'a Sides>,
    /// When that was, RFC 3339.
    pub time: &'a str,
    /// The differences of that time, by path; an empty path is the object as a whole.
    pub open: &'a BTreeMap<String, Option<Class>>,
}

/// The facts that one report passes on to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    /// The digests of both sides of every object.
    pub sides: BTreeMap<ObjectId, Sides>,
    /// When everything was last compared, RFC 3339; `None`: now.
    pub proven: Option<String>,
}

/// Says why something differs now. `touched` is when the live side was last written there, RFC 3339.
pub fn class(before: Option<Before<'_>>, path: &str, now: &Sides, touched: Option<&str>) -> Class {
    let Some(before) = before else { return Class::NeverMatched };
    // What differed already differs for the reason for which it began to.
    if let Some(known) = before.open.get(path).or_else(|| before.open.get("")) {
        return known.unwrap_or(Class::NeverMatched);
    }
    let nothing = Sides::default();
    let sides = before.sides.unwrap_or(&nothing);
    match (sides.wanted != now.wanted, sides.live != now.live) {
        (false, true) => Class::Drift,
        (true, true) if touched.is_some_and(|touched| touched > before.time) && !sides.live.is_empty() => Class::Drift,
        (true, _) => Class::Pending,
        (false, false) => Class::NeverMatched,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(wanted: &str, live: &str) -> Sides {
        Sides { wanted: wanted.to_owned(), live: live.to_owned(), matched: None }
    }

    #[test]
    fn what_has_moved_is_the_reason() {
        let open = BTreeMap::new();
        let check = |then: Option<&Sides>, now: &Sides, touched: Option<&str>, expected: Class| {
            let before = Before { sides: then, time: "2026-01-02T00:00:00Z", open: &open };
            assert_eq!(class(Some(before), "spec.a", now, touched), expected, "{then:?} {now:?} {touched:?}");
        };
        let one = sides("w", "l");
        check(Some(&one), &sides("w2", "l"), None, Class::Pending);
        check(Some(&one), &sides("w", "l2"), None, Class::Drift);
        check(Some(&one), &sides("w", ""), None, Class::Drift);
        check(Some(&one), &sides("", "l"), None, Class::Pending);
        check(Some(&one), &one, None, Class::NeverMatched);
        check(Some(&one), &sides("w2", "l2"), Some("2026-01-01T00:00:00Z"), Class::Pending);
        check(Some(&one), &sides("w2", "l2"), Some("2026-01-03T00:00:00Z"), Class::Drift);
        check(None, &sides("w", ""), None, Class::Pending);
        check(None, &sides("", "l"), None, Class::Drift);
        assert_eq!(class(None, "spec.a", &one, None), Class::NeverMatched);
    }

    #[test]
    fn what_differs_still_differs_for_the_same_reason() {
        let open = BTreeMap::from([("spec.a".to_owned(), Some(Class::Drift)), ("spec.b".to_owned(), None)]);
        let one = sides("w", "l");
        let before = Before { sides: Some(&one), time: "2026-01-02T00:00:00Z", open: &open };
        let of = |path: &str| class(Some(before), path, &sides("w2", "l"), None);
        assert_eq!((of("spec.a"), of("spec.b"), of("spec.c")), (Class::Drift, Class::NeverMatched, Class::Pending));
    }

    #[test]
    fn what_has_matched_still_does_while_neither_side_moves() {
        let then = Sides { matched: Some(Proof::DryRun), ..sides("w", "l") };
        assert_eq!(sides("w", "l").proof(Some(&then)), Some(Proof::DryRun));
        assert_eq!(sides("w", "l").proof(Some(&sides("w", "l"))), None, "it did not match");
        assert_eq!(sides("w2", "l").proof(Some(&then)), None);
        assert_eq!(sides("w", "l2").proof(Some(&then)), None);
        assert_eq!(sides("w", "l").proof(None), None);
    }
}
