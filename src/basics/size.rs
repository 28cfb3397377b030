//! The notation of a number of bytes in settings: `500MiB`, `1GiB`.
//!
//! Units count by 1024, as disks are measured by the tools that people look at them with. A number without a unit is
//! bytes.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The units, largest first, with their length in bytes.
const UNITS: [(&str, u64); 5] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("", 1)];

/// A number of bytes as settings write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "String")]
pub struct Size(pub u64);

/// A number without a unit is a number in YAML, and no text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Bytes(u64),
    Text(String),
}

/// A text is no number of bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no number of bytes: write a whole number with a unit, as in 500MiB or 1GiB")]
pub struct SizeError(String);

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let error = || SizeError(text.to_owned());
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let (_, bytes) = UNITS.iter().find(|(unit, _)| *unit == &text[digits.len()..]).ok_or_else(error)?;
        let number: u64 = digits.parse().map_err(|_| error())?;
        number.checked_mul(*bytes).map(Self).ok_or_else(error)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, bytes): &&(&str, u64)| self.0 >= *bytes && self.0.is_multiple_of(*bytes);
        let (unit, bytes) = UNITS.iter().find(fits).unwrap_or(&("", 1));
        write!(f, "{}{unit}", self.0 / bytes)
    }
}

impl TryFrom<Written> for Size {
    type Error = SizeError;

    fn try_from(written: Written) -> Result<Self, SizeError> {
        match written {
            Written::Bytes(bytes) => Ok(Self(bytes)),
            Written::Text(text) => text.parse(),
        }
    }
}

impl From<Size> for String {
    fn from(size: Size) -> Self {
        size.to_string()
    }
}

impl JsonSchema for Size {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "integer"], "minimum": 0, "pattern": "^[0-9]+(KiB|MiB|GiB|TiB)?$"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_back() {
        for (text, bytes) in [("0", 0), ("1000", 1000), ("1KiB", 1024), ("500MiB", 500 << 20), ("1GiB", 1 << 30)] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
            assert_eq!(Size(bytes).to_string(), text);
        }
        assert_eq!(serde_json::from_str::<Size>("4096").ok(), Some(Size(4096)));
        for text in ["", "GiB", "1GB", "-1", "1.5GiB", "1 GiB", "99999999999TiB"] {
            assert_eq!(text.parse::<Size>(), Err(SizeError(text.to_owned())));
        }
    }
}
