//! The alerts of `config/prometheus-rules.yaml`: each is evaluated over what a daemon shows, before and after what it is about.
//!
//! Of the language of the rules it is understood what they need and no more, and anything else fails: a comparison of a
//! selector, of `time() - selector`, of `increase(selector[…])`, or `absent(selector)`. `for` is not waited for.

use std::collections::BTreeMap;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use gatewright_engine::yaml;

use super::{Daemon, gateway};
use crate::cluster::binaries::in_repository;
use crate::cluster::process::free_port;
use crate::cluster::unique;
use crate::ownership::site::server;
use crate::program::Desk;

/// Two hours: longer than any rule waits for something to happen.
const LATER: f64 = 7200.0;

type Labels = BTreeMap<String, String>;

/// Series and their values.
#[derive(Clone, Default)]
struct Page(Vec<(String, Labels, f64)>);

impl Page {
    fn of(daemon: &Daemon) -> Self {
        let page = daemon.page("/metrics").unwrap_or_default();
        let (_, body) = page.split_once("\r\n\r\n").unwrap_or_default();
        Self(body.lines().filter(|line| !line.starts_with('#')).map(sample).collect())
    }

    fn select(&self, selector: &str) -> Vec<(Labels, f64)> {
        let (name, matchers) = selector.split_once('{').unwrap_or((selector, "}"));
        let matchers = matchers.strip_suffix('}').expect(selector);
        let of_name = self.0.iter().filter(|(its, ..)| its == name);
        let fits = |labels: &Labels| {
            matchers.split(',').filter(|matcher| !matcher.is_empty()).all(|matcher| {
                let (label, values) = matcher.split_once("=~").or_else(|| matcher.split_once('=')).expect(matcher);
                let value = labels.get(label).map(String::as_str).unwrap_or_default();
                values.trim_matches('"').split('|').any(|wanted| wanted == value)
            })
        };
        of_name.filter(|(_, labels, _)| fits(labels)).map(|(_, labels, value)| (labels.clone(), *value)).collect()
    }
}

fn sample(line: &str) -> (String, Labels, f64) {
    let (series, value) = line.rsplit_once(' ').expect(line);
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let labels = labels.strip_suffix('}').expect(line).split("\",").filter(|label| !label.is_empty());
    let label = |label: &str| {
        let (name, value) = label.split_once("=\"").expect(line);
        (name.to_owned(), value.trim_end_matches('"').to_owned())
    };
    (name.to_owned(), labels.map(label).collect(), value.parse().expect(line))
}

/// Evaluates a rule at a time, over the first page of an hour and the last; returns the series for which it holds.
fn evaluate(expression: &str, (first, last): (&Page, &Page), time: f64) -> Vec<Labels> {
    let inner = |text: &str, function: &str| -> Option<String> {
        Some(text.strip_prefix(function)?.strip_prefix('(')?.strip_suffix(')')?.to_owned())
    };
    if let Some(selector) = inner(expression, "absent") {
        return if last.select(&selector).is_empty() { vec![Labels::new()] } else { Vec::new() };
    }
    let mut words = expression.rsplitn(3, ' ');
    let mut next = || words.next().expect(expression);
    let (limit, operator, left): (f64, _, _) = (next().parse().expect(expression), next(), next());
    let values = if let Some(selector) = left.strip_prefix("time() - ") {
        last.select(selector).into_iter().map(|(labels, value)| (labels, time - value)).collect()
    } else if let Some(range) = inner(left, "increase") {
        let (selector, _) = range.rsplit_once('[').expect(expression);
        let before: BTreeMap<Labels, f64> = first.select(selector).into_iter().collect();
        // What was not there before has not increased, as Prometheus sees it.
        let grown = |(labels, value): (Labels, f64)| Some((labels.clone(), value - before.get(&labels)?));
        last.select(selector).into_iter().filter_map(grown).collect()
    } else {
        last.select(left)
    };
    assert!([">", "=="].contains(&operator), "{operator} in {expression}");
    let holds = |value: f64| if operator == ">" { value > limit } else { (value - limit).abs() < f64::EPSILON };
    values.into_iter().filter(|(_, value)| holds(*value)).map(|(labels, _)| labels).collect()
}

