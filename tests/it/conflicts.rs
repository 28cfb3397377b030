//! Fields that others write to, on a real API server: every test ends with a plan that has nothing to do.

mod amounts;
mod fights;
mod meddler;

use serde_json::{Value, json};

use crate::cluster::shared;
use crate::commands::obeys_the_schema;
use crate::ownership::site::Site;
use crate::program::Run;

/// A Deployment of two containers, in the words of a person.
fn deployment(replicas: Option<u32>, cpu: &str) -> Value {
    let labels = json!({"app": "edge"});
    let mut body = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "edge"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [
                {
                    "name": "envoy", "image": "envoy:1", "env": [{"name": "A", "value": "1"}],
                    "resources": {"limits": {"cpu": cpu, "memory": "1Gi"}},
                },
                {"name": "sidecar", "image": "sidecar:1"},
            ]}},
        },
    });
    if let Some(replicas) = replicas {
        body["spec"]["replicas"] = json!(replicas);
    }
    body
}

/// A namespace with the Deployment in it, applied.
fn applied(settings: &str, deployment: &Value) -> Site {
    let site = Site::new("");
    configure(&site, settings);
    want(&site, deployment);
    site.sync().exits(0);
    is_decided(&site);
    site
}

fn configure(site: &Site, settings: &str) {
    site.configure(&site.name, &format!("unclaimed: apply, {settings}"));
}

fn want(site: &Site, object: &Value) {
    let mut object = object.clone();
    object["metadata"]["namespace"] = site.name.clone().into();
    let name = format!("{}-{}", object["kind"], object["metadata"]["name"]).replace('"', "");
    site.spec(&name, &object.to_string());
}

/// The next round has nothing to do, and the server counts nothing.
fn is_decided(site: &Site) -> Run {
    let before = site.versions();
    let run = site.sync().exits(0).says("no changes");
    assert_eq!(site.versions(), before);
    run
}

fn live(site: &Site) -> Value {
    site.get("deployment/edge")
}

fn replicas(site: &Site) -> Value {
    live(site)["spec"]["replicas"].clone()
}

/// The managers that own fields, with the operation, but for statuses.
fn managers(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().expect("every object has managers");
    let entries = entries.iter().filter(|entry| entry["subresource"] != "status");
    entries.map(|entry| format!("{} {}", entry["manager"], entry["operation"]).replace('"', "")).collect()
}

/// Whether a field is ours.
fn is_ours(object: &Value, field: &str) -> bool {
    let entries = object["metadata"]["managedFields"].as_array().expect("every object has managers");
    let ours = entries.iter().find(|entry| entry["manager"] == "gatewright").expect("something is ours");
    ours.pointer(&format!("/fieldsV1/{field}")).is_some()
}

/// Writes as a controller does that uses the scale subresource, as autoscalers do.
fn scale(site: &Site, manager: &str, replicas: u32) {
    let patch = json!({"spec": {"replicas": replicas}}).to_string();
    let manager = format!("--field-manager={manager}");
    site.kubectl(&["patch", "deployment", "edge", "--subresource=scale", "--type=merge", "-p", &patch, &manager]);
}

/// Applies a part of the Deployment as another controller.
fn apply(site: &Site, manager: &str, spec: &Value) {
    let part = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "edge"}, "spec": spec});
    let (namespace, manager) = (site.name.as_str(), format!("--field-manager={manager}"));
    let arguments =
        ["-n", namespace, "apply", "--server-side", "--force-conflicts", "--validate=false", &manager, "-f", "-"];
    site.server.kubectl_stdin(&arguments, &part.to_string());
}

/// The fields that the next round would settle, as the JSON report has them: verdict and path.
fn decided(site: &Site) -> Vec<(String, String)> {
    let run = site.run(&["plan", "--format", "json"]);
    let report: Value = serde_json::from_str(&run.out).expect("it is JSON");
    obeys_the_schema(&report);
    let steps = report["clusters"]["c"]["steps"].as_array().expect("a report has steps").clone();
    let fields = steps.iter().filter_map(|step| step["fields"].as_array()).flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    fields.map(|field| (text(&field["verdict"]), text(&field["path"]))).collect()
}

