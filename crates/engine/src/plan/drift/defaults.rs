//! Values that an API server fills in where nobody says anything.
//!
//! The `OpenAPI` of a server names all of those of custom resources and few of the built-in kinds, where most are set by
//! code of the server (the API reference names them field by field). Those of the kinds that are rendered here stand in
//! `defaults.yaml`, and here those that depend on another place. What a server chooses for each object, such as an
//! address, is no default.

use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::model::Rule;
use crate::kinds::name::KindName;
use crate::object::Gvk;
use crate::yaml;

/// The path of the description of pods in a workload.
const POD: &str = "spec.template.spec";
/// The paths of containers in the description of a pod.
const CONTAINERS: [&str; 2] = ["containers.*", "initContainers.*"];

static BUILT_IN: LazyLock<Vec<Block>> = LazyLock::new(|| {
    let mut documents = yaml::parse_values(include_str!("defaults.yaml")).expect("a test reads it");
    serde_json::from_value(documents.pop().unwrap_or_default()).expect("a test reads it")
});

/// Values that are filled in at some places of some kinds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Block {
    kinds: Vec<String>,
    version: Option<String>,
    at: Vec<String>,
    fill: Vec<Fill>,
}

/// Fields that a mapping gets if it lacks them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fill {
    #[serde(default)]
    at: String,
    #[serde(default, rename = "if")]
    only: Map<String, Value>,
    #[serde(default)]
    unless: Map<String, Value>,
    /// The mapping that gets them, from that to which the conditions apply.
    #[serde(default)]
    below: String,
    add: Value,
}

/// Fills in what is missing in an object, by the schema of its kind and by what is known of built-in ones.
pub(super) fn fill(body: &mut Value, kind: &Gvk, rule: Rule<'_>) {
    let name = KindName::exact(&kind.group, &kind.kind).to_string();
    let is_version = |block: &Block| block.version.as_ref().is_none_or(|version| *version == kind.version);
    for block in BUILT_IN.iter().filter(|block| block.kinds.contains(&name) && is_version(block)) {
        for place in &block.at {
            each(body, place, &mut |value| block.fill.iter().for_each(|fill| fill.apply(value)));
        }
    }
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment" | "DaemonSet" | "StatefulSet") => each(body, POD, &mut pod),
        ("", "Service") => service(body),
        ("autoscaling", "HorizontalPodAutoscaler") if kind.version == "v2" => each(body, "spec", &mut metrics),
        _ => {}
    }
    by_schema(body, rule);
}

impl Fill {
    fn apply(&self, value: &mut Value) {
        each(value, &self.at, &mut |value| {
            let is = |(field, wanted): (&String, &Value)| value[field] == *wanted;
            if self.only.iter().all(is) && !self.unless.iter().any(is) {
                add(value, &self.below, &self.add);
            }
        });
    }
}

fn by_schema(value: &mut Value, rule: Rule<'_>) {
    match value {
        Value::Object(map) => {
            for (name, default) in rule.defaults() {
                map.entry(name.clone()).or_insert_with(|| default.clone());
            }
            for (name, value) in map.iter_mut() {
                by_schema(value, rule.field(name));
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|element| by_schema(element, rule.element())),
        _ => {}
    }
}

fn pod(pod: &mut Value) {
    // One is the old name of the other, and a server keeps them equal.
    let account = pod.get("serviceAccountName").cloned();
    if let (Some(pod), Some(account)) = (pod.as_object_mut(), account) {
        pod.insert("serviceAccount".to_owned(), account);
    }
    each(pod, "volumes.*", &mut |volume| {
        if volume.as_object().is_some_and(|volume| volume.len() == 1) {
            add(volume, "", &json!({"emptyDir": {}}));
        }
    });
    for containers in CONTAINERS {
        each(pod, containers, &mut |container| {
            let policy = pull_policy(container["image"].as_str().unwrap_or_default());
            add(container, "", &json!({"imagePullPolicy": policy}));
        });
    }
}

/// An image that may be another one tomorrow is pulled each time. Of what is no name of an image, such as one that was
/// left to be filled in, a server finds no tag, and so not that one.
fn pull_policy(image: &str) -> &'static str {
    let name = image.rsplit('/').next().unwrap_or(image);
    let is_fixed = name.contains('@') || name.split_once(':').is_some_and(|(_, tag)| tag != "latest");
    if is_fixed || !IMAGE.is_match(image) { "IfNotPresent" } else { "Always" }
}

/// The name of an image: perhaps a domain, then a path in small letters, then a tag or a digest.
static IMAGE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^([A-Za-z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*([:@].*)?$")
        .expect("the expression is sound; a test uses it")
});

/// Fills in scaling by CPU where nothing is said of metrics.
fn metrics(spec: &mut Value) {
    if spec["metrics"].as_array().is_none_or(Vec::is_empty) {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        spec["metrics"] = json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]);
    }
}

fn service(body: &mut Value) {
    each(body, "spec", &mut |spec| {
        let has_addresses = spec["externalIPs"].as_array().is_some_and(|all| !all.is_empty());
        if spec["type"] == "ClusterIP" && has_addresses {
            add(spec, "", &json!({"externalTrafficPolicy": "Cluster"}));
        }
        if let (true, Some(spec)) = (spec["sessionAffinity"] == "None", spec.as_object_mut()) {
            spec.remove("sessionAffinityConfig");
        }
    });
    each(body, "spec.ports.*", &mut |port| {
        let number = port["port"].clone();
        add(port, "", &json!({"targetPort": number}));
    });
}

