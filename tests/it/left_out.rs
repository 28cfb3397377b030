//! Slips by which a source says less than it holds: a line that is lost, an ignore file, a setting for folders of overlays. Nothing is deleted or changed for it before a person has agreed.

use crate::errors::{desk, gateway};
use crate::program::Desk;

const OVERLAY: &str = "apiVersion: gatewright.dev/v1alpha1\nkind: ClusterOverlay\nmetadata: {name: ip}\n\
                       spec: {parameters: {kube: {service: {type: ClusterIP}}}}\n";

const PARAMETERS: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n  namespace: infra\ndata: {a: b}\n";

/// A cluster that is a directory; one Gateway.
fn directory() -> Desk {
    let desk = desk("edges", &[("one", "{directory: {path: one}}".to_owned())]);
    desk.replace("gatewright.yaml", "path: specs", "path: specs, settle: 0s");
    desk.write("specs/a.yaml", &gateway("infra", "a", 8080));
    desk
}

fn token(out: &str) -> String {
    let line =
        out.lines().find(|line| line.trim_start().starts_with("gatewright approve ")).expect("it offers a token");
    line.split_whitespace().nth(2).expect("it is behind the command").to_owned()
}

#[test]
fn a_spec_that_loses_its_namespace_is_not_withdrawn() {
    let desk = directory();
    desk.replace("gatewright.yaml", "createNamespaces: true", "createNamespaces: true\n    unclaimed: apply");
    desk.write("specs/settings.yaml", PARAMETERS);
    desk.run(&["sync"]).exits(0);
    desk.write("specs/a.yaml", &gateway("infra", "a", 8080).replace(", namespace: infra", ""));
    desk.replace("specs/settings.yaml", "  namespace: infra\n", "");
    let held = "is held by guard withdrawal";
    // The first round makes the object that says no namespace, which is no proof for those that come after.
    for round in 1..4 {
        let run = desk.run(&["sync"]).exits(3).says(held);
        let run = run.says("Gateway.gateway.networking.k8s.io a says no namespace, and may be meant for infra");
        run.says("ConfigMap settings says no namespace, and may be meant for infra");
        for file in ["service-a", "deployment-a", "configmap-settings"] {
            assert!(desk.path(&format!("one/infra/{file}.yaml")).exists(), "{file} stays in round {round}");
        }
    }
    // The line is back.
    desk.write("specs/a.yaml", &gateway("infra", "a", 8080));
    desk.write("specs/settings.yaml", PARAMETERS);
    desk.run(&["sync"]).exits(0);

    // One of that name in both namespaces has to say so.
    desk.write("specs/b.yaml", &gateway("infra", "a", 8081).replace(", namespace: infra", ""));
    desk.run(&["sync"]).exits(0);
    std::fs::remove_file(desk.path("specs/a.yaml")).expect("it is there");
    desk.run(&["sync"]).exits(3).says(held);
    desk.write("specs/b.yaml", &gateway("default", "a", 8081));
    desk.run(&["sync"]).exits(0).says("4 objects deleted");
    assert!(desk.path("one/default/service-a.yaml").exists() && !desk.path("one/infra/service-a.yaml").exists());
}

#[test]
fn an_overlay_that_an_ignore_file_leaves_out_is_missed() {
    let desk = directory();
    desk.write("specs/platform/ip.yaml", OVERLAY);
    desk.run(&["sync"]).exits(0);
    let has_overlay = || desk.read("one/infra/service-a.yaml").contains("type: ClusterIP");
    assert!(has_overlay());
    desk.write("specs/.gatewrightignore", "ip.yaml\n");
    desk.run(&["sync"]).exits(3);
    let run = desk.run(&["sync"]).exits(3).says("is held by guard overlay-lost");
    let run = run.says("platform/ip.yaml: the file is there, and an ignore file leaves it out");
    assert!(has_overlay(), "in the second round as in the first");
    // Whoever means it says so.
    desk.run(&["approve", &token(&run.out)]).exits(0);
    desk.run(&["sync"]).exits(0).says("1 object updated");
    assert!(!has_overlay());
}

#[test]
fn an_overlay_whose_folder_does_not_count_any_more_is_missed() {
    let desk = directory();
    desk.write("specs/platform/ip.yaml", OVERLAY);
    desk.run(&["sync"]).exits(0);
    let settings = "createNamespaces: true\n    overlays: {paths: [other]}";
    desk.replace("gatewright.yaml", "createNamespaces: true", settings);
    desk.run(&["sync"]);
    let run = desk.run(&["sync"]).says("is held by guard overlay-lost");
    run.says("platform/ip.yaml: the file is there, and its folder is none whose overlays count");
    assert!(desk.read("one/infra/service-a.yaml").contains("type: ClusterIP"));
}

#[test]
fn a_gate_that_no_cluster_has_is_a_mistake() {
    let desk = desk("edges", &["a", "b"].map(|name| (name, format!("{{directory: {{path: {name}}}}}"))));
    let gate = "rollout: {gates: [{name: errors, url: 'http://127.0.0.1:1/', clusters: {matchLabels: {env: prod}}}]}";
    desk.replace("gatewright.yaml", "wait: {enabled: false}", gate);
    let run = desk.run(&["config", "check"]).exits(64);
    run.complains("gate \"errors\" of sync \"edges\": it is about none of the clusters of the sync");
    desk.replace("gatewright.yaml", "{path: b}", "{path: b}, labels: {env: prod}");
    desk.run(&["config", "check"]).exits(0);
}

#[test]
fn commands_for_a_sync_tell_of_the_clusters_that_it_has_left() {
    let desk = directory();
    desk.replace("gatewright.yaml", "clusters:\n", "clusters:\n  two: {directory: {path: two}}\n");
    desk.replace("gatewright.yaml", "names: [one]", "names: [one, two]");
    desk.run(&["sync"]).exits(0);
    desk.write("specs/a.yaml", &gateway("infra", "a", 8081));
    desk.run(&["sync"]).exits(0);
    desk.replace("gatewright.yaml", "names: [one, two]", "names: [two]");
    let words = "sync edges does not select cluster one any more";
    desk.run(&["rollback", "edges", "--dry-run"]).exits(0).complains(words);
    desk.run(&["destroy", "edges", "--yes"]).exits(0).complains(words);
}

#[test]
fn what_the_program_writes_itself_is_no_spec() {
    let desk = directory();
    desk.run(&["sync"]).exits(0);
    // The folder holds the state, the directory of the cluster and the config file.
    desk.run(&["check", "."]).exits(0);
    desk.run(&["explain", "Service/infra/a", "spec.ports"]).exits(0).says("specs/a.yaml:");
    desk.run(&["check", "one"]).exits(0).says("documents that no pack claims");
}
