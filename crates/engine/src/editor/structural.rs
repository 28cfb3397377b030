//! The structural schema of a definition (CRD) in the words of JSON Schema.
//!
//! What is Kubernetes' own is said in full: numbers that may be texts, what may be null, and which objects have no
//! fields but those that are named. A field that need not be there may be null: an API server takes that for absent.

use std::sync::LazyLock;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Keywords that mean the same in both.
const KEPT: [&str; 20] = [
    "title",
    "description",
    "type",
    "default",
    "enum",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "required",
];

/// Alternatives.
const LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Returns a structural schema as a JSON Schema.
pub(super) fn converted(schema: &Value) -> Value {
    let Some(fields) = schema.as_object() else { return schema.clone() };
    let is = |key: &str| fields.get(key) == Some(&Value::Bool(true));
    let mut made = kept(fields);
    if is("x-kubernetes-int-or-string") {
        made.insert("type".to_owned(), json!(["integer", "string"]));
    }
    let mut properties = properties(fields);
    if is("x-kubernetes-embedded-resource") {
        let text = || json!({"type": "string"});
        properties.extend([("apiVersion", text()), ("kind", text()), ("metadata", metadata())].map(named));
        let required = fields.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        let also = ["apiVersion", "kind"].map(Value::from).into_iter().filter(|it| !required.contains(it));
        made.insert("required".to_owned(), required.iter().cloned().chain(also).collect());
    }
    let is_object = made.get("type").is_some_and(|ty| ty == "object");
    match fields.get("additionalProperties") {
        Some(below) => drop(made.insert("additionalProperties".to_owned(), converted(below))),
        // An object that names no fields has none.
        None if is("x-kubernetes-preserve-unknown-fields") || !is_object && properties.is_empty() => {}
        None => drop(made.insert("additionalProperties".to_owned(), false.into())),
    }
    if !properties.is_empty() {
        made.insert("properties".to_owned(), properties.into());
    }
    if let Some(items) = fields.get("items") {
        made.insert("items".to_owned(), converted(items));
    }
    made.extend(alternatives(fields, schema));
    let made = Value::Object(made);
    if is("nullable") { or_null(made) } else { made }
}

/// Returns the schema of `metadata`.
pub(super) fn metadata() -> Value {
    static METADATA: LazyLock<Value> = LazyLock::new(|| {
        let settings = SchemaSettings::draft07().for_deserialize().with(|it| it.inline_subschemas = true);
        let mut schema = converted(settings.into_generator().into_root_schema_for::<ObjectMeta>().as_value());
        if let Some(fields) = schema.as_object_mut() {
            fields.remove("title");
        }
        schema
    });
    METADATA.clone()
}

/// Allows for null beside what a schema allows for.
pub(super) fn or_null(mut schema: Value) -> Value {
    let is_complex = ["allOf", "anyOf", "oneOf", "not", "$ref"].iter().any(|key| schema.get(key).is_some());
    let takes_null = |types: &Value| types.as_array().is_some_and(|types| types.contains(&json!("null")));
    match schema.get("type") {
        _ if is_complex => json!({"anyOf": [schema, {"type": "null"}]}),
        None => schema,
        Some(types) if takes_null(types) => schema,
        Some(types) => {
            let types = types.as_array().cloned().unwrap_or_else(|| vec![types.clone()]);
            schema["type"] = types.into_iter().chain([json!("null")]).collect();
            if let Some(Value::Array(values)) = schema.get_mut("enum") {
                values.push(Value::Null);
            }
            schema
        }
    }
}

fn named((name, schema): (&str, Value)) -> (String, Value) {
    (name.to_owned(), schema)
}

