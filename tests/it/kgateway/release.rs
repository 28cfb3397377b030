//! Back again: what was adopted from it goes back to it, and nothing moves.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::{deployed_on, scaled, with_parameters};
use crate::cluster::proxy::{Answer, Proxy, Seen};
use crate::deployer::after_a_report;
use crate::ownership::site::Site;
use crate::program::Desk;
use crate::specs::control_plane::{MANAGER, gateway, server};
use crate::support::kgateway::{Addresses, Controller, identities};

const LABEL: &str = "gateway.networking.k8s.io/gateway-name";
const MANAGED: &str = "gatewright.dev/managed";
const KINDS: [&str; 6] = ["serviceaccount", "configmap", "service", "deployment", "hpa", "pdb"];

/// A Gateway with an address that kgateway has deployed and that was adopted.
fn adopted(parameters: &Value) -> (Site, Controller) {
    let site = Site::on(server(), "specs: apply");
    let config = site.desk.read("gatewright.yaml");
    site.desk.write("gatewright.yaml", &format!("{config}packs: {{kgateway: {{managedBy: kgateway}}}}\n"));
    let controller = deployed_on(&site, parameters);
    // Its pods are there before anybody compares what there is.
    site.kubectl(&["rollout", "status", "deployment/edge", "--timeout=300s"]);
    server().give_ingress(&site.name, "edge", &["192.0.2.10"]);
    controller.settle();
    leave(&site, parameters, false);
    site.run(&["adopt"]).exits(0);
    controller.settle();
    (site, controller)
}

/// Writes the source, which leaves the Gateway to its deployer or does not.
fn leave(site: &Site, parameters: &Value, is_left: bool) {
    let [own, mut gateway] = with_parameters(site, "edge", parameters);
    if is_left {
        gateway["metadata"]["annotations"] = json!({MANAGED: "false"});
    }
    site.spec("edge", &format!("{own}\n---\n{gateway}"));
}

fn unit(site: &Site) -> String {
    format!("Gateway/{}/edge", site.name)
}

/// Says all that must be so when a Gateway is its deployer's again.
fn is_the_deployers(site: &Site) {
    let gateway = site.get("gateway/edge");
    assert_eq!(gateway["spec"]["infrastructure"]["parametersRef"]["name"], "edge");
    assert_eq!(gateway["spec"].get("addresses"), None);
    for kind in KINDS {
        let object = site.get(&format!("{kind}/edge"));
        let owners = object["metadata"]["ownerReferences"].as_array().expect("it has an owner");
        assert_eq!(owners.len(), 1, "{kind}");
        assert_eq!(
            (&owners[0]["uid"], &owners[0]["controller"]),
            (&gateway["metadata"]["uid"], &json!(true)),
            "{kind}"
        );
        is_rid_of_us(&object);
        let entries = object["metadata"]["managedFields"].as_array().expect("it has managers");
        let appliers = entries.iter().filter(|entry| entry["operation"] == "Apply").map(|entry| &entry["manager"]);
        assert_eq!(appliers.collect::<Vec<_>>(), [MANAGER], "{kind}");
        assert_eq!(object["metadata"]["labels"][LABEL], "edge", "{kind}");
    }
    is_rid_of_us(&gateway);
    assert_eq!(site.kubectl(&["get", "gatewayparameters", "-o", "name"]).lines().count(), 1);
    let unit = unit(site);
    assert!(site.inventory().entries.values().all(|entry| entry.unit.path() != unit));
}

fn is_rid_of_us(object: &Value) {
    let mut metadata = object["metadata"].clone();
    let entries = metadata["managedFields"].take();
    assert!(!metadata.to_string().contains("gatewright.dev/"), "{metadata}");
    assert!(!entries.to_string().contains("\"gatewright"), "{entries}");
    assert!(!entries.to_string().contains("f:gatewright.dev/"), "{entries}");
}

