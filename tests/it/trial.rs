//! A day with forty clusters: three API servers and directories, twelve Gateways, and what goes wrong in an incident.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::process::Stdio;
use std::sync::Arc;

use crate::cluster::etcd::Etcd;
use crate::cluster::process::command;
use crate::cluster::{ApiServer, Options};
use crate::program::Desk;

/// The lines of a screen.
const SCREEN: usize = 50;

/// All clusters, and those with an API server.
const CLUSTERS: usize = 40;
const SERVERS: [&str; 3] = ["eu-1", "eu-2", "us-1"];

struct Fleet {
    desk: Desk,
    servers: Vec<ApiServer>,
}

fn fleet() -> Fleet {
    let etcd = Arc::new(Etcd::start());
    let start = |name: &&str| {
        let options = Options { name: (*name).to_owned(), controllers: true, ..Options::default() };
        ApiServer::start_on(&etcd, options)
    };
    let fleet = Fleet { desk: Desk::empty("gatewright.yaml"), servers: SERVERS.iter().map(start).collect() };
    let mut clusters = String::new();
    for number in 1..=CLUSTERS {
        let labels = format!("labels: {{ip: 10.20.0.{number}}}");
        let (name, target) = match number.checked_sub(CLUSTERS - 2) {
            Some(server) => (SERVERS[server].to_owned(), fleet.kubeconfig(server)),
            None => (format!("edge-{number:02}"), format!("directory: {{path: out/edge-{number:02}}}")),
        };
        writeln!(clusters, "  {name}: {{{target}, {labels}}}").expect("a text takes everything");
    }
    let config = format!(
        "stateDir: state\nsources: {{specs: {{directory: {{path: specs, settle: 0s}}}}}}\nclusters:\n{clusters}syncs:\n  \
         gateways: {{source: specs, clusters: {{matchLabels: {{}}}}, createNamespaces: true, wait: {{timeout: 90s}}}}\n"
    );
    fleet.desk.write("gatewright.yaml", &config);
    for number in 1..=12 {
        let name = format!("g{number:02}");
        let gateway = format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{name: {name}, namespace: infra}}\n\
             spec: {{gatewayClassName: kgateway, listeners: [{{name: http, port: 8080, protocol: HTTP}}]}}\n"
        );
        fleet.desk.write(&format!("specs/{name}.yaml"), &gateway);
    }
    let overlay = "apiVersion: gatewright.dev/v1alpha1\nkind: ClusterOverlay\nmetadata: {name: addresses}\n\
                   spec: {parameters: {kube: {service: {extraAnnotations: {example.com/address: \"{{ cluster.labels.ip }}\"}}}}}\n";
    fleet.desk.write("specs/addresses.yaml", overlay);
    fleet.wants("v1", "");
    fleet
}

impl Fleet {
    fn kubeconfig(&self, server: usize) -> String {
        format!("kubeconfig: {{path: {}, timeout: 20s}}", self.servers[server].kubeconfig("admin").display())
    }

    /// Wants an image, and something else of the pods.
    fn wants(&self, image: &str, pods: &str) {
        let class = format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {{name: kgateway}}\nspec:\n  \
             controllerName: kgateway.dev/kgateway\n  parametersRef: {{group: gateway.kgateway.dev, \
             kind: GatewayParameters, name: shared, namespace: infra}}\n---\n\
             apiVersion: gateway.kgateway.dev/v1alpha1\nkind: GatewayParameters\nmetadata: {{name: shared, namespace: infra}}\n\
             spec: {{kube: {{envoyContainer: {{image: {{tag: {image}}}}}, podTemplate: {{{pods}}}}}}}\n"
        );
        self.desk.write("specs/class.yaml", &class);
    }

    /// The clusters on which all Deployments that are there say this, and how many those are.
    fn with(&self, text: &str) -> (BTreeSet<String>, usize) {
        let edges = (1..=CLUSTERS - SERVERS.len()).map(|number| {
            let name = format!("edge-{number:02}");
            let folder = fs::read_dir(self.desk.path(&format!("out/{name}/infra"))).expect("it is there");
            let files = folder.map(|entry| entry.expect("it can be read").path());
            let is_deployment = |file: &std::path::PathBuf| file.to_string_lossy().contains("/deployment-");
            let read = |file| fs::read_to_string(file).expect("it can be read");
            (name, files.filter(is_deployment).map(read).collect::<Vec<_>>())
        });
        let servers = self.servers.iter().map(|server| {
            let path = "jsonpath={range .items[*]}{.spec.template.spec}{'\\n'}{end}";
            let list = server.kubectl_ok(&["get", "deployments", "-n", "infra", "-o", path]);
            (server.name().to_owned(), list.lines().map(str::to_owned).collect::<Vec<_>>())
        });
        let mut all = 0;
        let mut clusters = BTreeSet::new();
        for (name, deployments) in edges.chain(servers) {
            all += deployments.len();
            if deployments.iter().all(|deployment| deployment.contains(text)) {
                clusters.insert(name);
            }
        }
        (clusters, all)
    }

    fn has_everywhere(&self, text: &str, deployments: usize) {
        let (clusters, all) = self.with(text);
        assert_eq!((clusters.len(), all), (CLUSTERS, deployments), "{text}: {clusters:?}");
    }

    fn signal(&self, server: usize, name: &str) {
        let sent = command("kill").args(["-s", name, &self.servers[server].pid().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()));
    }
}

