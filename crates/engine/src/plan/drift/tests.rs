use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::estimate::estimated;
use super::model::Model;
use super::*;
use crate::object::Gvk;
use crate::plan::tests::policies;
use crate::problem::Place;
use crate::unit::Deployer;

const DEPLOYER: &str = "acme.example.com/acme";

fn unit() -> Unit {
    let id = ObjectId::new("gateway.networking.k8s.io", "Gateway", "infra", "edge");
    let deployer = Some(Deployer {
        manager: DEPLOYER.to_owned(),
        pack: String::new(),
        told_by: None,
        deletes: None,
        settings: Vec::new(),
    });
    Unit { deployer, ..Unit::empty(id, Place::file("edge.yaml")) }
}

fn deployment(spec: &Value) -> Object {
    let body = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "edge", "namespace": "infra"}, "spec": spec,
    });
    Object::new(body).expect("it is an object")
}

/// A live Deployment; of each manager what it has set.
fn live(spec: &Value, managers: &[(&str, &str, Value)]) -> Live {
    let mut body = deployment(spec).into_body();
    let entry = |(manager, operation, fields): &(&str, &str, Value)| {
        json!({
            "manager": manager, "operation": operation, "apiVersion": "apps/v1", "time": "2026-01-01T00:00:00Z",
            "fieldsV1": {"f:spec": fields},
        })
    };
    body["metadata"]["managedFields"] = managers.iter().map(entry).collect();
    body["metadata"]["uid"] = json!("u");
    Live::new(body).expect("it is an object")
}

fn pod(container: &Value) -> Value {
    json!({"template": {"spec": {"containers": [container]}}})
}

#[track_caller]
fn check(wanted: &Value, live: &Live, expected: &[&str]) {
    let (unit, conflicts) = (unit(), Conflicts::default());
    let pair = Pair::new(&unit, &deployment(wanted), live, None, &policies()).expect("nothing is refused");
    let after = estimated(&pair.agreed, live, &Model::default());
    let (found, _) = pair.differences(&after, &conflicts);
    let text = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), Value::to_string);
    // What the server has filled in and the live side of a test leaves out is not what is tested.
    let of_interest = found.iter().filter(|it| it.before.is_some() || !it.path.contains("Policy"));
    let lines: Vec<String> =
        of_interest.map(|it| format!("{}: {} -> {}", it.path, text(&it.before), text(&it.after))).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !is_filled_in(line)).collect();
    assert_eq!(lines, expected);
}

/// Tells whether a line is about a default that the live side of these tests leaves out.
fn is_filled_in(line: &str) -> bool {
    const DEFAULTS: [&str; 9] = [
        "revisionHistoryLimit: -",
        "progressDeadlineSeconds: -",
        "strategy: -",
        "replicas: - -> 1",
        "restartPolicy: -",
        "terminationGracePeriodSeconds: - -> 30",
        "schedulerName: -",
        "securityContext: -",
        "terminationMessagePath: -",
    ];
    DEFAULTS.iter().any(|default| line.contains(default)) || line.ends_with("resources: - -> {}")
}

fn of_container(fields: &Value) -> Value {
    let mut fields = fields.clone();
    fields["."] = json!({});
    json!({"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": fields}}}})
}

