//! The forms in which commands print what they have found: for people, and for programs.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::{self, Write};

use gatewright_engine::yaml;
use serde::Serialize;

use super::stream;
use crate::basics::sanitize;

/// The form of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// For people.
    Text,
    /// For programs: JSON documents, each on a line of its own. docs/schema has their schemas.
    Json,
    /// The same as YAML documents.
    Yaml,
}

/// The form of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ListFormat {
    /// For people.
    Text,
    /// For people, with nothing left out.
    Wide,
    /// The names alone, each on a line of its own, as other commands take them.
    Name,
    /// For programs: JSON documents, each on a line of its own. docs/schema has their schemas.
    Json,
    /// The same as YAML documents.
    Yaml,
}

/// The form of a result for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Data {
    Json,
    Yaml,
}

impl Format {
    /// Returns the form for programs, unless it is for people.
    pub(super) fn data(self) -> Option<Data> {
        match self {
            Self::Text => None,
            Self::Json => Some(Data::Json),
            Self::Yaml => Some(Data::Yaml),
        }
    }
}

impl ListFormat {
    /// Returns the form for programs, unless it is another.
    pub(super) fn data(self) -> Option<Data> {
        match self {
            Self::Text | Self::Wide | Self::Name => None,
            Self::Json => Some(Data::Json),
            Self::Yaml => Some(Data::Yaml),
        }
    }
}

/// Puts each name on a line of its own, and each only once.
pub(super) fn names<T: Display + Ord>(all: impl IntoIterator<Item = T>) -> String {
    let all: BTreeSet<T> = all.into_iter().collect();
    all.into_iter().map(|name| name.to_string() + "\n").collect()
}

impl Data {
    /// Prints a value as one document.
    pub(super) fn print(self, value: &impl Serialize) {
        stream(|out| self.write(value, out));
    }

    /// Returns a value as one document.
    pub(super) fn text(self, value: &impl Serialize) -> String {
        let mut out = Vec::new();
        self.write(value, &mut out).expect("what commands print can be held by JSON, and a vector takes everything");
        String::from_utf8_lossy(&out).into_owned()
    }

    fn write(self, value: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Json => {
                sanitize::write_json(value, out)?;
                out.write_all(b"\n")
            }
            Self::Yaml => write_yaml(value, out),
        }
    }
}

/// Writes a document of YAML that begins with `---`, so that several can follow each other.
///
/// YAML leaves in texts what moves a cursor or turns lines around. Where there is such a text the document is JSON, which
/// is YAML as well and has it escaped.
fn write_yaml(value: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    let value = serde_json::to_value(value)?;
    let text = yaml::to_string(&value);
    out.write_all(b"---\n")?;
    if text.contains(|character| sanitize::is_hostile(character) && character != '\n') {
        sanitize::write_pretty_json(&value, out)?;
        return out.write_all(b"\n");
    }
    out.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::basics::sanitize::is_hostile;

    #[test]
    fn yaml_moves_no_cursor_and_reads_back_as_what_it_was() {
        let hostile = "a\u{1b}[2J\u{202e}b\u{200b}\u{9b}\u{7f}\u{2028}\u{feff}\u{e0041}\r\tc";
        let value =
            json!({hostile: [hostile, "first\nsecond \u{1b}\n", "\n\u{202e}\n  x", "- no", "", "~", "1e3", "off"]});
        let text = Data::Yaml.text(&value);
        let shown: Vec<char> = text.chars().filter(|it| is_hostile(*it) && *it != '\n').collect();
        assert!(shown.is_empty(), "{text}");
        assert_eq!(yaml::parse_values(&text), Ok(vec![value]));
        assert_eq!(Data::Yaml.text(&json!({"a": ["b\nc", "no"]})), "---\na:\n- |-\n  b\n  c\n- \"no\"\n");
    }
}
