//! The rules that a pack reads documents by, in the words of JSON Schema.

use serde_json::{Map, Value, json};

use super::structural::or_null;
use crate::schema::{Additional, Rule, Schema};

/// Returns a schema as a JSON Schema; what it names is below `definitions`.
pub(super) fn written(schema: &Schema) -> Value {
    let takes_nulls = schema.takes_nulls;
    let mut root = rule(schema.root(), takes_nulls);
    let definitions = schema.definitions().map(|(name, it)| (name.to_owned(), rule(it, takes_nulls)));
    let definitions: Map<String, Value> = definitions.collect();
    if !definitions.is_empty() {
        root["definitions"] = definitions.into();
    }
    root
}

/// Writes a rule. `takes_nulls`: null takes away what a lower layer says.
fn rule(of: &Rule, takes_nulls: bool) -> Value {
    let mut made = Map::new();
    let mut say = |key: &str, value: Value| drop(made.insert(key.to_owned(), value));
    if let Some(text) = of.description.clone().or_else(|| of.form.clone()) {
        say("description", text.into());
    }
    if let Some(name) = of.reference() {
        // Beside a reference nothing else counts.
        let path = name.replace('~', "~0").replace('/', "~1");
        say("allOf", json!([{"$ref": format!("#/definitions/{path}")}]));
        return made.into();
    }
    match of.types.as_slice() {
        [] => {}
        [one] => say("type", one.as_str().into()),
        more => say("type", more.into()),
    }
    if !of.values.is_empty() {
        say("enum", of.values.clone().into());
    }
    if !of.any_of.is_empty() {
        say("anyOf", of.any_of.iter().map(|it| rule(it, takes_nulls)).collect());
    }
    if !of.one_of.is_empty() {
        say("oneOf", of.one_of.iter().map(|name| json!({"required": [name]})).collect());
    }
    if let Some(pattern) = &of.pattern {
        say("pattern", pattern.as_str().into());
    }
    if let Some(items) = &of.items {
        say("items", rule(items, takes_nulls));
    }
    made.extend(bounds(of));
    made.extend(fields(of, takes_nulls));
    made.into()
}

fn bounds(of: &Rule) -> impl Iterator<Item = (String, Value)> {
    let numbers = [
        ("minimum", of.range.min.or(of.format.min).map(whole)),
        ("maximum", of.range.max.or(of.format.max).map(whole)),
        ("minLength", of.length.min.map(Value::from)),
        ("maxLength", of.length.max.map(Value::from)),
        ("minItems", of.count.min.map(Value::from)),
        ("maxItems", of.count.max.map(Value::from)),
    ];
    numbers.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)))
}

/// Writes a bound without a fraction as an integer.
fn whole(bound: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "a bound that has no fraction is far from the limits")]
    if bound.fract() == 0.0 && bound.abs() < 1e15 { (bound as i64).into() } else { bound.into() }
}

fn fields(of: &Rule, takes_nulls: bool) -> Map<String, Value> {
    let mut made = Map::new();
    if of.types.iter().any(|ty| ty != "object") || !of.any_of.is_empty() {
        return made;
    }
    let property = |(name, below): (&String, &Rule)| {
        let below = rule(below, takes_nulls);
        (name.clone(), if of.required.contains(name) { below } else { or_null(below) })
    };
    if !of.properties.is_empty() {
        made.insert("properties".to_owned(), of.properties.iter().map(property).collect());
    }
    if !of.required.is_empty() {
        made.insert("required".to_owned(), of.required.clone().into());
    }
    match &of.additional {
        Additional::Free => {}
        Additional::Forbidden => drop(made.insert("additionalProperties".to_owned(), false.into())),
        Additional::Obeying(below) => {
            let below = rule(below, takes_nulls);
            let below = if takes_nulls { or_null(below) } else { below };
            made.insert("additionalProperties".to_owned(), below);
        }
    }
    made
}
