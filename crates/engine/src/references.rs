//! The objects of its namespace that a pod names: what it mounts, what its variables are from, and its account.
//!
//! Fields are those of `core/v1` in Kubernetes 1.35. Claims for devices are none of them: their controller makes and
//! deletes what they name.

use serde_json::Value;

/// The lists of containers in a pod.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// The fields of a volume by which it names something, each with the kind.
const OF_VOLUMES: [(&str, &[&str]); 12] = [
    ("ConfigMap", &["configMap", "name"]),
    ("PersistentVolumeClaim", &["persistentVolumeClaim", "claimName"]),
    ("Secret", &["secret", "secretName"]),
    ("Secret", &["csi", "nodePublishSecretRef", "name"]),
    ("Secret", &["azureFile", "secretName"]),
    ("Secret", &["cephfs", "secretRef", "name"]),
    ("Secret", &["cinder", "secretRef", "name"]),
    ("Secret", &["flexVolume", "secretRef", "name"]),
    ("Secret", &["iscsi", "secretRef", "name"]),
    ("Secret", &["rbd", "secretRef", "name"]),
    ("Secret", &["scaleIO", "secretRef", "name"]),
    ("Secret", &["storageos", "secretRef", "name"]),
];

/// The same of a part of a projected volume.
const OF_PARTS: [(&str, &[&str]); 2] = [("ConfigMap", &["configMap", "name"]), ("Secret", &["secret", "name"])];

/// The same of a variable.
const OF_VARIABLES: [(&str, &[&str]); 2] =
    [("ConfigMap", &["valueFrom", "configMapKeyRef", "name"]), ("Secret", &["valueFrom", "secretKeyRef", "name"])];

/// The same of many variables at once.
const OF_MANY_VARIABLES: [(&str, &[&str]); 2] =
    [("ConfigMap", &["configMapRef", "name"]), ("Secret", &["secretRef", "name"])];

/// A reference of a pod to an object of the group `core` in its namespace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reference<'a> {
    /// The kind of the object.
    pub(crate) kind: &'static str,
    /// The fields by which it is named, of which the last has the name.
    pub(crate) fields: &'static [&'static str],
    /// The name.
    pub(crate) name: &'a str,
    /// Whether the pod starts without it.
    pub(crate) is_optional: bool,
}

/// Returns the references of a pod, by its `spec`.
pub(crate) fn of_pod(spec: &Value) -> Vec<Reference<'_>> {
    let mut found: Vec<Reference<'_>> = Vec::new();
    let mut add = |value, fields: &[(&'static str, &'static [&'static str])]| {
        found.extend(fields.iter().filter_map(|&(kind, fields)| reference(value, kind, fields)));
    };
    add(spec, &[("ServiceAccount", &["serviceAccountName"])]);
    for secret in items(&spec["imagePullSecrets"]) {
        add(secret, &[("Secret", &["name"])]);
    }
    for volume in items(&spec["volumes"]) {
        add(volume, &OF_VOLUMES);
        for part in items(&volume["projected"]["sources"]) {
            add(part, &OF_PARTS);
        }
    }
    for container in CONTAINERS.iter().flat_map(|list| items(&spec[*list])) {
        for variable in items(&container["env"]) {
            add(variable, &OF_VARIABLES);
        }
        for variables in items(&container["envFrom"]) {
            add(variables, &OF_MANY_VARIABLES);
        }
    }
    found
}

fn reference<'a>(value: &'a Value, kind: &'static str, fields: &'static [&'static str]) -> Option<Reference<'a>> {
    let (last, before) = fields.split_last()?;
    let holder = before.iter().fold(value, |value, field| &value[*field]);
    let name = holder[*last].as_str().filter(|name| !name.is_empty())?;
    Some(Reference { kind, fields, name, is_optional: holder["optional"] == true })
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_way_to_name_something_is_seen() {
        let volume = |(kind, fields): &(&str, &[&str]), index: usize| {
            let inner = |value, field: &&str| json!({*field: value});
            let mut volume = fields.iter().rev().fold(json!(format!("{kind}-{index}")), inner);
            volume["name"] = json!("v");
            volume
        };
        let volumes: Vec<Value> = OF_VOLUMES.iter().enumerate().map(|(index, of)| volume(of, index)).collect();
        let variables = |suffix: &str| {
            json!({
                "name": "c",
                "env": [
                    {"name": "A", "valueFrom": {"secretKeyRef": {"name": format!("env-{suffix}"), "key": "k"}}},
                    {"name": "B", "valueFrom": {"configMapKeyRef": {"name": format!("env-{suffix}"), "key": "k"}}},
                    {"name": "C", "value": "no reference"},
                ],
                "envFrom": [
                    {"secretRef": {"name": format!("from-{suffix}"), "optional": true}},
                    {"configMapRef": {"name": format!("from-{suffix}")}},
                ],
            })
        };
        let spec = json!({
            "serviceAccountName": "account",
            "imagePullSecrets": [{"name": "pull"}, {}],
            "volumes": volumes.into_iter().chain([json!({"name": "p", "projected": {"sources": [
                {"secret": {"name": "part"}}, {"configMap": {"name": "part"}}, {"serviceAccountToken": {"path": "t"}},
            ]}}), json!({"name": "e", "emptyDir": {}})]).collect::<Vec<_>>(),
            "initContainers": [variables("init")],
            "containers": [variables("main")],
            "ephemeralContainers": [variables("debug")],
        });
        let found = of_pod(&spec);
        let names: Vec<String> = found.iter().map(|it| format!("{} {}", it.kind, it.name)).collect();
        let of_volumes = OF_VOLUMES.iter().enumerate().map(|(index, (kind, _))| format!("{kind} {kind}-{index}"));
        let of_containers = ["init", "main", "debug"].into_iter().flat_map(|it| {
            ["ConfigMap env", "Secret env", "ConfigMap from", "Secret from"].map(|kind| format!("{kind}-{it}"))
        });
        let mut expected: Vec<String> = ["ServiceAccount account", "Secret pull", "Secret part", "ConfigMap part"]
            .map(str::to_owned)
            .into_iter()
            .chain(of_volumes)
            .chain(of_containers)
            .collect();
        let mut names = names;
        names.sort();
        expected.sort();
        assert_eq!(names, expected);
        let optional: Vec<&str> = found.iter().filter(|it| it.is_optional).map(|it| it.name).collect();
        assert_eq!(optional, ["from-init", "from-main", "from-debug"]);
    }
}
