use std::collections::BTreeSet;

use gatewright_engine::health::{Health, Readiness, health};
use gatewright_engine::object::Object;
use gatewright_engine::pack::Packs;
use gatewright_engine::selector::{Capabilities, ClusterFacts};
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{Options, Rendering, Unit, render};
use gatewright_engine::yaml;
use serde_json::{Value, json};

/// Renders documents on a cluster on which KServe's controller is at work, or not.
fn rendered(settings: &Value, documents: &[Value], operates: bool) -> Rendering {
    let text: Vec<String> = documents.iter().map(yaml::to_string).collect();
    let tree = Tree::from_iter([("in.yaml".to_owned(), text.join("---\n"))]);
    let mut pack = crate::pack("kserve", settings).expect("the settings can be used");
    if !settings["parameters"].is_null() {
        pack = pack.with_settings("config.yaml", yaml::Node::of_value(&settings["parameters"]));
    }
    let kinds = BTreeSet::from([("serving.kserve.io".to_owned(), "LLMInferenceService".to_owned())]);
    let operators = operates.then(|| "kserve".to_owned()).into_iter().collect();
    let cluster = ClusterFacts { capabilities: Some(Capabilities { kinds, operators }), ..ClusterFacts::default() };
    let packs = Packs::new(vec![pack]).expect("the pack is sound");
    render(&tree, &packs, &Options { cluster: Some(cluster), ..Options::default() })
}

fn service(spec: &Value) -> Value {
    let metadata = json!({"name": "llama", "namespace": "models"});
    json!({"apiVersion": "serving.kserve.io/v1alpha2", "kind": "LLMInferenceService", "metadata": metadata, "spec": spec})
}

fn objects(rendering: &Rendering) -> Vec<&Object> {
    rendering.units.iter().flat_map(Unit::all).collect()
}

fn found<'a>(rendering: &'a Rendering, kind: &str, name: &str) -> &'a Value {
    let problems: Vec<String> = rendering.problems.iter().map(ToString::to_string).collect();
    let found = objects(rendering).into_iter().find(|object| object.id().kind == kind && object.id().name == name);
    found.unwrap_or_else(|| panic_about(&format!("no {kind} {name}: {problems:?}"))).body()
}

#[expect(clippy::panic, reason = "a test that finds nothing fails with what it looked for")]
fn panic_about(message: &str) -> ! {
    panic!("{message}")
}

fn managed() -> Value {
    json!({"model": {"uri": "pvc://weights"}, "router": {"route": {}, "scheduler": {}}})
}

#[test]
fn where_the_controller_is_at_work_the_service_goes_to_it_with_what_it_names() {
    let config = |namespace: &str| {
        let metadata = json!({"name": "team", "namespace": namespace});
        json!({"apiVersion": "serving.kserve.io/v1alpha2", "kind": "LLMInferenceServiceConfig", "metadata": metadata, "spec": {}})
    };
    let mut spec = managed();
    spec["baseRefs"] = json!([{"name": "team"}]);
    let mut second = service(&spec);
    second["metadata"]["name"] = "second".into();
    let rendering = rendered(&Value::Null, &[service(&spec), second, config("kserve"), config("other")], true);
    let ids: Vec<String> = objects(&rendering).iter().map(|object| object.id().to_string()).collect();
    let services = ["LLMInferenceService models/llama", "LLMInferenceService models/second"];
    assert_eq!(ids, [services[0], "LLMInferenceServiceConfig models/team", services[1]]);
    assert_eq!(rendering.problems, []);
}

#[test]
fn a_config_with_a_field_of_another_type_is_a_problem_of_the_service() {
    let metadata = json!({"name": "team", "namespace": "models"});
    let config = json!({"apiVersion": "serving.kserve.io/v1alpha2", "kind": "LLMInferenceServiceConfig", "metadata": metadata, "spec": {"replicas": "many"}});
    let mut spec = managed();
    spec["baseRefs"] = json!([{"name": "team"}]);
    let rendering = rendered(&Value::Null, &[service(&spec), config], false);
    let said = "the service and its configs together cannot be used: invalid type: string \"many\", expected u32";
    assert_eq!(rendering.problems[0].message, said);
}

