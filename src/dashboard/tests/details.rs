//! The views behind a cell: units and objects, holds, rollouts and rounds.

use std::fs;

use super::*;

const TARGET: &str = "/api/v1/syncs/gateways/clusters/c-0000";

fn drifted(units: usize) -> Value {
    let name = |number: usize| format!("edge-{number:03}");
    let spec = |number: usize| id("gateway.networking.k8s.io", "Gateway", "infra", &name(number));
    let unit = |number: usize| {
        let state = if number == 7 { "failed" } else { "current" };
        json!({"unit": spec(number), "state": state, "addresses": [], "ports": []})
    };
    let step = |number: usize| {
        let object = id("", "Service", "infra", &name(number));
        let lines = json!([{"path": "data.config", "before": "a\nb\n", "after": "a\nc\n", "managers": []}, {"path": "spec.replicas", "before": 1, "after": 2, "managers": []}]);
        let step = json!({"unit": spec(number), "id": object, "action": "keep", "differences": []});
        if number == 7 {
            return json!({"unit": spec(number), "id": object, "action": "update", "differences": lines, "outcome": {"result": "failed", "message": "denied by <script>"}});
        }
        step
    };
    let refusal = json!({"unit": spec(8), "id": id("apps", "Deployment", "infra", "edge-008"), "reason": {"reason": "foreign", "detail": "Helm release infra/edge"}});
    json!({
        "state": "done", "steps": (0..units).map(step).collect::<Vec<_>>(), "refusals": [refusal], "holds": [],
        "units": (0..units).map(unit).collect::<Vec<_>>(),
    })
}

#[tokio::test]
async fn a_target_tells_of_its_units_and_what_differs_a_page_at_a_time() {
    let desk = Desk::new(2, "{}").await;
    desk.record(&report("gateways", "c-0000", &drifted(120)));
    let page = desk.ask(TARGET).await.json();
    assert_eq!(
        (&page["sum"]["status"], &page["sum"]["drift"], &page["matching"]),
        (&json!("failed"), &json!(2), &json!(120))
    );
    assert_eq!((page["units"].as_array().map(Vec::len), &page["next"]), (Some(50), &json!(50)));
    let first = &page["units"][0];
    assert_eq!(
        (&first["unit"], &first["state"]),
        (&json!("Gateway infra/edge-007"), &json!("failed")),
        "the worst first"
    );
    let object = &first["objects"][0];
    assert_eq!((&object["state"], &object["message"]), (&json!("failed"), &json!("denied by <script>")));
    let lines = json!([{"sign": "-", "text": "b"}, {"sign": "+", "text": "c"}]);
    assert_eq!(object["differences"][0], json!({"path": "data.config", "by": "", "lines": lines, "more": 0}));
    let refused = desk.ask(&format!("{TARGET}?q=edge-008")).await.json();
    assert_eq!(refused["units"][0]["objects"][0]["state"], "refused");
    let last = desk.ask(&format!("{TARGET}?from=100&state=current")).await.json();
    assert_eq!(
        (last["units"].as_array().map(Vec::len), &last["matching"], &last["next"]),
        (Some(19), &json!(119), &Value::Null)
    );
    let unknown = desk.ask("/api/v1/syncs/gateways/clusters/c-0001").await.json();
    assert_eq!(
        (&unknown["sum"]["status"], &unknown["units"]),
        (&json!("unknown"), &json!([])),
        "there was no round yet"
    );
}

#[tokio::test]
async fn what_waits_is_told_once_with_the_command_that_approves_it() {
    let desk = Desk::new(3, "{}").await;
    assert_eq!(desk.ask("/api/v1/approvals").await.json()["total"], 0);
    desk.record(&report("gateways", "c-0000", &held()));
    let one = desk.ask("/api/v1/approvals").await.json();
    assert_eq!(one["groups"][0]["hold"]["command"], "gatewright approve aaaabbbbcccc");
    desk.record(&report("gateways", "c-0001", &held()));
    let both = desk.ask("/api/v1/approvals").await.json();
    assert_eq!((&both["total"], &both["groups"][0]["clusters"]), (&json!(1), &json!(["c-0000", "c-0001"])));
    assert_eq!(both["groups"][0]["hold"]["command"], "gatewright approve ddddeeeeffff");
    assert_eq!(both["groups"][0]["hold"]["steps"], json!([{"action": "prune", "object": "Service infra/edge"}]));
    let target = desk.ask("/api/v1/syncs/gateways/clusters/c-0001").await.json();
    assert_eq!(target["holds"][0]["command"], "gatewright approve aaaabbbbcccc");
}

