//! `gatewright diff`: what would change, as a patch of YAML, with the exit codes of `kubectl diff`.

use std::fs;

use crate::cluster::process::command;
use crate::cluster::{shared, unique};
use crate::errors::{desk, folder, gateway, kubeconfig};
use crate::program::Desk;

#[test]
fn it_says_what_a_round_changes_and_nothing_after_it() {
    let (server, namespace, sync) = (shared(), unique("diff"), unique("diff"));
    let desk = desk(&sync, &[("only", kubeconfig(&server.kubeconfig("admin"), ""))]);
    desk.write("specs/a.yaml", &gateway(&namespace, "a", 8080));
    let first =
        desk.run(&["diff"]).exits(1).says(&format!("create Deployment {namespace}/a, on cluster only\n--- /dev/null"));
    let first = first.says(&format!("+++ desired/apps/v1/Deployment/{namespace}/a.yaml"));
    first.says(&format!("gatewright.dev/sync: {sync}."));
    desk.run(&["sync", "--yes"]).exits(0);
    let nothing = desk.run(&["diff", &sync]).exits(0);
    assert_eq!((nothing.out.as_str(), nothing.err.as_str()), ("", ""));

    // Somebody changes what is ours, and adds what is theirs; the source changes too.
    let patch = r#"{"metadata": {"labels": {"team": "web"}}, "spec": {"ports": [{"port": 8080, "targetPort": 1234}]}}"#;
    server.kubectl_ok(&["patch", "service", "a", "-n", &namespace, "-p", patch]);
    server.kubectl_ok(&["annotate", "deployment", "a", "-n", &namespace, "theirs=yes"]);
    let changed = desk.run(&["diff"]).exits(1).says("-    targetPort: 1234\n+    targetPort: 8080\n");
    let changed = changed.says("-    team: web\n").says("-  annotations:\n-    theirs: \"yes\"\n");
    assert!(!changed.out.contains("clusterIP") && !changed.out.contains("revision"), "{}", changed.out);
    fs::remove_file(desk.path("specs/a.yaml")).expect("it is there");
    desk.write("specs/b.yaml", &gateway(&namespace, "b", 8080));
    let gone = desk.run(&["diff"]).exits(1).says(&format!("prune Deployment {namespace}/a, on cluster only"));
    gone.says(&format!("--- live/apps/v1/Deployment/{namespace}/a.yaml\n+++ /dev/null"));
}

#[test]
fn secrets_are_never_in_it_and_a_changed_one_shows() {
    let (server, namespace, sync) = (shared(), unique("diff-secret"), unique("diff-secret"));
    let desk = desk(&sync, &[("only", kubeconfig(&server.kubeconfig("admin"), ""))]);
    desk.replace("gatewright.yaml", "createNamespaces: true", "createNamespaces: true\n    unclaimed: apply");
    let secret = |password: &str| {
        let data = format!("stringData: {{password: {password}, user: hans}}");
        let config = format!("data: {{settings: \"password: {password}\\nmode: fast\\n\"}}");
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: {namespace}}}\n{data}\n---\n\
             apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c, namespace: {namespace}}}\n{config}\n"
        )
    };
    // A Secret of the source has no place in the inventory of a Gateway, but it is a document like any other.
    desk.write("specs/secret.yaml", &secret("sesame-one"));
    let hidden = |text: &str| {
        for word in ["sesame-one", "sesame-two", "c2VzYW1lLW9uZQ", "c2VzYW1lLXR3bw", "hans", "aGFucw"] {
            assert!(!text.contains(word), "{word} in {text}");
        }
    };
    let first = desk.run(&["diff"]);
    hidden(&format!("{}{}", first.out, first.err));
    first.exits(1).says("+  password: \"*** (").says("mode: fast");
    desk.run(&["sync", "--yes"]).exits(0);
    desk.run(&["diff"]).exits(0);
    desk.write("specs/secret.yaml", &secret("sesame-two"));
    let second = desk.run(&["diff"]);
    hidden(&format!("{}{}", second.out, second.err));
    let second = second.exits(1).says("-  password: \"*** (").says("+  password: \"*** (");
    second.says("   user: \"*** (").says("-    password: ***(").says("     mode: fast\n");
}

