//! The dashboard of a running daemon, shown by a real browser.
//!
//! `GATEWRIGHT_BLESS=1 cargo test --test it dashboard` takes the pictures in `docs` again; look at them.
//! The time and memory that a large fleet takes are written to `dashboard.txt` in `target/tmp`.

mod actions;
mod others;
mod state;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::chromium::Chromium;
use super::{assert_no_barrier, assert_pictured};
use state::Fleet;

/// The views, each with what is seen when it is there, and the least number of texts in it.
const VIEWS: [(&str, &str, u64); 7] = [
    ("fleet", "document.querySelectorAll('table.matrix tbody tr').length === 10", 40),
    ("target/policies/eu-west-2", "document.querySelector('ins')", 20),
    ("target/gateways/eu-west-1", "document.querySelector('.hold code')", 15),
    ("target/inference/us-west-1", "document.querySelector('.facts')", 10),
    ("approvals", "document.querySelectorAll('.hold').length === 2", 15),
    ("rollouts", "document.querySelector('.waves')", 10),
    ("rounds", "document.querySelectorAll('tbody tr').length === 10", 40),
];

/// The most memory that a large fleet may take, in KiB.
const MOST_MEMORY: u64 = 50 * 1024;

/// Waits until something holds in the page.
fn until(chromium: &mut Chromium, holds: &str) {
    let script = format!(
        "new Promise((done, fail) => {{
            const look = (times) => {{ if ({holds}) done(true); else if (times > 1200) fail(document.body.innerText); else setTimeout(look, 50, times + 1); }};
            look(0);
        }})"
    );
    chromium.evaluate(&script);
}

fn open(chromium: &mut Chromium, fleet: &Fleet, view: &str, holds: &str) {
    // Another view of the same page would only be another part of it.
    chromium.visit("about:blank");
    chromium.visit(&fleet.view(view));
    until(chromium, holds);
}

fn ordinary() -> Fleet {
    Fleet::start(&state::names(), state::ordinary)
}

#[test]
fn axe_finds_no_barrier_in_the_dashboard() {
    let (fleet, mut chromium) = (ordinary(), Chromium::start());
    for (view, holds, least) in VIEWS {
        open(&mut chromium, &fleet, view, holds);
        chromium.evaluate("document.querySelectorAll('details').forEach((it) => { it.open = true; })");
        for scheme in ["light", "dark"] {
            chromium.prefer(scheme);
            assert_no_barrier(&mut chromium, &format!("{view}, {scheme}"), least);
        }
        assert_eq!(chromium.complaints(), [""; 0], "{view}");
        let own = format!("http://127.0.0.1:{}/", fleet.port);
        let others: Vec<String> = chromium.requests().into_iter().filter(|url| !url.starts_with(&own)).collect();
        assert_eq!(others, ["about:blank"; 0], "{view}");
    }
}

#[test]
fn the_dashboard_shows_all_of_it_on_a_narrow_screen() {
    let (fleet, mut chromium) = (ordinary(), Chromium::start());
    chromium.resize(320, 640);
    for (view, holds, _) in VIEWS {
        open(&mut chromium, &fleet, view, holds);
        chromium.evaluate("document.querySelectorAll('details').forEach((it) => { it.open = true; })");
        // Tables have a place of their own to scroll.
        let wide = chromium.evaluate(
            "[...document.querySelectorAll('body *')].filter((part) => !part.closest('.wide, .skip, .hidden, #news') &&
                part.getBoundingClientRect().right > innerWidth).map((part) => part.outerHTML.slice(0, 200))",
        );
        assert_eq!(wide, json!([]), "{view}");
    }
}

#[test]
fn the_keyboard_is_enough_for_the_dashboard() {
    let (fleet, mut chromium) = (ordinary(), Chromium::start());
    open(&mut chromium, &fleet, "fleet", VIEWS[0].1);
    let focus = |chromium: &mut Chromium| {
        chromium.evaluate("document.activeElement.dataset.key || document.activeElement.name || document.activeElement.textContent || document.activeElement.id")
    };
    let mut stops = Vec::new();
    for _ in 0..11 {
        chromium.press("Tab");
        stops.push(focus(&mut chromium));
    }
    assert_eq!(stops[..6], ["Skip to content", "gatewright", "Fleet", "Approvals", "Rollouts", "Rounds"]);
    assert_eq!(stops[6..], ["q", "status", "sync", "order", "approvals"]);
    chromium.press("Tab");
    assert_eq!(focus(&mut chromium), "status unreachable");
    chromium.press("Enter");
    until(&mut chromium, "document.querySelectorAll('table.matrix tbody tr').length === 1");
    assert_eq!(focus(&mut chromium), "status unreachable", "the keyboard stays where it was");
    let pressed = "document.activeElement.getAttribute('aria-pressed')";
    assert_eq!(chromium.evaluate(pressed), "true");
    assert_eq!(chromium.evaluate("document.querySelector('[role=status]').textContent.startsWith('1 cluster;')"), true);
    chromium.press("Enter");
    until(&mut chromium, VIEWS[0].1);

    // From a cell to what is behind it, and on the way the title says where one is.
    chromium.evaluate("document.querySelector('[data-key=\"gateways/eu-west-1\"]').focus()");
    chromium.press("Enter");
    until(&mut chromium, VIEWS[2].1);
    assert_eq!(chromium.evaluate("document.activeElement.textContent"), "gateways on eu-west-1");
    assert_eq!(chromium.evaluate("document.title"), "gateways on eu-west-1 – gatewright");
}