#[test]
fn what_somebody_changed_differs_whoever_it_was() {
    let wanted = pod(&json!({"name": "a", "image": "i:1"}));
    let there = pod(&json!({"name": "a", "image": "i:2"}));
    for manager in ["kubectl-edit", "argocd-controller", DEPLOYER] {
        let fields = of_container(&json!({"f:name": {}, "f:image": {}}));
        let live = live(&there, &[(manager, "Apply", fields)]);
        check(&wanted, &live, &[r#"spec.template.spec.containers[a].image: "i:2" -> "i:1""#]);
    }
}

#[test]
fn what_people_and_the_deployer_have_added_differs_and_what_a_controller_has_added_does_not() {
    let wanted = pod(&json!({"name": "a", "image": "i:1"}));
    let there = pod(&json!({"name": "a", "image": "i:1", "tty": true}));
    let check = |manager: &str, expected: &[&str]| {
        let made = of_container(&json!({"f:name": {}, "f:image": {}}));
        let added = of_container(&json!({"f:tty": {}}));
        check(&wanted, &live(&there, &[(DEPLOYER, "Apply", made), (manager, "Update", added)]), expected);
    };
    check("kubectl-patch", &["spec.template.spec.containers[a].tty: true -> -"]);
    check(DEPLOYER, &["spec.template.spec.containers[a].tty: true -> -"]);
    check("some-controller", &[]);
}

#[test]
fn what_a_server_chooses_for_an_added_element_is_not_told() {
    let service = |ports: Value, address: Option<&str>| {
        let mut spec = json!({"type": "NodePort", "ports": ports});
        if let Some(address) = address {
            spec["clusterIP"] = json!(address);
            spec["clusterIPs"] = json!([address]);
        }
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "edge", "namespace": "infra"}, "spec": spec})
    };
    let port = |name: &str, number: Option<u16>| match number {
        Some(number) => json!({"name": name, "port": 80, "nodePort": number}),
        None => json!({"name": name, "port": 80}),
    };
    let wanted = json!([port("a", None), port("b", Some(30080)), port("c", None), port("d", Some(30090))]);
    let wanted = Object::new(service(wanted, None)).expect("it is an object");
    let mut there = service(json!([port("a", Some(31111)), port("d", Some(31112))]), Some("10.0.0.1"));
    there["metadata"]["uid"] = json!("u");
    let live = Live::new(there).expect("it is an object");
    let after = |chosen: u16| {
        let ports = [("a", 31111), ("b", 30080), ("c", chosen), ("d", 30090)];
        service(ports.map(|(name, number)| port(name, Some(number))).into_iter().collect(), Some("10.0.0.1"))
    };
    let conflicts = Conflicts::default();
    let pair = Pair::new(&unit(), &wanted, &live, None, &policies()).expect("nothing is refused");
    for chosen in [32769, 30081] {
        let (found, _) = pair.differences(&after(chosen), &conflicts);
        let lines: Vec<(&str, Option<&Value>)> = found.iter().map(|it| (it.path.as_str(), it.after.as_ref())).collect();
        let (with, without, number) = (port("b", Some(30080)), port("c", None), json!(30090));
        let expected = [("spec.ports[d].nodePort", &number), ("spec.ports[b]", &with), ("spec.ports[c]", &without)];
        assert_eq!(lines, expected.map(|(path, after)| (path, Some(after))));
    }
}

