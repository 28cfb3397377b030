use super::*;
use crate::merge::origin::LayerName;
use crate::pack::Packs;
use crate::spec::Specs;
use crate::tree::Tree;
use crate::unit::Source;
use crate::yaml;
use serde_json::json;

const OVERLAYS: &str = "
- {path: deployment, kind: Deployment}
- {path: daemonSet, kind: DaemonSet}
- {path: service, kind: Service}
- {path: account, kind: ServiceAccount}
- {path: budget, kind: PodDisruptionBudget, creates: true}
- {path: scaler, kind: HorizontalPodAutoscaler, creates: true}
- {path: vertical, kind: VerticalPodAutoscaler, creates: true}
";

const GATEWAY: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra}
spec: {gatewayClassName: c, listeners: [{name: a, port: 80, protocol: HTTP}]}
";

fn overlays() -> Vec<OverlayParameter> {
    let node = yaml::parse(OVERLAYS).expect("it is YAML").remove(0);
    serde_json::from_value(node.to_value()).expect("these are overlays")
}

fn objects(workload: &str) -> Vec<Object> {
    let selector = json!({"matchLabels": {"app": "edge"}});
    let bodies = [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "edge"}}),
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "edge"},
            "spec": {"ports": [{"port": 443, "protocol": "TCP"}, {"port": 443, "protocol": "UDP"}, {"port": 80}]},
        }),
        json!({
            "apiVersion": "apps/v1",
            "kind": workload,
            "metadata": {"name": "edge", "labels": {"app": "edge"}},
            "spec": {"selector": selector, "template": {"spec": {"containers": [{"name": "proxy", "image": "i"}]}}},
        }),
    ];
    bodies.into_iter().map(|body| Object::new(body).expect("it is an object")).collect()
}

/// Lays overlays, the lowest layer first, over the objects of a Gateway.
fn apply_to(workload: &str, layers: &[&str]) -> Result<Overlaid, Vec<Problem>> {
    let packs = Packs::new(Vec::new()).expect("the built-in kinds are sound");
    let specs: Specs = Source::load(&Tree::from_iter([("g.yaml", GATEWAY)]), &packs, None).specs;
    let document = specs.documents.values().next().expect("the Gateway is sound");
    let gateway = document.read().expect("the Gateway is sound");
    let nodes: Vec<Node> = layers.iter().map(|text| yaml::parse(text).expect(text).remove(0)).collect();
    let layers: Vec<_> = nodes.iter().map(|node| Layer::new(LayerName::Gateway, "p.yaml", node)).collect();
    let subject = Subject {
        document,
        gateway: &gateway,
        namespace: "infra",
        class: "c",
        listener_sets: &[],
        listener_set_documents: &[],
        layers: &layers,
        specs: &specs,
        capabilities: None,
    };
    apply(&overlays(), &subject, objects(workload))
}

fn applied(layers: &[&str]) -> Vec<Object> {
    apply_to("Deployment", layers).expect("nothing is wrong").objects
}

fn body<'a>(objects: &'a [Object], kind: &str) -> &'a Value {
    objects.iter().find(|object| object.id().kind == kind).expect(kind).body()
}

fn refused(workload: &str, layer: &str, expected: &[&str]) {
    let problems = apply_to(workload, &[layer]).expect_err(layer);
    let lines: Vec<String> =
        problems.iter().map(|problem| problem.to_string().replace("Gateway infra/edge: ", "")).collect();
    assert_eq!(lines, expected, "{layer}");
}

fn noticed(layer: &str, expected: &[&str]) {
    let warnings = apply_to("Deployment", &[layer]).expect("nothing is wrong").warnings;
    let lines: Vec<String> = warnings.iter().map(|warning| format!("{}: {}", warning.place, warning.message)).collect();
    assert_eq!(lines, expected, "{layer}");
}

#[test]
fn layers_go_over_each_other_the_lowest_first() {
    let class = "deployment: {metadata: {labels: {a: class, b: class}}, spec: {replicas: 2, paused: true}}";
    let gateway =
        "deployment: {metadata: {labels: {b: gateway, c: ~}, annotations: {d: e}}, spec: {replicas: 3, paused: ~}}";
    let objects = applied(&[class, gateway]);
    let deployment = body(&objects, "Deployment");
    let labels = json!({"app": "edge", "a": "class", "b": "gateway", "c": ""});
    assert_eq!(deployment["metadata"], json!({"name": "edge", "labels": labels, "annotations": {"d": "e"}}));
    assert_eq!(deployment["spec"]["replicas"], 3);
    assert_eq!(deployment["spec"].get("paused"), None);
}

#[test]
fn an_overlay_that_says_nothing_changes_nothing() {
    for text in
        ["{}", "deployment: ~", "deployment: {}", "deployment: {metadata: ~, spec: {}}", "deployment: {spec: ~}"]
    {
        assert_eq!(applied(&[text]), objects("Deployment"), "{text}");
    }
}

#[test]
fn what_a_patch_leaves_behind_is_dropped() {
    let objects = applied(&["deployment: {spec: {strategy: {$retainKeys: [type], type: Recreate, rollingUpdate: ~}}}"]);
    assert_eq!(body(&objects, "Deployment")["spec"]["strategy"], json!({"type": "Recreate"}));
}

