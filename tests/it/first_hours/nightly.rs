//! Somebody who only wants a report of drift every night: rights to read, a config file with `mode: report`, the timer, the
//! reports, and what the exit codes say.

use std::fs;

use serde_json::json;

use crate::cluster::ApiServer;
use crate::cluster::binaries::in_repository;
use crate::program::Desk;
use crate::terminal::Terminal;

/// The command that the unit of the timer runs, with the config file of the desk.
fn of_the_unit() -> String {
    let unit = fs::read_to_string(in_repository("systemd/gatewright-report.service")).expect("the unit is there");
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("it starts something");
    line.replace("/etc/gatewright/gatewright.yaml", "gatewright.yaml")
}

#[test]
fn somebody_who_only_wants_a_nightly_report() {
    let server = ApiServer::start();
    let desk = Desk::example("report");
    // What is there was put there by somebody else.
    let theirs = Desk::quickstart("gatewright-kube.yaml");
    theirs.run_with(&server.kubeconfig("admin"), &["sync", "--no-wait"]).exits(0);
    let mut account = Terminal::new(&desk, &server.kubeconfig("admin"));
    terminal_of_the_example(&account);

    // Rights: exactly those that are printed, for a user who has none.
    let rbac = "gatewright rbac morning --read-only --user nobody | kubectl apply --server-side -f -";
    account.ok(rbac).says("serverside-applied");
    let written = account.ok("gatewright rbac morning --read-only --user nobody").out;
    for verb in ["create", "update", "patch", "delete"] {
        assert!(!written.contains(&format!("- {verb}\n")), "{verb} is no right to read: {written}");
    }
    account = Terminal::new(&desk, &server.kubeconfig("nobody"));
    let unit = of_the_unit();

    // The first night: nothing differs.
    account.ok("gatewright config check");
    account.ok("gatewright plan --detailed-exitcode").says("report: no differences, 12 objects up to date");
    account.run(&unit).exits(0);

    // The second night: somebody has been there.
    let patch = json!([{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 9090}]).to_string();
    server.kubectl_ok(&["patch", "service", "edge", "-n", "infra", "--type=json", "-p", &patch]);
    server.kubectl_ok(&["delete", "service", "storefront", "-n", "shop"]);
    let second = account.run(&unit).exits(2);
    let second = second.says("~ different Service infra/edge").says("last written by kubectl-patch");
    second.says("missing Service shop/storefront").says("(drift");
    let port = ["get", "service", "edge", "-n", "infra", "-o", "jsonpath={.spec.ports[0].targetPort}"];
    assert_eq!(server.kubectl_ok(&port), "9090", "it is told, and left as it is");

    // The reports, for people and for machines.
    let kept: Vec<_> = fs::read_dir(desk.path("state/reports")).expect("reports are kept").flatten().collect();
    assert!(kept.iter().any(|file| file.path().extension().is_some_and(|end| end == "html")), "{kept:?}");
    account.ok("gatewright report list").says("morning");
    account.ok("gatewright report show latest").says("different Service infra/edge");
    account.ok("gatewright report show morning --format html > drift.html");
    assert!(desk.read("drift.html").starts_with("<!doctype html>") || desk.read("drift.html").starts_with("<!DOCTYPE"));
    account.ok("gatewright plan --format junit > drift.xml");
    let junit = desk.read("drift.xml");
    assert!(junit.contains("<testsuites") && junit.contains("Service infra/edge"), "{junit}");
    account.ok("gatewright plan --format markdown").says("Service infra/edge");

    // The third night: still there is not new, and what was put right is resolved.
    server.kubectl_ok(&["delete", "service", "edge", "-n", "infra"]);
    theirs.run_with(&server.kubeconfig("admin"), &["sync", "--no-wait"]).exits(0);
    account.run(&unit).exits(0).says("resolved");
    account.ok("gatewright report diff latest --detailed-exitcode");

    // A cluster that is away is no drift.
    account.ok("sed \"s/127.0.0.1:[0-9]*/127.0.0.1:1/\" \"$KUBECONFIG\" > away.yaml");
    account.run(&format!("KUBECONFIG=away.yaml {unit}")).exits(4).says("unreachable");

    the_timer_is_one(&account);
}

/// The example compares with the quick start beside it.
fn terminal_of_the_example(terminal: &Terminal<'_>) {
    terminal.ok("sed -i 's|path: ../quickstart/specs|path: ./specs|' gatewright.yaml");
    for file in ["class.yaml", "infra/gateways.yaml", "shop/storefront.yaml"] {
        let text = fs::read_to_string(in_repository("examples/quickstart/specs").join(file));
        terminal.write(&format!("specs/{file}"), &text.expect("the quick start is there"));
    }
}

/// The timer comes once a day, and at the time of the page.
fn the_timer_is_one(terminal: &Terminal<'_>) {
    let timer = fs::read_to_string(in_repository("systemd/gatewright-report.timer")).expect("the timer is there");
    let when = timer.lines().find_map(|line| line.strip_prefix("OnCalendar=")).expect("it has a time").to_owned();
    for time in [when.as_str(), "Mon *-*-* 07:30 Europe/Berlin"] {
        terminal.ok(&format!("systemd-analyze calendar '{time}'")).says("Next elapse");
    }
}
