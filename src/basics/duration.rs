//! The notation of a span of time in settings: `500ms`, `30s`, `5m`, `1h30m`, `30d`.
//!
//! A number without a unit is refused, because nobody can tell seconds from minutes by looking at it.
//! So are fractions and months, which leave open how long they are.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The units, largest first, with their length in milliseconds.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A span of time as settings write it, in whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Period(pub Duration);

/// A text is no span of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeriodError {
    /// The text does not have the form of one.
    #[error("{0:?} is no duration: write numbers with units, largest first, as in 500ms, 30s, 5m, 1h30m or 30d")]
    Form(String),
    /// The text has the form, but stands for more milliseconds than can be counted.
    #[error("the duration {0:?} is too long")]
    TooLong(String),
}

impl FromStr for Period {
    type Err = PeriodError;

    fn from_str(text: &str) -> Result<Self, PeriodError> {
        let form = || PeriodError::Form(text.to_owned());
        let too_long = || PeriodError::TooLong(text.to_owned());
        let mut rest = text;
        let mut units = UNITS.iter();
        let mut total: u64 = 0;
        loop {
            let (number, after) = split_after(rest, |c| c.is_ascii_digit());
            let (unit, after) = split_after(after, |c| c.is_ascii_alphabetic());
            if number.is_empty() {
                return Err(form());
            }
            // Going on where the last search ended is what refuses units that are out of order or come twice.
            let (_, length) = units.find(|(name, _)| *name == unit).ok_or_else(form)?;
            let number: u64 = number.parse().map_err(|_| too_long())?;
            total = number.checked_mul(*length).and_then(|span| total.checked_add(span)).ok_or_else(too_long)?;
            if after.is_empty() {
                return Ok(Self(Duration::from_millis(total)));
            }
            rest = after;
        }
    }
}

/// Splits a text after the characters at its start that fit.
fn split_after(text: &str, fits: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !fits(c)).unwrap_or(text.len()))
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        if rest == 0 {
            return f.write_str("0s");
        }
        for (name, length) in UNITS {
            if rest >= length {
                write!(f, "{}{name}", rest / length)?;
                rest %= length;
            }
        }
        Ok(())
    }
}

impl TryFrom<String> for Period {
    type Error = PeriodError;

    fn try_from(text: String) -> Result<Self, PeriodError> {
        text.parse()
    }
}

impl From<Period> for String {
    fn from(period: Period) -> Self {
        period.to_string()
    }
}

impl JsonSchema for Period {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Period".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A span of time, such as 500ms, 30s, 5m, 1h30m or 30d.",
            "pattern": r"^(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?$",
            "minLength": 2,
            "x-gatewright-form": "a duration such as 500ms, 30s, 5m, 1h30m or 30d",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, milliseconds: u64) {
        assert_eq!(text.parse(), Ok(Period(Duration::from_millis(milliseconds))), "{text:?}");
    }

    #[test]
    fn every_unit_and_sums_of_units_are_read() {
        check("500ms", 500);
        check("30s", 30_000);
        check("5m", 300_000);
        check("1h30m", 5_400_000);
        check("30d", 2_592_000_000);
        check("1d2h3m4s5ms", 93_784_005);
        check("90m", 5_400_000);
        check("0s", 0);
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "5", "s", "5 s", " 5s", "-5s", "1.5h", "5S", "1m1h", "1s1s", "5min", "5s!", "１s"] {
            assert_eq!(text.parse::<Period>(), Err(PeriodError::Form(text.to_owned())), "{text:?}");
        }
        for text in ["99999999999999999999s", "9999999999999999d"] {
            assert_eq!(text.parse::<Period>(), Err(PeriodError::TooLong(text.to_owned())), "{text:?}");
        }
    }

    #[test]
    fn the_shown_text_reads_back_as_the_same() {
        for text in ["500ms", "30s", "5m", "1h30m", "30d", "1d2h3m4s5ms", "0s"] {
            assert_eq!(text.parse::<Period>().map(|period| period.to_string()).as_deref(), Ok(text));
        }
        assert_eq!(Period(Duration::from_secs(90)).to_string(), "1m30s");
    }
}
