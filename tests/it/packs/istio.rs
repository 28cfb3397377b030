//! The page about a pack for Istio's gateway: what it renders is taken by a real API server, and what it says of drift
//! reports is so.

use std::fs;

use super::{Desk, follow, kinds};
use crate::cluster::binaries::in_repository;
use crate::cluster::{ApiServer, unique};

const PAGE: &str = "docs/packs-istio.md";

/// Builds the pack of the page.
fn built() -> Desk {
    let desk = Desk::new();
    let (files, commands) = follow(&desk, PAGE);
    assert!(files >= 8 && commands >= 7, "the page has {files} files and {commands} commands");
    desk
}

#[test]
fn an_api_server_takes_all_objects_of_the_pack_for_istio() {
    let desk = built();
    let made = ["ServiceAccount", "Service", "Deployment", "HorizontalPodAutoscaler", "PodDisruptionBudget"];
    let mut kinds = kinds(&desk, "istio");
    kinds.sort_by_key(|kind| made.iter().position(|made| made == kind));
    assert_eq!(kinds, made);
    let server = ApiServer::start();
    let namespace = unique("istio");
    server.kubectl_ok(&["create", "namespace", &namespace]);
    let case = "packs/istio/cases/a_gateway/in";
    let arguments = ["--packs", "packs", "render", "--target-namespace", &namespace, case];
    let (code, objects, complaints) = desk.run(&arguments);
    assert_eq!((code, complaints.as_str()), (0, ""));
    let arguments = ["apply", "--server-side", "--dry-run=server", "--validate=strict", "-o", "name", "-f", "-"];
    let taken = server.kubectl_stdin(&arguments, &objects);
    assert_eq!(taken.lines().count(), made.len(), "{taken}");
    for name in ["deployment.apps/edge-istio", "service/edge-istio", "serviceaccount/edge-istio"] {
        assert!(taken.contains(name), "{taken}");
    }
}

#[test]
fn a_drift_report_tells_what_istio_has_made_for_a_gateway_that_is_gone() {
    let desk = built();
    let server = ApiServer::start();
    server.kubectl_ok(&["create", "namespace", "infra"]);
    // As Istio has made it: the same objects, under the name of another Gateway.
    let (code, objects, _) = desk.run(&["--packs", "packs", "render", "packs/istio/cases/a_gateway/in"]);
    assert_eq!(code, 0);
    let old = objects.replace("edge", "old");
    let deployment = old.split("---\n").find(|object| object.contains("kind: Deployment")).expect("it is rendered");
    let apply = ["apply", "--server-side", "--field-manager", "istio.io/gateway-controller", "-f", "-"];
    server.kubectl_stdin(&apply, deployment);
    let (_, out, complaints) =
        desk.run_on(&server.kubeconfig("admin"), &["--config", "gatewright.yaml", "sync", "istio"]);
    let page = fs::read_to_string(in_repository(PAGE)).expect("the page is there");
    let (_, said) = page.split_once("$ gatewright sync istio\n").expect("the page shows a report");
    let (said, _) = said.split_once("```").expect("it ends");
    for line in said.lines() {
        assert!(out.contains(line), "{line}\nis not in\n{out}\n{complaints}");
    }
}
