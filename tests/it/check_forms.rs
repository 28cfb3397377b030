//! The forms in which `check` prints what it has found.

use serde_json::{Value, json};

use crate::commands::obeys;
use crate::program::Desk;

#[test]
fn findings_are_printed_for_programs_and_for_what_shows_them_beside_a_change() {
    let desk = Desk::quickstart("gatewright.yaml");
    desk.replace("specs/shop/storefront.yaml", "cert-manager.io/cluster-issuer", "example.com/other");
    let printed = |form: &str, code: i32| {
        let run = desk.run(&["check", "specs", "--format", form]).exits(code);
        assert_eq!(run.err, "", "{form}");
        run.out
    };
    let parsed = |form: &str, code: i32| -> Value { serde_json::from_str(&printed(form, code)).expect("it is JSON") };
    let found = parsed("json", 0);
    obeys("check-v1alpha1", &found);
    assert_eq!((&found["errors"], &found["warnings"]), (&json!(0), &json!(1)), "{found:#}");
    assert_eq!(found["findings"][0]["rule"], "GW010");
    let line = &found["findings"][0]["place"]["line"];
    let command = format!("::warning file=specs/shop/storefront.yaml,line={line},col=");
    assert!(printed("github", 0).starts_with(&command), "{}", printed("github", 0));

    desk.replace("specs/shop/storefront.yaml", "port: 8080", "port: 80800");
    let log = parsed("sarif", 1);
    let levels = log["runs"][0]["results"].as_array().expect("there are results").iter().map(|it| it["level"].clone());
    assert!(levels.collect::<Vec<_>>().contains(&json!("error")), "{log:#}");
    let xml = printed("junit", 1);
    let suite = roxmltree::Document::parse(&xml).expect("it is XML");
    assert!(suite.descendants().any(|node| node.has_tag_name("failure")), "{xml}");
}
