//! YAML as Go's writers lay it out: keys in order, two spaces, and lists no deeper than their key.

use gatewright_engine::yaml;
use serde_json::Value;

/// Writes documents within texts in another layout with the same content.
pub(super) fn relaid(key: &str, text: &str) -> Option<String> {
    let document = || yaml::parse_values(text).ok()?.into_iter().next();
    match key.rsplit_once('.')?.1 {
        "yaml" | "yml" => Some(laid_out(&document()?)),
        "json" => Some(serde_json::to_string(&document()?).expect("it was JSON") + "\n"),
        _ => None,
    }
}

/// Writes a document.
pub(super) fn laid_out(document: &Value) -> String {
    lines(document).join("\n") + "\n"
}

fn lines(value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().flat_map(|(key, value)| entry(&text(key), value)).collect()
        }
        Value::Array(items) if !items.is_empty() => items.iter().flat_map(item).collect(),
        scalar => vec![inline(scalar)],
    }
}

fn is_block(value: &Value) -> bool {
    value.as_object().is_some_and(|fields| !fields.is_empty()) || value.as_array().is_some_and(|it| !it.is_empty())
}

fn entry(key: &str, value: &Value) -> Vec<String> {
    if let Some(block) = value.as_str().and_then(literal) {
        return [format!("{key}: {}", block[0])].into_iter().chain(indented(&block[1..])).collect();
    }
    if !is_block(value) {
        return vec![format!("{key}: {}", inline(value))];
    }
    let below = lines(value);
    let below = if value.is_array() { below } else { indented(&below) };
    [format!("{key}:")].into_iter().chain(below).collect()
}

fn item(value: &Value) -> Vec<String> {
    let mut lines = lines(value);
    let first = format!("- {}", lines.remove(0));
    [first].into_iter().chain(indented(&lines)).collect()
}

fn indented(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| format!("  {line}")).collect()
}

/// Returns a text of several lines as a block, its indicator first.
fn literal(text: &str) -> Option<Vec<String>> {
    let (indicator, body) = text.strip_suffix('\n').map_or(("|-", text), |body| ("|", body));
    let is_plain = |line: &str| !line.is_empty() && !line.starts_with([' ', '\t']);
    let is_fit = body.contains('\n') && body.lines().all(is_plain) && !body.ends_with('\n');
    is_fit.then(|| [indicator].into_iter().chain(body.lines()).map(str::to_owned).collect())
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(value) => text(value),
        value => value.to_string(),
    }
}

fn text(value: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "-_./~%$()=, ".contains(c);
    let starts = value.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/' || c == '_');
    let is_plain = starts && !value.ends_with(' ') && value.chars().all(is_safe);
    let is_text = yaml::parse_values(value).is_ok_and(|read| read == [Value::from(value)]);
    match value {
        _ if is_plain && is_text => value.to_owned(),
        // What would be read as something else is in double quotes, what would not be read at all in single ones.
        _ if is_plain || value.chars().any(char::is_control) => Value::from(value).to_string(),
        _ => format!("'{}'", value.replace('\'', "''")),
    }
}