#[tokio::test]
async fn rounds_are_told_the_newest_first_of_one_target_or_of_all() {
    let desk = Desk::new(2, "{}").await;
    for minute in 10..25 {
        let mut round = report("gateways", "c-0000", &if minute % 2 == 0 { held() } else { quiet() });
        round["started"] = json!(format!("2026-11-20T11:{minute}:00Z"));
        desk.record(&round);
    }
    desk.record(&report("models", "c-0000", &quiet()));
    desk.record(&report("gateways", "c-0001", &quiet()));
    let times = |page: &Value| -> Vec<String> {
        let rounds = page["rounds"].as_array().expect("there are some");
        rounds.iter().map(|round| round["started"].as_str().unwrap_or_default()[14..16].to_owned()).collect()
    };
    let path = "/api/v1/rounds?sync=gateways&cluster=c-0000&limit=10";
    let first = desk.ask(path).await.json();
    assert_eq!(times(&first), (15..25).rev().map(|minute| minute.to_string()).collect::<Vec<_>>());
    assert_eq!((&first["rounds"][0]["exit"], &first["rounds"][0]["did"]), (&json!(3), &json!("no changes")));
    let next = first["next"].as_str().expect("there are more");
    let second = desk.ask(&format!("{path}&before={next}")).await.json();
    assert_eq!((times(&second).len(), &second["next"]), (5, &Value::Null));
    assert_eq!(times(&desk.ask("/api/v1/rounds").await.json()).len(), 17);
    assert_eq!(times(&desk.ask("/api/v1/rounds?sync=models").await.json()).len(), 1);
    assert_eq!(desk.ask("/api/v1/rounds?sync=..%2F..&before=%2F").await.json()["rounds"], json!([]));
}

#[tokio::test]
async fn rollouts_are_told_by_wave() {
    let desk = Desk::new(4, "{}").await;
    assert_eq!(desk.ask("/api/v1/rollouts").await.json()["syncs"], json!([]));
    let since = "2026-11-20T11:00:00Z";
    let member = |stage: Value| json!({"stage": stage, "digest": "d", "since": since});
    let unit = json!({
        "unit": id("gateway.networking.k8s.io", "Gateway", "infra", "edge"), "target": "t", "revision": "r2", "since": since,
        "members": {"c-0000": member(json!("healthy")), "c-0001": member(json!({"halted": "1 of 2 pods"}))}, "wants": {"c-0002": "d"},
    });
    let paused = json!({"reason": "look first", "by": "ada", "since": since});
    let folder = desk.folder.path().join("state/rollouts");
    fs::create_dir_all(&folder).expect("a test may");
    fs::write(folder.join("gateways.json"), json!({"units": [unit], "paused": paused}).to_string())
        .expect("a test may");
    let found = desk.ask("/api/v1/rollouts?sync=gateways").await.json();
    assert!(found["syncs"][0]["paused"].as_str().is_some_and(|words| words.contains("look first")), "{found}");
    let wave = &found["syncs"][0]["rollouts"][0]["waves"][0];
    assert_eq!(
        (&wave["healthy"]["names"], &wave["waiting"]["names"], &wave["others"]),
        (&json!(["c-0000"]), &json!(["c-0002"]), &json!(1))
    );
    assert_eq!(wave["failed"], json!([{"cluster": "c-0001", "returned": false, "why": "1 of 2 pods"}]));
}

#[tokio::test]
async fn a_suspended_sync_says_so() {
    let desk = Desk::new(2, "{}").await;
    desk.record(&report("gateways", "c-0000", &quiet()));
    let suspended = json!({"reason": "freeze", "by": "ada", "since": "2026-11-20T11:00:00Z"});
    desk.config.state().write("suspended/gateways.json", suspended.to_string().as_bytes()).expect("a test may");
    desk.later();
    let fleet = desk.ask("/api/v1/fleet").await.json();
    assert!(fleet["syncs"][0]["suspended"].as_str().is_some_and(|words| words.contains("freeze")), "{fleet}");
    assert_eq!(desk.ask(TARGET).await.json()["suspended"], fleet["syncs"][0]["suspended"]);
}