/// Adds the fields that are missing in the mapping at a place, if there is one. `*` stands for the elements of a list.
fn add(value: &mut Value, place: &str, fields: &Value) {
    each(value, place, &mut |value| {
        if let (Some(map), Value::Object(fields)) = (value.as_object_mut(), fields) {
            for (name, default) in fields {
                map.entry(name).or_insert_with(|| default.clone());
            }
        }
    });
}

fn each(value: &mut Value, place: &str, change: &mut dyn FnMut(&mut Value)) {
    let (step, rest) = place.split_once('.').unwrap_or((place, ""));
    match step {
        "" => change(value),
        "*" => value.as_array_mut().into_iter().flatten().for_each(|element| each(element, rest, change)),
        field => {
            if let Some(below) = value.get_mut(field) {
                each(below, rest, change);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::Model;
    use super::*;

    #[test]
    fn what_a_server_fills_in_is_known() {
        let deployment = Gvk::new("apps/v1", "Deployment");
        let mut body = json!({"spec": {"template": {"spec": {
            "serviceAccountName": "edge",
            "containers": [{
                "name": "a", "image": "r.io:5000/a:v1", "ports": [{"containerPort": 80}],
                "resources": {"limits": {"cpu": "1000m"}}, "readinessProbe": {"httpGet": {"port": 80}},
            }],
            "volumes": [{"name": "a"}, {"name": "b", "configMap": {"name": "b"}}],
        }}}});
        fill(&mut body, &deployment, Model::default().root(&deployment));
        let pod = &body["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        assert_eq!(body["spec"]["strategy"]["rollingUpdate"]["maxSurge"], "25%");
        assert_eq!((&pod["serviceAccount"], &pod["volumes"][0]["emptyDir"]), (&json!("edge"), &json!({})));
        assert_eq!(
            container["resources"],
            json!({"limits": {"cpu": "1000m"}}),
            "only of a Pod itself are requests filled in"
        );
        assert_eq!(
            (&container["imagePullPolicy"], &container["ports"][0]["protocol"]),
            (&json!("IfNotPresent"), &json!("TCP"))
        );
        assert_eq!(container["readinessProbe"]["httpGet"], json!({"port": 80, "scheme": "HTTP", "path": "/"}));
        assert_eq!(container["readinessProbe"]["failureThreshold"], 3);
    }

    #[track_caller]
    fn check(kind: (&str, &str), spec: &Value, expected: &Value) {
        let (kind, mut body) = (Gvk::new(kind.0, kind.1), json!({"spec": spec}));
        fill(&mut body, &kind, Model::default().root(&kind));
        assert_eq!(body["spec"], *expected);
    }

    #[test]
    fn an_autoscaler_scales_by_something() {
        let kind = ("autoscaling/v2", "HorizontalPodAutoscaler");
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        let cpu = json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]);
        check(kind, &json!({"maxReplicas": 3}), &json!({"maxReplicas": 3, "minReplicas": 1, "metrics": cpu}));
        let down = json!({"selectPolicy": "Min", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]});
        let policies = json!([
            {"type": "Pods", "value": 4, "periodSeconds": 15}, {"type": "Percent", "value": 100, "periodSeconds": 15},
        ]);
        let up = json!({"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": policies});
        check(
            kind,
            &json!({"minReplicas": 2, "metrics": [{"type": "Pods"}], "behavior": {"scaleDown": {"selectPolicy": "Min"}}}),
            &json!({"minReplicas": 2, "metrics": [{"type": "Pods"}], "behavior": {"scaleDown": down, "scaleUp": up}}),
        );
    }

    #[test]
    fn what_a_service_gets_is_a_matter_of_who_can_reach_it() {
        let kind = ("v1", "Service");
        let inner = json!({"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster"});
        check(kind, &json!({"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 1}}}), &inner);
        let mut outer = inner.clone();
        outer["externalIPs"] = json!(["192.0.2.1"]);
        outer["externalTrafficPolicy"] = json!("Cluster");
        check(kind, &json!({"externalIPs": ["192.0.2.1"]}), &outer);
    }

    #[test]
    fn claims_of_storage_and_of_devices_are_filled_in() {
        check(("v1", "PersistentVolumeClaim"), &json!({}), &json!({"volumeMode": "Filesystem"}));
        let requests =
            |exactly: Value| json!({"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}});
        let kind = ("resource.k8s.io/v1", "ResourceClaimTemplate");
        check(kind, &requests(json!({})), &requests(json!({"allocationMode": "ExactCount", "count": 1})));
        check(kind, &requests(json!({"allocationMode": "All"})), &requests(json!({"allocationMode": "All"})));
    }

    #[test]
    fn a_secret_is_opaque_unless_it_says_what_it_is() {
        let kind = Gvk::new("v1", "Secret");
        for (said, filled_in) in [(json!({}), "Opaque"), (json!({"type": "kubernetes.io/tls"}), "kubernetes.io/tls")] {
            let mut body = said;
            fill(&mut body, &kind, Model::default().root(&kind));
            assert_eq!(body, json!({"type": filled_in}));
        }
    }

    #[test]
    fn an_image_that_may_change_is_pulled_each_time() {
        let check = |image: &str, policy: &str| assert_eq!(pull_policy(image), policy, "{image}");
        check("a", "Always");
        check("r.io:5000/a", "Always");
        check("r.io:5000/a:latest", "Always");
        check("r.io:5000/a:v1", "IfNotPresent");
        check("a@sha256:00", "IfNotPresent");
        check("R.io/team/a_b.c", "Always");
        check("${IMAGE}", "IfNotPresent");
        check("r.io/<image>", "IfNotPresent");
        check("r.io/A", "IfNotPresent");
    }
}
