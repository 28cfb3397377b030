//! Strategic merge patches of custom resources: what their row in the table of kinds says of their lists.
//!
//! An API server has no such patches for custom resources, so there is nothing to agree with but the rules of its own
//! lists, which the definitions of these kinds repeat: of a list with a key, items merge, and those that are new stand at
//! the end. Templates of pods in them are patched as those of a Deployment.

use serde_json::{Map, Value, json};

use super::fault::{Fault, Mistake, Side};
use super::mapping::{self, DIRECTIVE};
use super::{PatchError, strategic};
use crate::kinds::row::Strategic;
use crate::object::Gvk;

/// Applies a patch by the rules of a kind.
pub(super) fn patch(object: &Value, change: &Value, rules: &Strategic) -> Result<Value, PatchError> {
    if !change.is_object() {
        return Err(Mistake::from(Fault::NoMapping).into());
    }
    Ok(merge(object.clone(), change, "", rules)?.unwrap_or_default())
}

/// Merges a value into what stands at a path; nothing is left where the patch deletes it.
fn merge(object: Value, change: &Value, path: &str, rules: &Strategic) -> Result<Option<Value>, Mistake> {
    let is_there = change.is_object();
    if is_there && rules.pod_templates.iter().any(|known| known == path) {
        return pods(&object, change, (&Gvk::new("apps/v1", "Deployment"), &["spec", "template"])).map(Some);
    }
    if is_there && rules.pods.iter().any(|known| known == path) {
        return pods(&object, change, (&Gvk::new("v1", "Pod"), &["spec"])).map(Some);
    }
    match (change, rules.keys.get(path)) {
        (Value::Object(fields), _) => fields_of(object, fields, path, rules),
        (Value::Array(items), Some(key)) => list(object, items, (path, key), rules).map(Some),
        (Value::Null, _) => Ok(None),
        (other, _) => Ok(Some(other.clone())),
    }
}

fn fields_of(
    object: Value,
    change: &Map<String, Value>,
    path: &str,
    rules: &Strategic,
) -> Result<Option<Value>, Mistake> {
    let mut fields = if let Value::Object(fields) = object { fields } else { Map::new() };
    match change.get(DIRECTIVE).map(Value::as_str) {
        None => {}
        Some(Some("replace")) => fields.clear(),
        Some(Some("delete")) => return Ok(None),
        Some(_) => return Err(Fault::Directive(change[DIRECTIVE].clone()).into()),
    }
    for (name, value) in change.iter().filter(|(name, _)| *name != DIRECTIVE) {
        if name.starts_with('$') {
            return Err(Mistake::from(Fault::NoDirective).below(name));
        }
        let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let before = fields.remove(name).unwrap_or_default();
        let after = merge(before, value, &below, rules).map_err(|mistake| mistake.below(name))?;
        fields.extend(after.map(|after| (name.clone(), after)));
    }
    Ok(Some(Value::Object(fields)))
}

/// Merges items by their key; an item with the directive `delete` goes.
fn list(object: Value, change: &[Value], (path, key): (&str, &str), rules: &Strategic) -> Result<Value, Mistake> {
    let mut items = if let Value::Array(items) = object { items } else { Vec::new() };
    let below = format!("{path}.*");
    for (index, item) in change.iter().enumerate() {
        let fault = |fault: Fault| Mistake::from(fault).in_item(index);
        let fields = item.as_object().ok_or_else(|| fault(Fault::NoMapping))?;
        let missing = || fault(Fault::NoKey { key: key.to_owned(), side: Side::Patch });
        let id = fields.get(key).ok_or_else(missing)?;
        let at = items.iter().position(|known| known.get(key) == Some(id));
        let before = at.map(|at| items[at].clone()).unwrap_or_default();
        let after = merge(before, item, &below, rules).map_err(|mistake| mistake.in_item(index))?;
        match (at, after) {
            (Some(at), Some(after)) => items[at] = after,
            (Some(at), None) => drop(items.remove(at)),
            (None, Some(after)) => items.push(after),
            (None, None) => {}
        }
    }
    Ok(Value::Array(items))
}

