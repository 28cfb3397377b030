//! The files for Prometheus and Grafana in `config`, judged by a real promtool and by the list of metrics in `docs/metrics.md`,
//! which is that of the program.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use gatewright_engine::yaml;
use regex::Regex;
use serde_json::Value;

use crate::cluster::binaries::{in_repository, promtool};
use crate::cluster::process::command;
use crate::program::Run;

const RULES: &str = "config/prometheus-rules.yaml";

const TESTS: &str = "tests/monitoring/rules.yaml";

const DASHBOARD: &str = "config/grafana-dashboard.json";

/// The values of labels that are not names, as far as queries ask for them.
const VALUES: [(&str, &[&str]); 2] = [("state", &["current", "unhealthy"]), ("le", &["1", "+Inf"])];

fn read(path: &str) -> String {
    fs::read_to_string(in_repository(path)).expect(path)
}

fn judge(arguments: &[&Path]) -> Run {
    Run::of(command(promtool()).args(arguments).output().expect("promtool starts"))
}

/// The series of the documentation, as Prometheus stores them, and their labels.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let row = Regex::new(r"(?m)^\| `(gatewright_\w+)(?:\{([\w,]+)\})?` \| (\w+) \|").expect("it is an expression");
    let mut series = BTreeMap::new();
    for found in row.captures_iter(&read("docs/metrics.md")) {
        let text = |group| found.get(group).map(|text| text.as_str()).unwrap_or_default();
        let labels: BTreeSet<String> =
            text(2).split(',').filter(|label| !label.is_empty()).map(str::to_owned).collect();
        if text(3) == "histogram" {
            let with_bound = labels.iter().cloned().chain(["le".to_owned()]).collect();
            series.insert(format!("{}_bucket", text(1)), with_bound);
            series.insert(format!("{}_sum", text(1)), labels.clone());
            series.insert(format!("{}_count", text(1)), labels);
        } else {
            series.insert(text(1).to_owned(), labels);
        }
    }
    assert!(series.len() > 15, "the table is read: {series:?}");
    series
}

/// Returns the metrics of a query; each is one of the documentation.
fn metrics<'a>(query: &str, series: &'a BTreeMap<String, BTreeSet<String>>) -> Vec<&'a BTreeSet<String>> {
    let name = Regex::new(r"gatewright_\w+").expect("it is an expression");
    name.find_iter(query).map(|name| series.get(name.as_str()).expect(query)).collect()
}

/// Returns the queries of the dashboard, by the titles of their panels.
fn queries(dashboard: &Value) -> Vec<(String, String)> {
    let panels = dashboard["panels"].as_array().expect("there are panels").iter();
    let queries = panels.flat_map(|panel| {
        let title = panel["title"].as_str().expect("every panel has a title");
        let targets = panel["targets"].as_array().into_iter().flatten();
        targets.map(move |target| (title.to_owned(), target["expr"].as_str().expect(title).to_owned()))
    });
    queries.collect()
}

/// Makes a file for promtool in which every documented series grows, and each query has to find something in them.
fn finds_something(queries: &[(String, String)], series: &BTreeMap<String, BTreeSet<String>>) -> String {
    let mut text = "evaluation_interval: 1m\ntests:\n  - interval: 1m\n    input_series:\n".to_owned();
    for (name, labels) in series {
        let mut all = vec![String::new()];
        for label in labels {
            let values = VALUES.iter().find(|(its, _)| its == label).map_or(&["some"] as &[&str], |(_, values)| values);
            let with = |before: &String| values.iter().map(|value| format!("{before}{label}=\"{value}\",")).collect();
            all = all.iter().flat_map(|before| -> Vec<String> { with(before) }).collect();
        }
        for labels in all {
            writeln!(text, "      - {{series: '{name}{{{labels}}}', values: 1+1x30}}").expect("there is memory");
        }
    }
    text += "    promql_expr_test:\n";
    for (title, query) in queries {
        let (expression, title) = (Value::from(format!("count({query}) > bool 0")), Value::from(title.as_str()));
        let expected = "exp_samples: [{labels: '{}', value: 1}]";
        writeln!(text, "      # {title}\n      - {{expr: {expression}, eval_time: 20m, {expected}}}")
            .expect("there is memory");
    }
    text
}

