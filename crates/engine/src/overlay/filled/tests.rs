//! Overlays with values of clusters, from the document to what is in force on a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::object::ObjectId;
use crate::overlay::Assignment;
use crate::pack::{Pack, Packs};
use crate::selector::ClusterFacts;
use crate::spec::GATEWAY_API;
use crate::spec::overlay::OverlayFolders;
use crate::tree::Tree;
use crate::unit::{Source, render};

const GATEWAY: &str = "{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: edge}, \
                       spec: {gatewayClassName: acme, listeners: [{name: http, port: 80, protocol: HTTP}]}}";

const TABLE: &str = "eu-1: {ip: 192.0.2.10, size: 3, is_large: true, pool: {v4: [a, b]}, none: null, odd: {$patch: delete}}\n\
                     us-1:\n  ip: 198.51.100.10\n";

fn packs() -> Packs {
    let manifest = "{name: acme, controllers: [acme.example.com/acme], classes: {acme: acme.example.com/acme}, \
                    parameters: {group: acme.example.com, kind: Acme, versions: [v1]}, templates: []}";
    let pack = Pack::declared(&BTreeMap::from([("pack.yaml", manifest)]), &Value::Null).expect("the pack is sound");
    Packs::new(vec![pack]).expect("the pack is sound")
}

fn overlay(spec: &str) -> String {
    format!("apiVersion: gatewright.dev/v1alpha1\nkind: ClusterOverlay\nmetadata: {{name: a}}\nspec:\n  {spec}\n")
}

/// An overlay with a table in a file.
fn with_table(text: &str) -> String {
    overlay(&format!("values: {{file: values.yaml}}\n  parameters: {{it: {text}}}"))
}

fn source(overlay: &str) -> Source {
    let table = overlay.contains("values.yaml").then_some(("p/values.yaml", TABLE));
    let files = [("p/a.yaml", overlay), ("edge.yaml", GATEWAY)].into_iter().chain(table);
    Source::load(&files.collect(), &packs(), None)
}

fn cluster(name: &str) -> ClusterFacts {
    let pairs = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
    let (labels, annotations) = (pairs("example.com/ip", "10.0.0.1"), pairs("mirror", "m.example.com"));
    ClusterFacts { name: name.to_owned(), labels, annotations, ..ClusterFacts::default() }
}

fn edge() -> ObjectId {
    ObjectId::new(GATEWAY_API, "Gateway", "default", "edge")
}

fn on(source: &Source, cluster: Option<&ClusterFacts>) -> Assignment {
    assert_eq!(source.specs.problems, []);
    assert_eq!(source.overlays.problems, []);
    source.overlays.on(cluster, &source.specs)
}

/// The parameter `it` of an overlay on a cluster, or what it lacks there.
fn outcome(text: &str, name: &str) -> Result<Value, String> {
    let assignment = on(&source(&with_table(text)), Some(&cluster(name)));
    let governing = assignment.of(&edge());
    let problems = assignment.problems.iter().map(ToString::to_string).collect();
    let found = governing.first().and_then(|overlay| overlay.spec.parameters.as_ref());
    assert_eq!(found.is_none(), assignment.held(&edge()).is_some(), "{text}");
    found.map(|parameters| parameters["it"].clone()).ok_or(problems)
}

#[track_caller]
fn becomes(text: &str, expected: &Value) {
    assert_eq!(outcome(text, "eu-1").as_ref(), Ok(expected), "{text}");
}

#[track_caller]
fn lacks(text: &str, name: &str, expected: &str) {
    let found = outcome(text, name).expect_err(text);
    assert!(found.starts_with("p/a.yaml:6: ClusterOverlay a: "), "{found}");
    assert!(found.contains(expected), "{found}");
}

#[test]
fn what_is_one_expression_becomes_the_value_itself() {
    becomes("'{{ cluster.name }}'", &json!("eu-1"));
    becomes("'{{cluster.labels.example.com/ip}}'", &json!("10.0.0.1"));
    becomes("'{{ values.size }}'", &json!(3));
    becomes("'{{ values.is_large }}'", &json!(true));
    becomes("'{{ values.pool }}'", &json!({"v4": ["a", "b"]}));
    becomes("[{a: ['{{ values.pool.v4 }}']}]", &json!([{"a": [["a", "b"]]}]));
}

