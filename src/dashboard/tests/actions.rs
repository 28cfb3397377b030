//! Decisions at the dashboard: who may take them, and what comes of them.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use super::*;
use crate::history::audit_log::{self, Entry};
use crate::state::suspension::SUSPENDED;

const ON: &str = "{actions: true, userHeader: X-Forwarded-User}";
const SUSPEND: &str = "/api/v1/syncs/gateways/suspend";

fn token(desk: &Desk) -> String {
    std::fs::read_to_string(desk.folder.path().join("state/dashboard.token")).expect("it was made").trim().to_owned()
}

impl Desk {
    /// Asks for an action with these lines in the head and this body.
    async fn post(&self, path: &str, lines: &[&str], body: &str) -> Answer {
        let lines = [&["Connection: close", "Host: localhost:8085"], lines].concat().join("\r\n");
        let head = format!("POST {path} HTTP/1.1\r\n{lines}\r\nContent-Length: {}\r\n\r\n", body.len());
        self.send(format!("{head}{body}").as_bytes()).await
    }

    /// Does so as somebody who may.
    async fn act(&self, path: &str, body: &str) -> Answer {
        let token = format!("Authorization: Bearer {}", token(self));
        self.post(path, &["Content-Type: application/json", &token, "X-Forwarded-User: ada@example.com"], body).await
    }

    fn log(&self) -> Vec<Entry> {
        audit_log::read(&self.config.state()).expect("it can be read")
    }
}

#[tokio::test]
async fn there_are_none_unless_they_are_on() {
    let desk = Desk::new(1, "{}").await;
    assert_eq!(desk.ask("/api/v1/actions").await.json()["actions"], false);
    assert!(!desk.folder.path().join("state/dashboard.token").exists());
    for path in [SUSPEND, "/api/v1/approvals/aaaa-bbbb-cccc"] {
        let answer = desk.post(path, &["Content-Type: application/json", "Authorization: Bearer "], "{}").await;
        assert_eq!(answer.status, 405, "{}", answer.body);
    }
}

#[tokio::test]
async fn only_who_has_the_token_decides() {
    let desk = Desk::new(1, ON).await;
    let (right, json) = (format!("Authorization: Bearer {}", token(&desk)), "Content-Type: application/json");
    let short = &right[..right.len() - 1];
    let refused: [(&[&str], u16); 13] = [
        (&[json], 401),
        (&[json, "Authorization: Bearer "], 401),
        (&[json, "Authorization: Bearer"], 401),
        (&[json, short], 401),
        (&[json, &right.replace("Bearer", "Basic")], 401),
        (&[json, &right, "Authorization: Bearer x"], 401),
        (&[json, &right, "Origin: http://evil.example"], 403),
        (&[json, &right, "Origin: null"], 403),
        (&[json, &right, "Sec-Fetch-Site: cross-site"], 403),
        (&[json, &right, "Sec-Fetch-Site: same-site"], 403),
        (&[json, &right, "Host: evil.example"], 421),
        (&[&right], 415),
        (&[&right, "Content-Type: application/x-www-form-urlencoded"], 415),
    ];
    for path in [SUSPEND, "/api/v1/syncs/gateways/resume", "/api/v1/syncs/gateways/reconcile", "/api/v1/approvals/a"] {
        for (lines, status) in refused {
            let answer = desk.post(path, lines, "{}").await;
            assert_eq!(answer.status, status, "{path} {lines:?}: {}", answer.body);
            assert!(!answer.body.contains(&token(&desk)));
        }
        for body in ["", "[", "1", "{\"reasons\": \"a\"}", "{\"reason\": 1}", "{\"for\": \"soon\"}", "\u{fffd}"] {
            let answer = desk.act(path, body).await;
            assert!(matches!(answer.status, 400 | 422), "{path} {body}: {} {}", answer.status, answer.body);
        }
        let long = format!("{{\"reason\": \"{}\"}}", "a".repeat(1 << 20));
        assert!(matches!(desk.act(path, &long).await.status, 0 | 413), "{path}");
        assert!(matches!(desk.ask(path).await.status, 401 | 405), "to look decides nothing");
    }
    assert_eq!(desk.log(), []);
    assert_eq!(SUSPENDED.names(&desk.config.state(), &[]), [""; 0]);
}

#[tokio::test]
async fn a_sync_is_suspended_and_resumed_and_the_log_says_by_whom() {
    let desk = Desk::new(1, ON).await;
    let done = desk.act(SUSPEND, "{\"reason\": \"friday\", \"for\": \"2h\"}").await.json();
    let message = "sync gateways is suspended by ada@example.com since 2026-11-20 12:00:00 UTC, until 2026-11-20 14:00:00 UTC: friday";
    assert_eq!(done["message"], message);
    desk.later();
    let shown = desk.ask("/api/v1/syncs/gateways/clusters/c-0000").await.json();
    assert!(shown["suspended"].as_str().is_some_and(|it| it.ends_with("friday")), "{shown}");
    let waits = desk.act("/api/v1/syncs/gateways/reconcile", "{}").await;
    assert_eq!((waits.status, waits.body.contains("resume it first")), (409, true));
    desk.act("/api/v1/syncs/gateways/resume", "{}").await.json();
    assert_eq!(SUSPENDED.names(&desk.config.state(), &[]), [""; 0]);
    let again = desk.act("/api/v1/syncs/gateways/resume", "{}").await.json();
    assert_eq!(again["message"], "sync gateways has rounds; it was not suspended");
    let log: Vec<Value> = desk.log().iter().map(|entry| serde_json::to_value(entry).expect("it is data")).collect();
    let told: Vec<_> = log.iter().map(|entry| (&entry["event"], &entry["by"])).collect();
    let by = json!({"via": "dashboard", "user": "ada@example.com"});
    assert_eq!(told, [(&json!("suspended"), &by), (&json!("resumed"), &by)]);
    assert_eq!(desk.act("/api/v1/syncs/nothing/suspend", "{}").await.status, 404);
}

