//! `gatewright simulate`: what it says is the same each time, follows from its model, and agrees with real API servers.

mod model;

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::cluster::audit::{Audited, Request};
use crate::commands::obeys;
use crate::program::Desk;

/// Runs a simulation, and returns what it says as JSON.
fn simulated(desk: &Desk, arguments: &[&str], code: i32) -> Value {
    let run = desk.run(&[&["simulate", "--format", "json"], arguments].concat()).exits(code);
    let outcome = serde_json::from_str(&run.out).expect("it prints JSON");
    obeys("simulation-v1alpha1", &outcome);
    outcome
}

fn desk() -> Desk {
    Desk::empty("other.yaml")
}

/// A phase without what a busy machine changes.
fn phase(outcome: &Value, name: &str) -> Value {
    let phases = outcome["phases"].as_array().expect("there are phases");
    let mut phase = phases.iter().find(|phase| phase["name"] == name).expect("there is this phase").clone();
    (phase["cpu"], phase["peakMemory"]) = (Value::Null, Value::Null);
    phase
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("it is a number")
}

#[test]
fn the_same_seed_gives_the_same_outcome_and_another_one_another() {
    let desk = desk();
    let fleet = ["--clusters", "8", "--gateways", "2", "--unreachable", "1", "--throttled", "1", "--errors", "20"];
    let run = |seed: &str| simulated(&desk, &[&fleet[..], &["--seed", seed]].concat(), 0);
    let (first, again, other) = (run("1"), run("1"), run("2"));
    for name in ["first apply", "no change", "another image"] {
        assert_eq!(phase(&first, name), phase(&again, name), "{name}");
    }
    assert_ne!(phase(&first, "first apply"), phase(&other, "first apply"));
    assert!(phase(&first, "first apply")["errors"].as_u64() > Some(0), "{first}");
    let lost = &phase(&first, "no change")["slowest"][0];
    assert_eq!((&lost["took"], &lost["reasons"][0]), (&Value::Null, &"unreachable".into()), "{lost}");
}

#[test]
fn clusters_with_a_fault_slow_down_no_other() {
    let desk = desk();
    let fleet = ["--clusters", "20", "--gateways", "1"];
    let sound = simulated(&desk, &fleet, 0);
    let faults = ["--unreachable", "2", "--throttled", "2", "--slow", "2"];
    let ill = simulated(&desk, &[&fleet[..], &faults[..]].concat(), 0);
    // The very first round on a cluster waits some seconds for all others to say who they are.
    for name in ["no change", "another image"] {
        let with = phase(&ill, name);
        assert_eq!((with["clusters"].as_u64(), with["converged"].as_u64()), (Some(20), Some(18)), "{with}");
    }
    // Each sound one takes as long as it does without the others; a change waits for the schedule, and for its first cluster.
    let max = |outcome: &Value| number(&phase(outcome, "no change")["sound"]["max"]);
    assert!(max(&ill) <= max(&sound) * 1.01, "{} and {}", max(&ill), max(&sound));
}

#[test]
fn a_change_goes_through_waves_and_a_deletion_is_done() {
    let desk = desk();
    let waves = simulated(&desk, &["--clusters", "6", "--gateways", "2", "--waves", "20,40"], 0);
    let change = phase(&waves, "another image");
    assert_eq!((change["converged"].as_u64(), waves["plan"]["clusters"].as_u64()), (Some(6), Some(6)), "{waves}");
    let all = simulated(&desk, &["--clusters", "6", "--gateways", "2"], 0);
    let max = |outcome: &Value| number(&phase(outcome, "another image")["sound"]["max"]);
    assert!(max(&waves) > max(&all), "three waves take longer than one cluster and the rest");
    let delete = simulated(&desk, &["--clusters", "3", "--gateways", "6", "--change", "delete"], 0);
    let change = phase(&delete, "one Gateway less");
    assert!(change["requests"]["delete"].as_u64() >= Some(9), "{change}");
    assert_eq!(delete["objects"].as_u64().map(|objects| objects % 3), Some(0), "all clusters have the same");
}

#[test]
fn what_cannot_be_simulated_is_said_and_nothing_is_left_behind() {
    let desk = desk();
    desk.run(&["simulate"]).exits(64).complains("cannot read the config file");
    desk.run(&["simulate", "--gateways", "3"]).exits(64).complains("--clusters");
    desk.run(&["simulate", "--clusters", "2", "--unreachable", "3"]).exits(64).complains("more clusters have a fault");
    let temporary = desk.path("temporary");
    fs::create_dir(&temporary).expect("a new folder can be made");
    let run = desk.command(&["simulate", "--clusters", "2", "--gateways", "1"]).env("TMPDIR", &temporary).output();
    assert!(run.expect("the program starts").status.success());
    assert_eq!(fs::read_dir(&temporary).map(Iterator::count).ok(), Some(0));
}

/// Requests by the verb of the simulation.
fn by_verb(requests: &[Request]) -> BTreeMap<&'static str, u64> {
    let mut counted = BTreeMap::new();
    for request in requests {
        let verb = match request.verb.as_str() {
            "patch" if request.is_dry_run() => "dry-run",
            "patch" => "patch",
            "delete" => "delete",
            "create" | "update" => "write",
            "list" => "list",
            _ => "get",
        };
        *counted.entry(verb).or_default() += 1;
    }
    counted
}

/// Requests of a simulated phase, with both sorts of lists as one.
fn of_phase(phase: &Value) -> BTreeMap<&'static str, u64> {
    let of = |verb: &str| phase["requests"][verb].as_u64().unwrap_or_default();
    let all = [
        ("get", of("get")),
        ("list", of("list") + of("list-metadata")),
        ("dry-run", of("dry-run")),
        ("patch", of("patch")),
        ("write", of("write")),
        ("delete", of("delete")),
    ];
    all.into_iter().filter(|(_, number)| *number > 0).collect()
}

#[test]
fn the_same_config_file_makes_the_same_requests_on_a_real_api_server() {
    let api = Audited::start();
    let desk = Desk::empty("gatewright.yaml");
    let config = format!(
        "stateDir: state\nsources: {{specs: {{directory: {{path: specs, settle: 0s}}}}}}\n\
         clusters: {{c: {{kubeconfig: {{path: {}}}}}}}\n\
         syncs: {{gateways: {{source: specs, clusters: {{names: [c]}}, targetNamespace: default, wait: {{enabled: false}}}}}}\n",
        api.server.kubeconfig("admin").display()
    );
    desk.write("gatewright.yaml", &config);
    for number in 0..12 {
        let gateway = format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{name: g{number}}}\n\
             spec: {{gatewayClassName: kgateway, listeners: [{{name: http, port: 8080, protocol: HTTP}}]}}\n"
        );
        desk.write(&format!("specs/g{number}.yaml"), &gateway);
    }
    let outcome = simulated(&desk, &[], 0);
    assert!(!desk.path("state").exists(), "a simulation leaves the state of the daemon alone");
    desk.run(&["sync", "--yes"]).exits(0);
    let first = api.requests();
    assert_eq!(of_phase(&phase(&outcome, "first apply")), by_verb(&first));
}
