//! Texts of the pack's data that hold expressions: what a backend says of its command, and a type of its environment.
//!
//! Only data of the pack and of the config file is filled; what users write in a graph is a value and never a template.

use gatewright_engine::error::Chain;
use serde_json::Value;
use tera::{Context, Kwargs, State, Tera};

use super::command::nested;
use crate::json::each_text;

/// Fills every text of a value that holds an expression.
pub(super) fn fill(value: &Value, scope: &Value) -> Result<Value, String> {
    let context = Context::from_serialize(scope).map_err(|error| one_line(&error))?;
    let mut tera = Tera::new();
    tera.register_filter("nested", |text: &str, _: Kwargs, _: &State<'_>| nested(text));
    let (mut filled, mut result) = (value.clone(), Ok(()));
    each_text(&mut filled, &mut |text| {
        if result.is_ok() && (text.contains("{{") || text.contains("{%")) {
            match tera.render_str(text, &context, false) {
                Ok(rendered) => *text = rendered,
                Err(error) => result = Err(format!("cannot fill {text:?}: {}", one_line(&error))),
            }
        }
    });
    result.map(|()| filled)
}

pub(super) fn fill_text(text: &str, scope: &Value) -> Result<String, String> {
    match fill(&Value::from(text), scope)? {
        Value::String(text) => Ok(text),
        other => Ok(other.to_string()),
    }
}

pub(super) fn holds(condition: &str, scope: &Value) -> Result<bool, String> {
    fill_text(&format!("{{% if {condition} %}}yes{{% endif %}}"), scope).map(|text| text == "yes")
}

fn one_line(error: &tera::Error) -> String {
    Chain(error).to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_users_write_is_never_a_template() {
        let filled = fill(&json!({"a": ["{{ text }}"]}), &json!({"text": "{{ 1 + 1 }} <&"}));
        assert_eq!(filled, Ok(json!({"a": ["{{ 1 + 1 }} <&"]})));
    }

    #[test]
    fn a_condition_may_ask_for_what_is_not_there() {
        let scope = json!({"annotations": {"nvidia.com/a": "ray"}, "gpus": 4, "numbers": {"tensor": 8}});
        assert_eq!(holds("annotations['nvidia.com/a'] == 'ray'", &scope), Ok(true));
        assert_eq!(holds("annotations['nvidia.com/b'] == 'ray'", &scope), Ok(false));
        assert_eq!(holds("numbers.tensor > gpus", &scope), Ok(true));
        assert!(holds("numbers.missing > gpus", &scope).is_err());
    }
}
