//! The matrix, of small and large fleets.

use super::*;

fn unreachable() -> Value {
    let error = json!({"message": "cannot connect to <img src=x onerror=alert(1)>", "hint": "look at it"});
    json!({"state": "unreachable", "error": error, "steps": [], "refusals": [], "holds": [], "units": []})
}

#[tokio::test]
async fn the_worst_stands_first_and_everything_is_counted() {
    let desk = Desk::new(6, "{}").await;
    desk.record(&report("gateways", "c-0001", &quiet()));
    desk.record(&report("gateways", "c-0002", &held()));
    desk.record(&report("gateways", "c-0003", &unreachable()));
    desk.record(&report("models", "c-0002", &quiet()));
    let fleet = desk.ask("/api/v1/fleet").await.json();
    let names = |fleet: &Value| -> Vec<String> {
        let rows = fleet["rows"].as_array().expect("there are rows");
        rows.iter().map(|row| row["cluster"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(names(&fleet), ["c-0003", "c-0002", "c-0000", "c-0004", "c-0005", "c-0001"]);
    assert_eq!(fleet["syncs"][0]["statuses"], json!({"unreachable": 1, "held": 1, "unknown": 3, "ok": 1}));
    assert_eq!(fleet["syncs"][0]["waiting"], 1);
    assert_eq!((&fleet["clusters"], &fleet["matching"]), (&json!(6), &json!(6)));
    let cell = &fleet["rows"][1]["cells"][0];
    assert_eq!(
        (&cell["sync"], &cell["status"], &cell["guards"]),
        (&json!("gateways"), &json!("held"), &json!(["max-delete"]))
    );
    assert_eq!(cell["since"], "2026-11-20T11:58:00Z");
    assert!(
        fleet["rows"][0]["cells"][0]["message"].as_str().is_some_and(|message| message.contains("<img")),
        "it is text"
    );
    for (query, expected) in [
        ("status=ok", vec!["c-0002", "c-0001"]),
        ("sync=models", vec!["c-0000", "c-0004", "c-0002"]),
        ("sync=models&status=ok", vec!["c-0002"]),
        ("q=0003", vec!["c-0003"]),
        ("q=region%3Dus&order=name", vec!["c-0001", "c-0003", "c-0005"]),
        ("order=name&from=4", vec!["c-0004", "c-0005"]),
        ("order=name&limit=2", vec!["c-0000", "c-0001"]),
        ("sync=nothing", vec![]),
    ] {
        assert_eq!(names(&desk.ask(&format!("/api/v1/fleet?{query}")).await.json()), expected, "{query}");
    }
}

#[tokio::test]
async fn a_round_that_ends_is_seen_and_one_that_says_the_same_file_is_not_read_again() {
    let desk = Desk::new(2, "{}").await;
    let first = desk.ask("/api/v1/fleet").await.json();
    assert_eq!(desk.ask("/api/v1/fleet").await.json(), first);
    desk.record(&report("gateways", "c-0001", &held()));
    let second = desk.ask("/api/v1/fleet").await.json();
    assert!(second["version"].as_u64() > first["version"].as_u64(), "{second}");
    assert_eq!(second["syncs"][0]["statuses"], json!({"held": 1, "unknown": 1}));
}

#[tokio::test]
async fn a_thousand_clusters_are_a_small_page() {
    let desk = Desk::new(1000, "{}").await;
    for number in (0..1000).step_by(50) {
        desk.record(&report("gateways", &format!("c-{number:04}"), &quiet()));
    }
    let page = desk.ask("/api/v1/fleet").await;
    assert!(page.body.len() < 50_000, "{} bytes", page.body.len());
    let page = page.json();
    assert_eq!(
        (&page["clusters"], &page["next"], page["rows"].as_array().map(Vec::len)),
        (&json!(1000), &json!(50), Some(50))
    );
    let all = desk.ask("/api/v1/fleet?limit=100000").await;
    assert!(all.body.len() < 200_000, "{} bytes", all.body.len());
    assert_eq!(all.json()["rows"].as_array().map(Vec::len), Some(200), "more are another page");
    let mut seen = std::collections::BTreeSet::new();
    let mut next = Some(0);
    while let Some(from) = next {
        let page = desk.ask(&format!("/api/v1/fleet?order=name&limit=200&from={from}")).await.json();
        let rows = page["rows"].as_array().expect("there are rows");
        seen.extend(rows.iter().map(|row| row["cluster"].to_string()));
        next = page["next"].as_u64();
    }
    assert_eq!(seen.len(), 1000);
}
