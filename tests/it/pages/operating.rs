//! The page about operating: what it says to do before an upgrade, and its disasters, each on a real API server.

use std::fs;
use std::sync::Arc;

use super::{Block, Noted, section, walk};
use crate::cluster::etcd::Etcd;
use crate::cluster::{ApiServer, Options};
use crate::errors::gateway;
use crate::program::Desk;
use crate::terminal::Terminal;

const PAGE: &str = "docs/operating.md";

const CONFIG: &str = "
stateDir: ./state
sources: {specs: {directory: {path: ./specs}}}
clusters: {demo: {kubeconfig: {path: demo.yaml}}}
syncs:
  edges: {source: specs, clusters: {names: [demo]}, createNamespaces: true, wait: {timeout: 1m}}
";

/// The cluster, or another one that was built again under its name.
fn server(etcd: &Arc<Etcd>, name: &str) -> ApiServer {
    let server = ApiServer::start_on(etcd, Options { name: name.to_owned(), controllers: true, ..Options::default() });
    server.install_gateway_api();
    server
}

/// Has the config file lead to a server.
fn leads_to(desk: &Desk, server: &ApiServer) {
    let kubeconfig = fs::read_to_string(server.kubeconfig("admin")).expect("the server has kubeconfigs");
    desk.write("demo.yaml", &kubeconfig);
}

/// Returns the uid of the Deployment, which tells whether it is still the same one.
fn uid(server: &ApiServer) -> String {
    server.kubectl_ok(&["get", "deployment", "edge", "-n", "demo", "-o", "jsonpath={.metadata.uid}"])
}

fn commands(heading: &str) -> Vec<Block> {
    let blocks = section(PAGE, heading);
    blocks.into_iter().filter(|block| matches!(block, Block::Commands(_))).collect()
}

/// Returns the commands below a heading of three `#`, without those of the next one.
fn below(heading: &str) -> Vec<Block> {
    let text = fs::read_to_string(crate::cluster::binaries::in_repository(PAGE)).expect("the page is there");
    let rest = text.split_once(&format!("\n{heading}\n")).expect("the page has the section").1;
    super::read(rest.split("\n## ").next().and_then(|part| part.split("\n### ").next()).unwrap_or_default())
}

#[test]
fn what_is_lost_comes_back_as_the_page_tells_it() {
    let etcd = Arc::new(Etcd::start());
    let (first, desk) = (server(&etcd, "first"), Desk::empty("gatewright.yaml"));
    desk.write("gatewright.yaml", CONFIG);
    desk.write("specs/edge.yaml", &gateway("demo", "edge", 8080));
    leads_to(&desk, &first);
    let terminal = Terminal::new(&desk, &first.kubeconfig("admin"));
    terminal.ok("gatewright sync");
    let before = uid(&first);

    // Before an upgrade: defaults to compare, and the definitions of kinds.
    let mut noted = Noted::default();
    let upgrade = below("### Defaults of a pack");
    assert_eq!(walk(&terminal, &mut noted, upgrade, |_, _| {}), 2);
    assert_eq!(walk(&terminal, &mut noted, below("### Definitions of kinds (CRDs)"), |_, _| {}), 4);
    assert_eq!(walk(&terminal, &mut noted, commands("## Backup"), |_, _| {}), 2);

    // The state is lost, with and without a backup: no object is made again.
    let state = walk(&terminal, &mut noted, below("### The state directory is lost"), |command, _| {
        assert_eq!(uid(&first), before, "{command}");
    });
    assert!(state >= 9, "{state}");
    // A deletion goes ahead from then on.
    desk.write("specs/other.yaml", &gateway("demo", "other", 8081));
    terminal.ok("gatewright sync && rm specs/other.yaml && gatewright sync");
    assert!(!first.kubectl(&["get", "deployment", "other", "-n", "demo"]).status.success());

    // The cluster is lost.
    let second = server(&etcd, "second");
    leads_to(&desk, &second);
    assert!(walk(&terminal, &mut noted, below("### A cluster is lost"), |_, _| {}) >= 3);
    terminal.ok("gatewright sync").says("no changes");

    // Both are.
    let third = server(&etcd, "third");
    leads_to(&desk, &third);
    assert!(walk(&terminal, &mut noted, below("### Both are lost"), |_, _| {}) >= 3);
    terminal.ok("gatewright sync").says("no changes");
    assert_eq!(uid(&first), before, "what is on the former cluster is as it was");
}
