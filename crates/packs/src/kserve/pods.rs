//! Small changes to the specs of pods.

use serde_json::{Value, json};

use super::types::Texts;

/// Returns a container by its name.
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

/// Adds arguments at the end.
pub(super) fn add_args(container: &mut Value, args: impl IntoIterator<Item = String>) {
    list(container, "args").extend(args.into_iter().map(Value::from));
}

/// Returns the texts of `command` or `args`.
pub(super) fn words<'a>(container: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    container[field].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Adds variables that are not there yet; those that are win.
pub(super) fn add_env(container: &mut Value, variables: impl IntoIterator<Item = Value>) {
    let env = list(container, "env");
    for variable in variables {
        if !env.iter().any(|other| other["name"] == variable["name"]) {
            env.push(variable);
        }
    }
}

/// Adds a volume, unless there is one of its name.
pub(super) fn add_volume(pod: &mut Value, volume: Value) {
    let volumes = list(pod, "volumes");
    if !volumes.iter().any(|other| other["name"] == volume["name"]) {
        volumes.push(volume);
    }
}

/// Adds a mount, unless something is mounted there.
pub(super) fn add_mount(container: &mut Value, mount: Value) {
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
