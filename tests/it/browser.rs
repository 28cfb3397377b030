//! The HTML view of reports, shown by a real browser.
//!
//! `GATEWRIGHT_BLESS=1 cargo test --test it browser` takes the pictures in `docs` again; look at them.
//! What the browser takes until something is to be seen is written to `first-paint.txt` in `target/tmp`.

mod chromium;
mod dashboard;
mod fleet;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use chromium::Chromium;
use gatewright::basics::sanitize;
use gatewright::report::outcome::Outcome;
use gatewright::report::{Report, html};
use gatewright_engine::object::ObjectId;
use serde_json::{Value, json};

use crate::cluster::binaries::{axe, in_repository};
use crate::golden::blesses;

/// The most that the large fleet may take; more elements are more to lay out before anything can be seen.
const MOST_BYTES: usize = 2_000_000;
const MOST_ELEMENTS: u64 = 30_000;

/// The largest size that a picture in the documentation may have.
const MOST_BYTES_OF_A_PICTURE: usize = 150_000;

/// The number of times that the first paint is measured.
const MEASUREMENTS: usize = 9;

/// A script that lists the objects that can be seen, or could be by scrolling, once for each cluster that is asked for.
const SEEN: &str = "[...document.querySelectorAll('main li')].filter((row) => row.checkVisibility()).flatMap((row) => {
    const chosen = document.getElementById('cluster').value;
    const clusters = JSON.parse(row.closest('section').dataset.clusters).filter((name) => !chosen || name === chosen);
    const name = row.querySelector('bdi').textContent;
    return clusters.map((cluster) => [cluster, row.dataset.kind, name, row.dataset.state].join(' | '));
})";

/// A script that says what of the keyboard's is where.
const FOCUS: &str = "document.activeElement.id || document.activeElement.tagName";

/// An object as the page shows it.
struct Row {
    cluster: String,
    unit: String,
    kind: String,
    name: String,
    state: String,
}

/// Returns all objects of reports.
fn rows(reports: &[Report]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (cluster, report) in reports.iter().flat_map(|report| &report.clusters) {
        let mut add = |unit: &ObjectId, id: &ObjectId, state: &str| {
            let name = format!("{}/{}", id.namespace, id.name);
            let [cluster, unit, name] =
                [cluster, &unit.to_string(), &name].map(|text| sanitize::line(text).into_owned());
            rows.push(Row { cluster, unit, kind: id.kind.clone(), name, state: state.to_owned() });
        };
        for step in &report.steps {
            let state = match &step.outcome {
                Some(Outcome::Failed(_)) => "failed",
                Some(Outcome::Skipped) => "not tried",
                _ => step.action.word(),
            };
            add(&step.unit, &step.id, state);
        }
        report.refusals.iter().for_each(|refusal| add(&refusal.unit, &refusal.id, "refused"));
    }
    rows
}

/// Returns those rows that are wanted, as [`SEEN`] lists them, in order.
fn listed<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Vec<String> {
    let line = |row: &Row| [&*row.cluster, &row.kind, &row.name, &row.state].join(" | ");
    let mut lines: Vec<String> = rows.into_iter().map(line).collect();
    lines.sort();
    lines
}

fn seen(chromium: &mut Chromium) -> Vec<String> {
    let mut seen: Vec<String> = serde_json::from_value(chromium.evaluate(SEEN)).expect("it is a list of texts");
    seen.sort();
    seen
}

/// Returns the rows that stand open before anything was asked for: those of units of which something is to be said on
/// the same clusters.
fn open(rows: &[Row]) -> Vec<String> {
    fn object(row: &Row) -> [&str; 4] {
        [&row.unit, &row.kind, &row.name, &row.state]
    }
    let mut clusters: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
    for row in rows {
        clusters.entry(object(row)).or_default().insert(&row.cluster);
    }
    let section = |row: &Row| (row.cluster.clone(), row.unit.clone(), clusters[&object(row)].clone());
    let open: BTreeSet<_> = rows.iter().filter(|row| row.state != "keep").map(section).collect();
    listed(rows.iter().filter(|row| open.contains(&section(row))))
}

