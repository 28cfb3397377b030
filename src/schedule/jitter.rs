//! The form in which settings write the spreading of rounds: `10%` or `30s`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::basics::duration::Period;

/// The spreading of rounds, so that a fleet's do not start at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Jitter {
    /// A share of the interval, in percent.
    Percent(u8),
    /// A span of time.
    Span(Period),
}

/// A text is neither a share nor a span of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no jitter: write a share from 0% to 50%, or a time such as 30s")]
pub struct JitterError(String);

impl FromStr for Jitter {
    type Err = JitterError;

    fn from_str(text: &str) -> Result<Self, JitterError> {
        let wrong = || JitterError(text.to_owned());
        match text.strip_suffix('%') {
            None => text.parse().map(Self::Span).map_err(|_| wrong()),
            Some(share) if share.bytes().all(|byte| byte.is_ascii_digit()) => {
                share.parse().ok().filter(|share| *share <= 50).map(Self::Percent).ok_or_else(wrong)
            }
            Some(_) => Err(wrong()),
        }
    }
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percent(share) => write!(f, "{share}%"),
            Self::Span(span) => span.fmt(f),
        }
    }
}

impl TryFrom<String> for Jitter {
    type Error = JitterError;

    fn try_from(text: String) -> Result<Self, JitterError> {
        text.parse()
    }
}

impl From<Jitter> for String {
    fn from(jitter: Jitter) -> Self {
        jitter.to_string()
    }
}

impl JsonSchema for Jitter {
    fn schema_name() -> Cow<'static, str> {
        "Jitter".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A share of the interval from 0% to 50%, or a span of time such as 30s.",
            "pattern": r"^(\d+%|(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?)$",
            "minLength": 2,
            "x-gatewright-form": "a share of the interval such as 10%, or a duration such as 30s",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jitter_is_a_share_or_a_time() {
        for text in ["0%", "10%", "50%", "30s", "1h30m"] {
            assert_eq!(text.parse::<Jitter>().map(|jitter| jitter.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "%", "51%", "-1%", "+1%", "1.5%", "10 %", "10", "300%"] {
            assert_eq!(text.parse::<Jitter>(), Err(JitterError(text.to_owned())), "{text:?}");
        }
    }
}