#[test]
fn what_people_have_added_is_removed() {
    let site = applied("", &deployment(Some(2), "1"));
    let before = live(&site);
    let patch = json!({
        "metadata": {"labels": {"theirs": "1"}, "annotations": {"theirs": "2"}},
        "spec": {"template": {
            "metadata": {"labels": {"pod": "3"}},
            "spec": {
                "hostNetwork": true, "nodeSelector": {"disk": "ssd"},
                "containers": [{"name": "envoy", "env": [{"name": "THEIRS", "value": "1"}]}, {"name": "x", "image": "x"}],
            },
        }},
    });
    site.kubectl(&["patch", "deployment", "edge", "--type=strategic", "-p", &patch.to_string()]);
    assert_eq!(managers(&live(&site)), ["gatewright Apply", "kubectl-patch Update"]);

    let expected = [
        "metadata.labels.theirs: \"1\" -> nothing  (last written by kubectl-patch at ",
        "metadata.annotations: {\"theirs\":\"2\"} -> nothing",
        "spec.template.metadata.labels.pod: \"3\" -> nothing",
        "spec.template.spec.hostNetwork: true -> nothing",
        "spec.template.spec.nodeSelector: {\"disk\":\"ssd\"} -> nothing",
        "containers[envoy].env[THEIRS]: {\"name\":\"THEIRS\",\"value\":\"1\"} -> nothing",
        "containers[x]: {",
        "; removed)",
    ];
    let mut plan = site.run(&["plan"]).exits(0).says("1 object to update");
    for line in expected {
        plan = plan.says(line);
    }
    assert!(decided(&site).contains(&("removed".to_owned(), "spec.template.spec.hostNetwork".to_owned())));
    site.sync().exits(0).says("1 object updated");
    let after = live(&site);
    assert_eq!(managers(&after), ["gatewright Apply"]);
    for part in ["/spec", "/metadata/labels", "/metadata/annotations"] {
        assert_eq!(after.pointer(part), before.pointer(part), "{part}");
    }
    is_decided(&site);

    // What a controller adds is none of our business.
    let patch = json!({"metadata": {"annotations": {"controller": "1"}}}).to_string();
    site.kubectl(&["patch", "deployment", "edge", "--type=merge", "-p", &patch, "--field-manager=some-controller"]);
    is_decided(&site);
    assert_eq!(live(&site)["metadata"]["annotations"]["controller"], "1");
}

#[test]
fn a_port_that_was_renumbered_by_hand_is_as_it_was() {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "edge"},
        "spec": {"selector": {"app": "edge"}, "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}]},
    });
    let site = applied("", &service);
    let before = site.get("service/edge");
    let patch = json!([{"op": "replace", "path": "/spec/ports/0/port", "value": 81}]).to_string();
    site.kubectl(&["patch", "service", "edge", "--type=json", "-p", &patch]);
    site.run(&["plan"]).exits(0).says("spec.ports[http].port: 81 -> 80  (last written by kubectl-patch");
    site.sync().exits(0).says("1 object updated");
    assert_eq!(site.get("service/edge")["spec"], before["spec"]);
    is_decided(&site);
}

#[test]
fn a_restart_by_hand_is_left_alone() {
    let site = applied("", &deployment(Some(2), "1"));
    site.kubectl(&["rollout", "restart", "deployment/edge"]);
    let restarted = |object: &Value| object["spec"]["template"]["metadata"]["annotations"].clone();
    let before = live(&site);
    assert!(restarted(&before).to_string().contains("restartedAt"));
    is_decided(&site);

    // Also where something else of that hand goes.
    let patch = json!({"spec": {"paused": true}}).to_string();
    site.kubectl(&["patch", "deployment", "edge", "--type=merge", "-p", &patch, "--field-manager=kubectl-rollout"]);
    site.sync().exits(0).says("spec.paused: true -> nothing");
    let after = live(&site);
    assert_eq!((restarted(&after), after["spec"].get("paused")), (restarted(&before), None));
    is_decided(&site);
}