#[test]
fn budgets_and_scalers_are_made_once_and_come_last() {
    let class = "
deployment: {metadata: {labels: {team: x}}}
vertical: {spec: {updatePolicy: {updateMode: Off, minReplicas: 1}, resourcePolicy: {}}}
budget: {metadata: {labels: {of: class}}, spec: {minAvailable: 1}}";
    let gateway = "
deployment: {metadata: {labels: {team: z}}}
budget: {spec: {minAvailable: ~, maxUnavailable: 1}}
scaler: {spec: {maxReplicas: 5}}
vertical: {spec: {updatePolicy: {updateMode: Auto}, resourcePolicy: ~}}";
    let objects = applied(&[class, gateway]);
    let kinds: Vec<&str> = objects[3..].iter().map(|object| object.id().kind.as_str()).collect();
    assert_eq!(kinds, ["PodDisruptionBudget", "HorizontalPodAutoscaler", "VerticalPodAutoscaler"]);
    let budget = body(&objects, "PodDisruptionBudget");
    assert_eq!(budget["metadata"]["labels"], json!({"app": "edge", "team": "z", "of": "class"}));
    assert_eq!(budget["spec"], json!({"selector": {"matchLabels": {"app": "edge"}}, "maxUnavailable": 1}));
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "edge"});
    let scaler = body(&objects, "HorizontalPodAutoscaler");
    assert_eq!(scaler["spec"], json!({"scaleTargetRef": target, "maxReplicas": 5}));
    let vertical = body(&objects, "VerticalPodAutoscaler");
    assert_eq!(vertical["spec"], json!({"targetRef": target, "updatePolicy": {"updateMode": "Auto"}}));
    assert_eq!(body(&objects, "Deployment")["metadata"]["labels"], json!({"app": "edge", "team": "z"}));
}

#[test]
fn what_is_made_has_the_labels_of_the_layer_that_asks_for_it() {
    let layers = ["budget: {spec: {minAvailable: 1}}", "deployment: {metadata: {labels: {team: z}}}"];
    assert_eq!(body(&applied(&layers), "PodDisruptionBudget")["metadata"]["labels"], json!({"app": "edge"}));
}

#[test]
fn a_patch_that_fails_is_named_with_its_line() {
    refused(
        "Deployment",
        "deployment:\n  spec:\n    template:\n      spec:\n        containers:\n          - {name: proxy}\n          - image: x\n",
        &[
            "p.yaml:7: deployment cannot be laid over Deployment infra/edge: spec.template.spec.containers[1] has no \"name\", by which items of this list are told apart",
        ],
    );
}

#[test]
fn what_an_overlay_must_not_say_is_refused() {
    let replaces = "p.yaml:1: deployment changes which pods are those of Deployment infra/edge";
    refused("Deployment", "deployment: {spec: {selector: {matchLabels: {a: b}}}}", &[replaces]);
    refused("Deployment", "deployment: {spec: {$patch: replace, replicas: 1}}", &[replaces]);
    refused(
        "Deployment",
        "deployment:\n  kind: Deployment\n  metadata: {name: x}\n",
        &[
            "p.yaml:2: deployment has \"kind\", but only metadata and spec of an object can be changed",
            "p.yaml:3: deployment has metadata.name, but only labels and annotations can be changed there",
        ],
    );
    refused(
        "Deployment",
        "service:\n  metadata:\n    labels: {gatewright.dev/sync: x}\n    annotations: {a: 1}\n",
        &[
            "p.yaml:4: service sets \"a\" to something else than text",
            "p.yaml:3: service sets \"gatewright.dev/sync\", and all below gatewright.dev/ is ours",
        ],
    );
    refused("Deployment", "account: {spec: {a: b}}", &["p.yaml:1: account has a spec, but a ServiceAccount has none"]);
    refused("Deployment", "deployment: {spec: x}", &["p.yaml:1: deployment has a spec that is no mapping"]);
}

#[test]
fn an_overlay_needs_its_object() {
    let other = "p.yaml:1: daemonSet is for a DaemonSet, but this Gateway runs as a Deployment";
    refused("Deployment", "daemonSet: {spec: {minReadySeconds: 1}}", &[other]);
    refused(
        "DaemonSet",
        "deployment: {spec: {replicas: 1}}\nscaler: {}\n",
        &[
            "p.yaml:1: deployment is for a Deployment, but this Gateway runs as a DaemonSet",
            "p.yaml:2: scaler is for a Deployment, but this Gateway runs as a DaemonSet, whose size is that of the cluster",
        ],
    );
    let overlaid = apply_to("DaemonSet", &["budget: {}\nvertical: {}\n"]).expect("both are possible");
    assert_eq!(body(&overlaid.objects, "VerticalPodAutoscaler")["spec"]["targetRef"]["kind"], "DaemonSet");
    assert_eq!(body(&overlaid.objects, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"]["app"], "edge");
}

#[test]
fn items_that_share_a_key_are_noticed() {
    noticed(
        "service:\n  spec:\n    ports:\n      - {port: 443, name: quic}\n      - {port: 80}\n",
        &[
            "p.yaml:4: service: 2 items in spec.ports of the object share the merge key port=443, and only the first of them changes",
        ],
    );
    noticed(
        "service: {spec: {ports: [{port: 443, $patch: delete}]}}",
        &["p.yaml:1: service: 2 items in spec.ports of the object share the merge key port=443, and all of them go"],
    );
    noticed(
        "deployment:\n  spec:\n    template:\n      spec:\n        containers:\n          - name: proxy\n            ports:\n              - {containerPort: 1, protocol: TCP}\n              - {containerPort: 1, protocol: UDP}\n",
        &[
            "p.yaml:9: deployment: 2 items in spec.template.spec.containers[proxy].ports share the merge key containerPort=1, so they merge into one",
        ],
    );
    noticed("service: {spec: {ports: [{$patch: replace}, {port: 1}, {port: 1}, {port: 443}]}}", &[]);
    noticed("service: {spec: {ports: [{port: 80, name: http}]}}", &[]);
}