fn page(reports: &[Report]) -> Vec<u8> {
    let mut page = Vec::new();
    html::write(reports, &mut page).expect("memory takes everything");
    page
}

fn large() -> &'static [u8] {
    static PAGE: OnceLock<Vec<u8>> = OnceLock::new();
    PAGE.get_or_init(|| page(&fleet::large()))
}

#[test]
fn the_page_of_a_large_fleet_is_small() {
    assert!(large().len() < MOST_BYTES, "{} bytes", large().len());
    let paint = "new Promise((done) => new PerformanceObserver((list) => done(list.getEntriesByName('first-paint')
        .map((entry) => entry.startTime)[0])).observe({type: 'paint', buffered: true}))";
    let mut chromium = Chromium::start();
    let mut times = Vec::new();
    for _ in 0..MEASUREMENTS {
        chromium.open(large());
        times.push(chromium.evaluate(paint).as_f64().expect("something is painted"));
    }
    let elements = chromium.evaluate("document.querySelectorAll('*').length");
    assert!(elements.as_u64().is_some_and(|elements| elements < MOST_ELEMENTS), "{elements} elements");
    assert_eq!(rows(&fleet::large()).len(), fleet::OBJECTS);
    assert_eq!(chromium.evaluate("document.getElementById('count').textContent"), "5000 objects");

    // A machine that is busy says nothing about the page, so the times are for people.
    let first = times[0];
    times.sort_by(f64::total_cmp);
    let median = times[MEASUREMENTS / 2];
    let figures = format!(
        "{} bytes, {elements} elements\nfirst paint: median of {MEASUREMENTS} {median:.0} ms, {first:.0} ms at first\n",
        large().len()
    );
    fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("first-paint.txt"), figures).expect("it can be written");
}

#[test]
fn filters_leave_exactly_what_was_asked_for() {
    let rows = rows(&fleet::large());
    let mut chromium = Chromium::start();
    chromium.open(large());
    assert_eq!(seen(&mut chromium), open(&rows));
    let mut ask = |name: &str, cluster: &str, kind: &str, state: &str| {
        for (id, value) in [("name", name), ("cluster", cluster), ("kind", kind), ("state", state)] {
            chromium.evaluate(&format!("document.getElementById('{id}').value = {}", json!(value)));
        }
        chromium.evaluate("document.getElementById('filter').dispatchEvent(new Event('input'))");
        let wanted = rows.iter().filter(|row| {
            let is_named = row.unit.contains(name) || row.name.contains(name);
            let is = |wanted: &str, it: &str| wanted.is_empty() || wanted == it;
            is_named && is(cluster, &row.cluster) && is(kind, &row.kind) && is(state, &row.state)
        });
        let wanted = listed(wanted);
        assert_eq!(seen(&mut chromium), wanted, "{name:?} {cluster:?} {kind:?} {state:?}");
        let sections = chromium.evaluate("document.querySelectorAll('main section:not([hidden])').length");
        assert_eq!(sections == 0, wanted.is_empty());
        let count = chromium.evaluate("document.getElementById('count').textContent");
        assert_eq!(count, format!("{} of 5000 objects", wanted.len()));
        wanted.len()
    };
    assert_eq!(ask("gateway-0123", "", "", ""), 5);
    for hostile in ["onerror=", " autofocus ", "<!--", "\\u{202e}"] {
        assert!(ask(hostile, "", "", "") > 0, "names of others are found by what they say");
    }
    assert_eq!(ask("nowhere", "", "", ""), 0);
    let clusters: Vec<&str> = rows.iter().map(|row| row.cluster.as_str()).collect();
    assert_eq!(ask("", clusters[0], "", ""), 625);
    assert_eq!(ask("", "eu-central-\" autofocus onfocus=\"window.hostile=1", "", ""), 625);
    assert!(ask("", "", "Service", "") > 900);
    for state in ["create", "failed", "keep", "not tried", "prune", "refused", "update"] {
        assert!(ask("", "", "", state) > 10, "{state}");
    }
    assert!(ask("search/", clusters[0], "Deployment", "update") > 0);

    chromium.evaluate("document.querySelector('#filter button').click()");
    chromium.evaluate("new Promise((done) => setTimeout(done))");
    assert_eq!(seen(&mut chromium), open(&rows), "what was folded is folded again");
    let choices = chromium.evaluate("[...document.getElementById('state').options].map((choice) => choice.value)");
    assert_eq!(choices, json!(["", "create", "failed", "keep", "not tried", "prune", "refused", "update"]));
}