#[test]
fn two_do_not_make_the_same_objects() {
    let expand = json!({"parameters": {"mode": "expand"}});
    let rendering = rendered(&expand, &[service(&managed())], true);
    assert!(objects(&rendering).is_empty());
    assert!(rendering.problems[0].message.contains("controller is at work"), "{:?}", rendering.problems);
    assert!(objects(&rendered(&expand, &[service(&managed())], false)).len() > 5);
}

#[test]
fn a_service_of_its_mode_goes_to_the_cluster_whatever_is_known_of_it() {
    let rendering = rendered(&json!({"parameters": {"mode": "passthrough"}}), &[service(&managed())], false);
    assert_eq!(objects(&rendering).len(), 1);
}

#[test]
fn certificates_come_from_where_the_parameters_say() {
    let secret = |rendering: &Rendering| {
        let body = found(rendering, "Deployment", "llama-kserve").clone();
        let volumes = body["spec"]["template"]["spec"]["volumes"].as_array().expect("volumes").clone();
        volumes.into_iter().find(|volume| volume["name"] == "tls-certs").expect("certificates")["secret"].clone()
    };
    let with = |tls: Value| rendered(&json!({"parameters": {"tls": tls}}), &[service(&managed())], false);
    let expected = "llama-kserve-self-signed-certs";
    assert_eq!(secret(&with(json!(false))), json!({"secretName": expected, "optional": true}));
    assert_eq!(secret(&with(json!({"secret": "given"}))), json!({"secretName": "given"}));
    let made = with(json!({"certManager": {"issuerRef": {"name": "internal"}}}));
    assert_eq!(secret(&made), json!({"secretName": expected}));
    assert_eq!(found(&made, "Certificate", expected)["spec"]["issuerRef"], json!({"name": "internal"}));
    assert_eq!(found(&made, "Service", "llama-kserve-workload-svc")["spec"]["ports"][0]["name"], "https");
    assert!(!with(json!(true)).problems.is_empty());
}

#[test]
fn an_image_of_a_scheduler_is_that_of_its_container() {
    let scheduler = |scheduler: Value| {
        let spec = json!({"model": {"uri": "pvc://weights"}, "router": {"scheduler": scheduler}});
        let rendering = rendered(&Value::Null, &[service(&spec)], false);
        let body = found(&rendering, "Deployment", "llama-kserve-router-scheduler").clone();
        body["spec"]["template"]["spec"]["containers"][0]["image"].clone()
    };
    assert_eq!(scheduler(json!({"image": "registry.example.com/a:1"})), "registry.example.com/a:1");
    let both = json!({"image": "a", "template": {"containers": [{"name": "main", "image": "b"}]}});
    assert_eq!(scheduler(both), "b");
}

#[test]
fn the_scheduler_of_older_releases_is_as_they_made_it() {
    let settings = json!({"parameters": {"schedulerPreset": "legacy"}});
    let rendering = rendered(&settings, &[service(&managed())], false);
    let body = found(&rendering, "Deployment", "llama-kserve-router-scheduler");
    let container = &body["spec"]["template"]["spec"]["containers"][0];
    // The image starts the program by itself.
    assert_eq!((&container["name"], &container["command"]), (&json!("main"), &Value::Null));
    let arguments = [
        "--pool-name=llama-inference-pool",
        "--pool-namespace=models",
        "--grpc-port=9002",
        "--grpc-health-port=9003",
        "--secure-serving",
        "--model-server-metrics-scheme=http",
    ];
    assert_eq!(container["args"], json!(arguments));
    let ports = found(&rendering, "Service", "llama-epp-service")["spec"]["ports"].as_array().expect("ports");
    let ports: Vec<&Value> = ports.iter().map(|port| &port["port"]).collect();
    assert_eq!(ports, [9002, 9003, 9090]);
}

