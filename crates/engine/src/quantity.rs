//! Amounts as Kubernetes writes them: `2`, `500m`, `1Gi`, `12e6`.
//!
//! They are exact and, as for an API server, rounded up to a billionth. What is too large to be sure of is no amount. A
//! text is one only where the kind of its object says so, which `places` knows: a label `1.10` is another one than
//! `1.1`.

pub(crate) mod places;

use std::fmt;

use serde_json::Value;

/// Suffixes of powers of 1024, from the first.
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Suffixes of powers of ten.
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

/// Parts of a whole.
const BILLIONTHS: i128 = 1_000_000_000;

/// An amount, in billionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity(i128);

/// The notation of an amount.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Binary,
    Decimal,
    Exponent,
}

impl Quantity {
    /// Reads an amount; `None` if the text is none, or one that is too large.
    pub fn parse(text: &str) -> Option<Self> {
        read(text).map(|(quantity, _)| quantity)
    }

    /// Reads an amount that may be written as a number.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text),
            Value::Number(number) => Self::parse(&number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Tells whether it is nothing.
    pub(crate) fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns the number of whole units, a part of one counted as one.
    pub fn whole(self) -> i128 {
        self.0.div_euclid(BILLIONTHS) + i128::from(self.0.rem_euclid(BILLIONTHS) != 0)
    }

    /// Returns the number that is nearest.
    #[expect(clippy::cast_precision_loss, reason = "the nearest number is what is asked for")]
    pub(crate) fn number(self) -> f64 {
        // Whole units are exact for longer than billionths are.
        (self.0 / BILLIONTHS) as f64 + (self.0 % BILLIONTHS) as f64 / 1e9
    }

    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns what is left of it without another amount, at least nothing.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0).max(0))
    }

    /// Returns so many times the amount.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(i128::from(count)))
    }

    fn is_whole(self) -> bool {
        self.0 % BILLIONTHS == 0
    }

    /// Writes it with the largest suffix of ten that leaves a whole number.
    fn decimal(self) -> String {
        let (mut units, mut power) = (self.0, -9);
        while units != 0 && units % 10 == 0 {
            units /= 10;
            power += 1;
        }
        if units == 0 {
            return "0".to_owned();
        }
        let fits = |(_, base): &&(&str, i32)| *base <= power;
        let (suffix, base) = DECIMAL.iter().rev().find(fits).unwrap_or(&DECIMAL[0]);
        let zeros = usize::try_from(power - base).unwrap_or_default();
        format!("{units}{}{suffix}", "0".repeat(zeros))
    }

    /// Writes it with the largest suffix of 1024 that leaves a whole number, if any does.
    fn binary(self) -> Option<String> {
        let mut units = self.0 / BILLIONTHS;
        let mut suffix = None;
        for next in BINARY {
            if units == 0 || units % 1024 != 0 {
                break;
            }
            units /= 1024;
            suffix = Some(next);
        }
        suffix.filter(|_| self.is_whole()).map(|suffix| format!("{units}{suffix}"))
    }
}

impl fmt::Display for Quantity {
    /// Writes it for people, who would rather read `8000` than `8k`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.binary() {
            Some(text) => f.write_str(&text),
            None if self.is_whole() => write!(f, "{}", self.0 / BILLIONTHS),
            None => f.write_str(&self.decimal()),
        }
    }
}

/// Tells whether two values are the same amount.
pub(crate) fn is_same(a: &Value, b: &Value) -> bool {
    Quantity::of(a).is_some_and(|a| Quantity::of(b) == Some(a))
}

/// Returns an amount as a server writes it; what is none, or cannot be told, comes back as it is.
///
/// What is written keeps its sort, binary or decimal, and gets the largest suffix that leaves a whole number: `1000m`
/// comes back as `1`, `0.5` as `500m`, `1024Mi` as `1Gi`.
pub fn canonical(value: &Value) -> Value {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return value.clone(),
    };
    written(&text).map_or_else(|| value.clone(), Value::from)
}

fn written(text: &str) -> Option<String> {
    let (quantity, style) = read(text)?;
    match style {
        // A server leaves an exponent where it stands.
        Style::Exponent => None,
        Style::Binary if quantity.0.abs() >= 1024 * BILLIONTHS => {
            quantity.is_whole().then(|| quantity.binary().unwrap_or_else(|| (quantity.0 / BILLIONTHS).to_string()))
        }
        Style::Binary | Style::Decimal => Some(quantity.decimal()),
    }
}

fn read(text: &str) -> Option<(Quantity, Style)> {
    let (is_negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let (factor, power, style) = scale(suffix)?;
    let digits = digits.trim_start_matches('0');
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Some((Quantity(0), style));
    }
    let zeros = i64::try_from(digits.len() - significant.len()).ok()?;
    let power = power.checked_add(zeros)?.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(9)?;
    let units = billionths(significant.parse::<i128>().ok()?.checked_mul(factor)?, power)?;
    Some((Quantity(if is_negative { -units } else { units }), style))
}