#[test]
fn a_gateway_goes_back_to_its_deployer_and_comes_again() {
    let (site, controller) = adopted(&scaled());
    let (unit, before) = (unit(&site), identities(server(), &site.name));
    let watch = Addresses::watch(server(), &site.name, "edge");
    let release = |more: &[&str]| site.run(&[&["release", unit.as_str()], more].concat());

    // The source says it first, and nothing happens by that alone.
    release(&["--yes"]).exits(3).complains(&format!("{unit} is still wanted: edge.yaml:")).complains(MANAGED);
    leave(&site, &scaled(), true);
    let hint = format!("kept: the source releases it: run `gatewright release {unit}`");
    site.sync().exits(0).says(&hint);
    let versions = site.versions();
    let dry_run = release(&["--dry-run"]).exits(0).says(&format!("goes back to {MANAGER}"));
    dry_run
        .says("8 objects to update, 1 object to prune")
        .says(&format!("prune GatewayParameters {}/edge-self", site.name));
    release(&[]).exits(64).complains("nobody can be asked");
    assert_eq!(site.versions(), versions);

    let run = release(&["--yes"]).exits(0).says("8 objects updated, 1 object deleted");
    controller.settle();
    assert_eq!(identities(server(), &site.name), before);
    is_the_deployers(&site);
    release(&["--yes"]).exits(0).says("no changes");
    site.sync().exits(0).says(&format!("{MANAGED} leaves it to {MANAGER}"));
    site.run(&["status"]).exits(0).says(&format!("{MANAGED} leaves it to {MANAGER}"));
    is_the_deployers(&site);

    // It is on record, and the way back is another.
    let name = run.out.lines().last().and_then(|line| line.strip_prefix("run ")).expect("it has a name").to_owned();
    site.run(&["undo"]).exits(0).says(&format!("release 9  {name}"));
    site.run(&["undo", &name]).exits(3).says("it was released; `gatewright adopt` takes it back");
    site.run(&["history"]).exits(0).says("prune 1, update 8");

    leave(&site, &scaled(), false);
    site.run(&["adopt"]).exits(0);
    controller.settle();
    assert_eq!(identities(server(), &site.name), before);
    assert_eq!((controller.deletions(), controller.failures()), (Vec::new(), Vec::new()));
    let states: BTreeSet<Vec<String>> = watch.seen().into_iter().collect();
    assert_eq!(states, BTreeSet::from([vec!["192.0.2.10".to_owned()]]), "the address never goes");
    site.sync().exits(0).says("no changes");
}

/// Each process is killed when it has written a little; the next one goes on.
#[test]
fn a_release_may_be_killed_between_any_two_requests() {
    let parameters = scaled();
    let (site, controller) = adopted(&parameters);
    let before = identities(server(), &site.name);
    leave(&site, &parameters, true);
    site.desk.replace("gatewright.yaml", "kubeconfig: {}", "kubeconfig: {allowInsecureTls: true}");
    let watch = Addresses::watch(server(), &site.name, "edge");
    let mut killed = 0;
    while is_killed(&site, 1 + killed % 3) {
        killed += 1;
        assert!(killed < 60, "it comes to an end");
        controller.reconcile_all();
        assert_eq!(identities(server(), &site.name), before, "after {killed}");
        if killed % 4 == 0 {
            site.sync().exits(0).says("no changes");
        }
    }
    assert!(killed >= 6, "{killed}");
    controller.settle();
    is_the_deployers(&site);
    assert_eq!(identities(server(), &site.name), before);
    assert_eq!(controller.deletions(), []);
    assert_eq!(watch.seen(), [["192.0.2.10".to_owned()]]);
}