#[test]
fn promtool_accepts_the_alerts_and_they_fire_in_time() {
    let (rules, tests) = (in_repository(RULES), in_repository(TESTS));
    let run = judge(&["check".as_ref(), "rules".as_ref(), "--lint-fatal".as_ref(), &rules]);
    run.exits(0);
    judge(&["test".as_ref(), "rules".as_ref(), &tests]).exits(0);
}

#[test]
fn every_alert_is_about_metrics_that_there_are_and_has_a_test() {
    let series = documented();
    let value = |path| yaml::parse_values(&read(path)).expect("it is YAML").remove(0);
    let (rules, tests) = (value(RULES), value(TESTS));
    let tests = tests["tests"].as_array().expect("there are tests").iter();
    let docs = read("docs/metrics.md");
    let tried: Vec<&Value> = tests.flat_map(|test| test["alert_rule_test"].as_array().into_iter().flatten()).collect();
    for rule in rules["groups"][0]["rules"].as_array().expect("there are rules") {
        let expression = rule["expr"].as_str().expect("it has an expression");
        assert!(!metrics(expression, &series).is_empty(), "{expression}");
        let name = rule["alert"].as_str().expect("it has a name");
        assert!(docs.contains(&format!("\n| `{name}` |")), "{name} is in the documentation");
        let is_tried =
            |fires: bool| tried.iter().any(|test| test["alertname"] == name && test["exp_alerts"].is_array() == fires);
        assert!(
            is_tried(true) && is_tried(false),
            "{} has a test in which it fires and one in which not",
            rule["alert"]
        );
    }
}

#[test]
fn every_query_of_the_dashboard_finds_what_the_daemon_shows() {
    let (series, folder) = (documented(), tempfile::tempdir().expect("a temporary folder"));
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)).expect("it is JSON");
    let mut queries = queries(&dashboard);
    let by = Regex::new(r"by \(([\w, ]+)\)").expect("it is an expression");
    let threshold = Regex::new(r" (?:>|==) \d+").expect("it is an expression");
    for (title, query) in &mut queries {
        let of_metrics = metrics(query, &series);
        for label in by.captures_iter(query).flat_map(|found| found.extract::<1>().1[0].split(", ")) {
            assert!(of_metrics.iter().all(|labels| labels.contains(label)), "{title}: nothing has {label:?}");
        }
        // The value of a variable is asked for exactly, so that a metric without its label is not found.
        *query = query.replace("$__rate_interval", "5m").replace("=~\"$sync\"", "=\"some\"");
        *query = query.replace("=~\"$cluster\"", "=\"some\"");
        // What takes the place of nothing would be found in any case, and thresholds are not what is looked for here.
        *query = threshold.replace_all(query.trim_end_matches(" or vector(0)"), "").into_owned();
        assert!(!query.contains('$'), "{title}: a variable that is not known here: {query}");
    }
    assert!(queries.len() > 15, "{queries:?}");
    let file = folder.path().join("queries.yaml");
    fs::write(&file, finds_something(&queries, &series)).expect("there is room for a file");
    judge(&["test".as_ref(), "rules".as_ref(), &file]).exits(0);
}

#[test]
fn the_panels_of_the_dashboard_fit_together() {
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)).expect("it is JSON");
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
    let variables: Vec<&Value> =
        dashboard["templating"]["list"].as_array().expect("there are variables").iter().map(|it| &it["name"]).collect();
    assert_eq!(variables, ["datasource", "sync", "cluster"]);
    for panel in dashboard["panels"].as_array().expect("there are panels") {
        let title = &panel["title"];
        assert!(ids.insert(panel["id"].as_u64()), "{title} has an id of its own");
        let is_row = panel["type"] == "row";
        assert!(
            is_row || panel["description"].as_str().is_some_and(|text| text.ends_with('.')),
            "{title} is explained"
        );
        assert!(is_row || panel["datasource"]["uid"] == "${datasource}", "{title} asks the source that was chosen");
        let side = |name: &str| panel["gridPos"][name].as_u64().expect("it has a place");
        assert!(side("x") + side("w") <= 24, "{title} is as wide as there is room");
        for x in side("x")..side("x") + side("w") {
            for y in side("y")..side("y") + side("h") {
                assert!(taken.insert((x, y)), "{title} lies over another panel");
            }
        }
    }
}
