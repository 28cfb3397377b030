//! Views of a report: whoever names objects, or writes the messages, cannot write anything else.

use gatewright::basics::sanitize;
use gatewright::report::diff::diff;
use gatewright::report::form::ReportFormat;
use gatewright::report::text::{self, Look};
use gatewright::report::{Report, StepReport, html, junit, markdown};
use gatewright_engine::object::ObjectId;
use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use serde_json::{Value, json};

use crate::errors::{desk, folder, gateway};

/// Stands in every text of others, so that it can be found again.
const THEIRS: &str = "theirs";

/// Texts that are dangerous in one of the forms.
const FRAGMENTS: [&str; 30] = [
    "\u{1b}[2J",
    "\u{1b}]0;x\u{7}",
    "\u{9b}8m",
    "\r",
    "\n",
    "\t",
    "\0",
    "\u{7f}",
    "\u{202e}",
    "\u{2066}",
    "\u{200b}",
    "\u{2028}",
    "\u{feff}",
    "\u{ffff}",
    "]]>",
    "<script>",
    "</details>",
    "<!--",
    "&amp;",
    "\"",
    "'",
    "|",
    "\\",
    "`",
    "```\n",
    "~~~\n",
    "](http://x)",
    "@team",
    "**",
    " ",
];

pub(crate) fn hostile() -> impl Strategy<Value = String> {
    let part = prop::sample::select(FRAGMENTS.to_vec());
    prop::collection::vec(part, 0..6).prop_map(|parts| format!("{THEIRS}{}{THEIRS}", parts.concat()))
}

fn finding(kind: &str, text: &str) -> Value {
    json!({"kind": kind, "id": text, "what": text, "since": "2025-12-24T00:00:00Z"})
}

/// A report in which everything that others can say is `texts`, one after the other.
pub(crate) fn report(texts: &[String]) -> Report {
    let mut texts = texts.iter().cycle().cloned();
    let mut text = move || texts.next().unwrap_or_default();
    let mut id = |kind: &str| json!({"group": "", "kind": kind, "namespace": text(), "name": text()});
    let (unit, changed, made, refused) = (id("Gateway"), id("ConfigMap"), id("Service"), id("Deployment"));
    let manager = json!({"name": text(), "time": "2026-01-01T00:00:00Z"});
    let place = json!({"file": text(), "line": 7, "column": 1});
    let differences = json!([
        {
            "path": format!("data[{}]", text()), "before": text(), "after": text(), "managers": [manager],
            "place": place, "class": "drift", "estimated": true,
        },
        {"path": "data.a", "before": format!("a\n{}", text()), "after": format!("b\n{}", text()), "managers": []},
        {"path": "data.b", "before": {text(): text()}, "after": null, "managers": []},
    ]);
    let step = |id: &Value, action: &str, differences: Value| json!({"unit": unit, "id": id, "action": action, "differences": differences});
    let cluster = |state: &str, error: Value, steps: Value, refusals: Value, holds: Value| json!({"state": state, "error": error, "steps": steps, "refusals": refusals, "holds": holds, "units": []});
    let failed = json!({
        "unit": unit, "id": made, "action": "create", "differences": [], "note": text(),
        "outcome": {"result": "failed", "message": text()},
    });
    let refusals = json!([{"unit": unit, "id": refused, "reason": {"reason": "failed", "detail": text()}}]);
    let hold =
        json!([{"guard": "problem", "unit": unit, "message": text(), "hint": text(), "token": null, "steps": []}]);
    let none = || json!([]);
    let trend = json!({
        "time": "2026-01-01T00:00:00Z", "against": "2025-12-31T00:00:00Z", "new": 3, "still": 2,
        "resolved": [finding("step", &text()), finding("problem", &text())], "unseen": [finding("unit", &text())],
    });
    let mut changed = step(&changed, "update", differences);
    changed["since"] = json!("2025-12-30T00:00:00Z");
    changed["later"] = json!({"data.a": "2026-01-01T00:00:00Z", text(): "2026-01-01T00:00:00Z"});
    let mut clusters = json!({
        "planned": cluster("planned", Value::Null, json!([changed]), refusals, hold),
        "failed": cluster("failed", Value::Null, json!([failed]), none(), none()),
        "lost": cluster("unreachable", json!({"message": text(), "hint": text()}), none(), none(), none()),
    });
    clusters["planned"]["trend"] = trend;
    clusters["planned"]["remarks"] = json!([text(), text()]);
    clusters["lost"]["since"] = json!("2025-12-30T00:00:00Z");
    clusters["lost"]["overdue"] = json!(text());
    let problem = json!({
        "scope": "document", "place": {"file": text(), "line": 3, "column": 1}, "object": null, "message": text(), "hint": text(),
    });
    let report = json!({
        "schema": "gatewright.dev/report/v1alpha1", "sync": "gateways", "source": "platform", "revision": text(),
        "staleSource": text(), "mode": "plan", "started": "2026-01-01T00:00:00Z", "finished": "2026-01-01T00:00:01Z",
        "problems": [problem], "unclaimed": [], "clusters": clusters,
    });
    serde_json::from_value(report).expect("it is a report")
}

