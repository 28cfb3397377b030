//! Ten API servers in three waves: a change that fails on the first of them, and servers that are lost in three ways.

use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;

use crate::cluster::etcd::Etcd;
use crate::cluster::process::command;
use crate::cluster::proxy::{Answer, Proxy, Seen};
use crate::cluster::{ApiServer, Options};
use crate::program::Desk;

/// Those of the first wave have controllers: what is to become healthy becomes it there.
const FIRST: [&str; 2] = ["c0", "c1"];
const OTHERS: [&str; 8] = ["c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9"];
const GATEWAYS: usize = 4;
/// The most requests that a round without changes costs on one cluster: four kinds, and the head of the inventory.
const NO_CHANGE: usize = 5;

struct Fleet {
    desk: Desk,
    servers: Vec<ApiServer>,
    proxies: Vec<Proxy>,
}

fn fleet() -> Fleet {
    let etcd = Arc::new(Etcd::start());
    let start = |name: &&str| {
        ApiServer::start_on(&etcd, Options { name: (*name).to_owned(), controllers: true, ..Options::default() })
    };
    let mut servers: Vec<ApiServer> = FIRST.iter().map(start).collect();
    servers.extend(ApiServer::fleet(&OTHERS));
    let proxies: Vec<Proxy> = servers.iter().map(Proxy::start).collect();
    let mut clusters = String::new();
    for (server, proxy) in servers.iter().zip(&proxies) {
        let path = proxy.kubeconfig();
        writeln!(
            clusters,
            "  {}: {{kubeconfig: {{path: {}, allowInsecureTls: true, timeout: 10s}}}}",
            server.name(),
            path.display()
        )
        .expect("a text takes everything");
    }
    let desk = Desk::empty("gatewright.yaml");
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nsources: {{specs: {{directory: {{path: specs, settle: 0s}}}}}}\nclusters:\n{clusters}syncs:\n  \
             gateways:\n    source: specs\n    clusters: {{matchLabels: {{}}}}\n    createNamespaces: true\n    \
             wait: {{timeout: 60s}}\n    prune: {{maxDelete: {{percent: 100}}}}\n    rollout:\n      rollbackOnFailure: true\n      \
             waves: [{{clusters: {{names: [c0, c1]}}}}, {{clusters: {{names: [c2, c3, c4]}}}}]\n"
        ),
    );
    for number in 0..GATEWAYS {
        desk.write(
            &format!("specs/g{number}.yaml"),
            &format!(
                "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{name: g{number}, namespace: infra}}\n\
                 spec: {{gatewayClassName: kgateway, listeners: [{{name: http, port: 8080, protocol: HTTP}}]}}\n"
            ),
        );
    }
    let fleet = Fleet { desk, servers, proxies };
    fleet.wants("");
    fleet
}

impl Fleet {
    fn wants(&self, pods: &str) {
        self.desk.write(
            "specs/class.yaml",
            &format!(
                "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {{name: kgateway}}\nspec:\n  \
                 controllerName: kgateway.dev/kgateway\n  parametersRef: {{group: gateway.kgateway.dev, \
                 kind: GatewayParameters, name: shared, namespace: infra}}\n---\n\
                 apiVersion: gateway.kgateway.dev/v1alpha1\nkind: GatewayParameters\nmetadata: {{name: shared, namespace: infra}}\n\
                 spec: {{kube: {{podTemplate: {{{pods}}}}}}}\n"
            ),
        );
    }

    /// Says of all Deployments where no controller does it that they are healthy.
    fn become_healthy(&self) {
        let status = r#"{"status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1,
            "availableReplicas": 1, "conditions": [{"type": "Available", "status": "True"}]}}"#;
        for server in &self.servers[FIRST.len()..] {
            for name in (0..GATEWAYS).map(|number| format!("g{number}")) {
                let patch =
                    ["patch", "deployment", &name, "-n", "infra", "--subresource=status", "--type=merge", "-p", status];
                server.kubectl_ok(&patch);
            }
        }
    }

    fn forget_requests(&self) {
        self.proxies.iter().for_each(Proxy::recovers);
    }

    fn signal(&self, server: usize, name: &str) {
        let sent = command("kill").args(["-s", name, &self.servers[server].pid().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()));
    }
}

/// The Deployments on a server, and on how many of them this can be read.
fn deployments(server: &ApiServer, text: &str) -> (usize, usize) {
    let path = "jsonpath={range .items[*]}{.spec.template.spec}{'\\n'}{end}";
    let list = server.kubectl_ok(&["get", "deployments", "-n", "infra", "-o", path]);
    (list.lines().count(), list.lines().filter(|line| line.contains(text)).count())
}

