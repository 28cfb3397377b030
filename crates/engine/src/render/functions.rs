//! What templates may call, beside Tera's own.

use tera::{Kwargs, State, Tera, TeraResult, Value};

/// Adds our filters, and takes away the one that would let a value in as it is.
pub(super) fn register(tera: &mut Tera) {
    tera.register_filter("json", |value: &Value, _: Kwargs, _: &State<'_>| json(value));
    tera.register_filter("safe", |_: &Value, _: Kwargs, _: &State<'_>| -> TeraResult<Value> {
        Err(tera::Error::message("`safe` is not available: use an encoding filter, as in {{ name | json }}"))
    });
}

/// Encodes a value as JSON on one line, in ASCII.
///
/// JSON is YAML, in a block scalar too; without characters outside of ASCII nothing in it can be taken for a line
/// break or an indicator, whatever the parser.
fn json(value: &Value) -> TeraResult<Value> {
    if value.is_undefined() {
        return Err(tera::Error::message("the value is not there; a field that may be missing is asked for with {% if %}"));
    }
    let text = serde_json::to_string(value)
        .map_err(|error| tera::Error::message(format!("the value cannot be written as JSON: {error}")))?;
    if text.is_ascii() && !text.contains('\u{7f}') {
        return Ok(Value::safe_string(&text));
    }
    let mut ascii = String::with_capacity(text.len() * 2);
    for c in text.chars() {
        if c.is_ascii() && c != '\u{7f}' {
            ascii.push(c);
        } else {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| ascii.push_str(&format!("\\u{unit:04x}")));
        }
    }
    Ok(Value::safe_string(&ascii))
}
