use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::path::FieldPath;
use super::rules::{Ignore, Policy, Rule};
use super::table::Table;
use super::{Conflicts, Negotiated, ObjectView, Verdict};
use crate::live::Live;
use crate::object::{Object, ObjectId};
use crate::plan::policies::Policies;
use crate::plan::refusal::Reason;

fn entry(manager: &str, operation: &str, set: &Value) -> Value {
    json!({"manager": manager, "operation": operation, "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": set})
}

fn object(spec: &Value) -> Object {
    let metadata = json!({"name": "edge", "namespace": "infra", "labels": {"gatewright.dev/sync": "edge"}});
    let body = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec});
    Object::new(body).expect("it has all that it needs")
}

fn live(spec: &Value, entries: &[Value]) -> Live {
    let mut body = object(spec).into_body();
    body["metadata"]["managedFields"] = entries.to_vec().into();
    Live::new(body).expect("it has all that it needs")
}

fn negotiate(wanted: &Value, live: &Live, conflicts: &Conflicts, view: ObjectView<'_>) -> Result<Negotiated, Reason> {
    let policies = Policies { conflicts: conflicts.clone(), ..crate::plan::tests::policies() };
    Table::new(&object(wanted), live, &policies, view).negotiate()
}

fn ignoring(path: &str) -> Conflicts {
    let path = FieldPath::parse(path).expect("it is a path");
    Conflicts { ignore: vec![Ignore { kind: "Deployment".into(), path, manager: None }], ..Conflicts::default() }
}

/// Returns the decisions, as `verdict path managers`.
fn words(negotiated: &Negotiated) -> Vec<String> {
    let word = |verdict: Verdict| serde_json::to_value(verdict).expect("it is a word");
    let decided = negotiated.decided.iter();
    decided.map(|it| format!("{} {} {}", word(it.verdict), it.path, it.managers.join(",")).replace('"', "")).collect()
}

/// The owners after the patch: manager and set.
fn owners(negotiated: &Negotiated) -> BTreeMap<String, Value> {
    let entries = negotiated.first.first().and_then(|operation| operation["value"].as_array()).into_iter().flatten();
    entries.map(|entry| (entry["manager"].as_str().unwrap_or_default().into(), entry["fieldsV1"].clone())).collect()
}

#[test]
fn what_nobody_disagrees_about_is_applied_as_it_is() {
    let pod = |cpu: &str| json!({"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": cpu}}}]}});
    let wanted = json!({"replicas": 2, "template": pod("1000m")});
    let container = json!({"k:{\"name\":\"a\"}": {"f:resources": {"f:limits": {"f:cpu": {}}}}});
    let template = json!({"f:spec": {"f:containers": container}});
    let ours = entry("gatewright", "Apply", &json!({"f:spec": {"f:replicas": {}, "f:template": template}}));
    let theirs = entry("vpa", "Update", &json!({"f:spec": {"f:template": template, "f:own": {}}}));
    let live = live(&json!({"replicas": 2, "template": pod("1"), "own": 1}), &[ours, theirs]);
    let negotiated = negotiate(&wanted, &live, &Conflicts::default(), ObjectView::default()).expect("nobody objects");
    assert_eq!(negotiated, Negotiated { lost: json!({}), ..Negotiated::plain(&object(&wanted)) });
}

#[test]
fn labels_that_read_as_equal_amounts_are_disagreed_about() {
    let labels = |version: &str| json!({"template": {"metadata": {"labels": {"version": version}}}});
    let set = json!({"f:spec": {"f:template": {"f:metadata": {"f:labels": {"f:version": {}}}}}});
    let live = live(&labels("1.1"), &[entry("controller", "Update", &set)]);
    let of = |rules: Vec<Rule>| {
        let conflicts = Conflicts { rules, ..Conflicts::default() };
        negotiate(&labels("1.10"), &live, &conflicts, ObjectView::default())
    };
    let decided = words(&of(vec![]).expect("nobody objects"));
    assert_eq!(decided, ["yielded spec.template.metadata.labels.version controller"]);
    let fail = Rule { manager: "controller".into(), kinds: BTreeSet::new(), paths: vec![], policy: Policy::Fail };
    assert!(matches!(of(vec![fail]), Err(Reason::Conflict(_))));
}