#[test]
fn the_keyboard_is_enough() {
    let reports = fleet::small();
    let rows = rows(&reports);
    let mut chromium = Chromium::start();
    chromium.open(&page(&reports));
    chromium.press("/");
    assert_eq!(chromium.evaluate(FOCUS), "name");
    "search/".chars().for_each(|key| chromium.press(&key.to_string()));
    assert_eq!(chromium.evaluate("document.getElementById('name').value"), "search/", "a slash in a name is a slash");
    assert_eq!(seen(&mut chromium), listed(rows.iter().filter(|row| row.name.starts_with("search/"))));
    chromium.press("Enter");
    assert_eq!(chromium.evaluate("document.getElementById('name').value"), "search/", "there is nothing to be sent");
    chromium.press("Escape");
    assert_eq!(chromium.evaluate("document.getElementById('name').value"), "");
    assert_eq!(seen(&mut chromium), open(&rows));

    // On from the name are three choices and a button.
    let stop = |_| {
        chromium.press("Tab");
        chromium.evaluate(FOCUS)
    };
    let stops: Vec<Value> = (0..5).map(stop).collect();
    assert_eq!(stops, ["cluster", "kind", "state", "BUTTON", "SUMMARY"]);
    let first = chromium.evaluate(
        "document.activeElement.parentElement.querySelectorAll('li').length *
        JSON.parse(document.activeElement.closest('section').dataset.clusters).length",
    );
    let first = first.as_u64().and_then(|number| usize::try_from(number).ok()).expect("it is folded");
    assert!(first > 0);
    let is_open = chromium.evaluate("document.activeElement.parentElement.open") == json!(true);
    let all = open(&rows).len();
    let other = if is_open { all - first } else { all + first };
    for (key, wanted) in [("Enter", other), ("Enter", all), (" ", other), (" ", all)] {
        chromium.press(key);
        assert_eq!(seen(&mut chromium).len(), wanted, "{key:?}");
    }
}

/// Asserts that axe-core finds no barrier in what the browser shows, and that it has looked at `least` texts.
fn assert_no_barrier(chromium: &mut Chromium, what: &str, least: u64) {
    chromium.evaluate(&fs::read_to_string(axe()).expect("it was just fetched"));
    let found = chromium.evaluate(
        "axe.run({selectors: false}).then(({violations, passes}) => ({
            texts: passes.find(({id}) => id === 'color-contrast').nodes.length,
            violations: violations.map(({id, nodes}) => [id, nodes.length, nodes[0].html, nodes[0].failureSummary]),
        }))",
    );
    assert_eq!(found["violations"], json!([]), "{what}");
    let texts = found["texts"].as_u64().unwrap_or_default();
    assert!(texts >= least, "{what}: it has looked at {texts} texts");
}

#[test]
fn axe_finds_no_barrier() {
    let mut chromium = Chromium::start();
    chromium.open(&page(&fleet::of(10)));
    for (is_open, least) in [(false, 100), (true, 1000)] {
        chromium.evaluate(&format!("document.querySelectorAll('details').forEach((unit) => unit.open = {is_open})"));
        for scheme in ["light", "dark"] {
            chromium.prefer(scheme);
            assert_no_barrier(&mut chromium, &format!("{scheme}, open: {is_open}"), least);
        }
    }
}

