use std::sync::Mutex;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::*;
use crate::basics::clock::Clock;

/// A clock that stands still until it is moved.
#[derive(Default)]
struct Still(Mutex<Duration>);

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn elapsed(&self) -> Duration {
        *self.0.lock().expect("no test panics while it holds the clock")
    }
}

/// A server on a port of its own, and what it shows.
struct Server {
    address: SocketAddr,
    shown: Shown,
    clock: Arc<Still>,
    stop: CancellationToken,
    done: tokio::task::JoinHandle<Result<(), HttpError>>,
}

async fn server() -> Server {
    let clock = Arc::new(Still::default());
    let progress = Progress::new(Arc::clone(&clock) as Arc<dyn Clock>);
    let shown = Shown { metrics: Arc::new(Metrics::new("1.2.3")), progress, readiness: Arc::default() };
    let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("loopback has a free port");
    let address = listener.local_addr().expect("a listener knows its address");
    let stop = CancellationToken::new();
    let done = tokio::spawn(serve(listener, router(shown.clone()), stop.clone()));
    Server { address, shown, clock, stop, done }
}

impl Server {
    /// Returns the status and the whole answer to a request.
    async fn ask(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).await.expect("the server listens");
        let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("the server reads");
        let mut answer = String::new();
        let read = timeout(Duration::from_secs(10), stream.read_to_string(&mut answer)).await;
        read.expect("the server answers").expect("in UTF-8");
        let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
        (status, answer)
    }
}

#[tokio::test]
async fn metrics_are_served_as_open_metrics() {
    let server = server().await;
    let (status, answer) = server.ask("/metrics").await;
    assert_eq!(status, 200);
    assert!(
        answer.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"),
        "{answer}"
    );
    assert!(answer.contains("gatewright_build_info{version=\"1.2.3\"} 1\n"), "{answer}");
    assert!(answer.ends_with("# EOF\n"), "{answer}");
}

#[tokio::test]
async fn a_loop_that_is_stuck_makes_the_daemon_unhealthy() {
    let server = server().await;
    let pulse = server.shown.progress.watch("sync gateways");
    assert_eq!(server.ask("/healthz").await.0, 200);
    *server.clock.0.lock().expect("no test panics while it holds the clock") = Duration::from_secs(95);
    let (status, answer) = server.ask("/healthz").await;
    assert_eq!(status, 503);
    assert!(answer.ends_with("\r\n\r\nsync gateways is stuck for 95 s\n"), "{answer}");
    pulse.touch();
    assert_eq!(server.ask("/healthz").await.0, 200);
}

#[tokio::test]
async fn the_daemon_is_ready_when_it_says_so() {
    let server = server().await;
    assert_eq!(server.ask("/readyz").await.0, 503);
    server.shown.readiness.store(true, Ordering::Relaxed);
    assert_eq!(server.ask("/readyz").await.0, 200);
    server.shown.readiness.store(false, Ordering::Relaxed);
    assert_eq!(server.ask("/readyz").await.0, 503);
}

#[tokio::test]
async fn a_wrong_path_is_answered_with_the_right_ones() {
    let server = server().await;
    let (status, answer) = server.ask("/").await;
    assert_eq!(status, 404);
    for path in ["/metrics", "/healthz", "/readyz"] {
        assert!(answer.contains(path), "{answer}");
    }
}

#[tokio::test]
async fn a_client_that_says_nothing_does_not_keep_the_daemon_from_stopping() {
    let server = server().await;
    let mut silent = TcpStream::connect(server.address).await.expect("the server listens");
    silent.write_all(b"GET /metrics HTTP/1.1\r\n").await.expect("the server reads");
    assert_eq!(server.ask("/healthz").await.0, 200, "the silent client came first and has been taken in");
    tokio::time::pause();
    server.stop.cancel();
    let stopped = timeout(GRACE * 2, server.done).await.expect("the server stops in time");
    assert!(stopped.expect("the server does not panic").is_ok());
    drop(silent);
}

#[tokio::test]
async fn clients_that_say_nothing_go_and_others_are_answered() {
    let server = server().await;
    let mut silent = Vec::new();
    for _ in 0..bounded::MOST {
        let mut client = TcpStream::connect(server.address).await.expect("the server listens");
        client.write_all(b"GET /metrics HTTP/1.1\r\n").await.expect("it can be written");
        silent.push(client);
    }
    // All places are taken, and time goes on as soon as nobody does anything.
    tokio::time::pause();
    let mut late = TcpStream::connect(server.address).await.expect("the kernel takes it in");
    late.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").await.expect("it can be written");
    let mut answer = String::new();
    let read = timeout(bounded::SILENCE * 4, late.read_to_string(&mut answer)).await;
    read.expect("its turn comes").expect("in UTF-8");
    assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
    drop(silent);
}

#[tokio::test]
async fn an_address_that_is_taken_is_an_error_with_a_hint() {
    let taken = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("loopback has a free port");
    let address = taken.local_addr().expect("a listener knows its address");
    let error = bind(address).await.expect_err("nobody else can listen there");
    assert_eq!(error.to_string(), format!("cannot listen on {address}"));
    assert!(error.hint().is_some_and(|hint| hint.contains("http.listen")), "{:?}", error.hint());
}

/// Checks what settings say about where to listen.
fn check(listen: &Value, expected: &str) {
    let found = match serde_json::from_value::<Settings>(json!({ "listen": listen })) {
        Ok(settings) => settings.listen.to_string(),
        Err(error) => error.to_string(),
    };
    assert!(found.contains(expected), "{found:?} does not contain {expected:?}");
}

#[test]
fn the_server_listens_on_an_address_or_nowhere() {
    assert_eq!(Settings::default().listen.to_string(), "127.0.0.1:8085");
    check(&json!("0.0.0.0:9090"), "0.0.0.0:9090");
    check(&json!("[::1]:8085"), "[::1]:8085");
    check(&json!("off"), "off");
    check(&json!(null), "off");
    check(&json!(false), "off");
    check(&json!(true), "expected an address such as 127.0.0.1:8085, or off");
    check(&json!(8085), "expected an address such as 127.0.0.1:8085, or off");
    check(&json!("localhost:8085"), "\"localhost:8085\" is no address to listen on");
    check(&json!(":8085"), "\":8085\" is no address to listen on");
}
