//! Gates of rollouts: a change goes on once others agree that it is good, and back where that is set.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::cluster::binaries::prometheus;
use crate::cluster::process::{Folder, Process, free_port};
use crate::errors::{desk, gateway};
use crate::program::Desk;
use crate::support::receiver::{Answer, Receiver};

const ALL: [&str; 3] = ["eu", "lab", "us"];
const FIRST: &str = "podTemplate: {extraAnnotations: {edition: first}}";

/// Three directories in two waves, of which `lab` is the first, with gates, and one Gateway.
struct Fleet {
    desk: Desk,
}

fn fleet(rollout: &str) -> Fleet {
    let clusters = ALL.map(|name| (name, format!("{{directory: {{path: out/{name}}}, labels: {{check: on-{name}}}}}")));
    let desk = desk("edge", &clusters);
    let waves = "waves: [{clusters: {names: [lab]}}, {clusters: {names: [eu, us]}}]";
    desk.replace(
        "gatewright.yaml",
        "wait: {enabled: false}",
        &format!("wait: {{timeout: 1s}}\n    rollout:\n      {waves}\n      {rollout}"),
    );
    let fleet = Fleet { desk };
    fleet.wants(FIRST);
    fleet
}

impl Fleet {
    fn wants(&self, kube: &str) {
        let parameters = format!(
            "---\napiVersion: gateway.kgateway.dev/v1alpha1\nkind: GatewayParameters\n\
             metadata: {{name: p, namespace: shop}}\nspec: {{kube: {{{kube}}}}}\n"
        );
        let reference =
            "  infrastructure: {parametersRef: {group: gateway.kgateway.dev, kind: GatewayParameters, name: p}}\n";
        self.desk.write("specs/a.yaml", &format!("{}{reference}{parameters}", gateway("shop", "a", 8080)));
    }

    fn edition(&self, edition: &str) {
        self.wants(&FIRST.replace("first", edition));
    }

    /// The clusters that have an edition.
    fn with(&self, edition: &str) -> Vec<&'static str> {
        let has = |name: &&str| self.desk.read(&format!("out/{name}/shop/deployment-a.yaml")).contains(edition);
        ALL.into_iter().filter(has).collect()
    }
}

#[test]
fn a_change_goes_on_once_a_check_agrees() {
    let receiver = Receiver::start();
    let url = receiver.url("/check/{{ cluster.labels.check }}?of={{ cluster.name }}");
    let fleet = fleet(&format!("gates: [{{name: smoke, url: '{url}'}}]"));
    fleet.desk.run(&["sync"]).exits(0);
    assert!(receiver.received().is_empty(), "it was asked about what has replaced nothing");

    receiver.always(Answer::Status(503));
    fleet.edition("second");
    let why = "gate smoke: it answers 503 Service Unavailable";
    let run = fleet.desk.run(&["sync"]).exits(1).says("held by guard rollout-halted: ").says(why);
    assert_eq!(fleet.with("second"), ["lab"]);
    let asked = receiver.received();
    assert!(asked.len() > 1, "it was asked only once");
    assert!(asked.iter().all(|it| it.method == "GET" && it.path == "/check/on-lab?of=lab"), "{asked:?}");
    assert!(run.out.contains("Gateway shop/a is unhealthy") || run.out.contains(why), "{}", run.out);
    // It is asked in each round until it agrees, and is no matter of a plan.
    let number = receiver.received().len();
    fleet.desk.run(&["plan"]).exits(3);
    assert_eq!(receiver.received().len(), number, "a plan has asked");
    fleet.desk.run(&["sync"]).exits(1).says(why);
    assert_eq!(receiver.received().len(), number + 1, "what has failed is waited for");
    fleet
        .desk
        .run(&["rollout", "status"])
        .exits(0)
        .says(&format!("    not healthy on cluster lab: Gateway shop/a: {why}"));

    receiver.always(Answer::Status(204));
    fleet.desk.run(&["sync"]).exits(0);
    assert_eq!(fleet.with("second"), ALL);
    // What is good is not asked about any more.
    let number = receiver.received().len();
    fleet.desk.run(&["sync"]).exits(0);
    assert_eq!(receiver.received().len(), number);

    // Whoever waits for nothing does not take it for good.
    fleet.desk.replace("gatewright.yaml", "name: smoke", "name: smoke, for: 1s");
    fleet.edition("third");
    fleet.desk.run(&["sync", "--no-wait"]).exits(3);
    assert_eq!(fleet.with("third"), ["lab"]);
    fleet.desk.run(&["sync"]).exits(0);
    assert_eq!(fleet.with("third"), ALL);
}

