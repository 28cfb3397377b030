//! The state that rounds of a fleet leave behind, written as the daemon keeps it, for a daemon that has no rounds of its own.

use std::net::TcpListener;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::browser::fleet::HOSTILE;
use crate::cluster::process::free_port;
use crate::daemon::Daemon;
use crate::program::Desk;

const REVISION: &str = "8f3c1d2a90b4e1f7a6b5c4d3e2f1a0b9c8d7e6f5";
const TEAMS: [(&str, &str); 6] = [
    ("checkout", "storefront"),
    ("search", "queries"),
    ("payments", "card"),
    ("catalog", "browse"),
    ("accounts", "login"),
    ("shipping", "labels"),
];
const KINDS: [(&str, &str); 4] = [("", "ServiceAccount"), ("", "ConfigMap"), ("", "Service"), ("apps", "Deployment")];

/// A daemon over a fleet that stands still.
pub(super) struct Fleet {
    pub(super) desk: Desk,
    pub(super) daemon: Daemon,
    pub(super) port: u16,
    /// The server of the source, which takes connections and says nothing: so no round ever begins.
    _silent: TcpListener,
}

impl Fleet {
    /// Starts a daemon for these clusters, over what `write` leaves behind.
    pub(super) fn start(clusters: &[String], write: impl FnOnce(&Desk)) -> Self {
        Self::start_with(clusters, "", write)
    }

    /// Starts one with more settings of the server.
    pub(super) fn start_with(clusters: &[String], http: &str, write: impl FnOnce(&Desk)) -> Self {
        let (desk, port) = (Desk::empty("gatewright.yaml"), free_port());
        let silent = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let source = format!("{{git: {{url: \"http://{}/a.git\"}}}}", silent.local_addr().expect("it has an address"));
        let mut text = format!(
            "stateDir: state\nhttp: {{listen: \"127.0.0.1:{port}\"{http}}}\nsources: {{platform: {source}, models: {source}}}\nclusters:\n"
        );
        for name in clusters {
            let stage = if name.ends_with('2') { "canary" } else { "prod" };
            let labels = format!("{{region: {}, stage: {stage}}}", &name[..2]);
            let settings = format!("{{directory: {{path: out/{name}}}, labels: {labels}}}");
            text += &["  ", name, ": ", &settings, "\n"].concat();
        }
        text += "syncs:
  gateways:
    source: platform
    clusters: {matchLabels: {}}
    rollout:
      waves:
        - {clusters: {matchLabels: {stage: canary}}, soak: 30m}
        - {clusters: {matchLabels: {region: eu}}, approval: true}
  inference: {source: models, clusters: {matchLabels: {stage: prod}}}
  policies: {source: platform, mode: report, clusters: {matchLabels: {region: eu}}}
";
        desk.write("gatewright.yaml", &text);
        write(&desk);
        let mut daemon = Daemon::start(&desk, port, &[]);
        daemon.until("it is ready", Daemon::is_ready);
        Self { desk, daemon, port, _silent: silent }
    }

    /// The address of a view.
    pub(super) fn view(&self, view: &str) -> String {
        format!("http://127.0.0.1:{}/dashboard/#/{view}", self.port)
    }
}

