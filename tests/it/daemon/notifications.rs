//! Notifications of the daemon: one for each change, none without, beside the rounds and never in their way.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Daemon, gateway, meddle_with, service};
use crate::cluster::ApiServer;
use crate::cluster::process::free_port;
use crate::commands::obeys;
use crate::program::Desk;
use crate::support::receiver::{Answer, Received, Receiver};

/// The longest that a stop may take while somebody is being told: no try is waited for.
const SOON: Duration = Duration::from_secs(5);

/// Writes a configuration whose webhook is `webhook`.
fn configure(desk: &Desk, port: u16, cluster: &str, webhook: &str, mode: &str) {
    let config = format!(
        "stateDir: state\n\
         http: {{listen: \"127.0.0.1:{port}\"}}\n\
         reports: {{latest: latest, webhooks: {{ops: {webhook}}}}}\n\
         sources: {{specs: {{directory: {{path: specs}}, poll: 1s}}}}\n\
         clusters: {{only: {cluster}}}\n\
         syncs:\n  gateways:\n    source: specs\n    clusters: {{names: [only]}}\n    createNamespaces: true\n    \
           mode: {mode}\n    wait: {{enabled: false}}\n    schedule: {{interval: 10s, jitter: 0%}}\n",
    );
    desk.write("gatewright.yaml", &config);
}

/// A desk whose only cluster is a folder, so that every new spec is a change.
fn folder(port: u16, webhook: &str) -> Desk {
    let desk = Desk::empty("gatewright.yaml");
    configure(&desk, port, "{directory: {path: rendered}}", webhook, "apply");
    desk.write("specs/edge.yaml", &gateway("edge", 8101));
    desk
}

fn waits_for(daemon: &mut Daemon, number: f64) {
    let what = format!("{number} notifications that wait");
    daemon.until(&what, |daemon| daemon.metric("gatewright_notifications_waiting", &[]) == Some(number));
}