#[test]
fn a_wave_goes_back_when_a_gate_refuses_it_and_is_not_tried_again() {
    let receiver = Receiver::start();
    let url = receiver.url("/{{ cluster.name }}");
    let fleet = fleet(&format!(
        "rollbackOnFailure: true\n      gates: [{{name: smoke, clusters: {{names: [us]}}, url: '{url}'}}]"
    ));
    let desk = &fleet.desk;
    desk.run(&["sync"]).exits(0);
    receiver.always(Answer::Status(500));
    fleet.edition("second");
    let why = "gate smoke: it answers 500 Internal Server Error";
    let run = desk.run(&["sync"]).exits(1).says(why).says("taken back to ");
    // All of the second wave, and nobody of the first, where it is good.
    assert_eq!((fleet.with("second"), fleet.with("first")), (vec!["lab"], vec!["eu", "us"]), "{}", run.out);
    desk.run(&["rollout", "status"])
        .exits(0)
        .says("    taken back on cluster us: ")
        .says("    taken back on cluster eu: on cluster us: ");

    // Neither the next round nor another commit tries it again, and a plan says so.
    let asked = receiver.received().len();
    let held = "was not healthy there, and was taken back: ";
    desk.run(&["sync"]).exits(3).says(held);
    desk.run(&["plan"]).exits(3).says(held);
    desk.write("specs/b.yaml", &gateway("shop", "b", 8081));
    desk.run(&["sync"]).exits(3).says(held);
    assert!(ALL.iter().all(|name| desk.path(&format!("out/{name}/shop/deployment-b.yaml")).exists()));
    assert_eq!((fleet.with("second"), receiver.received().len()), (vec!["lab"], asked));

    // Back to what was there before, and then the same once more: it is a rollout like any other.
    fleet.edition("first");
    desk.run(&["sync"]).exits(0);
    receiver.always(Answer::Status(200));
    fleet.edition("second");
    desk.run(&["sync"]).exits(0);
    assert_eq!(fleet.with("second"), ALL);

    // What a person lets go stays, however it is.
    receiver.always(Answer::Status(500));
    fleet.edition("third");
    desk.run(&["sync"]).exits(1);
    assert_eq!(fleet.with("third"), ["lab"]);
    let plan = desk.run(&["plan"]).exits(3).says("on 2 of 3 clusters (eu, us)").out;
    let line = plan.lines().find(|line| line.contains("gatewright approve ")).expect("it was said");
    let token = line.split_whitespace().nth(2).expect("it is behind the command");
    desk.run(&["approve", token]).exits(0);
    desk.run(&["sync"]).exits(1).says(why);
    assert_eq!(fleet.with("third"), ALL);
    desk.run(&["sync"]).exits(1).says(why);
    assert_eq!(fleet.with("third"), ALL);
}

/// Three directories in two waves, of which the gate refuses whatever comes to `lab`; `second` was refused there.
fn refused() -> (Fleet, Receiver) {
    let receiver = Receiver::start();
    let fleet = fleet(&format!(
        "rollbackOnFailure: true\n      gates: [{{name: smoke, clusters: {{names: [lab]}}, url: '{}'}}]",
        receiver.url("/")
    ));
    fleet.desk.run(&["sync"]).exits(0);
    receiver.always(Answer::Status(500));
    fleet.edition("second");
    fleet.desk.run(&["sync"]).exits(1).says("taken back to ");
    (fleet, receiver)
}

#[test]
fn what_was_taken_back_does_not_come_again_because_somebody_else_changes_something() {
    let (fleet, receiver) = refused();
    receiver.always(Answer::Status(200));
    for file in ["service-a", "deployment-a", "configmap-a"] {
        let path = format!("out/lab/shop/{file}.yaml");
        let text = fleet.desk.read(&path);
        fleet.desk.write(&path, &text.replace("app.kubernetes.io/managed-by: ", "app.kubernetes.io/managed-by: not-"));
        fleet.desk.run(&["sync"]).exits(3).says("and was taken back");
        fs::remove_file(fleet.desk.path(&path)).expect("it is there");
        fleet.desk.run(&["sync"]).exits(3).says("and was taken back");
        fleet.desk.write(&path, &text);
    }
    assert_eq!(fleet.with("second"), [""; 0]);
}