#[test]
fn additions_of_people_become_ours_and_those_of_others_stay_theirs() {
    let set = |set: Value| json!({"f:spec": {"f:list": {".": {}, "k:{\"name\":\"a\"}": set}}});
    let ours = entry("gatewright", "Apply", &set(json!({".": {}, "f:name": {}})));
    let person = entry("kubectl-edit", "Update", &set(json!({"f:tty": {}, "f:shared": {}})));
    let controller = entry("controller", "Apply", &set(json!({"f:stdin": {}, "f:shared": {}})));
    let spec = json!({"list": [{"name": "a", "tty": true, "stdin": true, "shared": 1}]});
    let live = live(&spec, &[ours, person, controller]);
    let wanted = json!({"list": [{"name": "a"}]});
    let negotiated = negotiate(&wanted, &live, &Conflicts::default(), ObjectView::default()).expect("nobody objects");
    assert_eq!(words(&negotiated), ["removed spec.list[a].tty kubectl-edit"]);
    let owners = owners(&negotiated);
    assert_eq!(owners["gatewright"], set(json!({".": {}, "f:name": {}, "f:tty": {}, "f:shared": {}})));
    assert_eq!(owners["controller"], set(json!({"f:stdin": {}, "f:shared": {}})));
    assert_eq!(owners.len(), 2, "nothing is left to the person");
}

#[test]
fn a_mapping_that_somebody_holds_is_not_what_is_in_it() {
    let metadata = json!({"f:metadata": {"f:labels": {}}, "f:spec": {"f:limits": {}, "f:map": {}}});
    let theirs = entry("controller", "Update", &metadata);
    let ours = entry("gatewright", "Apply", &json!({"f:spec": {"f:map": {"f:a": {}}}}));
    let live = live(&json!({"limits": {}, "map": {"a": 1}}), &[theirs, ours]);
    let wanted = json!({"limits": {"cpu": "1"}, "map": {"a": 2}});
    let of =
        |conflicts: &Conflicts| negotiate(&wanted, &live, conflicts, ObjectView::default()).expect("nobody objects");
    let plain = of(&Conflicts::default());
    assert_eq!((words(&plain), plain.object), (vec![], object(&wanted)));
    let ignored = of(&ignoring("spec.limits.cpu"));
    assert_eq!(words(&ignored), ["ignored spec.limits.cpu "]);
    assert_eq!(ignored.object, object(&json!({"map": {"a": 2}})));
}

