use serde_json::{Value, json};

use super::*;

/// Converts a structural schema, and says which values obey it and which do not.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "literals read better without a borrow")]
fn check(schema: Value, taken: &[Value], refused: &[Value]) {
    let converted = structural::converted(&schema);
    let options = jsonschema::options().with_draft(jsonschema::Draft::Draft7);
    let validator = options.build(&converted).expect("it is a schema");
    for value in taken {
        assert!(validator.is_valid(value), "{value} is refused by {converted}");
    }
    for value in refused {
        assert!(!validator.is_valid(value), "{value} is taken by {converted}");
    }
}

#[test]
fn objects_have_the_fields_that_are_named_and_no_others() {
    let named = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    check(named, &[json!({}), json!({"a": "x"}), json!({"a": null})], &[json!({"b": 1}), json!({"a": 1}), json!([])]);
    check(json!({"type": "object"}), &[json!({})], &[json!({"a": 1})]);
    let open = json!({"type": "object", "properties": {}, "x-kubernetes-preserve-unknown-fields": true});
    check(open, &[json!({"a": 1})], &[json!(1)]);
    let map = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    check(map, &[json!({"a": 1})], &[json!({"a": "x"})]);
    check(json!({"x-kubernetes-preserve-unknown-fields": true}), &[json!({"a": 1}), json!(1)], &[]);
}

#[test]
fn numbers_may_be_texts_where_kubernetes_says_so() {
    let both = json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]});
    check(both.clone(), &[json!(1), json!("1Gi")], &[json!(1.5), json!(null), json!({})]);
    check(json!({"type": "object", "properties": {"a": both}}), &[json!({"a": null}), json!({"a": "x"})], &[]);
    let bounded = json!({"x-kubernetes-int-or-string": true, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}],
        "pattern": "^[0-9]+%$"});
    check(bounded, &[json!(1), json!("5%")], &[json!("x")]);
}

#[test]
fn what_need_not_be_there_may_be_null() {
    let schema = json!({"type": "object", "required": ["a", "c"], "properties": {
        "a": {"type": "string"}, "b": {"type": "string", "enum": ["x"]}, "c": {"type": "integer", "default": 1},
        "d": {"type": "object", "properties": {"e": {"type": "string"}}, "oneOf": [{"required": ["e"]}]},
    }});
    let taken = [json!({"a": "x"}), json!({"a": "x", "b": null, "c": null, "d": null})];
    check(schema, &taken, &[json!({"a": null}), json!({}), json!({"a": "x", "d": {}}), json!({"a": "x", "b": "y"})]);
    let items = json!({"type": "array", "items": {"type": "string"}});
    check(items, &[json!(["a"])], &[json!([null])]);
    check(json!({"type": "string", "nullable": true}), &[json!(null)], &[json!(1)]);
}

#[test]
fn alternatives_see_defaults() {
    let schema = json!({"type": "object", "required": ["v"], "properties":
    {"t": {"type": "string", "default": "IP"}, "v": {"type": "string"}},
    "oneOf": [
        {"properties": {"t": {"enum": ["IP"]}, "v": {"pattern": "^[0-9.]+$"}}},
        {"properties": {"t": {"not": {"enum": ["IP"]}}}},
    ]});
    let taken = [json!({"v": "1.1"}), json!({"t": "IP", "v": "1"}), json!({"t": "x", "v": "y"})];
    check(schema, &taken, &[json!({"v": "y"}), json!({"t": "IP", "v": "y"})]);
}

#[test]
fn bounds_are_those_of_the_definition() {
    let above = json!({"type": "number", "minimum": 1, "exclusiveMinimum": true});
    check(above, &[json!(1.5)], &[json!(1)]);
    let up_to = json!({"type": "number", "maximum": 1, "exclusiveMaximum": false});
    check(up_to, &[json!(1)], &[json!(2)]);
    check(json!({"type": "integer", "format": "int32"}), &[json!(1)], &[json!(3_000_000_000_u64)]);
}

#[test]
fn resources_in_resources_say_what_they_are() {
    let schema = json!({"type": "object", "x-kubernetes-embedded-resource": true,
        "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}});
    let pod = |metadata: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"a": "b"}});
    check(
        schema,
        &[pod(json!({"name": "a", "labels": {"b": "c"}}))],
        &[json!({"kind": "Pod"}), pod(json!({"nam": "a"}))],
    );
}

#[test]
fn newer_versions_come_first() {
    let mut versions = ["v1alpha1", "v2", "v1", "v1beta2", "v1beta10", "other", "v10"];
    versions.sort_by_key(|version| Reverse(age(version)));
    assert_eq!(versions, ["v10", "v2", "v1", "v1beta10", "v1beta2", "v1alpha1", "other"]);
}