#[test]
fn what_was_good_is_not_taken_back_because_somebody_else_changes_it() {
    let (fleet, receiver) = refused();
    receiver.always(Answer::Status(200));
    fleet.edition("third");
    fleet.desk.run(&["sync"]).exits(0);
    // The gate says no just when it is put right again, also together with a commit about something else.
    receiver.always(Answer::Status(500));
    for more in [None, Some("b")] {
        if let Some(name) = more {
            fleet.desk.write("specs/b.yaml", &gateway("shop", name, 8081));
        }
        let path = "out/lab/shop/deployment-a.yaml";
        fleet.desk.write(path, &fleet.desk.read(path).replace("edition: third", "edition: mine"));
        let run = fleet.desk.run(&["sync"]).exits(1).says("gate smoke");
        assert_eq!(fleet.with("third"), ALL, "{}", run.out);
        fleet.desk.run(&["sync"]).exits(1);
        assert_eq!(fleet.with("third"), ALL);
    }
}

#[test]
fn whatever_is_wanted_by_then_is_not_taken_back() {
    let receiver = Receiver::start();
    let url = receiver.url("/");
    let fleet = fleet(&format!(
        "rollbackOnFailure: true\n      gates: [{{name: smoke, clusters: {{names: [us]}}, url: '{url}'}}]"
    ));
    let desk = &fleet.desk;
    let fails_on_us = |edition: &str| {
        receiver.always(Answer::Status(200));
        fleet.edition("base");
        desk.run(&["sync"]).exits(0);
        receiver.always(Answer::Status(500));
        fleet.edition(edition);
        desk.run(&["sync", "--cluster", "lab"]).exits(0);
        desk.run(&["sync", "--cluster", "eu"]).exits(0);
        desk.run(&["sync", "--cluster", "us"]).exits(1).says("taken back to ");
        assert_eq!(fleet.with(edition), ["eu", "lab"]);
    };
    // It is eu's turn to go back, once nobody has stopped rollouts, also after a commit about something else.
    fails_on_us("zeroth");
    desk.run(&["rollout", "pause", "edge"]).exits(0);
    desk.run(&["sync"]);
    assert_eq!(fleet.with("zeroth"), ["eu", "lab"]);
    desk.run(&["rollout", "resume", "edge"]).exits(0);
    desk.write("specs/c.yaml", &gateway("shop", "c", 8083));
    desk.run(&["sync"]).exits(1).says("on cluster us: ");
    assert_eq!((fleet.with("zeroth"), fleet.with("base")), (vec!["lab"], vec!["eu", "us"]));
    // But not if by then something else is wanted everywhere.
    fails_on_us("second");
    fleet.edition("third");
    desk.run(&["sync", "--skip-waves", "--reason", "fix"]).exits(0);
    desk.run(&["sync"]).exits(0);
    assert_eq!(fleet.with("third"), ALL);
    desk.run(&["rollout", "status"]).exits(0).says("nothing is under way");
    // Or a part of it, which replaces no pods.
    fails_on_us("fourth");
    fleet.wants(&format!("{}, service: {{extraAnnotations: {{team: x}}}}", FIRST.replace("first", "fourth")));
    receiver.always(Answer::Status(200));
    desk.run(&["sync"]).exits(0);
    assert_eq!(fleet.with("fourth"), ALL);
    // Or nothing at all.
    fails_on_us("sixth");
    fs::remove_file(desk.path("specs/a.yaml")).expect("it is there");
    desk.write("specs/b.yaml", &gateway("shop", "b", 8081));
    desk.run(&["sync", "--cluster", "eu"]).exits(0).says("objects deleted");
    assert!(!desk.path("out/eu/shop/deployment-a.yaml").exists(), "it was made again");
}

#[test]
fn to_agree_to_a_beginning_is_not_to_agree_to_whatever_becomes_of_it() {
    let (fleet, receiver) = refused();
    let desk = &fleet.desk;
    receiver.always(Answer::Status(200));
    fleet.edition("third");
    desk.run(&["sync"]).exits(0);
    receiver.always(Answer::Status(500));
    desk.replace("gatewright.yaml", "[{clusters: {names: [lab]}}", "[{clusters: {names: [lab]}, approval: true}");
    fleet.edition("fourth");
    let held = desk.run(&["sync"]).exits(3).says("held by guard rollout-approval").out;
    let (_, approval) = held.split_once("held by guard rollout-approval").expect("it was said");
    let line = approval.lines().find(|line| line.contains("gatewright approve ")).expect("it was said");
    desk.run(&["approve", line.split_whitespace().nth(2).expect("it is behind the command")]).exits(0);
    desk.run(&["sync"]).exits(1).says("taken back to ");
    assert_eq!(fleet.with("third"), ALL);
}