#[test]
fn a_scale_by_hand_is_taken_back_or_left_as_the_rules_say() {
    let site = applied("", &deployment(Some(2), "1"));
    site.kubectl(&["scale", "deployment/edge", "--replicas=5"]);
    site.run(&["plan"]).exits(0).says("spec.replicas: 5 -> 2  (last written by kubectl").says("; taken)");
    site.sync().exits(0).says("1 object updated");
    assert_eq!(replicas(&site), 2);
    is_decided(&site);

    configure(&site, "conflicts: [{manager: 'kubectl*', kinds: [Deployment], paths: [spec.replicas], policy: yield}]");
    site.kubectl(&["scale", "deployment/edge", "--replicas=5"]);
    is_decided(&site).says("spec.replicas: left to kubectl; ours would be 2");
    assert_eq!(decided(&site), [("yielded".to_owned(), "spec.replicas".to_owned())]);
    // The rest of the object is still ours.
    want(&site, &deployment(Some(3), "2"));
    site.sync().exits(0).says("limits.cpu: \"1\" -> \"2\"").says("spec.replicas: left to kubectl; ours would be 3");
    assert_eq!(replicas(&site), 5);
    is_decided(&site);
}

#[test]
fn an_autoscaler_and_a_sync_do_not_fight() {
    let site = applied("", &deployment(Some(2), "1"));
    scale(&site, "kube-controller-manager", 5);
    is_decided(&site).says("spec.replicas: left to kube-controller-manager; ours would be 2");
    assert_eq!(replicas(&site), 5);
    want(&site, &deployment(Some(3), "1"));
    is_decided(&site);
    scale(&site, "kube-controller-manager", 7);
    want(&site, &deployment(None, "2"));
    site.sync().exits(0).says("limits.cpu");
    assert_eq!(replicas(&site), 7);
    is_decided(&site);
}

#[test]
fn a_real_autoscaler_has_the_last_word() {
    let site = Site::on(shared(), "");
    configure(&site, "");
    want(&site, &deployment(Some(2), "1"));
    site.sync().exits(0);
    site.kubectl(&["autoscale", "deployment", "edge", "--min=4", "--max=9"]);
    site.kubectl(&["wait", "deployment/edge", "--for=jsonpath={.spec.replicas}=4", "--timeout=120s"]);
    let line = "spec.replicas: left to kube-controller-manager; ours would be 2";
    site.sync().exits(0).says(line).says("no changes");
    assert_eq!(replicas(&site), 4);
    want(&site, &deployment(None, "2"));
    site.sync().exits(0).says("limits.cpu: \"1\" -> \"2\"");
    assert_eq!(replicas(&site), 4);
    site.run(&["plan"]).exits(0).says("no changes");
}

#[test]
fn what_the_source_has_an_autoscaler_for_is_handed_over_to_it() {
    let site = applied("", &deployment(Some(2), "1"));
    let scaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "edge"},
        "spec": {
            "maxReplicas": 9, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "edge"},
        },
    });
    want(&site, &scaler);
    site.sync().exits(0).says("1 object created, 1 unchanged");
    assert!(is_ours(&live(&site), "f:spec/f:replicas"), "as long as nobody wants another value");
    is_decided(&site);

    // A new number in the source moves nothing, and from now on it is not ours.
    want(&site, &deployment(Some(4), "1"));
    let name = format!("HorizontalPodAutoscaler {}/edge", site.name);
    let line = format!("spec.replicas: handed over to {name}; ours would be 4");
    site.run(&["plan"]).exits(0).says(&line).says("1 object to update");
    assert_eq!(replicas(&site), 2);
    site.sync().exits(0).says(&line);
    let after = live(&site);
    assert_eq!((&after["spec"]["replicas"], is_ours(&after, "f:spec/f:replicas")), (&json!(2), false));
    is_decided(&site).says(&format!("spec.replicas: left to {name}; ours would be 4"));

    // Even if a person is the one who has scaled.
    site.kubectl(&["scale", "deployment/edge", "--replicas=6"]);
    is_decided(&site);
    assert_eq!(replicas(&site), 6);
}

#[test]
fn replicas_that_the_source_says_no_more_keep_their_value() {
    let site = applied("", &deployment(Some(5), "1"));
    assert!(is_ours(&live(&site), "f:spec/f:replicas"));
    want(&site, &deployment(None, "1"));
    let line = "spec.replicas: not ours any more, and keeps its value";
    site.run(&["plan"]).exits(0).says(line).says("1 object to update");
    assert_eq!(decided(&site), [("handed-over".to_owned(), "spec.replicas".to_owned())]);
    assert_eq!(replicas(&site), 5);
    let generation = live(&site)["metadata"]["generation"].clone();
    site.sync().exits(0).says(line);
    let after = live(&site);
    assert_eq!((&after["spec"]["replicas"], is_ours(&after, "f:spec/f:replicas")), (&json!(5), false));
    assert_eq!(after["metadata"]["generation"], generation, "nothing was rolled out");
    is_decided(&site);
    site.kubectl(&["scale", "deployment/edge", "--replicas=7"]);
    is_decided(&site);
    assert_eq!(replicas(&site), 7);

    // Whoever says a number again has it.
    want(&site, &deployment(Some(3), "1"));
    site.sync().exits(0).says("spec.replicas: 7 -> 3");
    is_decided(&site);
}

