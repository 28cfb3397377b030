//! Gateways that move between the syncs of a running daemon.

use std::collections::BTreeMap;

use gatewright_engine::object::ObjectId;

use super::{Daemon, gateway, ours};
use crate::cluster::ApiServer;
use crate::cluster::process::{Folder, free_port};
use crate::program::Desk;
use crate::support::git_server::Repository;

fn uids(server: &ApiServer) -> BTreeMap<ObjectId, String> {
    ours(server).into_iter().map(|(id, live)| (id, live.uid)).collect()
}

/// The syncs whose marks objects of a name bear.
fn marks(server: &ApiServer, name: &str) -> Vec<String> {
    let objects = ours(server).into_iter().filter(|(id, _)| id.name == name);
    let label = |live: gatewright_engine::live::Live| live.object.label("gatewright.dev/sync").map(str::to_owned);
    let mut marks: Vec<String> = objects.filter_map(|(_, live)| label(live)).collect();
    marks.sort();
    marks.dedup();
    marks.iter().filter_map(|mark| Some(mark.rsplit_once('.')?.0.to_owned())).collect()
}

#[test]
fn a_daemon_moves_gateways_between_syncs_without_making_them_again() {
    let (folder, server, port) = (Folder::new(), ApiServer::start(), free_port());
    let repository = Repository::new(folder.path(), "gateways");
    repository.write("a/one.yaml", &gateway("one", 8101));
    repository.write("b/two.yaml", &gateway("two", 8102));
    repository.push();
    let desk = Desk::empty("gatewright.yaml");
    let sync = |name: &str| {
        format!(
            "  {name}: {{source: repository, path: {name}, clusters: {{names: [one]}}, createNamespaces: true, \
             wait: {{enabled: false}}, schedule: {{interval: 10s, jitter: 0%}}}}\n"
        )
    };
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nhttp: {{listen: \"127.0.0.1:{port}\"}}\n\
             sources: {{repository: {{poll: 1s, git: {{url: {}, ref: {{branch: main}}}}}}}}\n\
             clusters: {{one: {{kubeconfig: {{path: {}}}}}}}\nsyncs:\n{}{}",
            repository.bare.display(),
            server.kubeconfig("admin").display(),
            sync("a"),
            sync("b"),
        ),
    );
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("both Gateways are there", |_| ours(&server).len() == 8);
    let before = uids(&server);

    repository.git(&["mv", "a/one.yaml", "b/one.yaml"]);
    repository.git(&["mv", "b/two.yaml", "a/two.yaml"]);
    repository.push();
    daemon.until("each has the other's", |_| marks(&server, "one") == ["b"] && marks(&server, "two") == ["a"]);
    daemon.until("each has let go", |_| {
        let shown = desk.run(&["inventory", "show"]).exits(0).out;
        shown.matches("cluster one: 4 objects").count() == 2
    });
    assert_eq!(uids(&server), before);
    let deletes = daemon.rounds().iter().filter(|round| round.changes.contains("prune")).count();
    assert_eq!(deletes, 0, "{:?}", daemon.rounds());
    daemon.stops_within(super::LIMIT);

    // Under a new name the daemon goes on with what the old one had.
    desk.replace("gatewright.yaml", "  b: {", "  c: {moved: [{from: b}], ");
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("the new name has it", |_| marks(&server, "one") == ["c"]);
    daemon.until("the old inventory is gone", |_| {
        !server.kubectl(&["get", "configmap", "gatewright.b", "-n", "gatewright-system"]).status.success()
    });
    assert_eq!(uids(&server), before);
}