#[test]
fn a_change_that_fails_leaves_ten_servers_as_they_were() {
    let fleet = fleet();
    let desk = &fleet.desk;
    desk.run(&["sync", "--no-wait"]).exits(0).says("170 objects created");
    fleet.become_healthy();
    desk.run(&["sync"]).exits(0);

    fleet.forget_requests();
    desk.run(&["sync"]).exits(0).says("no changes");
    for (proxy, server) in fleet.proxies.iter().zip(&fleet.servers) {
        let seen = proxy.seen();
        assert!(seen.len() <= NO_CHANGE && !seen.iter().any(Seen::is_write), "{}: {seen:?}", server.name());
    }

    // A bad one in the first wave: it goes back, and no later one is written to.
    fleet.forget_requests();
    fleet.wants("nodeSelector: {no: such-node}");
    desk.replace("gatewright.yaml", "timeout: 60s", "timeout: 8s");
    desk.run(&["plan"]).exits(0).says("in waves: on 2 clusters (c0, c1); on 3 clusters (c2, c3, c4); on 5 clusters");
    let run = desk
        .run(&["sync"])
        .exits(1)
        .says("taken back to ")
        .says("on 8 of 10 clusters")
        .says("are held by guard rollout-halted: ");
    for (server, proxy) in fleet.servers.iter().zip(&fleet.proxies) {
        assert_eq!(deployments(server, "such-node"), (GATEWAYS, 0), "{}: {}", server.name(), run.out);
        let is_first = FIRST.contains(&server.name());
        let patched = proxy.carried_out().iter().filter(|it| it.contains("/deployments/")).count();
        assert_eq!(patched, if is_first { 2 * GATEWAYS } else { 0 }, "{}", server.name());
    }
    // The next round leaves them alone.
    fleet.forget_requests();
    desk.run(&["sync"]).exits(3).says("on all 10 clusters").says("and was taken back");
    assert!(fleet.proxies.iter().all(|proxy| proxy.carried_out().is_empty()));
    fleet.wants("");
    desk.run(&["sync"]).exits(0).says("no changes");

    three_are_lost(fleet);
}

/// One frozen, one that answers 429, and one that was built again behind the same name.
fn three_are_lost(mut fleet: Fleet) {
    fleet.forget_requests();
    let new = ApiServer::start_on(&Arc::new(Etcd::start()), Options { name: "c7".to_owned(), ..Options::default() });
    let new_proxy = Proxy::start(&new);
    let path = |proxy: &Proxy| proxy.kubeconfig().display().to_string();
    fleet.desk.replace("gatewright.yaml", &path(&fleet.proxies[7]), &path(&new_proxy));
    fleet.servers[7].stop();
    fleet.proxies[8].answer(usize::MAX, |_| true, Answer::Busy(1));
    fleet.signal(9, "STOP");
    fs::remove_file(fleet.desk.path("specs/g3.yaml")).expect("it is there");
    let run = fleet.desk.run(&["sync"]).exits(1);
    let run = run.says("cluster c9\n  unreachable: ").says("cluster c7\n").says("cluster-identity");
    for (server, proxy) in fleet.servers.iter().zip(&fleet.proxies).take(7) {
        assert_eq!(deployments(server, "").0, GATEWAYS - 1, "{}: {}", server.name(), run.out);
        let carried_out = proxy.carried_out();
        assert!(carried_out.iter().all(|it| it.starts_with("DELETE ") && it.contains("/g3")), "{carried_out:?}");
    }
    // Nothing is known of them but what they had.
    assert_eq!(new.kubectl_ok(&["get", "namespaces", "infra", "--ignore-not-found", "-o", "name"]), "");
    assert!(new_proxy.carried_out().is_empty() && fleet.proxies[8].carried_out().is_empty());
    fleet.signal(9, "CONT");
    assert_eq!(deployments(&fleet.servers[8], "").0, GATEWAYS);
    assert_eq!(deployments(&fleet.servers[9], "").0, GATEWAYS);

    // They catch up by themselves; the one that is new waits for a person.
    fleet.proxies[8].recovers();
    fleet.desk.run(&["sync"]).exits(3).says("cluster-identity");
    assert_eq!(deployments(&fleet.servers[8], "").0, GATEWAYS - 1);
    assert_eq!(deployments(&fleet.servers[9], "").0, GATEWAYS - 1);
    assert!(new_proxy.carried_out().is_empty());
}
