//! Taking data planes over from kgateway's own deployer, with a stand-in for it on a real API server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gatewright::basics::clock::SystemClock;
use gatewright::cluster::Cluster;
use gatewright::cluster::kube::KubeCluster;
use gatewright::cluster::kubeconfig::{Settings, StandardLookup};
use gatewright::report::ClusterState;
use gatewright_engine::diff::differences;
use gatewright_engine::mask::Masker;
use gatewright_engine::object::ObjectId;
use gatewright_engine::yaml;
use serde_json::{Value, json};

use crate::cluster::ApiServer;
use crate::cluster::proxy::{Answer, Proxy, Seen};
use crate::commands::obeys_the_schema;
use crate::guards::token;
use crate::ownership::site::Site;
use crate::rounds::installation::Installation;
use crate::rounds::mortal::{Death, Effect, End, Mortal, Side};
use crate::specs::control_plane::{
    KIND, MANAGER, Reference, VERSION, accept, deploy, document, gateway, generation_of, server, while_it_watches,
};
use crate::support::kgateway::{Controller, Release};

const APPLY: &str = "specs: apply, wait: {timeout: 60s}";
const IMPATIENT: &str = "specs: apply, wait: {timeout: 1s}";

/// A Gateway that kgateway has deployed, and that our source has too.
fn deployed(settings: &str) -> Site {
    let site = Site::on(server(), "");
    configure(&site, settings);
    let edge = gateway(&site.name, "edge", 8080);
    site.create(&edge);
    accept(&site, "edge", generation_of(&site, "gateway/edge"));
    site.spec("edge", &edge.to_string());
    deploy(&site, "edge", &rendered(&site));
    site
}

/// The same, deployed by a controller that is at work.
fn provisioned(settings: &str) -> (Site, Controller) {
    let site = Site::on(server(), "");
    configure(&site, settings);
    let edge = gateway(&site.name, "edge", 8080);
    site.create(&edge);
    site.spec("edge", &edge.to_string());
    let controller = Controller::start(server(), Release::kgateway("v2.4.0"), &[&site.name]);
    site.kubectl(&["rollout", "status", "deployment/edge", "--timeout=60s"]);
    controller.settle();
    (site, controller)
}

/// The label that says who manages an object is to be the deployer's, so that nothing differs.
fn configure(site: &Site, settings: &str) {
    site.configure(&site.name, settings);
    let config = site.desk.read("gatewright.yaml");
    site.desk.write("gatewright.yaml", &format!("{config}packs: {{kgateway: {{managedBy: kgateway}}}}\n"));
}

/// The objects that we render, which are those that kgateway renders.
fn rendered(site: &Site) -> Vec<Value> {
    let rendered = site.run(&["render", "specs"]).exits(0);
    yaml::parse_values(&rendered.out).expect("the output is YAML")
}

/// All that is held or may move when something is adopted.
fn states(site: &Site) -> BTreeMap<String, Value> {
    let kinds = ["serviceaccount", "configmap", "service", "deployment"];
    kinds.map(|kind| (kind.to_owned(), site.get(&format!("{kind}/edge")))).into()
}

/// The managers that apply fields of an object.
fn appliers(object: &Value) -> Vec<&str> {
    let entries = object["metadata"]["managedFields"].as_array().expect("every object has managers");
    entries.iter().filter(|entry| entry["operation"] == "Apply").filter_map(|entry| entry["manager"].as_str()).collect()
}

