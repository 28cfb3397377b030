//! The line of a file that a finding is about, with the place marked, and nothing in it that may be secret.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use gatewright_engine::mask::MASK;
use gatewright_engine::mask::lines::{Lines, offset};

use crate::basics::sanitize;

/// The most characters of a line on either side of a place; the width of the terminal cuts it further.
const AROUND: usize = 400;

/// A line as it can be shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Excerpt {
    number: u32,
    text: String,
    /// The part of the text that is marked.
    span: Range<usize>,
}

impl Excerpt {
    /// Returns what is shown of a place; `hidden` are the parts of its line that are not.
    pub(super) fn of(lines: &Lines<'_>, (number, column): (u32, u32), hidden: &[Range<usize>]) -> Option<Self> {
        let line = lines.get(number)?;
        let indent = line.len() - line.trim_start().len();
        if indent == line.len() {
            return None;
        }
        let start = if column == 0 { indent } else { offset(line, column) };
        let mut span = word(line, start);
        for hidden in hidden {
            if hidden.start < span.end && span.start < hidden.end {
                span = span.start.min(hidden.start)..span.end.max(hidden.end);
            }
        }
        let seen = window(line, &span);
        let span = span.start..span.end.min(seen.end);
        let part = |range: Range<usize>| harmless(line, range, hidden);
        let (before, marked, after) = (part(seen.start..span.start), part(span.clone()), part(span.end..seen.end));
        let before = if seen.start > 0 { format!("…{before}") } else { before };
        let end = if seen.end < line.len() { "…" } else { "" };
        let span = before.len()..before.len() + marked.len();
        Some(Self { number, text: format!("{before}{marked}{after}{end}"), span })
    }

    /// Draws it, with advice below.
    pub(super) fn drawn(&self, renderer: &Renderer, level: Level<'_>, hint: Option<&str>) -> String {
        let line = usize::try_from(self.number).unwrap_or(usize::MAX);
        let snippet = Snippet::source(&self.text).line_start(line);
        let snippet = snippet.annotation(AnnotationKind::Primary.span(self.span.clone()));
        let group = Group::with_level(level).element(snippet);
        let group = match hint {
            Some(hint) => group.element(Level::HELP.message(hint)),
            None => group,
        };
        renderer.render(&[group])
    }
}

/// Returns the range of the key or the value that begins at an offset.
fn word(line: &str, start: usize) -> Range<usize> {
    let rest = &line[start..];
    let Some(first) = rest.chars().next() else { return start..start };
    let is_flow = line[..start].contains(['{', '[']);
    let ends = |at: usize, c: char| {
        let is_last = rest[at + c.len_utf8()..].chars().next().is_none_or(char::is_whitespace);
        c == ':' && is_last || rest[at..].starts_with(" #") || is_flow && matches!(c, ',' | '}' | ']')
    };
    let length = match first {
        '"' | '\'' => quoted(rest, first),
        '{' | '[' | '|' | '>' => 1,
        _ => rest.char_indices().find(|(at, c)| ends(*at, *c)).map_or(rest.len(), |(at, _)| at),
    };
    let length = rest[..length].trim_end().len().max(first.len_utf8());
    start..start + length
}

/// Returns the length of a text in quotes, those included.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !is_escaped {
            return at + 1;
        }
        is_escaped = c == '\\' && quote == '"' && !is_escaped;
    }
    text.len()
}

/// Returns the range of a line around a place that may be shown.
fn window(line: &str, span: &Range<usize>) -> Range<usize> {
    let start = line[..span.start].char_indices().rev().nth(AROUND).map_or(0, |(at, c)| at + c.len_utf8());
    let end = line[span.start..].char_indices().nth(2 * AROUND).map_or(line.len(), |(at, _)| span.start + at);
    start..end
}

/// Returns a part of a line without what is hidden, and so that it can only be read.
fn harmless(line: &str, part: Range<usize>, hidden: &[Range<usize>]) -> String {
    let (mut out, mut from) = (String::new(), part.start);
    for hidden in hidden.iter().filter(|hidden| hidden.start < part.end && part.start < hidden.end) {
        out += &plain(&line[from..hidden.start.max(from)]);
        out += MASK;
        from = hidden.end.min(part.end);
    }
    out + &plain(&line[from..part.end])
}

