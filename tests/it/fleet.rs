//! Many clusters as people see them: a plan that reads like one, and one answer to what all of them ask.

use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use crate::commands::obeys_the_schema;
use crate::program::Desk;

/// The lines of a screen.
const SCREEN: usize = 50;

const CLASS: &str = "apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: kgateway}
spec:
  controllerName: kgateway.dev/kgateway
  parametersRef: {group: gateway.kgateway.dev, kind: GatewayParameters, name: shared, namespace: infra}
---
apiVersion: gateway.kgateway.dev/v1alpha1
kind: GatewayParameters
metadata: {name: shared, namespace: infra}
spec: {kube: {envoyContainer: {image: {tag: v1}}}}
";

/// Twelve Gateways for forty directories.
fn fleet() -> Desk {
    let desk = Desk::empty("gatewright.yaml");
    let mut config =
        "stateDir: ./state\nsources: {specs: {directory: {path: ./specs, settle: 0s}}}\nclusters:\n".to_owned();
    for number in 1..=40 {
        let region = if number > 37 { "us" } else { "eu" };
        let cluster = format!("{{directory: {{path: ./out/c-{number:02}}}, labels: {{region: {region}}}}}");
        writeln!(config, "  c-{number:02}: {cluster}").expect("a text takes everything");
    }
    config += "syncs: {gateways: {source: specs, clusters: {matchLabels: {}}, createNamespaces: true}}\n";
    desk.write("gatewright.yaml", &config);
    desk.write("specs/class.yaml", CLASS);
    for number in 1..=12 {
        let name = format!("g{number:02}");
        let gateway = format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{name: {name}, namespace: infra}}\n\
             spec: {{gatewayClassName: kgateway, listeners: [{{name: http, port: 8080, protocol: HTTP}}]}}\n"
        );
        desk.write(&format!("specs/{name}.yaml"), &gateway);
    }
    desk.run(&["sync"]).exits(0).says("on all 40 clusters").says("done on each: 48 objects created");
    desk
}

#[test]
fn a_plan_of_a_fleet_fits_on_a_screen() {
    let desk = fleet();
    desk.replace("specs/class.yaml", "v1}", "v2}");
    let plan = desk.run(&["plan"]).exits(0);
    assert!(plan.out.lines().count() <= SCREEN, "{}", plan.out);
    let plan = plan.says("480 of 480 units on 40 of 40 clusters change").says("plan on each: 12 objects to update");

    // Three of them get another image: one paragraph says both.
    let spec = "{clusters: {matchLabels: {region: us}}, parameters: {kube: {envoyContainer: {image: {tag: v3}}}}}";
    let overlay = "apiVersion: gatewright.dev/v1alpha1\nkind: ClusterOverlay\nmetadata: {name: us}\n";
    desk.write("specs/us.yaml", &format!("{overlay}spec: {spec}\n"));
    let both = desk.run(&["plan"]).exits(0).says("on all 40 clusters");
    let both =
        both.says("37 of 40 clusters (all but c-38, c-39, c-40): ").says("3 of 40 clusters (c-38, c-39, c-40): ");
    assert!(both.out.lines().count() < plan.out.lines().count() + 30, "{}", both.out);

    let json = desk.run(&["plan", "--format", "json"]).exits(0);
    let report: Value = serde_json::from_str(&json.out).expect("it is JSON");
    obeys_the_schema(&report);
    let groups = report["groups"].as_array().expect("there are several clusters");
    assert_eq!(groups.len(), 1, "{groups:?}");
    let values = groups[0]["differing"][0]["values"].as_array().expect("an image is another by cluster");
    let sizes: Vec<usize> = values.iter().filter_map(|value| Some(value["clusters"].as_array()?.len())).collect();
    assert_eq!(sizes, [37, 3]);

    let markdown = desk.run(&["plan", "--format", "markdown"]).exits(0);
    let row = "| `gateways` | `all 40 clusters` | plan | 12 objects to update | 36 | 0 |";
    markdown.says(row).says("-     37 of 40 clusters (all but c-38, c-39, c-40): ");
    let html =
        desk.run(&["plan", "--format", "html"]).exits(0).says("<details><summary>all 40 clusters</summary>c-01, c-02");
    assert!(html.out.len() < 100_000, "{} bytes", html.out.len());
}

