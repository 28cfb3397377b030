//! Credential plugins, and kubeconfigs that want them to run something else.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::errors::{desk, folder, gateway};
use crate::program::{Desk, Run};

const VERSION: &str = "client.authentication.k8s.io/v1";

/// A desk with an `aws` that is ours and another one, each of which leaves its name behind.
fn plugins(settings: &str) -> Desk {
    let entry = format!("{{kubeconfig: {{path: kubeconfig, exec: {settings}}}}}");
    let desk = desk("gateways", &[("eks", entry), ("fine", folder())]);
    desk.write("specs/a.yaml", &gateway("shop", "a", 8080));
    for whose in ["ours", "theirs"] {
        let path = format!("{whose}/aws");
        let ran = desk.path("ran");
        desk.write(&path, &format!("#!/bin/sh\necho \"{whose} $AWS_PROFILE $*\" >> {}\nexit 3\n", ran.display()));
        fs::set_permissions(desk.path(&path), fs::Permissions::from_mode(0o755)).expect("it is ours");
    }
    desk
}

/// Runs a plan with a kubeconfig that says this of its plugin, and returns what ran.
fn plan(desk: &Desk, command: &str, args: &[&str], env: &[(&str, String)]) -> (Run, String) {
    let env: Vec<Value> = env.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    let exec = json!({"apiVersion": VERSION, "command": command, "args": args, "env": env, "interactiveMode": "Never"});
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "c", "user": {"exec": exec}}],
    });
    desk.write("kubeconfig", &kubeconfig.to_string());
    let path = format!("{}:/usr/bin:/bin", desk.path("ours").display());
    let run = Run::of(desk.command(&["plan"]).env("PATH", path).output().expect("the program starts"));
    let ran = fs::read_to_string(desk.path("ran")).unwrap_or_default();
    let _gone = fs::remove_file(desk.path("ran"));
    (run, ran)
}

#[test]
fn an_allowed_plugin_is_the_one_on_our_own_path() {
    let desk = plugins("{allow: [aws]}");
    let theirs = desk.path("theirs").display().to_string();
    let (run, ran) = plan(&desk, "aws", &["eks"], &[("PATH", theirs.clone())]);
    assert_eq!(ran, "", "neither runs");
    run.exits(1)
        .says("the kubeconfig may not set \"PATH\" for its credential plugin")
        .says("or add it to clusters.eks.kubeconfig.exec.env")
        .says("cluster fine");
    for name in ["LD_PRELOAD", "PYTHONPATH", "AWS_CONFIG_FILE", "BASH_ENV", "ENV"] {
        let (run, ran) = plan(&desk, "aws", &["eks"], &[(name, theirs.clone())]);
        assert_eq!(ran, "", "{name}");
        run.exits(1).says(&format!("may not set {name:?}"));
    }
    let (run, ran) = plan(&desk, "aws", &["eks"], &[("AWS_PROFILE", "prod".to_owned())]);
    run.exits(1).says("the credential plugin \"aws\" failed");
    assert!(ran.starts_with("ours prod eks\n"), "{ran}");
    let (run, ran) = plan(&desk, "./theirs/aws", &[], &[]);
    run.exits(1).says("is not allowed to run");
    assert_eq!(ran, "");

    // Whoever lets the kubeconfig set the PATH lets it choose what the plugin runs, and still not the plugin.
    let desk = plugins("{allow: [aws], env: [PATH]}");
    let path = format!("{}:/usr/bin:/bin", desk.path("theirs").display());
    let (_, ran) = plan(&desk, "aws", &["eks"], &[("PATH", path)]);
    assert!(ran.starts_with("ours  eks\n"), "{ran}");
}

#[test]
fn a_plugin_may_be_allowed_with_certain_arguments_only() {
    let desk = plugins("{allow: [{command: aws, args: [eks, get-token, --cluster-name, eu]}]}");
    let (run, ran) = plan(&desk, "aws", &["eks", "get-token", "--cluster-name", "eu"], &[]);
    run.exits(1).says("the credential plugin \"aws\" failed");
    assert!(ran.starts_with("ours  eks get-token --cluster-name eu\n"), "{ran}");
    let (run, ran) = plan(&desk, "aws", &["s3", "rm", "--recursive", "s3://backups"], &[]);
    assert_eq!(ran, "");
    let run = run.exits(1).says("the credential plugin \"aws\" is not allowed to run with these arguments");
    assert!(!run.out.contains("backups"), "arguments may be secrets: {}", run.out);
    desk.run(&["config", "check"]).exits(64).complains("is not allowed to run with these arguments");
    drop(plan(&desk, "aws", &["eks", "get-token", "--cluster-name", "eu"], &[]));
    desk.run(&["config", "check"]).exits(0);
    desk.replace("gatewright.yaml", "command: aws", "comand: aws");
    desk.run(&["config", "check"]).exits(64);
}