#[test]
fn of_several_schedulers_one_is_enough() {
    let spec = json!({"model": {"uri": "pvc://weights"}, "replicas": 3, "router": {"scheduler": {"replicas": 3}}});
    let rendering = rendered(&Value::Null, &[service(&spec)], false);
    let state = |name: &str, available: u32| {
        let mut body = found(&rendering, "Deployment", name).clone();
        body["status"] = json!({"updatedReplicas": 3, "availableReplicas": available});
        health(&body, Readiness::default(), &gatewright_engine::kinds::Table::builtin()) == Health::Current
    };
    let scheduler = "llama-kserve-router-scheduler";
    assert_eq!([state(scheduler, 1), state(scheduler, 0)], [true, false]);
    assert_eq!([state("llama-kserve", 3), state("llama-kserve", 1)], [true, false]);
}

#[test]
fn a_configuration_may_stand_in_a_config_map() {
    let mut spec = managed();
    spec["router"]["scheduler"]["config"] = json!({"ref": {"name": "picker"}});
    let metadata = json!({"name": "picker", "namespace": "models"});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"epp": "plugins: []"}});
    let rendering = rendered(&Value::Null, &[service(&spec), map], false);
    let body = found(&rendering, "Deployment", "llama-kserve-router-scheduler");
    assert_eq!(body["spec"]["template"]["spec"]["containers"][0]["args"], json!(["--config-text", "plugins: []\n"]));
    let missing = rendered(&Value::Null, &[service(&spec)], false);
    assert!(missing.problems[0].message.contains("no ConfigMap \"picker\""), "{:?}", missing.problems);
}

#[test]
fn routes_and_pools_are_of_one_version() {
    let group = |settings: &Value| {
        let rendering = rendered(settings, &[service(&managed())], false);
        let pools = objects(&rendering).iter().filter(|object| object.id().kind == "InferencePool").count();
        let route = found(&rendering, "HTTPRoute", "llama-kserve-route");
        (pools, route["spec"]["rules"][0]["backendRefs"][0]["group"].clone())
    };
    assert_eq!(group(&Value::Null), (1, json!("inference.networking.k8s.io")));
    assert_eq!(group(&json!({"alphaPool": "always"})), (2, json!("inference.networking.x-k8s.io")));
}

/// The pod of the Deployment with the servers.
fn server_pod(rendering: &Rendering) -> &Value {
    &found(rendering, "Deployment", "llama-kserve")["spec"]["template"]["spec"]
}

fn initializers(pod: &Value) -> Vec<&Value> {
    let containers = pod["initContainers"].as_array().into_iter().flatten();
    containers.filter(|it| it["name"] == "storage-initializer").collect()
}

