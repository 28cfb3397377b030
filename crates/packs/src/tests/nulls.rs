//! What null takes away of the parameters of a picker.

use gatewright_engine::pack::Packs;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{self, Options, Rendering, Unit};
use gatewright_engine::yaml;
use serde_json::{Value, json};

const DEFAULTS: &str = include_str!("../../../../templates/endpoint-picker/defaults.yaml");

/// Collects the path of every field of a mapping, those of mappings below it included.
fn paths(value: &Value, above: &str, found: &mut Vec<String>) {
    for (key, below) in value.as_object().into_iter().flatten() {
        let path = format!("{above}/{key}");
        paths(below, &path, found);
        found.push(path);
    }
}

/// Renders a picker whose parameters are these over some that switch everything on.
fn rendered(path: &str, value: &Value) -> Rendering {
    let mut spec = json!({
        "inferenceExtension": {
            "latencyPredictor": {"enabled": true},
            "tracing": {"enabled": true},
            "monitoring": {"prometheus": {"enabled": true}},
        },
        "inferencePool": {"modelServers": {"matchLabels": {"app": "a"}}},
        "experimentalHttpRoute": {"enabled": true},
    });
    let mut at = &mut spec;
    for key in path.split('/').skip(1) {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[key];
    }
    *at = value.clone();
    let document = json!({
        "apiVersion": "gatewright.dev/v1alpha1",
        "kind": "EndpointPickerParameters",
        "metadata": {"name": "a", "namespace": "b"},
        "spec": spec,
    });
    let packs = Packs::new(vec![crate::pack("endpoint-picker", &Value::Null).expect("it is sound")]);
    let tree = Tree::from_iter([("a.yaml", yaml::to_string(&document))]);
    unit::render(&tree, &packs.expect("they go together"), &Options::default())
}

#[test]
fn every_default_can_be_taken_away_or_says_why_not() {
    let defaults = yaml::parse_values(DEFAULTS).expect("the defaults are YAML");
    let mut found = Vec::new();
    paths(&defaults[0], "", &mut found);
    let mut wrong = Vec::new();
    for path in found {
        let rendering = rendered(&path, &Value::Null);
        let problems: Vec<String> = rendering.problems.iter().map(ToString::to_string).collect();
        let is_refused = problems.iter().any(|problem| problem.contains("a.yaml:") && problem.contains("null"));
        let objects: Vec<String> = rendering.units.iter().flat_map(Unit::all).map(|it| it.body().to_string()).collect();
        let is_right = is_refused || (problems.is_empty() && !objects.is_empty());
        if !is_right || objects.iter().any(|object| object.contains("null")) {
            wrong.push((path, problems));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn null_leaves_nothing_of_a_default() {
    let resources = |value: Value| {
        let rendering = rendered("/inferenceExtension/resources", &value);
        let deployment = rendering.units.iter().flat_map(Unit::all).find(|it| it.id().kind == "Deployment");
        let body = deployment.expect("there is a Deployment").body().clone();
        let containers = body["spec"]["template"]["spec"]["containers"].as_array().cloned().unwrap_or_default();
        containers.into_iter().find(|it| it["name"] == "epp").map(|it| it["resources"].clone()).unwrap_or_default()
    };
    assert_eq!(resources(Value::Null), Value::Null);
    let asked = json!({"cpu": "4", "memory": "8Gi"});
    assert_eq!(resources(json!({})), json!({"requests": asked, "limits": {"memory": "16Gi"}}));
    let without = resources(json!({"limits": null, "requests": {"cpu": 1}}));
    assert_eq!(without["requests"], json!({"cpu": 1, "memory": "8Gi"}));
    assert!(without["limits"].as_object().is_none_or(serde_json::Map::is_empty), "{without}");
}
