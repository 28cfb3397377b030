//! Secrets of a management cluster under a running daemon: clusters come and go with them, and go unharmed.

use std::fs;

use serde_json::{Value, json};

use super::{Daemon, gateway, ours, versions};
use crate::cluster::ApiServer;
use crate::cluster::audit::Audited;
use crate::cluster::process::free_port;
use crate::cluster_secrets::{capi, is_kept, kubeconfig, namespace, put};
use crate::program::Desk;

const METRIC: &str = "gatewright_cluster_secrets_last_read_successful";

fn desk(management: &ApiServer, port: u16, clusters: &str) -> Desk {
    let (desk, path) = (Desk::empty("gatewright.yaml"), management.kubeconfig("admin"));
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nhttp: {{listen: \"127.0.0.1:{port}\"}}\nsources: {{specs: {{directory: {{path: specs}}}}}}\n\
             clusterSecrets:\n  capi: {{kubeconfig: {{path: {}}}, format: cluster-api, namespace: capi, poll: 1s}}\n\
             clusters: {{{clusters}}}\n\
             syncs:\n  edge: {{source: specs, clusters: {{matchLabels: {{env: prod}}}}, createNamespaces: true, \
             wait: {{enabled: false}}, rollout: {{strategy: all}}, schedule: {{interval: 10s, jitter: 0%}}}}\n",
            path.display()
        ),
    );
    desk.write("specs/a.yaml", &gateway("a", 8080));
    desk
}

/// Writes the Secret of a cluster.
fn add(management: &ApiServer, name: &str, kubeconfig: &str) {
    put(management, &capi("capi", name, &json!({"env": "prod"}), kubeconfig));
}

fn remove(management: &ApiServer, name: &str) {
    management.kubectl_ok(&["delete", "secret", "-n", "capi", &format!("{name}-kubeconfig")]);
}

fn says(daemon: &Daemon, message: &str) -> usize {
    daemon.log().iter().filter(|line| line["message"].as_str().is_some_and(|text| text.contains(message))).count()
}

fn rounds(daemon: &Daemon, cluster: &str) -> usize {
    daemon.rounds().iter().filter(|round| round.cluster == cluster).count()
}

fn logged(desk: &Desk) -> String {
    fs::read_to_string(desk.path("log")).expect("the log was made at the start")
}

fn port_of(server: &ApiServer, name: &str) -> String {
    super::service(server, name, ".spec.ports[0].port")
}

#[test]
fn clusters_come_and_go_with_their_secrets_under_a_running_daemon() {
    let (mut fleet, port) = (ApiServer::fleet(&["mgmt", "eu", "us"]), free_port());
    namespace(&fleet[0], "capi");
    add(&fleet[0], "eu", &kubeconfig(&fleet[1], "admin"));
    let desk = desk(&fleet[0], port, "");
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("the Gateway is on the first", |_| ours(&fleet[1]).len() == 4);
    assert_eq!(daemon.metric(METRIC, &["cluster_secrets=\"capi\""]), Some(1.0));

    // One that comes with credentials that are worth nothing has what it needs when they are rotated.
    add(&fleet[0], "us", &kubeconfig(&fleet[2], "nobody"));
    daemon.until("it is told", |daemon| says(daemon, "a cluster has come with its Secret") == 1);
    daemon.until("its round fails", |_| desk.run(&["status"]).out.contains("forbidden"));
    assert!(ours(&fleet[2]).is_empty());
    let starts = says(&daemon, "the configuration was read again");
    add(&fleet[0], "us", &kubeconfig(&fleet[2], "admin"));
    daemon.until("the Gateway is on the second", |_| ours(&fleet[2]).len() == 4);
    assert_eq!(says(&daemon, "the configuration was read again"), starts, "nothing was started again");

    // One that is damaged is the failure of its cluster, and changes no list.
    let whole = kubeconfig(&fleet[2], "admin");
    let middle = whole.find("admin-of").expect("it has a token") + 9;
    add(&fleet[0], "us", &whole[..middle]);
    daemon.until("it is told", |_| desk.run(&["status"]).out.contains("the kubeconfig in it is not YAML"));
    desk.write("specs/a.yaml", &gateway("a", 9090));
    daemon.until("the first goes on", |_| port_of(&fleet[1], "a") == "9090");
    assert_eq!(port_of(&fleet[2], "a"), "8080");
    assert_eq!(daemon.metric(METRIC, &[]), Some(1.0));
    add(&fleet[0], "us", &whole);
    daemon.until("the second has what it missed", |_| port_of(&fleet[2], "a") == "9090");

    // A list that cannot be read, or be used, changes nothing.
    let words = "keeping the previous list of clusters";
    fleet[0].stop();
    daemon.until("it says so", |daemon| says(daemon, words) > 0);
    daemon.until("it shows", |daemon| daemon.metric(METRIC, &[]) == Some(0.0));
    desk.write("specs/a.yaml", &gateway("a", 9191));
    daemon.until("both go on", |_| fleet[1..].iter().all(|server| port_of(server, "a") == "9191"));
    fleet[0].restart();
    daemon.until("all is well", |daemon| says(daemon, "the cluster Secrets can be read again") == 1);
    assert!(!logged(&desk).contains("admin-of"));
    daemon.stops_within(super::LIMIT);
}

