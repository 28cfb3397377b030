//! Rollouts under the daemon, where each cluster has rounds of its own.

use super::{Daemon, gateway};
use crate::cluster::process::free_port;
use crate::cluster::{shared, unique};
use crate::program::Desk;
use crate::support::receiver::{Answer, Receiver};

const FOLLOWERS: [&str; 3] = ["dr", "edge", "lab"];

struct Fleet {
    desk: Desk,
    namespace: String,
}

/// A cluster in which pods become ready, and directories; but for a new revision nothing happens for an hour.
fn fleet(port: u16) -> Fleet {
    let (desk, namespace) = (Desk::empty("gatewright.yaml"), unique("followed"));
    let kubeconfig = shared().kubeconfig("admin").display().to_string();
    let folder = |name: &&str| format!("  {name}: {{directory: {{path: out/{name}}}}}\n");
    let folders = FOLLOWERS.iter().map(folder).collect::<Vec<_>>().concat();
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nhttp: {{listen: \"127.0.0.1:{port}\"}}\n\
             sources: {{specs: {{directory: {{path: specs}}, poll: 1s}}}}\n\
             clusters:\n  canary: {{kubeconfig: {{path: {kubeconfig}}}}}\n{folders}syncs:\n  {namespace}:\n    source: specs\n    \
             clusters: {{matchLabels: {{}}}}\n    createNamespaces: true\n    wait: {{timeout: 20s}}\n    \
             schedule: {{interval: 1h, jitter: 0%}}\n"
        ),
    );
    Fleet { desk, namespace }
}

impl Fleet {
    fn wants(&self, kube: &str) {
        let namespace = &self.namespace;
        self.desk.write(
            "specs/a.yaml",
            &format!(
                "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{name: a, namespace: {namespace}}}\n\
                 spec:\n  gatewayClassName: kgateway\n  listeners: [{{name: http, port: 8080, protocol: HTTP}}]\n  \
                 infrastructure: {{parametersRef: {{group: gateway.kgateway.dev, kind: GatewayParameters, name: p}}}}\n---\n\
                 apiVersion: gateway.kgateway.dev/v1alpha1\nkind: GatewayParameters\n\
                 metadata: {{name: p, namespace: {namespace}}}\nspec: {{kube: {{podTemplate: {{{kube}}}}}}}\n"
            ),
        );
    }

    fn status(&self, cluster: &str) -> String {
        self.desk.run(&["status", "--cluster", cluster]).out
    }

    /// The number of directories in which the Deployment says this.
    fn followers_with(&self, text: &str) -> usize {
        let path = |name: &str| self.desk.path(&format!("out/{name}/{}/deployment-a.yaml", self.namespace));
        let says = |name: &&str| std::fs::read_to_string(path(name)).is_ok_and(|deployment| deployment.contains(text));
        FOLLOWERS.into_iter().filter(says).count()
    }
}

/// Each round of one that is held is news for the others.
#[test]
fn what_waits_for_a_person_costs_no_rounds() {
    let (port, desk) = (free_port(), Desk::empty("gatewright.yaml"));
    let folder = |name: &str| format!("  {name}: {{directory: {{path: out/{name}}}}}\n");
    let folders = ["a", "b", "c", "other"].map(folder).concat();
    let schedule = "schedule: {interval: 1h, jitter: 0%}, createNamespaces: true";
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nhttp: {{listen: \"127.0.0.1:{port}\"}}\n\
             sources:\n  specs: {{directory: {{path: specs}}, poll: 1s}}\n  more: {{directory: {{path: more}}, poll: 1s}}\n\
             clusters:\n{folders}syncs:\n  \
             gateways: {{source: specs, clusters: {{names: [a, b, c]}}, {schedule}, \
             prune: {{maxDelete: {{units: 5, percent: 100, fleet: 5}}}}}}\n  \
             other: {{source: more, clusters: {{names: [other]}}, {schedule}}}\n",
        ),
    );
    for name in ["one", "two", "three"] {
        desk.write(&format!("specs/{name}.yaml"), &gateway(name, 8080));
    }
    desk.write("more/other.yaml", &gateway("other", 8080));
    let mut daemon = Daemon::start(&desk, port, &[]);
    let has = |cluster: &str, name: &str| desk.path(&format!("out/{cluster}/shop/deployment-{name}.yaml")).exists();
    daemon.until("what is made", |_| ["a", "b", "c"].iter().all(|cluster| has(cluster, "three")));
    for name in ["two", "three"] {
        std::fs::remove_file(desk.path(&format!("specs/{name}.yaml"))).expect("it is there");
    }
    let is_held = |daemon: &Daemon, number| {
        daemon.metric("gatewright_holds", &["max-delete-fleet"]).is_some_and(|holds| holds >= number)
    };
    daemon.until("the hold", |daemon| is_held(daemon, 3.0));
    let rounds = |daemon: &Daemon| daemon.metric("gatewright_rounds_total", &["\"gateways\""]).unwrap_or_default();
    let before = rounds(&daemon);
    for port in 9000..9005 {
        desk.write("more/other.yaml", &gateway("other", port));
        let service = || std::fs::read_to_string(desk.path("out/other/shop/service-other.yaml")).unwrap_or_default();
        daemon.until("what takes seconds", |_| service().contains(&port.to_string()));
    }
    let more = rounds(&daemon) - before;
    assert!(more <= 6.0, "{more} rounds, of three clusters, in which nothing was to be done");
    assert!(is_held(&daemon, 3.0) && ["a", "b", "c"].iter().all(|cluster| has(cluster, "two")));
}

