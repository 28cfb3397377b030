//! A definition made up for these tests, and documents that keep to it or not.

use serde_json::json;

use super::*;
use crate::object::{Gvk, ObjectId};
use crate::yaml;

/// A definition that has what definitions may have.
const DEFINITION: &str = r#"
kind: CustomResourceDefinition
spec:
  group: example.com
  names: {kind: House}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          spec:
            type: object
            properties:
              class: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: stays as it is}]}
              tags:
                type: array
                items: {type: string}
                x-kubernetes-list-type: set
                x-kubernetes-validations: [{rule: "self.exists(tag, tag == 'a')", message: one tag has to be a}]
              labels: {type: object, additionalProperties: {type: string}, maxProperties: 2}
              addresses:
                type: array
                items:
                  type: object
                  required: [value]
                  properties: {type: {type: string, default: IP}, value: {type: string}}
                  oneOf:
                  - properties: {type: {enum: [IP]}, value: {anyOf: [{format: ipv4}, {format: ipv6}]}}
                  - properties: {type: {not: {enum: [IP]}}}
              doors:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                x-kubernetes-validations:
                - rule: self.all(a, !has(a.port) || self.exists_one(b, has(b.port) && a.port == b.port))
                  message: two doors on one port
                items:
                  type: object
                  required: [name]
                  properties:
                    name: {type: string, pattern: "^[a-z]+$"}
                    port: {x-kubernetes-int-or-string: true}
                    mode: {type: string, enum: [Open, Shut], default: Open}
                    key: {type: string, nullable: true}
                  x-kubernetes-validations:
                  - rule: "self.mode == 'Open' ? size(self.key) > 0 : true"
                    message: an open door needs a key
"#;

fn definition() -> Definition {
    let definition = yaml::parse_values(DEFINITION).expect("it is YAML").remove(0);
    Definition::new(&definition).expect("it is sound")
}

fn house(version: &str, rest: &str) -> Document {
    let text = format!("apiVersion: example.com/{version}\nkind: House\nmetadata: {{name: a}}\n{rest}");
    let root = yaml::parse(&text).expect("it is YAML").remove(0);
    let (id, gvk) =
        (ObjectId::new("example.com", "House", "", "a"), Gvk::new(&format!("example.com/{version}"), "House"));
    Document { id, gvk, file: "a.yaml".into(), root, patched: Vec::new() }
}

fn mistakes(spec: &str) -> Vec<String> {
    let said = definition().check(&house("v1", &format!("spec: {spec}")), None);
    said.into_iter().map(|it| format!("{}:{} {}", it.position.line, it.position.column, it.message)).collect()
}

#[test]
fn the_definition_of_these_tests_can_be_used() {
    definition().try_all().expect("all of it can be read");
}

#[test]
fn what_a_server_takes_is_taken() {
    for spec in [
        "{}",
        "{class: a, tags: [a, b], labels: {a: b}}",
        "{addresses: [{value: 10.0.0.1}, {type: IP, value: '::1'}, {type: Name, value: lab}]}",
        "{doors: [{name: a, key: k, port: 80}, {name: b, mode: Shut, port: http}, {name: c, mode: Shut, key: null}]}",
        "{class: null}",
    ] {
        assert_eq!(mistakes(spec), [""; 0], "{spec}");
    }
    let status = house("v1", "spec: {}\nstatus: {anything: [1, a]}");
    assert_eq!(definition().check(&status, None), []);
}

