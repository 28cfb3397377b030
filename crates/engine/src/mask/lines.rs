//! The parts of a source text that may be secret, so that a line of it can be shown beside what is wrong with it.
//!
//! A line is shown because there is a mistake in it or near it, so nothing may rest on names that are written well: here
//! counts as secret what would be one if a letter was another, and what stands in a text that cannot be understood and
//! is not plainly harmless. To hide too much costs little, because the message says what is wrong.

mod guess;
mod walk;

use std::ops::Range;

use super::texts;
use crate::yaml::{self, Position};
use walk::{Part, Walk};

/// Secrets that are shorter are hidden where they stand, and not wherever these letters are.
const SHORTEST: usize = 4;

/// The mark with which a file in UTF-8 may begin.
pub const BOM: char = '\u{feff}';

/// The secrets of a text.
#[derive(Debug)]
pub struct Lines<'a> {
    /// The lines, without what ends them.
    all: Vec<&'a str>,
    /// The parts that are secret, in the order of the text.
    parts: Vec<Part>,
    /// The secrets themselves, line by line: they may stand in a comment too.
    words: Vec<String>,
    /// The lines on which a key or a value begins: of others nobody knows what they are. None if the text cannot be read.
    known: Vec<u32>,
}

impl<'a> Lines<'a> {
    /// Looks for the secrets of a text.
    pub fn of(text: &'a str) -> Self {
        // No column counts it.
        let all = text.trim_start_matches(BOM).lines().map(|line| line.trim_end_matches('\r')).collect();
        let walk = yaml::parse(text).map(|documents| Walk::of(&documents)).unwrap_or_default();
        let mut words: Vec<String> =
            walk.secrets.iter().flat_map(|it| it.lines()).map(|it| it.trim().to_owned()).collect();
        words.retain(|word| word.len() >= SHORTEST);
        words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        words.dedup();
        let (parts, known) = (walk.parts(), walk.known());
        Self { all, parts, words, known }
    }

    /// Returns a line by its number, from 1.
    pub fn get(&self, number: u32) -> Option<&'a str> {
        self.all.get(usize::try_from(number).ok()?.checked_sub(1)?).copied()
    }

    /// Returns the ranges of a line, in bytes, that are not to be shown; they are in order and do not overlap.
    pub fn hidden(&self, number: u32) -> Vec<Range<usize>> {
        let Some(line) = self.get(number) else { return Vec::new() };
        let mut found = texts::secrets(line);
        found.extend(self.parts_on(number).filter_map(|part| part.on(number, line)));
        found.extend(self.words.iter().flat_map(|word| line.match_indices(word)).map(|(at, it)| at..at + it.len()));
        found.extend(guess::comment(line));
        found.extend(guess::Text { lines: &self.all, known: &self.known }.hidden(number));
        joined(found)
    }

    /// They do not overlap, so that few have to be looked at.
    fn parts_on(&self, number: u32) -> impl Iterator<Item = &Part> {
        let first = self.parts.partition_point(|part| part.ends_above(number));
        self.parts[first..].iter().take_while(move |part| part.begins_by(number))
    }

    /// Returns a text, such as a message about it, with its secrets masked.
    pub fn masked(&self, text: &str) -> String {
        self.words
            .iter()
            .fold(text.to_owned(), |text, word| if text.contains(word) { replaced(&text, word) } else { text })
    }
}

/// Masks a word where it is no part of a longer one.
fn replaced(text: &str, word: &str) -> String {
    let (mut out, mut from) = (String::new(), 0);
    for (at, _) in text.match_indices(word) {
        let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let end = at + word.len();
        if !is_part(text[..at].chars().next_back()) && !is_part(text[end..].chars().next()) {
            out.push_str(&text[from..at]);
            out.push_str(super::MASK);
            from = end;
        }
    }
    out + &text[from..]
}