/// The rules of the file, by name.
fn rules() -> BTreeMap<String, String> {
    let text = fs::read_to_string(in_repository("config/prometheus-rules.yaml")).expect("it is there");
    let rules = yaml::parse_values(&text).expect("it is YAML").remove(0);
    let rules = rules["groups"][0]["rules"].as_array().cloned().expect("there are rules");
    let word = |rule: &serde_json::Value, field: &str| rule[field].as_str().expect(field).to_owned();
    rules.iter().map(|rule| (word(rule, "alert"), word(rule, "expr"))).collect()
}

#[expect(clippy::disallowed_methods, reason = "the daemon has no other clock")]
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later").as_secs_f64()
}

struct Watch {
    desk: Desk,
    daemon: Daemon,
    port: u16,
    rules: BTreeMap<String, String>,
    first: Page,
}

impl Watch {
    /// Waits until an alert fires about something; that it does is taken off the list of those that never did.
    #[track_caller]
    fn until(&mut self, alert: &str, about: (&str, &str), after: f64) {
        let (rule, first) = (self.rules[alert].clone(), self.first.clone());
        let is_about = |labels: &Labels| about.0.is_empty() || labels.get(about.0).is_some_and(|it| it == about.1);
        let what = format!("{alert} about {about:?}");
        self.daemon
            .until(&what, |daemon| evaluate(&rule, (&first, &Page::of(daemon)), now() + after).iter().any(is_about));
        self.rules.remove(alert);
    }
}

/// A kubeconfig of an API server that is not there.
fn write_kubeconfig_of_nobody(desk: &Desk) {
    let kubeconfig = serde_json::json!({
        "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": format!("https://127.0.0.1:{}", free_port())}}],
        "users": [{"name": "a", "user": {"token": "t"}}],
    });
    desk.write("gone.kubeconfig", &kubeconfig.to_string());
}

/// Writes a configuration: a sync on a directory, another one on an API server where nothing becomes healthy, and one on
/// a cluster that does not answer.
fn configure(desk: &Desk, port: u16, (kubeconfig, sick): (&str, &str), more: &str) {
    let config = format!(
        "stateDir: state\nhttp: {{listen: \"127.0.0.1:{port}\"}}\n{more}\n\
         sources:\n  specs: {{poll: 1s, directory: {{path: specs}}}}\n  others: {{poll: 1s, directory: {{path: others}}}}\n\
         clusters: {{folder: {{directory: {{path: rendered}}}}, only: {{kubeconfig: {{path: {kubeconfig}}}}}, \
         gone: {{kubeconfig: {{path: gone.kubeconfig, timeout: 1s}}}}}}\n\
         syncs:\n  gateways: {{source: specs, clusters: {{names: [folder]}}, createNamespaces: true, \
         schedule: {{interval: 10s, jitter: 0%}}}}\n  {sick}: {{source: others, clusters: {{names: [only]}}, \
         createNamespaces: true, wait: {{timeout: 1s}}, schedule: {{interval: 10s, jitter: 0%}}}}\n  \
         lost: {{source: others, clusters: {{names: [gone]}}, schedule: {{interval: 10s, jitter: 0%}}}}\n"
    );
    desk.write("gatewright.yaml", &config);
}

fn counted(page: &Page, result: &str) -> f64 {
    let selector = format!("gatewright_rounds_total{{sync=\"gateways\",result=\"{result}\"}}");
    page.select(&selector).iter().map(|(_, value)| value).sum()
}