#[test]
fn what_a_live_deployer_holds_is_not_touched() {
    let site = deployed("");
    // Its controllers write to it until it is rolled out, and once more to say so.
    site.kubectl(&["rollout", "status", "deployment/edge", "--timeout=60s"]);
    let said = r#"jsonpath={.status.conditions[?(@.type=="Progressing")].reason}=NewReplicaSetAvailable"#;
    site.kubectl(&["wait", "deployment/edge", "--timeout=60s", &format!("--for={said}")]);
    let versions = site.versions();
    let gateway = site.get("gateway/edge");
    let refusal = format!("live deployer: {MANAGER} provisions it for Gateway {}/edge; ", site.name);
    let hint = "set specs: apply for the sync, which makes it self-managed, and run `gatewright adopt`";
    site.run(&["plan"]).exits(3).says(&format!("4 objects: {refusal}{hint}")).says("4 objects refused");
    site.sync().exits(3).says(&refusal);
    site.run(&["adopt"]).exits(3).says(hint);
    let json = site.run(&["plan", "--format", "json"]).exits(3);
    obeys_the_schema(&serde_json::from_str(&json.out).expect("it is JSON"));
    configure(&site, "adopt: {policy: always, deployer: true}");
    site.sync().exits(3).says(hint);

    configure(&site, IMPATIENT);
    site.run(&["plan"]).exits(3).says(&format!("{refusal}`gatewright adopt` takes it over"));
    site.sync().exits(3).says(&refusal).says("withheld");
    assert_eq!((site.versions(), site.get("gateway/edge")), (versions, gateway));

    // Another owner beside the Gateway is nobody whom anyone has asked.
    let mut service = site.get("service/edge");
    let uid = site.get("configmap/edge")["metadata"]["uid"].clone();
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "edge", "uid": uid});
    service["metadata"]["ownerReferences"].as_array_mut().expect("it has an owner").push(other);
    let patch = json!({"metadata": {"ownerReferences": service["metadata"]["ownerReferences"]}}).to_string();
    site.kubectl(&["patch", "service", "edge", "--type=merge", "-p", &patch]);
    let versions = site.versions();
    site.run(&["adopt"]).exits(3).says("foreign: it belongs to ConfigMap \"edge\", its ownerReference");
    assert_eq!(site.versions(), versions);
}

#[test]
fn a_control_plane_that_does_not_answer_loses_nothing() {
    let (site, mut controller) = provisioned(IMPATIENT);
    controller.stop();
    let before = site.versions();
    let run = site.run(&["adopt"]).exits(1);
    let run = run.says(&format!("no control plane has accepted Gateway {}/edge as self-managed within 1s", site.name));
    run.says("; nothing more was adopted").says(&format!("`kubectl describe gateway edge -n {}`", site.name));
    assert_eq!(site.versions(), before);
    assert_eq!(site.get("gateway/edge")["spec"]["infrastructure"]["parametersRef"]["name"], "edge-self-managed");
    assert_eq!(appliers(&site.get("deployment/edge")), [MANAGER]);

    // Without leave to adopt nothing moves, and with it the next round goes on.
    site.sync().exits(3).says("live deployer");
    controller.restart();
    configure(&site, APPLY);
    site.run(&["adopt"]).exits(0).says("4 objects adopted");
}

/// More Gateways than are worked on at once share one deadline: the others are not begun when it is over.
#[test]
fn gateways_that_nobody_accepts_are_one_finding() {
    let site = Site::on(server(), "");
    configure(&site, IMPATIENT);
    let names: Vec<String> = (10..23).map(|number| format!("g{number}")).collect();
    for name in &names {
        let gateway = gateway(&site.name, name, 8080);
        site.create(&gateway);
        accept(&site, name, generation_of(&site, &format!("gateway/{name}")));
        site.spec(name, &gateway.to_string());
    }
    let all = rendered(&site);
    for name in &names {
        let own: Vec<Value> = all.iter().filter(|object| object["metadata"]["name"] == *name).cloned().collect();
        deploy(&site, name, &own);
    }
    let run = site.run(&["adopt"]).exits(1);
    let first: Vec<String> = names[..8].iter().map(|name| format!("Gateway {}/{name}", site.name)).collect();
    let run = run.says(&format!("accepted {} and 5 more as self-managed within 1s", first.join(", ")));
    assert_eq!(run.out.matches("accepted").count(), 1, "{}", run.out);
    assert!(!run.out.contains("not tried"), "{}", run.out);
    for name in &names {
        assert_eq!(appliers(&site.get(&format!("deployment/{name}"))), [MANAGER]);
    }
    let told = names.iter().filter(|name| {
        let gateway = site.get(&format!("gateway/{name}"));
        gateway["spec"]["infrastructure"]["parametersRef"].is_object()
    });
    assert!(told.count() < names.len(), "whoever is too late does not begin");

    let report: Value = serde_json::from_str(&site.run(&["report", "show", "latest", "--format", "json"]).exits(0).out)
        .expect("it is JSON");
    obeys_the_schema(&report);
    let cluster = &report["clusters"]["c"];
    assert_eq!(cluster["unaccepted"]["units"].as_array().map(Vec::len), Some(names.len()));
    assert_eq!((&cluster["trend"]["new"], &cluster["trend"]["still"]), (&json!(1), &json!(0)), "{cluster}");
    let junit = site.run(&["report", "show", "latest", "--format", "junit"]).exits(0).says(" failures=\"1\"");
    junit.says("name=\"accepted by a control plane\"><failure type=\"unaccepted\" message=\"no control plane has");
}

