//! Rights of proxies, and our own, on a real API server.

use crate::cluster::{ApiServer, shared, unique};
use crate::errors::{desk, gateway, kubeconfig};
use crate::program::Desk;

/// The number of times that kubectl asks for rights that are on their way; it takes a while for each answer.
const TRIES: usize = 200;

#[test]
fn rights_of_a_proxy_come_and_go_with_the_setting() {
    let (server, namespace, sync) = (shared(), unique("rights"), unique("rights"));
    let desk = desk(&sync, &[("only", kubeconfig(&server.kubeconfig("admin"), ""))]);
    desk.write("specs/a.yaml", &gateway(&namespace, "a", 8080));
    let config = desk.read("gatewright.yaml");
    let account = format!("system:serviceaccount:{namespace}:a");
    let may = |verb: &str, what: &str| {
        let output = server.kubectl(&["auth", "can-i", verb, what, "--all-namespaces", "--as", &account]);
        output.status.success()
    };
    let role = format!("clusterrole/kgateway-proxy.{namespace}.a");
    let binding = format!("clusterrolebinding/kgateway-proxy.{namespace}.a");

    desk.run(&["sync"]).exits(0).says("4 objects created");
    assert!(!may("list", "services"), "it has rights that nobody gave");

    desk.write("gatewright.yaml", &format!("{config}packs: {{kgateway: {{rbac: {{enabled: true}}}}}}\n"));
    let run = desk.run(&["sync"]).exits(0);
    run.says("2 objects created").says(&format!("+ create ClusterRole kgateway-proxy.{namespace}.a"));
    server.kubectl_ok(&["get", &role, &binding]);
    // The authorizer hears of new rights a moment later.
    let arrived = (0..TRIES).any(|_| may("watch", "endpointslices.discovery.k8s.io"));
    assert!(arrived, "the rights do not arrive");
    assert!(may("list", "services") && !may("get", "secrets") && !may("create", "services"));
    desk.run(&["sync"]).exits(0).says("no changes, 6 objects up to date");

    desk.write("gatewright.yaml", &config);
    desk.run(&["sync"]).exits(0).says("2 objects deleted");
    assert!(!server.kubectl(&["get", &role]).status.success() && !server.kubectl(&["get", &binding]).status.success());
}

/// Runs a whole life of a sync as a user who has what `gatewright rbac` prints, and nothing else.
struct Restricted {
    server: ApiServer,
    desk: Desk,
}

impl Restricted {
    fn new(more: &str) -> Self {
        let server = ApiServer::start();
        server.kubectl_ok(&["create", "namespace", "infra"]);
        let desk = desk("edge", &[("only", kubeconfig(&server.kubeconfig("nobody"), ""))]);
        desk.replace("gatewright.yaml", "createNamespaces: true", "unclaimed: apply");
        let config = desk.read("gatewright.yaml");
        desk.write("gatewright.yaml", &format!("{config}{more}"));
        desk.write("specs/a.yaml", &gateway("infra", "a", 8080));
        desk.write("specs/b.yaml", &gateway("infra", "b", 8080));
        desk.write("specs/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map, namespace: infra}\n");
        Self { server, desk }
    }

    fn grant(&self, documents: &str) {
        self.server.kubectl_stdin(&["apply", "-f", "-"], documents);
    }

    fn printed(&self, arguments: &[&str]) -> String {
        let run = self.desk.run(&[&["rbac", "edge", "--user", "nobody"], arguments].concat()).exits(0);
        run.complains("make those first that are missing of infra").out
    }

    /// The authorizer hears of rights a moment later.
    fn arrives(&self, verb: &str, resource: &str, is_allowed: bool) {
        let may = || {
            let arguments =
                ["auth", "can-i", verb, resource, "-n", "infra", "--as", "nobody", "--as-group", "nobodies"];
            self.server.kubectl(&arguments).status.success()
        };
        assert!((0..TRIES).any(|_| may() == is_allowed), "{verb} {resource} does not become {is_allowed}");
    }
}

