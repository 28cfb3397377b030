//! A daemon with all that it is for: a repository behind https and a token, two API servers and a directory, an
//! interval and a cron pattern; and one thing after the other that goes wrong.

use std::fs;
use std::time::Duration;

use super::{Daemon, gateway, meddle_with, ours, service, versions};
use crate::cluster::ApiServer;
use crate::cluster::process::{Folder, free_port};
use crate::program::Desk;
use crate::support::git_server::{HttpsServer, Repository};

const TOKEN: &str = "s3cr3t-t0ken";

/// The sync `fleet` keeps the folder `fleet` of the repository on all three clusters, by interval; the sync `cron`
/// keeps the folder `cron` on the first one, every minute.
struct Fleet {
    one: ApiServer,
    two: ApiServer,
    /// None while it is down.
    git: Option<HttpsServer>,
    repository: Repository,
    desk: Desk,
    port: u16,
    folder: Folder,
}

impl Fleet {
    fn new() -> Self {
        let folder = Folder::new();
        let repository = Repository::new(folder.path(), "gateways");
        repository.write("fleet/edge.yaml", &gateway("edge", 8101));
        repository.write("fleet/api.yaml", &gateway("api", 8102));
        repository.write("cron/night.yaml", &gateway("night", 8103));
        repository.push();
        let git = HttpsServer::start(folder.path(), TOKEN, "");
        let mut servers = ApiServer::fleet(&["one", "two"]);
        let (two, one) = (servers.pop().expect("there are two"), servers.pop().expect("there are two"));
        let desk = Desk::empty("gatewright.yaml");
        desk.write("token", TOKEN);
        let fleet = Self { one, two, git: Some(git), repository, desk, port: free_port(), folder };
        fleet.configure("");
        fleet
    }

    /// Writes the configuration, with a further line for the sync `fleet`, and returns the number of that line.
    fn configure(&self, line: &str) -> usize {
        let git = self.git.as_ref().expect("the repository is served while the configuration is written");
        let path = |server: &ApiServer| server.kubeconfig("admin").display().to_string();
        let before = format!(
            "stateDir: state\n\
             http: {{listen: \"127.0.0.1:{port}\"}}\n\
             sources:\n  repository:\n    poll: 1s\n    git:\n      url: {url}/gateways.git\n      ref: {{branch: main}}\n      \
               auth: {{tokenFile: token, caFile: {authority}}}\n\
             clusters:\n  \
               one: {{kubeconfig: {{path: {one}, context: one}}}}\n  \
               two: {{kubeconfig: {{path: {two}, context: two}}}}\n  \
               folder: {{directory: {{path: rendered}}}}\n\
             syncs:\n  \
               cron:\n    source: repository\n    path: cron\n    clusters: {{names: [one]}}\n    createNamespaces: true\n    \
                 wait: {{enabled: false}}\n    schedule: {{cron: \"* * * * *\"}}\n  \
               fleet:\n    source: repository\n    path: fleet\n    clusters: {{names: [one, two, folder]}}\n    \
                 createNamespaces: true\n    wait: {{enabled: false}}\n    rollout: {{strategy: all}}\n    \
                 schedule: {{interval: 10s, jitter: 0%}}\n",
            port = self.port,
            url = git.url,
            authority = git.authority.display(),
            one = path(&self.one),
            two = path(&self.two),
        );
        self.desk.write("gatewright.yaml", &format!("{before}    {line}\n"));
        before.lines().count() + 1
    }

    /// Commits another port for a Gateway, and returns the revision.
    fn push(&self, name: &str, port: u16) -> String {
        self.repository.write(&format!("fleet/{name}.yaml"), &gateway(name, port));
        format!("main@sha1:{}", self.repository.push())
    }

    /// Tells whether a Gateway has this port on a cluster.
    fn has(&self, cluster: &str, name: &str, port: u16) -> bool {
        let in_folder = || fs::read_to_string(self.desk.path(&format!("rendered/shop/service-{name}.yaml")));
        match cluster {
            "one" => service(&self.one, name, ".spec.ports[0].port") == port.to_string(),
            "two" => service(&self.two, name, ".spec.ports[0].port") == port.to_string(),
            _ => in_folder().is_ok_and(|text| text.contains(&format!("port: {port}\n"))),
        }
    }

    fn reaches(&self, daemon: &mut Daemon, clusters: &[&str], name: &str, port: u16) {
        for cluster in clusters {
            daemon.until(&format!("port {port} of {name} on {cluster}"), |_| self.has(cluster, name, port));
        }
    }

    /// The state of all clusters, each by itself.
    fn status(&self) -> String {
        let status = |cluster| self.desk.run(&["status", "--cluster", cluster]).exits(0).out;
        ALL.map(status).concat()
    }

