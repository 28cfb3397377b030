//! Names that nobody has: a cluster, a label or a Gateway that an overlay names and that is not there holds what the overlay
//! fed, until somebody agrees.

use crate::errors::{desk, gateway};
use crate::program::{Desk, Run};

fn overlay(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: gatewright.dev/v1alpha1\nkind: ClusterOverlay\nmetadata: {{name: {name}}}\nspec:\n  {spec}\n---\n"
    )
}

fn addresses(name: &str, selector: &str, ip: &str) -> String {
    let patch = format!("specPatches: [{{patch: {{spec: {{addresses: [{{type: IPAddress, value: {ip}}}]}}}}}}]");
    overlay(name, &format!("clusters: {selector}\n  target: {{gateways: [{{name: edge}}]}}\n  {patch}"))
}

/// Three clusters; eu-1 and us-1 have an address each in one file, the one by name and the other by label.
fn fed() -> Desk {
    let cluster = |name: &str, region: &str| format!("{{directory: {{path: {name}}}, labels: {{region: {region}}}}}");
    let clusters = [("eu-1", cluster("eu-1", "eu")), ("eu-2", cluster("eu-2", "eu")), ("us-1", cluster("us-1", "us"))];
    let desk = desk("gateways", &clusters);
    desk.replace("gatewright.yaml", "names: [eu-1, eu-2, us-1]", "matchExpressions: [{key: region, operator: Exists}]");
    desk.write("specs/edge.yaml", &gateway("infra", "edge", 8080));
    desk.write("specs/inner.yaml", &gateway("infra", "inner", 8080));
    let by_name = addresses("by-name", "{names: [eu-1]}", "192.0.2.1");
    desk.write("specs/overlays.yaml", &(by_name + &addresses("by-label", "{matchLabels: {region: us}}", "192.0.2.2")));
    desk.run(&["sync"]).exits(0);
    assert_eq!(["eu-1", "eu-2", "us-1"].map(|cluster| address(&desk, cluster)), ["192.0.2.1", "", "192.0.2.2"]);
    desk
}

fn address(desk: &Desk, cluster: &str) -> String {
    let text = desk.read(&format!("{cluster}/infra/service-edge.yaml"));
    let line = text.lines().find_map(|line| line.trim().strip_prefix("loadBalancerIP: "));
    line.unwrap_or_default().trim_matches('"').to_owned()
}

/// The Gateway of a cluster waits, and everything else goes on: the address stays where it was.
#[track_caller]
fn is_held(desk: &Desk, cluster: &str, said: &str) -> Run {
    let before = address(desk, cluster);
    desk.replace("specs/inner.yaml", "8080", "9090");
    let run = desk.run(&["sync"]).exits(3).says("held by guard overlay-lost").says(said);
    assert_eq!(address(desk, cluster), before);
    let inner = desk.read(&format!("{cluster}/infra/service-inner.yaml"));
    assert!(inner.contains("port: 9090"), "{inner}");
    // It waits in every round until somebody agrees.
    let token = |run: &Run| {
        let rest = run.out.split("gatewright approve ").nth(1).and_then(|rest| rest.split_whitespace().next());
        rest.expect("there is a token").to_owned()
    };
    let again = desk.run(&["sync"]).exits(3).says(said);
    assert_eq!(token(&again), token(&run));
    desk.run(&["approve", &token(&run)]).exits(0);
    let run = desk.run(&["sync"]).exits(0);
    assert_eq!(address(desk, cluster), "");
    desk.run(&["plan", "--detailed-exitcode"]).exits(0);
    run
}

#[test]
fn a_cluster_that_got_another_name_keeps_what_an_overlay_fed_it() {
    let desk = fed();
    desk.replace("gatewright.yaml", "eu-1: {", "eu-one: {");
    is_held(&desk, "eu-1", "overlays.yaml:5: ClusterOverlay by-name: there is no cluster \"eu-1\" in the config");
}

