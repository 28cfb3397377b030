//! Admission without a server: are the definitions those that their authors publish, and is what an API server refuses
//! refused before?

pub(crate) mod mutation;
mod published;

use std::sync::OnceLock;

use futures::StreamExt;
use futures::stream;
use gatewright::config::packs::{build, folders};
use gatewright_engine::admission::{Definition, Definitions};
use gatewright_engine::pack::Packs;
use gatewright_engine::problem::Scope;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::Source;
use gatewright_engine::yaml;
use serde_json::Value;

use crate::cluster::ApiServer;
use crate::cluster::unique;
use mutation::{Mutator, seed};

/// The documents that are tried.
const DOCUMENTS: usize = 5_000;

/// Valid documents of kinds that are defined; mutations begin with them. Those of products are in a file of their own.
const VALID: [&str; 2] = [include_str!("admission/valid.yaml"), include_str!("admission/products.yaml")];

/// All packs, with the definitions that are built in as a folder of them: those of products count as those in force.
pub(crate) fn packs() -> &'static Packs {
    static PACKS: OnceLock<Packs> = OnceLock::new();
    PACKS.get_or_init(|| {
        let folders = folders(&gatewright_packs::all().into(), []).expect("there are none");
        let definitions = published::all().into_iter().map(|it| Definition::new(&it).expect("it is one"));
        build(None, &folders).expect("they load").with_definitions(definitions.collect())
    })
}

pub(crate) fn valid() -> Vec<Value> {
    VALID.iter().flat_map(|text| yaml::parse_values(text).expect("it is YAML")).collect()
}

/// Returns what is said of a document.
pub(crate) fn said(document: &Value) -> Vec<String> {
    let specs = Source::load(&Tree::from_iter([("it.yaml", document.to_string())]), packs(), None).specs;
    let problems = specs.problems.iter().filter(|problem| problem.scope != Scope::Warning);
    problems.chain(specs.refused.values().flatten()).map(ToString::to_string).collect()
}

#[test]
fn every_definition_that_is_built_in_can_be_used() {
    let definitions: Definitions = gatewright_packs::definitions();
    for definition in definitions.all() {
        let tried = definition.try_all().map_err(|error| format!("{} {}: {error}", definition.group, definition.kind));
        assert_eq!(tried, Ok(()));
    }
    for (group, kind) in [("gateway.networking.k8s.io", "Gateway"), ("inference.networking.k8s.io", "InferencePool")] {
        assert!(definitions.of(group, kind).is_some(), "{kind}");
    }
}

#[test]
fn what_is_valid_is_taken() {
    for document in valid() {
        assert_eq!(said(&document), [""; 0], "{document}");
    }
}

/// Documents that are refused here alone are listed in `admission.txt` in `target/tmp`.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_api_server_refuses_is_refused_before() {
    let server = ApiServer::start();
    published::install(&server);
    let namespace = unique("admission");
    server.kubectl_ok(&["create", "namespace", &namespace]);
    let valid = valid();
    let mut mutator = Mutator::new(seed());
    let documents: Vec<Value> = (0..DOCUMENTS).map(|index| mutator.mutated(&valid[index % valid.len()])).collect();
    let judge = &published::Judge::new(&server, &namespace);
    let verdicts = stream::iter(&documents).map(|document| async move { (document, judge.refused(document).await) });
    let verdicts: Vec<(&Value, Option<String>)> = verdicts.buffer_unordered(8).collect().await;
    let refused = verdicts.iter().filter(|(_, refused)| refused.is_some()).count();
    let missed = verdicts.iter().filter_map(|(document, refused)| {
        let refused = refused.as_ref().filter(|_| said(document).is_empty())?;
        Some(format!("{document}\n    {refused}"))
    });
    let missed: Vec<String> = missed.collect();
    let stricter = verdicts.iter().filter(|(document, refused)| refused.is_none() && !said(document).is_empty());
    let stricter: Vec<String> =
        stricter.map(|(document, _)| format!("{document}\n    {}", said(document).join("; "))).collect();
    let taken = DOCUMENTS - refused;
    let summary = format!("{refused} refused by both, {taken} taken, {} of these refused here alone", stricter.len());
    published::write("admission.txt", &[&[summary], &stricter[..]].concat());
    assert!(refused * 4 > DOCUMENTS, "only {refused} of {DOCUMENTS} were refused, so that this shows little");
    assert!(missed.is_empty(), "seed {}: {} missed:\n{}", seed(), missed.len(), missed.join("\n"));
    assert!(stricter.len() * 5 < taken, "{} of {taken} that a server takes are refused here", stricter.len());
}