    /// Since when `status` says that the repository cannot be read.
    fn trouble(&self) -> Option<String> {
        let status = self.status();
        let since = status.lines().find_map(|line| line.strip_prefix("source repository cannot be read since "))?;
        since.split_once(" UTC: ").map(|(since, _)| since.to_owned())
    }
}

/// Causes that start rounds at other times than those of a schedule.
const NOT_BY_TIME: [&str; 2] = ["start", "revision"];

const ALL: [&str; 3] = ["one", "two", "folder"];

#[test]
fn a_fleet_is_kept_as_its_repository_says_whatever_happens() {
    let mut fleet = Fleet::new();
    let mut daemon = Daemon::start(&fleet.desk, fleet.port, &[]);
    it_comes_up(&fleet, &mut daemon);
    it_shows_what_it_does(&fleet, &mut daemon);
    it_lets_nobody_else_sync(&fleet);
    it_follows_a_push(&fleet, &mut daemon);
    drift_is_corrected(&mut daemon, &fleet.one);
    let is_scheduled = |daemon: &Daemon| {
        let mut rounds = daemon.rounds().into_iter();
        rounds.any(|round| round.cluster == "one" && round.cause == "schedule" && round.changes == "update=1")
    };
    daemon.until("the summary of the correction", is_scheduled);
    a_cluster_that_is_down_disturbs_no_other(&mut fleet, &mut daemon);
    a_reload_takes_only_what_is_good(&fleet, &mut daemon);
    let mut daemon = without_its_repository_it_keeps_what_it_knows(&mut fleet, daemon);
    with_its_repository_back_it_goes_on(&mut fleet, &mut daemon);
    a_cron_pattern_starts_rounds_and_nothing_else_does(&fleet, &mut daemon);
    daemon.stops_within(Duration::from_secs(10));
}

fn it_comes_up(fleet: &Fleet, daemon: &mut Daemon) {
    daemon.until("readiness", Daemon::is_ready);
    fleet.reaches(daemon, &ALL, "edge", 8101);
    fleet.reaches(daemon, &ALL, "api", 8102);
    assert!(daemon.page("/healthz").is_some_and(|answer| answer.starts_with("HTTP/1.0 200")));
}

