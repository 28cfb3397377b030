//! A text in parts, each of which is one document, and what of it is as it was before.

/// Splits a text where documents begin. The parts together are the text; there is always one.
///
/// A line that begins with `---` begins a document wherever it stands (YAML 1.2.2, §9.1.2); a text whose documents do not
/// stand for themselves is one part.
pub(super) fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    for line in text.split_inclusive('\n') {
        let is_whole = line.starts_with('%') || line.trim_end_matches(['\r', '\n']).contains('\r');
        if is_whole {
            return vec![text];
        }
        if at > start && begins_document(line) {
            parts.push(&text[start..at]);
            start = at;
        }
        at += line.len();
    }
    parts.push(&text[start..]);
    parts
}

fn begins_document(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

/// Returns the number of lines of a part.
pub(super) fn height(part: &str) -> u32 {
    u32::try_from(part.matches('\n').count()).unwrap_or(u32::MAX)
}

/// The parts of a text that were the same in an older one: at its beginning and at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Same {
    /// The number of those at the beginning.
    pub(super) first: usize,
    /// The number of those at the end.
    pub(super) last: usize,
}

impl Same {
    /// Compares a text with an older one.
    pub(super) fn of(old: &[&str], new: &[&str]) -> Self {
        let first = old.iter().zip(new).take_while(|(old, new)| old == new).count();
        let rest = old[first..].iter().rev().zip(new[first..].iter().rev());
        Self { first, last: rest.take_while(|(old, new)| old == new).count() }
    }

    /// Returns which part of the older text a part of the newer one was, if it was one; `old` and `new` are their numbers.
    pub(super) fn before(self, part: usize, (old, new): (usize, usize)) -> Option<usize> {
        if part < self.first {
            Some(part)
        } else if part + self.last >= new {
            (part + old).checked_sub(new)
        } else {
            None
        }
    }
}

/// Returns a text in which only some of the parts stand, each where it was: the lines of the others are empty.
pub(super) fn only(parts: &[&str], keep: impl Fn(usize) -> bool) -> String {
    let mut text = String::new();
    for (index, part) in parts.iter().enumerate() {
        if keep(index) {
            text.push_str(part);
        } else {
            text.extend(part.matches('\n'));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_begins_with_a_line_of_three_dashes() {
        let text = "# a\n---\na: 1\n--- {b: 2}\n---c: 3\nd: |\n  ---\n---\n";
        assert_eq!(split(text), ["# a\n", "---\na: 1\n", "--- {b: 2}\n---c: 3\nd: |\n  ---\n", "---\n"]);
        for text in ["", "a: 1", "%YAML 1.2\n---\na: 1\n---\nb: 2\n", "a: 1\r---\r\n---\nb: 2\n"] {
            assert_eq!(split(text), [text]);
        }
        assert_eq!(split("a: 1\r\n---\r\nb: 2\r\n"), ["a: 1\r\n", "---\r\nb: 2\r\n"]);
    }

    #[test]
    fn a_part_was_where_all_before_it_or_all_behind_it_was() {
        let old = ["a", "b", "c", "d"];
        let before = |new: &[&str]| -> Vec<Option<usize>> {
            let same = Same::of(&old, new);
            (0..new.len()).map(|part| same.before(part, (old.len(), new.len()))).collect()
        };
        assert_eq!(before(&old), [Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(before(&["a", "x", "c", "d"]), [Some(0), None, Some(2), Some(3)]);
        assert_eq!(before(&["a", "x", "y", "b", "c", "d"]), [Some(0), None, None, Some(1), Some(2), Some(3)]);
        assert_eq!(before(&["a", "d"]), [Some(0), Some(3)]);
        assert_eq!(before(&["a", "a", "b", "c", "d"]), [Some(0), None, Some(1), Some(2), Some(3)]);
        assert_eq!(before(&["x"]), [None]);
    }

    #[test]
    fn what_is_left_stays_on_its_lines() {
        let parts = split("a: 1\nb: 2\n---\nc: 3\n---\nd: 4\n");
        assert_eq!(only(&parts, |part| part == 1), "\n\n---\nc: 3\n\n\n");
    }
}
