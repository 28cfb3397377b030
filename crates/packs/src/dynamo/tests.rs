//! Tests of what graphs become, part by part.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::object::{Gvk, Object, ObjectId};
use gatewright_engine::pack::{Packs, document};
use gatewright_engine::problem::Problem;
use gatewright_engine::render::Renderer;
use gatewright_engine::selector::{Capabilities, ClusterFacts};
use gatewright_engine::spec::Document;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{Options, Unit, render};
use gatewright_engine::yaml;
use serde_json::{Value, json};

use super::backend;
use super::expand::{self, Data};
use super::model::{GROVE, LWS};
use super::settings::Settings;

const TEMPLATES: [&str; 8] = [
    "rbac.yaml",
    "claims.yaml",
    "configmaps.yaml",
    "services.yaml",
    "picker.yaml",
    "workloads.yaml",
    "cliques.yaml",
    "entrances.yaml",
];

fn graph(text: &str) -> Document {
    let root = yaml::parse(text).expect("the graph is YAML").pop().expect("there is a document");
    let text =
        |path: &[&str]| root.at(path.iter().copied()).and_then(yaml::Node::as_str).unwrap_or_default().to_owned();
    let gvk = Gvk::new(&text(&["apiVersion"]), &text(&["kind"]));
    let id = ObjectId::new("nvidia.com", &text(&["kind"]), "serving", &text(&["metadata", "name"]));
    Document { id, gvk, file: "graph.yaml".into(), root, patched: Vec::new() }
}

fn expanded(text: &str, settings: Value, served: Option<&[&str]>) -> Result<Vec<Object>, Vec<Problem>> {
    let files = crate::embedded("dynamo");
    let settings: Settings = serde_json::from_value(settings).expect("these are settings");
    let backends = backend::all(&files).expect("the backends can be read");
    let types = document(&files, "types.yaml").expect("the types can be read").to_value();
    let known = [GROVE, LWS].map(|(group, kind)| (group.to_owned(), kind.to_owned())).into_iter();
    let kinds = |served: &[&str]| known.filter(|(_, kind)| served.contains(&kind.as_str())).collect();
    let capabilities = served.map(|served| Capabilities { kinds: kinds(served), operators: BTreeSet::new() });
    let data = Data { settings: &settings, backends: &backends, types: &types, capabilities: capabilities.as_ref() };
    let document = graph(text);
    let namespace = document.root.at(["metadata", "namespace"]).and_then(yaml::Node::as_str).unwrap_or("serving");
    let values = expand::values(&document, namespace, &data)?;
    let templates: Vec<_> = TEMPLATES.iter().map(|&name| (name.to_owned(), files[name].to_owned())).collect();
    Ok(Renderer::new(&templates).expect("the templates load").render(&values).expect("the templates can be filled"))
}

/// A worker of a graph, with what a test says of it.
fn worker(fields: &Value) -> String {
    let mut worker = json!({
        "componentType": "worker",
        "extraPodSpec": {"mainContainer": {"image": "a", "command": ["python3", "-m", "dynamo.vllm"]}},
    });
    if let (Some(worker), Some(fields)) = (worker.as_object_mut(), fields.as_object()) {
        worker.extend(fields.clone());
    }
    let graph = json!({
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": "g"},
        "spec": {"services": {"Worker": worker}},
    });
    yaml::to_string(&graph)
}

fn kinds(rendered: &Result<Vec<Object>, Vec<Problem>>) -> Vec<String> {
    rendered.iter().flatten().map(|object| object.id().kind.clone()).collect()
}

fn message(rendered: Result<Vec<Object>, Vec<Problem>>) -> String {
    rendered.err().unwrap_or_default().iter().map(|problem| problem.message.clone()).collect::<Vec<_>>().join("; ")
}

