//! Unreadable state and output that cannot be written are errors, and not taken for nothing.

use std::fs::{self, File};

use crate::cluster::{shared, unique};
use crate::errors::{desk, gateway, kubeconfig};
use crate::program::{Desk, Run};

/// Commands that show what this installation knows.
const KNOWN: [&[&str]; 13] = [
    &["approve"],
    &["approve", "--all"],
    &["history"],
    &["report", "list"],
    &["report", "show"],
    &["undo"],
    &["rollback", "quickstart", "--list"],
    &["clusters", "--offline"],
    &["inventory", "show"],
    &["rollout", "status"],
    &["status"],
    &["audit"],
    &["plan"],
];

#[test]
fn a_state_directory_that_cannot_be_read_is_not_an_empty_one() {
    let desk = Desk::quickstart("gatewright.yaml");
    desk.run(&["sync"]).exits(0);
    fs::rename(desk.path("state"), desk.path("saved")).expect("a test may");
    desk.write("state", "");
    for command in KNOWN {
        desk.run(command).exits(1).complains("cannot read \"").complains("state\": Not a directory");
    }
    // What needs none of it goes on.
    desk.run(&["check", "specs"]).exits(0);
    desk.run(&["config", "check"]).exits(0);
}

#[test]
fn damaged_files_are_named() {
    let desk = Desk::quickstart("gatewright.yaml");
    desk.run(&["sync"]).exits(0);
    desk.write("state/asked/quickstart/local.json", "{");
    desk.run(&["approve"]).exits(1).complains("state/asked/quickstart/local.json\": ");
    fs::remove_file(desk.path("state/asked/quickstart/local.json")).expect("a test may");

    for report in fs::read_dir(desk.path("state/reports")).expect("there is one") {
        fs::write(report.expect("it can be listed").path(), "{").expect("a test may");
    }
    let history = desk.run(&["history"]).exits(0).complains(" is no report of gatewright, or was cut off\n");
    assert!(!history.err.contains("there are no reports"), "{}", history.err);
    let list = desk.run(&["report", "list"]).exits(1).complains(" is no report of gatewright, or was cut off\n");
    assert!(!list.err.contains("no reports are kept"), "{}", list.err);

    let id = desk.read("state/installation");
    for damaged in ["", "garbage\n", &id[..10]] {
        desk.write("state/installation", damaged);
        let run = desk.run(&["sync"]).exits(1);
        run.complains("state/installation\" is damaged").complains("put it back from a backup");
        assert_eq!(desk.read("state/installation"), damaged, "nobody makes another one");
    }
    desk.write("state/installation", &id);
    desk.run(&["sync"]).exits(0).says("no changes");
}

#[test]
fn an_output_that_is_cut_off_is_a_failure() {
    let desk = Desk::quickstart("gatewright.yaml");
    desk.run(&["sync"]).exits(0);
    let commands: [&[&str]; 8] = [
        &["render", "specs"],
        &["plan"],
        &["plan", "-o", "json"],
        &["schema"],
        &["rbac", "quickstart"],
        &["config", "show"],
        &["history"],
        &["status", "-o", "yaml"],
    ];
    for arguments in commands {
        let full = File::options().write(true).open("/dev/full").expect("Linux has it");
        let run = Run::of(desk.command(arguments).stdout(full).output().expect("the program starts"));
        run.exits(1).complains("gatewright: cannot write to standard output: No space left on device");
    }
}

#[test]
fn a_script_that_names_no_round_has_undone_nothing() {
    let desk = Desk::quickstart("gatewright.yaml");
    desk.run(&["sync"]).exits(0);
    desk.run(&["undo", "--yes"]).exits(64).complains("no round is named");
    desk.run(&["undo"]).exits(0).says("quickstart");
}

#[test]
fn a_webhook_that_is_down_hides_nothing_but_what_it_is_asked_about() {
    let server = shared();
    let (down, well, sync) = (unique("down"), unique("well"), unique("webhook"));
    for namespace in [&down, &well] {
        server.kubectl_ok(&["create", "namespace", namespace]);
    }
    let hook = format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {{name: {sync}}}\n\
         webhooks:\n- name: down.example.com\n  clientConfig: {{url: \"https://127.0.0.1:1/\"}}\n  failurePolicy: Fail\n  \
         sideEffects: None\n  admissionReviewVersions: [v1]\n  timeoutSeconds: 1\n  \
         namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {down}}}}}\n  \
         rules: [{{apiGroups: [\"\"], apiVersions: [v1], operations: [\"*\"], resources: [configmaps]}}]\n"
    );
    server.kubectl_stdin(&["create", "-f", "-"], &hook);
    let desk = desk(&sync, &[("lab", kubeconfig(&server.kubeconfig("admin"), ""))]);
    desk.write("specs/a.yaml", &gateway(&down, "a", 8080));
    desk.write("specs/b.yaml", &gateway(&well, "b", 8080));

    let failed = format!("ConfigMap {down}/a: the dry run failed: ");
    let plan = desk.run(&["plan"]).exits(1).says(&failed).says("down.example.com");
    plan.says(&format!("+ create Deployment {well}/b"));
    desk.run(&["sync"]).exits(1);
    assert!(server.kubectl_ok(&["get", "deployments", "-n", &well, "-o", "name"]).contains("/b"));
    desk.run(&["status"]).exits(0).says(&format!("ConfigMap {down}/a: ")).says("down.example.com");

    server.kubectl_ok(&["delete", "validatingwebhookconfiguration", &sync]);
    desk.run(&["sync"]).exits(0);
    // It is done, whether anybody waits for pods or not.
    let plan = desk.run(&["plan"]).exits(0);
    assert!(!plan.out.contains("has failed"), "{}", plan.out);
}
