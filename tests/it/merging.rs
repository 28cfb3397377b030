//! Properties of the merge tables of all built-in packs, whatever parameters say.

use std::collections::BTreeMap;

use gatewright_engine::merge::origin::{Layer, LayerName, Merged, MergedContent};
use gatewright_engine::merge::{Rule, Table, merge};
use gatewright_engine::pack::manifest::Manifest;
use gatewright_engine::yaml::{self, Content, Node};
use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use serde_json::{Value, json};

fn manifest(name: &str) -> Manifest {
    gatewright_packs::pack(name, &Value::Null).expect("the built-in pack can be used").manifest
}

/// The values that a field with a rule may hold: also nothing, zero, and what is empty.
fn value(rule: &Rule) -> BoxedStrategy<Value> {
    let number = || (0..3).prop_map(Value::from);
    let map = |fields: Vec<String>| {
        let field = proptest::sample::select(fields);
        btree_map(field, "[ab]?", 0..3).prop_map(|map| json!(map)).boxed()
    };
    let item = || ("[ab]", 0..3).prop_map(|(name, value)| json!({"name": name, "value": value}));
    let letters = || ["x", "y", "z"].map(str::to_owned).to_vec();
    match rule {
        Rule::Append | Rule::ByKey(_) => vec(item(), 0..3).prop_map(Value::from).boxed(),
        Rule::Nonzero => prop_oneof![number(), "[ab]?".prop_map(Value::from)].boxed(),
        Rule::Exclusive(fields) => map(fields.iter().cloned().chain(letters()).collect()),
        Rule::Coupled(one, other) => map([one.clone(), other.clone()].into_iter().chain(letters()).collect()),
        Rule::Deep | Rule::Keyed | Rule::Replace | Rule::Drop | Rule::Unmerged => map(letters()),
    }
}

/// Parameters that say something about some of the fields that have rules.
fn parameters(manifest: &Manifest) -> BoxedStrategy<Value> {
    let fields: Vec<_> =
        manifest.merge.iter().flat_map(|line| line.paths.iter().map(|path| (path, &line.rule))).collect();
    let said: Vec<_> = fields.iter().map(|(_, rule)| of(value(rule))).collect();
    let paths: Vec<String> = fields.iter().map(|(path, _)| (*path).clone()).collect();
    let put = move |values: Vec<Option<Value>>| {
        let mut root = json!({});
        for (path, value) in paths.iter().zip(values) {
            if let Some(value) = value {
                put(&mut root, path, value);
            }
        }
        root
    };
    said.prop_map(put).boxed()
}

/// Puts a value at a path; what is no mapping on the way stays, and the value is lost.
fn put(root: &mut Value, path: &str, value: Value) {
    let Value::Object(fields) = root else { return };
    match path.split_once('.') {
        Some((field, below)) => put(fields.entry(field).or_insert_with(|| json!({})), below, value),
        None => drop(fields.insert(path.to_owned(), value)),
    }
}

fn node(value: &Value) -> Node {
    yaml::parse(&yaml::to_string(value)).expect("it was just written").remove(0)
}

/// Merges layers that each stand in a file of their own, and checks that they are left alone.
fn merged(values: &[&Value], table: &Table) -> Merged {
    let nodes: Vec<Node> = values.iter().map(|value| node(value)).collect();
    let before = nodes.clone();
    let layer = |(index, node)| Layer::new(LayerName::Gateway, format!("{index}.yaml"), node);
    let layers: Vec<Layer<'_>> = nodes.iter().enumerate().map(layer).collect();
    let result = merge(&layers, table);
    assert_eq!(nodes, before, "merging leaves its inputs alone");
    result
}

/// Tells whether every value without parts is one that stands at its origin.
fn is_said(merged: &Merged, files: &BTreeMap<String, Node>) -> bool {
    match &merged.content {
        MergedContent::List(items) => items.iter().all(|item| is_said(item, files)),
        MergedContent::Map(fields) => fields.values().all(|field| is_said(field, files)),
        MergedContent::Leaf(value) => {
            let place = &merged.origin.place;
            let file = files.get(&*place.file);
            value.is_null() || file.is_some_and(|root| stands_at(root, (place.line, place.column), value))
        }
    }
}

fn stands_at(node: &Node, at: (u32, u32), value: &Value) -> bool {
    let is_here = (node.position.line, node.position.column) == at && node.to_value() == *value;
    is_here
        || match &node.content {
            Content::List(items) => items.iter().any(|item| stands_at(item, at, value)),
            Content::Map(fields) => fields.values().any(|field| stands_at(&field.node, at, value)),
            Content::Null | Content::Bool(_) | Content::Number(_) | Content::String(_) => false,
        }
}

fn check(pack: &str, [a, b, c]: &[Value; 3]) -> Result<(), TestCaseError> {
    let table = Table::new(&manifest(pack).merge);
    let nothing = json!({});
    let value = |values: &[&Value]| merged(values, &table).to_value();
    prop_assert_eq!(&value(&[&nothing, a]), a, "the empty layer below changes nothing");
    prop_assert_eq!(&value(&[a, &nothing]), a, "the empty layer above changes nothing");
    prop_assert_eq!(value(&[a, &nothing, b]), value(&[a, b]), "the empty layer between changes nothing");
    let all = merged(&[a, b, c], &table);
    prop_assert_eq!(&all, &merged(&[a, b, c], &table), "merging again gives the same");
    let files = [a, b, c].iter().enumerate().map(|(index, value)| (format!("{index}.yaml"), node(value))).collect();
    prop_assert!(is_said(&all, &files), "every value stands where its origin says: {all:?}");
    Ok(())
}

proptest! {
    // Each case fills the whole table, and that twice over.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn kgateway_parameters_merge_as_layers_do(layers in [(); 3].map(|()| parameters(&manifest("kgateway")))) {
        check("kgateway", &layers)?;
    }

    #[test]
    fn agentgateway_parameters_merge_as_layers_do(layers in [(); 3].map(|()| parameters(&manifest("agentgateway")))) {
        check("agentgateway", &layers)?;
    }
}
