//! Reports of fleets: a large one with everything that a report can say, and a small one to be shown to people.

use gatewright::report::Report;
use serde_json::{Value, json};

/// The number of objects in the large fleet.
pub(super) const OBJECTS: usize = 5_000;

/// Clusters of the large fleet that can be asked.
const ASKED: usize = 8;
const KINDS: [(&str, &str); 5] = [
    ("", "ServiceAccount"),
    ("", "ConfigMap"),
    ("", "Service"),
    ("apps", "Deployment"),
    ("autoscaling", "HorizontalPodAutoscaler"),
];
const TEAMS: [&str; 6] = ["checkout", "search", "payments", "catalog", "accounts", "shipping"];

/// Texts that would set a flag in the page if anything of them were read as HTML or ran.
pub(super) const HOSTILE: [&str; 5] = [
    "<script>window.hostile = 1</script>",
    "<img src=x onerror=window.hostile=1>",
    "\" autofocus onfocus=\"window.hostile=1",
    "</dd></dl></li></ul></details><iframe srcdoc='<script>parent.hostile = 1</script>'>",
    "\u{202e}elbissop\u{202c} <!-- ]]> &lt;script&gt;",
];

/// Reports of ten clusters with [`OBJECTS`] objects, most of which are as they should be: two of the clusters
/// cannot be asked, others have drifted, have refusals, failures and holds, and names that would do harm.
pub(super) fn large() -> Vec<Report> {
    of(OBJECTS / KINDS.len() / ASKED)
}

/// The same with fewer units on each cluster; ten are enough for everything to be there.
pub(super) fn of(per_cluster: usize) -> Vec<Report> {
    let mut clusters = json!({});
    for number in 0..ASKED {
        let name = cluster_name(number);
        clusters[&name] = cluster(number * per_cluster, per_cluster);
    }
    clusters[cluster_name(3)]["holds"] = json!([{
        "guard": "max-delete", "unit": null, "message": "34 of 125 units would be deleted, and 20 % may be",
        "hint": "see what goes with `gatewright plan`, then run `gatewright approve gateways 4d1c`",
    }]);
    clusters[cluster_name(3)]["state"] = json!("held");
    clusters[cluster_name(8)] = lost(HOSTILE[1]);
    let suspended = json!({"reason": HOSTILE[0], "by": "anna", "since": "2026-01-01T00:00:00Z"});
    let resting =
        json!({cluster_name(9): {"state": "suspended", "steps": [], "refusals": [], "holds": [], "units": []}});
    let problem = json!({
        "scope": "document", "place": {"file": format!("specs/{}.yaml", HOSTILE[2]), "line": 3, "column": 1},
        "object": null, "message": HOSTILE[4], "hint": "remove it",
    });
    let mut first = report("gateways", &clusters);
    first["problems"] = json!([problem]);
    let mut second = report("edge", &resting);
    second["suspended"] = suspended;
    [first, second].map(read).into()
}

/// A report of a few clusters on an ordinary day: one has drifted, one cannot be reached.
pub(super) fn small() -> Vec<Report> {
    let quiet = |units: &[(&str, &str)]| {
        let steps = units.iter().flat_map(|(namespace, name)| kept(namespace, name)).collect::<Vec<_>>();
        let states = units.iter().map(|(namespace, name)| state_of(namespace, name, "current", None));
        json!({"state": "planned", "steps": steps, "refusals": [], "holds": [], "units": states.collect::<Vec<_>>()})
    };
    let mut drifted = quiet(&[("checkout", "storefront"), ("infra", "edge"), ("search", "queries")]);
    drifted["units"][0]["state"] = json!("pending");
    drifted["units"][1]["state"] = json!("held");
    drifted["steps"][1]["action"] = json!("update");
    drifted["steps"][1]["differences"] = lines("kubectl-edit", "2026-11-20T22:54:47Z");
    drifted["steps"][3]["action"] = json!("update");
    drifted["steps"][3]["differences"] = fields("kubectl-patch", "2026-11-20T23:10:02Z", "1.36.1", "1.37.0");
    drifted["steps"][3]["differences"].as_array_mut().expect("they are a list").truncate(1);
    drifted["steps"].as_array_mut().expect("they are a list").remove(7);
    let service = id("", "Service", "infra", "edge");
    let reason = json!({"reason": "foreign", "detail": "Helm release infra/edge"});
    drifted["refusals"] = json!([{"unit": unit("infra", "edge"), "id": service, "reason": reason}]);
    let lost = lost("no answer from https://10.2.0.10:6443 within 10s");
    let clusters = json!({
        "eu-central": quiet(&[("checkout", "storefront"), ("infra", "edge")]), "eu-west": drifted, "us-east": lost,
    });
    vec![read(report("gateways", &clusters))]
}

fn read(report: Value) -> Report {
    serde_json::from_value(report).expect("it is a report")
}

fn cluster_name(number: usize) -> String {
    let region = ["eu-central", "eu-west", "us-east", "ap-south", "sa-east"][number % 5];
    if number == 5 { format!("{region}-{}", HOSTILE[2]) } else { format!("{region}-{}", number / 5 + 1) }
}