#[test]
fn what_stands_within_a_text_becomes_text() {
    becomes("'{{ values.ip }}/24'", &json!("192.0.2.10/24"));
    becomes("' {{ values.size }}'", &json!(" 3"));
    becomes(
        "'{{ cluster.annotations.mirror }}/{{ cluster.name }}:{{ values.is_large }}'",
        &json!("m.example.com/eu-1:true"),
    );
    becomes("'{{ \"{{\" }} {{ values.size }} }}'", &json!("{{ 3 }}"));
    becomes("'{{ \"{{\" }}'", &json!("{{"));
}

#[test]
fn a_value_that_is_not_there_is_a_problem_and_holds_what_it_feeds() {
    let no_ip = "{{ cluster.labels.example.com/pi }} has no value: the cluster has no label \"example.com/pi\"";
    lacks("'{{ cluster.labels.example.com/pi }}'", "eu-1", &format!("{no_ip} (did you mean \"example.com/ip\"?)"));
    lacks("'{{ cluster.annotations.zone }}'", "eu-1", "the cluster has no annotation \"zone\"");
    lacks("'{{ values.size }}'", "us-1", "the row of the cluster at p/values.yaml:3 has no \"size\"");
    lacks("'{{ values.pool.v6 }}'", "eu-1", "the row of the cluster at p/values.yaml:1 has no \"pool.v6\"");
    lacks("'{{ values.ip }}'", "eu-2", "p/values.yaml has no row for the cluster");
    lacks("'{{ values.none }}'", "eu-1", "{{ values.none }} has no value: it is null");
    lacks("'a {{ values.pool }}'", "eu-1", "it is of type object, and only text fits into a text");
    lacks("'{{ values.odd }}'", "eu-1", "it has a field \"$patch\", and a value directs no patch");
}

#[test]
fn a_gateway_is_held_only_where_a_value_is_missing() {
    let tree = |text: &str| Tree::from_iter([("p/a.yaml", text), ("p/values.yaml", TABLE), ("edge.yaml", GATEWAY)]);
    let broken = |name: &str| {
        let options = crate::unit::Options { cluster: Some(cluster(name)), ..Default::default() };
        let spec =
            "values: {file: values.yaml}\n  specPatches: [{patch: {spec: {addresses: [{value: '{{ values.ip }}'}]}}}]";
        let rendering = render(&tree(&overlay(spec)), &packs(), &options);
        let problems: Vec<String> = rendering.problems.iter().map(ToString::to_string).collect();
        (rendering.broken.len(), problems.join("\n"))
    };
    assert_eq!(broken("eu-1"), (0, String::new()));
    let (held, problems) = broken("eu-2");
    assert_eq!(held, 1);
    assert!(
        problems.contains(
            "edge.yaml:1: Gateway default/edge: a ClusterOverlay lacks a value of the cluster, see p/a.yaml:6"
        ),
        "{problems}"
    );
}

#[test]
fn expressions_stand_in_values_of_parameters_and_patches_alone() {
    let refused = |spec: &str, expected: &str| {
        let problems: Vec<String> = source(&overlay(spec)).overlays.problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems.len(), 1, "{spec}: {problems:?}");
        assert!(problems[0].starts_with("p/a.yaml:5: ClusterOverlay a: "), "{problems:?}");
        assert!(problems[0].contains(expected), "{problems:?}");
    };
    let name = "'{{ cluster.name }}'";
    refused(&format!("clusters: {{names: [{name}]}}"), "an expression cannot stand in spec.clusters.names.0");
    refused(&format!("target: {{gateways: [{{name: {name}}}]}}"), "cannot stand in spec.target.gateways.0.name");
    refused(&format!("parameters: {{{name}: a}}"), "an expression cannot stand in the name of a field");
    refused(&format!("specPatches: [{{patch: [{{op: add, path: {name}, value: a}}]}}]"), "specPatches.0.patch.0.path");
    refused(&format!("objectPatches: [{{target: {{kind: A}}, patch: {{$patch: {name}}}}}]"), "patch.$patch");
    refused(&format!("objectPatches: [{{target: {{kind: {name}}}, patch: {{a: b}}}}]"), "objectPatches.0.target.kind");
    refused("parameters: {it: '{{ values.ip }}'}", "the overlay has no table");
    refused("parameters: {it: '{{ upper values.ip }}'}", "is no value of a cluster: write {{ cluster.name }}, ");
    refused("values: {byCluster: {eu-1: 192.0.2.10}}", "the values of cluster \"eu-1\" must be a mapping");
    // Rules have a language of their own, in which braces are a map.
    let rules = overlay(
        "enforce: [{rule: \"size({{'a': 1}: 2}) < 3\"}]\n  specPatches: [{patch: [{op: add, path: /spec/a, value: '{{ cluster.name }}'}]}]",
    );
    assert_eq!(source(&rules).overlays.problems, []);
}

