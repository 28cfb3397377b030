//! The table of kinds that Kubernetes serves, beside what a real API server says of itself.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{self, Options};
use gatewright_engine::yaml;
use serde_json::Value;

use super::build;
use super::folders;
use crate::cluster::binaries::in_repository;
use crate::cluster::etcd::Etcd;
use crate::cluster::{self, ApiServer};

/// An `apiVersion` and a kind.
type Pair = (String, String);

/// Returns all that can be written to a server: what can be made and read again.
fn served(server: &ApiServer) -> BTreeSet<Pair> {
    let get = |path: &str| -> Value {
        serde_json::from_str(&server.kubectl_ok(&["get", "--raw", path])).expect("it is JSON")
    };
    let groups = get("/apis");
    let groups = groups["groups"].as_array().expect("there are some").iter();
    let versions = groups.flat_map(|group| group["versions"].as_array().cloned().unwrap_or_default());
    let versions = versions.map(|version| version["groupVersion"].as_str().unwrap_or_default().to_owned());
    let of_version = |version: String| {
        let path = if version == "v1" { "/api/v1".to_owned() } else { format!("/apis/{version}") };
        let can =
            |resource: &Value, verb: &str| resource["verbs"].as_array().is_some_and(|it| it.contains(&verb.into()));
        let resources = get(&path)["resources"].as_array().cloned().unwrap_or_default().into_iter();
        let resources = resources.filter(move |it| can(it, "create") && can(it, "get") && can(it, "delete"));
        let resources = resources.filter(|it| !it["name"].as_str().unwrap_or_default().contains('/'));
        resources.map(move |it| (version.clone(), it["kind"].as_str().unwrap_or_default().to_owned()))
    };
    ["v1".to_owned()].into_iter().chain(versions).flat_map(of_version).collect()
}

/// Returns what is in the table.
fn known() -> BTreeSet<Pair> {
    let text = fs::read_to_string(in_repository("crates/engine/src/kinds/served.yaml")).expect("it is there");
    let table = yaml::parse_values(&text).expect("it is YAML").pop().expect("there is one document");
    let mut pairs = BTreeSet::new();
    for (group, versions) in table.as_object().expect("it holds groups") {
        for (version, kinds) in versions.as_object().expect("a group has versions") {
            let version = if group == "core" { version.clone() } else { format!("{group}/{version}") };
            let kinds = kinds.as_array().expect("a version has kinds").iter().filter_map(Value::as_str);
            pairs.extend(kinds.map(|kind| (version.clone(), kind.to_owned())));
        }
    }
    pairs
}

#[test]
fn all_that_an_api_server_serves_is_known_and_what_is_stable_is_served() {
    let all =
        cluster::Options { args: vec!["--runtime-config=api/all=true".to_owned()], ..cluster::Options::default() };
    let api = ApiServer::start_on(&Arc::new(Etcd::start()), all);
    let (served, known) = (served(&api), known());
    assert!(served.contains(&("apps/v1".to_owned(), "Deployment".to_owned())), "{served:?}");
    let missing: Vec<&Pair> = served.difference(&known).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let is_stable = |(version, _): &&Pair| !version.contains("alpha") && !version.contains("beta");
    let invented: Vec<&Pair> = known.difference(&served).filter(is_stable).collect();
    assert!(invented.is_empty(), "{invented:?}");
}

#[test]
fn nothing_that_is_known_is_an_unknown_kind() {
    let packs = build(None, &folders(&gatewright_packs::all().into(), []).expect("there are none")).expect("they load");
    let document = |(index, (version, kind)): (usize, &Pair)| {
        format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a{index}}}\n---\n")
    };
    let text: String = known().iter().enumerate().map(document).collect();
    let options = Options { is_check: true, apply_unclaimed: true, ..Options::default() };
    let said = |text: &str| {
        let problems = unit::render(&Tree::from_iter([("a.yaml", text)]), &packs, &options).problems;
        let lines = problems.iter().map(ToString::to_string).filter(|line| line.ends_with("[GW042]"));
        lines.collect::<Vec<_>>()
    };
    assert_eq!(said(&text), [""; 0]);
    assert_eq!(said(&text.replace("kind: Deployment", "kind: Deploymnt")).len(), 1);
}