/// Multiplies by a power of ten; what is too fine is rounded up, as a server does: who asks for something gets some.
fn billionths(units: i128, power: i64) -> Option<i128> {
    if let Ok(power) = u32::try_from(power) {
        return units.checked_mul(10_i128.checked_pow(power)?);
    }
    let divisor = u32::try_from(power.unsigned_abs()).ok().and_then(|power| 10_i128.checked_pow(power));
    Some(divisor.map_or(1, |divisor| units / divisor + i128::from(units % divisor != 0)))
}

/// Reads a suffix: a factor, and a power of ten.
fn scale(suffix: &str) -> Option<(i128, i64, Style)> {
    if let Some(position) = BINARY.iter().position(|known| *known == suffix) {
        return Some((1024_i128.pow(u32::try_from(position).ok()? + 1), 0, Style::Binary));
    }
    if let Some((_, power)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
        return Some((1, i64::from(*power), Style::Decimal));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    Some((1, exponent.parse().ok()?, Style::Exponent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn quantity(text: &str) -> Quantity {
        Quantity::parse(text).expect(text)
    }

    #[test]
    fn quantities_are_those_of_kubernetes() {
        for (text, same) in [
            ("500m", "0.5"),
            ("1Gi", "1073741824"),
            ("1.5k", "1500"),
            ("2e3", "2k"),
            ("2E3", "2000"),
            ("1E", "1000P"),
            ("-1", "-1000m"),
            ("+1", "1."),
            (".5", "0.50"),
            ("0e12345", "0e99999"),
            ("0Ei", "-0"),
            ("1e-3", "1m"),
            ("9007199254740993", "9007199254740993000m"),
            ("0.0000000001", "1n"),
            ("1e-400", "1n"),
            ("0.3Gi", "322122547200m"),
        ] {
            assert_eq!(quantity(text), quantity(same), "{text}");
        }
    }

    #[test]
    fn what_kubernetes_would_refuse_is_no_quantity() {
        let none =
            ["", "m", "1GB", "inf", "NaN", "1 Gi", "0x10", "1e", "e3", "1e1.5", "1.2.3", "--1", "1ki", "1_0", "١"];
        for text in none {
            assert_eq!(Quantity::parse(text), None, "{text:?}");
        }
        let too_large = ["1e12345", "1e99999999999999999999", "999999999999999999999999999999999999999999", "1e30"];
        for text in too_large {
            assert_eq!(Quantity::parse(text), None, "{text:?}");
        }
        for value in [json!(null), json!(true), json!([1]), json!({"a": 1})] {
            assert_eq!(Quantity::of(&value), None);
        }
    }

    #[test]
    fn quantities_are_compared_exactly() {
        let ascending = ["-1Gi", "-1n", "0", "1n", "100m", "1", "1001m", "9007199254740992", "9007199254740993", "10E"];
        for pair in ascending.windows(2) {
            assert!(quantity(pair[0]) < quantity(pair[1]), "{pair:?}");
        }
        assert!(!is_same(&json!("9007199254740992"), &json!("9007199254740993")));
        assert!(is_same(&json!(2), &json!("2000m")) && is_same(&json!(0.5), &json!("500m")));
        assert!(!is_same(&json!("a"), &json!("a")), "what is none is not the same amount");
    }

    #[test]
    fn an_amount_is_written_as_a_server_writes_it() {
        for (written, canonical_form) in [
            (json!("1000m"), json!("1")),
            (json!("1500m"), json!("1500m")),
            (json!("0.5"), json!("500m")),
            (json!(0.5), json!("500m")),
            (json!(2), json!("2")),
            (json!("1024Mi"), json!("1Gi")),
            (json!("1.5Gi"), json!("1536Mi")),
            (json!("1Ki"), json!("1Ki")),
            (json!("0.5Ki"), json!("512")),
            (json!("1000k"), json!("1M")),
            (json!("0"), json!("0")),
            (json!("0Mi"), json!("0")),
            (json!("12e6"), json!("12e6")),
            (json!("much"), json!("much")),
            (json!(true), json!(true)),
        ] {
            assert_eq!(canonical(&written), canonical_form, "{written}");
        }
    }

    #[test]
    fn quantities_are_shown_and_added_up() {
        for (text, shown) in
            [("500m", "500m"), ("1.5", "1500m"), ("8k", "8000"), ("80Gi", "80Gi"), ("1G", "1000000000")]
        {
            assert_eq!(quantity(text).to_string(), shown);
        }
        assert_eq!(quantity("300m").times(4).plus(quantity("1")), quantity("2200m"));
        assert_eq!((quantity("1.2").whole(), quantity("-1.2").whole(), quantity("1Ki").whole()), (2, -1, 1024));
        assert_eq!(quantity("16000000001").number().to_bits(), 16_000_000_001_f64.to_bits());
        assert_eq!(quantity("100m").number().to_bits(), 0.1_f64.to_bits());
    }

    proptest! {
        #[test]
        fn any_text_can_be_read_and_its_form_is_the_same_amount(text in "[+-]?[0-9.]{0,44}([a-zA-Z]{0,2}|e[+-]?[0-9]{0,6})") {
            let form = canonical(&json!(text));
            prop_assert_eq!(Quantity::of(&form), Quantity::parse(&text));
        }
    }
}
