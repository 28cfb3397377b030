//! Settings of packs for some clusters and classes: what they say changes nothing elsewhere.

use std::collections::BTreeMap;
use std::fs;

use crate::program::Desk;

const CLASS: &str = "apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: own}
spec: {controllerName: kgateway.dev/kgateway}
";

/// Two clusters of one sync, with what the config says more.
fn desk(more: &str) -> Desk {
    let desk = Desk::empty("gatewright.yaml");
    configure(&desk, more);
    desk.write("specs/class.yaml", CLASS);
    for (name, class) in [("edge", "kgateway"), ("inner", "own")] {
        let spec = format!("{{gatewayClassName: {class}, listeners: [{{name: http, port: 8080, protocol: HTTP}}]}}");
        let metadata = format!("{{name: {name}, namespace: infra}}");
        let text =
            format!("apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {metadata}\nspec: {spec}\n");
        desk.write(&format!("specs/{name}.yaml"), &text);
    }
    desk
}

fn configure(desk: &Desk, more: &str) {
    let config = "stateDir: ./state
sources: {specs: {directory: {path: ./specs, settle: 0s}}}
clusters:
  old: {directory: {path: ./old}, labels: {release: '2.3'}}
  new: {directory: {path: ./new}}
syncs: {edges: {source: specs, clusters: {names: [old, new]}, createNamespaces: true}}
packs: {kgateway: {managedBy: kgateway}}
";
    desk.write("gatewright.yaml", &format!("{config}{more}"));
}

/// The Deployments of a cluster, by name.
fn deployments(desk: &Desk, cluster: &str) -> BTreeMap<String, String> {
    let read = |name: &str| fs::read_to_string(desk.path(&format!("{cluster}/infra/deployment-{name}.yaml")));
    ["edge", "inner"].map(|name| (name.to_owned(), read(name).expect("it was written"))).into()
}

/// Says which version each Deployment of a cluster has.
#[track_caller]
fn assert_versions(desk: &Desk, cluster: &str, expected: [&str; 2]) {
    for (text, version) in deployments(desk, cluster).values().zip(expected) {
        assert!(text.contains(&format!("app.kubernetes.io/version: {version}\n")), "{cluster}: {text}");
        assert!(text.contains(&format!("image: cr.kgateway.dev/envoy-wrapper:{version}\n")), "{cluster}: {text}");
        assert!(text.contains("app.kubernetes.io/managed-by: kgateway\n"), "what is not said stays: {text}");
    }
}

const OLDER: &str = "packs: {kgateway: {version: v2.3.2, image: {tag: v2.3.2}}}";

#[test]
fn what_is_set_for_one_cluster_rolls_no_other() {
    let desk = desk("");
    desk.run(&["sync"]).exits(0);
    let before = deployments(&desk, "new");
    assert_versions(&desk, "old", ["v2.4.0", "v2.4.0"]);

    for clusters in ["{matchLabels: {release: '2.3'}}", "{names: [old]}"] {
        configure(&desk, &format!("packOverrides: [{{clusters: {clusters}, {OLDER}}}]\n"));
        desk.run(&["sync", "--full"]).exits(0);
        assert_versions(&desk, "old", ["v2.3.2", "v2.3.2"]);
        assert_eq!(deployments(&desk, "new"), before);
        desk.run(&["plan"]).exits(0).says("no changes");
    }
    let rendered = desk.run(&["render", "specs", "--cluster", "old"]).exits(0).out;
    assert_eq!(rendered.matches("envoy-wrapper:v2.3.2").count(), 2, "{rendered}");
    let rendered = desk.run(&["render", "specs"]).exits(0).out;
    assert_eq!(rendered.matches("envoy-wrapper:v2.4.0").count(), 2, "{rendered}");
}

#[test]
fn the_first_entry_that_is_for_a_class_counts() {
    let none = "{classes: [nobody], packs: {kgateway: {version: v9.9.9}}}";
    let other = "{classes: [own], packs: {agentgateway: {version: v9.9.9}}}";
    let own = format!("{{classes: [own], {OLDER}}}");
    let later = "{clusters: {names: [new]}, packs: {kgateway: {version: v2.3.9, image: {tag: v2.3.9}}}}";
    let desk = desk(&format!("packOverrides: [{none}, {other}, {own}, {later}]\n"));
    desk.run(&["sync"]).exits(0);
    assert_versions(&desk, "old", ["v2.4.0", "v2.3.2"]);
    assert_versions(&desk, "new", ["v2.3.9", "v2.3.2"]);
    desk.run(&["sync"]).exits(0).says("no changes");
}

#[test]
fn what_is_shown_of_them_is_a_config_file_again() {
    let desk = desk(&format!("packOverrides: [{{clusters: {{names: [old]}}, {OLDER}}}]\n"));
    let shown = desk.run(&["config", "show"]).exits(0).out;
    desk.write("gatewright.yaml", &shown);
    desk.run(&["sync"]).exits(0);
    assert_versions(&desk, "old", ["v2.3.2", "v2.3.2"]);
    assert_versions(&desk, "new", ["v2.4.0", "v2.4.0"]);
}