fn report(sync: &str, clusters: &Value) -> Value {
    json!({
        "schema": "gatewright.dev/report/v1alpha1", "sync": sync, "source": "platform", "revision": "main@8f3c1d2a90b4",
        "mode": "plan", "started": "2026-11-21T06:00:00Z", "finished": "2026-11-21T06:00:09Z", "problems": [],
        "unclaimed": [], "clusters": clusters,
    })
}

fn lost(message: &str) -> Value {
    let hint = "is the cluster up, and does the kubeconfig name it?";
    json!({
        "state": "unreachable", "error": {"message": message, "hint": hint}, "steps": [], "refusals": [], "holds": [],
        "units": [],
    })
}

/// So many units, the first of which has this number in the fleet.
fn cluster(first: usize, units: usize) -> Value {
    let (mut steps, mut refusals, mut states) = (Vec::new(), Vec::new(), Vec::new());
    for number in first..first + units {
        let (namespace, name) = (TEAMS[number % TEAMS.len()], format!("gateway-{number:04}"));
        let mut objects = kept(namespace, &name);
        let (state, message) = happen(number, &mut objects);
        if state == "held" {
            let object = objects.remove(2);
            let reason = json!({"reason": "foreign", "detail": HOSTILE[1]});
            refusals.push(json!({"unit": object["unit"], "id": object["id"], "reason": reason}));
        }
        steps.extend(objects);
        states.push(state_of(namespace, &name, state, message));
    }
    json!({"state": "planned", "steps": steps, "refusals": refusals, "holds": [], "units": states})
}

/// Lets something happen to a few of all units, and returns their state and what is said about it.
fn happen(number: usize, objects: &mut [Value]) -> (&'static str, Option<&'static str>) {
    let theirs = HOSTILE[number / 40 % HOSTILE.len()];
    match number % 40 {
        3 | 13 | 23 => {
            set_action(&mut objects[1..=1], "update");
            set_action(&mut objects[3..=3], "update");
            objects[1]["differences"] = lines("kubectl-edit", "2026-11-20T22:54:47Z");
            objects[3]["differences"] = fields("kubectl-patch", "2026-11-20T23:10:02Z", "1.36.1", theirs);
            ("pending", Some("2 objects differ"))
        }
        17 => {
            set_action(objects, "create");
            ("pending", None)
        }
        29 => {
            set_action(objects, "prune");
            objects[0]["note"] = json!(theirs);
            ("current", None)
        }
        31 => ("held", Some("its Service is somebody else's")),
        37 => {
            set_action(&mut objects[2..=3], "update");
            objects[2]["outcome"] = json!({"result": "failed", "message": "admission webhook \"policy\" denied it"});
            objects[3]["outcome"] = json!({"result": "skipped"});
            objects[4]["id"]["name"] = json!(theirs);
            ("failed", Some(theirs))
        }
        _ => ("current", None),
    }
}

fn set_action(objects: &mut [Value], action: &str) {
    for object in objects {
        object["action"] = json!(action);
    }
}

fn id(group: &str, kind: &str, namespace: &str, name: &str) -> Value {
    json!({"group": group, "kind": kind, "namespace": namespace, "name": name})
}

fn unit(namespace: &str, name: &str) -> Value {
    id("gateway.networking.k8s.io", "Gateway", namespace, name)
}

fn state_of(namespace: &str, name: &str, state: &str, message: Option<&str>) -> Value {
    json!({"unit": unit(namespace, name), "state": state, "message": message, "addresses": [], "ports": [8080]})
}

/// The objects of a unit, as they should be.
fn kept(namespace: &str, name: &str) -> Vec<Value> {
    let step = |(group, kind): &(&str, &str)| json!({"unit": unit(namespace, name), "id": id(group, kind, namespace, name), "action": "keep", "differences": []});
    KINDS.iter().map(step).collect()
}

/// Fields of a Deployment that somebody has set.
fn fields(who: &str, when: &str, before: &str, after: &str) -> Value {
    let managers = json!([{"name": who, "time": when}]);
    let image = |tag: &str| format!("docker.io/envoyproxy/envoy:v{tag}");
    let proxy = "spec.template.spec.containers[kgateway-proxy]";
    json!([
        {"path": format!("{proxy}.image"), "before": image(before), "after": image(after), "managers": managers},
        {"path": format!("{proxy}.resources.limits.memory"), "before": "256Mi", "after": "1Gi", "managers": managers},
        {"path": "metadata.annotations[debug]", "before": "yes, please", "after": null, "managers": managers},
    ])
}

/// Lines of a bootstrap that somebody has edited.
fn lines(who: &str, when: &str) -> Value {
    let text = |level: &str, port: u16| {
        format!("admin:\n  address: 127.0.0.1\n  port: {port}\nlayered_runtime:\n  layers:\n  - name: {level}\n")
    };
    let managers = json!([{"name": who, "time": when}]);
    let (before, after) = (text("debug", 9901), text("static_layer", 19000));
    json!([{"path": "data[envoy.yaml]", "before": before, "after": after, "managers": managers}])
}
