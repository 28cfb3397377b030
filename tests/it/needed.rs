//! What pods and listeners name, on a real API server: what the cluster lacks is told, and holds nothing; what pods that
//! stay use is not deleted without a person.

use serde_json::{Value, json};

use crate::cluster::proxy::{Answer, Seen};
use crate::faults::Place;
use crate::program::Run;

const ALWAYS: usize = usize::MAX / 4;

/// A template with each kind of object that a pod can name, and one that it can do without.
fn template() -> Value {
    let optional = json!({"secretRef": {"name": "can-miss", "optional": true}});
    let spec = json!({
        "serviceAccountName": "runner", "priorityClassName": "urgent", "runtimeClassName": "sandbox",
        "imagePullSecrets": [{"name": "pull"}],
        "initContainers": [{"name": "first", "image": "i", "envFrom": [{"configMapRef": {"name": "settings"}}]}],
        "containers": [{"name": "app", "image": "i", "envFrom": [{"secretRef": {"name": "token"}}, optional]}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    });
    json!({"metadata": {"labels": {"app": "app"}}, "spec": spec})
}

fn workload(place: &Place, kind: &str, name: &str, spec: &Value) -> String {
    let version = if ["CronJob", "Job"].contains(&kind) { "batch/v1" } else { "apps/v1" };
    let metadata = json!({"name": name, "namespace": place.site.name});
    json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}).to_string()
}

fn deployment(place: &Place, name: &str, template: &Value) -> String {
    let selector = json!({"matchLabels": template["metadata"]["labels"]});
    workload(place, "Deployment", name, &json!({"selector": selector, "template": template}))
}

/// The requests for objects that something needs.
fn looks(place: &Place) -> Vec<String> {
    let ends = ["token", "can-miss", "pull", "settings", "data", "runner", "urgent", "sandbox", "cert"];
    let is_look = |seen: &&Seen| ends.iter().any(|end| seen.path.ends_with(&format!("/{end}")));
    let seen = place.proxy.seen();
    // Nothing but metadata is asked for.
    assert!(seen.iter().filter(is_look).all(|seen| seen.accept.contains("as=PartialObjectMetadata;")));
    let mut looks: Vec<String> =
        seen.iter().filter(is_look).map(|seen| format!("{} {}", seen.method, seen.path)).collect();
    looks.sort();
    looks
}

#[track_caller]
fn lacks(run: &Run, text: &str) {
    assert!(!run.out.contains(text) && !run.err.contains(text), "{}{}", run.out, run.err);
}

#[test]
fn what_a_change_needs_and_the_cluster_lacks_is_told_and_holds_nothing() {
    let place = Place::new("unclaimed: apply");
    let name = &place.site.name;
    place.site.spec("app", &deployment(&place, "app", &template()));
    let listener = json!({
        "name": "https", "port": 443, "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "cert"}]},
    });
    let gateway = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "edge", "namespace": name},
        "spec": {"gatewayClassName": "kgateway", "listeners": [listener]},
    });
    place.site.spec("edge", &gateway.to_string());
    let needs = [
        format!("Secret {name}/token"),
        format!("Secret {name}/pull"),
        format!("ConfigMap {name}/settings"),
        format!("PersistentVolumeClaim {name}/data"),
        format!("ServiceAccount {name}/runner"),
        "PriorityClass urgent".to_owned(),
        "RuntimeClass sandbox".to_owned(),
    ];
    let line =
        |id: &str| format!("warning: app.yaml:1: Deployment {name}/app: names {id}, which is not on the cluster");
    let certificate = format!("names Secret {name}/cert, which is not on the cluster, and nothing here makes it");
    for command in ["plan", "sync"] {
        let mut run = place.run(&[command]).exits(0);
        for id in &needs {
            run = run.says(&line(id)).says("[GW033]");
        }
        run = run.says("edge.yaml:1: ").says(&certificate).says("[GW010]");
        lacks(&run, "can-miss");
        assert_eq!(looks(&place).len(), 8, "{:?}", looks(&place));
        place.proxy.recovers();
    }

    // A round that changes nothing looks for nothing.
    lacks(&place.sync().exits(0).says("no changes"), "GW033");
    assert_eq!(looks(&place), [""; 0]);

    // What is there by now is not told.
    let secret = |name: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {}});
    place.site.create(&secret("token"));
    place.site.create(&secret("cert"));
    let mut other = template();
    other["metadata"]["annotations"] = json!({"changed": "yes"});
    place.site.spec("app", &deployment(&place, "app", &other));
    place.proxy.recovers();
    let run = place.run(&["plan"]).exits(0).says(&line(&needs[1]));
    lacks(&run, "/token");
    // The Gateway does not change, and nobody looks for what it needs.
    assert_eq!(looks(&place).len(), 7, "{:?}", looks(&place));
    // What this sync makes in the same round is not missing.
    place.site.spec("settings", &json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": name}, "data": {"a": "b"},
    }).to_string());
    let run = place.sync().exits(0).says(&line(&needs[1]));
    lacks(&run, "names ConfigMap");
}