fn plain(text: &str) -> String {
    sanitize::line(&text.replace('\t', "    ")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows a place of a text as on a terminal of 60 columns.
    fn shown(text: &str, place: (u32, u32)) -> String {
        let lines = Lines::of(text);
        let excerpt = Excerpt::of(&lines, place, &lines.hidden(place.0)).expect("there is something to show");
        excerpt.drawn(&Renderer::plain().term_width(60), Level::ERROR, Some("look"))
    }

    #[track_caller]
    fn check(text: &str, place: (u32, u32), line: &str, marks: &str) {
        let shown = shown(text, place);
        let rows: Vec<&str> = shown.lines().map(|row| row.split_once('|').map_or(row, |(_, rest)| rest)).collect();
        assert_eq!((rows[1], rows[2]), (line, marks), "{shown}");
    }

    #[test]
    fn a_line_is_shown_with_its_place_marked() {
        assert_eq!(shown("a: 1\nspec:\n  prot: 80\n", (3, 3)), "  |\n3 |   prot: 80\n  |   ^^^^\n  |\n  = help: look");
    }

    #[test]
    fn a_key_a_value_and_a_text_in_quotes_are_marked_whole() {
        check("a: 80 # b\n", (1, 4), " a: 80 # b", "    ^^");
        check("a: {b: 1, c: d}\n", (1, 14), " a: {b: 1, c: d}", "              ^");
        check("\"a b\": 'c: d'\n", (1, 1), " \"a b\": 'c: d'", " ^^^^^");
        check("\"a b\": 'c: d'\n", (1, 8), " \"a b\": 'c: d'", "        ^^^^^^");
        check("a: http://b:80/c\n", (1, 4), " a: http://b:80/c", "    ^^^^^^^^^^^^^");
        check("  a:\n", (1, 0), "   a:", "   ^");
    }

    #[test]
    fn tabs_wide_characters_and_ends_of_lines_do_not_move_the_mark() {
        check("a: \t80\r\nb: 1\r\n", (1, 5), " a:     80", "        ^^");
        check("a: {日本: 80}\n", (1, 9), " a: {日本: 80}", "           ^^");
        check("a: 🧀 # b\n", (1, 4), " a: 🧀 # b", "    ^^");
    }

    #[test]
    fn what_moves_a_cursor_or_hides_a_text_is_shown_as_what_it_is() {
        check("a: \u{202e}b\n", (1, 4), " a: \\u{202e}b", "    ^^^^^^^^^");
        assert!(!shown("a: {\u{1b}[2J\n", (1, 4)).contains('\u{1b}'));
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let text = format!("{{\"a\": \"{}\", \"prot\": 1, \"b\": \"{}\"}}\n", "x".repeat(500_000), "y".repeat(500_000));
        let shown = shown(&text, (1, 500_011));
        assert!(shown.len() < 400 && shown.contains("\"prot\": 1"), "{shown}");
        let marks = shown.lines().find(|row| row.contains('^')).expect("it is marked");
        let row = shown.lines().nth(1).expect("there is a line");
        let column = |row: &str, what: &str| row.split(what).next().map_or(0, |it| it.chars().count());
        assert_eq!((column(row, "\"prot"), marks.matches('^').count()), (column(marks, "^"), 6), "{shown}");
    }

    #[test]
    fn a_place_beyond_its_line_or_its_text_does_no_harm() {
        check("a: 1\n", (1, 99), " a: 1", "     ^");
        let lines = Lines::of("a: 1\n\n");
        assert_eq!(Excerpt::of(&lines, (2, 1), &[]), None);
        assert_eq!(Excerpt::of(&lines, (9, 1), &[]), None);
        assert_eq!(Excerpt::of(&lines, (0, 0), &[]), None);
    }

    #[test]
    fn a_secret_is_not_shown_even_where_it_is_what_is_wrong() {
        check("password: hunter2 hunter3\n", (1, 11), " password: ***", "           ^^^");
        check("password: hunter2 hunter3\n", (1, 1), " password: ***", " ^^^^^^^^");
    }
}