#[test]
fn a_data_plane_is_adopted_without_a_restart() {
    let site = deployed(APPLY);
    site.kubectl(&["rollout", "status", "deployment/edge", "--timeout=60s"]);
    let pods = || site.kubectl(&["get", "pods", "-o", "jsonpath={.items[*].metadata.uid}"]);
    let (before, running) = (states(&site), pods());
    assert_eq!(appliers(&before["deployment"]), [MANAGER]);

    let note = format!("adopted from {MANAGER}, once Gateway {}/edge is accepted as self-managed", site.name);
    let plan = site.run(&["plan", "--adopt"]).exits(0).says(&note).says("1 object to create, 5 objects to adopt");
    let plan = plan.says("metadata.ownerReferences: [{").says("its copy here is self-managed");
    assert!(!plan.out.contains("spec.template"), "{}", plan.out);
    assert_eq!(states(&site), before);

    let run = while_it_watches(&site, "edge", || site.run(&["adopt"]));
    run.exits(0).says("1 object created, 5 objects adopted");
    let after = states(&site);
    for (kind, object) in &after {
        let (now, then) = (&object["metadata"], &before[kind]["metadata"]);
        assert_eq!((&now["uid"], &now["generation"]), (&then["uid"], &then["generation"]), "{kind}");
        assert_eq!(now.get("ownerReferences"), None, "{kind}");
        assert_eq!(appliers(object), ["gatewright"], "{kind}");
        assert_eq!((&object["spec"], &object["data"]), (&before[kind]["spec"], &before[kind]["data"]), "{kind}");
    }
    assert_eq!(pods(), running, "no pod was restarted");
    site.sync().exits(0).says("no changes, 6 objects up to date");
    site.run(&["adopt"]).exits(0).says("no changes, 6 objects up to date");

    outlives_its_gateway(&site);
}

/// The garbage collector takes what a Gateway still owns, and not what was adopted.
fn outlives_its_gateway(site: &Site) {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "left", "namespace": site.name}});
    deploy(site, "edge", &[map]);
    site.kubectl(&["delete", "gateway", "edge"]);
    // It looks for new kinds twice a minute, and on a busy machine needs a while for them.
    for _ in 0..1200 {
        if site.left_of("left").is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(site.left_of("left"), [""; 0], "the garbage collector runs");
    assert_eq!(site.left_of("edge").len(), 4);
}

/// Deploys again with what the deployer's own settings add to the Deployment.
fn deploy_more(site: &Site) {
    let mut objects = rendered(site);
    let deployment = objects.iter_mut().find(|object| object["kind"] == "Deployment").expect("there is one");
    deployment["spec"]["replicas"] = json!(3);
    deployment["metadata"]["labels"]["theirs"] = json!("1");
    // What the server would fill in by itself is no difference.
    deployment["spec"]["revisionHistoryLimit"] = json!(10);
    let container = &mut deployment["spec"]["template"]["spec"]["containers"][0];
    container["tty"] = json!(true);
    container["env"].as_array_mut().expect("it has variables").push(json!({"name": "THEIRS", "value": "1"}));
    deploy(site, "edge", &objects);
}

/// Controllers report all the time, also between two requests of a plan.
#[test]
fn what_moves_while_it_is_dry_run_is_dry_run_again() {
    let site = deployed(APPLY);
    deploy_more(&site);
    site.kubectl(&["rollout", "status", "deployment/edge", "--timeout=60s"]);
    let proxy = Proxy::start(site.server);
    site.desk.replace("gatewright.yaml", "kubeconfig: {}", "kubeconfig: {allowInsecureTls: true}");
    let is_taking_over = |seen: &Seen| seen.is("PATCH", "/deployments/edge?fieldManager=");
    proxy.answer(2, is_taking_over, after_a_report(site.server, &site.name));
    let plan = site.desk.run_with(&proxy.kubeconfig(), &["plan", "--adopt"]).exits(3);
    plan.says("adopt-restart: to adopt Deployment");
    assert_eq!(proxy.left(), 0);
    let tries = proxy.seen().iter().filter(|seen| is_taking_over(seen)).count();
    let refused = proxy.seen().iter().filter(|seen| is_taking_over(seen) && seen.code == Some(409)).count();
    assert!((refused, tries - refused) >= (2, 1), "{refused} of {tries}");
}