#[test]
fn the_printed_rights_are_enough_for_all_that_a_sync_does() {
    let site = Restricted::new("packs: {kgateway: {rbac: {enabled: true}}}\n");
    site.desk.run(&["sync"]).exits(1).says("is forbidden");
    let all = site.printed(&[]);
    site.grant(&all);
    site.arrives("patch", "deployments.apps", true);
    let run = |arguments: &[&str]| {
        let run = site.desk.run(arguments);
        // That it was forbidden before is told as resolved, in front of the clusters.
        let now = run.out.split_once("\ncluster ").map_or(run.out.as_str(), |(_, now)| now);
        assert!(!now.contains("forbidden") && !run.err.contains("forbidden"), "{}\n{}", run.out, run.err);
        run
    };
    run(&["plan"]).exits(0).says("13 objects to create");
    run(&["sync"]).exits(0).says("13 objects created");
    site.desk.write("specs/a.yaml", &gateway("infra", "a", 9090));
    run(&["sync"]).exits(0).says("2 objects updated");
    std::fs::remove_file(site.desk.path("specs/b.yaml")).expect("it is there");
    run(&["sync"]).exits(0).says("6 objects deleted");
    run(&["sync"]).exits(0).says("no changes, 7 objects up to date");
    run(&["inventory", "show"]).exits(0).says("7 objects");
    // What is awaited is listed.
    site.desk.replace("gatewright.yaml", "wait: {enabled: false}", "wait: {timeout: 2s}");
    site.desk.write(
        "specs/map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map, namespace: infra}\ndata: {a: b}\n",
    );
    run(&["sync"]).says("1 object updated");
    run(&["destroy", "edge", "--yes"]).exits(0).says("7 objects deleted");

    // Nothing beyond: neither other kinds, nor other namespaces, nor our records of others.
    for (verb, what, place) in [
        ("get", "secrets", "infra"),
        ("get", "services", "default"),
        ("update", "services", "infra"),
        ("create", "pods", "infra"),
        ("escalate", "clusterroles", "infra"),
        ("list", "configmaps.gatewright.dev", "gatewright-system"),
    ] {
        let arguments = ["auth", "can-i", verb, what, "-n", place, "--as", "nobody", "--as-group", "nobodies"];
        assert!(!site.server.kubectl(&arguments).status.success(), "may {verb} {what} in {place}");
    }
}

#[test]
fn each_of_the_printed_verbs_is_needed() {
    for verb in ["get", "create", "patch", "delete", "list"] {
        let resource = if verb == "list" { "deployments.apps" } else { "services" };
        let site = Restricted::new("");
        let all = site.printed(&[]);
        let lacks = |document: &str| {
            let verbs = format!("  - {verb}\n");
            let is_it = document.contains("kind: Role\n") || document.contains("kind: ClusterRole\n");
            let is_here = document.contains("namespace: infra") || verb == "list";
            if is_it && is_here { document.replace(&verbs, "  - watch\n") } else { document.to_owned() }
        };
        let fewer: String = all.split_inclusive("---\n").map(lacks).collect();
        assert_ne!(fewer, all, "{verb} is in none of\n{all}");
        site.grant(&fewer);
        site.arrives(if verb == "patch" { "get" } else { "patch" }, resource, true);
        site.arrives(verb, resource, false);
        site.desk.replace("gatewright.yaml", "wait: {enabled: false}", "wait: {timeout: 1s}");
        site.desk.run(&["sync", "--only", "Gateway/infra/a"]);
        site.desk.replace("gatewright.yaml", "wait: {timeout: 1s}", "wait: {enabled: false}");
        if verb == "list" {
            let run = site.desk.run(&["status"]);
            assert!(run.out.contains("cannot list resource"), "{}", run.out);
            continue;
        }
        site.desk.run(&["sync"]);
        site.desk.write("specs/a.yaml", &gateway("infra", "a", 9090));
        std::fs::remove_file(site.desk.path("specs/b.yaml")).expect("it is there");
        let run = site.desk.run(&["sync"]).exits(1);
        assert!(run.out.contains(&format!("cannot {verb} resource")), "{verb}:\n{}", run.out);
    }
}

#[test]
fn rights_to_look_change_nothing_and_are_enough_for_a_report() {
    let site = Restricted::new("");
    let printed = site.printed(&["--read-only"]);
    for verb in ["create", "patch", "update", "delete", "escalate", "bind"] {
        assert!(!printed.contains(&format!("- {verb}\n")), "{printed}");
    }
    site.grant(&printed);
    site.arrives("get", "services", true);
    site.desk.run(&["inventory", "show"]).exits(0).says("no inventory");
    // What is not there cannot be dry-run, and so everything says that it may not be written.
    site.desk.run(&["plan"]).exits(1).says("cannot patch resource");
    let account = site.desk.run(&["rbac", "edge", "--service-account", "ops/bot"]).exits(0);
    account.says("kind: ServiceAccount").says("namespace: ops");
    site.desk.run(&["rbac", "edge", "--service-account", "bot"]).exits(64).complains("NAMESPACE/NAME");
    site.desk.run(&["rbac", "nobody"]).exits(64).complains("there is no sync");
}
