//! Small changes to the specs of pods.

use serde_json::{Value, json};

use super::types::Texts;
use crate::json::items;

/// The container that a model is for.
pub(super) const MAIN: &str = "main";

pub(super) fn container<'a>(pod: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    list(pod, "containers").iter_mut().find(|container| container["name"] == name)
}

/// Returns a list of a mapping, which is made if it is not there.
pub(super) fn list<'a>(value: &'a mut Value, field: &str) -> &'a mut Vec<Value> {
    let list = &mut value[field];
    if !list.is_array() {
        *list = json!([]);
    }
    match list {
        Value::Array(items) => items,
        _ => unreachable!("it has just become a list"),
    }
}

/// Returns the items of a list of a mapping, if it is there.
pub(super) fn list_items<'a>(value: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> + use<'a> {
    value.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Returns all containers, also those that run before the others.
pub(super) fn containers(pod: &mut Value) -> impl Iterator<Item = &mut Value> {
    let fields = pod.as_object_mut().into_iter().flatten();
    let lists = fields.filter(|(field, _)| matches!(field.as_str(), "containers" | "initContainers"));
    lists.filter_map(|(_, list)| list.as_array_mut()).flatten()
}

/// Adds arguments at the end.
pub(super) fn add_args(container: &mut Value, args: impl IntoIterator<Item = impl Into<Value>>) {
    list(container, "args").extend(args.into_iter().map(Into::into));
}

/// Returns the texts of `command` or `args`.
pub(super) fn words<'a>(container: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    items(&container[field]).filter_map(Value::as_str)
}

/// Adds an item to a list, unless there is one of its name.
pub(super) fn add_named(value: &mut Value, field: &str, item: Value) {
    let items = list(value, field);
    if !items.iter().any(|other| other["name"] == item["name"]) {
        items.push(item);
    }
}

/// Sets a variable, in the place of one of its name.
pub(super) fn set_env(container: &mut Value, name: &str, value: &str) {
    let variables = list(container, "env");
    let variable = json!({"name": name, "value": value});
    match variables.iter_mut().find(|other| other["name"] == name) {
        Some(other) => *other = variable,
        None => variables.push(variable),
    }
}

/// Adds variables that are not there yet; those that are win.
pub(super) fn add_env(container: &mut Value, variables: impl IntoIterator<Item = Value>) {
    variables.into_iter().for_each(|variable| add_named(container, "env", variable));
}

/// Adds a mount to the main container, unless something is mounted there.
pub(super) fn add_mount(pod: &mut Value, mount: Value) {
    if let Some(main) = container(pod, MAIN) {
        mount_into(main, mount);
    }
}

/// Adds a mount to a container, unless something is mounted there.
pub(super) fn mount_into(container: &mut Value, mount: Value) {
    let mounts = list(container, "volumeMounts");
    if !mounts.iter().any(|other| other["mountPath"] == mount["mountPath"]) {
        mounts.push(mount);
    }
}

/// Returns the entries of a map whose keys begin with one of these.
pub(super) fn prefixed(mut from: Texts, prefixes: &[&str]) -> Texts {
    from.retain(|key, _| prefixes.iter().any(|prefix| key.starts_with(prefix)));
    from
}
