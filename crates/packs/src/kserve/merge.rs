//! The merge of one configuration over another: Kubernetes' strategic merge, on the spec of a service.
//!
//! Inside the specs of pods, lists merge by the keys that Kubernetes gives them, and `command` and `args` are taken
//! whole. Elsewhere mappings merge field by field, and lists are taken whole, those of rules of routes among them.
//! What says nothing (a null, or the zero of a field that is no pointer in Go) never takes anything away.

use gatewright_engine::diff::Path;
use gatewright_engine::object::Gvk;
use gatewright_engine::patch::{self, PatchError, without_nulls};
use serde_json::{Map, Value, json};

/// The paths at which a spec of a service holds specs of pods.
pub(super) const PODS: [&[&str]; 6] = [
    &["template"],
    &["worker"],
    &["prefill", "template"],
    &["prefill", "worker"],
    &["router", "scheduler", "template"],
    &["router", "scheduler", "tokenizer", "template"],
];

/// Fields that are taken whole although they are mappings.
const WHOLE: [&[&str]; 1] = [&["router", "scheduler", "config", "inline"]];

/// Two specs that cannot be merged.
#[derive(Debug)]
pub(super) struct Unmergeable {
    /// The place in the spec that goes over the other.
    pub(super) path: Vec<String>,
    /// The reason why they cannot be merged.
    pub(super) reason: String,
}

/// Returns a spec as KServe reads it: without nulls, and without what says nothing in the specs of pods.
pub(super) fn cleaned(spec: &Value) -> Value {
    let mut spec = without_nulls(spec.clone());
    for path in PODS {
        if let Some(pod) = at_mut(&mut spec, path) {
            *pod = patch::without_zeros(json!({ "spec": pod }), &pod_kind())["spec"].take();
        }
    }
    for workload in [&["parallelism"] as &[&str], &["prefill", "parallelism"]] {
        if let Some(Value::Object(fields)) = at_mut(&mut spec, workload) {
            fields.retain(|name, value| !(name == "expert" && *value == false));
        }
    }
    spec
}

fn pod_kind() -> Gvk {
    Gvk::new("v1", "Pod")
}

fn at_mut<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |value, field| value.get_mut(*field))
}

/// Merges one spec over another; both are [`cleaned`].
pub(super) fn over(base: Value, above: &Value) -> Result<Value, Unmergeable> {
    merge(base, above, &mut Vec::new())
}

/// Merges a container of a pod over another; one that cannot be merged goes over it as a whole.
pub(super) fn container(base: Value, above: &Value) -> Value {
    let pod = |container: &Value| json!({"spec": {"containers": [container]}});
    let merged = patch::strategic(&pod(&base), &pod(above), &pod_kind());
    merged.map_or(base, |mut object| object["spec"]["containers"][0].take())
}

fn merge<'a>(base: Value, above: &'a Value, path: &mut Vec<&'a str>) -> Result<Value, Unmergeable> {
    match (base, above) {
        (base @ Value::Object(_), Value::Object(_)) if PODS.contains(&path.as_slice()) => pods(&base, above, path),
        (Value::Object(fields), Value::Object(above)) if !WHOLE.contains(&path.as_slice()) => {
            mappings(fields, above, path)
        }
        (_, above) => Ok(above.clone()),
    }
}

fn mappings<'a>(
    mut fields: Map<String, Value>,
    above: &'a Map<String, Value>,
    path: &mut Vec<&'a str>,
) -> Result<Value, Unmergeable> {
    for (name, value) in above {
        let base = fields.remove(name).unwrap_or_default();
        path.push(name);
        fields.insert(name.clone(), merge(base, value, path)?);
        path.pop();
    }
    Ok(Value::Object(fields))
}

fn pods(base: &Value, above: &Value, path: &[&str]) -> Result<Value, Unmergeable> {
    let merged = patch::strategic(&json!({ "spec": base }), &json!({ "spec": above }), &pod_kind());
    merged.map(|mut object| object["spec"].take()).map_err(|error| {
        let reason = match &error {
            PatchError::Fault { path: inner, fault } => match inner.get(1..).unwrap_or_default() {
                [] => format!("it {fault}"),
                below => format!("{} {fault}", Path(below)),
            },
            _ => error.to_string(),
        };
        Unmergeable { path: path.iter().map(|&name| name.to_owned()).collect(), reason }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(base: &Value, above: &Value) -> Value {
        over(cleaned(base), &cleaned(above)).expect("they merge")
    }

    #[test]
    fn containers_and_variables_merge_by_name_and_commands_are_taken_whole() {
        let base = json!({"template": {"containers": [
            {"name": "main", "image": "a", "command": ["x", "y"], "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
        ]}});
        let above = json!({"template": {"containers": [
            {"name": "main", "command": ["z"], "args": [], "env": [{"name": "B", "value": "3"}, {"name": "C", "value": ""}]},
            {"name": "side", "image": "b"},
        ]}});
        let expected = json!({"template": {"containers": [
            {"name": "main", "image": "a", "command": ["z"],
             "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "3"}, {"name": "C"}]},
            {"name": "side", "image": "b"},
        ]}});
        assert_eq!(merged(&base, &above), expected);
    }

    #[test]
    fn what_says_nothing_takes_nothing_away() {
        let base = json!({"replicas": 2, "parallelism": {"expert": true, "data": 4}, "router": {"scheduler": {"replicas": 1}}});
        let above = json!({"replicas": null, "parallelism": {"expert": false}, "router": {"scheduler": {}}});
        assert_eq!(merged(&base, &above), base);
        assert_eq!(merged(&base, &json!({"replicas": 0}))["replicas"], 0);
    }

    #[test]
    fn rules_of_routes_and_configurations_of_schedulers_are_taken_whole() {
        let base = json!({"router": {"route": {"http": {"spec": {"rules": [{"name": "a"}], "parentRefs": [{"name": "g"}]}}},
                                     "scheduler": {"config": {"inline": {"plugins": [1], "x": 1}}}}});
        let above = json!({"router": {"route": {"http": {"spec": {"rules": [{"name": "b"}]}}},
                                      "scheduler": {"config": {"inline": {"plugins": [2]}}}}});
        let expected = json!({"router": {"route": {"http": {"spec": {"rules": [{"name": "b"}], "parentRefs": [{"name": "g"}]}}},
                                         "scheduler": {"config": {"inline": {"plugins": [2]}}}}});
        assert_eq!(merged(&base, &above), expected);
    }

    #[test]
    fn a_list_that_cannot_merge_says_where() {
        let base = json!({"template": {"containers": [{"name": "main"}]}});
        let above = json!({"template": {"containers": [{"image": "x"}]}});
        let error = over(cleaned(&base), &cleaned(&above)).expect_err("no name");
        assert_eq!(error.path, ["template"]);
        assert!(error.reason.contains("containers"), "{}", error.reason);
    }
}
