//! Positions: ours count characters from 1, those of the protocol count units of an encoding from 0.

use tower_lsp_server::ls_types::{Position, PositionEncodingKind, Range, TextDocumentContentChangeEvent};

/// The units in which positions of the protocol count within a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Bytes.
    Utf8,
    /// What the protocol begins with.
    #[default]
    Utf16,
    /// Characters.
    Utf32,
}

impl Encoding {
    /// Returns the one that a client would rather have, of those that it knows.
    pub(super) fn negotiated(known: Option<&[PositionEncodingKind]>) -> Self {
        let of = |kind: &PositionEncodingKind| match kind.as_str() {
            "utf-8" => Some(Self::Utf8),
            "utf-16" => Some(Self::Utf16),
            "utf-32" => Some(Self::Utf32),
            _ => None,
        };
        known.into_iter().flatten().find_map(of).unwrap_or_default()
    }

    /// Returns its name in the protocol.
    pub(super) fn kind(self) -> PositionEncodingKind {
        match self {
            Self::Utf8 => PositionEncodingKind::UTF8,
            Self::Utf16 => PositionEncodingKind::UTF16,
            Self::Utf32 => PositionEncodingKind::UTF32,
        }
    }

    fn units(self, char: char) -> usize {
        match self {
            Self::Utf8 => char.len_utf8(),
            Self::Utf16 => char.len_utf16(),
            Self::Utf32 => 1,
        }
    }

    /// Returns the units before a byte of a line.
    fn before(self, line: &str, byte: usize) -> u32 {
        let units: usize = line.char_indices().take_while(|(at, _)| *at < byte).map(|(_, char)| self.units(char)).sum();
        u32::try_from(units).unwrap_or(u32::MAX)
    }

    /// Returns the byte of a line before which there are so many units, or its end.
    fn byte(self, line: &str, units: u32) -> usize {
        let mut left = usize::try_from(units).unwrap_or(usize::MAX);
        for (at, char) in line.char_indices() {
            match left.checked_sub(self.units(char)) {
                Some(rest) if left > 0 => left = rest,
                _ => return at,
            }
        }
        line.len()
    }

    /// Returns the byte of a text that a position of the protocol means.
    pub(super) fn offset(self, text: &str, position: Position) -> usize {
        let (start, line) = line_at(text, usize::try_from(position.line).unwrap_or(usize::MAX));
        start + self.byte(line, position.character)
    }

    /// Returns the position of a byte of a text.
    pub(super) fn position(self, text: &str, offset: usize) -> Position {
        let before = &text.as_bytes()[..offset.min(text.len())];
        let line = before.split(|byte| *byte == b'\n').count() - 1;
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let (_, whole) = line_at(&text[start..], 0);
        Position::new(u32::try_from(line).unwrap_or(u32::MAX), self.before(whole, offset - start))
    }

    /// Returns the range between two bytes of a text.
    pub(super) fn range(self, text: &str, bytes: std::ops::Range<usize>) -> Range {
        Range::new(self.position(text, bytes.start), self.position(text, bytes.end))
    }

    /// Changes a text as a client has.
    pub(super) fn change(self, text: &mut String, change: &TextDocumentContentChangeEvent) {
        let Some(range) = change.range else { return text.clone_from(&change.text) };
        let (start, end) = (self.offset(text, range.start), self.offset(text, range.end));
        text.replace_range(start..end.max(start), &change.text);
    }
}

/// Returns where a line begins, and the line without its end; of lines after the last one, the end of the text.
fn line_at(text: &str, number: usize) -> (usize, &str) {
    let mut start = 0;
    for _ in 0..number {
        let Some(end) = text[start..].find('\n') else { return (text.len(), "") };
        start += end + 1;
    }
    let line = text[start..].split('\n').next().unwrap_or_default();
    (start, line.strip_suffix('\r').unwrap_or(line))
}

/// Returns the byte at a line and a column in characters, both from 1.
pub(super) fn byte_at(text: &str, line: u32, column: u32) -> usize {
    let number = |it: u32| usize::try_from(it.max(1) - 1).unwrap_or(usize::MAX);
    let (start, line) = line_at(text, number(line));
    start + line.char_indices().nth(number(column)).map_or(line.len(), |(at, _)| at)
}