#[test]
fn who_may_not_look_says_so_once_and_a_rule_that_is_off_asks_nothing() {
    let place = Place::new("unclaimed: apply");
    place.site.spec("app", &deployment(&place, "app", &template()));
    let is_secret = |seen: &Seen| seen.path.ends_with("/token") || seen.path.ends_with("/pull");
    place.proxy.answer(ALWAYS, is_secret, Answer::Refused(403, "not for you"));
    let name = &place.site.name;
    let run = place.run(&["plan"]).exits(0);
    let run = run.says(&format!("which are needed: Secret {name}/pull, Secret {name}/token\n"));
    lacks(&run, "not for you");
    lacks(&run, &format!("names Secret {name}/token"));
    place.sync().exits(0).says("1 object created");

    let config = place.site.desk.read("gatewright.yaml");
    let off = "rules: {GW033: {severity: off, reason: \"others make them\"}}\n";
    place.site.desk.write("gatewright.yaml", &format!("{config}{off}"));
    place.site.spec("other", &deployment(&place, "other", &template()));
    place.proxy.recovers();
    lacks(&place.run(&["plan"]).exits(0).says("create"), "GW033");
    assert_eq!(looks(&place), [""; 0]);
}

#[test]
fn what_is_late_says_what_its_pods_need() {
    let place = Place::new("unclaimed: apply, wait: {timeout: 1s}");
    place.site.spec("app", &deployment(&place, "app", &template()));
    let name = &place.site.name;
    let needed =
        format!("; ConfigMap {name}/settings, PersistentVolumeClaim {name}/data, Secret {name}/pull and 4 more");
    place.sync().exits(1).says("after 1s: ").says(&needed).says("are not there, which its pods need");
}

/// Writes an object without content, in a file of its name.
fn small(place: &Place, kind: &str, name: &str) {
    let mut object =
        json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": place.site.name}});
    if kind == "PersistentVolumeClaim" {
        object["spec"] = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    }
    place.site.spec(name, &object.to_string());
}

/// A template whose only container has all variables of a Secret.
fn with_secret(app: &str, secret: &str) -> Value {
    let container = json!({"name": "app", "image": "i", "envFrom": [{"secretRef": {"name": secret}}]});
    json!({"metadata": {"labels": {"app": app}}, "spec": {"containers": [container]}})
}

fn pod_questions(place: &Place) -> usize {
    place.proxy.seen().iter().filter(|seen| seen.path.contains("/pods?")).count()
}

#[test]
fn what_workloads_that_stay_need_is_not_deleted_without_a_person() {
    let place = Place::new("unclaimed: apply, prune: {confirm: {kinds: []}}");
    let name = place.site.name.clone();
    let kinds = [
        ("Secret", "token"),
        ("Secret", "pull"),
        ("ConfigMap", "settings"),
        ("PersistentVolumeClaim", "data"),
        ("ServiceAccount", "runner"),
    ];
    for (kind, object) in kinds {
        small(&place, kind, object);
    }
    let mut spec = template();
    for class in ["priorityClassName", "runtimeClassName"] {
        spec["spec"].as_object_mut().expect("it is a mapping").remove(class);
    }
    spec["spec"]["restartPolicy"] = json!("Never");
    let jobs = json!({"schedule": "0 4 * * *", "jobTemplate": {"spec": {"template": spec}}});
    place.site.spec("app", &workload(&place, "CronJob", "app", &jobs));
    place.sync().exits(0);
    place.proxy.recovers();
    for (kind, object) in kinds {
        place.site.drop(&[object]);
        let run = place.sync().exits(3).says(&format!("{kind} {name}/{object} is held by guard in-use"));
        run.says(&format!("1 object to delete, and {kind} {name}/{object} is used by CronJob {name}/app"));
        place.site.get(&format!("{kind}/{object}"));
        small(&place, kind, object);
        place.sync().exits(0);
    }

    // A person may agree.
    place.site.drop(&["settings"]);
    let run = place.sync().exits(3);
    place.run(&["approve", &crate::guards::token(&run)]).exits(0);
    place.sync().exits(0).says("1 object deleted");
    // What uses it no more in the same commit does not keep it, nor does what goes with it.
    place.site.spec("web", &deployment(&place, "web", &with_secret("web", "token")));
    place.site.drop(&["app", "data"]);
    place.sync().exits(0).says("2 objects deleted");
    place.site.drop(&["token"]);
    place.sync().exits(3).says(&format!("Secret {name}/token is used by Deployment {name}/web"));
    place.site.spec("web", &deployment(&place, "web", &with_secret("web", "other")));
    place.sync().exits(0).says("1 object deleted");
}

