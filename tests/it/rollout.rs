//! Rollouts: what replaces pods goes to one cluster first, and to the others once it is healthy there.

mod lost_state;

use std::process::Stdio;

use serde_json::{Value, json};

use crate::cluster::{shared, unique};
use crate::commands::obeys;
use crate::errors::{desk, gateway, kubeconfig};
use crate::program::Desk;

/// A cluster in which pods become ready, and three directories without health; one Gateway.
pub(crate) struct Fleet {
    pub(crate) desk: Desk,
    pub(crate) namespace: String,
    pub(crate) sync: String,
}

const FOLLOWERS: [&str; 3] = ["dr", "edge", "lab"];

pub(crate) fn fleet(schedule: &str) -> Fleet {
    let (namespace, sync) = (unique("rollout"), unique("rollout"));
    let mut clusters = vec![("canary", kubeconfig(&shared().kubeconfig("admin"), ""))];
    clusters.extend(FOLLOWERS.iter().map(|name| (*name, format!("{{directory: {{path: out/{name}}}}}"))));
    let desk = desk(&sync, &clusters);
    desk.replace("gatewright.yaml", "wait: {enabled: false}", &format!("wait: {{timeout: 90s}}{schedule}"));
    let fleet = Fleet { desk, namespace, sync };
    fleet.wants("podTemplate: {extraAnnotations: {edition: first}}");
    fleet
}

impl Fleet {
    pub(crate) fn wants(&self, kube: &str) {
        let namespace = &self.namespace;
        let parameters = format!(
            "---\napiVersion: gateway.kgateway.dev/v1alpha1\nkind: GatewayParameters\n\
             metadata: {{name: p, namespace: {namespace}}}\nspec: {{kube: {{{kube}}}}}\n"
        );
        let reference =
            "  infrastructure: {parametersRef: {group: gateway.kgateway.dev, kind: GatewayParameters, name: p}}\n";
        self.desk.write("specs/a.yaml", &format!("{}{reference}{parameters}", gateway(namespace, "a", 8080)));
    }

    /// The clusters on which the Deployment says this.
    pub(crate) fn with(&self, text: &str) -> Vec<&'static str> {
        let path = |name: &str| format!("out/{name}/{}/deployment-a.yaml", self.namespace);
        let live = shared().kubectl_ok(&["get", "deployments", "-n", &self.namespace, "-o", "yaml"]);
        let is_there = live.contains(text).then_some("canary");
        is_there
            .into_iter()
            .chain(FOLLOWERS.into_iter().filter(|name| {
                let path = path(name);
                self.desk.path(&path).exists() && self.desk.read(&path).contains(text)
            }))
            .collect()
    }
}

pub(crate) const BAD: &str = "podTemplate: {nodeSelector: {no: such-node}}";

#[test]
fn what_is_not_healthy_on_the_first_cluster_reaches_no_other() {
    let fleet = fleet("");
    let (desk, namespace) = (&fleet.desk, &fleet.namespace);
    desk.run(&["sync"]).exits(0);

    // One command: there, and then everywhere.
    fleet.wants("podTemplate: {extraAnnotations: {edition: second}}");
    desk.run(&["plan"]).exits(0).says("  first on cluster canary, on the others once it is healthy there\n");
    desk.run(&["sync"]).exits(0);
    assert_eq!(fleet.with("edition: second"), ["canary", "dr", "edge", "lab"]);

    fleet.wants(BAD);
    desk.replace("gatewright.yaml", "timeout: 90s", "timeout: 3s");
    let run = desk.run(&["sync"]).exits(1);
    let held =
        &format!("on 3 of 4 clusters (dr, edge, lab)\n  Gateway {namespace}/a is held by guard rollout-halted: ");
    let why = format!(
        "went to cluster canary first, and is not healthy there: Gateway {namespace}/a: Deployment {namespace}/a: after 3s: "
    );
    let run = run.says(held).says(&why).says("    gatewright approve ");
    assert_eq!(fleet.with("such-node"), ["canary"]);

    // Not in the next round either, nor for a commit that changes something else, which goes everywhere.
    desk.write("specs/b.yaml", &gateway(namespace, "b", 8081));
    desk.run(&["sync"]).exits(1).says(held).says(&why);
    assert!(FOLLOWERS.iter().all(|name| desk.path(&format!("out/{name}/{namespace}/deployment-b.yaml")).exists()));
    desk.run(&["plan"]).exits(3).says(held);
    // Nor in a part of the fleet.
    let alone = format!("cluster lab\n  Gateway {namespace}/a is held by guard rollout-halted: ");
    desk.run(&["sync", "--cluster", "lab"]).exits(3).says(&alone);
    assert_eq!(fleet.with("such-node"), ["canary"]);

    // A person may want it all the same, on one of them.
    let line = run.out.lines().find(|line| line.contains("gatewright approve ")).expect("it was said");
    let token = line.split_whitespace().nth(2).expect("it is behind the command");
    desk.run(&["approve", token, "--cluster", "lab"]).exits(0);
    desk.run(&["sync"]).exits(1).says("on 2 of 4 clusters (dr, edge)\n").says("is held by guard rollout-halted: ");
    assert_eq!(fleet.with("such-node"), ["canary", "lab"]);

    desk.replace("gatewright.yaml", "timeout: 3s", "timeout: 90s");
    fleet.wants("podTemplate: {extraAnnotations: {edition: third}}");
    desk.run(&["sync"]).exits(0);
    assert_eq!(fleet.with("edition: third"), ["canary", "dr", "edge", "lab"]);
}