#[test]
fn clusters_on_which_the_same_changes_are_told_together() {
    let desk =
        desk("gateways", &[("eu", "{directory: {path: eu}}".to_owned()), ("us", "{directory: {path: us}}".to_owned())]);
    desk.write("specs/a.yaml", &gateway("shop", "a", 8080));
    let both = desk.run(&["diff"]).exits(1).says("create Service shop/a, on clusters eu, us");
    assert_eq!(both.out.matches("+++ desired/v1/Service/shop/a.yaml").count(), 1, "{}", both.out);
    desk.run(&["sync", "--cluster", "eu"]).exits(0);
    desk.run(&["diff"]).exits(1).says("create Service shop/a, on cluster us");
    desk.run(&["diff", "--cluster", "eu"]).exits(0);
    desk.run(&["diff", "--only", "Gateway/shop/a", "--cluster", "us"]).exits(1);
    desk.run(&["diff", "--cluster", "us", "--only", "Gateway/shop/b"]).exits(64);
}

#[test]
fn a_failure_does_not_look_like_a_difference() {
    let desk = desk("gateways", &[("fine", folder())]);
    desk.write("specs/a.yaml", &gateway("shop", "a", 8080));
    desk.write("specs/b.yaml", &gateway("shop", "b", 8080).replace("port: 8080", "port: http"));
    // What is in order is compared all the same.
    desk.run(&["diff"]).exits(2).complains("specs/b.yaml".trim_start_matches("specs/")).says("create Service shop/a");
    fs::remove_dir_all(desk.path("specs")).expect("it is there");
    desk.run(&["diff"]).exits(2).complains("cannot read source");
    desk.run(&["diff", "gatways"]).exits(64).complains("did you mean \"gateways\"?");
}

#[test]
fn it_is_a_patch_that_does_what_a_round_does() {
    let desk = Desk::quickstart("gatewright.yaml");
    desk.run(&["sync"]).exits(0);
    desk.replace("specs/shop/storefront.yaml", "port: 8443", "port: 9443");
    desk.write("changes.patch", &desk.run(&["diff"]).exits(1).out);
    // What is rendered into a folder is YAML with the same fields in the same order.
    let files =
        [("service", "v1/Service/shop/storefront.yaml"), ("deployment", "apps/v1/Deployment/shop/storefront.yaml")];
    let rendered = |kind: &str| desk.read(&format!("rendered/shop/{kind}-storefront.yaml"));
    for (kind, file) in files {
        desk.write(file, &rendered(kind));
    }
    let mut patch = command("git");
    let patched = patch.args(["apply", "changes.patch"]).current_dir(desk.path("")).output().expect("git is there");
    assert!(patched.status.success(), "{}", String::from_utf8_lossy(&patched.stderr));
    desk.run(&["sync"]).exits(0).says("2 objects updated");
    for (kind, file) in files {
        assert_eq!(desk.read(file), rendered(kind));
    }
}

/// The number that a dry run shows is another one each time, and none that the port ever has.
#[test]
fn the_number_that_a_server_chooses_is_told_neither_before_nor_after() {
    let (server, namespace, sync) = (shared(), unique("chosen"), unique("chosen"));
    let desk = desk(&sync, &[("only", kubeconfig(&server.kubeconfig("admin"), ""))]);
    desk.write("specs/a.yaml", &gateway(&namespace, "a", 8080));
    desk.run(&["sync"]).exits(0);
    desk.replace("specs/a.yaml", "  listeners:\n", "  listeners:\n  - {name: other, port: 9090, protocol: HTTP}\n");
    for command in ["plan", "sync"] {
        let run = desk.run(&[command]).exits(0).says("spec.ports[listener-9090]");
        assert!(!run.out.contains("nodePort"), "{command}: {}", run.out);
    }
    let ports = ["get", "service", "a", "-n", &namespace, "-o", "jsonpath={.spec.ports[*].nodePort}"];
    assert_eq!(server.kubectl_ok(&ports).split(' ').count(), 2, "the server has chosen them");
}