/// Patches a template or a spec of pods as Kubernetes does, in a kind of its own that holds it at a path.
fn pods(object: &Value, change: &Value, (gvk, path): (&Gvk, &[&str])) -> Result<Value, Mistake> {
    let whole = |value: &Value| path.iter().rfold(value.clone(), |value, field| json!({ *field: value }));
    let nothing = json!({});
    let object = if object.is_null() { &nothing } else { object };
    match strategic(&whole(object), &whole(change), gvk).map(mapping::finished) {
        Ok(mut merged) => Ok(path.iter().fold(&mut merged, |value, field| &mut value[*field]).take()),
        // Where it stands is on the way already.
        Err(PatchError::Fault { path: way, fault }) => {
            Err(way.into_iter().skip(path.len()).rev().fold(fault.into(), Mistake::at))
        }
        Err(_) => Err(Fault::NoMapping.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn rules() -> Strategic {
        Strategic {
            keys: BTreeMap::from([("spec.listeners".to_owned(), "name".to_owned())]),
            pod_templates: vec!["spec.leader".to_owned()],
            pods: vec!["spec.groups.*.pod".to_owned()],
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "literals read better without a borrow")]
    #[track_caller]
    fn check(object: Value, change: Value, expected: Value) {
        let (object, change) = (json!({ "spec": object }), json!({ "spec": change }));
        assert_eq!(patch(&object, &change, &rules()).expect("it fits"), json!({ "spec": expected }), "{change}");
    }

    #[test]
    fn items_of_a_list_with_a_key_merge() {
        let before = json!({"listeners": [{"name": "a", "port": 80, "tls": {"mode": "x"}}, {"name": "b", "port": 81}]});
        let change = json!({"listeners": [{"name": "c", "port": 82}, {"name": "a", "tls": {"mode": "y"}}, {"name": "b", "$patch": "delete"}]});
        let after = json!({"listeners": [{"name": "a", "port": 80, "tls": {"mode": "y"}}, {"name": "c", "port": 82}]});
        check(before, change, after);
    }

    #[test]
    fn mappings_merge_and_other_lists_are_replaced() {
        check(
            json!({"a": {"b": 1, "c": 2}, "d": [1]}),
            json!({"a": {"b": null}, "d": [2]}),
            json!({"a": {"c": 2}, "d": [2]}),
        );
        check(json!({"a": {"b": 1}}), json!({"a": {"$patch": "replace", "c": 2}}), json!({"a": {"c": 2}}));
        check(json!({"a": {"b": 1}, "c": 1}), json!({"a": {"$patch": "delete"}}), json!({"c": 1}));
    }

    #[test]
    fn pods_are_patched_as_everywhere() {
        let pod = |image: &str| json!({"containers": [{"name": "main", "image": image, "env": [{"name": "A", "value": "1"}]}]});
        let change = json!({"containers": [{"name": "main", "image": "new"}]});
        check(
            json!({"leader": {"spec": pod("old")}}),
            json!({"leader": {"spec": change}}),
            json!({"leader": {"spec": pod("new")}}),
        );
    }

    #[test]
    fn a_fault_is_said_with_its_path() {
        let before = json!({"spec": {"leader": {"spec": {"containers": [{"name": "main"}]}}}});
        let fails = |change: Value| patch(&before, &change, &rules()).expect_err("it does not fit").to_string();
        let found = fails(json!({"spec": {"listeners": [{"port": 80}]}}));
        assert_eq!(found, "spec.listeners[0] has no \"name\", by which items of this list are told apart");
        let found = fails(json!({"spec": {"leader": {"spec": {"containers": [{"image": "x"}]}}}}));
        assert!(found.starts_with("spec.leader.spec.containers[0] has no \"name\""), "{found}");
        let found = fails(json!({"spec": {"$retainKeys": ["a"]}}));
        assert_eq!(found, "spec.$retainKeys is a directive that custom resources do not have");
    }
}