#[track_caller]
pub(crate) fn assert_sanitized(view: &str) {
    let hostile: Vec<char> = view.chars().filter(|c| *c != '\n' && sanitize::is_hostile(*c)).collect();
    assert!(hostile.is_empty(), "{hostile:?} in {view}");
}

/// Checks that words of others are code, or text within HTML of ours that has no other meaning.
#[track_caller]
fn assert_is_code(view: &str) {
    let mut in_code = false;
    for event in Parser::new_ext(view, Options::ENABLE_TABLES | Options::ENABLE_GFM) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Start(tag) => assert!(!matches!(tag, Tag::Link { .. } | Tag::Image { .. }), "a link in {view}"),
            Event::Text(text) => assert!(in_code || !text.contains(THEIRS), "{text:?} in {view}"),
            Event::Html(html) | Event::InlineHtml(html) => {
                let ours = ["<details>", "<summary>", "</summary>", "</details>"];
                let rest = ours.iter().fold(html.to_string(), |html, tag| html.replace(tag, ""));
                assert!(!rest.contains(['<', '>', '`', '@', '*', '[']), "{html:?} in {view}");
            }
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_others_say_is_inert_in_every_view(texts in prop::collection::vec(hostile(), 1..24)) {
        let report = report(&texts);
        let color = Look { color: true, verbose: true, ..Look::default() };
        let colored = text::write(&report, color);
        let plain = text::write(&report, Look { color: false, ..color });
        assert_sanitized(&plain);
        prop_assert_eq!(without_color(&colored), plain.clone());
        // Whatever stands in a message, it is no line of its own.
        let lines = text::write(&self::report(&[THEIRS.to_owned()]), Look { color: false, ..color }).lines().count();
        prop_assert!(plain.lines().count() >= lines);

        let json = sanitize::json(&report).expect("a report is plain data");
        assert_sanitized(&json);
        let back: Value = serde_json::from_str(&json).expect("it is JSON");
        prop_assert_eq!(back, serde_json::to_value(&report).expect("a report is plain data"));

        let reports = [report];
        let page = markdown::write(&reports, markdown::ROOM);
        assert_sanitized(&page);
        assert_is_code(&page);

        let mut page = Vec::new();
        html::write(&reports, &mut page).expect("memory takes everything");
        let page = String::from_utf8(page).expect("it is text");
        assert_sanitized(&page);
        assert_eq!(tags_beyond_ours(&page), [""; 0]);

        let mut xml = Vec::new();
        junit::write(&reports, &mut xml).expect("memory takes everything");
        let xml = String::from_utf8(xml).expect("it is text");
        assert_sanitized(&xml);
        let document = roxmltree::Document::parse(&xml).expect("it is XML");
        let cases = document.descendants().filter(|node| node.has_tag_name("testcase")).count();
        prop_assert_eq!(cases, 11, "{}", xml);

        let found = diff(&[], &reports).text() + &diff(&reports, &[]).text();
        assert_sanitized(&found);
        prop_assert!(found.contains("planned (only in the newer one)"), "{}", found);
        let first = text::first(&reports, Look::default());
        assert_sanitized(&first);
        prop_assert!(first.contains("overdue gateways on lost: "), "{}", first);
    }

    #[test]
    fn a_comment_is_as_long_as_it_may_be(texts in prop::collection::vec(hostile(), 1..9), room in 400..4000_usize) {
        let page = markdown::write(&[report(&texts)], room);
        prop_assert!(page.len() <= room, "{} of {room}", page.len());
        assert_is_code(&page);
    }
}

/// Returns the tags in a page that are none of ours, attributes included, and everything that opens or ends one without
/// being one.
fn tags_beyond_ours(page: &str) -> Vec<String> {
    let (_, body) = page.split_once("</style>").expect("it has a style");
    let (body, _) = body.split_once("<script>").expect("it has a script");
    let names = [
        "/head", "body", "header", "/header", "h1", "/h1", "h2", "/h2", "section", "/section", "ul", "/ul", "li",
        "/li", "strong", "/strong", "bdi", "/bdi", "br", "small", "/small", "div", "/div", "table", "/table", "thead",
        "/thead", "tbody", "/tbody", "tr", "/tr", "th", "/th", "td", "/td", "form", "/form", "label", "/label",
        "input", "select", "/select", "option", "/option", "button", "/button", "output", "/output", "main", "/main",
        "details", "/details", "summary", "/summary", "span", "/span", "b", "/b", "dl", "/dl", "dt", "/dt", "dd",
        "/dd", "del", "/del", "ins", "/ins",
    ];
    let attributes = [
        "id",
        "class",
        "aria-labelledby",
        "aria-label",
        "aria-keyshortcuts",
        "placeholder",
        "role",
        "tabindex",
        "scope",
        "type",
        "autocomplete",
        "spellcheck",
        "value",
        "open",
        "data-clusters",
        "data-kind",
        "data-state",
        "for",
    ];
    let is_ours = |tag: &str| {
        let (name, rest) = tag.split_once(' ').unwrap_or((tag, ""));
        // Between two quotes nothing ends an attribute.
        let outside: String = rest.split('"').step_by(2).collect();
        let mut words = outside.split(['=', ' ']).filter(|word| !word.is_empty());
        names.contains(&name) && words.all(|word| attributes.contains(&word))
    };
    let mut strange = Vec::new();
    for part in body.split('<').skip(1) {
        match part.split_once('>') {
            Some((tag, text)) if is_ours(tag) && !text.contains('>') => {}
            _ => strange.push(part.to_owned()),
        }
    }
    strange
}