/// A time before now.
#[expect(clippy::disallowed_methods, reason = "the page says how long ago something was")]
fn ago(minutes: i64) -> String {
    (Timestamp::now() - SignedDuration::from_mins(minutes)).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn id(group: &str, kind: &str, namespace: &str, name: &str) -> Value {
    json!({"group": group, "kind": kind, "namespace": namespace, "name": name})
}

fn gateway(number: usize) -> Value {
    let (namespace, name) = TEAMS[number % TEAMS.len()];
    let name = if number < TEAMS.len() { name.to_owned() } else { format!("{name}-{number}") };
    id("gateway.networking.k8s.io", "Gateway", namespace, &name)
}

fn object(number: usize, (group, kind): (&str, &str)) -> Value {
    let mut object = gateway(number);
    (object["group"], object["kind"]) = (json!(group), json!(kind));
    object
}

/// A cluster with so many units, on which all is as it should be.
pub(super) fn quiet(units: usize) -> Value {
    let unit = |number: usize| {
        let (addresses, pods) = (json!([format!("10.4.0.{}", number + 10)]), json!({"ready": 2, "wanted": 2}));
        json!({"unit": gateway(number), "state": "current", "addresses": addresses, "ports": [80, 443], "pods": pods})
    };
    let steps = (0..units).flat_map(|number| {
        let step = move |kind: &(&str, &str)| json!({"unit": gateway(number), "id": object(number, *kind), "action": "keep", "differences": []});
        KINDS.iter().map(step)
    });
    json!({
        "state": "done", "steps": steps.collect::<Vec<_>>(), "refusals": [], "holds": [],
        "units": (0..units).map(unit).collect::<Vec<_>>(),
    })
}

/// Leaves a report behind, as the last one.
pub(super) fn keep(desk: &Desk, (sync, cluster): (&str, &str), found: &Value, minutes: i64) {
    let report = report((sync, cluster), found, minutes);
    desk.write(&format!("state/status/{sync}/{cluster}.json"), &json!({"digest": "", "report": report}).to_string());
    let asked: Vec<&Value> = found["holds"].as_array().into_iter().flatten().collect();
    if !asked.is_empty() {
        desk.write(&format!("state/asked/{sync}/{cluster}.json"), &json!(asked).to_string());
    }
}

fn report((sync, cluster): (&str, &str), found: &Value, minutes: i64) -> Value {
    json!({
        "schema": "gatewright.dev/report/v1alpha1", "sync": sync, "source": "platform", "revision": REVISION,
        "mode": if sync == "policies" { "compare" } else { "apply" }, "started": ago(minutes), "finished": ago(minutes),
        "problems": [], "unclaimed": [], "clusters": {cluster: found},
    })
}

/// The clusters of the small fleet.
pub(super) fn names() -> Vec<String> {
    let names =
        "ap-south-1 eu-central-1 eu-central-2 eu-west-1 eu-west-2 sa-east-1 us-east-1 us-east-2 us-west-1 us-west-2";
    names.split(' ').map(str::to_owned).collect()
}

fn rests(desk: &Desk, names: &[String], units: usize) {
    for (number, name) in (0..).zip(names) {
        keep(desk, ("gateways", name), &quiet(units), number % 7 + 1);
        if !name.ends_with('2') && name != "us-west-1" {
            keep(desk, ("inference", name), &quiet(3), number % 5 + 2);
        }
        if name.starts_with("eu") {
            keep(desk, ("policies", name), &quiet(units), 4);
        }
    }
}

/// An ordinary day: one cluster cannot be reached, a guard holds two, a rollout waits for a person, one unit is not healthy,
/// and somebody has edited something.
pub(super) fn ordinary(desk: &Desk) {
    rests(desk, &names(), 6);
    let mut lost = quiet(0);
    (lost["state"], lost["since"]) = (json!("unreachable"), json!(ago(300)));
    lost["error"] =
        json!({"message": "no answer from https://10.2.0.10:6443 within 10s", "hint": "is the cluster up?"});
    keep(desk, ("gateways", "us-east-2"), &lost, 2);
    let mut sick = quiet(3);
    sick["units"][1]["state"] = json!("unhealthy");
    sick["units"][1]["pods"]["ready"] = json!(1);
    sick["units"][1]["since"] = json!(ago(48));
    sick["units"][1]["message"] =
        json!("Deployment search/queries: 1 of 2 pods ready, the newest waits: ImagePullBackOff");
    keep(desk, ("inference", "eu-west-1"), &sick, 3);
    for name in ["eu-central-1", "eu-west-1"] {
        let mut held = quiet(6);
        held["state"] = json!("held");
        held["holds"] = json!([hold(&(0..4).map(|kind| ("prune", object(2, KINDS[kind]))).collect::<Vec<_>>())]);
        keep(desk, ("gateways", name), &held, 3);
    }
    let mut waits = quiet(6);
    let mut wave = hold(&[("update", object(0, KINDS[3]))]);
    (wave["guard"], wave["unit"], wave["since"]) = (json!("rollout-approval"), gateway(0), json!(ago(20)));
    (wave["message"], wave["hint"]) =
        (json!("wave 2 waits for a person"), json!("look at the first wave, then approve it"));
    (wave["token"], wave["fleetToken"]) = (json!("9hd2-k7wm-3xqt"), json!("zq4t-rp8w-nc2m"));
    (waits["holds"], waits["units"][0]["state"]) = (json!([wave]), json!("held"));
    keep(desk, ("gateways", "eu-central-2"), &waits, 5);
    keep(desk, ("policies", "eu-west-2"), &edited(), 4);
    rollout(desk);
    for (number, name) in (0..).zip(names()) {
        let mut round = report(("gateways", &name), &updated(), 30 * number + 20);
        let time = round["started"].as_str().unwrap_or_default().replace(['-', ':'], "").replace('Z', ".000Z");
        let run = format!("{time}-gateways.{name}");
        round["run"] = json!(run);
        desk.write(&format!("state/reports/{run}.json"), &round.to_string());
    }
}

fn hold(steps: &[(&str, Value)]) -> Value {
    let steps: Vec<Value> = steps.iter().map(|(action, id)| json!({"action": action, "id": id})).collect();
    json!({
        "guard": "max-delete", "message": "4 of 24 objects would be deleted, and 10 % may be", "since": ago(125),
        "hint": "see what goes with `gatewright plan`; if it is meant, approve it", "token": "k7wm-3xq9-hd2t",
        "fleetToken": "p4tr-8wnc-2mzq", "steps": steps,
    })
}

fn difference() -> Value {
    let managers = json!([{"name": "kubectl-edit", "time": ago(540)}]);
    json!({"path": "spec.replicas", "before": 5, "after": 2, "managers": managers})
}

fn edited() -> Value {
    let mut found = quiet(6);
    found["state"] = json!("compared");
    for (step, path) in [(1, "data.bootstrap"), (3, "spec.replicas")] {
        let mut differs = difference();
        differs["path"] = json!(path);
        if step == 1 {
            (differs["before"], differs["after"]) =
                (json!("port: 9901\nlog: debug\n"), json!("port: 9901\nlog: info\n"));
        }
        found["steps"][step]["action"] = json!("different");
        found["steps"][step]["differences"] = json!([differs]);
        found["steps"][step]["since"] = json!(ago(540));
    }
    found["units"][0]["state"] = json!("different");
    found
}

fn updated() -> Value {
    let mut found = quiet(0);
    let step = json!({"unit": gateway(0), "id": object(0, KINDS[3]), "action": "update", "differences": [difference()], "outcome": {"result": "done"}});
    found["steps"] = json!([step]);
    found
}

fn rollout(desk: &Desk) {
    let member = |stage: Value| json!({"stage": stage, "digest": "d", "since": ago(30)});
    let members = json!({
        "eu-central-2": member(json!("healthy")), "eu-west-2": member(json!("healthy")), "us-east-2": member(json!("going")),
        "us-west-2": member(json!({"halted": "Deployment checkout/storefront: 1 of 2 pods ready"})),
    });
    let wants = json!({"eu-central-1": "d", "eu-west-1": "d"});
    let unit = json!({"unit": gateway(0), "target": "t", "revision": REVISION, "since": ago(40), "members": members, "wants": wants});
    desk.write("state/rollouts/gateways.json", &json!({"units": [unit]}).to_string());
}

/// A large fleet, with a few clusters on which something is wrong.
pub(super) fn large(desk: &Desk, names: &[String], units: usize) {
    rests(desk, names, units);
    for (number, name) in (0..).zip(names).filter(|(number, _)| number % 97 == 0) {
        let mut lost = quiet(0);
        lost["state"] = json!("unreachable");
        lost["error"] = json!({"message": format!("cluster {number} does not answer")});
        keep(desk, ("gateways", name), &lost, 2);
    }
}

/// Everything that others may name or say, in a form that would do harm if it were read as HTML.
pub(super) fn hostile(desk: &Desk) {
    rests(desk, &names(), 2);
    let mut found = quiet(5);
    for (number, text) in HOSTILE.iter().enumerate() {
        let unit = id("gateway.networking.k8s.io", "Gateway", text, text);
        found["units"][number]["unit"] = unit.clone();
        found["units"][number]["message"] = json!(text);
        found["units"][number]["state"] = json!("failed");
        found["units"][number]["addresses"] = json!([text]);
        found["steps"][number]["unit"] = unit.clone();
        found["steps"][number]["id"] = unit;
        found["steps"][number]["action"] = json!("update");
        found["steps"][number]["note"] = json!(text);
        found["steps"][number]["differences"] =
            json!([{"path": text, "before": text, "after": text, "managers": [{"name": text}]}]);
    }
    let mut held = hold(&[(HOSTILE[0], object(0, KINDS[0]))]);
    (held["message"], held["hint"], held["token"]) = (json!(HOSTILE[1]), json!(HOSTILE[2]), json!(HOSTILE[3]));
    (found["holds"], found["remarks"]) = (json!([held]), json!(HOSTILE));
    keep(desk, ("gateways", "eu-west-1"), &found, 2);
    let mut lost = quiet(0);
    (lost["state"], lost["error"]) = (json!("unreachable"), json!({"message": HOSTILE[1], "hint": HOSTILE[0]}));
    keep(desk, ("gateways", "us-east-1"), &lost, 2);
    let suspended = json!({"reason": HOSTILE[0], "by": HOSTILE[1], "since": ago(9)});
    desk.write("state/suspended/policies.json", &suspended.to_string());
}