#[test]
fn a_field_that_we_share_with_a_controller_is_handed_over_when_we_disagree() {
    let site = applied("", &deployment(Some(5), "1"));
    apply(&site, "scaler", &json!({"replicas": 5}));
    is_decided(&site);
    assert!(is_ours(&live(&site), "f:spec/f:replicas"), "as long as we agree");
    want(&site, &deployment(Some(3), "1"));
    let line = "spec.replicas: handed over to scaler; ours would be 3";
    site.run(&["plan"]).exits(0).says(line);
    assert_eq!(replicas(&site), 5);
    site.sync().exits(0).says(line);
    let after = live(&site);
    assert_eq!((&after["spec"]["replicas"], is_ours(&after, "f:spec/f:replicas")), (&json!(5), false));
    is_decided(&site).says("spec.replicas: left to scaler; ours would be 3");
    apply(&site, "scaler", &json!({"replicas": 8}));
    is_decided(&site);
    assert_eq!(replicas(&site), 8);
}

#[test]
fn an_ignored_field_stays_and_its_neighbors_do_not() {
    let ignore = "ignore: [{kind: Deployment, path: 'spec.template.spec.containers[name=envoy].resources.limits.cpu'}]";
    let site = applied(ignore, &deployment(Some(2), "1"));
    let envoy = |object: &Value| object["spec"]["template"]["spec"]["containers"][0].clone();
    let patch = json!([
        {"op": "replace", "path": "/spec/template/spec/containers/0/resources/limits/cpu", "value": "3"},
        {"op": "replace", "path": "/spec/template/spec/containers/0/resources/limits/memory", "value": "3Gi"},
        {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "envoy:3"},
        {"op": "replace", "path": "/spec/template/spec/containers/1/image", "value": "sidecar:3"},
    ]);
    site.kubectl(&["patch", "deployment", "edge", "--type=json", "-p", &patch.to_string()]);
    let ignored = "spec.template.spec.containers[envoy].resources.limits.cpu";
    let line = format!("{ignored}: ignored, kubectl-patch has set it; ours would be \"1\"");
    let plan = site.run(&["plan"]).exits(0).says(&line).says("limits.memory: \"3Gi\" -> \"1Gi\"");
    assert!(!plan.out.contains(&format!("{ignored}: \"")), "{}", plan.out);
    site.sync().exits(0).says(&line);
    let now = live(&site);
    assert_eq!(envoy(&now)["resources"]["limits"], json!({"cpu": "3", "memory": "1Gi"}));
    assert_eq!(envoy(&now)["image"], "envoy:1");
    assert_eq!(now["spec"]["template"]["spec"]["containers"][1]["image"], "sidecar:1");
    is_decided(&site).says(&line);

    // What the source says of it later changes nothing either, and its neighbors follow.
    let mut wanted = deployment(Some(2), "2");
    wanted["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"] = json!("2Gi");
    want(&site, &wanted);
    site.sync().exits(0).says("limits.memory: \"1Gi\" -> \"2Gi\"");
    assert_eq!(envoy(&live(&site))["resources"]["limits"], json!({"cpu": "3", "memory": "2Gi"}));
    is_decided(&site);
}

#[test]
fn an_ignored_field_that_only_we_have_keeps_its_value() {
    let ignore = "ignore: [{kind: '*', path: spec.template.spec.containers.resources.limits.cpu}]";
    let site = applied(ignore, &deployment(Some(2), "1"));
    want(&site, &deployment(Some(2), "4"));
    site.sync().exits(0).says("resources.limits.cpu: ignored; ours would be \"4\"");
    let now = live(&site);
    let limits = &now["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"];
    assert_eq!(limits, &json!({"cpu": "1", "memory": "1Gi"}));
    is_decided(&site);
}