#[test]
fn what_is_not_healthy_on_a_cluster_that_is_taken_out_reaches_no_other() {
    let fleet = fleet("");
    let desk = &fleet.desk;
    desk.run(&["sync"]).exits(0);
    fleet.wants(BAD);
    desk.replace("gatewright.yaml", "timeout: 90s", "timeout: 3s");
    desk.run(&["sync"]).exits(1);
    assert_eq!(fleet.with("such-node"), ["canary"]);
    desk.replace("gatewright.yaml", "names: [canary, dr, edge, lab]", "names: [lab]");
    desk.run(&["plan"]).exits(3).says("is held by guard rollout-halted").complains("does not select clusters canary");
    desk.run(&["sync"]).exits(3).says("is held by guard rollout-halted");
    assert_eq!(fleet.with("such-node"), ["canary"]);
    // Something else is another change.
    fleet.wants("podTemplate: {extraAnnotations: {edition: third}}");
    desk.run(&["sync"]).exits(0);
    assert_eq!(fleet.with("edition: third"), ["lab"]);
}

/// The change that a killed process has sent to the first cluster is awaited by the next one, and then goes on.
#[test]
fn a_rollout_goes_on_where_a_killed_process_has_left_it() {
    let fleet = fleet("");
    let desk = &fleet.desk;
    desk.run(&["sync"]).exits(0);
    // Its pods are ready at once, and count only later.
    let late = "deploymentOverlay: {spec: {minReadySeconds: 10}}, podTemplate: {extraAnnotations: {edition: second}}";
    fleet.wants(late);
    let mut sync = desk.command(&["sync"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    while fleet.with("edition: second").is_empty() {
        assert!(sync.try_wait().expect("it can be asked").is_none(), "it has ended before it has changed anything");
    }
    sync.kill().expect("it can be killed");
    sync.wait().expect("it ends");
    assert_eq!(fleet.with("edition: second"), ["canary"]);
    desk.run(&["rollout", "status"]).exits(0).says("on its way to cluster canary");
    desk.run(&["sync"]).exits(0);
    assert_eq!(fleet.with("edition: second"), ["canary", "dr", "edge", "lab"]);
}

#[test]
fn what_is_not_healthy_goes_back_where_that_is_set() {
    let fleet = fleet("\n    rollout: {rollbackOnFailure: true}");
    let (desk, namespace) = (&fleet.desk, &fleet.namespace);
    desk.run(&["sync"]).exits(0);
    fleet.wants(BAD);
    desk.replace("gatewright.yaml", "timeout: 90s", "timeout: 3s");
    let run =
        desk.run(&["sync"]).exits(1).says("; taken back to ").says(&format!("Deployment {namespace}/a: after 3s: "));
    assert_eq!(
        (fleet.with("such-node"), fleet.with("edition: first")),
        (vec![], vec!["canary", "dr", "edge", "lab"]),
        "{}",
        run.out
    );

    let held = "went to cluster canary, was not healthy there, and was taken back: ";
    desk.run(&["plan"]).exits(3).says(held).says("on all 4 clusters");
    desk.write("specs/b.yaml", &gateway(namespace, "b", 8081));
    desk.run(&["sync"]).exits(3).says(held);
    desk.run(&["sync", "--full"]).exits(3).says(held);
    assert_eq!(fleet.with("such-node"), [""; 0]);
    desk.run(&["rollout", "status"]).exits(0).says("    taken back on cluster canary: ");
    let printed = desk.run(&["rollout", "status", "-o", "json"]).exits(0).out;
    let status: Value = serde_json::from_str(&printed).expect(&printed);
    obeys("rollouts-v1alpha1", &status);
    let rollout = &status["syncs"][0]["rollouts"][0];
    assert_eq!(rollout["units"], json!([format!("Gateway {namespace}/a")]), "{printed}");
    let failed = &rollout["waves"][0]["failed"][0];
    assert_eq!((&failed["cluster"], &failed["returned"]), (&json!("canary"), &json!(true)), "{printed}");
    // Nothing of it is left that an incident would have to take back.
    desk.run(&["rollback", &fleet.sync, "--dry-run"]).exits(0);

    desk.replace("gatewright.yaml", "timeout: 3s", "timeout: 90s");
    fleet.wants("podTemplate: {extraAnnotations: {edition: second}}");
    desk.run(&["sync"]).exits(0);
    assert_eq!(fleet.with("edition: second"), ["canary", "dr", "edge", "lab"]);
}

#[test]
fn all_clusters_get_it_at_once_where_that_is_asked_for() {
    let fleet = fleet("\n    rollout: {strategy: all}");
    fleet.desk.run(&["sync"]).exits(0);
    fleet.desk.replace("gatewright.yaml", "timeout: 90s", "timeout: 3s");
    fleet.wants(BAD);
    fleet.desk.run(&["sync"]).exits(1);
    assert_eq!(fleet.with("such-node"), ["canary", "dr", "edge", "lab"]);
    fleet.desk.replace("gatewright.yaml", "strategy: all", "strategy: canary, first: {names: [nobody]}");
    let complaint = format!("none of the clusters of sync {:?} would be the first of a rollout", fleet.sync);
    fleet.desk.run(&["plan"]).exits(64).complains(&complaint);
    fleet.desk.replace("gatewright.yaml", "strategy: canary, first: {names: [nobody]}", "strategy: all");
    let run = fleet.desk.run(&["rollout", "pause", &fleet.sync]).exits(64);
    run.complains("has no rollouts: its strategy is all");
}

#[test]
fn waves_go_one_after_the_other_and_a_person_may_stop_and_skip_them() {
    let fleet = fleet(
        "\n    rollout:\n      waves:\n        - clusters: {names: [lab]}\n        - clusters: {names: [canary]}\n        \
         - {clusters: {names: [dr, edge]}, approval: true}\n",
    );
    let (desk, sync) = (&fleet.desk, fleet.sync.as_str());
    desk.run(&["sync"]).exits(0);
    fleet.wants(BAD);
    desk.replace("gatewright.yaml", "timeout: 90s", "timeout: 3s");
    let order = "  in waves: on lab; on canary; on 2 clusters (dr, edge) once a person has agreed, each once it is ";
    let plan = desk.run(&["plan"]).exits(3).says(order);
    plan.says("on 2 of 4 clusters (dr, edge)\n").says("is held by guard rollout-approval: ");
    desk.run(&["sync"]).exits(1).says("on 2 of 4 clusters (dr, edge)\n").says("held by guard rollout-halted: ");
    assert_eq!(fleet.with("such-node"), ["canary", "lab"]);
    let why = desk.run(&["rollout", "explain", sync]).exits(0).says("sync ").says("1 unit under way\n");
    why.says("  on 2 clusters (dr, edge), 1 unit (").says("    rollout-halted: ");
    desk.run(&["rollout", "approve", sync]).exits(64).complains("nobody can be asked");
    let status = desk.run(&["rollout", "status"]).exits(0).says("    healthy on cluster lab\n");
    status.says("    not healthy on cluster canary: ").says("    waited for by 2 clusters (dr, edge)\n");

    // The correction goes to the sick one and to the first wave at once, and then waits for a person.
    desk.replace("gatewright.yaml", "timeout: 3s", "timeout: 90s");
    fleet.wants("podTemplate: {extraAnnotations: {edition: second}}");
    let run = desk.run(&["sync"]).exits(3).says("goes to wave 3 when a person has agreed");
    assert_eq!(fleet.with("edition: second"), ["canary", "lab"]);
    let line = run.out.lines().find(|line| line.contains("gatewright approve ")).expect("it was said");
    assert!(line.split_whitespace().nth(2).is_some_and(|token| token.len() == 14), "{line}");
    desk.run(&["rollout", "approve", sync, "--yes"]).exits(0).says("approved until ");

    // Who pauses rollouts means also what is approved, and nothing else lifts that.
    desk.run(&["rollout", "pause", sync, "--reason", "peak"]).exits(0).says("are paused");
    let paused =
        desk.run(&["sync"]).exits(3).says("held by guard rollout-paused: the rollouts of this sync are paused");
    assert!(!paused.out.contains("gatewright approve"), "{}", paused.out);
    assert_eq!(fleet.with("edition: second"), ["canary", "lab"]);
    fleet.wants("podTemplate: {extraAnnotations: {edition: third}}");
    desk.run(&["sync"]).exits(3).says("the rollouts of this sync are paused").says("on all 4 clusters");
    assert_eq!(fleet.with("edition: third"), [""; 0]);
    desk.run(&["rollout", "explain", sync]).exits(0).says("    rollout-paused: ").says("on 4 clusters");
    desk.run(&["rollout", "approve", sync, "--yes"]).exits(1).complains("no change of sync ");
    desk.run(&["rollout", "resume", sync]).exits(0).says("they were paused");
    desk.run(&["sync", "--skip-waves", "--reason", "incident 7"])
        .exits(0)
        .says("by hand, on all clusters at once: incident 7");
    assert_eq!(fleet.with("edition: third"), ["canary", "dr", "edge", "lab"]);

    bad_waves_are_refused(desk);
}

/// Says what is wrong with waves, with the configuration of the test before.
fn bad_waves_are_refused(desk: &Desk) {
    for (bad, complaint) in [
        (
            "first: {names: [lab]}, waves: [{clusters: {names: [lab]}}]",
            "waves say in which order clusters get a change",
        ),
        ("waves: [{clusters: {names: [lab]}}, {clusters: {names: [lab]}}]", "wave 2 has no cluster of sync"),
        ("waves: [{clusters: {names: [lab]}, maxConcurrent: 25}, {clusters: {matchLabels: {}}, soak: 5}]", "soak"),
        ("waves: [{clusters: {names: [lab]}, maxConcurrent: 250%}]", "maxConcurrent"),
        ("waves: [{clusters: {names: [lab]}, maxConcurrent: 0%}]", "wave 1 of sync"),
    ] {
        let config = desk.read("gatewright.yaml");
        let from = config.find("rollout:\n").expect("it is there");
        let to = from + config[from..].find("approval: true}").expect("it is there") + "approval: true}".len();
        desk.write("gatewright.yaml", &format!("{}rollout: {{{bad}}}{}", &config[..from], &config[to..]));
        desk.run(&["plan"]).exits(64).complains(complaint);
        desk.write("gatewright.yaml", &config);
    }
}

/// README has the commands.
#[test]
fn the_example_of_a_fleet_goes_in_waves() {
    let desk = Desk::example("fleet");
    desk.run(&["sync"]).exits(0);
    desk.replace("specs/gateways.yaml", "cpu: 200m", "cpu: 300m");
    let order = "  in waves: on lab; on eu-1; on us-1, each once it is healthy on those before\n";
    desk.run(&["plan"]).exits(0).says(order);
    desk.run(&["sync"]).exits(0).says("on all 3 clusters");
    assert!(
        ["lab", "eu-1", "us-1"]
            .iter()
            .all(|cluster| { desk.read(&format!("rendered/{cluster}/infra/deployment-edge.yaml")).contains("300m") })
    );
    desk.run(&["rollout", "status"]).exits(0).says("sync fleet: nothing is under way\n");

    // A cluster more is a file more; one that is gone keeps what it has.
    desk.write("clusters.d/eu-2.directory.yaml", "path: ../rendered/eu-2\n");
    desk.write("clusters.d/eu-2.labels.yaml", "{region: eu, env: prod}\n");
    desk.replace("specs/overlays.yaml", "eu-1: {ip", "eu-2: {ip: 192.0.2.20}\n      eu-1: {ip");
    desk.run(&["sync"]).exits(0);
    assert!(desk.read("rendered/eu-2/infra/deployment-edge.yaml").contains("300m"));
    std::fs::remove_file(desk.path("clusters.d/eu-2.directory.yaml")).expect("it is there");
    desk.run(&["sync"]).exits(0).complains("cluster eu-2: ");
    assert!(desk.read("rendered/eu-2/infra/deployment-edge.yaml").contains("300m"));
    desk.write("clusters.d/eu-2.directory.yaml", "path: ../rendered/eu-1\n");
    desk.run(&["plan"]).exits(64).complains("clusters \"eu-1\" and \"eu-2\" share a directory");
}

#[test]
fn a_sync_goes_from_a_cluster_when_it_is_healthy_on_another() {
    let fleet = fleet("");
    let (desk, namespace) = (&fleet.desk, &fleet.namespace);
    let select = |from: &str, to: &str| {
        desk.replace(
            "gatewright.yaml",
            &format!("clusters: {{names: [{from}]}}"),
            &format!("clusters: {{names: [{to}]}}"),
        );
    };
    select("canary, dr, edge, lab", "dr");
    desk.run(&["sync"]).exits(0);
    assert_eq!(fleet.with("edition: first"), ["dr"]);
    let leave = ["destroy", &fleet.sync, "--cluster", "dr", "--once-healthy-on", "canary", "--yes"];
    desk.run(&leave).exits(64).complains("does not go to cluster \"canary\"");
    select("dr", "canary, dr");
    desk.run(&leave).exits(64).complains("still goes to cluster \"dr\"");
    select("canary, dr", "canary");
    desk.run(&["destroy", &fleet.sync, "--once-healthy-on", "canary", "--yes"]).exits(64);

    // It was never there, or is not as its source says, or has become ill, or is not wanted there at all.
    let unit = format!("Gateway {namespace}/a on canary: ");
    desk.run(&leave)
        .exits(3)
        .complains(&unit)
        .complains("nothing was deleted: what would go is not all healthy on canary");
    desk.replace("gatewright.yaml", "timeout: 90s", "timeout: 3s");
    fleet.wants(BAD);
    desk.run(&["sync"]).exits(1);
    desk.run(&leave).exits(3).complains(&unit).complains("0 of 1 ");
    fleet.wants("podTemplate: {extraAnnotations: {edition: second}}");
    desk.replace("gatewright.yaml", "timeout: 3s", "timeout: 90s");
    desk.run(&["sync"]).exits(0);
    fleet.wants("podTemplate: {extraAnnotations: {edition: third}}");
    desk.run(&leave).exits(3).complains(&format!("{unit}it is not as its source says yet"));
    desk.run(&["sync"]).exits(0);
    let spec = desk.read("specs/a.yaml");
    desk.write("specs/a.yaml", &gateway(namespace, "other", 8080));
    desk.run(&leave).exits(3).complains(&format!("{unit}it is not as its source says yet"));
    desk.run(&["sync"]).exits(0);
    desk.run(&leave).exits(3).complains(&format!("{unit}it is not wanted there"));
    desk.write("specs/a.yaml", &spec);
    desk.run(&["sync"]).exits(0);
    assert_eq!(fleet.with("edition: first"), ["dr"], "all that time");

    let run = desk.run(&leave).exits(0).says("objects deleted").says("nothing of it is left");
    assert!(!run.err.contains("makes all of it again"), "{}", run.err);
    assert_eq!(fleet.with("edition: first"), [""; 0]);
    assert_eq!(fleet.with("edition: third"), ["canary"]);
}

#[test]
fn a_plan_says_where_a_person_agrees_first() {
    let desk = Desk::empty("gatewright.yaml");
    let clusters = ["a", "b", "c"].map(|name| format!("{name}: {{directory: {{path: {name}}}}}")).join(", ");
    let waves = "[{clusters: {names: [a]}}, {clusters: {names: [b]}, approval: true}, {clusters: {names: [c]}}]";
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nsources: {{specs: {{directory: {{path: specs, settle: 0s}}}}}}\nclusters: {{{clusters}}}\n\
             syncs: {{edge: {{source: specs, createNamespaces: true, clusters: {{names: [a, b, c]}}, rollout: {{waves: {waves}}}}}}}\n"
        ),
    );
    desk.write("specs/a.yaml", &gateway("infra", "a", 80));
    desk.run(&["sync"]).exits(0);
    desk.write("specs/a.yaml", &gateway("infra", "a", 8080));
    let plan = desk.run(&["plan"]);
    plan.says("  in waves: on a; on b once a person has agreed; on c, each once it is healthy on those before\n");
}