#[test]
fn what_a_server_refuses_is_refused_at_its_place() {
    for (spec, expected) in [
        ("{clas: a}", "4:8 unknown field \"clas\" in spec"),
        ("{tags: [a, b, a]}", "4:21 spec.tags[2] has the same value as spec.tags[0]"),
        ("{tags: [b, c]}", "4:14 spec.tags: one tag has to be a"),
        ("{labels: {a: b, c: d, e: f}}", "4:16 spec.labels must have at most 2 fields"),
        (
            "{addresses: [{value: 10.0.0.1:80}]}",
            "4:20 spec.addresses[0].value is \"10.0.0.1:80\", but must be a text of the format ipv4 or ipv6; or \
             spec.addresses[0].type must not be \"IP\"",
        ),
        ("{doors: [{name: a}]}", "4:16 spec.doors[0]: an open door needs a key"),
        (
            "{doors: [{name: a, key: k}, {name: a, mode: Shut}]}",
            "4:35 spec.doors[1] has the same name \"a\" as spec.doors[0]",
        ),
        (
            "{doors: [{name: a, key: k, port: 1}, {name: b, key: k, port: 2}, {name: c, key: k, port: 1}]}",
            "4:72 spec.doors[2]: two doors on one port",
        ),
    ] {
        assert_eq!(mistakes(spec), [expected], "{spec}");
    }
}

#[test]
fn a_change_is_judged_by_what_was_there() {
    let document = house("v1", "spec: {class: b}");
    let before = |class: &str| json!({"spec": {"class": class}});
    assert_eq!(definition().check(&document, Some(&before("b"))), []);
    let said = definition().check(&document, Some(&before("a")));
    assert_eq!(said.iter().map(|it| it.message.as_str()).collect::<Vec<_>>(), ["spec.class: stays as it is"]);
}

#[test]
fn a_version_that_is_not_defined_is_not_judged() {
    assert_eq!(definition().check(&house("v2", "spec: 7"), None), []);
}

#[test]
fn what_cannot_be_read_is_said_and_ends_nothing() {
    let with = |rule: &str| {
        let rules = json!([{"rule": rule, "message": "no"}]);
        let schema = json!({"type": "object", "x-kubernetes-validations": rules});
        let versions = json!([{"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}}]);
        let spec = json!({"group": "example.com", "names": {"kind": "House"}, "versions": versions});
        Definition::new(&json!({"spec": spec})).expect("it is one")
    };
    let document = house("v1", "spec: {}");
    assert_eq!(with("false").check(&document, None).len(), 1);
    assert!(with("self.(").try_all().is_err());
    assert_eq!(with("self.(").check(&document, None), [], "a server knows better");
    for deep in [format!("{}false{}", "(".repeat(5000), ")".repeat(5000)), "!".repeat(5000) + "true"] {
        assert_eq!(with(&deep).check(&document, None), [], "nobody reads it");
    }
    let nearly = format!("{}false{}", "(".repeat(90), ")".repeat(90));
    assert_eq!(with(&nearly).check(&document, None).len(), 1, "what is not that deep is read");
    for none in [json!(null), json!({}), json!({"spec": {"group": 7}}), json!({"spec": {"versions": [{}]}})] {
        assert!(Definition::new(&none).is_err(), "{none}");
    }
}

#[test]
fn what_another_release_may_take_is_a_doubt_and_refuses_nothing() {
    let doubts = |release, spec: &str, are_names_known| {
        let definitions = Definitions::from_iter([definition().of_release(release)]);
        let house = house("v1", &format!("spec: {spec}"));
        let doubts = definitions.doubts(&house, are_names_known).iter().map(ToString::to_string).collect::<Vec<_>>();
        (definitions.mistakes(&house).len(), doubts)
    };
    let spec = "{garage: {}, labels: {a: b, c: d, e: f}}";
    assert_eq!(doubts(None, spec, false), (1, Vec::new()), "what has other fields is not looked at further");
    let places = "a.yaml:4: House a: ";
    let [garage, labels] = [
        "unknown field \"garage\" in spec, by the definition of houses v2",
        "spec.labels must have at most 2 fields, by the definition of houses v2",
    ]
    .map(|message| format!("{places}{message} (with another release, name its definitions in crdFolders)"));
    assert_eq!(doubts(Some("houses v2"), spec, false), (0, vec![garage]));
    assert_eq!(doubts(Some("houses v2"), spec, true), (0, vec![labels]));
}
