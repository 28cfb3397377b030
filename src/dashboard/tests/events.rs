//! News for those who watch.

use super::*;
use crate::dashboard::board::WATCHERS;

/// Somebody who watches.
struct Watcher(TcpStream);

impl Watcher {
    async fn new(desk: &Desk) -> Self {
        let mut stream = TcpStream::connect(desk.address).await.expect("the server listens");
        let request = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n";
        stream.write_all(request).await.expect("the server reads");
        Self(stream)
    }

    /// Reads until a text comes, or the server ends it.
    async fn until(&mut self, text: &str) -> String {
        let (mut seen, mut part) = (String::new(), [0; 1024]);
        let read = async {
            while !seen.contains(text) {
                match self.0.read(&mut part).await.expect("it can be read") {
                    0 => break,
                    number => seen += &String::from_utf8_lossy(&part[..number]),
                }
            }
        };
        timeout(Duration::from_secs(20), read).await.expect("it comes");
        seen
    }
}

#[tokio::test]
async fn a_round_that_ends_is_told_to_those_who_watch() {
    let desk = Desk::new(2, "{}").await;
    let mut watcher = Watcher::new(&desk).await;
    let first = watcher.until("event: change\ndata: {\"version\":").await;
    assert!(first.to_ascii_lowercase().contains("content-type: text/event-stream"), "{first}");
    let before = desk.ask("/api/v1/fleet").await.json()["version"].as_u64().expect("it has one");
    desk.record(&report("gateways", "c-0001", &held()));
    watcher.until(&format!("data: {{\"version\":{}}}", before + 1)).await;
    assert_eq!(desk.ask("/api/v1/fleet").await.json()["version"], before + 1);
}

#[tokio::test]
async fn a_few_watch_and_others_are_asked_to_come_again() {
    let desk = Desk::new(2, "{}").await;
    let mut watchers = Vec::new();
    for _ in 0..WATCHERS {
        let mut watcher = Watcher::new(&desk).await;
        watcher.until("event: change").await;
        watchers.push(watcher);
    }
    let refused = desk.ask("/api/v1/events").await;
    assert_eq!(refused.status, 503);
    assert!(refused.head.contains("retry-after: 60"), "{}", refused.head);
    assert_eq!(desk.ask("/api/v1/fleet").await.status, 200, "everything else goes on");
    drop(watchers.pop());
    let board = Arc::clone(&desk.board);
    let is_free = async {
        // The server notices when it has something to say.
        while board.watchers.available_permits() == 0 {
            desk.record(&report("gateways", "c-0001", &held()));
            desk.record(&report("gateways", "c-0001", &quiet()));
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(30), is_free).await.expect("the place is free again");
}

#[tokio::test]
async fn those_who_watch_do_not_keep_the_daemon_from_ending() {
    let desk = Desk::new(2, "{}").await;
    let mut watcher = Watcher::new(&desk).await;
    watcher.until("event: change").await;
    desk.stop.cancel();
    watcher.until("there is no such text").await;
}
