//! Getting started, word for word: a fresh folder, and a real API server with controllers.

use super::{Noted, blocks, walk};
use crate::cluster::ApiServer;
use crate::program::Desk;
use crate::terminal::Terminal;

#[test]
fn getting_started_goes_as_the_page_tells_it() {
    let (server, desk) = (ApiServer::with_controllers(), Desk::empty("unused.yaml"));
    let terminal = Terminal::new(&desk, &server.kubeconfig("admin"));
    let number = walk(&terminal, &mut Noted::default(), blocks("docs/getting-started.md"), |_, _| {});
    assert!(number >= 16, "the page has {number} commands");
    let left = ["get", "deployments,services,configmaps", "-A", "-l", "gatewright.dev/sync", "-o", "name"];
    assert_eq!(server.kubectl_ok(&left), "", "nothing stays behind");
}