#[tokio::test]
async fn what_waits_is_approved_on_each_cluster_and_nothing_else() {
    let desk = Desk::new(3, ON).await;
    for cluster in ["c-0000", "c-0001"] {
        let mut held = held();
        held["holds"][0]["token"] = json!(if cluster == "c-0000" { "bbbb-cccc-dddd" } else { "bbbb-cccc-ffff" });
        held["holds"][0]["fleetToken"] = json!("ffff-gggg-hhhh");
        desk.record(&report("gateways", cluster, &held));
    }
    assert_eq!(desk.act("/api/v1/approvals/bbbb-cccc-gggg", "{}").await.status, 404);
    assert_eq!(desk.act("/api/v1/approvals/..%2f..%2fsecret", "{}").await.status, 404);
    assert_eq!(approvals::given(&desk.config.state(), desk.clock.now()), []);
    let done = desk.act("/api/v1/approvals/ffff-gggg-hhhh", "{\"reason\": \"edge moves\"}").await.json();
    assert_eq!(done["message"], "approved on 2 clusters for the next round, until 2026-11-21 12:00 UTC");
    let given = approvals::given(&desk.config.state(), desk.clock.now());
    let words: Vec<_> = given.iter().map(|it| (it.cluster.as_str(), it.by.as_deref(), it.reason.as_deref())).collect();
    let (by, reason) = (Some("ada@example.com"), Some("edge moves"));
    assert_eq!(words, [("c-0000", by, reason), ("c-0001", by, reason)]);
    assert_eq!(desk.log().len(), 2);
    let shown = desk.ask("/api/v1/approvals").await.json();
    assert_eq!(shown["groups"][0]["approved"].as_array().map(Vec::len), Some(2));
    assert_eq!(desk.act("/api/v1/approvals/bbbbccccdddd", "{\"for\": \"999999999999d\"}").await.status, 422);
}

#[tokio::test]
async fn a_round_begins_where_rounds_run_and_nowhere_else() {
    let desk = Desk::new(2, ON).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let rounds: Vec<Arc<Notify>> = (0..2).map(|_| Arc::default()).collect();
    for round in &rounds {
        let asked = Arc::clone(&asked);
        desk.board.enrolled.enroll(("gateways", "c", "specs"), round, move |_| {
            asked.fetch_add(1, Ordering::SeqCst);
            1
        });
    }
    let done = desk.act("/api/v1/syncs/gateways/reconcile", "{}").await.json();
    assert!(done["message"].as_str().is_some_and(|it| it.ends_with("on 2 clusters")), "{done}");
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    assert_eq!(desk.act("/api/v1/syncs/models/reconcile", "{}").await.status, 409);
    drop(rounds);
    assert_eq!(desk.act("/api/v1/syncs/gateways/reconcile", "{}").await.status, 409, "they have ended");
    assert_eq!(desk.log(), [], "it decides nothing");
}

#[tokio::test]
async fn nothing_is_decided_that_cannot_be_written_down() {
    let desk = Desk::new(1, ON).await;
    std::fs::create_dir_all(desk.folder.path().join("state/audit.jsonl")).expect("a test may");
    let answer = desk.act(SUSPEND, "{}").await;
    assert_eq!(answer.status, 500, "{}", answer.body);
    assert!(!answer.body.contains("state/"), "where it lies is nobody's business: {}", answer.body);
    assert_eq!(SUSPENDED.names(&desk.config.state(), &[]), [""; 0]);
}

#[tokio::test]
async fn the_user_is_whom_the_proxy_names_and_no_more() {
    let desk = Desk::new(1, ON).await;
    let user = async |lines: &[&str]| {
        let lines = [&["Host: localhost"], lines].concat();
        desk.ask_with("GET", "/api/v1/actions", &lines).await.json()["user"].clone()
    };
    assert_eq!(user(&["x-forwarded-user: ada"]).await, "ada");
    assert_eq!(user(&["X-Forwarded-User: ada", "X-Forwarded-User: root"]).await, Value::Null, "nobody knows who it is");
    assert_eq!(user(&["X-Forwarded-User:  "]).await, Value::Null);
    assert_eq!(user(&["Remote-User: root"]).await, Value::Null);
    let long = user(&[&format!("X-Forwarded-User: {}", "a".repeat(9000))]).await;
    assert_eq!(long.as_str().map(str::len), Some(500));
    // A token that was there before is kept, and one that is none is replaced.
    let (state, first) = (desk.config.state(), token(&desk));
    assert_eq!(make_token(&state).expect("it is read"), first);
    state.write("dashboard.token", b"\n").expect("a test may");
    let second = make_token(&state).expect("it is made");
    assert!(second.len() == 64 && second != first);
}