/// Joins ranges that touch.
fn joined(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// Returns the offset of a column, from 1, in bytes; the end of the line if it is shorter.
pub fn offset(line: &str, column: u32) -> usize {
    let column = usize::try_from(column).unwrap_or(usize::MAX);
    line.char_indices().nth(column.saturating_sub(1)).map_or(line.len(), |(at, _)| at)
}

/// Tells the position of the end of a text from every other.
const END: Position = Position { line: u32::MAX, column: u32::MAX };

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all lines of a text as they are shown.
    fn shown(text: &str) -> String {
        let lines = Lines::of(text);
        let mut out = String::new();
        for number in 1..=u32::try_from(text.lines().count()).expect("there are few") {
            let (line, mut from) = (lines.get(number).expect("it is there"), 0);
            for range in lines.hidden(number) {
                out += &line[from..range.start];
                out += "***";
                from = range.end;
            }
            out += &line[from..];
            out.push('\n');
        }
        out
    }

    #[test]
    fn values_of_secrets_are_hidden_and_the_rest_is_not() {
        let text = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\n  annotations: {copy: hunter2}\nstringData:\n  user: hunter2\n\
                    data:\n  file: |\n    hunter2\n    and more\n---\nkind: Gateway\nmetadata: {name: edge}\nspec:\n  port: 80\n";
        let expected = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\n  annotations: {copy: ***\nstringData:\n  user: ***\n\
                        data:\n  file: |\n    ***\n    ***\n---\nkind: Gateway\nmetadata: {name: edge}\nspec:\n  port: 80\n";
        assert_eq!(shown(text), expected);
    }

    #[test]
    fn a_secret_that_is_misspelled_is_one_still() {
        for text in [
            "apiVersion: v1\nkind: Secert\nmetadata: {name: a}\ndata: {a: hunter2}\n",
            "apiVersion: v1\nknid: Secret\nmetadata: {name: a}\ndata: {a: hunter2}\n",
            "apiVersion: v1\nmetadata: {name: a}\ndata: {a: hunter2}\n",
            "apiVersion: v1\nkind: Secret\ndta: {a: hunter2}\n",
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotatons: {a: hunter2}}\n",
            "apiVersion: v1\nkind: SecretList\nitems: [{metadata: {name: a}, data: {a: hunter2}}]\n",
            "{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"data\": {\"a\": \"hunter2\"}}\n",
            "spec: {passwrod: hunter2}\n",
            "env: [{name: DB_PASSWORD, vlaue: hunter2}]\n",
            "env: [{nmae: DB_PASSWORD, value: hunter2}]\n",
            "env: [{name: DB_PASSWROD, value: hunter2}]\n",
            "env:\n- value: hunter2\n  name: DB_PASSWORD\n",
            "args: [--db-password, hunter2]\n",
            "args: [--db-password=hunter2]\n",
            "port: 80 # the password is hunter2\n",
            "# hunter2 is it\npassword: hunter2\n",
            "a: &it hunter2\npassword: *it\n",
            "password: >-\n  hunter2\n  hunter2\n",
            "password: \"hunt\\x65r2 hunter2\n  hunter2\"\n",
        ] {
            assert!(!shown(text).contains("hunter2"), "{text}: {}", shown(text));
        }
    }

    #[test]
    fn of_a_text_that_cannot_be_read_only_what_is_harmless_is_shown() {
        for text in [
            "kind: Secret\nstringData:\n  user: hunter2: x\n",
            "kind: Secret\n\tstringData: {user: hunter2}\n",
            "spec:\n  password: hunter2: x\n",
            "spec:\n  password: |\n    hunter2\n  port: 80: 90\n",
            "spec:\n  a: password: hunter2\n",
            "env:\n- name: DB_PASSWORD\n  value: hunter2: x\n",
            "{\"kind\": \"Secret\", \"data\": {\"a\": \"hunter2\"\n",
            "credentials:\n  - hunter2\n  x: [\n",
        ] {
            assert!(!shown(text).contains("hunter2"), "{text}: {}", shown(text));
        }
        assert_eq!(shown("spec:\n  port: 80: 90\n"), "spec:\n  port: 80: 90\n");
    }

    #[test]
    fn what_is_no_secret_is_shown() {
        for text in [
            "kind: Gateway\nspec:\n  listeners:\n  - name: a\n    tls: {certificateRefs: [{kind: Secret, name: edge-tls}]}\n",
            "maxTokens: 4096\nautomountServiceAccountToken: false\ntokenFile: /run/token\n",
            "env: [{name: DB_PASSWORD, value: $(OTHER)}, {name: A, value: b}]\n",
            "env:\n- name: A\n  valueFrom: {secretKeyRef: {name: db, key: password}}\n",
        ] {
            assert_eq!(shown(text), text);
        }
    }

    #[test]
    fn a_text_within_a_text_is_shown_if_nothing_in_it_is_secret() {
        let map = |text: &str| shown(&format!("kind: ConfigMap\nmetadata: {{name: a}}\ndata:\n  a.yaml: |\n{text}"));
        let plain = "    spec:\n      # of no matter\n      replicas: 3\n      and more\n";
        assert!(map(plain).ends_with(plain), "{}", map(plain));
        for text in [
            "    kind: Secret\n    data:\n      a: hunter2\n",
            "    password:\n      hunter2\n",
            "    password: hunter2\n",
        ] {
            assert!(!map(text).contains("hunter2"), "{}", map(text));
        }
    }

    #[test]
    fn messages_do_not_say_what_lines_hide() {
        let lines = Lines::of("env: [{name: DB_PASSWORD, value: 123456}]\n");
        assert_eq!(lines.masked("value is the integer 123456, not 91234567"), "value is the integer ***, not 91234567");
    }

    #[test]
    fn a_column_counts_characters() {
        assert_eq!((offset("äb", 1), offset("äb", 2), offset("äb", 9)), (0, 2, 3));
    }
}