#[test]
fn an_amount_may_be_written_in_another_way() {
    let cpu = |amount: &str| pod(&json!({"name": "a", "image": "i:1", "resources": {"requests": {"cpu": amount}}}));
    let fields = of_container(&json!({"f:name": {}, "f:image": {}, "f:resources": {"f:requests": {"f:cpu": {}}}}));
    let live = live(&cpu("1"), &[(DEPLOYER, "Apply", fields)]);
    check(&cpu("1000m"), &live, &[]);
    check(&cpu("0.5"), &live, &[r#"spec.template.spec.containers[a].resources.requests.cpu: "1" -> "500m""#]);
}

#[test]
fn lists_merge_as_the_schema_or_the_owners_say() {
    let wanted = json!({"template": {"spec": {"tolerations": [{"key": "a"}]}}});
    let there = json!({"template": {"spec": {"tolerations": [{"key": "a"}, {"key": "b"}]}}});
    let atomic = live(&there, &[(DEPLOYER, "Apply", json!({"f:template": {"f:spec": {"f:tolerations": {}}}}))]);
    check(&wanted, &atomic, &[r#"spec.template.spec.tolerations[b]: {"key":"b"} -> -"#]);

    let env = |names: &[&str]| {
        let all: Vec<Value> = names.iter().map(|name| json!({"name": name, "value": "1"})).collect();
        pod(&json!({"name": "a", "image": "i:1", "env": all}))
    };
    let one = |name: &str| (format!("k:{{\"name\":\"{name}\"}}"), json!({".": {}, "f:name": {}, "f:value": {}}));
    let owned: serde_json::Map<String, Value> = ["x", "y"].map(one).into_iter().collect();
    let injected: serde_json::Map<String, Value> = [one("z")].into_iter().collect();
    let fields = of_container(&json!({"f:name": {}, "f:image": {}, "f:env": owned}));
    let added = of_container(&json!({"f:env": injected}));
    let live = live(&env(&["x", "z", "y"]), &[(DEPLOYER, "Apply", fields), ("injector", "Update", added)]);
    check(&env(&["x", "y"]), &live, &[]);
    check(&env(&["y", "x"]), &live, &[r#"spec.template.spec.containers[a].env: ["x","z","y"] -> ["z","y","x"]"#]);
}

#[test]
fn marks_and_the_name_of_the_tool_are_no_difference() {
    let labels = |tool: &str, mark: Option<&str>| {
        let mut labels = json!({MANAGED_BY: tool, "app": "edge"});
        if let Some(mark) = mark {
            labels["gatewright.dev/sync"] = json!(mark);
        }
        labels
    };
    let of = |labels: Value| {
        let mut body = deployment(&json!({})).into_body();
        body["metadata"]["labels"] = labels;
        body
    };
    let wanted = Object::new(of(labels("gatewright", Some("edge.0123")))).expect("it is an object");
    let live = Live::new(of(labels("acme", None))).expect("it is an object");
    let adapted = adapted(&wanted, &live);
    assert_eq!(adapted.body()["metadata"]["labels"], labels("acme", None));
    let named = Object::new(of(labels("somebody", None))).expect("it is an object");
    assert_eq!(
        super::adapted(&named, &live).body()["metadata"]["labels"],
        labels("somebody", None),
        "it was asked for"
    );
    assert_eq!(
        wanted_digest(&wanted, &Masker::default()),
        wanted_digest(&Object::new(of(labels("gatewright", None))).expect("it is one"), &Masker::default())
    );
}

#[test]
fn texts_that_read_as_equal_amounts_differ() {
    let of = |version: &str, cpu: &str| {
        let mut body = deployment(&json!({})).into_body();
        body["metadata"]["labels"] = json!({"version": version});
        let env = json!([{"name": "A", "value": version}]);
        let resources = json!({"limits": {"cpu": cpu}});
        body["spec"]["template"]["spec"]["containers"] = json!([{"name": "a", "env": env, "resources": resources}]);
        body
    };
    let wanted = Object::new(of("0e12345", "1000m")).expect("it is an object");
    let live = Live::new(of("0e99999", "1")).expect("it is an object");
    let pair = Pair::new(&unit(), &wanted, &live, None, &policies()).expect("nothing is refused");
    let after = estimated(&pair.agreed, &live, &Model::default());
    assert_eq!(after["metadata"]["labels"]["version"], "0e12345");
    let container = &after["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        (&container["env"][0]["value"], &container["resources"]["limits"]["cpu"]),
        (&json!("0e12345"), &json!("1"))
    );
}

#[test]
fn a_schema_says_how_lists_merge_and_what_is_filled_in() {
    let document = json!({"components": {"schemas": {
        "Widget": {
            "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Widget"}],
            "description": "it is left out",
            "properties": {"spec": {"allOf": [{"$ref": "#/components/schemas/Spec"}], "default": {}}},
        },
        "Spec": {"properties": {
            "size": {"type": "string", "default": "small"},
            "parts": {
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
                "items": {"properties": {"weight": {"default": 5}}},
            },
            "amount": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"},
        }},
        "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
        "Other": {"properties": {}},
    }}});
    let kind = Gvk::new("example.com/v1", "Widget");
    let mut model = Model::default();
    model.add(&document, &BTreeSet::from([kind]));
    let widget = |spec: Value| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec});
    let wanted = Object::new(widget(json!({"parts": [{"id": "b"}], "amount": "2000m"}))).expect("it is an object");
    let mut body = widget(json!({"size": "large", "parts": [{"id": "a", "weight": 1}], "amount": "1"}));
    body["metadata"]["managedFields"] = json!([
        {"manager": "kubectl", "operation": "Update", "apiVersion": "example.com/v1", "fieldsV1": {"f:spec": {"f:size": {}}}},
        {"manager": "some", "operation": "Update", "apiVersion": "example.com/v1", "fieldsV1": {"f:spec": {"f:parts": {}}}},
    ]);
    let live = Live::new(body).expect("it is an object");
    let pair = Pair::new(&unit(), &wanted, &live, None, &policies()).expect("nothing is refused");
    let after = estimated(&pair.agreed, &live, &model);
    assert_eq!(
        after["spec"],
        json!({"size": "small", "parts": [{"id": "a", "weight": 1}, {"id": "b", "weight": 5}], "amount": "2"})
    );
}