/// Returns the keywords that mean the same, but for what is required and has a default: that is filled in.
fn kept(fields: &Map<String, Value>) -> Map<String, Value> {
    let mut made: Map<String, Value> = fields
        .iter()
        .filter(|(key, _)| KEPT.contains(&key.as_str()))
        .map(|(key, it)| (key.clone(), it.clone()))
        .collect();
    if let Some(Value::Array(required)) = made.get_mut("required") {
        let has_default =
            |name: &Value| fields["properties"][name.as_str().unwrap_or_default()].get("default").is_some();
        if fields.contains_key("properties") {
            required.retain(|name| !has_default(name));
        }
    }
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        // Up to draft 4 it is a flag of the bound.
        match made.get(exclusive) {
            Some(Value::Bool(true)) => drop(made.remove(bound).map(|bound| made.insert(exclusive.to_owned(), bound))),
            Some(Value::Bool(false)) => drop(made.remove(exclusive)),
            _ => {}
        }
    }
    if fields.get("format").is_some_and(|format| format == "int32") {
        made.entry("minimum").or_insert_with(|| i32::MIN.into());
        made.entry("maximum").or_insert_with(|| i32::MAX.into());
    }
    made
}

fn properties(fields: &Map<String, Value>) -> Map<String, Value> {
    let required = fields.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|it| it == name));
    let property = |(name, schema): (&String, &Value)| {
        let schema = converted(schema);
        let schema = if is_required(name) && schema.get("default").is_none() { schema } else { or_null(schema) };
        (name.clone(), schema)
    };
    fields.get("properties").and_then(Value::as_object).into_iter().flatten().map(property).collect()
}

/// Returns the alternatives of a schema, which say nothing of the names and types of fields.
fn alternatives(fields: &Map<String, Value>, around: &Value) -> Map<String, Value> {
    let is_type = |schema: &Value| schema.get("type").is_some();
    let says_types = |list: &Value| list.as_array().is_some_and(|list| list.iter().all(is_type));
    let mut made = Map::new();
    for key in LISTS {
        let Some(list) = fields.get(key).and_then(Value::as_array) else { continue };
        // That a number may be a text is said by the type.
        if says_types(&fields[key]) {
            continue;
        }
        let list = list.iter().filter(|it| !it.get("anyOf").is_some_and(says_types));
        let list: Vec<Value> = list.map(|it| condition(it, around)).collect();
        if !list.is_empty() {
            made.insert(key.to_owned(), list.into());
        }
    }
    made.extend(fields.get("not").map(|not| ("not".to_owned(), condition(not, around))));
    made
}

/// Returns one alternative, or a part of one, about what the schema around it describes: a field that is not there counts
/// as its default.
fn condition(schema: &Value, around: &Value) -> Value {
    let Some(fields) = schema.as_object() else { return schema.clone() };
    let default = |name: &str| around["properties"][name].get("default");
    let mut made = kept(fields);
    let required = fields.get("required").and_then(Value::as_array).into_iter().flatten();
    let mut required: Vec<Value> =
        required.filter(|name| default(name.as_str().unwrap_or_default()).is_none()).cloned().collect();
    if let Some(below) = fields.get("properties").and_then(Value::as_object) {
        let written = |(name, it): (&String, &Value)| (name.clone(), condition(it, &around["properties"][name]));
        let below: Map<String, Value> = below.iter().map(written).collect();
        let fails = |name: &str, it: &Value| default(name).is_some_and(|value| !jsonschema::is_valid(it, value));
        required.extend(below.iter().filter(|(name, it)| fails(name, it)).map(|(name, _)| name.as_str().into()));
        made.insert("properties".to_owned(), below.into());
    }
    made.remove("required");
    if !required.is_empty() {
        made.insert("required".to_owned(), required.into());
    }
    if let Some(items) = fields.get("items") {
        made.insert("items".to_owned(), condition(items, &around["items"]));
    }
    if let Some(below) = fields.get("additionalProperties") {
        made.insert("additionalProperties".to_owned(), condition(below, &around["additionalProperties"]));
    }
    made.extend(alternatives(fields, around));
    Value::Object(made)
}
