//! Items of lists that no API server takes twice: ports of a Service, and what a pod has by name.
//!
//! A template that goes round a list which has something twice writes such items, and YAML has nothing against it. The
//! server would refuse the whole object, long after the pack was tested.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::kinds;
use crate::object::Object;
use crate::references;

/// A field whose value, together with those of others, an item of a list has alone; and what it is if nobody says it.
type Key = (&'static str, Option<&'static str>);

/// The port and protocol of a Service.
const SERVICE_PORT: [Key; 2] = [("port", None), ("protocol", Some("TCP"))];

/// The port and protocol of a container.
const CONTAINER_PORT: [Key; 2] = [("containerPort", None), ("protocol", Some("TCP"))];

/// The name of anything.
const NAME: [Key; 1] = [("name", None)];

/// Returns what is in objects twice, each in words.
pub(crate) fn find(objects: &[Object], kinds: &kinds::Table) -> Vec<String> {
    let of_object = |object: &Object| {
        let said = |found: String| format!("{} has {found}", object.id());
        in_object(object, kinds).into_iter().map(said).collect::<Vec<_>>()
    };
    objects.iter().flat_map(of_object).collect()
}

fn in_object(object: &Object, kinds: &kinds::Table) -> Vec<String> {
    let (id, body) = (object.id(), object.body());
    match (id.group.as_str(), id.kind.as_str()) {
        ("", "Service") => {
            let ports = items(&body["spec"]["ports"]);
            [twice(&ports, "ports", &SERVICE_PORT), twice(&ports, "ports", &NAME)].concat()
        }
        ("", "Pod") => in_pod(&body["spec"]),
        _ => references::templates(body, kinds).into_iter().flat_map(|template| in_pod(&template["spec"])).collect(),
    }
}

fn in_pod(spec: &Value) -> Vec<String> {
    // A name is that of one container, whether it runs before the others or with them.
    let containers = [items(&spec["initContainers"]), items(&spec["containers"])].concat();
    let mut found = twice(&containers, "containers", &NAME);
    found.extend(twice(&items(&spec["volumes"]), "volumes", &NAME));
    for container in containers {
        let ports = items(&container["ports"]);
        let twice = [twice(&ports, "ports", &CONTAINER_PORT), twice(&ports, "ports", &NAME)].concat();
        let name = container["name"].as_str().unwrap_or_default();
        found.extend(twice.into_iter().map(|found| format!("{found} in the container {name:?}")));
    }
    found
}

fn items(list: &Value) -> Vec<&Value> {
    list.as_array().into_iter().flatten().collect()
}

/// Says which values of a key several items have.
fn twice(items: &[&Value], what: &str, key: &[Key]) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for item in items {
        let value = |(field, default): &Key| match (&item[*field], default) {
            (Value::Null, None) => None,
            (Value::Null, Some(default)) => Some((*field, json!(default))),
            (value, _) => Some((*field, value.clone())),
        };
        let Some(values) = key.iter().map(value).collect::<Option<Vec<_>>>() else { continue };
        let words: Vec<String> = values.iter().map(|(field, value)| format!("{field} {value}")).collect();
        *counts.entry(words.join(" and ")).or_default() += 1;
    }
    let several = counts.into_iter().filter(|(_, count)| *count > 1);
    several.map(|(values, count)| format!("{count} {what} with the {values}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: &str, spec: &Value, expected: &[&str]) {
        let (api_version, kind) = kind.split_once(' ').expect("version and kind");
        let body = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": spec.clone()});
        let object = Object::new(body).expect("it is an object");
        assert_eq!(find(&[object], &kinds::Table::default()), expected);
    }

    #[test]
    fn ports_of_a_service_differ_by_number_and_protocol_and_by_name() {
        let ports = json!([
            {"name": "a", "port": 53}, {"name": "b", "port": 53, "protocol": "UDP"},
            {"name": "c", "port": 80}, {"name": "c", "port": 80, "protocol": "TCP"}, {"port": 81}, {"port": 82},
        ]);
        check(
            "v1 Service",
            &json!({"ports": ports}),
            &[
                "Service a has 2 ports with the port 80 and protocol \"TCP\"",
                "Service a has 2 ports with the name \"c\"",
            ],
        );
        check("serving.example.com/v1 Service", &json!({"ports": [{"port": 1}, {"port": 1}]}), &[]);
    }

    #[test]
    fn what_pods_have_by_name_they_have_once() {
        let pod = json!({
            "initContainers": [{"name": "a"}],
            "containers": [{"name": "a"}, {"name": "b", "ports": [
                {"name": "x", "containerPort": 1}, {"name": "x", "containerPort": 2}, {"containerPort": 2},
            ]}],
            "volumes": [{"name": "v"}, {"name": "v"}],
        });
        let expected = [
            "has 2 containers with the name \"a\"",
            "has 2 volumes with the name \"v\"",
            "has 2 ports with the containerPort 2 and protocol \"TCP\" in the container \"b\"",
            "has 2 ports with the name \"x\" in the container \"b\"",
        ];
        for (kind, spec) in [("apps/v1 Deployment", json!({"template": {"spec": pod}})), ("v1 Pod", pod.clone())] {
            let name = kind.split_once(' ').map_or(kind, |(_, kind)| kind);
            let texts = expected.map(|text| format!("{name} a {text}"));
            check(kind, &spec, &texts.each_ref().map(String::as_str));
        }
    }
}