#[test]
fn every_alert_fires_when_it_should_and_not_before() {
    let (desk, port, sick) = (Desk::empty("gatewright.yaml"), free_port(), unique("sick"));
    let kubeconfig = server().kubeconfig("admin").display().to_string();
    desk.write("specs/a.yaml", &gateway("a", 80));
    desk.write("others/readme.txt", "nothing yet");
    write_kubeconfig_of_nobody(&desk);
    configure(&desk, port, (&kubeconfig, &sick), "");
    let (rules, nothing) = (rules(), Page::default());
    assert_eq!(evaluate(&rules["GatewrightDown"], (&nothing, &nothing), now()).len(), 1, "nobody is there yet");
    let daemon = Daemon::start(&desk, port, &[]);
    let mut watch = Watch { desk, daemon, port, rules, first: nothing };
    watch.daemon.until("two rounds", |daemon| daemon.metric("gatewright_rounds_total", &["\"done\""]) >= Some(2.0));
    let quiet = Page::of(&watch.daemon);
    for (alert, rule) in &watch.rules {
        assert_eq!(evaluate(rule, (&watch.first, &quiet), now()), [], "{alert}");
    }
    watch.rules.remove("GatewrightDown");
    watch.until("GatewrightClusterUnreachable", ("cluster", "gone"), LATER);

    configure(&watch.desk, port, (&kubeconfig, &sick), "no such: setting");
    watch.daemon.signal("HUP");
    watch.until("GatewrightConfigRejected", ("", ""), 0.0);
    // Nobody takes notifications, and where clusters are looked for there is none.
    let more = format!(
        "reports: {{webhooks: {{ops: {{url: \"http://127.0.0.1:{}/\", retryFor: 0s, timeout: 1s}}}}}}\n\
         clusterSecrets: {{none: {{cluster: only, format: cluster-api, namespace: {sick}, poll: 1s}}}}",
        free_port()
    );
    configure(&watch.desk, port, (&kubeconfig, &sick), &more);
    watch.daemon.signal("HUP");
    watch.daemon.until("the webhook", |daemon| daemon.metric("gatewright_notifications_total", &["ops"]) == Some(0.0));
    watch.first = Page::of(&watch.daemon);
    watch.until("GatewrightClustersUnread", ("cluster_secrets", "none"), 0.0);

    a_broken_spec_is_seen(&mut watch);
    watch.until("GatewrightNotTelling", ("webhook", "ops"), 0.0);
    fs::remove_file(watch.desk.path("specs/a.yaml")).expect("it is there");
    watch.until("GatewrightHeld", ("guard", "empty-render"), 0.0);
    watch.desk.write("specs/a.yaml", &gateway("a", 80));
    let is_held = |daemon: &Daemon| !Page::of(daemon).select("gatewright_holds").is_empty();
    watch.daemon.until("the end of the hold", |daemon| !is_held(daemon));

    watch.desk.write("others/b.yaml", &gateway("b", 80).replace("shop", &sick));
    watch.until("GatewrightUnhealthy", ("sync", &sick), 0.0);
    watch.desk.run(&["suspend", "gateways"]).exits(0);
    watch.until("GatewrightSuspended", ("sync", "gateways"), 0.0);
    fs::rename(watch.desk.path("specs"), watch.desk.path("away")).expect("it is there");
    watch.daemon.until("a failed poll", |daemon| {
        daemon.metric("gatewright_source_polls_total", &["\"specs\"", "\"failed\""]) > Some(0.0)
    });
    watch.until("GatewrightSourceStale", ("source", "specs"), LATER);
    assert_eq!(watch.rules.into_keys().collect::<Vec<_>>(), [""; 0], "nobody has seen these fire");
}

/// A broken spec is a failed round, which moves no success, and a problem for as long as it is there.
fn a_broken_spec_is_seen(watch: &mut Watch) {
    watch.desk.write("specs/b.yaml", &gateway("b", 80).replace("port:", "prot:"));
    watch.until("GatewrightProblems", ("sync", "gateways"), 0.0);
    let success = |page: &Page| page.select("gatewright_last_success_timestamp_seconds{sync=\"gateways\"}");
    let before = Page::of(&watch.daemon);
    watch.desk.write("specs/b.yaml", &gateway("b", 81).replace("port:", "prot:"));
    let is_later = |daemon: &Daemon| counted(&Page::of(daemon), "failed") > counted(&before, "failed");
    watch.daemon.until("another round that fails", is_later);
    let after = Page::of(&watch.daemon);
    assert!(counted(&after, "done") <= counted(&before, "done"), "a broken spec counts as done");
    assert_eq!(success(&after), success(&before));
    watch.until("GatewrightSyncFailing", ("sync", "gateways"), LATER);
    // A restart does not begin to count again.
    watch.daemon.stops_within(std::time::Duration::from_secs(20));
    watch.daemon = Daemon::start(&watch.desk, watch.port, &[]);
    watch.daemon.until("a round", |daemon| counted(&Page::of(daemon), "failed") > 0.0);
    assert_eq!(success(&Page::of(&watch.daemon)), success(&before));
    let webhooks = |page: &Page| page.select("gatewright_notifications_total{webhook=\"ops\"}");
    watch.daemon.until("the webhook", |daemon| !webhooks(&Page::of(daemon)).is_empty());
    watch.first = Page::of(&watch.daemon);

    fs::remove_file(watch.desk.path("specs/b.yaml")).expect("it is there");
    let problems = "gatewright_problems{sync=\"gateways\"}";
    watch
        .daemon
        .until("the end of the problem", |daemon| Page::of(daemon).select(problems).iter().all(|it| it.1 == 0.0));
    assert!(success(&Page::of(&watch.daemon)) != success(&before), "it has succeeded since");
}