#[test]
fn others_follow_as_soon_as_the_first_is_healthy_and_not_before() {
    let port = free_port();
    let fleet = fleet(port);
    fleet.wants("extraAnnotations: {edition: first}");
    let mut daemon = Daemon::start(&fleet.desk, port, &[]);
    daemon.until("what is made for the first time", |_| fleet.followers_with("edition: first") == 3);
    // The first cluster has to be through, or it would still be at the first edition when the others are at the next.
    daemon.until("its health", |_| fleet.status("canary").contains("cluster canary: done"));

    fleet.wants("extraAnnotations: {edition: second}");
    daemon.until("those that follow", |_| fleet.followers_with("edition: second") == 3);

    fleet.wants("nodeSelector: {no: such-node}");
    let is_halted = |name: &&str| fleet.status(name).contains("held by guard rollout-halted");
    daemon.until("the halt", |_| FOLLOWERS.iter().all(is_halted));
    assert_eq!(fleet.followers_with("such-node"), 0);

    // What is known of it survives the daemon.
    drop(daemon);
    let mut daemon = Daemon::start(&fleet.desk, port, &[]);
    daemon.until("a round of each", |daemon| daemon.metric("gatewright_rounds_total", &["\"held\""]) >= Some(1.0));
    assert_eq!(fleet.followers_with("such-node"), 0);

    fleet.wants("extraAnnotations: {edition: third}");
    daemon.until("the correction", |_| fleet.followers_with("edition: third") == 3);
}

/// Its round was over long before another cluster of its wave failed.
#[test]
fn a_wave_goes_back_with_rounds_of_their_own() {
    let (port, desk, receiver) = (free_port(), Desk::empty("gatewright.yaml"), Receiver::start());
    receiver.always(Answer::Status(500));
    let folders = FOLLOWERS.map(|name| format!("  {name}: {{directory: {{path: out/{name}}}}}\n")).concat();
    let rollout = format!(
        "rollout: {{rollbackOnFailure: true, gates: [{{name: smoke, clusters: {{names: [lab]}}, url: '{}'}}], \
         waves: [{{clusters: {{names: [dr, lab]}}}}]}}",
        receiver.url("/lab")
    );
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nhttp: {{listen: \"127.0.0.1:{port}\"}}\n\
             sources: {{specs: {{directory: {{path: specs}}, poll: 1s}}}}\nclusters:\n{folders}syncs:\n  \
             gateways: {{source: specs, clusters: {{matchLabels: {{}}}}, createNamespaces: true, wait: {{timeout: 2s}}, \
             schedule: {{interval: 1h, jitter: 0%}}, {rollout}}}\n"
        ),
    );
    let fleet = Fleet { desk, namespace: "shop".to_owned() };
    fleet.wants("extraAnnotations: {edition: first}");
    let mut daemon = Daemon::start(&fleet.desk, port, &[]);
    daemon.until("what is made", |_| fleet.followers_with("edition: first") == 3);
    fleet.wants("extraAnnotations: {edition: second}");
    let is_back = |_: &Daemon| {
        let status = fleet.desk.run(&["rollout", "status"]).out;
        status.contains("    taken back on cluster dr: on cluster lab: ")
            && status.contains("on cluster lab: Gateway shop/a: gate smoke")
    };
    daemon.until("what has failed is taken back", is_back);
    assert_eq!((fleet.followers_with("edition: first"), fleet.followers_with("edition: second")), (3, 0));
    // It was asked about, and nobody has asked again.
    let asked = receiver.received().len();
    assert!(asked > 0, "the gate was not asked");
    receiver.always(Answer::Status(200));
    fleet.wants("extraAnnotations: {edition: third}");
    daemon.until("the correction goes everywhere", |_| fleet.followers_with("edition: third") == 3);
}