/// Takes out the colors that we use ourselves.
fn without_color(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        out += &rest[..at];
        let end = rest[at..].find('m').expect("a color ends");
        rest = &rest[at + end + 1..];
    }
    out + rest
}

#[test]
fn plans_and_kept_reports_have_the_form_that_is_asked_for() {
    let desk = desk("gateways", &[("fine", folder()), ("lost", "{kubeconfig: {path: nowhere}}".to_owned())]);
    desk.write("specs/a.yaml", &gateway("shop", "a", 8080));
    let page = desk.run(&["plan", "--format", "html"]).exits(1).out;
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{page}");
    assert_eq!(page.matches("data-state=\"create\"").count(), 5, "four objects and a namespace: {page}");
    let comment =
        desk.run(&["plan", "--format", "markdown"]).exits(1).says("| `gateways` | `lost` | failed | unknown |");
    comment.says("<summary>Gateway shop/a (gateways on fine)</summary>").says("\n+ create Service shop/a\n");
    let xml = desk.run(&["plan", "--format", "junit"]).exits(1).out;
    let document = roxmltree::Document::parse(&xml).expect("it is XML");
    let suites: Vec<_> = document.descendants().filter(|node| node.has_tag_name("testsuite")).collect();
    let count = |suite: usize, of: &str| suites[suite].attribute(of).and_then(|number| number.parse::<usize>().ok());
    assert_eq!((count(0, "tests"), count(0, "failures"), count(0, "errors")), (Some(5), Some(5), Some(0)));
    assert_eq!((count(1, "tests"), count(1, "failures"), count(1, "errors")), (Some(1), Some(0), Some(1)));

    desk.replace("gatewright.yaml", "stateDir:", "reports: {formats: [markdown, junit, html]}\nstateDir:");
    desk.run(&["sync", "--cluster", "fine"]).exits(0);
    let files = std::fs::read_dir(desk.path("state/reports")).expect("a report was kept");
    let mut forms: Vec<String> = files
        .map(|file| file.expect("it can be listed").path())
        .map(|path| path.extension().expect("it has one").to_string_lossy().into_owned())
        .collect();
    forms.sort();
    assert_eq!(forms, ["html", "json", "md", "xml"]);
    desk.replace("gatewright.yaml", "[markdown, junit, html]", "[pdf]");
    desk.run(&["sync"]).exits(64).complains("gatewright.yaml:1");
}

/// Counts what is written, and keeps nothing of it but the longest piece.
#[derive(Default)]
struct Counter {
    bytes: usize,
    longest: usize,
}

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes += bytes.len();
        self.longest = self.longest.max(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A fleet of 20,000 objects, on 40 clusters.
#[test]
fn a_report_of_a_large_fleet_is_written_piece_by_piece() {
    let one = report(&["x".to_owned()]);
    let cluster = &one.clusters["planned"];
    let steps = |cluster_name: usize| {
        (0..500).map(move |n| {
            let step = cluster.steps[0].clone();
            let id = &step.id;
            let id = ObjectId::new(&id.group, &id.kind, &id.namespace, &format!("c{cluster_name}-{n}"));
            StepReport { id, ..step }
        })
    };
    let clusters = (0..40).map(|n| {
        let steps = steps(n).collect();
        (format!("c{n:02}"), gatewright::report::ClusterReport { steps, ..cluster.clone() })
    });
    let large = Report { clusters: clusters.collect(), ..one.clone() };
    assert_eq!(large.clusters.values().map(|cluster| cluster.steps.len()).sum::<usize>(), 20_000);
    for form in
        [ReportFormat::Json, ReportFormat::Text, ReportFormat::Junit, ReportFormat::Html, ReportFormat::Markdown]
    {
        let mut written = Counter::default();
        form.write(&large, &mut written).expect("it is counted");
        let Counter { bytes, longest } = written;
        if form == ReportFormat::Markdown {
            assert!(bytes <= markdown::ROOM, "{bytes}");
        } else {
            assert!(bytes > 2_000_000, "{form:?} has only {bytes} bytes");
            assert!(longest * 20 < bytes, "{form:?} is written in pieces of {longest}");
        }
    }
}