#[test]
fn the_provider_is_what_the_cluster_serves_and_the_settings_allow() {
    let several = worker(&json!({"multinode": {"nodeCount": 2}}));
    let has = |settings: Value, served: Option<&[&str]>, kind: &str| {
        kinds(&expanded(&several, settings, served)).contains(&kind.to_owned())
    };
    assert!(has(json!({}), None, "LeaderWorkerSet"));
    assert!(has(json!({}), Some(&["LeaderWorkerSet"]), "LeaderWorkerSet"));
    assert!(has(json!({}), Some(&["LeaderWorkerSet", "PodCliqueSet"]), "PodCliqueSet"));
    assert!(has(json!({"workloadProvider": "grove"}), None, "PodCliqueSet"));
    assert!(has(json!({"workloadProvider": "lws"}), Some(&["LeaderWorkerSet", "PodCliqueSet"]), "LeaderWorkerSet"));
    let neither = message(expanded(&several, json!({}), Some(&[])));
    assert!(neither.contains("neither Grove nor LeaderWorkerSets"), "{neither}");
    let refused = message(expanded(&several, json!({"workloadProvider": "deployment"}), None));
    assert!(refused.contains("workloadProvider is deployment"), "{refused}");
    let missing = message(expanded(&several, json!({"workloadProvider": "grove"}), Some(&[])));
    assert!(missing.contains("does not serve Grove"), "{missing}");
}

#[test]
fn a_field_of_another_type_is_a_problem_where_it_stands() {
    let graph = worker(&json!({"ingress": {"enabled": true, "host": 7}}));
    let line = graph.lines().position(|line| line.contains("host: 7")).and_then(|line| u32::try_from(line + 1).ok());
    let problems = expanded(&graph, json!({}), None).expect_err("a host is text");
    assert_eq!(problems[0].message, "host cannot be used: invalid type: integer `7`, expected a string");
    assert_eq!(Some(problems[0].place.line), line);
}

#[test]
fn discovery_by_etcd_needs_an_address_and_no_rights() {
    let graph = worker(&json!({}));
    let lost = message(expanded(&graph, json!({"discovery": {"backend": "etcd"}}), None));
    assert!(lost.contains("etcdAddress is empty"), "{lost}");
    let settings = json!({"discovery": {"backend": "etcd"}, "infrastructure": {"etcdAddress": "etcd:2379"}});
    assert_eq!(kinds(&expanded(&graph, settings, None)), ["Deployment"]);
}

#[test]
fn environment_is_merged_by_name_and_what_a_user_leaves_empty_stays() {
    let envs = json!([{"name": "DYN_SYSTEM_PORT", "value": "9999"}, {"name": "EMPTY", "value": ""}, {"name": "NONE"}]);
    let rendered = expanded(&worker(&json!({"envs": envs})), json!({"discovery": {"provision": false}}), None);
    let rendered = rendered.expect("the graph can be rendered");
    let env = &rendered[0].body()["spec"]["template"]["spec"]["containers"][0]["env"];
    let names: Vec<&str> = env.as_array().into_iter().flatten().filter_map(|it| it["name"].as_str()).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(names, sorted);
    assert!(names.contains(&"EMPTY") && names.contains(&"NONE") && !names.contains(&"NATS_SERVER"), "{names:?}");
    let port = env.as_array().into_iter().flatten().find(|it| it["name"] == "DYN_SYSTEM_PORT");
    assert_eq!(port.map(|port| &port["value"]), Some(&json!("9999")));
}

#[test]
fn a_folder_adds_a_backend() {
    let mut files = crate::embedded("dynamo");
    files.insert("backends/own.yaml", "module: dynamo.own\nenv: [{name: OWN, value: '{{ nodes }}'}]\n");
    let backends = backend::all(&files).expect("the backends can be read");
    assert_eq!(backends.keys().map(String::as_str).collect::<Vec<_>>(), ["own", "sglang", "trtllm", "vllm"]);
    files.insert("backends/own.yaml", "modul: dynamo.own\n");
    assert!(backend::all(&files).is_err());
}

