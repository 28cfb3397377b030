//! Answers without an end, from a server that counts what it gets rid of.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gatewright_engine::error::Chain;
use gatewright_engine::object::Gvk;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::KubeCluster;
use crate::basics::clock::SystemClock;
use crate::basics::size::Size;
use crate::cluster::kubeconfig::{Settings, StandardLookup};
use crate::cluster::{Cluster as _, ClusterError, Range, Reason, budget};

const KINDS: &str = r#"{"kind": "APIGroupDiscoveryList", "items": [{"versions": [{"version": "v1", "resources": [
    {"resource": "services", "responseKind": {"kind": "Service"}, "scope": "Namespaced"},
    {"resource": "pods", "responseKind": {"kind": "Pod"}, "scope": "Namespaced"}
]}]}]}"#;

/// The budget of the clusters of these tests.
const LIMIT: u64 = 1 << 20;

/// The bytes on their way when somebody stops to read: buffers of the system on both sides.
const ON_THE_WAY: usize = 16 << 20;

/// The way in which a list never ends.
#[derive(Clone, Copy)]
enum Endless {
    /// Every page names another one.
    Pages,
    /// The pages have nothing in them.
    EmptyPages,
    /// The first page goes on and on.
    Body,
}

/// A server, a cluster that asks it, and the bytes that it has sent.
struct Setup {
    cluster: KubeCluster,
    sent: Arc<AtomicUsize>,
    _folder: TempDir,
}

async fn setup(endless: Endless) -> Setup {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("the loopback address has free ports");
    let server = format!("http://{}", listener.local_addr().expect("it is bound"));
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, endless, Arc::clone(&counted)));
        }
    });
    let folder = TempDir::new().expect("temporary folders can be made");
    let config = json!({
        "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": server}}], "users": [{"name": "a", "user": {"token": "t"}}],
    });
    let path = folder.path().join("config");
    fs::write(&path, config.to_string()).expect("a temporary folder can be written");
    let settings = Settings { path: Some(path), max_bytes: Size(LIMIT), ..Settings::default() };
    let cluster = KubeCluster::new("eu", settings, StandardLookup::default(), Arc::new(SystemClock::new()));
    Setup { cluster, sent, _folder: folder }
}

async fn answer(mut stream: TcpStream, endless: Endless, sent: Arc<AtomicUsize>) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut request).await.unwrap_or_default() == 0 {
            return;
        }
    }
    let is_discovery = request.starts_with(b"GET /api ");
    let item = json!({"metadata": {"name": "a", "namespace": "b", "annotations": {"a": "a".repeat(50_000)}}});
    let page = |items: usize| {
        let items: Vec<_> = (0..items).map(|_| item.clone()).collect();
        json!({"kind": "PartialObjectMetadataList", "metadata": {"continue": "more"}, "items": items}).to_string()
    };
    let body = match endless {
        _ if is_discovery => KINDS.to_owned(),
        Endless::Pages => page(1),
        Endless::EmptyPages => page(0),
        Endless::Body => format!("{{\"items\": [{}", " ".repeat(50_000)),
    };
    let is_whole = is_discovery || !matches!(endless, Endless::Body);
    let length = if is_whole { format!("Content-Length: {}\r\n", body.len()) } else { String::new() };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n{length}\r\n");
    drop(stream.write_all(head.as_bytes()).await);
    while stream.write_all(body.as_bytes()).await.is_ok() {
        sent.fetch_add(body.len(), Ordering::Relaxed);
        if is_whole {
            return;
        }
    }
}

impl Setup {
    async fn list(&self, kind: &str) -> Result<usize, ClusterError> {
        let listed = self.cluster.list(&Gvk::new("v1", kind), ("gatewright.dev/sync", "x.1")).await;
        listed.map(|listed| listed.len())
    }

    /// Holds that a list ends in time and in memory, and that the error says why.
    #[track_caller]
    fn is_over(&self, result: Result<usize, ClusterError>, kind: &str) {
        let error = result.expect_err("it never ends");
        let text = Chain(&error).to_string();
        assert_eq!(error.reason, Reason::Overloaded, "{text}");
        assert!(text.starts_with(&format!("cannot list the objects of kind {kind}: its answers take 1")), "{text}");
        assert!(text.ends_with(" bytes or more, and 1MiB is the limit of clusters.eu.kubeconfig.maxBytes"), "{text}");
        let hint = error.hint.unwrap_or_default();
        assert!(hint.contains("raise clusters.eu.kubeconfig.maxBytes"), "{hint}");
        let sent = self.sent.load(Ordering::Relaxed);
        assert!(sent < ON_THE_WAY, "{sent} bytes were read");
    }
}

#[tokio::test]
async fn a_list_without_an_end_is_given_up() {
    for endless in [Endless::Pages, Endless::EmptyPages, Endless::Body] {
        let setup = setup(endless).await;
        let listed = tokio::time::timeout(Duration::from_secs(20), setup.list("Service")).await;
        setup.is_over(listed.expect("it ends"), "Service");
        let kind = Gvk::new("v1", "Pod");
        let range = Range { label: None, namespace: Some("b") };
        let listed = tokio::time::timeout(Duration::from_secs(20), setup.cluster.list_metadata(&kind, range)).await;
        setup.is_over(listed.expect("it ends").map(|_| 0), "Pod");
    }
}

#[tokio::test]
async fn lists_beside_each_other_share_what_there_is() {
    let setup = setup(Endless::Pages).await;
    let both = budget::together(async { tokio::join!(setup.list("Service"), setup.list("Pod")) });
    let (services, pods) = tokio::time::timeout(Duration::from_secs(20), both).await.expect("they end");
    // Together they have read what one alone may.
    assert!(setup.sent.load(Ordering::Relaxed) < 2 * 1024 * 1024);
    setup.is_over(services, "Service");
    setup.is_over(pods, "Pod");
}
