//! What would be written, in the form of `diff -u`, without the secrets of lines that are shown.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use gatewright_engine::mask::MASK;
use gatewright_engine::mask::lines::{BOM, Lines};

use super::edit::Edit;
use crate::basics::sanitize;

/// The lines that are shown around one that changes.
const AROUND: usize = 3;

/// A text, line by line.
struct Text<'a> {
    /// Its lines, with what ends them.
    raw: Vec<&'a str>,
    secrets: Lines<'a>,
}

/// Returns the difference between two texts that have the same lines, but for those with edits.
pub(super) fn unified(file: &str, old: &str, new: &str, edits: &[Edit]) -> String {
    let (old, new) = (Text::of(old), Text::of(new));
    let changed: BTreeSet<usize> =
        edits.iter().filter_map(|edit| usize::try_from(edit.place.line).ok()?.checked_sub(1)).collect();
    let file = sanitize::line(file.trim_start_matches("./"));
    let mut out = format!("--- a/{file}\n+++ b/{file}\n");
    for hunk in hunks(&changed, old.raw.len()) {
        let (start, length) = (hunk.start + 1, hunk.len());
        writeln!(out, "@@ -{start},{length} +{start},{length} @@").expect("a text takes everything");
        let mut lines = hunk.peekable();
        while let Some(line) = lines.next() {
            if !changed.contains(&line) {
                out += &old.line(' ', line);
                continue;
            }
            // Those that change one after the other stand together.
            let mut together = vec![line];
            while let Some(next) = lines.next_if(|next| changed.contains(next)) {
                together.push(next);
            }
            out.extend(together.iter().map(|line| old.line('-', *line)));
            out.extend(together.iter().map(|line| new.line('+', *line)));
        }
    }
    out
}

/// Returns the ranges of lines that are shown.
fn hunks(changed: &BTreeSet<usize>, lines: usize) -> Vec<std::ops::Range<usize>> {
    let mut hunks: Vec<std::ops::Range<usize>> = Vec::new();
    for line in changed {
        let (start, end) = (line.saturating_sub(AROUND), (line + AROUND + 1).min(lines));
        match hunks.last_mut() {
            Some(last) if start <= last.end => last.end = end,
            _ => hunks.push(start..end),
        }
    }
    hunks
}

impl<'a> Text<'a> {
    fn of(text: &'a str) -> Self {
        Self { raw: text.split_inclusive('\n').collect(), secrets: Lines::of(text) }
    }

    fn line(&self, sign: char, index: usize) -> String {
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        let line = self.secrets.get(number).unwrap_or_default();
        let raw = self.raw.get(index).copied().unwrap_or_default();
        let rest = raw.trim_start_matches(BOM);
        // Without it a patch does not apply.
        let mark = &raw[..raw.len() - rest.len()];
        let (mut out, mut from) = (format!("{sign}{mark}"), 0);
        for hidden in self.secrets.hidden(number) {
            out += &harmless(&line[from..hidden.start]);
            out += MASK;
            from = hidden.end;
        }
        out += &harmless(&line[from..]);
        out += rest.get(line.len()..).unwrap_or_default();
        if out.ends_with('\n') { out } else { out + "\n\\ No newline at end of file\n" }
    }
}

fn harmless(text: &str) -> String {
    text.split('\t').map(|part| sanitize::line(part).into_owned()).collect::<Vec<_>>().join("\t")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_change_together_are_one_hunk() {
        assert_eq!(hunks(&BTreeSet::from([0, 5, 20]), 22), [0..9, 17..22]);
        assert!(hunks(&BTreeSet::new(), 3).is_empty());
    }

    #[test]
    fn a_line_keeps_its_end_and_not_its_secrets() {
        let text = Text::of("a:\tb\r\npassword: hunter2\nc: d");
        assert_eq!(text.line(' ', 0), " a:\tb\r\n");
        assert_eq!(Text::of("\u{feff}a: b\n").line(' ', 0), " \u{feff}a: b\n");
        assert_eq!(text.line('-', 1), "-password: ***\n");
        assert_eq!(text.line('+', 2), "+c: d\n\\ No newline at end of file\n");
    }
}