#[test]
fn a_day_with_forty_clusters() {
    let fleet = fleet();
    let desk = &fleet.desk;
    desk.run(&["sync"]).exits(0);
    fleet.has_everywhere(":v1", 480);
    let service = desk.read("out/edge-07/infra/service-g03.yaml");
    assert!(service.contains("10.20.0.7"), "{service}");

    // A new image: the plan fits on a screen, and in one command it goes to one cluster and then to all.
    fleet.wants("v2", "");
    let plan = desk.run(&["plan"]).exits(0).says("480 of 480 units on 40 of 40 clusters change");
    assert!(plan.out.lines().count() <= SCREEN, "{}", plan.out);
    plan.says("  first on cluster eu-1, on the others once it is healthy there\n");
    desk.run(&["sync"]).exits(0);
    fleet.has_everywhere(":v2", 480);

    // A bad one: nobody else has it, and the report says which pod and why.
    fleet.wants("v3", "nodeSelector: {no: such-node}");
    desk.replace("gatewright.yaml", "wait: {timeout: 90s", "wait: {timeout: 20s");
    let run = desk.run(&["sync"]).exits(1);
    let run = run.says("Deployment infra/g01: after 20s: ").says("pod g01-").says("node(s) didn't match");
    run.says("on 39 of 40 clusters (all but eu-1)\n").says("are held by guard rollout-halted: ");
    let bad = fleet.with(":v3");
    assert_eq!((bad.0.into_iter().collect::<Vec<_>>(), bad.1), (vec!["eu-1".to_owned()], 480));
    let status = desk.run(&["status"]).exits(0);
    assert!(status.out.lines().count() <= SCREEN, "{}", status.out);

    // One command heals it.
    desk.replace("gatewright.yaml", "wait: {timeout: 20s", "wait: {timeout: 90s");
    desk.run(&["rollback", "gateways"]).exits(0).says("12 objects updated").complains("on all 40 clusters: back to ");
    fleet.has_everywhere(":v2", 480);

    // A frozen server delays nobody, and follows when it is back.
    desk.run(&["resume", "gateways"]).exits(0);
    fleet.wants("v4", "");
    fleet.signal(2, "STOP");
    desk.run(&["sync"]).exits(4).says("cluster us-1\n  unreachable: ");
    fleet.signal(2, "CONT");
    let (clusters, all) = fleet.with(":v4");
    assert_eq!((clusters.len(), clusters.contains("us-1"), all), (39, false, 480));
    desk.run(&["sync"]).exits(0);
    fleet.has_everywhere(":v4", 480);

    // Neither does a process that is killed.
    fleet.wants("v5", "");
    let mut sync = desk.command(&["sync"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    while fleet.with(":v5").0.is_empty() && sync.try_wait().is_ok_and(|ended| ended.is_none()) {}
    sync.kill().expect("it can be killed");
    sync.wait().expect("it ends");
    desk.run(&["sync"]).exits(0);
    fleet.has_everywhere(":v5", 480);

    a_quarter_goes(&fleet);
}

/// One token for all, also for the one that was frozen meanwhile.
fn a_quarter_goes(fleet: &Fleet) {
    let desk = &fleet.desk;
    for number in 1..=3 {
        fs::remove_file(desk.path(&format!("specs/g{number:02}.yaml"))).expect("it is there");
    }
    let held =
        desk.run(&["sync"]).exits(3).says("held by guard max-delete-fleet: objects of 120 units would be deleted");
    fleet.signal(0, "STOP");
    desk.run(&["sync"]).exits(3).says("held by guard max-delete-fleet: ").says("cluster eu-1\n  unreachable: ");
    fleet.signal(0, "CONT");
    fleet.has_everywhere(":v5", 480);
    let tokens: BTreeSet<&str> = held
        .out
        .lines()
        .filter_map(|line| line.trim().strip_prefix("gatewright approve ")?.split_whitespace().next())
        .collect();
    assert_eq!(tokens.len(), 1, "{}", held.out);
    desk.run(&["approve", tokens.first().expect("there is one"), "--yes"]).exits(0);
    desk.run(&["sync"]).exits(0);
    fleet.has_everywhere(":v5", 360);
}