#[test]
fn a_table_stands_in_the_overlay_or_in_a_file_beside_it() {
    let within = overlay("values: {byCluster: {eu-1: {size: 3}}}\n  parameters: {it: '{{ values.size }}'}");
    let assignment = on(&source(&within), Some(&cluster("eu-1")));
    assert_eq!(assignment.of(&edge())[0].spec.parameters, Some(json!({"it": 3})));

    let problems = |file: &str, folders: &[&str]| {
        let text = overlay(&format!("values: {{file: {file}}}\n  parameters: {{it: '{{{{ values.ip }}}}'}}"));
        let files = [("p/a.yaml", text.as_str()), ("p/values.yaml", TABLE), ("edge.yaml", GATEWAY), ("t.yaml", TABLE)];
        let folders = OverlayFolders::named(&folders.iter().map(|&folder| folder.to_owned()).collect::<Vec<_>>());
        let source = Source::load_from(&Tree::from_iter(files), &packs(), None, folders);
        assert!(source.specs.documents.contains_key(&edge()), "a file with an object is never a table");
        source.overlays.problems.iter().map(ToString::to_string).collect::<String>()
    };
    assert_eq!(problems("values.yaml", &["p"]), "");
    assert_eq!(problems("../t.yaml", &["."]), "");
    assert!(problems("../t.yaml", &["p"]).contains("tables in the folder of t.yaml do not count"));
    assert!(problems("../edge.yaml", &["."]).contains("edge.yaml holds objects, and no table of values by cluster"));
    assert!(
        problems("value.yaml", &["."])
            .contains("there is no file p/value.yaml in the source (did you mean \"p/values.yaml\"?)")
    );
    assert!(problems("../../t.yaml", &["."]).contains("\"../../t.yaml\" is no path within the source"));
}

#[test]
fn clusters_with_the_same_values_share_what_is_in_force() {
    let named = |name: &str| ClusterFacts { name: name.to_owned(), ..cluster("") };
    let shared = |text: &str| {
        let source = source(&with_table(text));
        source.overlays.variant(Some(&named("eu-1"))) == source.overlays.variant(Some(&named("us-1")))
    };
    assert!(shared("plain"));
    assert!(shared("'{{ cluster.labels.example.com/ip }}'"));
    assert!(shared("'{{ cluster.labels.none }}'"), "what both lack is said once");
    assert!(!shared("'{{ cluster.name }}'"));
    assert!(!shared("'{{ values.ip }}'"));
    assert!(!shared("'{{ values.size }}'"), "one of them lacks it");
}

#[test]
fn an_overlay_that_takes_nothing_is_as_it_was_written() {
    let plain = source(&with_table("'a }} {b'"));
    let filled = plain.overlays.usable[0].filled(&cluster("eu-1"));
    assert!(filled.is_ok_and(|filled| Arc::ptr_eq(&filled, &plain.overlays.usable[0])));
    assert_eq!(on(&plain, None).of(&edge()).len(), 1);
    let taking = source(&with_table("'{{ cluster.name }}'"));
    assert_eq!(on(&taking, None).of(&edge()).len(), 0, "without a cluster it is in force nowhere");
}

#[test]
fn an_example_is_a_cluster_of_the_table_and_lacks_nothing() {
    let examples = |spec: &str| source(&overlay(spec)).overlays.examples(&[]);
    let of_table =
        examples("values: {file: values.yaml}\n  clusters: {names: [us-1]}\n  parameters: {a: '{{ values.ip }}'}");
    assert_eq!(of_table.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["us-1"]);
    let text =
        "clusters: {matchLabels: {tier: a}}\n  parameters: {a: '{{ cluster.labels.tier }} {{ cluster.labels.ip }}'}";
    let example = examples(text).pop_first().expect("there is one");
    let assignment = on(&source(&overlay(text)), Some(&example));
    assert!(assignment.held(&edge()).is_none() && assignment.of(&edge()).is_empty());
    let problem = assignment.problems[0].to_string();
    assert!(problem.contains("not tried: {{ cluster.labels.ip }} has no value"), "{problem}");
    assert_eq!(assignment.problems[0].scope, crate::problem::Scope::Warning);
}
