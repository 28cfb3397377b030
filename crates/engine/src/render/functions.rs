//! What templates may call, beside Tera's own.

use tera::{Kwargs, State, Tera, TeraResult, Value};

use super::holes;

/// Adds our filters, and takes away the one that would let a value in as it is.
pub(super) fn register(tera: &mut Tera) {
    tera.register_filter("json", |value: &Value, _: Kwargs, _: &State<'_>| json(value));
    tera.register_filter("safe", |_: &Value, _: Kwargs, _: &State<'_>| -> TeraResult<Value> {
        Err(tera::Error::message("`safe` is not available: use an encoding filter, as in {{ name | json }}"))
    });
}

/// Encodes a value as JSON on one line, marked as a hole in the text of the template.
fn json(value: &Value) -> TeraResult<Value> {
    if value.is_undefined() {
        return Err(tera::Error::message(
            "the value is not there; a field that may be missing is asked for with {% if %}",
        ));
    }
    let mut text = String::from(holes::BEGIN);
    write(value, &mut text)
        .map_err(|error| tera::Error::message(format!("the value cannot be written as JSON: {error}")))?;
    text.push(holes::END);
    Ok(Value::safe_string(&text))
}

/// Writes JSON with sorted keys: Tera's own maps differ in their order from run to run.
fn write(value: &Value, text: &mut String) -> serde_json::Result<()> {
    if let Some(items) = value.as_array() {
        text.push('[');
        for (index, item) in items.iter().enumerate() {
            text.push_str(if index == 0 { "" } else { "," });
            write(item, text)?;
        }
        text.push(']');
    } else if let Some(map) = value.as_map() {
        let mut entries: Vec<_> = map.iter().map(|(key, value)| (key.to_string(), value)).collect();
        entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        text.push('{');
        for (index, (key, value)) in entries.into_iter().enumerate() {
            text.push_str(if index == 0 { "" } else { "," });
            text.push_str(&serde_json::to_string(&key)?);
            text.push(':');
            write(value, text)?;
        }
        text.push('}');
    } else if let Some(string) = value.as_str().filter(|_| value.is_safe()) {
        // What a template has put together itself may hold encoded values.
        text.push_str(&serde_json::to_string(&holes::closed(string))?);
    } else {
        text.push_str(&serde_json::to_string(value)?);
    }
    Ok(())
}