#[test]
fn a_list_that_is_not_certain_makes_no_cluster_gone() {
    let (fleet, port) = (ApiServer::fleet(&["mgmt", "eu"]), free_port());
    namespace(&fleet[0], "capi");
    add(&fleet[0], "eu", &kubeconfig(&fleet[1], "admin"));
    let desk = desk(&fleet[0], port, "kept: {directory: {path: kept}, labels: {env: prod}}");
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("the Gateway is there", |_| ours(&fleet[1]).len() == 4);
    let before = ours(&fleet[1]);
    let words = "keeping the previous list of clusters";

    // Not one that is empty, and not one with a name that another cluster has.
    remove(&fleet[0], "eu");
    daemon.until("it says so", |daemon| says(daemon, words) > 0 && daemon.metric(METRIC, &[]) == Some(0.0));
    let round = rounds(&daemon, "eu");
    daemon.until("its rounds go on", |daemon| rounds(daemon, "eu") > round + 1);
    add(&fleet[0], "eu", &kubeconfig(&fleet[1], "admin"));
    daemon.until("all is well", |daemon| daemon.metric(METRIC, &[]) == Some(1.0));
    let told = says(&daemon, words);
    add(&fleet[0], "kept", &kubeconfig(&fleet[1], "nobody"));
    daemon.until("it says so", |daemon| says(daemon, words) > told && daemon.metric(METRIC, &[]) == Some(0.0));
    assert!(logged(&desk).contains("cluster \\\"kept\\\" is also ") && logged(&desk).contains("gatewright.yaml:"));
    remove(&fleet[0], "kept");
    daemon.until("all is well", |daemon| daemon.metric(METRIC, &[]) == Some(1.0));

    // A Secret that goes while others stay is a cluster that is gone, and not empty.
    add(&fleet[0], "us", "");
    daemon.until("it has come", |daemon| says(daemon, "a cluster has come with its Secret") == 1);
    remove(&fleet[0], "eu");
    daemon.until("it is told", |daemon| says(daemon, "a cluster has gone with its Secret") == 1);
    fs::remove_file(desk.path("specs/a.yaml")).expect("it is there");
    desk.write("specs/b.yaml", &gateway("b", 8080));
    daemon.until("the other one has the change", |_| desk.read_all("kept").contains("name: b"));
    let told = says(&daemon, "clusters are gone from the configuration");
    daemon.until("every round tells it", |daemon| says(daemon, "clusters are gone from the configuration") > told);
    assert_eq!(versions(&ours(&fleet[1])), versions(&before), "nothing on it was touched");
    assert!(!logged(&desk).contains("admin-of") && !is_kept(&desk.path("state")));
    daemon.stops_within(super::LIMIT);
}

