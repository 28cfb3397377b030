//! A pack with a bug, which some specs come upon.

use std::collections::BTreeMap;
use std::sync::Arc;

use gatewright_engine::merge::origin::Merged;
use gatewright_engine::pack::{Pack, Packs, Provision, Subject, ValuesGenerator};
use gatewright_engine::problem::Problem;
use gatewright_engine::schema::Schema;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{Options, render};
use serde_json::json;

/// A pack that takes for granted that there is a label.
struct Careless;

impl ValuesGenerator for Careless {
    fn defaults(&self, _: &Subject<'_>) -> Merged {
        Merged::empty()
    }

    fn values(&self, subject: &Subject<'_>, _: &Merged) -> Result<Provision, Vec<Problem>> {
        let labels = subject.document.root.at(["metadata", "labels"]).expect("there are labels").to_value();
        Ok(Provision::Values(json!({"name": subject.document.id.name, "labels": labels})))
    }
}

#[test]
fn a_bug_that_one_spec_comes_upon_is_the_trouble_of_no_other() {
    let manifest = "{name: careless, controllers: [x/y], classes: {public: x/y}, templates: [map.yaml], \
                    parameters: {group: x, kind: Codes, versions: [v1]}}";
    let template =
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ name | json }}, labels: {{ labels | json }}}}";
    let files = BTreeMap::from([("pack.yaml", manifest), ("map.yaml", template)]);
    let pack = Pack::new(&files, Schema::anything(), Arc::new(Careless)).expect("the pack can be used");
    let packs = Packs::new(vec![pack]).expect("there is one");
    let gateway = |name: &str, labels: &str| {
        format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{name: {name}, namespace: infra{labels}}}\n\
             spec: {{gatewayClassName: public, listeners: [{{name: http, port: 80, protocol: HTTP}}]}}\n"
        )
    };
    let files = [("a", ", labels: {a: b}"), ("b", ""), ("c", ", labels: {a: b}")];
    let tree: Tree = files.map(|(name, labels)| (format!("{name}.yaml"), gateway(name, labels))).into_iter().collect();
    let rendering = render(&tree, &packs, &Options::default());
    let names: Vec<&str> = rendering.units.iter().map(|unit| unit.id.name.as_str()).collect();
    assert_eq!(names, ["a", "c"]);
    assert!(rendering.broken.iter().map(|id| id.name.as_str()).eq(["b"]), "what is there of it stays");
    let told: Vec<String> = rendering.problems.iter().map(ToString::to_string).collect();
    let expected =
        "b.yaml:1: Gateway infra/b: internal error: rendering it ended in a bug (see the log, and please report it)";
    assert_eq!(told, [expected]);
}
