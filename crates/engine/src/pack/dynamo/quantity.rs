//! Quantities as Kubernetes writes them, so that they can be added up.

use serde_json::Value;

/// A quantity in thousandths, which is exact for all that is asked for in practice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity(pub i128);

/// Suffixes and what they stand for, in thousandths.
const SUFFIXES: [(&str, i128); 13] = [
    ("Ki", 1_024_000),
    ("Mi", 1_024_000 * 1024),
    ("Gi", 1_024_000 * 1024 * 1024),
    ("Ti", 1_024_000 * 1024 * 1024 * 1024),
    ("Pi", 1_024_000 * 1024 * 1024 * 1024 * 1024),
    ("m", 1),
    ("k", 1_000_000),
    ("M", 1_000_000_000),
    ("G", 1_000_000_000_000),
    ("T", 1_000_000_000_000_000),
    ("P", 1_000_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000_000),
    ("", 1_000),
];

impl Quantity {
    /// Reads a quantity; what is none counts as nothing, because the API server says what is wrong with it.
    pub fn of(value: &Value) -> Self {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let read = |(suffix, thousandths): &(&str, i128)| {
            let number = text.strip_suffix(suffix)?;
            let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
            let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
            let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
            Some(digits.checked_mul(*thousandths)? / scale)
        };
        Self(SUFFIXES.iter().find_map(read).unwrap_or_default())
    }
}

impl std::fmt::Display for Quantity {
    /// Writes it with the largest suffix that leaves no fraction.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let binary = SUFFIXES[..5].iter().rev().find(|(_, unit)| self.0 >= *unit && self.0 % unit == 0);
        match binary {
            Some((suffix, unit)) => write!(f, "{}{suffix}", self.0 / unit),
            None if self.0 % 1000 == 0 => write!(f, "{}", self.0 / 1000),
            None => write!(f, "{}m", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn quantities_are_read_and_written() {
        let all = [(json!("500m"), "500m"), (json!("1.5"), "1500m"), (json!(2), "2"), (json!("80Gi"), "80Gi")];
        for (written, expected) in all {
            assert_eq!(Quantity::of(&written).to_string(), expected);
        }
        assert_eq!(Quantity::of(&json!("1G")).to_string(), "1000000000");
        assert_eq!(Quantity::of(&json!("none")), Quantity(0));
    }
}