#[test]
fn news_are_shown_as_they_come_and_disturb_nobody() {
    let (fleet, mut chromium) = (ordinary(), Chromium::start());
    open(
        &mut chromium,
        &fleet,
        "target/gateways/us-east-1",
        "document.querySelectorAll('.units details').length === 6",
    );
    until(&mut chromium, "document.getElementById('live').textContent.includes('live')");
    let card = "document.querySelector('[data-key=\"summary Gateway payments/card\"]')";
    chromium.evaluate(&format!("{card}.focus()"));
    chromium.press("Enter");
    let mut sick = state::quiet(7);
    sick["units"][1]["state"] = json!("unhealthy");
    state::keep(&fleet.desk, ("gateways", "us-east-1"), &sick, 0);
    until(&mut chromium, "document.querySelectorAll('.units details').length === 7");
    assert_eq!(chromium.evaluate("document.querySelector('.facts .state').textContent"), "✗unhealthy");
    assert_eq!(chromium.evaluate(&format!("document.activeElement === {card} && {card}.parentElement.open")), true);
    assert_eq!(chromium.evaluate("document.getElementById('news').textContent"), "unhealthy; 7 units");
}

#[test]
fn what_others_have_named_is_text() {
    let (fleet, mut chromium) = (Fleet::start(&state::names(), state::hostile), Chromium::start());
    for (view, holds) in [
        ("fleet", "document.querySelectorAll('table.matrix tbody tr').length === 10"),
        ("target/gateways/eu-west-1", "document.querySelectorAll('.units details').length > 4"),
        ("target/gateways/us-east-1", "document.querySelector('.hold')"),
        ("approvals", "document.querySelector('.hold')"),
        ("target/%3Cimg%20src=x%20onerror=window.hostile=1%3E/a", "document.querySelector('[role=alert]')"),
        ("target/%ff/%2e%2e", "document.querySelector('[role=alert]')"),
    ] {
        open(&mut chromium, &fleet, view, holds);
        chromium.evaluate("document.querySelectorAll('details').forEach((it) => { it.open = true; })");
        assert_eq!(chromium.evaluate("window.hostile"), Value::Null, "{view}");
        assert_eq!(
            chromium.evaluate("document.querySelectorAll('img, iframe, main script, [onfocus], [onerror]').length"),
            0,
            "{view}"
        );
        assert_eq!(chromium.evaluate("/[\\u202a-\\u202e]/.test(document.body.innerText)"), false, "{view}");
    }
    open(&mut chromium, &fleet, "target/gateways/eu-west-1", "document.querySelectorAll('.units details').length > 4");
    let text = chromium.evaluate("document.querySelector('main').textContent");
    let text = text.as_str().unwrap_or_default();
    assert!(text.contains("<img src=x onerror=window.hostile=1>") && text.contains("\\u{202e}"), "{text}");
}

#[test]
fn a_large_fleet_is_seen_at_once_and_takes_little_memory() {
    let names: Vec<String> =
        (0..1000).map(|number| format!("{}-{number:04}", ["ap", "eu", "us"][number % 3])).collect();
    let fleet = Fleet::start(&names, |desk| state::large(desk, &names, 50));
    let (before, mut chromium, mut figures) = (fleet.daemon.resident(), Chromium::start(), Vec::new());
    let rows = "document.querySelectorAll('table.matrix tbody tr').length === 50";
    for times in ["first", "then"] {
        open(&mut chromium, &fleet, "fleet", rows);
        // The rows may be there before a browser that has just started has painted anything.
        until(&mut chromium, "performance.getEntriesByType('paint').length > 0");
        let paint = chromium.evaluate("performance.getEntriesByType('paint')[0].startTime");
        let answer = "performance.getEntriesByType('resource').filter((it) => it.name.includes('/fleet?')).map((it) => [it.duration, it.encodedBodySize])[0]";
        figures.push(format!("{times}: paint {paint} ms, matrix [ms, bytes] {}\n", chromium.evaluate(answer)));
    }
    assert_eq!(chromium.evaluate("document.querySelector('.pages span').textContent"), "1–50 of 1,000 clusters");
    let elements = chromium.evaluate("document.querySelectorAll('*').length").as_u64().unwrap_or_default();
    assert!(elements < 4_000, "{elements} elements");
    let change = "(async () => { const start = performance.now(); document.querySelector('[name=order]').value = 'name';
        document.querySelector('[name=order]').dispatchEvent(new Event('change'));
        await new Promise((done) => new MutationObserver(() => done()).observe(document.querySelector('.result'), {childList: true}));
        return performance.now() - start; })()";
    figures.push(format!("another order: {} ms, {elements} elements\n", chromium.evaluate(change)));
    let grown = fleet.daemon.resident().saturating_sub(before);
    figures.push(format!("memory: {before} KiB, and {grown} KiB more\n"));
    fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("dashboard.txt"), figures.concat())
        .expect("it can be written");
    assert!(grown < MOST_MEMORY, "{grown} KiB");
}

#[test]
fn pictures_of_the_dashboard_are_small() {
    let (fleet, mut chromium) = (ordinary(), Chromium::start());
    chromium.resize(1200, 900);
    for scheme in ["light", "dark"] {
        chromium.prefer(scheme);
        open(&mut chromium, &fleet, "fleet", VIEWS[0].1);
        until(&mut chromium, "document.getElementById('live').textContent.includes('live')");
        assert_pictured(&mut chromium, &format!("dashboard-{scheme}.png"), "docs/dashboard.md");
    }
}
