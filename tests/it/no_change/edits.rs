//! Edits of objects after a quiet round: the next one notices each, and puts it right.

use gatewright_engine::diff::differences;
use gatewright_engine::mask::Masker;
use serde_json::{Value, json};

use super::object_of;
use crate::faults::Place;
use crate::ownership::site::Site;

/// The settings of the sync: an annotation on every object.
const SETTINGS: &str = "commonAnnotations: {example.com/note: ours}";

/// Makes the number of replicas ours.
pub(super) const REPLICAS: &str = "
apiVersion: gatewright.dev/v1alpha1
kind: ClusterOverlay
metadata: {name: replicas}
spec: {parameters: {kube: {deployment: {replicas: 2}}}}
";

/// Something that somebody does to an object, such as `deployment/a`.
type Edit = fn(&Site, &str);

const EDITS: [(&str, &str, Edit); 17] = [
    ("a field of a Service", "service", |site, object| {
        merge(site, object, &json!({"spec": {"sessionAffinity": "ClientIP"}}));
    }),
    ("a field of ours", "deployment", |site, object| merge(site, object, &json!({"spec": {"replicas": 3}}))),
    ("data", "configmap", |site, object| merge(site, object, &json!({"data": {"more": "1"}}))),
    ("a probe is removed", "deployment", |site, object| {
        change(site, object, "", &json!([remove("/spec/template/spec/containers/0/readinessProbe")]));
    }),
    ("data are removed", "configmap", |site, object| change(site, object, "", &json!([remove("/data/envoy.yaml")]))),
    ("a selector is removed", "service", |site, object| change(site, object, "", &json!([remove("/spec/selector")]))),
    ("an annotation is removed", "serviceaccount", |site, object| {
        change(site, object, "", &json!([remove("/metadata/annotations/example.com~1note")]));
    }),
    ("a label of ours", "service", |site, object| {
        merge(site, object, &json!({"metadata": {"labels": {"app.kubernetes.io/name": "theirs"}}}));
    }),
    ("the label by which we find it", "serviceaccount", |site, object| {
        change(site, object, "", &json!([remove("/metadata/labels/gatewright.dev~1sync")]));
    }),
    ("an annotation of ours", "deployment", |site, object| {
        merge(site, object, &json!({"metadata": {"annotations": {"example.com/note": "theirs"}}}));
    }),
    ("a finalizer", "configmap", |site, object| {
        merge(site, object, &json!({"metadata": {"finalizers": ["example.com/theirs"]}}));
    }),
    ("scaled", "deployment", |site, object| drop(site.kubectl(&["scale", object, "--replicas=3"]))),
    ("scaled without a word", "deployment", |site, object| {
        let patch = json!({"spec": {"replicas": 3}}).to_string();
        site.kubectl(&["patch", object, "--subresource=scale", "--type=merge", "-p", &patch]);
    }),
    ("an annotation of ours, with a status", "service", |site, object| {
        let note = json!({"op": "replace", "path": "/metadata/annotations/example.com~1note", "value": "theirs"});
        change(site, object, "status", &json!([note]));
    }),
    ("an annotation of ours, with a whole status", "deployment", |site, object| {
        let mut body = site.get(object);
        body["metadata"]["annotations"]["example.com/note"] = "theirs".into();
        let arguments = ["-n", &site.name, "replace", "--subresource=status", "--validate=false", "-f", "-"];
        site.server.kubectl_stdin(&arguments, &body.to_string());
    }),
    ("deleted", "configmap", |site, object| drop(site.kubectl(&["delete", object]))),
    ("replaced by its own likeness", "configmap", |site, object| {
        let mut body = site.get(object);
        for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
            body["metadata"].as_object_mut().expect("it has metadata").remove(field);
        }
        site.kubectl(&["delete", object]);
        site.create(&body);
    }),
];

fn merge(site: &Site, object: &str, patch: &Value) {
    site.kubectl(&["patch", object, "--type=merge", "-p", &patch.to_string()]);
}

fn change(site: &Site, object: &str, subresource: &str, patch: &Value) {
    let patch = patch.to_string();
    let subresource = format!("--subresource={subresource}");
    let arguments = ["patch", object, "--type=json", "-p", &patch, &subresource];
    let length = if subresource.ends_with('=') { arguments.len() - 1 } else { arguments.len() };
    site.kubectl(&arguments[..length]);
}

fn remove(path: &str) -> Value {
    json!({"op": "remove", "path": path})
}

/// The part of an object that we care for.
fn ours(object: &Value) -> Value {
    let mut object = object.clone();
    // Finalizers are nobody's but their owner's.
    for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "finalizers"] {
        object["metadata"].as_object_mut().expect("it has metadata").remove(field);
    }
    object.as_object_mut().expect("it is an object").remove("status");
    object
}

#[test]
fn every_sort_of_edit_is_noticed_and_put_right() {
    let place = Place::new(SETTINGS);
    let names: Vec<String> = (0..EDITS.len()).map(|number| format!("g{number}")).collect();
    let gateways: Vec<&str> = names.iter().map(String::as_str).collect();
    place.site.want(&gateways, 80);
    place.site.spec("replicas", REPLICAS);
    place.sync().exits(0).says(&format!("{} objects created", 4 * EDITS.len()));
    for (name, (what, kind, edit)) in names.iter().zip(EDITS) {
        place.takes_note();
        let object = format!("{kind}/{name}");
        let before = place.site.get(&object);
        edit(&place.site, &object);
        let edited = place.site.versions();
        place.sync().exits(0);
        let is_asked_for = place.proxy.seen().iter().any(|seen| object_of(&seen.path) == format!("{kind}s/{name}"));
        assert!(is_asked_for, "{what}: {:?}", place.asked());
        let after = place.site.get(&object);
        assert_eq!(
            ours(&after),
            ours(&before),
            "{what}: {:?}",
            differences(&before, &after, "gatewright", &Masker::default())
        );
        let now = place.site.versions();
        let is_untouched =
            |(other, version): (&String, &String)| other.to_lowercase() == object || now.get(other) == Some(version);
        assert!(edited.iter().all(is_untouched), "{what}: something else was changed, too");
        let uid = place.site.get(&object)["metadata"]["uid"].clone();
        let entries = place.site.inventory().entries;
        let known = entries.iter().find(|(id, _)| format!("{}/{}", id.kind.to_lowercase(), id.name) == object);
        assert_eq!(known.and_then(|(_, entry)| entry.uid.as_deref()), uid.as_str(), "{what}");
    }
}

/// Somebody who only reports costs nothing: not for a label or an annotation of their own, either.
#[test]
fn what_is_only_reported_is_not_compared() {
    let place = Place::new(SETTINGS);
    place.site.want(&["edge"], 80);
    place.sync().exits(0).says("4 objects created");
    place.takes_note();
    let theirs = json!({"op": "add", "path": "/metadata/annotations/example.com~1theirs", "value": "1"});
    let report = json!({"op": "add", "path": "/status/observedGeneration", "value": 1});
    change(&place.site, "deployment/edge", "status", &json!([theirs, report]));
    let before = place.site.versions();
    place.sync().exits(0).says("no changes, 4 objects up to date");
    assert_eq!(place.dry_runs(), [""; 0]);
    assert_eq!(place.asked().len(), 5, "{:?}", place.asked());
    assert_eq!(place.site.versions(), before);
}
