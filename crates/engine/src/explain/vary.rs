//! Other values in the place of one, and whether one went where it was said.

use serde_json::{Number, Value, json};

/// Returns other values of the same sort, the likeliest to be accepted first; none for a list or a mapping.
pub(super) fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::String(text) => other_texts(text).into_iter().map(Value::from).collect(),
        Value::Number(number) => other_numbers(number),
        Value::Bool(value) => vec![Value::Bool(!value)],
        Value::Null | Value::Array(_) | Value::Object(_) => Vec::new(),
    }
}

/// Returns how many of [`others`] are worth a trial when all of them are accepted: of numbers a near one and a
/// distant one, because what they govern may begin at a limit.
pub(super) fn trials(value: &Value) -> usize {
    if value.is_number() { 2 } else { 1 }
}

fn other_numbers(number: &Number) -> Vec<Value> {
    match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => [1, 1000, -1].iter().filter_map(|step| Some(json!(whole.checked_add(*step)?))).collect(),
        (None, Some(real)) => vec![json!(real + 0.5), json!(real / 2.0)],
        (None, None) => Vec::new(),
    }
}

/// A text of the same length and form is accepted most often: an address stays an address, a size a size.
fn other_texts(text: &str) -> Vec<String> {
    let positions = |is: fn(&char) -> bool| text.char_indices().filter(move |(_, c)| is(c));
    let places = [
        positions(char::is_ascii_digit).next_back(),
        positions(char::is_ascii_alphabetic).next_back(),
        positions(char::is_ascii_alphanumeric).next(),
    ];
    let changed = places.into_iter().flatten().map(|(at, c)| format!("{}{}{}", &text[..at], near(c), &text[at + 1..]));
    changed.chain([format!("{text}x"), "x".to_owned()]).filter(|other| other != text).collect()
}

fn near(c: char) -> char {
    match c {
        '0' => '1',
        'a' => 'b',
        'A' => 'B',
        c => char::from_u32(u32::from(c) - 1).unwrap_or('x'),
    }
}

/// Tells whether a value went from an input into a leaf: it was in there `before`, and is not `after` the input said
/// `other` instead.
pub(super) fn carries(before: &Value, after: Option<&Value>, said: &Value, other: Option<&Value>) -> bool {
    let Some(after) = after else { return holds(before, said) };
    if before == said {
        return other.is_none_or(|other| after == other);
    }
    let (Some(before), Some(after), Some(said)) = (text(before), text(after), text(said)) else { return false };
    let other = other.and_then(text);
    let gains = other.is_none_or(|other| after.matches(&*other).count() > before.matches(&*other).count());
    gains && before.matches(&*said).count() > after.matches(&*said).count()
}

/// Tells whether a leaf that has vanished held a value, not as a part of a longer word.
fn holds(leaf: &Value, said: &Value) -> bool {
    if matches!(leaf, Value::Object(_) | Value::Array(_)) {
        return leaf == said;
    }
    let (Some(leaf), Some(said)) = (text(leaf), text(said)) else { return false };
    let is_edge = |c: Option<char>| !c.is_some_and(char::is_alphanumeric);
    leaf.match_indices(&*said)
        .any(|(at, _)| is_edge(leaf[..at].chars().next_back()) && is_edge(leaf[at + said.len()..].chars().next()))
}

/// Returns the text of a value that can stand in another; a boolean says nothing by itself.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_text_has_the_same_form() {
        let check =
            |text: &str, expected: &str| assert_eq!(other_texts(text).first().map(String::as_str), Some(expected));
        check("192.0.2.255", "192.0.2.254");
        check("10.0.0.0/8", "10.0.0.0/7");
        check("100m", "101m");
        check("v2.4.0", "v2.4.1");
        check("edge", "edgd");
        check("é", "éx");
        check("", "x");
    }

    #[expect(clippy::needless_pass_by_value, reason = "literals read better without a borrow")]
    fn check(before: Value, after: Option<Value>, said: Value, other: Value, expected: bool) {
        assert_eq!(carries(&before, after.as_ref(), &said, Some(&other)), expected, "{before} {after:?} {said}");
    }

    #[test]
    fn a_value_that_arrives_is_carried() {
        check(json!(2), Some(json!(3)), json!(2), json!(3), true);
        check(json!("r/a:v1"), Some(json!("r/a:v2")), json!("v1"), json!("v2"), true);
        check(json!("sleep 10; 127.0.0.1"), Some(json!("sleep 11; 127.0.0.1")), json!(10), json!(11), true);
        check(json!("listener-80"), None, json!(80), json!(81), true);
        check(json!(true), Some(json!(false)), json!(true), json!(false), true);
        check(json!({}), None, json!({}), json!(null), true);
    }

    #[test]
    fn a_value_that_only_decides_is_not() {
        check(json!(true), None, json!(true), json!(false), false);
        check(json!("0"), None, json!(80), json!(1080), false);
        check(json!("TCP"), None, json!(80), json!(81), false);
        check(json!("ClusterIP"), Some(json!("LoadBalancer")), json!("acme-waypoint"), json!("other"), false);
        check(json!("listener-8080"), None, json!(80), json!(81), false);
    }
}
