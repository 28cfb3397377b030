//! References of pods: the objects without which a pod does not start, or does something else than it did: what it mounts,
//! what its variables are from, its account and its classes.
//!
//! A template of a pod has one schema wherever it is written, so that what is read here is the same for every workload
//! and for what packs say has templates. Fields are those of `core/v1` in Kubernetes 1.35. Claims for devices are none of
//! them: their controller makes and deletes what they name.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::kinds;
use crate::object::{Gvk, ObjectId, at, group_kind};

/// The account that each namespace has.
const DEFAULT: &str = "default";

/// A kind of what is named, and the fields by which it is, of which the last has the name.
type Field = (&'static str, &'static [&'static str]);

/// The lists of containers in a pod.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// The fields by which a pod as a whole names something. An API server fills in the one account from the other, and a
/// template may have either.
const OF_PODS: [Field; 4] = [
    ("ServiceAccount", &["serviceAccountName"]),
    ("ServiceAccount", &["serviceAccount"]),
    ("PriorityClass", &["priorityClassName"]),
    ("RuntimeClass", &["runtimeClassName"]),
];

/// The same of an item in a list of Secrets.
const OF_SECRETS: [Field; 1] = [("Secret", &["name"])];

/// The fields of a volume by which it names something, each with the kind.
const OF_VOLUMES: [Field; 12] = [
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
const OF_PARTS: [Field; 2] = [("ConfigMap", &["configMap", "name"]), ("Secret", &["secret", "name"])];

/// The same of a variable.
const OF_VARIABLES: [Field; 2] =
    [("ConfigMap", &["valueFrom", "configMapKeyRef", "name"]), ("Secret", &["valueFrom", "secretKeyRef", "name"])];

/// The same of many variables at once.
const OF_MANY_VARIABLES: [Field; 2] = [("ConfigMap", &["configMapRef", "name"]), ("Secret", &["secretRef", "name"])];

/// An object that a pod names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference<'a> {
    /// Its kind.
    pub kind: &'static str,
    /// Its name.
    pub name: &'a str,
    /// The fields by which it is written, from the item of a list that has them.
    pub fields: &'static [&'static str],
    /// Whether the pod starts without it.
    pub is_optional: bool,
}

impl Reference<'_> {
    /// Returns the object, for a pod in a namespace.
    pub fn id(&self, namespace: &str) -> ObjectId {
        let (group, is_global) = match self.kind {
            "PriorityClass" => ("scheduling.k8s.io", true),
            "RuntimeClass" => ("node.k8s.io", true),
            _ => ("", false),
        };
        ObjectId::new(group, self.kind, if is_global { "" } else { namespace }, self.name)
    }

    /// Tells whether every cluster has it.
    pub fn is_everywhere(&self) -> bool {
        match self.kind {
            "ServiceAccount" => self.name == DEFAULT,
            "PriorityClass" => self.name.starts_with("system-"),
            _ => false,
        }
    }
}

/// Tells whether pods may refer to objects of a kind that may be deleted while they run.
pub fn is_referred_to(id: &ObjectId) -> bool {
    id.group.is_empty() && ["ConfigMap", "PersistentVolumeClaim", "Secret", "ServiceAccount"].contains(&&*id.kind)
}

/// Returns the kind and version by which an object that a pod names is asked for.
pub fn asked_as(id: &ObjectId) -> Gvk {
    let version = if id.group.is_empty() { "v1".to_owned() } else { format!("{}/v1", id.group) };
    Gvk::new(&version, &id.kind)
}

/// Returns the pod templates of a workload. A Pod is its own.
pub fn templates<'a>(body: &'a Value, kinds: &kinds::Table) -> Vec<&'a Value> {
    let (group, kind) = group_kind(body);
    if (group, kind) == ("", "Pod") {
        return vec![body];
    }
    let all = kinds.row(group, kind).templates.iter().flat_map(|path| at(body, path));
    all.filter(|template| template["spec"]["containers"].is_array()).collect()
}

/// Returns the images of all containers of a workload, those that run first and those that stay.
pub fn images<'a>(body: &'a Value, kinds: &kinds::Table) -> BTreeSet<&'a str> {
    let lists = |template: &'a Value| CONTAINERS.map(|field| template["spec"][field].as_array());
    let containers = templates(body, kinds).into_iter().flat_map(lists).flatten().flatten();
    containers.filter_map(|container| container["image"].as_str()).collect()
}

/// Returns all that an object refers to for pods: for its own, or for those that have it as their account.
pub fn of<'a>(body: &'a Value, kinds: &kinds::Table) -> Vec<Reference<'a>> {
    if group_kind(body) == ("", "ServiceAccount") { of_account(body) } else { of_pods(body, kinds) }
}

/// Returns the references of the pods of an object.
pub fn of_pods<'a>(body: &'a Value, kinds: &kinds::Table) -> Vec<Reference<'a>> {
    templates(body, kinds).into_iter().flat_map(|template| of_pod(&template["spec"])).collect()
}

/// A pod gets what its account has for the pulling of images. Of the other Secrets of an account operators take
/// credentials, such as those for models.
fn of_account(body: &Value) -> Vec<Reference<'_>> {
    let mut found = Vec::new();
    for secret in items(&body["imagePullSecrets"]).chain(items(&body["secrets"])) {
        add(&mut found, &OF_SECRETS, secret);
    }
    found
}