#[test]
fn what_a_guard_holds_on_all_clusters_is_approved_at_once() {
    let desk = fleet();
    for number in 1..=6 {
        fs::remove_file(desk.path(&format!("specs/g{number:02}.yaml"))).expect("it is there");
    }
    let plan = desk.run(&["plan"]).exits(3).says("on all 40 clusters");
    let tokens: Vec<&str> = plan.out.lines().filter(|line| line.contains("gatewright approve ")).collect();
    let [line] = tokens[..] else { unreachable!("one token is for all: {}", plan.out) };
    assert!(line.contains("lifts it on each of them, for exactly 24 steps"), "{line}");
    let token = line.split_whitespace().nth(2).expect("it is behind the command");

    // Beforehand on one of them, with the same token.
    let given = desk.run(&["approve", token, "--cluster", "c-07", "--reason", "a trial"]).exits(0);
    given.says("sync gateways on cluster c-07, guard max-delete");
    desk.run(&["approve"]).exits(0).says("approved on 1 of 40 clusters until ");
    desk.run(&["sync"]).exits(3).says("cluster c-07\n").says("on 39 of 40 clusters (all but c-07)");
    let has = |cluster: &str| desk.path(&format!("out/{cluster}/infra/deployment-g01.yaml")).exists();
    assert!(!has("c-07") && has("c-01") && has("c-40"));

    // Nobody can be asked here, so that has to be said.
    desk.run(&["approve", "--all"]).exits(64).complains("add --yes");
    desk.run(&["approve", "--all", "--yes"])
        .exits(0)
        .says("on clusters c-01, c-02, c-03, c-04, c-05, c-06, c-08, c-09 and 31 more");
    desk.run(&["sync"]).exits(0);
    assert!(!has("c-01") && !has("c-40"));
    desk.run(&["approve"]).exits(0).says("nothing waits for approval");
}

/// A quarter is what each cluster allows.
#[test]
fn what_goes_from_all_clusters_together_waits_for_one_person() {
    let desk = fleet();
    let deployments = || {
        let of = |number: usize| fs::read_dir(desk.path(&format!("out/c-{number:02}/infra"))).expect("it is there");
        let is_deployment = |name: &str| name.starts_with("deployment-");
        let name = |entry: Result<fs::DirEntry, _>| entry.expect("it can be read").file_name();
        (1..=40).flat_map(of).map(name).filter(|name| name.to_str().is_some_and(is_deployment)).count()
    };
    assert_eq!(deployments(), 480);
    for number in 1..=3 {
        fs::remove_file(desk.path(&format!("specs/g{number:02}.yaml"))).expect("it is there");
    }
    let message = "held by guard max-delete-fleet: objects of 120 units would be deleted on 40 clusters, and 50 are allowed on all together";
    desk.run(&["plan"]).exits(3).says("on all 40 clusters").says(message);
    // What is new goes ahead.
    desk.replace("specs/class.yaml", "v1}", "v2}");
    let run = desk.run(&["sync"]).exits(3).says(message);
    let run = run
        .says("    nothing is deleted here; check the source; ")
        .says("lifts it on each of them, for exactly 12 steps");
    assert_eq!(deployments(), 480);
    assert!(desk.read("out/c-40/infra/deployment-g04.yaml").contains("v2"));

    let token = run.out.lines().find_map(|line| line.trim().strip_prefix("gatewright approve ")).expect("it was said");
    let token = token.split_whitespace().next().expect("it is the first word");
    // Whoever does not keep to waves has not agreed to that.
    desk.run(&["sync", "--skip-waves", "--reason", "a hotfix"]).exits(3).says(message);
    // Nor has whoever agrees for one cluster agreed for the others, though less is left for them.
    desk.run(&["approve", token, "--cluster", "c-01,c-02", "--yes"]).exits(0);
    desk.run(&["sync"]).exits(3).says("on 38 of 40 clusters").says(message);
    desk.run(&["sync"]).exits(3).says(message);
    assert_eq!(deployments(), 474);
    desk.run(&["approve", token, "--yes"]).exits(0);
    desk.run(&["sync"]).exits(0);
    assert_eq!(deployments(), 360);

    // One Gateway on all of them is what the setting allows.
    fs::remove_file(desk.path("specs/g04.yaml")).expect("it is there");
    desk.run(&["plan"]).exits(0).says("160 objects to prune");
    desk.run(&["sync"]).exits(0);
    assert_eq!(deployments(), 320);
}