#[test]
fn what_a_template_says_of_the_download_is_merged_with_it() {
    let own = json!({"name": "storage-initializer", "args": ["x"], "env": [{"name": "A", "value": "1"}],
                     "resources": {"limits": {"memory": "9Gi"}}});
    let mut spec = managed();
    spec["template"] =
        json!({"initContainers": [own, {"name": "first", "image": "i"}], "containers": [{"name": "main"}]});
    let rendering = |uri: &str, spec: &Value| {
        let mut spec = spec.clone();
        spec["model"]["uri"] = uri.into();
        rendered(&json!({"parameters": {"huggingFaceToken": {"secret": "hub"}}}), &[service(&spec)], false)
    };
    let downloaded = rendering("hf://a/b", &spec);
    let found = initializers(server_pod(&downloaded));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["args"], json!(["hf://a/b", "/mnt/models"]));
    assert_eq!(found[0]["resources"]["limits"], json!({"cpu": "1", "memory": "9Gi"}));
    let token = json!({"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "HF_TOKEN"}}});
    assert_eq!((&found[0]["env"][0]["name"], &found[0]["env"][1]), (&json!("A"), &token));
    assert_eq!(server_pod(&downloaded)["initContainers"][0]["name"], "first");
    // Without a download there is nothing to say of it.
    assert_eq!(initializers(server_pod(&rendering("pvc://weights", &spec))), [&Value::Null; 0]);
    spec["storageInitializer"] = json!({"enabled": false});
    assert_eq!(initializers(server_pod(&rendering("hf://a/b", &spec))), [&Value::Null; 0]);
}

#[test]
fn an_encrypted_model_is_decrypted_where_it_is_loaded() {
    let confidential = json!({"enabled": true, "resourceId": "kbs:///a/b/c"});
    let spec = json!({"model": {"uri": "s3://a/b", "confidential": confidential}});
    let rendering = rendered(&Value::Null, &[service(&spec)], false);
    let expected = json!([{"name": "CONFIDENTIAL_ENABLED", "value": "true"},
                          {"name": "CONFIDENTIAL_RESOURCE_ID", "value": "kbs:///a/b/c"}]);
    assert_eq!(initializers(server_pod(&rendering))[0]["env"], expected);
}

#[test]
fn an_image_with_a_model_runs_as_the_user_of_its_server() {
    let users = |settings: &Value| {
        let rendering = rendered(settings, &[service(&json!({"model": {"uri": "oci://a/b:1"}}))], false);
        let containers = server_pod(&rendering)["containers"].as_array().expect("containers").clone();
        containers.iter().map(|it| it["securityContext"]["runAsUser"].clone()).collect::<Vec<Value>>()
    };
    assert_eq!(users(&Value::Null), [1010, 1010]);
    assert_eq!(users(&json!({"storageInitializer": {"uidModelcar": null}})), [Value::Null, Value::Null]);
    let native = rendered(&Value::Null, &[service(&json!({"model": {"uri": "oci+native://a/b:1"}}))], false);
    let volumes = server_pod(&native)["volumes"].as_array().expect("volumes");
    assert_eq!(volumes.last().expect("one")["name"], "mnt-models");
}

#[test]
fn a_pool_is_written_in_the_words_of_the_version_of_its_service() {
    let mut spec = managed();
    spec["router"]["scheduler"]["pool"] = json!({"spec": {"targetPortNumber": 8000, "extensionRef": {"name": "own"}}});
    let mut older = service(&spec);
    older["apiVersion"] = "serving.kserve.io/v1alpha1".into();
    let rendering = rendered(&Value::Null, &[older], false);
    let pool = &found(&rendering, "InferencePool", "llama-inference-pool")["spec"];
    assert_eq!((&pool["endpointPickerRef"]["name"], &pool["extensionRef"]), (&json!("own"), &Value::Null));
    found(&rendering, "Service", "own");
    let refused = rendered(&Value::Null, &[service(&spec)], false);
    let said = "targetPortNumber is a field of pools in serving.kserve.io/v1alpha1";
    assert!(refused.problems[0].message.starts_with(said), "{:?}", refused.problems);
}

#[test]
fn annotations_of_pods_are_on_their_service() {
    let mut spec = managed();
    spec["annotations"] = json!({"prometheus.io/scrape": "true"});
    let rendering = rendered(&Value::Null, &[service(&spec)], false);
    let metadata = &found(&rendering, "Service", "llama-kserve-workload-svc")["metadata"];
    assert_eq!(metadata["annotations"]["prometheus.io/scrape"], "true");
    let routing = &metadata["annotations"]["serving.kserve.io/model-based-routing-enabled"];
    assert_eq!(routing, &Value::Null);
}

#[test]
fn autoscalers_name_the_devices_that_the_variant_autoscaler_asks_for() {
    let spec = json!({"model": {"uri": "pvc://weights"}, "labels": {"team": "a"},
                      "scaling": {"maxReplicas": 2, "wva": {"keda": {}}}});
    let settings = json!({"prometheus": {"url": "http://prometheus"}});
    let rendering = rendered(&settings, &[service(&spec)], false);
    let object = found(&rendering, "ScaledObject", "llama-kserve-keda");
    let labels = &object["metadata"]["labels"];
    assert_eq!((&labels["inference.optimization/acceleratorName"], &labels["team"]), (&json!("unknown"), &Value::Null));
    let trigger = &object["spec"]["triggers"][0];
    assert_eq!((&trigger["metadata"]["unsafeSsl"], &trigger["metricType"]), (&json!("false"), &Value::Null));
}

#[test]
fn servers_over_several_nodes_behind_a_sidecar_have_the_account_of_one_node_too() {
    let worker = json!({"containers": [{"name": "main"}]});
    let parallelism = json!({"data": 2, "dataLocal": 1});
    let spec = json!({"model": {"uri": "pvc://weights"}, "worker": worker, "parallelism": parallelism, "prefill": {}});
    let rendering = rendered(&Value::Null, &[service(&spec)], false);
    for name in ["llama-kserve-mn", "llama-kserve"] {
        found(&rendering, "ServiceAccount", name);
        found(&rendering, "Role", &format!("{name}-role"));
    }
}

#[test]
fn an_empty_name_says_nothing() {
    let mut spec = managed();
    spec["model"]["name"] = "".into();
    spec["router"]["scheduler"]["pool"] = json!({"ref": {"name": ""}});
    let rendering = rendered(&Value::Null, &[service(&spec)], false);
    found(&rendering, "InferencePool", "llama-inference-pool");
    let deployment = found(&rendering, "Deployment", "llama-kserve").to_string();
    assert!(!deployment.contains("\"--served-model-name\",\"\""), "{deployment}");
}

#[test]
fn a_route_that_is_not_by_model_loses_rules_that_match_nothing_else() {
    let mut spec = managed();
    let path = json!([{"path": {"type": "PathPrefix", "value": "/x"}}]);
    let rules = json!([{"name": "r1"}, {"name": "r2", "matches": path}]);
    spec["annotations"] = json!({"serving.kserve.io/model-based-routing-enabled": "false"});
    spec["router"]["route"] = json!({"http": {"spec": {"rules": rules}}});
    let rendering = rendered(&Value::Null, &[service(&spec)], false);
    let route = found(&rendering, "HTTPRoute", "llama-kserve-route");
    let names: Vec<_> =
        route["spec"]["rules"].as_array().into_iter().flatten().map(|rule| rule["name"].clone()).collect();
    assert_eq!(names, [json!("r2")]);
}

/// A preset of the source.
fn preset(namespace: &str, name: &str, spec: &Value) -> Value {
    let metadata = json!({"name": name, "namespace": namespace});
    json!({"apiVersion": "serving.kserve.io/v1alpha2", "kind": "LLMInferenceServiceConfig", "metadata": metadata, "spec": spec})
}

#[test]
fn a_preset_that_names_only_an_image_is_laid_over_the_one_below() {
    let template = |container: Value| json!({"router": {"scheduler": {"template": {"containers": [container]}}}});
    let main = |documents: &[Value], settings: &Value| {
        let all = [&[service(&managed())], documents].concat();
        let rendering = rendered(settings, &all, false);
        let pod = &found(&rendering, "Deployment", "llama-kserve-router-scheduler")["spec"]["template"]["spec"];
        pod["containers"][0].clone()
    };
    let name = "kserve-config-llm-scheduler";
    let own = preset("models", name, &template(json!({"name": "main", "image": "own:1"})));
    let found = main(std::slice::from_ref(&own), &Value::Null);
    assert_eq!(
        (&found["image"], &found["command"][0], &found["ports"][0]["name"]),
        (&json!("own:1"), &json!("/app/epp"), &json!("grpc"))
    );
    let whole =
        json!({"name": "main", "image": "whole:1", "command": ["/x"], "ports": [{"name": "grpc", "containerPort": 1}]});
    let system = preset("kserve", name, &template(whole));
    let found = main(&[own, system.clone()], &Value::Null);
    assert_eq!((&found["image"], &found["command"]), (&json!("own:1"), &json!(["/x"])));
    // Images of the settings are for what is built in.
    let settings = json!({"images": {"scheduler": "mirror:1"}});
    assert_eq!(main(&[], &settings)["image"], "mirror:1");
    assert_eq!(main(&[system], &settings)["image"], "whole:1");
}