/// Returns the end of what begins at a byte of a text: a key, a scalar, or a list or mapping in one line.
pub(super) fn end_of(text: &str, start: usize) -> usize {
    let line = text[start..].split('\n').next().unwrap_or_default().trim_end();
    let mut depth = 0_usize;
    let mut quote = None;
    for (at, char) in line.char_indices() {
        let rest = &line[at + char.len_utf8()..];
        match (quote, char) {
            (Some(open), _) if open == char => {
                quote = None;
                if depth == 0 {
                    return start + at + 1;
                }
            }
            (None, '"' | '\'') if at == 0 || depth > 0 => quote = Some(char),
            (None, '[' | '{') if at == 0 || depth > 0 => depth += 1,
            (None, ']' | '}') if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    return start + at + 1;
                }
            }
            (None, ',' | ']' | '}') if depth == 0 && at > 0 => return start + at,
            (None, ':') if depth == 0 && (rest.is_empty() || rest.starts_with(' ')) => return start + at,
            (None, ' ') if depth == 0 && rest.trim_start().starts_with('#') => return start + at,
            _ => {}
        }
    }
    start + line.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a: \"😀é\" # x\r\nb: [1, {c: 'd]'}], e\n";

    #[test]
    fn positions_count_in_what_was_agreed_on() {
        let after = TEXT.find("\" #").expect("it is there");
        for (encoding, character) in [(Encoding::Utf8, 10), (Encoding::Utf16, 7), (Encoding::Utf32, 6)] {
            let position = encoding.position(TEXT, after);
            assert_eq!(position, Position::new(0, character), "{encoding:?}");
            assert_eq!(encoding.offset(TEXT, position), after, "{encoding:?}");
        }
        assert_eq!(Encoding::Utf16.offset(TEXT, Position::new(0, 99)), TEXT.find('\r').expect("it is there"));
        assert_eq!(Encoding::Utf16.offset(TEXT, Position::new(9, 9)), TEXT.len());
        assert_eq!(Encoding::Utf16.offset(TEXT, Position::new(0, 5)), TEXT.find('😀').expect("it is there"), "amid it");
        assert_eq!(Encoding::Utf16.position(TEXT, TEXT.len()), Position::new(2, 0));
    }

    #[test]
    fn clients_choose_the_units() {
        let known = [PositionEncodingKind::new("x"), PositionEncodingKind::UTF8, PositionEncodingKind::UTF16];
        assert_eq!(Encoding::negotiated(Some(&known)), Encoding::Utf8);
        assert_eq!(Encoding::negotiated(None), Encoding::Utf16);
    }

    #[test]
    fn what_begins_somewhere_ends_before_the_next_thing() {
        let end = |text: &str| text[..end_of(text, 0)].to_owned();
        assert_eq!(end("port: 80"), "port");
        assert_eq!(end("a b: c"), "a b");
        assert_eq!(end("text with spaces # note"), "text with spaces");
        assert_eq!(end("'it: is, #one' # note"), "'it: is, #one'");
        assert_eq!(end("[1, {a: ']'}], b"), "[1, {a: ']'}]");
        assert_eq!(end("10.0.0.1:80, b"), "10.0.0.1:80");
        assert_eq!(end(""), "");
        assert_eq!(end("[1,"), "[1,");
        assert_eq!(byte_at(TEXT, 2, 4), TEXT.find('[').expect("it is there"));
        assert_eq!(byte_at(TEXT, 9, 4), TEXT.len());
    }

    #[test]
    fn changes_are_made_where_the_client_made_them() {
        let mut text = "a: 😀b\nc: d\n".to_owned();
        let range = Range::new(Position::new(0, 5), Position::new(1, 0));
        let change = TextDocumentContentChangeEvent { range: Some(range), range_length: None, text: "x\n".to_owned() };
        Encoding::Utf16.change(&mut text, &change);
        assert_eq!(text, "a: 😀x\nc: d\n");
        let whole = TextDocumentContentChangeEvent { range: None, range_length: None, text: String::new() };
        Encoding::Utf16.change(&mut text, &whole);
        assert_eq!(text, "");
    }
}