/// Runs a release that is killed before it writes once more than so often; tells whether it came to that.
fn is_killed(site: &Site, writes: usize) -> bool {
    let proxy = Proxy::start(site.server);
    let mut number = 0;
    let is_last = move |seen: &Seen| {
        number += usize::from(seen.is_write());
        seen.is_write() && number > writes
    };
    proxy.answer(1, is_last, Answer::Silent);
    let unit = unit(site);
    let mut command = site.desk.command(&["release", &unit, "--yes"]);
    let said = site.desk.path("said");
    let file = fs::File::create(&said).expect("the folder can be written");
    let both = file.try_clone().expect("a file can be shared");
    command.env("KUBECONFIG", proxy.kubeconfig()).stdout(file).stderr(both);
    let mut child = command.spawn().expect("the program starts");
    loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            assert_eq!(status.code(), Some(0), "{}", site.desk.read("said"));
            return false;
        }
        if proxy.left() == 0 {
            child.kill().expect("it is our child");
            child.wait().expect("it is our child");
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Controllers report all the time, also between the look at an object and its dry run.
#[test]
fn what_moves_while_it_is_dry_run_is_looked_at_again() {
    let (site, _controller) = adopted(&scaled());
    leave(&site, &scaled(), true);
    site.desk.replace("gatewright.yaml", "kubeconfig: {}", "kubeconfig: {allowInsecureTls: true}");
    let proxy = Proxy::start(site.server);
    let unit = unit(&site);
    let release = || site.desk.run_with(&proxy.kubeconfig(), &["release", &unit, "--dry-run"]);
    let is_dry_run = |seen: &Seen| seen.is("PATCH", "/deployments/edge?") && seen.path.contains("dryRun=All");

    proxy.answer(2, is_dry_run, after_a_report(site.server, &site.name));
    release().exits(0).says(&format!("goes back to {MANAGER}"));
    let refused = proxy.seen().iter().filter(|seen| is_dry_run(seen) && seen.code == Some(409)).count();
    assert_eq!((proxy.left(), refused), (0, 2));

    // One that never rests is no reason to go on for ever.
    proxy.answer(99, is_dry_run, after_a_report(site.server, &site.name));
    release().exits(1).says("deployments.apps \"edge\": the object has been modified");
}

#[test]
fn what_would_move_by_it_does_not_go_back() {
    let parameters = json!({"kube": {"podDisruptionBudget": {"spec": {"minAvailable": 1}}}});
    let (site, _controller) = adopted(&parameters);
    leave(&site, &parameters, true);
    let unit = unit(&site);
    let release = || site.run(&["release", &unit, "--yes"]);
    let versions = site.versions();

    // The settings say of which release the deployer is.
    site.desk.replace("gatewright.yaml", "managedBy: kgateway", "managedBy: kgateway, version: v9.9.9");
    release().exits(3).says(&format!("not released: {MANAGER} would change spec.template")).says("no changes");
    site.desk.replace("gatewright.yaml", ", version: v9.9.9", "");
    let config = site.desk.read("gatewright.yaml");
    let other = "packOverrides: [{clusters: {names: [c]}, packs: {kgateway: {version: v9.9.9}}}]\n";
    site.desk.write("gatewright.yaml", &(config.clone() + other));
    release().exits(3).says(&format!("not released: {MANAGER} would change spec.template")).says("no changes");
    site.desk.write("gatewright.yaml", &config);

    // What a layer of ours has made the deployer would not.
    let patch = r#"[{"op": "remove", "path": "/spec/kube/podDisruptionBudget"}]"#;
    site.kubectl(&["patch", "gatewayparameters/edge", "--type=json", "-p", patch]);
    let refusal = format!("PodDisruptionBudget {}/edge: not released: {MANAGER} would not make it", site.name);
    release().exits(3).says(&refusal);
    site.kubectl(&["delete", "gatewayparameters/edge"]);
    release().exits(3).says("not released: from what is on the cluster nothing can be rendered");
    assert_eq!(site.versions(), versions);
    let gateway = site.get("gateway/edge");
    assert_eq!(gateway["spec"]["infrastructure"]["parametersRef"]["name"], "edge-self-managed");
    site.run(&["release", "Gateway/x/none"]).exits(64).complains("is in no source of these syncs");
}

#[test]
fn in_a_directory_there_is_no_deployer() {
    let desk = Desk::quickstart("gatewright.yaml");
    let run = desk.run(&["release", "Gateway/infra/edge", "--yes"]);
    run.exits(64).complains("goes to directories alone, and no deployer can have it back there");
}

/// A person who means no and writes it in another way would see the Gateway changed.
#[test]
fn what_is_neither_yes_nor_no_holds_the_gateway() {
    let desk = Desk::empty("gatewright.yaml");
    desk.write("gatewright.yaml", "stateDir: ./state\n");
    for (value, is_fine) in [(json!("true"), true), (json!("False"), false), (json!("no"), false), (json!(""), false)] {
        let mut gateway = gateway("infra", "edge", 8080);
        gateway["metadata"]["annotations"] = json!({MANAGED: value});
        desk.write("specs/edge.yaml", &serde_json::to_string_pretty(&gateway).expect("it is JSON"));
        let run = desk.run(&["check", "specs"]);
        let line = run.err.lines().find(|line| line.contains(": error: Gateway infra/edge"));
        assert_eq!(run.code == 0, is_fine, "{value}: {}", run.err);
        assert_eq!(line.is_some_and(|line| line.starts_with("specs/edge.yaml:6:")), !is_fine, "{}", run.err);
    }
}