#[test]
fn what_listeners_that_stay_need_is_not_deleted_without_a_person() {
    let place = Place::new("unclaimed: apply, prune: {confirm: {kinds: []}}");
    let name = place.site.name.clone();
    let gateway = |certificate: &str| {
        let listener = json!({
            "name": "https", "port": 443, "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": certificate}]},
        });
        let spec = json!({"gatewayClassName": "kgateway", "listeners": [listener]});
        let metadata = json!({"name": "edge", "namespace": name});
        let version = "gateway.networking.k8s.io/v1";
        place.site.spec(
            "edge",
            &json!({
                "apiVersion": version, "kind": "Gateway", "metadata": metadata, "spec": spec,
            })
            .to_string(),
        );
    };
    // One of nearly the same name stays, and is another one.
    for certificate in ["cert-1", "cert-2"] {
        small(&place, "Secret", certificate);
    }
    gateway("cert-1");
    place.sync().exits(0);
    place.site.drop(&["cert-1"]);
    place.sync().exits(3).says(&format!("Secret {name}/cert-1 is used by Gateway {name}/edge"));
    place.site.get("secret/cert-1");
    // The severity of a rule is about what is said, and not about what is lost.
    let config = place.site.desk.read("gatewright.yaml");
    let off = "rules: {GW010: {severity: off, reason: \"others make them\"}}\n";
    place.site.desk.write("gatewright.yaml", &format!("{config}{off}"));
    place.sync().exits(3).says(&format!("Secret {name}/cert-1 is used by Gateway {name}/edge"));
    // What cannot be read may name it, and what was made of it stays.
    gateway("cert-2");
    let text = place.site.desk.read("specs/edge.yaml");
    place.site.desk.write("specs/edge.yaml", &text.replace("\"port\":443", "\"port\":\"x\""));
    place.sync().exits(1).says(&format!("Secret {name}/cert-1 is used by Gateway {name}/edge"));
    gateway("cert-2");
    place.sync().exits(0).says("1 object deleted");
}

/// Operators make pods over several objects of theirs.
#[test]
fn pods_of_what_goes_are_known_however_many_objects_stand_between() {
    let place = Place::new("unclaimed: apply, prune: {confirm: {kinds: []}}");
    let name = place.site.name.clone();
    for file in ["token", "stays"] {
        small(&place, "Secret", file);
    }
    place.site.spec("web", &deployment(&place, "web", &with_secret("web", "token")));
    place.sync().exits(0);
    let owned = |kind: &str, name: &str, (version, of_kind, of): (&str, &str, &str), more: &Value| {
        let uid = place.site.get(&format!("{of_kind}/{of}"))["metadata"]["uid"].clone();
        let owner = json!({"apiVersion": version, "kind": of_kind, "name": of, "uid": uid, "controller": true});
        let metadata = json!({"name": name, "ownerReferences": [owner]});
        let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": metadata});
        object.as_object_mut().expect("it is one").extend(more.as_object().cloned().unwrap_or_default());
        place.site.create(&object);
    };
    owned("ConfigMap", "a", ("apps/v1", "Deployment", "web"), &json!({}));
    for (name, of) in [("b", "a"), ("c", "b"), ("d", "c")] {
        owned("ConfigMap", name, ("v1", "ConfigMap", of), &json!({}));
    }
    owned("Pod", "worker", ("v1", "ConfigMap", "d"), &json!({"spec": with_secret("x", "token")["spec"]}));
    place.site.drop(&["token"]);
    place.sync().exits(3).says(&format!("Secret {name}/token is used by Deployment {name}/web"));
    place.site.drop(&["web"]);
    place.sync().exits(0).says("2 objects deleted");
}

