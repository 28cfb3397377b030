//! Decisions in the browser.

use serde_json::json;

use super::state::{self, Fleet};
use super::{assert_no_barrier, open, until};
use crate::browser::chromium::Chromium;

/// Fills in a form and sends it.
fn fill(chromium: &mut Chromium, form: &str, fields: &[(&str, &str)]) {
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("form.elements.{name}.value = {};", json!(value))).collect();
    chromium.evaluate(&format!("{{ const form = {form}; {} form.requestSubmit(); }}", fields.concat()));
}

#[test]
fn what_waits_is_approved_in_the_browser_by_who_has_the_token() {
    let fleet = Fleet::start_with(&state::names(), ", actions: true", state::ordinary);
    let token = fleet.desk.read("state/dashboard.token").trim().to_owned();
    let mut chromium = Chromium::start();
    let forms = "document.querySelectorAll('form.action').length === 2";
    open(&mut chromium, &fleet, "approvals", forms);
    for scheme in ["light", "dark"] {
        chromium.prefer(scheme);
        assert_no_barrier(&mut chromium, &format!("approvals with actions, {scheme}"), 15);
    }
    let form = "document.querySelector('form.action')";
    let says = |text: &str| format!("{form}.querySelector('[role=status]').textContent.includes('{text}')");
    fill(&mut chromium, form, &[("reason", "edge moves"), ("token", "wrong")]);
    until(&mut chromium, &says("Not done: this takes the token of this host"));
    assert!(fleet.desk.run(&["audit"]).exits(0).err.contains("nothing was decided"));

    fill(&mut chromium, form, &[("reason", "edge moves"), ("token", &token)]);
    until(&mut chromium, &says("approved on"));
    fleet.desk.run(&["audit"]).exits(0).says("somebody  approved").says(": edge moves");
    // Once said it need not be said again in this tab, and it stands nowhere in the page.
    until(&mut chromium, "document.querySelectorAll('input[type=password]').length === 0");
    let page = chromium.evaluate("document.documentElement.outerHTML + JSON.stringify(localStorage) + document.cookie");
    assert!(page.as_str().is_some_and(|page| !page.contains(&token)), "it is kept for the tab alone");

    open(&mut chromium, &fleet, "target/inference/us-west-1", "document.querySelector('.actions form')");
    assert_no_barrier(&mut chromium, "a cell with actions", 10);
    let form = |title: &str| format!("document.querySelector('form[aria-label^=\"{title}\"]')");
    fill(&mut chromium, &form("Suspend"), &[("reason", "friday")]);
    until(&mut chromium, &form("Resume"));
    fleet.desk.run(&["status"]).exits(0).says("friday");
    fill(&mut chromium, &form("Resume"), &[]);
    until(&mut chromium, &form("Reconcile"));
    assert_eq!(chromium.complaints(), [""; 0]);
    // Another tab does not have it.
    open(&mut chromium, &fleet, "approvals", forms);
    assert_eq!(chromium.evaluate("document.querySelectorAll('input[type=password]').length"), json!(0), "the same tab");
    assert!(!fleet.desk.read("log").contains(&token));
}

/// News leave a text alone that somebody is typing.
#[test]
fn news_take_no_words_away_from_who_writes_them() {
    let fleet = Fleet::start_with(&state::names(), ", actions: true", state::ordinary);
    let mut chromium = Chromium::start();
    open(&mut chromium, &fleet, "target/gateways/us-east-1", "document.querySelector('.actions form')");
    until(&mut chromium, "document.getElementById('live').textContent.includes('live')");
    let reason = "document.querySelector('input[name=reason]')";
    chromium.evaluate(&format!("{reason}.focus(); {reason}.value = 'because';"));
    state::keep(&fleet.desk, ("gateways", "us-east-1"), &state::quiet(7), 0);
    until(&mut chromium, "document.querySelectorAll('.units details').length === 7");
    assert_eq!(chromium.evaluate(&format!("{reason}.value")), "because");
    assert_eq!(chromium.evaluate(&format!("document.activeElement === {reason}")), true);
}
