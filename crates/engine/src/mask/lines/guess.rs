//! Secrets in lines of which nobody knows what they are: those of a text that cannot be read, and of texts within texts.

use std::ops::Range;

use super::walk::is_kind;
use crate::mask::names::is_nearly_secret;

/// A text, of some lines of which it is known what they are.
pub(super) struct Text<'a> {
    /// The lines.
    pub lines: &'a [&'a str],
    /// The numbers of those that are known; none if the text cannot be read.
    pub known: &'a [u32],
}

impl Text<'_> {
    /// Returns the part of a line that is not plainly harmless.
    pub(super) fn hidden(&self, number: u32) -> Option<Range<usize>> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        let line = self.lines.get(index)?;
        if self.is_known(index) || line.trim_matches(['-', '.', ' ']).is_empty() {
            return None;
        }
        // What was read was looked through already, apart from texts within it.
        let is_read = !self.known.is_empty();
        let (key, rest) = key(line).unwrap_or(("", indent(line)));
        let rest = rest + indent(&line[rest..]);
        let value = &line[rest..];
        let is_plain = is_read || !key.is_empty() && !value.contains(['{', '[', '"', '\'']);
        let is_secret = is_secret_key(key) || mentions_secret(value) || self.is_within_secret(index);
        (!is_plain || is_secret || self.is_in_secret(index)).then_some(rest..line.len())
    }

    fn is_known(&self, index: usize) -> bool {
        u32::try_from(index + 1).is_ok_and(|number| self.known.binary_search(&number).is_ok())
    }

    /// Tells whether one of the lines that this one stands under names a secret.
    fn is_within_secret(&self, index: usize) -> bool {
        let mut least = indent(self.lines[index]);
        for line in self.lines[..index].iter().rev().filter(|line| !line.trim().is_empty()) {
            if least == 0 {
                break;
            }
            if indent(line) < least {
                least = indent(line);
                if key(line).is_some_and(|(key, _)| is_secret_key(key)) {
                    return true;
                }
            }
        }
        false
    }

    /// Tells whether an unknown line of the same document speaks of a Secret.
    fn is_in_secret(&self, index: usize) -> bool {
        let is_mark = |line: &&str| line.starts_with("---");
        let start = self.lines[..index].iter().rposition(is_mark).map_or(0, |mark| mark + 1);
        let end = self.lines[index..].iter().position(is_mark).map_or(self.lines.len(), |mark| index + mark);
        let is_one =
            |at: usize| !self.is_known(at) && self.lines[at].split(|c: char| !c.is_alphanumeric()).any(is_kind);
        (start..end).any(is_one)
    }
}

/// Returns the part of a comment that speaks of a secret.
pub(super) fn comment(line: &str) -> Option<Range<usize>> {
    let start = if line.trim_start().starts_with('#') { indent(line) } else { line.find(" #")? + 1 };
    mentions_secret(&line[start..]).then_some(start + 1..line.len())
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the key of a line, and where its value begins.
fn key(line: &str) -> Option<(&str, usize)> {
    let start = line.len() - line.trim_start_matches([' ', '\t', '-']).len();
    let end = start + line[start..].find(':')?;
    let key = &line[start..end];
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
    is_key.then_some((key, end + 1))
}

/// The value of a pair belongs to a name that stands elsewhere.
fn is_secret_key(key: &str) -> bool {
    is_nearly_secret(key) || strsim::damerau_levenshtein(&key.to_lowercase(), "value") <= 2
}

fn mentions_secret(text: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && !"_-".contains(c)).any(is_nearly_secret)
}