/// Has a controller report on the Deployment `edge` before a request arrives.
pub(crate) fn after_a_report(server: &'static ApiServer, namespace: &str) -> Answer {
    let namespace = namespace.to_owned();
    Answer::After(Arc::new(move || {
        // It changes nothing but the status, and each time something there.
        let patch = json!({"status": {"collisionCount": 1 + version_now(server, &namespace) % 1000}}).to_string();
        let arguments = ["patch", "deployment/edge", "--subresource=status", "--type=merge", "-p", &patch];
        server.kubectl_ok(&[&["-n", namespace.as_str()], arguments.as_slice()].concat());
    }))
}

/// A number that grows with every write to the Deployment.
fn version_now(server: &ApiServer, namespace: &str) -> u64 {
    let deployment = server.object(namespace, "deployment/edge");
    let version = deployment["metadata"]["resourceVersion"].as_str();
    version.and_then(|version| version.parse().ok()).expect("versions are numbers here")
}

#[test]
fn what_the_deployer_has_set_and_we_do_not_is_removed() {
    let site = deployed(APPLY);
    deploy_more(&site);
    // Controllers that are busy would be a reason to plan again.
    site.kubectl(&["rollout", "status", "deployment/edge", "--timeout=60s"]);

    let expected = [
        "metadata.labels.theirs: \"1\" -> nothing",
        "env[THEIRS]: {\"name\":\"THEIRS\",\"value\":\"1\"} -> nothing",
        "tty: true -> nothing",
    ];
    let held = site.run(&["plan", "--adopt"]).exits(3).says("adopt-restart: to adopt Deployment");
    let held = held.says("set in the parameters what differs, as it was made; or approve it");
    assert!(held.out.lines().position(|line| line.contains("adopt-restart")) < Some(4), "{}", held.out);
    let held = while_it_watches(&site, "edge", || site.run(&["adopt"])).exits(3).says("5 objects");
    assert_eq!(appliers(&site.get("deployment/edge")), [MANAGER]);
    site.run(&["approve", &token(&held)]).exits(0);
    let mut plan = site.run(&["plan", "--adopt"]).exits(0);
    for difference in expected {
        plan = plan.says(difference);
    }
    assert!(!plan.out.contains("revisionHistoryLimit"), "{}", plan.out);
    let (before, foretold) = (site.get("deployment/edge"), foretold(&site));
    while_it_watches(&site, "edge", || site.run(&["adopt"])).exits(0).says("5 objects adopted");
    let live = site.get("deployment/edge");
    let came_true =
        differences(&before, &live, "gatewright", &Masker::default()).into_iter().map(|it| json!([it.path, it.after]));
    let came_true: Vec<Value> = came_true.filter(is_foretold).collect();
    assert_eq!(foretold, came_true);
    // Of the number the source says nothing.
    assert_eq!((&live["spec"]["replicas"], live["metadata"]["labels"].get("theirs")), (&json!(3), None));
    let container = &live["spec"]["template"]["spec"]["containers"][0];
    assert!(container.get("tty").is_none() && !container["env"].to_string().contains("THEIRS"), "{container}");
    site.sync().exits(0).says("no changes");
}

/// The plan for the Deployment: paths, and what will be there.
fn foretold(site: &Site) -> Vec<Value> {
    let plan: Value =
        serde_json::from_str(&site.run(&["plan", "--adopt", "--format", "json"]).out).expect("it is JSON");
    let steps = plan["clusters"]["c"]["steps"].as_array().expect("a report has steps");
    let step = steps.iter().find(|step| step["id"]["kind"] == "Deployment").expect("there is one");
    let differences = step["differences"].as_array().expect("a step has differences");
    let differences = differences.iter().map(|difference| json!([difference["path"], difference["after"]]));
    differences.filter(is_foretold).collect()
}

/// Before the first round it is not known who we are, and nobody foretells what controllers do.
fn is_foretold(difference: &Value) -> bool {
    !difference.to_string().contains("gatewright.dev/") && !difference.to_string().contains("deployment.kubernetes.io/")
}