#[test]
fn what_does_harm_when_it_goes_stays() {
    let set = json!({
        "f:metadata": {
            "f:finalizers": {"v:\"x\"": {}}, "f:ownerReferences": {"k:{\"uid\":\"1\"}": {}},
            "f:annotations": {"f:helm.sh/resource-policy": {}, "f:argocd.argoproj.io/sync-options": {}},
        },
        "f:spec": {
            "f:replicas": {},
            "f:template": {"f:metadata": {"f:annotations": {"f:kubectl.kubernetes.io/restartedAt": {}}}},
        },
    });
    let spec =
        json!({"replicas": 3, "template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "1"}}}});
    let live = live(&spec, &[entry("kubectl-edit", "Update", &set)]);
    let negotiated =
        negotiate(&json!({}), &live, &Conflicts::default(), ObjectView::default()).expect("nobody objects");
    assert_eq!((words(&negotiated), negotiated.first), (vec![], vec![]));
}

#[test]
fn a_set_of_another_version_is_left_as_it_is() {
    let ours = entry("gatewright", "Apply", &json!({"f:spec": {"f:a": {}}}));
    let mut person = entry("kubectl-edit", "Update", &json!({"f:spec": {"f:b": {}}}));
    person["apiVersion"] = json!("apps/v1beta1");
    let live = live(&json!({"a": 1, "b": 1}), &[ours, person]);
    let negotiated =
        negotiate(&json!({"a": 1}), &live, &Conflicts::default(), ObjectView::default()).expect("nobody objects");
    assert_eq!(negotiated.first, Vec::<Value>::new());
}

#[test]
fn a_deployer_that_is_gone_gives_way() {
    let theirs = entry("acme.example.com/acme", "Apply", &json!({"f:spec": {"f:a": {}, "f:b": {}}}));
    let live = live(&json!({"a": 1, "b": 1}), &[theirs]);
    let of = |view| negotiate(&json!({"a": 2}), &live, &Conflicts::default(), view).expect("nobody objects");
    assert_eq!(words(&of(ObjectView::default())), ["yielded spec.a acme.example.com/acme"]);
    let view = ObjectView { deployer: Some("acme.example.com/acme"), ..ObjectView::default() };
    let expected = ["taken spec.a acme.example.com/acme", "removed spec.b acme.example.com/acme"];
    assert_eq!(words(&of(view)), expected);
}

#[test]
fn replicas_are_whose_who_scales() {
    let ours = entry("gatewright", "Apply", &json!({"f:spec": {"f:replicas": {}, "f:a": {}}}));
    let live = live(&json!({"replicas": 5, "a": 1}), &[ours]);
    let autoscaler = ObjectId::new("autoscaling", "HorizontalPodAutoscaler", "infra", "edge");
    let scaled = ObjectView { autoscaler: Some(&autoscaler), ..ObjectView::default() };
    let of = |wanted: Value, view| negotiate(&wanted, &live, &Conflicts::default(), view).expect("nobody objects");

    assert_eq!(
        of(json!({"replicas": 2, "a": 1}), ObjectView::default()).object,
        object(&json!({"replicas": 2, "a": 1}))
    );
    assert!(of(json!({"replicas": 5, "a": 1}), scaled).first.is_empty());
    for (wanted, view, who) in [
        (json!({"replicas": 2, "a": 1}), scaled, "HorizontalPodAutoscaler infra/edge"),
        (json!({"a": 1}), scaled, "HorizontalPodAutoscaler infra/edge"),
        (json!({"a": 1}), ObjectView::default(), ""),
    ] {
        let negotiated = of(wanted, view);
        assert_eq!(words(&negotiated), [format!("handed-over spec.replicas {who}")]);
        assert_eq!(negotiated.object, object(&json!({"a": 1})));
        assert_eq!(owners(&negotiated)["gatewright"], json!({"f:spec": {"f:a": {}}}));
        assert!(negotiated.is_due);
    }
}

#[test]
fn a_rule_may_leave_it_to_people() {
    let theirs = entry("scaler", "Apply", &json!({"f:spec": {"f:replicas": {}}}));
    let live = live(&json!({"replicas": 5}), &[theirs]);
    let rule =
        Rule { manager: "scal*".into(), kinds: ["Deployment".into()].into(), paths: vec![], policy: Policy::Fail };
    let conflicts = Conflicts { rules: vec![rule], ..Conflicts::default() };
    let refused = negotiate(&json!({"replicas": 2}), &live, &conflicts, ObjectView::default());
    let what = "\"scaler\" has set spec.replicas to 5, ours would be 2".to_owned();
    assert_eq!(refused, Err(Reason::Conflict(what)));
    assert!(negotiate(&json!({"replicas": 5}), &live, &conflicts, ObjectView::default()).is_ok());
}

#[test]
fn an_element_that_is_ignored_and_gone_is_not_made_by_halves() {
    let ours = entry("gatewright", "Apply", &json!({"f:spec": {"f:a": {}}}));
    let live = live(&json!({"a": 1}), &[ours]);
    let wanted = json!({"a": 1, "list": [{"name": "x", "value": 1}, {"name": "y", "value": 2}]});
    let of = |path| negotiate(&wanted, &live, &ignoring(path), ObjectView::default()).expect("nobody objects").object;
    assert_eq!(of("spec.list[x]"), object(&json!({"a": 1, "list": [{"name": "y", "value": 2}]})));
    assert_eq!(of("spec.list"), object(&json!({"a": 1})));
}

#[test]
fn what_people_add_again_and_again_rests_too() {
    let labels = json!({"f:metadata": {"f:labels": {"f:a": {}, "f:b": {}}}});
    let mut body = live(&json!({}), &[entry("kubectl-label", "Update", &labels)]).object.into_body();
    body["metadata"]["labels"] = json!({"a": "1", "b": "1", "gatewright.dev/sync": "edge"});
    let live = Live::new(body).expect("it has all that it needs");
    let fights =
        json!({"apps/Deployment/infra/edge": {"metadata.labels.a": {"value": "", "corrections": 3, "rest": 1}}});
    let fights = serde_json::from_value(fights).expect("it is what is remembered");
    let conflicts = Conflicts { fights, ..Conflicts::default() };
    let negotiated = negotiate(&json!({}), &live, &conflicts, ObjectView::default()).expect("nobody objects");
    let expected = ["fighting metadata.labels.a kubectl-label", "removed metadata.labels.b kubectl-label"];
    assert_eq!(words(&negotiated), expected);
    assert_eq!(owners(&negotiated)["kubectl-label"], json!({"f:metadata": {"f:labels": {"f:a": {}}}}));
}

#[test]
fn what_rests_and_is_ours_is_applied_as_it_is() {
    let ours = entry("gatewright", "Apply", &json!({"f:spec": {"f:a": {}}}));
    let live = live(&json!({"a": 1}), &[ours]);
    let fights = json!({"apps/Deployment/infra/edge": {"spec.a": {"value": "", "corrections": 3, "rest": 2}}});
    let fights = serde_json::from_value(fights).expect("it is what is remembered");
    let conflicts = Conflicts { fights, ..Conflicts::default() };
    let negotiated = negotiate(&json!({"a": 2}), &live, &conflicts, ObjectView::default()).expect("nobody objects");
    assert_eq!((negotiated.object, negotiated.first), (object(&json!({"a": 1})), vec![]));
    assert_eq!(negotiated.decided[0].rest, Some(1));
}

#[test]
fn what_identifies_an_object_cannot_be_ignored() {
    let wanted = json!({"a": 1});
    let live = live(&wanted, &[entry("other", "Update", &json!({"f:metadata": {"f:labels": {}}}))]);
    for path in ["metadata", "kind", "apiVersion", "metadata.name", "metadata.labels[\"gatewright.dev/sync\"]"] {
        let mut body = live.object.body().clone();
        body["metadata"]["labels"] = json!({});
        let live = Live::new(body).expect("it has all that it needs");
        let negotiated = negotiate(&wanted, &live, &ignoring(path), ObjectView::default()).expect("nobody objects");
        assert_eq!(negotiated.object, object(&wanted), "{path}");
    }
}

/// A list of containers with some fields each.
fn containers() -> impl Strategy<Value = Value> {
    let fields = || prop::collection::btree_map(prop::sample::select(vec!["a", "b", "c"]), 0..3_u8, 0..=3);
    (fields(), fields()).prop_map(|(x, y)| {
        let element = |name: &str, fields: BTreeMap<&str, u8>| {
            let mut element = json!({"name": name, "inner": fields});
            for (field, value) in fields {
                element[field] = value.into();
            }
            element
        };
        json!({"list": [element("x", x), element("y", y)]})
    })
}

/// Returns the fields that an API server writes down when somebody applies this.
fn set_of(spec: &Value) -> Value {
    fn of(value: &Value) -> Value {
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                fields.iter().map(|(field, value)| (format!("f:{field}"), of(value))).collect()
            }
            Value::Array(list) => {
                let element = |element: &Value| {
                    let mut set = of(element);
                    set["."] = json!({});
                    (format!("k:{}", json!({"name": element["name"]})), set)
                };
                list.iter().map(element).collect()
            }
            _ => json!({}),
        }
    }
    json!({"f:spec": of(spec)})
}

