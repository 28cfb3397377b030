//! Kinds that a cluster loses, and servers that cannot dry-run.

use std::collections::BTreeSet;

use serde_json::json;

use super::{Place, all_of};
use crate::cluster::proxy::{Answer, Seen};
use crate::cluster::unique;

/// So many requests are under way at once.
const MOST_UNDER_WAY: usize = 8;

const ALWAYS: usize = usize::MAX / 4;

/// A server without server-side apply, or without dry runs, must not be taken for one that has dry-run.
#[test]
fn a_server_that_cannot_dry_run_gets_no_write() {
    let place = Place::with("edge");
    place.site.want(&["edge"], 81);
    let before = place.site.versions();
    for (code, says) in
        [(400, "the dryRun feature is disabled"), (415, "the body of the request was in an unknown format")]
    {
        place.proxy.answer(ALWAYS, |seen| seen.path.contains("dryRun=All"), Answer::Refused(code, says));
        place.run(&["plan"]).exits(1).says(says);
        place.sync().exits(1).says(says);
        assert_eq!(place.proxy.carried_out(), [""; 0]);
        place.proxy.recovers();
    }
    assert_eq!(place.site.versions(), before);
    place.sync().exits(0).says("2 objects updated");
    place.is_settled("edge");
}

/// A server that takes no notice of `dryRun` carries out a dry run. That is noticed at once.
#[test]
fn a_server_that_carries_out_dry_runs_is_found_out() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let place = Place::with("edge");
    place.site.want(&names, 80);
    place.sync().exits(0).says("24 objects created");
    place.site.want(&names, 81);
    place.site.want(&["edge", "new"], 81);
    place.site.drop(&["a"]);
    for arguments in [["plan"], ["sync"]] {
        let before = place.site.versions();
        place.proxy.recovers();
        place.proxy.answer(ALWAYS, |seen| seen.path.contains("dryRun=All"), Answer::DryRunIgnored);
        let run = place.run(&arguments).exits(1);
        run.says("was written by a request that was only to be a dry run").says("look for what drops dryRun");
        let after = place.site.versions();
        let written = after.iter().filter(|(object, version)| before.get(*object) != Some(version)).count();
        assert!((1..=MOST_UNDER_WAY).contains(&written), "{written} objects were written");
        assert!(before.keys().all(|object| after.contains_key(object)), "nothing was deleted");
        assert_eq!(place.proxy.carried_out(), [""; 0]);
    }
    place.proxy.recovers();
    place.site.want(&["edge", "newer"], 82);
    place.run(&["plan"]).exits(0).says(" objects to create").says(" objects to update");
    let asked: Vec<String> = place.proxy.seen().iter().map(|seen| format!("{} {}", seen.method, seen.path)).collect();
    let different: BTreeSet<&String> = asked.iter().collect();
    assert_eq!(different.len(), asked.len(), "a dry run that is one needs no second look: {asked:?}");
    place.sync().exits(0).says("4 objects deleted");
    place.is_settled("edge");
    place.is_settled("new");
}

/// The definition of a kind of our own.
fn definition(group: &str) -> String {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("gadgets.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": "gadgets", "kind": "Gadget"},
            "versions": [version],
        },
    })
    .to_string()
}

#[test]
fn a_kind_that_goes_and_comes_back_loses_nothing_and_holds_nobody_else() {
    let place = Place::new("unclaimed: apply");
    let (server, group) = (place.site.server, format!("{}.example.com", unique("gone")));
    let install = || {
        server.kubectl_stdin(&["create", "-f", "-"], &definition(&group));
        server.await_kind(&format!("gadgets.{group}"));
    };
    let has_gadget = |entry: &gatewright_engine::object::ObjectId| entry.kind == "Gadget";
    let owned = || place.site.inventory().entries.keys().filter(|id| has_gadget(id)).count();
    install();
    let metadata = json!({"name": "a", "namespace": place.site.name});
    let gadget =
        json!({"apiVersion": format!("{group}/v1"), "kind": "Gadget", "metadata": metadata, "spec": {"size": 1}});
    place.site.spec("gadget", &gadget.to_string());
    place.site.want(&["edge"], 80);
    place.sync().exits(0).says("5 objects created");

    server.kubectl_ok(&["delete", "crd", &format!("gadgets.{group}")]);
    place.site.want(&["edge"], 81);
    place.proxy.recovers();
    place.sync().exits(1).says(&format!("the cluster has no {group}/v1 Gadget")).says("2 objects updated");
    place.did("PATCH", &["services/edge", "deployments/edge"]);
    assert_eq!(owned(), 1);

    // Not even when it is not wanted any more: its kind may be out of order only.
    place.site.drop(&["gadget"]);
    place.proxy.recovers();
    place.sync().says(&format!("the cluster has no {group}/v1 Gadget"));
    place.did("DELETE", &[]);
    assert_eq!(owned(), 1);

    install();
    place.sync().exits(0);
    assert_eq!(owned(), 0, "it is known to be gone");
    assert_eq!(place.site.left_of("edge").len(), 4);
}

/// The server knows the kind, and a part of it does not answer: what uses other kinds is not touched by that.
#[test]
fn a_list_that_fails_for_one_kind_deletes_nothing_of_it() {
    let place = Place::with("edge");
    place.site.want(&["other"], 80);
    place.sync().exits(0).says("4 objects created");
    place.site.drop(&["edge"]);
    place.proxy.recovers();
    let is_about =
        |seen: &Seen| seen.method == "GET" && seen.path.contains("/configmaps") && !seen.path.contains("system");
    place.proxy.answer(ALWAYS, is_about, Answer::Refused(403, "somebody took the right away"));
    place.sync().exits(1).says("somebody took the right away");
    assert!(place.site.left_of("edge").contains(&"ConfigMap".to_owned()), "what cannot be seen is not deleted");
    assert!(!place.proxy.carried_out().iter().any(|line| line.contains("/configmaps/")));
    place.proxy.recovers();
    place.sync().exits(0);
    assert_eq!(place.site.left_of("edge"), [""; 0]);
    assert_eq!(place.site.left_of("other").len(), all_of("other").len());
}

/// A group whose server is down, as the one of metrics often is.
#[test]
fn a_group_that_does_not_answer_holds_only_what_is_of_it() {
    let place = Place::with("edge");
    let (server, group) = (place.site.server, format!("{}.example.com", unique("dead")));
    let service = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": format!("v1.{group}")},
        "spec": {
            "group": group, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "insecureSkipTLSVerify": true, "service": {"name": "nobody", "namespace": place.site.name},
        },
    });
    server.kubectl_stdin(&["create", "--validate=false", "-f", "-"], &service.to_string());
    let is_down = || !server.kubectl(&["get", "--raw", &format!("/apis/{group}/v1")]).status.success();
    assert!(is_down());
    place.configure("unclaimed: apply");
    let metadata = json!({"name": "a", "namespace": place.site.name});
    let gadget = json!({"apiVersion": format!("{group}/v1"), "kind": "Gadget", "metadata": metadata});
    place.site.spec("gadget", &gadget.to_string());
    place.site.want(&["edge"], 81);
    let run = place.sync();
    server.kubectl_ok(&["delete", "apiservice", &format!("v1.{group}")]);
    run.exits(1).says(&group).says("2 objects updated");
    place.did("PATCH", &["services/edge", "deployments/edge"]);
}