#[test]
fn a_conflict_that_is_for_people_holds_its_unit_and_names_the_manager() {
    let site =
        applied("conflicts: [{manager: scaler, paths: [spec.replicas], policy: fail}]", &deployment(Some(2), "1"));
    apply(&site, "scaler", &json!({"replicas": 5}));
    want(&site, &deployment(Some(2), "2"));
    want(&site, &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}, "data": {"a": "1"}}));
    let before = live(&site);
    let refusal = "conflict: \"scaler\" has set spec.replicas to 5, ours would be 2";
    let json = site.run(&["plan", "--format", "json"]).exits(3);
    obeys_the_schema(&serde_json::from_str(&json.out).expect("it is JSON"));
    site.sync().exits(3).says(refusal).says("1 object created");
    assert_eq!(live(&site), before);

    want(&site, &deployment(Some(5), "2"));
    site.sync().exits(0).says("limits.cpu: \"1\" -> \"2\"");
    is_decided(&site);
}

#[test]
fn leftovers_of_client_side_applies_are_migrated() {
    let site = Site::new("");
    configure(&site, "adopt: {policy: if-unowned}");
    let mut theirs = deployment(Some(2), "1");
    theirs["metadata"]["labels"] = json!({"old": "1"});
    theirs["spec"]["template"]["spec"]["containers"][0]["env"] = json!([{"name": "A", "value": "1"}, {"name": "B"}]);
    let secret = |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "data": {"token": value}});
    for object in [&theirs, &secret("aHVudGVyMg==")] {
        let arguments = ["-n", site.name.as_str(), "apply", "-f", "-"];
        site.server.kubectl_stdin(&arguments, &object.to_string());
    }
    assert_eq!(managers(&live(&site)), ["kubectl-client-side-apply Update"]);
    want(&site, &theirs);
    want(&site, &secret("aHVudGVyMw=="));
    let line = "the fields of kubectl-client-side-apply become ours, and what is not wanted of them goes";
    let plan = site.run(&["plan"]).exits(0).says(line).says("last-applied-configuration\"]: ").says("to adopt");
    assert!(!plan.out.contains("aHVudGVy"), "{}", plan.out);
    site.sync().exits(0).says(line).says("2 objects adopted");
    let now = live(&site);
    assert_eq!(managers(&now), ["gatewright Apply"]);
    assert!(!now.to_string().contains("last-applied-configuration"));
    assert_eq!(site.get("secret/key")["data"]["token"], "aHVudGVyMw==");
    is_decided(&site);

    // What is dropped from the source now is gone.
    want(&site, &deployment(Some(2), "1"));
    site.sync().exits(0).says("metadata.labels.old: \"1\" -> nothing").says("env[B]: {\"name\":\"B\"} -> nothing");
    let now = live(&site);
    let env = &now["spec"]["template"]["spec"]["containers"][0]["env"];
    assert_eq!((now["metadata"]["labels"].get("old"), env), (None, &json!([{"name": "A", "value": "1"}])));
    is_decided(&site);

    // Somebody who applies in the old way once more leaves the same behind.
    let text = deployment(Some(2), "1").to_string();
    site.server.kubectl_stdin(&["-n", &site.name, "apply", "-f", "-"], &text);
    site.sync().exits(0).says(line);
    assert!(!live(&site).to_string().contains("last-applied-configuration"));
    is_decided(&site);
}

#[test]
fn what_people_have_set_in_a_secret_is_named_and_not_shown() {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "data": {"token": "aHVudGVyMg=="},
    });
    let yields = "conflicts: [{manager: vault, policy: yield}, {manager: other, policy: fail}]";
    let site = applied(yields, &secret);
    let set = |manager: &str, value: &str| {
        let patch = json!({"data": {"token": value}}).to_string();
        let manager = format!("--field-manager={manager}");
        site.kubectl(&["patch", "secret", "key", "--type=merge", "-p", &patch, &manager]);
    };
    set("vault", "aHVudGVyNA==");
    let run = is_decided(&site).says("data.token: left to vault; ours would be \"*** (");
    set("other", "aHVudGVyNQ==");
    let refused = site.sync().exits(3).says("\"other\" has set data.token to \"*** (");
    assert!(!run.out.contains("aHVudGVy") && !refused.out.contains("aHVudGVy"), "{}{}", run.out, refused.out);
}