fn it_shows_what_it_does(fleet: &Fleet, daemon: &mut Daemon) {
    for cluster in ALL {
        daemon.until(&format!("the status of {cluster}"), |_| {
            fleet.status().contains(&format!("cluster {cluster}: done"))
        });
    }
    let status = fleet.status();
    let line = |gateway: &str, port: &str| {
        let is_it =
            |line: &&str| line.contains(&format!("Gateway shop/{gateway} ")) && line.contains(&format!("  {port}"));
        status.lines().filter(is_it).count()
    };
    assert_eq!((line("edge", "8101"), line("api", "8102")), (3, 3), "{status}");

    for cluster in ALL {
        let labels = [r#"sync="fleet""#, &format!("cluster={cluster:?}")];
        let success = daemon.metric("gatewright_last_success_timestamp_seconds", &labels);
        assert!(success.is_some_and(|time| time > 1.7e9), "{cluster}: {success:?}");
        assert_eq!(daemon.metric("gatewright_cluster_up", &labels[1..]), Some(1.0));
    }
    // A line and a count of each round; one may end between the two looks.
    daemon.until("as many summaries in the log as rounds in the metrics", |daemon| {
        let before = daemon.rounds().len();
        let counted = daemon.metric("gatewright_rounds_total", &[]);
        counted.is_some_and(|counted| format!("{counted}") == before.to_string())
    });
}

fn it_lets_nobody_else_sync(fleet: &Fleet) {
    let before = ours(&fleet.one);
    // A plain one would ask the daemon; what it does not do as a matter of course is refused.
    let run = fleet.desk.run(&["sync", "--full", "--yes"]).exits(1).complains("in use by another gatewright, process");
    assert_eq!((run.out.as_str(), run.err.lines().count()), ("", 2), "a sentence, and what to do: {}", run.err);
    assert_eq!(versions(&ours(&fleet.one)), versions(&before));
}

fn it_follows_a_push(fleet: &Fleet, daemon: &mut Daemon) {
    let revision = fleet.push("edge", 9101);
    fleet.reaches(daemon, &ALL, "edge", 9101);
    // Not because an interval happened to end.
    daemon.until("the summaries of rounds for the push", |daemon| {
        let rounds = daemon.rounds();
        let because_of_it = rounds.iter().filter(|round| round.revision == revision && round.cause == "revision");
        because_of_it.filter(|round| round.sync == "fleet" && ALL.contains(&round.cluster.as_str())).count() == 3
    });
}

/// Somebody meddles with a Service, and a round by schedule puts it right.
fn drift_is_corrected(daemon: &mut Daemon, server: &ApiServer) {
    let wanted = service(server, "edge", ".spec.ports[0].targetPort");
    meddle_with(server, "edge");
    daemon.until("the Service as it was", |_| service(server, "edge", ".spec.ports[0].targetPort") == wanted);
}

fn a_cluster_that_is_down_disturbs_no_other(fleet: &mut Fleet, daemon: &mut Daemon) {
    fleet.two.stop();
    fleet.push("edge", 9102);
    fleet.reaches(daemon, &["one", "folder"], "edge", 9102);
    daemon.until("word of the outage", |_| fleet.status().contains("cluster two: unreachable"));
    let up =
        |daemon: &Daemon, cluster: &str| daemon.metric("gatewright_cluster_up", &[&format!("cluster={cluster:?}")]);
    assert_eq!(ALL.map(|cluster| up(daemon, cluster)), [Some(1.0), Some(0.0), Some(1.0)]);
    let status = fleet.status();
    assert!(status.contains("cluster one: done") && status.contains("cluster folder: done"), "{status}");
    assert!(daemon.is_ready(), "a cluster that is down is no reason to restart the daemon");

    fleet.two.restart();
    fleet.reaches(daemon, &["two"], "edge", 9102);
    daemon.until("word of the return", |_| fleet.status().contains("cluster two: done"));
    assert_eq!(up(daemon, "two"), Some(1.0));
}

fn a_reload_takes_only_what_is_good(fleet: &Fleet, daemon: &mut Daemon) {
    let is_good = |daemon: &Daemon| daemon.metric("gatewright_config_last_reload_successful", &[]);
    assert_eq!(is_good(daemon), Some(1.0));
    let line = fleet.configure("comonLabels: {reloaded: \"yes\"}");
    daemon.signal("HUP");
    daemon.until("the failure in the metrics", |daemon| is_good(daemon) == Some(0.0));
    let place = format!("gatewright.yaml:{line}");
    let names_place = |line: &serde_json::Value| line["error"].as_str().is_some_and(|error| error.contains(&place));
    assert!(daemon.log().iter().any(names_place), "the log does not say {place}:\n{}", daemon.log_tail());
    fleet.push("edge", 9103);
    fleet.reaches(daemon, &ALL, "edge", 9103);

    fleet.configure("commonLabels: {reloaded: \"yes\"}");
    daemon.signal("HUP");
    daemon.until("the success in the metrics", |daemon| is_good(daemon) == Some(1.0));
    for server in [&fleet.one, &fleet.two] {
        daemon.until("the new label", |_| service(server, "edge", ".metadata.labels.reloaded") == "yes");
    }
    let path = fleet.desk.path("rendered/shop/service-edge.yaml");
    daemon.until("the new label", |_| fs::read_to_string(&path).is_ok_and(|text| text.contains("reloaded: ")));
}

/// Takes the repository away, and returns a daemon that has never seen it.
fn without_its_repository_it_keeps_what_it_knows(fleet: &mut Fleet, mut daemon: Daemon) -> Daemon {
    fleet.git = None;
    daemon.until("word of the outage", |_| fleet.trouble().is_some());
    let since = fleet.trouble();
    drift_is_corrected(&mut daemon, &fleet.one);

    daemon.stops_within(Duration::from_secs(10));
    let mut daemon = Daemon::start(&fleet.desk, fleet.port, &[]);
    drift_is_corrected(&mut daemon, &fleet.two);
    let polls = |daemon: &Daemon| daemon.metric("gatewright_source_polls_total", &[r#"result="failed""#]);
    daemon.until("a poll that fails", |daemon| polls(daemon).is_some());
    assert_eq!(fleet.trouble(), since, "the outage began before the restart");
    daemon
}

fn with_its_repository_back_it_goes_on(fleet: &mut Fleet, daemon: &mut Daemon) {
    fleet.git = Some(HttpsServer::start(fleet.folder.path(), TOKEN, ""));
    // It has moved.
    fleet.configure("commonLabels: {reloaded: \"twice\"}");
    daemon.signal("HUP");
    fleet.push("edge", 9104);
    fleet.reaches(daemon, &ALL, "edge", 9104);
    assert_eq!(fleet.trouble(), None);
    for server in [&fleet.one, &fleet.two] {
        assert_eq!(service(server, "edge", ".metadata.labels.reloaded"), "twice");
        assert_eq!(service(server, "api", ".spec.ports[0].port"), "8102");
    }
}

fn a_cron_pattern_starts_rounds_and_nothing_else_does(fleet: &Fleet, daemon: &mut Daemon) {
    daemon.until("the next minute", |daemon| daemon.rounds().iter().any(|round| round.sync == "cron"));
    let rounds = daemon.rounds();
    let others: Vec<_> =
        rounds.iter().filter(|round| round.sync == "cron" && NOT_BY_TIME.contains(&round.cause.as_str())).collect();
    assert!(others.is_empty(), "{others:?}");
    assert_eq!(service(&fleet.one, "night", ".spec.ports[0].port"), "8103");
    assert_eq!(ours(&fleet.two).len(), 8, "the sync of the other cluster went astray");
}