/// A real one that looks at a target every second, as that of cluster `lab`.
fn looks_at(target: &str, folder: &Path) -> (Process, u16) {
    let config = format!(
        "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\nscrape_configs:\n\
         - {{job_name: it, static_configs: [{{targets: ['{target}'], labels: {{cluster: lab}}}}]}}\n"
    );
    fs::write(folder.join("prometheus.yml"), config).expect("the folder can be written");
    let port = free_port();
    let option = |name: &str, value: String| format!("--{name}={value}");
    let arguments = [
        option("config.file", folder.join("prometheus.yml").display().to_string()),
        option("storage.tsdb.path", folder.join("data").display().to_string()),
        option("web.listen-address", format!("127.0.0.1:{port}")),
    ];
    let mut process = Process::start(prometheus(), &arguments, folder);
    process.wait_until("answer", Duration::from_mins(1), || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    (process, port)
}

#[test]
fn prometheus_is_asked_about_the_cluster() {
    let (target, folder) = (Receiver::start(), Folder::new());
    target.always(Answer::Status(500));
    let address = target.url("");
    let (mut process, port) = looks_at(address.trim_start_matches("http://"), folder.path());
    process.wait_until("look", Duration::from_mins(1), || !target.received().is_empty());
    let gate = |query: &str, more: &str| {
        format!(
            "rollbackOnFailure: true\n      gates:\n        - {{name: up, clusters: {{names: [lab]}}, url: 'http://127.0.0.1:{port}/', \
             prometheus: {{query: '{query}', {more}}}}}\n"
        )
    };
    let query = "min_over_time(up{cluster=\"{{ cluster.name }}\"}[1s])";
    let fleet = fleet(&gate(query, "min: 1"));
    let desk = &fleet.desk;
    desk.run(&["sync"]).exits(0);
    fleet.edition("second");
    desk.run(&["sync"]).exits(1).says("gate up: ").says("; taken back to ");
    assert_eq!(fleet.with("first"), ALL);
    // It recovers while somebody waits, and has to stay so.
    target.always(Answer::Status(200));
    desk.replace("gatewright.yaml", "timeout: 1s", "timeout: 90s");
    desk.replace("gatewright.yaml", "name: up,", "name: up, for: 2s,");
    fleet.edition("third");
    desk.run(&["sync"]).exits(0);
    assert_eq!(fleet.with("third"), ALL);

    // A query that is none, or finds nothing, agrees to nothing.
    desk.replace("gatewright.yaml", "timeout: 90s", "timeout: 1s");
    for (query, why) in
        [("up{", "gate up: the query fails: "), ("up{cluster=\"nobody\"}", "gate up: the query returns nothing")]
    {
        desk.replace(
            "gatewright.yaml",
            "query: 'min_over_time(up{cluster=\"{{ cluster.name }}\"}[1s])'",
            &format!("query: '{query}'"),
        );
        fleet.edition("fourth");
        desk.run(&["sync"]).exits(1).says(why);
        assert_eq!(fleet.with("third"), ALL);
        desk.replace(
            "gatewright.yaml",
            &format!("query: '{query}'"),
            "query: 'min_over_time(up{cluster=\"{{ cluster.name }}\"}[1s])'",
        );
        fleet.edition("third");
        desk.run(&["sync"]).exits(0);
    }
}

#[test]
fn a_gate_that_could_not_be_asked_is_a_mistake_in_the_configuration() {
    let check = |gate: &str, complaint: &str| {
        let fleet = fleet(&format!("gates: [{gate}]"));
        fleet.desk.run(&["plan"]).exits(64).complains(complaint);
    };
    check(
        "{name: a, url: 'https://c/{{ cluster.labels.zone }}'}",
        "on cluster \"eu\" {{ cluster.labels.zone }} has no value",
    );
    check("{name: a, url: 'c/d'}", "the address is not of the form https://HOST/PATH");
    check("{name: a, url: 'http://c/', tokenFile: t}", "and https with a token");
    check("{name: a, url: 'https://c/', prometheus: {query: up}}", "nothing says what is good: set min, max or both");
    check("{name: a, url: 'https://c/', prometheus: {query: up, min: 2, max: 1}}", "min is above max");
    check("{name: a, url: 'https://c/'}, {name: a, url: 'https://d/'}", "another gate has this name");
    check("{name: a, url: 'https://c/', querry: up}", "querry");
    let fleet = fleet("rollbackOnFailure: true");
    fleet.desk.replace("gatewright.yaml", "wait: {timeout: 1s}", "wait: {enabled: false}");
    fleet.desk.run(&["plan"]).exits(64).complains("nobody waits for that");
}