/// A process that is killed when an object has changed hands and is not yet as we want it.
#[test]
fn a_round_that_takes_over_may_be_killed_between_its_requests() {
    let site = deployed(APPLY);
    let mut objects = rendered(&site);
    let deployment = objects.iter_mut().find(|object| object["kind"] == "Deployment").expect("there is one");
    deployment["metadata"]["labels"]["theirs"] = json!("1");
    deploy(&site, "edge", &objects);

    let settings = Settings { path: Some(server().kubeconfig("admin")), ..Settings::default() };
    let cluster = KubeCluster::new("c", settings, StandardLookup::default(), Arc::new(SystemClock::new()));
    let cluster: Arc<dyn Cluster> = Arc::new(cluster);
    let installation = Installation::new(&site.name, &json!({"specs": "apply", "adopt": {"deployer": true}}));
    let specs = BTreeMap::from([("edge.json".to_owned(), gateway(&site.name, "edge", 8080).to_string())]);
    // Two records, parameters and Gateway, three objects in two requests each, and the first of the Deployment's.
    let death = Death { at: 2 + 2 + 3 * 2 + 1, side: Side::After, end: End::Killed };
    let mortal = Mortal::new(&cluster, Some(death));
    let dying: Arc<dyn Cluster> = mortal.clone();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    let survived =
        while_it_watches(&site, "edge", || runtime.block_on(mortal.survives(installation.round(&specs, &dying))));
    let last = ObjectId::new("apps", "Deployment", &site.name, "edge");
    assert_eq!((survived, mortal.done().last()), (false, Some(&Effect::Patch(last))));
    let live = site.get("deployment/edge");
    assert_eq!((appliers(&live).as_slice(), live["metadata"].get("ownerReferences")), (&["gatewright"][..], None));
    assert_eq!(live["metadata"]["labels"]["theirs"], "1");

    let report = runtime.block_on(installation.round(&specs, &cluster));
    let of_deployment = report.steps.iter().find(|step| step.id.kind == "Deployment").expect("it has a step");
    assert_eq!((report.state, of_deployment.action.word()), (ClusterState::Done, "update"), "{report:?}");
    assert_eq!(site.get("deployment/edge")["metadata"]["labels"].get("theirs"), None);
}

#[test]
fn a_gateway_that_is_self_managed_already_needs_no_copy_of_ours() {
    let (site, mut controller) = provisioned("");
    controller.stop();
    site.create(&document(VERSION, KIND, "by-hand", Some(&site.name), &json!({"selfManaged": {}})));
    let reference = Reference { name: "by-hand", namespace: None }.to_value();
    let patch = json!({"spec": {"infrastructure": {"parametersRef": reference}}}).to_string();
    site.kubectl(&["patch", "gateway", "edge", "--type=merge", "-p", &patch]);
    site.run(&["adopt"]).exits(3).says("it has not seen yet that the Gateway is self-managed");
    controller.restart();
    site.run(&["plan"]).exits(3).says("`gatewright adopt` takes it over");
    let gateway = site.get("gateway/edge");
    site.run(&["adopt"]).exits(0).says("4 objects adopted");
    assert_eq!(site.get("gateway/edge"), gateway, "with specs: render it is not ours to write");
    assert_eq!(appliers(&site.get("deployment/edge")), ["gatewright"]);

    // What was there before outlives us, as ever.
    site.want(&["other"], 80);
    site.drop(&["edge"]);
    site.sync().exits(0).says("kept: it was adopted").says("4 objects created");
    assert_eq!(site.left_of("edge").len(), 4);
}

#[test]
fn a_deployer_that_comes_back_is_noticed() {
    let site = deployed(APPLY);
    while_it_watches(&site, "edge", || site.run(&["adopt"])).exits(0);
    deploy(&site, "edge", &rendered(&site));
    let before = site.versions();
    site.sync().exits(3).says("live deployer");
    assert_eq!(site.versions(), before);
    configure(&site, &format!("{APPLY}, adopt: {{deployer: true}}"));
    while_it_watches(&site, "edge", || site.sync()).exits(0).says("4 objects adopted");
    assert_eq!(appliers(&site.get("deployment/edge")), ["gatewright"]);
}