#[test]
fn a_secret_that_is_made_again_is_no_cluster_that_is_gone() {
    let (audited, port) = (Audited::start(), free_port());
    let management = &audited.server;
    namespace(management, "capi");
    let known = kubeconfig(management, "admin");
    add(management, "eu", &known);
    add(management, "us", "");
    let desk = desk(management, port, "");
    // Another management cluster, which is lost, has nothing to do with this one.
    let lost = "clusterSecrets:\n  lost: {kubeconfig: {path: lost.yaml}, format: argo-cd, poll: 1s}\n";
    desk.replace("gatewright.yaml", "clusterSecrets:\n", lost);
    desk.write("lost.yaml", &known.replace(&management.url(), "https://127.0.0.1:1"));
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("the Gateway is there", |_| ours(management).len() == 4);
    let shown = |daemon: &Daemon, name: &str| daemon.metric(METRIC, &[&format!("cluster_secrets=\"{name}\"")]);
    assert_eq!((shown(&daemon, "capi"), shown(&daemon, "lost")), (Some(1.0), Some(0.0)));

    let lists = || audited.requests().iter().filter(|request| request.resource == "secrets").count();
    remove(management, "eu");
    let before = lists();
    daemon.until("it is missed once", |_| lists() > before);
    add(management, "eu", &known);
    let before = lists();
    daemon.until("it is there again", |_| lists() > before + 2);
    assert_eq!(says(&daemon, "has gone with its Secret"), 0);
    remove(management, "us");
    daemon.until("one that stays away is gone", |daemon| says(daemon, "has gone with its Secret") == 1);
    assert_eq!((shown(&daemon, "capi"), shown(&daemon, "lost")), (Some(1.0), Some(0.0)));
    daemon.stops_within(super::LIMIT);
}

#[test]
fn a_daemon_starts_without_its_management_cluster() {
    let (mut fleet, port) = (ApiServer::fleet(&["mgmt", "eu"]), free_port());
    namespace(&fleet[0], "capi");
    add(&fleet[0], "eu", &kubeconfig(&fleet[1], "admin"));
    let desk = desk(&fleet[0], port, "kept: {directory: {path: kept}, labels: {env: prod}}");
    fleet[0].stop();

    // Nothing is known of its clusters: those of the config file have their rounds.
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("the one in the config file has a round", |daemon| rounds(daemon, "kept") > 0);
    assert_eq!(daemon.metric(METRIC, &[]), Some(0.0));
    assert_eq!(says(&daemon, "the cluster Secrets cannot be read"), 1);
    fleet[0].restart();
    daemon.until("the Gateway is there", |_| ours(&fleet[1]).len() == 4);
    daemon.stops_within(super::LIMIT);

    // Now it is known which there are: they are not gone, and say what is wrong.
    fleet[0].stop();
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("the other one has a round", |_| {
        let told = desk.run(&["status"]).out;
        told.contains("unreachable") && told.contains("it was not read since the daemon was started")
    });
    desk.write("specs/b.yaml", &gateway("b", 8080));
    daemon.until("the one in the config file goes on", |_| desk.read_all("kept").contains("name: b"));
    assert_eq!(says(&daemon, "clusters are gone from the configuration"), 0);
    fleet[0].restart();
    daemon.until("it has what it missed", |_| ours(&fleet[1]).len() == 8);

    // A configuration that is read again keeps what is known of them.
    let again = says(&daemon, "the configuration was read again");
    fleet[0].stop();
    daemon.signal("HUP");
    daemon.until("it was read", |daemon| says(daemon, "the configuration was read again") > again);
    fs::remove_file(desk.path("specs/b.yaml")).expect("it is there");
    daemon.until("both go on", |_| ours(&fleet[1]).len() == 4);
    let failed: Vec<Value> = daemon.log().into_iter().filter(|line| line["level"] == "ERROR").collect();
    assert!(failed.iter().all(|line| !line.to_string().contains("admin-of")), "{failed:?}");
    daemon.stops_within(super::LIMIT);
}
