//! How an API server writes an amount: `1000m` comes back as `1`, `0.5` as `500m`, `1024Mi` as `1Gi`.
//!
//! What is written keeps its sort, binary or decimal, and gets the largest suffix that leaves a whole number (the
//! canonical form of a `resource.Quantity`).

use serde_json::Value;

const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

/// Returns an amount as a server writes it; what is none, or is too large or too fine to be sure of, comes back as it is.
pub(super) fn canonical(value: &Value) -> Value {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return value.clone(),
    };
    written(&text).map_or_else(|| value.clone(), Value::from)
}

fn written(text: &str) -> Option<String> {
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (digits, fraction) = number.split_once('.').unwrap_or((number, ""));
    let units: i128 = format!("{digits}{fraction}").parse().ok()?;
    let fraction = i32::try_from(fraction.len()).ok()?;
    if let Some(power) = BINARY.iter().position(|known| *known == suffix && !suffix.is_empty()) {
        let whole = units.checked_mul(1024_i128.checked_pow(u32::try_from(power).ok()?)?)?;
        let divisor = 10_i128.checked_pow(u32::try_from(fraction).ok()?)?;
        return (whole % divisor == 0).then(|| binary(whole / divisor));
    }
    let (_, power) = DECIMAL.iter().find(|(known, _)| *known == suffix)?;
    decimal(units, power - fraction)
}

fn binary(mut amount: i128) -> String {
    let mut power = 0;
    while amount != 0 && amount % 1024 == 0 && power + 1 < BINARY.len() {
        amount /= 1024;
        power += 1;
    }
    format!("{amount}{}", BINARY[power])
}

fn decimal(mut units: i128, mut power: i32) -> Option<String> {
    while units != 0 && units % 10 == 0 {
        units /= 10;
        power += 1;
    }
    if units == 0 {
        return Some("0".to_owned());
    }
    let (suffix, base) = DECIMAL.iter().rev().find(|(_, base)| *base <= power)?;
    let scale = 10_i128.checked_pow(u32::try_from(power - base).ok()?)?;
    Some(format!("{}{suffix}", units.checked_mul(scale)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
            (json!("1000k"), json!("1M")),
            (json!("0"), json!("0")),
            (json!("0Mi"), json!("0")),
            (json!("12e6"), json!("12e6")),
            (json!("much"), json!("much")),
            (json!(true), json!(true)),
        ] {
            let canonical = canonical(&written);
            assert_eq!(canonical, canonical_form, "{written}");
        }
    }
}
