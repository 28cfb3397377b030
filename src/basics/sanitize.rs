//! Texts of others made harmless: whoever may name an object, or say why one was refused, must not move a cursor, hide
//! a line or turn one around.
//!
//! Everything that is not seen, and changes how the rest is seen, is shown as what it is: `\u{1b}`.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::io;

use serde::Serialize;

/// Tells whether a character changes how others are shown, or cannot be seen: control characters, marks that turn the
/// direction of writing (UAX 9), separators of lines, and what has no width.
pub fn is_hostile(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{e0000}'..='\u{e007f}')
}

/// Returns a text of one line.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_hostile)
}

/// Returns a text as one line, with its end.
pub fn row(text: &str) -> String {
    format!("{}\n", line(text))
}

/// Returns a text whose lines and tabs stay.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |character| is_hostile(character) && !matches!(character, '\n' | '\t'))
}

fn escaped(text: &str, is_hostile: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_hostile) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_hostile(character) { out.extend(character.escape_unicode()) } else { out.push(character) }
    }
    Cow::Owned(out)
}

/// Takes text, lines and tabs included, and passes it on harmless.
#[derive(Debug)]
pub struct Sanitized<'a>(pub &'a mut String);

impl Write for Sanitized<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.push_str(&lines(text));
        Ok(())
    }
}

/// Returns a value as JSON in one line, in which what is hostile is escaped; it reads back as the same value.
///
/// # Errors
/// A value that JSON cannot hold.
pub fn json(value: &impl Serialize) -> serde_json::Result<String> {
    let mut out = Vec::new();
    write_json(value, &mut out)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Writes the same, piece by piece.
///
/// # Errors
/// A value that JSON cannot hold, or what it is written to fails.
pub fn write_json(value: &impl Serialize, out: &mut impl io::Write) -> serde_json::Result<()> {
    serde_json::to_writer(Escaping(out), value)
}

/// Writes the same in lines that people can read.
///
/// # Errors
/// As [`write_json`].
pub fn write_pretty_json(value: &impl Serialize, out: &mut impl io::Write) -> serde_json::Result<()> {
    serde_json::to_writer_pretty(Escaping(out), value)
}

/// Takes JSON, and passes it on with all escaped that is hostile. Only texts hold that; the ends of lines between them
/// stay, because within a text they are escaped already.
struct Escaping<W>(W);

impl<W: io::Write> io::Write for Escaping<W> {
    /// Each piece of a text comes as a whole.
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let text = str::from_utf8(piece).map_err(io::Error::other)?;
        let mut from = 0;
        for (at, character) in text.char_indices().filter(|(_, it)| is_hostile(*it) && *it != '\n') {
            self.0.write_all(&piece[from..at])?;
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(self.0, "\\u{unit:04x}")?;
            }
            from = at + character.len_utf8();
        }
        self.0.write_all(&piece[from..])?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_how_others_are_shown_is_shown() {
        let check = |text: &str, expected: &str| assert_eq!(line(text), expected, "{text:?}");
        check("Gateway infra/edge: käse 🧀", "Gateway infra/edge: käse 🧀");
        check("\u{1b}[2Jgone", "\\u{1b}[2Jgone");
        check("a\nb\tc\r", "a\\u{a}b\\u{9}c\\u{d}");
        check("\u{9b}31m\u{7f}", "\\u{9b}31m\\u{7f}");
        check("user\u{202e}nimda\u{2066}", "user\\u{202e}nimda\\u{2066}");
        check("ad\u{200b}min\u{feff}\u{e0041}", "ad\\u{200b}min\\u{feff}\\u{e0041}");
        assert_eq!(lines("a\n\tb\u{1b}"), "a\n\tb\\u{1b}");
    }

    #[test]
    fn json_reads_back_as_what_it_was() {
        let text = "a\"\\\u{1b}\u{9b}\u{202e}\n\u{e0041}ä🧀";
        let json = json(&[text]).expect("it is a text");
        assert!(!json.contains(is_hostile), "{json}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&json).expect("it is JSON"), [text]);
    }
}