#[test]
fn a_cluster_that_got_another_label_keeps_what_an_overlay_fed_it() {
    let desk = fed();
    desk.replace("gatewright.yaml", "region: us", "region: su");
    is_held(
        &desk,
        "us-1",
        "ClusterOverlay by-label: no cluster of the config has the label \"region\" with the value \"us\"",
    );
}

#[test]
fn a_label_that_other_clusters_still_have_does_not_hide_the_one_that_lost_it() {
    let desk = fed();
    desk.replace("gatewright.yaml", "path: eu-2}, labels: {region: eu}", "path: eu-2}, labels: {region: us}");
    desk.run(&["sync"]).exits(0);
    assert_eq!(address(&desk, "eu-2"), "192.0.2.2");
    desk.replace("gatewright.yaml", "path: us-1}, labels: {region: us}", "path: us-1}, labels: {region: eu}");
    let said = "ClusterOverlay by-label: it does not select the cluster by the name and the labels that it has now";
    is_held(&desk, "us-1", said);
}

#[test]
fn a_slip_in_an_overlay_takes_nothing_away() {
    for (from, to, said) in [
        ("names: [eu-1]", "names: [eu-11]", "there is no cluster \"eu-11\" in the config"),
        (
            "{names: [eu-1]}",
            "{matchLabels: {regoin: eu}}",
            "no cluster of the config has the label \"regoin\" with the value \"eu\"",
        ),
        ("name: edge", "name: egde", "there is no Gateway egde in the source"),
    ] {
        let desk = fed();
        desk.replace("specs/overlays.yaml", from, to);
        is_held(&desk, "eu-1", &format!("ClusterOverlay by-name: {said}"));
    }
}

#[test]
fn an_object_that_is_there_by_an_overlay_alone_is_not_deleted() {
    let desk = fed();
    let budget = "clusters: {names: [eu-2]}\n  target: {gateways: [{name: edge}]}\n  \
                  parameters: {kube: {podDisruptionBudget: {spec: {maxUnavailable: 1}}}}";
    desk.write("specs/budget.yaml", &overlay("budget", budget));
    desk.run(&["sync"]).exits(0);
    let has_budget = || desk.path("eu-2/infra/poddisruptionbudget-edge.yaml").exists();
    assert!(has_budget());
    desk.replace("gatewright.yaml", "eu-2: {", "eu-two: {");
    let run = desk.run(&["sync"]).exits(3).says("held by guard withdrawal");
    run.says("budget.yaml:5: ClusterOverlay budget: there is no cluster \"eu-2\" in the config");
    assert!(has_budget());
}

#[test]
fn an_overlay_that_was_taken_out_or_is_for_others_now_holds_nothing() {
    let desk = fed();
    desk.replace("specs/overlays.yaml", "names: [eu-1]", "names: [eu-2]");
    desk.run(&["sync"]).exits(0);
    assert_eq!(["eu-1", "eu-2"].map(|cluster| address(&desk, cluster)), ["", "192.0.2.1"]);
    desk.write("specs/overlays.yaml", &overlay("other", "parameters: {kube: {deployment: {replicas: 1}}}"));
    desk.run(&["sync"]).exits(0);
    assert_eq!(["eu-2", "us-1"].map(|cluster| address(&desk, cluster)), ["", ""]);
}

#[test]
fn what_is_for_clusters_that_are_to_come_is_told_and_holds_nothing() {
    let desk = fed();
    let more = addresses("to-come", "{names: [ap-1, eu-3]}", "192.0.2.3")
        + &addresses("none", "{matchLabels: {region: ap}}", "192.0.2.4");
    desk.write("specs/more.yaml", &more);
    let run = desk
        .run(&["sync"])
        .exits(0)
        .says("more.yaml:5: ClusterOverlay to-come: there is no cluster \"ap-1\" in the config");
    let run = run.says("there is no cluster \"eu-3\" in the config\n    did you mean \"eu-1\"?\n");
    run.says("no cluster of the config has the label \"region\" with the value \"ap\"");
    desk.run(&["check", "specs"]).exits(0).complains("there is no cluster \"ap-1\" in the config");
}