proptest! {
    #[test]
    fn neighbors_of_an_ignored_field_are_not_frozen(
        wanted in containers(),
        now in containers(),
        owner in prop::sample::select(vec!["gatewright", "kubectl-edit", "controller"]),
        field in prop::sample::select(vec!["a", "inner.b"]),
    ) {
        let conflicts = ignoring(&format!("spec.list[x].{field}"));
        let rule = Rule { manager: "*".into(), kinds: [].into(), paths: vec![], policy: Policy::Take };
        let conflicts = Conflicts { rules: vec![rule], ..conflicts };
        let live = live(&now, &[entry(owner, "Apply", &set_of(&now))]);
        let negotiated = negotiate(&wanted, &live, &conflicts, ObjectView::default()).expect("nobody objects");
        let pointer = format!("/spec/list/0/{}", field.replace('.', "/"));
        let applied = negotiated.object.body().pointer(&pointer);
        let (before, ours) = (live.object.body().pointer(&pointer), object(&wanted));
        // What is applied there is what there is, or nothing.
        prop_assert!(applied.is_none() || applied == before);
        let differs = before != ours.body().pointer(&pointer);
        prop_assert_eq!(negotiated.decided.iter().any(|it| it.verdict == Verdict::Ignored), differs);
        let without = |object: &Object| {
            let mut body = object.body().clone();
            let (parent, last) = pointer.rsplit_once('/').expect("it has slashes");
            body.pointer_mut(parent).and_then(Value::as_object_mut).map(|map| map.remove(last));
            // A mapping of which nothing is left says nothing.
            for element in body.pointer_mut("/spec/list").and_then(Value::as_array_mut).into_iter().flatten() {
                if element["inner"] == json!({}) {
                    element.as_object_mut().map(|map| map.remove("inner"));
                }
            }
            body
        };
        prop_assert_eq!(without(&negotiated.object), without(&ours));
        // What was ours and is not applied any more is not ours either, so that it keeps its value.
        if owner == "gatewright" && applied.is_none() && before.is_some() {
            let field = field.replace('.', "/f:");
            let pointer = format!("/f:spec/f:list/k:{{\"name\":\"x\"}}/f:{field}");
            prop_assert!(owners(&negotiated)["gatewright"].pointer(&pointer).is_none());
            prop_assert!(negotiated.is_due);
        }
    }
}

/// A setting about a field that is not there has every field looked at.
#[test]
fn what_nobody_else_holds_is_decided_without_a_look_at_every_field() {
    let ours = entry("gatewright", "Apply", &json!({"f:spec": {"f:replicas": {}, "f:a": {}, "f:m": {"f:b": {}}}}));
    let status = json!({"subresource": "status", "manager": "controller", "fieldsV1": {"f:status": {}}});
    let live = live(&json!({"replicas": 5, "a": 1, "m": {"b": 1}, "added": 1}), &[ours, status]);
    let same = json!({"replicas": 5, "a": 1, "m": {"b": 1}});
    let others = [json!({"replicas": 2, "a": 2, "list": [1], "new": {"x": 1}}), json!({"a": 1}), json!({"m": {}})];
    for wanted in others.iter().chain([&same]) {
        let of = |conflicts| negotiate(wanted, &live, &conflicts, ObjectView::default()).expect("nobody objects");
        assert_eq!(of(Conflicts::default()), of(ignoring("spec.nothing")), "{wanted}");
    }
}
