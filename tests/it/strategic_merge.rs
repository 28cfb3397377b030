//! Strategic merge patches, ours beside those of Kubernetes' own code.

mod corners;
mod generate;
mod oracle;
mod shape;

use std::collections::BTreeMap;
use std::fs;

use gatewright_engine::object::Gvk;
use gatewright_engine::patch;
use serde_json::{Value, json};

use crate::cluster::binaries::in_repository;
use generate::Pair;
use oracle::Answer;

const PAIRS: u64 = 10_000;

/// Directives that must occur in patches that can be applied, and how often at least.
const DIRECTIVES: [(&str, usize); 8] = [
    ("null", 2000),
    ("delete", 500),
    ("replace", 500),
    ("$retainKeys", 500),
    ("$setElementOrder", 1000),
    ("$deleteFromPrimitiveList", 500),
    ("new item", 1000),
    ("duplicate", 100),
];

fn ours(pair: &Pair) -> Result<Value, String> {
    let gvk = Gvk::new(pair.api_version, pair.kind);
    patch::strategic(&pair.original, &pair.patch, &gvk).map_err(|error| error.to_string())
}

fn agree(ours: &Answer, theirs: &Answer) -> bool {
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => ours == theirs,
        (ours, theirs) => ours.is_err() && theirs.is_err(),
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "the figures are for the person who runs the test")]
fn ten_thousand_patches_do_what_they_do_in_kubernetes() {
    let pairs: Vec<Pair> = (0..PAIRS).map(generate::pair).collect();
    let theirs = oracle::answers(&pairs);
    let (mut errors, mut counts) = (0, BTreeMap::new());
    let mut different: Option<&Pair> = None;
    for (pair, theirs) in pairs.iter().zip(&theirs) {
        if !agree(&ours(pair), theirs) {
            let smallest = different.map_or(usize::MAX, size);
            different = if size(pair) < smallest { Some(pair) } else { different };
        } else if theirs.is_err() {
            errors += 1;
        } else {
            count(pair, &mut counts);
        }
    }
    if let Some(pair) = different {
        let pair = shrunk(pair.clone());
        let theirs = oracle::answers(std::slice::from_ref(&pair)).remove(0);
        let text = |answer: Answer| answer.map_or_else(|error| format!("error: {error}"), |value| value.to_string());
        let (ours, theirs) = (text(ours(&pair)), text(theirs));
        let Pair { kind, original, patch, .. } = pair;
        assert_eq!(ours, theirs, "{kind}\noriginal: {original}\npatch: {patch}\n");
    }
    println!("{errors} of {PAIRS} patches are errors, ours and theirs; in the others there are {counts:?}");
    assert!((300..PAIRS / 4).contains(&errors), "{errors} errors");
    for (directive, least) in DIRECTIVES {
        assert!(counts.get(directive).is_some_and(|count| *count >= least), "{directive}: {counts:?}");
    }
}

#[test]
fn corners_are_the_same_as_in_kubernetes() {
    let pairs = corners::pairs();
    for (pair, theirs) in pairs.iter().zip(&oracle::answers(&pairs)) {
        let ours = ours(pair);
        assert!(agree(&ours, theirs), "{pair:?}\nours: {ours:?}\ntheirs: {theirs:?}");
    }
}

fn size(pair: &Pair) -> usize {
    pair.original.to_string().len() + pair.patch.to_string().len()
}

/// Counts what occurs in a patch.
fn count(pair: &Pair, counts: &mut BTreeMap<&'static str, usize>) {
    let mut add = |what| *counts.entry(what).or_default() += 1;
    each(&pair.patch, &mut |field, value| match (field, value) {
        (_, Value::Null) => add("null"),
        (Some("$patch"), Value::String(directive)) if directive == "delete" => add("delete"),
        (Some("$patch"), Value::String(_)) => add("replace"),
        (Some(field), _) if field.starts_with('$') => {
            let known = ["$retainKeys", "$setElementOrder", "$deleteFromPrimitiveList"];
            known.into_iter().filter(|name| field.starts_with(name)).for_each(&mut add);
        }
        _ => {}
    });
    let gvk = Gvk::new(pair.api_version, pair.kind);
    for _ in patch::ambiguous(&pair.original, &gvk) {
        add("duplicate");
    }
    let before = pair.original.to_string();
    each(&pair.patch, &mut |_, value| {
        if ["name", "port", "containerPort", "mountPath"].iter().any(|key| value.get(key).is_some())
            && !before.contains(&json!(value).to_string())
        {
            add("new item");
        }
    });
}

/// Visits every value, with the name of its field if it has one.
fn each(value: &Value, visit: &mut impl FnMut(Option<&str>, &Value)) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(field, value)| {
            visit(Some(field), value);
            each(value, visit);
        }),
        Value::Array(items) => items.iter().for_each(|item| {
            visit(None, item);
            each(item, visit);
        }),
        _ => {}
    }
}

/// Takes parts out of a pair for as long as we and Kubernetes disagree about it.
fn shrunk(mut pair: Pair) -> Pair {
    loop {
        let smaller: Vec<Pair> = without_one_part(&pair.original)
            .into_iter()
            .map(|original| Pair { original, ..pair.clone() })
            .chain(without_one_part(&pair.patch).into_iter().map(|patch| Pair { patch, ..pair.clone() }))
            .collect();
        let theirs = oracle::answers(&smaller);
        let different = smaller.into_iter().zip(&theirs).filter(|(pair, theirs)| !agree(&ours(pair), theirs));
        match different.map(|(pair, _)| pair).min_by_key(size) {
            Some(smaller) => pair = smaller,
            None => return pair,
        }
    }
}

/// Returns all values that lack one field or item of this one.
fn without_one_part(value: &Value) -> Vec<Value> {
    let mut results = Vec::new();
    match value {
        Value::Object(fields) => {
            for (field, below) in fields {
                let mut fields = fields.clone();
                fields.remove(field);
                results.push(Value::Object(fields.clone()));
                for below in without_one_part(below) {
                    fields.insert(field.clone(), below);
                    results.push(Value::Object(fields.clone()));
                }
            }
        }
        Value::Array(items) => {
            for (index, below) in items.iter().enumerate() {
                let mut items = items.clone();
                items.remove(index);
                results.push(Value::Array(items.clone()));
                items.insert(index, Value::Null);
                for below in without_one_part(below) {
                    items[index] = below;
                    results.push(Value::Array(items.clone()));
                }
            }
        }
        _ => {}
    }
    results
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the one switch of expected files, for the person who runs the tests")]
fn the_engine_knows_what_kubernetes_types_say() {
    let file = in_repository("crates/engine/src/patch/types.txt");
    let types = oracle::types();
    if std::env::var_os("GATEWRIGHT_BLESS").is_some() {
        fs::write(&file, &types).expect("the file can be written");
    }
    let known = fs::read_to_string(&file).expect("the file is there");
    assert!(known == types, "types.txt is out of date; GATEWRIGHT_BLESS=1 cargo test --test it kubernetes_types");
}