#[test]
fn a_pod_mounts_shared_memory_once() {
    let volumes = json!([{"name": "fast", "emptyDir": {"medium": "Memory"}}]);
    let main = json!({"image": "a", "volumeMounts": [{"name": "fast", "mountPath": "/dev/shm"}]});
    let graph = worker(&json!({"extraPodSpec": {"volumes": volumes, "mainContainer": main}}));
    let rendered = expanded(&graph, json!({"discovery": {"provision": false}}), None);
    let rendered = rendered.expect("the graph can be rendered");
    let pod = &rendered[0].body()["spec"]["template"]["spec"];
    let shared = json!({"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}});
    assert_eq!(pod["volumes"], json!([shared, volumes[0]]));
    let mounts = json!([{"name": "shared-memory", "mountPath": "/dev/shm"}]);
    assert_eq!(pod["containers"][0]["volumeMounts"], mounts);
}

#[test]
fn a_long_name_is_cut_under_grove_as_the_operator_cuts_it() {
    let name = |graph: &str, nodes: u64| {
        let text = worker(&json!({"multinode": {"nodeCount": nodes}})).replace("name: g", &format!("name: {graph}"));
        let rendered = expanded(&text, json!({"workloadProvider": "grove"}), None).expect("it is cut");
        let set = rendered.iter().find(|object| object.id().kind == "PodCliqueSet").expect("there is a set");
        set.id().name.clone()
    };
    let graph = "a-graph-with-a-name-of-forty-characters-";
    assert_eq!(name("summary", 2), "summary");
    // The hash is of the whole name, so that two graphs that begin alike do not meet.
    let (one, other) = (name(&format!("{graph}1"), 2), name(&format!("{graph}2"), 2));
    assert_eq!((one.len(), &one[..25]), (29, &other[..25]));
    assert_ne!(one, other);
    assert_eq!(name("kimi-k3-agg-of-a-name-that-is-longer", 2), "kimi-k3-agg-of-a-name-th-6ab1");
}

#[test]
fn devices_that_the_container_asks_for_are_kept_beside_what_the_component_asks_for() {
    let efa = json!({"limits": {"vpc.amazonaws.com/efa": "4"}});
    let graph = worker(&json!({
        "resources": {"limits": {"gpu": "8"}, "requests": {"gpu": "8", "custom": {"rdma/ib": "1"}}},
        "extraPodSpec": {"mainContainer": {"image": "a", "resources": efa}},
    }));
    let rendered = expanded(&graph, json!({"discovery": {"provision": false}}), None).expect("it can be rendered");
    let resources = &rendered[0].body()["spec"]["template"]["spec"]["containers"][0]["resources"];
    let expected = json!({
        "limits": {"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "4"},
        "requests": {"nvidia.com/gpu": "8", "rdma/ib": "1"},
    });
    assert_eq!(*resources, expected);
}

#[test]
fn a_value_of_another_type_is_a_problem_in_every_mode() {
    let wrong = [
        (json!({"replicas": "many"}), "replicas: many", "replicas"),
        (json!({"multinode": {"nodeCount": "two"}}), "nodeCount: two", "nodeCount"),
        (json!({"extraPodSpec": {"nodeSelector": "gpu"}}), "nodeSelector: gpu", "nodeSelector"),
        (json!({"envs": [{"name": "A", "value": 7}]}), "value: 7", "value"),
        (json!({"livenessProbe": {"periodSeconds": "x"}}), "periodSeconds: x", "periodSeconds"),
    ];
    for (fields, written, field) in wrong {
        let text = worker(&fields);
        let line = text.lines().position(|line| line.contains(written)).and_then(|line| u32::try_from(line + 1).ok());
        let problems = super::read::mistakes(&graph(&text));
        let message = problems.first().map(|problem| problem.message.clone()).unwrap_or_default();
        assert!(message.starts_with(&format!("{field} cannot be used: ")), "{message}");
        assert_eq!(problems.first().map(|problem| problem.place.line), line, "{message}");
    }
    // A number is a quantity, and null says nothing.
    let right = worker(&json!({"replicas": null, "resources": {"limits": {"cpu": 4, "gpu": 1}}}));
    assert_eq!(super::read::mistakes(&graph(&right)), []);
}

#[test]
fn a_frontend_beside_a_worker_has_what_frontends_begin_with() {
    let graph = worker(&json!({
        "subComponentType": "decode",
        "frontendSidecar": {"image": "f", "args": ["-m", "dynamo.frontend", "--router-mode", "direct"]},
    }));
    let rendered = expanded(&graph, json!({"discovery": {"provision": false}}), None).expect("it can be rendered");
    let pod = &rendered[0].body()["spec"]["template"];
    let container = &pod["spec"]["containers"][1];
    assert_eq!((&container["name"], &container["command"]), (&json!("sidecar-frontend"), &json!(["python3"])));
    let env = container["env"].as_array().into_iter().flatten();
    let kind = env.clone().find(|it| it["name"] == "DYN_COMPONENT").map(|it| it["value"].clone());
    assert_eq!(kind, Some(json!("frontend")));
    assert_eq!(pod["metadata"]["labels"]["nvidia.com/dynamo-component-type"], "decode", "a phase is the type");
    assert_eq!(pod["metadata"]["labels"]["nvidia.com/dynamo-sub-component-type"], "decode");
}

#[test]
fn pods_that_cannot_start_as_they_stand_are_warned_of() {
    let component = |kind: &str, fields: Value| {
        let mut component = json!({"componentType": kind});
        if let (Some(component), Value::Object(fields)) = (component.as_object_mut(), fields) {
            component.extend(fields);
        }
        component
    };
    let pod = |pod: Value| json!({"extraPodSpec": pod});
    let services = json!({
        "Worker": component("worker", json!({"replicas": 2})),
        "Planner": component("planner", pod(json!({"serviceAccountName": "mine", "mainContainer": {"image": "a"}}))),
        "Epp": component("epp", json!({
            "eppConfig": {"configMapRef": {"name": "plugins", "key": "epp.yaml"}},
            "extraPodSpec": {"mainContainer": {"image": "a"}},
        })),
    });
    let graph = json!({
        "apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment",
        "metadata": {"name": "g", "namespace": "models"}, "spec": {"services": services},
    });
    let pack = crate::pack("dynamo", &json!({"mode": "expand"})).expect("the settings can be used");
    let tree = Tree::from_iter([("graph.yaml", yaml::to_string(&graph))]);
    let rendering = render(&tree, &Packs::new(vec![pack]).expect("there is one"), &Options::default());
    let told: Vec<&str> = rendering.problems.iter().map(|problem| problem.message.as_str()).collect();
    let tells = |text: &str| told.iter().any(|message| message.contains(text));
    assert!(tells("component \"Worker\" has no image for its container \"main\""), "{told:?}");
    assert!(tells("component \"Epp\" run as service account \"epp-serviceaccount\", which is not made"), "{told:?}");
    assert!(
        tells("component \"Planner\" run as service account \"planner-serviceaccount\""),
        "whatever is named: {told:?}"
    );
    assert_eq!((rendering.units.len(), rendering.broken.len()), (1, 0), "they are warnings");
}

/// Tells of specs of both packs in mode `auto` whether the cluster gets them as they are, where so much is known of it.
fn passed_on(capabilities: Option<Capabilities>) -> BTreeMap<String, bool> {
    let service = "apiVersion: serving.kserve.io/v1alpha2\nkind: LLMInferenceService\nmetadata: {name: s, namespace: m}\n\
                   spec: {model: {uri: 'pvc://weights'}, router: {route: {}, scheduler: {}}}\n";
    let tree = Tree::from_iter([("graph.yaml", worker(&json!({}))), ("service.yaml", service.to_owned())]);
    let pack = |name: &str, settings: Value| crate::pack(name, &settings).expect("the settings can be used");
    let packs = vec![pack("dynamo", json!({"mode": "auto"})), pack("kserve", Value::Null)];
    let cluster = ClusterFacts { capabilities, ..ClusterFacts::default() };
    let options = Options { cluster: Some(cluster), ..Options::default() };
    let rendering = render(&tree, &Packs::new(packs).expect("they go together"), &options);
    let is_passed_on = |unit: &Unit| unit.all().any(|object| *object.id() == unit.id);
    rendering.units.iter().map(|unit| (unit.id.kind.clone(), is_passed_on(unit))).collect()
}

#[test]
fn mode_auto_means_the_same_in_both_packs() {
    let both =
        |is: bool| BTreeMap::from(["DynamoGraphDeployment", "LLMInferenceService"].map(|kind| (kind.to_owned(), is)));
    let kinds = [("nvidia.com", "DynamoGraphDeployment"), ("serving.kserve.io", "LLMInferenceService")];
    let kinds: BTreeSet<_> = kinds.map(|(group, kind)| (group.to_owned(), kind.to_owned())).into();
    let operators: BTreeSet<String> = ["dynamo", "kserve"].map(str::to_owned).into();
    assert_eq!(passed_on(None), both(false), "nobody has looked");
    assert_eq!(passed_on(Some(Capabilities::default())), both(false), "there is no operator");
    let idle = Capabilities { kinds: kinds.clone(), operators: BTreeSet::new() };
    assert_eq!(passed_on(Some(idle)), both(false), "the kinds alone are no operator");
    assert_eq!(passed_on(Some(Capabilities { kinds, operators })), both(true), "the operators are at work");
}

/// Returns the mistakes that are found in every mode.
fn mistakes(text: &str) -> Vec<String> {
    super::read::mistakes(&graph(text)).iter().map(|it| format!("{} {}", it.place.line, it.message)).collect()
}

const ALPHA_HEAD: &str = "\
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: g}
spec:
";

#[test]
fn misspelled_fields_are_mistakes_in_every_mode() {
    let beta = ALPHA_HEAD.replace("v1alpha1", "v1beta1");
    let check = |head: &str, spec: &str, expected: &[&str]| {
        let found = mistakes(&format!("{head}  {spec}\n"));
        let is_it = |(found, expected): (&String, &&str)| found.contains(*expected);
        assert!(found.len() == expected.len() && found.iter().zip(expected).all(is_it), "{spec}: {found:#?}");
    };
    check(ALPHA_HEAD, "services: {A: {componentType: frontend}}", &[]);
    check(ALPHA_HEAD, "servces: {A: {}}", &["\"servces\" is not known", "no components"]);
    check(ALPHA_HEAD, "services: {A: {replcas: 2}}", &["5 the field \"replcas\""]);
    check(ALPHA_HEAD, "services: {A: {somethingNew: 2}}", &[]);
    check(ALPHA_HEAD, "services: {}", &["no components"]);
    check(&beta, "components: [{name: A, typ: worker}]", &["\"typ\" is not known"]);
    check(&beta, "components: [{name: A, type: worker}]", &[]);
    check(&beta, "services: {A: {}}", &["no components"]);
    check(&beta, "{backendFramework: vlm, components: [{name: A}]}", &["backendFramework is \"vlm\""]);
    let part = |part: &str| format!("services: {{A: {{{part}}}}}");
    check(ALPHA_HEAD, &part("subComponentType: prefil"), &["neither decode nor prefill"]);
    check(ALPHA_HEAD, &part("subComponentType: mine"), &[]);
    let gpu = |amount: &str| part(&format!("resources: {{limits: {{gpu: {amount}}}}}"));
    check(ALPHA_HEAD, &gpu("'2'"), &[]);
    for wrong in ["one", "'0.5'", "'-1'"] {
        check(ALPHA_HEAD, &gpu(wrong), &["must be a whole number"]);
    }
    check(ALPHA_HEAD, &part("resources: {limits: {gpu: '1', gpuType: amd.com/gpu, custom: {a.b/c: '1'}}}"), &[]);
    check(ALPHA_HEAD, &part("resources: {limits: {memory: 10GB}}"), &["memory is \"10GB\", but must be a quantity"]);
}

/// The first Deployment of a worker with these fields, and its main container.
fn pod(fields: &Value, settings: &Value) -> (Value, Value) {
    let rendered = expanded(&worker(fields), settings.clone(), None).expect("it can be rendered");
    let deployment = rendered.iter().find(|object| object.id().kind == "Deployment").expect("there is one").body();
    (deployment["spec"].clone(), deployment["spec"]["template"]["spec"]["containers"][0].clone())
}

#[test]
fn what_says_nothing_takes_nothing_away() {
    let settings = json!({"discovery": {"provision": false}});
    let main = json!({"image": "a", "command": [], "ports": [], "livenessProbe": null, "args": ["-m", "dynamo.vllm"]});
    let spec = json!({
        "terminationGracePeriodSeconds": 0, "restartPolicy": "", "securityContext": null, "serviceAccountName": "",
        "hostNetwork": true, "mainContainer": main,
    });
    let (deployment, container) = pod(&json!({"extraPodSpec": spec, "livenessProbe": null}), &settings);
    let pod = &deployment["template"]["spec"];
    assert_eq!((&pod["terminationGracePeriodSeconds"], &pod["restartPolicy"]), (&json!(60), &json!("Always")));
    assert_eq!((&pod["securityContext"]["fsGroup"], &pod["hostNetwork"]), (&json!(1000), &json!(true)));
    assert_eq!(container["command"], json!(["/bin/sh", "-c"]));
    assert!(container["livenessProbe"]["httpGet"].is_object() && container["ports"].is_array(), "{container}");
}

#[test]
fn volumes_stand_in_the_order_in_which_they_are_mounted() {
    let volumes = json!(["a", "b", "c"].map(|name| json!({"name": name, "emptyDir": {}})));
    let mounts = json!([{"name": "c", "mountPath": "/c"}, {"name": "a", "mountPath": "/a"}]);
    let main = json!({"image": "i", "volumeMounts": mounts});
    let (deployment, _) = pod(&json!({"extraPodSpec": {"volumes": volumes, "mainContainer": main}}), &json!({}));
    let volumes = deployment["template"]["spec"]["volumes"].as_array().cloned().unwrap_or_default();
    let names: Vec<&str> = volumes.iter().filter_map(|volume| volume["name"].as_str()).collect();
    assert_eq!(names, ["c", "a", "shared-memory", "b"]);
}

#[test]
fn a_variable_says_replicas_and_resources_where_fields_say_none() {
    let config = json!({"Worker": {"ServiceArgs": {"workers": 3, "resources": {"cpu": "2", "gpu": "1"}}}}).to_string();
    let envs = json!([{"name": "DYN_DEPLOYMENT_CONFIG", "value": config}]);
    let (deployment, container) = pod(&json!({"envs": envs}), &json!({}));
    assert_eq!(deployment["replicas"], json!(3));
    let quantities = json!({"cpu": "2", "nvidia.com/gpu": "1"});
    assert_eq!(container["resources"], json!({"limits": quantities, "requests": quantities}));
    assert_eq!(pod(&json!({"envs": envs, "replicas": 2}), &json!({})).0["replicas"], json!(2));
    for (wrong, said) in [
        ("{", "DYN_DEPLOYMENT_CONFIG is no JSON"),
        (r#"{"Worker": {"ServiceArgs": {"workers": 9223372036854775807}}}"#, "must be a whole number"),
        (r#"{"Worker": {"ServiceArgs": {"workers": -1}}}"#, "must be a whole number"),
        (r#"{"Worker": {"ServiceArgs": {"resources": {"cpu": {"a": 1}}}}}"#, "must be a quantity"),
        (r#"{"Worker": {"ServiceArgs": {"resources": {"gpu": "-5"}}}}"#, "must be a quantity"),
    ] {
        let envs = json!([{"name": "DYN_DEPLOYMENT_CONFIG", "value": wrong}]);
        let message = message(expanded(&worker(&json!({"envs": envs})), json!({}), None));
        assert!(message.contains(said), "{wrong}: {message}");
    }
}

#[test]
fn several_nodes_are_started_as_annotations_flags_and_versions_say() {
    let leader = |command: Value, fields: Value, settings: Value| {
        let mut all = json!({
            "multinode": {"nodeCount": 2}, "resources": {"limits": {"gpu": "8"}}, "extraPodSpec": {"mainContainer": command},
        });
        if let (Some(all), Value::Object(fields)) = (all.as_object_mut(), fields) {
            all.extend(fields);
        }
        let rendered = expanded(&worker(&all), settings, None)?;
        let set = rendered.iter().find(|object| object.id().kind == "LeaderWorkerSet").expect("there is one");
        assert_eq!(set.body()["spec"]["replicas"], 1);
        let container = &set.body()["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["spec"]["containers"][0];
        let words = ["command", "args"].map(|field| container[field].as_array().cloned().unwrap_or_default());
        Ok(words.concat().iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "))
    };
    let python = |args: &[&str]| json!({"image": "i", "command": ["python3", "-m", "dynamo.vllm"], "args": args});
    let wide = python(&["--tensor-parallel-size", "16"]);
    let line = leader(wide.clone(), json!({}), json!({})).expect("it can be rendered");
    assert!(line.contains("--distributed-executor-backend mp --nnodes 2"), "{line}");
    let ray = json!({"annotations": {"nvidia.com/vllm-distributed-executor-backend": "RAY"}});
    let old = json!({"operatorVersion": "0.8.0"});
    for (fields, settings) in [(ray.clone(), json!({})), (json!({}), old)] {
        let line = leader(wide.clone(), fields, settings).expect("it can be rendered");
        let expected = "/bin/sh -c ray start --head --port=6379 && python3 -m dynamo.vllm --tensor-parallel-size 16 \
                        --distributed-executor-backend ray";
        assert_eq!(line, expected);
    }
    let script = json!({"image": "i", "command": ["/bin/sh", "-c"], "args": ["python3 -m dynamo.vllm --tensor-parallel-size 16"]});
    let line = leader(script, ray, json!({})).expect("it can be rendered");
    assert!(
        line.ends_with(
            "/bin/sh -c \"python3 -m dynamo.vllm --tensor-parallel-size 16\" --distributed-executor-backend ray"
        ),
        "{line}"
    );
    let elastic = python(&["--enable-elastic-ep", "--data-parallel-size", "16"]);
    assert!(message(leader(elastic, json!({}), json!({})).map(|_| Vec::new())).contains("--enable-elastic-ep"));
    let own = json!({"image": "i", "command": ["/app/run.sh"]});
    assert_eq!(
        leader(own, json!({}), json!({})).ok().as_deref(),
        Some("/app/run.sh"),
        "it is started as it is written"
    );
}