fn counts(daemon: &Daemon, result: &str) -> usize {
    let result = format!("result={result:?}");
    let number = daemon.metric("gatewright_notifications_total", &[r#"webhook="ops""#, &result]);
    number.map_or(0, |number| format!("{number:.0}").parse().expect("it is a number"))
}

/// Waits for the next round to end: a reload starts one at once.
fn has_a_round(daemon: &mut Daemon) {
    let before = daemon.rounds().len();
    daemon.signal("HUP");
    daemon.until("a round", |daemon| daemon.rounds().len() > before);
}

fn keys(received: &[Received]) -> Vec<&str> {
    received.iter().map(|received| received.header("idempotency-key")).collect()
}

/// A cluster in report mode, and who is told of it.
struct Told {
    server: ApiServer,
    desk: Desk,
    receiver: Receiver,
    daemon: Daemon,
    so_far: usize,
}

impl Told {
    /// Waits for one more notification, holds that the rounds after it bring none, and returns it.
    #[track_caller]
    fn is_told(&mut self, what: &str) -> Value {
        let (receiver, expected) = (&self.receiver, self.so_far + 1);
        self.daemon.until(what, |_| receiver.taken().len() >= expected);
        has_a_round(&mut self.daemon);
        has_a_round(&mut self.daemon);
        self.hears_nothing_more(expected);
        self.so_far = expected;
        self.receiver.taken().pop().expect("it has just come")
    }

    #[track_caller]
    fn hears_nothing_more(&mut self, expected: usize) {
        waits_for(&mut self.daemon, 0.0);
        let texts: Vec<Value> = self.receiver.taken().into_iter().map(|mut body| body["text"].take()).collect();
        assert_eq!(texts.len(), expected, "{texts:#?}");
    }

    fn latest(&self, extension: &str) -> String {
        self.desk.read(&format!("latest/gateways.only.{extension}"))
    }
}

#[test]
fn a_change_is_told_once_and_nothing_else_is() {
    let server = ApiServer::start();
    let (desk, port, receiver) = (Desk::empty("gatewright.yaml"), free_port(), Receiver::start());
    let cluster = format!("{{kubeconfig: {{path: {}}}}}", server.kubeconfig("admin").display());
    let webhook = format!("{{url: \"{}\"}}", receiver.url("/hook"));
    desk.write("specs/edge.yaml", &gateway("edge", 8101));
    configure(&desk, port, &cluster, "{url: \"http://127.0.0.1:1/\", syncs: []}", "apply");
    desk.run(&["sync"]).exits(0);
    configure(&desk, port, &cluster, &webhook, "report");
    desk.run(&["plan"]).exits(0);
    let daemon = Daemon::start(&desk, port, &[]);
    let mut told = Told { server, desk, receiver, daemon, so_far: 0 };
    told.daemon.until("the first round", |daemon| !daemon.rounds().is_empty());
    told.hears_nothing_more(0);

    drift_comes_and_goes(&mut told);
    another_revision_is_no_news(&mut told);
    a_cluster_is_lost_and_found(&mut told);
    a_source_is_lost_and_found(&mut told);
    a_sync_is_suspended_and_resumed(&mut told);
    told.daemon.stops_within(SOON);
}

fn drift_comes_and_goes(told: &mut Told) {
    meddle_with(&told.server, "edge");
    let came = told.is_told("word of the drift");
    obeys("notification-v1alpha1", &came);
    assert_eq!((&came["sync"], &came["mode"], &came["exitCode"]), (&json!("gateways"), &json!("compare"), &json!(2)));
    assert_eq!((&came["counts"], &came["states"]), (&json!({"different": 1}), &json!({"report": 1})));
    assert_eq!((&came["new"]["count"], &came["resolved"]["count"], &came["still"]), (&json!(1), &json!(0), &json!(0)));
    let new = &came["new"]["findings"][0];
    assert_eq!((&new["clusters"], &new["object"]["name"]), (&json!(["only"]), &json!("edge")));
    assert!(new["what"].as_str().is_some_and(|what| what.contains("targetPort")), "{new}");
    let text = came["text"].as_str().expect("it has a line for people");
    assert!(text.starts_with("gateways on cluster only: 1 of 1 unit on 1 of 1 cluster differ"), "{text}");
    assert!(text.ends_with("; 1 new, 0 still there, 0 resolved"), "{text}");
    let report = fs::read_to_string(came["report"].as_str().expect("it names the report")).expect("it is kept");
    // The history does not repeat what is as it should be.
    for report in [report, told.latest("json")] {
        let report: Value = serde_json::from_str(&report).expect("it is JSON");
        assert_eq!(report["finished"], came["time"], "the newest report is the one of which was told");
    }
    assert!(told.latest("txt").contains("targetPort: 1234 -> 8101"));
    let received = told.receiver.received().pop().expect("it has come");
    assert_eq!((received.method.as_str(), received.path.as_str()), ("POST", "/hook"));
    assert_eq!(received.header("content-type"), "application/json");
    assert_eq!(received.header("idempotency-key"), came["id"].as_str().expect("it has a name"));
    assert!(!received.text.contains("1234"), "a value is told: {}", received.text);

    let port = json!([{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 8101}]).to_string();
    told.server.kubectl_ok(&["patch", "service", "edge", "-n", "shop", "--type", "json", "-p", &port]);
    assert_eq!(service(&told.server, "edge", ".spec.ports[0].targetPort"), "8101");
    let went = told.is_told("word that the drift is gone");
    obeys("notification-v1alpha1", &went);
    assert_eq!((&went["new"]["count"], &went["resolved"]["count"]), (&json!(0), &json!(1)));
    assert_eq!(went["exitCode"], json!(0));
}

fn another_revision_is_no_news(told: &mut Told) {
    let before = told.latest("json");
    told.desk.write("specs/edge.yaml", &format!("{}# one line more\n", gateway("edge", 8101)));
    let desk = &told.desk;
    told.daemon.until("its report", |_| desk.read("latest/gateways.only.json") != before);
    has_a_round(&mut told.daemon);
    told.hears_nothing_more(told.so_far);
}

fn a_cluster_is_lost_and_found(told: &mut Told) {
    told.server.stop();
    let lost = told.is_told("word that the cluster is lost");
    assert_eq!((&lost["clusters"]["only"], &lost["exitCode"]), (&json!("unreachable"), &json!(4)));
    let warning = lost["warnings"][0].as_str().expect("it warns");
    assert!(warning.starts_with("unreachable gateways on only: "), "{warning}");
    assert!(lost["text"].as_str().is_some_and(|text| text.contains("unreachable: cluster only")), "{lost}");
    says_at_the_top(told, "unreachable");
    told.server.restart();
    let found = told.is_told("word that the cluster is back");
    assert_eq!((&found["exitCode"], &found["resolved"]["findings"][0]["kind"]), (&json!(0), &json!("cluster")));
}

fn a_source_is_lost_and_found(told: &mut Told) {
    let (there, away) = (told.desk.path("specs"), told.desk.path("away"));
    fs::rename(&there, &away).expect("a folder can be renamed");
    told.daemon.until("a poll that fails", |daemon| {
        daemon.metric("gatewright_source_polls_total", &[r#"result="failed""#]).is_some()
    });
    let lost = told.is_told("word that the source is lost");
    let warning = lost["warnings"][0].as_str().expect("it warns");
    assert!(warning.starts_with("stale source specs: "), "{warning}");
    assert_eq!(lost["new"]["findings"][0]["kind"], json!("source"));
    says_at_the_top(told, "stale");
    fs::rename(&away, &there).expect("a folder can be renamed");
    let found = told.is_told("word that the source is back");
    assert_eq!((&found["warnings"], &found["resolved"]["count"]), (&json!([]), &json!(1)));
}

fn a_sync_is_suspended_and_resumed(told: &mut Told) {
    told.desk.run(&["suspend", "gateways", "--reason", "freeze"]).exits(0);
    let (receiver, expected) = (&told.receiver, told.so_far + 1);
    told.daemon.until("word of the suspension", |_| receiver.taken().len() >= expected);
    let suspended = receiver.taken().pop().expect("it has just come");
    assert_eq!((&suspended["clusters"]["only"], &suspended["exitCode"]), (&json!("suspended"), &json!(3)));
    assert_eq!(suspended["mode"], json!("compare"));
    assert!(suspended["text"].as_str().is_some_and(|text| text.contains(": freeze; ")), "{suspended}");
    says_at_the_top(told, "suspended");
    told.so_far = expected;
    told.desk.run(&["resume", "gateways"]).exits(0);
    let resumed = told.is_told("word that it goes on");
    assert_eq!((&resumed["clusters"]["only"], &resumed["exitCode"]), (&json!("compared"), &json!(0)));
}

/// Every form of the last report begins with what is missing from the picture.
fn says_at_the_top(told: &Told, word: &str) {
    let text = told.latest("txt");
    let top: String = text.lines().take(6).collect();
    assert!(top.contains(if word == "stale" { "could not be read" } else { word }), "{text}");
    for format in ["markdown", "html", "junit"] {
        let shown = told.desk.run(&["report", "show", "gateways", "--format", format]).out;
        let objects = shown.find("Gateway shop/edge").unwrap_or(shown.len());
        assert!(shown[..objects].contains(word), "{word:?} is not at the top of {format}:\n{shown}");
    }
}

#[test]
fn a_receiver_that_is_down_delays_nothing_and_is_told_once_when_it_is_back() {
    let (port, hook) = (free_port(), free_port());
    let desk = folder(port, &format!("{{url: \"http://127.0.0.1:{hook}/hook\"}}"));
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("a try", |daemon| counts(daemon, "failed") > 0);
    desk.write("specs/inner.yaml", &gateway("inner", 8102));
    daemon.until("the next change", |_| desk.path("rendered/shop/service-inner.yaml").exists());
    waits_for(&mut daemon, 2.0);
    daemon.stops_within(SOON);

    // What could not be delivered outlives the process.
    let mut daemon = Daemon::start(&desk, port, &[]);
    waits_for(&mut daemon, 2.0);
    let receiver = Receiver::start_at(hook);
    daemon.until("both", |daemon| counts(daemon, "delivered") >= 2);
    waits_for(&mut daemon, 0.0);
    has_a_round(&mut daemon);
    let came = receiver.received();
    assert_eq!(came.len(), 2, "{came:?}");
    assert!(keys(&came).is_sorted() && keys(&came)[0] != keys(&came)[1], "the older one comes first");
    assert_eq!(came.iter().map(|it| it.body()["counts"]["create"].clone()).collect::<Vec<_>>(), [json!(5), json!(4)]);
    daemon.stops_within(SOON);
}

#[test]
fn what_fails_is_tried_again_under_the_same_name_until_it_is_taken() {
    let (port, receiver) = (free_port(), Receiver::start());
    let desk = folder(port, &format!("{{url: \"{}\", timeout: 1s}}", receiver.url("/hook")));
    let busy = Answer::With(429, "retry-after", "1".to_owned());
    receiver.answers(&[Answer::Status(500), busy, Answer::Silence]);
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("the delivery", |daemon| counts(daemon, "delivered") > 0);
    let came = receiver.received();
    assert_eq!(came.iter().map(|it| it.status).collect::<Vec<_>>(), [Some(500), Some(429), None, Some(204)]);
    assert!(keys(&came).iter().all(|key| *key == keys(&came)[0]), "{came:?}");
    assert!(came.iter().all(|it| it.text == came[0].text), "{came:?}");
    assert_eq!(counts(&daemon, "failed"), 3);
    daemon.stops_within(SOON);
}

#[test]
fn what_cannot_be_taken_is_given_up_and_said() {
    let (port, receiver, other) = (free_port(), Receiver::start(), Receiver::start());
    let desk = folder(port, &format!("{{url: \"{}\", retryFor: 1ms}}", receiver.url("/hook")));
    receiver.answers(&[Answer::Status(404), Answer::With(307, "location", other.url("/")), Answer::Status(503)]);
    let mut daemon = Daemon::start(&desk, port, &[]);
    for (number, name) in [(1, "a"), (2, "b"), (3, "c")] {
        daemon.until(&format!("{number} given up"), |daemon| counts(daemon, "given-up") == number);
        desk.write(&format!("specs/{name}.yaml"), &gateway(name, 8200));
    }
    daemon.until("the one that is taken", |daemon| counts(daemon, "delivered") == 1);
    let errors: Vec<String> =
        daemon.log().iter().filter(|line| line["level"] == "ERROR").map(Value::to_string).collect();
    for why in ["answers 404 Not Found", "redirects are not followed", "answers 503 Service Unavailable"] {
        assert!(errors.iter().any(|error| error.contains(why)), "{why}: {errors:#?}");
    }
    assert!(other.received().is_empty(), "a redirect was followed");
    daemon.stops_within(SOON);
}

#[test]
fn a_receiver_that_never_answers_holds_up_no_round_and_no_stop() {
    let (port, receiver) = (free_port(), Receiver::start());
    let desk = folder(port, &format!("{{url: \"{}\", timeout: 10m}}", receiver.url("/hook")));
    receiver.always(Answer::Silence);
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("a try", |_| !receiver.received().is_empty());
    desk.write("specs/inner.yaml", &gateway("inner", 8102));
    daemon.until("the next change", |_| desk.path("rendered/shop/service-inner.yaml").exists());
    has_a_round(&mut daemon);
    daemon.stops_within(SOON);
    let left = fs::read_dir(desk.path("state/webhooks/ops")).expect("it is there").count();
    assert_eq!(left, 3, "two notifications and the lock");
}

#[test]
fn what_waits_is_bounded_and_what_makes_room_is_counted() {
    const MOST: usize = 100;
    let (port, hook) = (free_port(), free_port());
    let desk = folder(port, &format!("{{url: \"http://127.0.0.1:{hook}/hook\", retryFor: 10h}}"));
    let mut daemon = Daemon::start(&desk, port, &[]);
    waits_for(&mut daemon, 1.0);
    assert_eq!(counts(&daemon, "dropped"), 0);
    daemon.stops_within(SOON);

    // So many wait that there is no place for another one.
    let queue = desk.path("state/webhooks/ops");
    let mut files = fs::read_dir(&queue).expect("it is there").filter_map(|entry| Some(entry.ok()?.path()));
    let first = files.find(|file| file.extension().is_some_and(|it| it == "json")).expect("one waits");
    let name = first.file_stem().and_then(|name| name.to_str()).expect("its name is text");
    for number in 1..MOST {
        fs::copy(&first, queue.join(format!("{name}-{number}.json"))).expect("it can be copied");
    }
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("a try", |daemon| counts(daemon, "failed") > 0);
    desk.write("specs/inner.yaml", &gateway("inner", 8102));
    daemon.until("the next change", |_| desk.path("rendered/shop/service-inner.yaml").exists());
    daemon.until("word of what made room", |daemon| counts(daemon, "dropped") == 1);
    has_a_round(&mut daemon);
    daemon.stops_within(SOON);
}

#[test]
fn no_secret_of_a_webhook_stands_in_a_log_or_a_report() {
    const SECRETS: [&str; 3] = ["hunter2", "s3same", "Tr0ub4dor"];
    let (port, receiver) = (free_port(), Receiver::start());
    let desk = folder(port, "{urlFile: url, tokenFile: token, retryFor: 1h, timeout: 5s}");
    desk.write("url", &format!("{}\n", receiver.url("/hunter2/hook?code=s3same")));
    desk.write("token", "Tr0ub4dor\n");
    receiver.answers(&[Answer::Status(500)]);
    let mut daemon = Daemon::start(&desk, port, &[("GATEWRIGHT_LOG_LEVEL", "trace".as_ref())]);
    daemon.until("the delivery", |daemon| counts(daemon, "delivered") == 1);
    let came = receiver.received();
    assert_eq!(came[1].path, "/hunter2/hook?code=s3same");
    assert_eq!(came[1].header("authorization"), "Bearer Tr0ub4dor");
    // Nobody listens there any more, and the file holds no address for a while.
    drop(receiver);
    desk.write("specs/inner.yaml", &gateway("inner", 8102));
    daemon.until("a try", |daemon| counts(daemon, "failed") > 1);
    desk.write("url", "hunter2 s3same\n");
    let before = counts(&daemon, "failed");
    daemon.until("another one", |daemon| counts(daemon, "failed") > before);
    daemon.stops_within(SOON);
    let log = fs::read_to_string(desk.path("log")).expect("there is a log");
    assert!(log.contains("notification not delivered") && log.contains("which `urlFile` names"), "{log}");
    let mut all = vec![log, came[1].text.clone(), desk.run(&["config", "show"]).exits(0).out];
    all.push(desk.run(&["sync"]).exits(0).complains("webhook \"ops\"").err);
    all.extend(
        fs::read_dir(desk.path("latest"))
            .expect("it is there")
            .map(|entry| fs::read_to_string(entry.expect("it is there").path()).expect("it can be read")),
    );
    for secret in SECRETS {
        assert!(all.iter().all(|text| !text.contains(secret)), "{secret} is told");
    }
}