#[test]
fn axe_finds_no_barrier_in_a_large_fleet() {
    let mut chromium = Chromium::start();
    chromium.open(large());
    // What is dark is the same in a small one, and takes axe a tenth of the time.
    assert_no_barrier(&mut chromium, "as it is opened", 1500);
}

#[test]
fn a_narrow_screen_shows_all_of_it() {
    let mut chromium = Chromium::start();
    // WCAG 2.2, 1.4.10: text needs scrolling in one direction only. Tables may have a place of their own to scroll.
    chromium.resize(320, 640);
    chromium.open(&page(&fleet::of(10)));
    chromium.evaluate("document.querySelectorAll('details').forEach((unit) => unit.open = true)");
    let wide = chromium.evaluate(
        "[...document.querySelectorAll('body *')].filter((part) => !part.closest('table') &&
            part.getBoundingClientRect().right > innerWidth).map((part) => part.outerHTML.slice(0, 200))",
    );
    assert_eq!(wide, json!([]));
    assert_eq!(chromium.evaluate("document.documentElement.scrollWidth"), 320);
}

#[test]
fn the_page_loads_nothing_and_runs_nothing_but_its_own_script() {
    let mut chromium = Chromium::start();
    chromium.open(large());
    chromium.evaluate("document.querySelectorAll('details').forEach((unit) => unit.open = true)");
    assert_eq!(chromium.evaluate("window.hostile"), Value::Null);
    assert_eq!(chromium.evaluate("performance.getEntriesByType('resource').length"), 0);
    assert_eq!((chromium.complaints(), chromium.requests()), (vec![], vec![]));

    // Even if something of others were read as HTML, the policy of the page would keep it from running.
    let page = String::from_utf8(page(&fleet::small())).expect("it is text");
    let broken =
        page.replace("<main id=\"objects\">", &format!("{}\n<main id=\"objects\">", fleet::HOSTILE[..2].concat()));
    assert_ne!(broken, page);
    chromium.open(broken.as_bytes());
    assert_eq!(chromium.evaluate("window.hostile"), Value::Null);
    assert_eq!(chromium.evaluate("document.getElementById('count').textContent"), "25 objects", "ours has run");
    assert_eq!(chromium.evaluate("document.querySelectorAll('img[src=x]').length"), 1, "it was read");
    let complaints = chromium.complaints();
    assert!(complaints.iter().any(|complaint| complaint.contains("Content Security Policy")), "{complaints:?}");
    // Without the policy it would have run.
    chromium.open(broken.replace("http-equiv=\"Content-Security-Policy\"", "").as_bytes());
    assert_eq!(chromium.evaluate("window.hostile"), 1);
    assert!(chromium.requests().iter().any(|url| url.ends_with("/x")), "{:?}", chromium.requests());
}

/// Asserts that a picture of what is shown is small, as is that of the documentation, and that a page has it. It is taken
/// again where somebody has asked for that.
fn assert_pictured(chromium: &mut Chromium, name: &str, page: &str) {
    let (file, picture) = (in_repository("docs").join(name), chromium.picture());
    if blesses() {
        fs::write(&file, &picture).expect("the documentation can be written");
    }
    // Fonts are not the same everywhere, and neither are pictures.
    for picture in [picture, fs::read(&file).expect("there is a picture")] {
        assert!(picture.starts_with(b"\x89PNG") && picture.len() < MOST_BYTES_OF_A_PICTURE, "{name}");
    }
    let text = fs::read_to_string(in_repository(page)).expect("it can be read");
    assert!(text.contains(&format!("({name})")), "{name} is shown nowhere");
}

#[test]
fn pictures_in_the_documentation_are_small() {
    let mut chromium = Chromium::start();
    chromium.resize(1160, 912);
    chromium.open(&page(&fleet::small()));
    for scheme in ["light", "dark"] {
        chromium.prefer(scheme);
        assert_pictured(&mut chromium, &format!("report-{scheme}.png"), "docs/reports.md");
    }
}