/// Whoever writes the template of a pod writes names that nobody has checked.
#[test]
fn a_name_that_no_object_can_have_is_not_there_and_asks_for_nothing_else() {
    let place = Place::new("unclaimed: apply");
    let name = &place.site.name;
    // API servers check the names in variables, and not those in volumes.
    let names = ["../../kube-system/secrets/x", "x?watch=true", "x#", "%2e%2e"];
    let volume =
        |(index, secret): (usize, &&str)| json!({"name": format!("v-{index}"), "secret": {"secretName": secret}});
    let volumes: Vec<Value> = names.iter().enumerate().map(volume).collect();
    let spec = json!({"containers": [{"name": "app", "image": "i"}], "volumes": volumes});
    let template = json!({"metadata": {"labels": {"app": "app"}}, "spec": spec});
    place.site.spec("app", &deployment(&place, "app", &template));
    let mut run = place.run(&["plan"]).exits(0);
    for secret in names {
        run = run.says(&format!("names Secret {name}/{secret}, which is not on the cluster"));
    }
    lacks(&run, "the credentials do not show");
    let paths: Vec<String> = place.proxy.seen().into_iter().map(|seen| seen.path).collect();
    assert!(!paths.iter().any(|path| path.contains("/secrets")), "{paths:?}");
}

/// A server that answers nothing but "later" is not asked a hundred times.
#[test]
fn who_is_told_to_come_later_stops_looking() {
    let place = Place::new("unclaimed: apply");
    for index in 0..30 {
        let app = format!("app-{index}");
        place.site.spec(&app, &deployment(&place, &app, &with_secret(&app, &app)));
    }
    let is_look = |seen: &Seen| seen.path.contains("/secrets/app-");
    place.proxy.answer(ALWAYS, is_look, Answer::Refused(429, "later"));
    place.run(&["plan"]).exits(0).says("30 objects to create");
    let asked: std::collections::BTreeSet<String> =
        place.proxy.seen().into_iter().filter(|seen| is_look(seen)).map(|seen| seen.path).collect();
    assert!((1..=16).contains(&asked.len()), "{asked:?}");
}

#[test]
fn what_is_held_keeps_what_it_needs() {
    let place = Place::new("unclaimed: apply, prune: {confirm: {kinds: [Deployment]}}");
    let name = place.site.name.clone();
    small(&place, "Secret", "token");
    place.site.spec("web", &deployment(&place, "web", &with_secret("web", "token")));
    place.sync().exits(0);
    place.site.drop(&["token", "web"]);
    let run = place.sync().exits(3).says("held by guard confirm");
    let run = run.says(&format!("Secret {name}/token is used by Deployment {name}/web"));
    place.site.get("secret/token");
    lacks(&run, "deleted");
}

#[test]
fn what_pods_of_others_need_is_not_deleted_without_a_person() {
    let place = Place::new("unclaimed: apply");
    let name = place.site.name.clone();
    small(&place, "Secret", "token");
    place.site.want(&["edge", "other"], 80);
    place.sync().exits(0);
    assert_eq!(pod_questions(&place), 0);
    let pod = |name: &str, labels: &Value, spec: &Value| {
        let metadata = json!({"name": name, "labels": labels});
        place.site.create(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}));
    };
    pod("theirs", &json!({"app": "theirs"}), &with_secret("theirs", "token")["spec"]);
    // A pod of what goes does not keep what goes with it.
    let selector = place.site.get("deployment/edge")["spec"]["selector"]["matchLabels"].clone();
    let account = json!({"serviceAccountName": "edge", "containers": [{"name": "envoy", "image": "i"}]});
    pod("edge-1", &selector, &account);
    place.site.drop(&["token", "edge"]);
    place.proxy.recovers();
    let run = place.sync().exits(3).says("4 objects deleted");
    let run = run.says(&format!("1 object to delete, and Secret {name}/token is used by Pod {name}/theirs"));
    lacks(&run, "Pod edge-1");
    assert_eq!(place.site.left_of("edge"), [""; 0]);
    place.site.get("secret/token");
    assert_eq!(pod_questions(&place), 1);

    // A pod that has ended needs nothing.
    let ended = json!({"status": {"phase": "Succeeded"}}).to_string();
    place.site.kubectl(&["patch", "pod", "theirs", "--subresource=status", "--type=merge", "-p", &ended]);
    place.sync().exits(0).says("1 object deleted");

    // Who may not list pods deletes as ever.
    small(&place, "Secret", "token");
    place.sync().exits(0);
    pod("again", &json!({"app": "theirs"}), &with_secret("theirs", "token")["spec"]);
    place.site.drop(&["token"]);
    place.proxy.recovers();
    place.proxy.answer(ALWAYS, |seen| seen.path.contains("/pods?"), Answer::Refused(403, "not for you"));
    lacks(&place.sync().exits(0).says("1 object deleted"), "not for you");
}