/// Returns the references of a pod, by its `spec`.
pub fn of_pod(spec: &Value) -> Vec<Reference<'_>> {
    let mut found = Vec::new();
    add(&mut found, &OF_PODS, spec);
    for secret in items(&spec["imagePullSecrets"]) {
        add(&mut found, &OF_SECRETS, secret);
    }
    for volume in items(&spec["volumes"]) {
        add(&mut found, &OF_VOLUMES, volume);
        for part in items(&volume["projected"]["sources"]) {
            add(&mut found, &OF_PARTS, part);
        }
    }
    for container in CONTAINERS.iter().flat_map(|list| items(&spec[*list])) {
        for variable in items(&container["env"]) {
            add(&mut found, &OF_VARIABLES, variable);
        }
        for variables in items(&container["envFrom"]) {
            add(&mut found, &OF_MANY_VARIABLES, variables);
        }
    }
    found
}

/// Adds the references that are there. Whether one is optional stands beside the name.
fn add<'a>(found: &mut Vec<Reference<'a>>, fields: &[Field], value: &'a Value) {
    for &(kind, fields) in fields {
        let Some((last, before)) = fields.split_last() else { continue };
        let holder = before.iter().fold(value, |value, field| &value[*field]);
        if let Some(name) = holder[*last].as_str().filter(|name| !name.is_empty()) {
            found.push(Reference { kind, name, fields, is_optional: holder["optional"] == true });
        }
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    /// All ways in which a container can refer, each to an object of its own.
    fn container(name: &str) -> Value {
        json!({"name": name, "env": [
            {"name": "A", "valueFrom": {"secretKeyRef": {"name": format!("{name}-env"), "key": "k"}}},
            {"name": "B", "valueFrom": {"configMapKeyRef": {"name": format!("{name}-env"), "key": "k"}}},
        ], "envFrom": [
            {"secretRef": {"name": format!("{name}-from")}}, {"configMapRef": {"name": format!("{name}-from")}},
        ]})
    }

    fn shown(body: &Value) -> BTreeSet<String> {
        of(body, &kinds::Table::builtin()).iter().map(|it| it.id("a").to_string()).collect()
    }

    #[test]
    fn each_way_to_refer_is_known_wherever_a_kind_has_its_pods() {
        let at = |fields: &[&str]| fields.iter().rev().fold(json!("x"), |value, field| json!({*field: value}));
        let says = |kind: &str| BTreeSet::from([format!("{kind} a/x")]);
        let mut ways: Vec<(Value, BTreeSet<String>)> = vec![
            (json!({"serviceAccountName": "x"}), says("ServiceAccount")),
            (json!({"serviceAccount": "x"}), says("ServiceAccount")),
            (json!({"priorityClassName": "x"}), BTreeSet::from(["PriorityClass x".to_owned()])),
            (json!({"runtimeClassName": "x"}), BTreeSet::from(["RuntimeClass x".to_owned()])),
            (json!({"imagePullSecrets": [{"name": "x"}, {}]}), says("Secret")),
        ];
        ways.extend(OF_VOLUMES.map(|(kind, fields)| (json!({"volumes": [at(fields)]}), says(kind))));
        ways.extend(OF_PARTS.map(|(kind, fields)| {
            let sources = [json!({"serviceAccountToken": {"path": "t"}}), at(fields)];
            (json!({"volumes": [{"emptyDir": {}}, {"projected": {"sources": sources}}]}), says(kind))
        }));
        for list in CONTAINERS {
            let all = ["ConfigMap a/c-env", "ConfigMap a/c-from", "Secret a/c-env", "Secret a/c-from"];
            ways.push((json!({list: [container("c")]}), all.map(str::to_owned).into()));
        }
        for (spec, expected) in ways {
            let mut spec = spec;
            if spec["containers"].is_null() {
                spec["containers"] = json!([]);
            }
            let template = json!({"spec": spec});
            for (version, kind) in [
                ("apps/v1", "Deployment"),
                ("apps/v1", "StatefulSet"),
                ("apps/v1", "DaemonSet"),
                ("apps/v1", "ReplicaSet"),
                ("batch/v1", "Job"),
                ("example.com/v1", "ModelServer"),
            ] {
                let body = json!({"apiVersion": version, "kind": kind, "spec": {"template": template}});
                assert_eq!(shown(&body), expected, "{body}");
            }
            let jobs = json!({"jobTemplate": {"spec": {"template": template}}});
            let body = json!({"apiVersion": "batch/v1", "kind": "CronJob", "spec": jobs});
            assert_eq!(shown(&body), expected, "{body}");
            assert_eq!(shown(&json!({"apiVersion": "v1", "kind": "Pod", "spec": spec})), expected, "{spec}");
            let body = json!({"apiVersion": "v1", "kind": "PodTemplate", "template": template});
            assert_eq!(shown(&body), expected, "{body}");
        }
    }

    #[test]
    fn what_is_optional_says_so_beside_its_name() {
        let volume = |optional: Value| json!({"volumes": [{"secret": {"secretName": "x", "optional": optional}}]});
        assert!(of_pod(&volume(json!(true)))[0].is_optional);
        assert!(!of_pod(&volume(json!(false)))[0].is_optional);
        assert!(!of_pod(&volume(json!("true")))[0].is_optional);
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "imagePullSecrets": [{"name": "x"}]});
        assert_eq!(shown(&account), BTreeSet::from(["Secret a/x".to_owned()]));
    }

    #[test]
    fn a_broken_pod_refers_to_nothing() {
        for spec in [json!(null), json!([]), json!({"volumes": {"secret": 1}, "containers": [1, {"env": "x"}]})] {
            assert_eq!(of_pod(&spec), [], "{spec}");
        }
    }
}