#[test]
fn the_state_of_a_fleet_fits_on_a_screen() {
    let desk = fleet();
    let status = desk.run(&["status"]).exits(0).says("  on all 40 clusters: done ");
    assert_eq!(status.out.matches("Gateway infra/g").count(), 12, "{}", status.out);
    assert_eq!(status.out.lines().count(), 14, "{}", status.out);

    // One is held, one is out of order and one is new.
    for number in 1..=6 {
        fs::remove_file(desk.path(&format!("specs/g{number:02}.yaml"))).expect("it is there");
    }
    desk.run(&["sync", "--cluster", "c-07"]).exits(3);
    desk.replace("gatewright.yaml", "{path: ./out/c-09}", "{path: ./gatewright.yaml}");
    desk.run(&["sync", "--cluster", "c-09"]).exits(1);
    desk.replace("gatewright.yaml", "clusters:\n", "clusters:\n  a-new: {directory: {path: ./out/new}}\n");
    let status = desk.run(&["status"]).exits(0);
    assert!(status.out.lines().count() <= SCREEN, "{}", status.out);
    let status = status
        .says("  on 38 of 41 clusters (all but a-new, c-07, c-09): done ")
        .says("  cluster a-new: no round yet\n");
    let status =
        status.says("  cluster c-07: held at ").says("      gatewright approve ").says("  cluster c-09: failed at ");
    let places =
        ["on 38 of", "cluster c-07: held", "cluster c-09: failed", "cluster a-new"].map(|text| status.out.find(text));
    assert!(places.is_sorted(), "{}", status.out);
    desk.run(&["status", "--verbose"]).exits(0).says("c-38, c-39, c-40): done");

    let summary = desk.run(&["status", "--summary"]).exits(0).says("; 12 units changed\n").says("; 1 hold; ");
    assert_eq!(summary.out.lines().count(), 6, "{}", summary.out);
    summary.says("\n  41 clusters: 38 done, 1 held, 1 failed, 1 without a round\n");
    let json = desk.run(&["status", "--format", "json"]).exits(0);
    let json: Value = serde_json::from_str(&json.out).expect("it is JSON");
    assert_eq!(json["syncs"]["gateways"].as_object().map(serde_json::Map::len), Some(41));
    desk.run(&["status", "--summary", "--format", "json"]).exits(64).complains("--summary is a form of text");
}

#[test]
fn a_summary_is_a_line_for_clusters_that_are_alike() {
    let desk = fleet();
    desk.replace("specs/class.yaml", "v1}", "v2}");
    desk.replace("gatewright.yaml", "{path: ./out/c-09}", "{path: ./gatewright.yaml}");
    let plan = desk.run(&["plan", "--summary"]).exits(1);
    assert_eq!(plan.out.lines().count(), 4, "{}", plan.out);
    let plan = plan.says("\n  on 39 of 40 clusters (all but c-09): plan: 12 objects to update, 36 unchanged\n");
    plan.says(
        "\n  40 clusters: 39 planned, 1 failed; 468 of 468 units on 39 of 40 clusters change: 468 objects to update;",
    );
    desk.run(&["plan", "--summary", "--verbose"]).exits(64);

    let sync = desk.run(&["sync", "--summary"]).exits(1).says(": done: 12 objects updated, 36 unchanged\n");
    assert_eq!(sync.out.lines().count(), 4, "{}", sync.out);
    let kept = desk.run(&["report", "show", "--summary"]).exits(0).says(": done: 12 objects updated, 36 unchanged\n");
    kept.says("  cluster c-09: ");
    desk.replace("gatewright.yaml", "{path: ./gatewright.yaml}", "{path: ./out/c-09}");
    let none = desk.run(&["orphans"]).exits(0);
    assert_eq!(none.out, "on all 40 clusters: 0 objects and 0 inventories\n");
    let none = desk.run(&["orphans", "--summary"]).exits(0);
    assert!(none.out.ends_with("\n40 clusters: 0 objects and 0 inventories\n"), "{}", none.out);
}
