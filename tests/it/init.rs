//! `gatewright init`: a first config file, and the mistakes that are made with it.

use crate::cluster::shared;
use crate::errors::gateway;
use crate::program::{Desk, Run};

/// Runs the program as somebody does who has no config file; nobody is asked, because there is no terminal.
fn run(desk: &Desk, arguments: &[&str]) -> Run {
    Run::of(desk.without_config(arguments).output().expect("the program starts"))
}

fn init(desk: &Desk, arguments: &[&str]) -> Run {
    let kubeconfig = shared().kubeconfig("admin");
    run(desk, &[&["init", "--kubeconfig", kubeconfig.to_str().expect("it is text")], arguments].concat())
}

#[test]
fn a_first_config_file_plans_at_once_and_changes_nothing() {
    let desk = Desk::empty("gatewright.yaml");
    init(&desk, &[])
        .exits(0)
        .says("wrote ./gatewright.yaml\n")
        .says("put Gateways into ./specs, then\n  gatewright plan ");
    assert!(desk.path("specs").is_dir());
    desk.write("specs/edge.yaml", &gateway("default", "edge-of-init", 8080));
    run(&desk, &["config", "check"]).exits(0);
    run(&desk, &["plan"]).exits(0).says("missing Service default/edge-of-init").says("report: ");
    run(&desk, &["sync"]).exits(0).says("report: ");
    assert!(!shared().kubectl(&["get", "service", "edge-of-init"]).status.success(), "it compares only");
}

#[test]
fn what_was_said_stands_in_the_file() {
    let desk = Desk::empty("gatewright.yaml");
    let url = "https://git.example.com/gateways.git";
    let run = init(&desk, &["fleet", "--source", url, "--ref", "main", "--name", "eu-1", "--mode", "apply", "--yes"]);
    run.exits(0)
        .says("commit Gateways to the repository")
        .says("gatewright sync --config fleet/gatewright.yaml  applies");
    let config = desk.read("fleet/gatewright.yaml");
    for part in
        [r#"{"git":{"ref":{"branch":"main"},"url":"https://git.example.com/gateways.git"}}"#, "eu-1", "mode: apply"]
    {
        assert!(config.contains(part), "{part} in\n{config}");
    }
    assert!(!desk.path("fleet/specs").exists() && !desk.path("gatewright.yaml").exists());
}

#[test]
fn a_mistake_says_what_to_do_and_writes_nothing() {
    let desk = Desk::empty("gatewright.yaml");
    desk.write("gateways/edge.yaml", "");
    let cases: [(&[&str], &str, &str); 6] = [
        (&["--name", "EU 1"], "\"EU 1\" cannot be the name of a cluster", "lower-case letters"),
        (&["--source", "gatways"], "there is no folder ./gatways", "did you mean \"./gateways\"?"),
        (&["--source", "gateways", "--ref", "main"], "--ref is a branch of a git repository", "URL of the repository"),
        (&["--mode", "aply"], "invalid value 'aply'", "report, apply"),
        (&["--context", "prod"], "it has no context \"prod\"", ""),
        (&["--source", "https://ada:hidden-1@git.example.com/a.git"], "", ""),
    ];
    for (arguments, message, hint) in cases {
        let run = init(&desk, arguments).exits(64);
        assert!(run.err.contains(message) && run.err.contains(hint), "{arguments:?}: {}", run.err);
        assert!(!run.err.contains("hidden-1"), "{}", run.err);
        assert!(!desk.path("gatewright.yaml").exists() && !desk.path("specs").exists(), "{arguments:?}");
    }
    desk.write("gatewright.yaml", "mine");
    init(&desk, &["--yes"]).exits(64).complains("there is a ./gatewright.yaml already").complains("config check");
    assert_eq!(desk.read("gatewright.yaml"), "mine");
}
