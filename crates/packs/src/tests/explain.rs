//! Explanations of fields of what kgateway and agentgateway render.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gatewright_engine::explain::{
    ConfigFile, Explanation, Inputs, Questions, SCHEMA, Unexplained, blame, object, origins, parameters,
};
use gatewright_engine::merge::origin::{LayerName, Merged};
use gatewright_engine::object::ObjectId;
use gatewright_engine::pack::{Pack, Packs, Provision, Subject, ValuesGenerator};
use gatewright_engine::problem::Problem;
use gatewright_engine::schema::Schema;
use gatewright_engine::spec;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{Options, Source};
use gatewright_engine::yaml::{self, Node};
use serde_json::{Value, json};

const SPECS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: public}
spec:
  controllerName: kgateway.dev/kgateway
  parametersRef: {group: gateway.kgateway.dev, kind: GatewayParameters, name: public, namespace: infra}
---
apiVersion: gateway.kgateway.dev/v1alpha1
kind: GatewayParameters
metadata: {name: public, namespace: infra}
spec:
  kube:
    deployment: {replicas: 2}
    envoyContainer:
      extraArgs: [--class]
      image: {tag: v1}
    podTemplate:
      tolerations: [{key: pool, operator: Exists}]
    service: {type: ClusterIP}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: public
  listeners:
  - {name: http, port: 80, protocol: HTTP}
  - {name: https, port: 443, protocol: HTTPS}
  infrastructure:
    labels: {team: platform}
    parametersRef: {group: gateway.kgateway.dev, kind: GatewayParameters, name: edge}
---
apiVersion: gateway.kgateway.dev/v1alpha1
kind: GatewayParameters
metadata: {name: edge, namespace: infra}
spec:
  kube:
    deployment: {replicas: 4}
    envoyContainer:
      extraArgs: [--gateway]
    podTemplate:
      tolerations: [{key: zone, operator: Exists}]
      extraVolumes: [{name: scratch, emptyDir: {}}]
    service:
      loadBalancerSourceRanges: [10.0.0.0/8]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: more, namespace: infra}
spec:
  parentRef: {name: edge}
  listeners: [{name: extra, port: 9000, protocol: HTTP}]
";

/// A world with settings in a config file and a sync.
struct World {
    source: Source,
    packs: Packs,
    options: Options,
    config: Node,
}

impl World {
    fn new(text: &str, pack: Pack, config: &str) -> Self {
        let packs = Packs::new(vec![pack]).expect("the schemas are sound");
        let config = yaml::parse(config).expect(config).remove(0);
        let options = Options {
            common_labels: config.at(["syncs", "s", "commonLabels"]).map_or_else(BTreeMap::new, |labels| {
                serde_json::from_value(labels.to_value()).expect("they are texts")
            }),
            ..Options::default()
        };
        Self { source: Source::load(&Tree::from_iter([("a.yaml", text)]), &packs, None), packs, options, config }
    }

    fn kgateway(config: &str) -> Self {
        let node = yaml::parse(config).expect(config).remove(0);
        let settings = node.at(["packs", "kgateway"]).map_or(Value::Null, Node::to_value);
        Self::new(SPECS, crate::pack("kgateway", &settings).expect("the built-in pack can be used"), config)
    }

    fn inputs(&self) -> Inputs<'_> {
        let config = ConfigFile { file: "config.yaml".into(), root: &self.config, sync: Some("s") };
        Inputs { source: &self.source, packs: &self.packs, options: &self.options, config: Some(config) }
    }

    fn explain(&self, kind: &str, path: &str) -> Result<Explanation, Unexplained> {
        let gateway = ObjectId::new(spec::GATEWAY_API, "Gateway", "infra", "edge");
        let group = if kind == "Deployment" || kind == "DaemonSet" { "apps" } else { "" };
        match kind {
            "Gateway" => parameters(&self.inputs(), &gateway, path),
            _ => object(&self.inputs(), &gateway, &ObjectId::new(group, kind, "infra", "edge"), path),
        }
    }

    /// Compares what is said about a path, without the headline.
    #[track_caller]
    fn check(&self, kind: &str, path: &str, expected: &[&str]) {
        let text = self.explain(kind, path).expect(path).to_string();
        assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), expected, "{path}");
    }
}

fn world() -> World {
    World::kgateway("{}")
}

#[test]
fn a_number_names_its_line_and_what_it_is_over() {
    world().check(
        "Deployment",
        "spec.replicas",
        &["spec.replicas: 4", "  kube.deployment.replicas: 4 (gateway, a.yaml:39)", "    over 2 (class, a.yaml:14)"],
    );
}

#[test]
fn a_text_names_all_that_it_is_put_together_from() {
    world().check(
        "Deployment",
        "spec.template.spec.containers.image",
        &[
            r#"spec.template.spec.containers[kgateway-proxy].image: "cr.kgateway.dev/envoy-wrapper:v1""#,
            r#"  packs.kgateway.image.registry: "cr.kgateway.dev" (built-in)"#,
            r#"  kube.envoyContainer.image.repository: "envoy-wrapper" (built-in, kgateway/defaults.yaml:10)"#,
            r#"  kube.envoyContainer.image.tag: "v1" (class, a.yaml:17)"#,
            r#"    over "v2.4.0" (built-in, packs.kgateway.image)"#,
        ],
    );
}

#[test]
fn booleans_and_empty_mappings_are_found() {
    let world = world();
    world.check(
        "Deployment",
        "spec.template.spec.containers.securityContext.runAsNonRoot",
        &[
            "spec.template.spec.containers[kgateway-proxy].securityContext.runAsNonRoot: true",
            "  kube.envoyContainer.securityContext.runAsNonRoot: true (built-in, kgateway/defaults.yaml:16)",
        ],
    );
    world.check(
        "Deployment",
        "spec.template.spec.volumes[scratch].emptyDir",
        &[
            "spec.template.spec.volumes[scratch].emptyDir: {}",
            "  kube.podTemplate.extraVolumes[scratch].emptyDir: {} (gateway, a.yaml:44)",
            r#"  and depends on kube.podTemplate.extraVolumes[scratch].name: "scratch" (gateway, a.yaml:44)"#,
        ],
    );
}

#[test]
fn items_of_appended_lists_have_origins_of_their_own() {
    let world = world();
    world.check(
        "Deployment",
        "spec.template.spec.containers.args[5]",
        &[
            r#"spec.template.spec.containers[kgateway-proxy].args[5]: "--class""#,
            r#"  kube.envoyContainer.extraArgs[0]: "--class" (class, a.yaml:16)"#,
        ],
    );
    world.check(
        "Gateway",
        "kube.podTemplate.tolerations.key",
        &[
            r#"kube.podTemplate.tolerations[pool].key: "pool" (class, a.yaml:19)"#,
            r#"kube.podTemplate.tolerations[zone].key: "zone" (gateway, a.yaml:43)"#,
        ],
    );
}

#[test]
fn specs_have_a_say_beside_parameters() {
    let world = world();
    world.check(
        "Service",
        "spec.ports[listener-9000]",
        &[
            r#"spec.ports[listener-9000].name: "listener-9000""#,
            "  spec.listeners[extra].port: 9000 (ListenerSet infra/more, a.yaml:53)",
            "spec.ports[listener-9000].port: 9000",
            "  spec.listeners[extra].port: 9000 (ListenerSet infra/more, a.yaml:53)",
            r#"spec.ports[listener-9000].protocol: "TCP""#,
            "  depends on spec.listeners[extra].port: 9000 (ListenerSet infra/more, a.yaml:53)",
            "spec.ports[listener-9000].targetPort: 9000",
            "  spec.listeners[extra].port: 9000 (ListenerSet infra/more, a.yaml:53)",
        ],
    );
    world.check(
        "Service",
        "metadata.labels.team",
        &[
            r#"metadata.labels.team: "platform""#,
            r#"  spec.infrastructure.labels.team: "platform" (Gateway infra/edge, a.yaml:31)"#,
        ],
    );
}

#[test]
fn several_inputs_of_which_one_would_do_are_found_together() {
    world().check(
        "Deployment",
        "spec.template.spec.securityContext.sysctls.value",
        &[
            r#"spec.template.spec.securityContext.sysctls[net.ipv4.ip_unprivileged_port_start].value: "0""#,
            "  depends on spec.listeners[*].port: [80,443] (Gateway infra/edge, a.yaml:28)",
        ],
    );
}

#[test]
fn such_inputs_may_stand_in_several_specs() {
    let text = SPECS.replace("port: 443", "port: 8443").replace("port: 9000", "port: 90");
    let pack = crate::pack("kgateway", &Value::Null).expect("the built-in pack can be used");
    World::new(&text, pack, "{}").check(
        "Deployment",
        "spec.template.spec.securityContext.sysctls.value",
        &[
            r#"spec.template.spec.securityContext.sysctls[net.ipv4.ip_unprivileged_port_start].value: "0""#,
            "  depends on spec.listeners[*].port: [80,8443] (Gateway infra/edge, a.yaml:28)",
            "  depends on spec.listeners[*].port: [90] (ListenerSet infra/more, a.yaml:53)",
        ],
    );
}

#[test]
fn an_object_names_what_it_is_there_because_of() {
    let text = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: agentgateway
  listeners: [{name: http, protocol: HTTP, port: 8080}]
  infrastructure: {parametersRef: {group: agentgateway.dev, kind: AgentgatewayParameters, name: p}}
---
apiVersion: agentgateway.dev/v1alpha1
kind: AgentgatewayParameters
metadata: {name: p, namespace: infra}
spec:
  workload: {kind: DaemonSet}
";
    let pack = crate::pack("agentgateway", &Value::Null).expect("the built-in pack can be used");
    let explanation = World::new(text, pack, "{}").explain("DaemonSet", "kind").expect("it is there");
    let lines = explanation.to_string();
    let because = "there because of workload.kind: \"DaemonSet\" (gateway, a.yaml:14)";
    assert_eq!(lines.lines().nth(1), Some(because), "{lines}");
}

const OVERLAYS: &str = "
---
apiVersion: gatewright.dev/v1alpha1
kind: ClusterOverlay
metadata: {name: all}
spec:
  parameters: {kube: {deployment: {replicas: 7}}}
  specPatches: [{patch: {spec: {infrastructure: {labels: {team: ours}}}}}]
  objectPatches:
  - target: {kind: Service}
    patch: {spec: {internalTrafficPolicy: Local}}
";

#[test]
fn overlays_name_their_lines() {
    let pack = crate::pack("kgateway", &Value::Null).expect("the built-in pack can be used");
    let world = World::new(&format!("{SPECS}{OVERLAYS}"), pack, "{}");
    world.check(
        "Deployment",
        "spec.replicas",
        &[
            "spec.replicas: 7",
            "  kube.deployment.replicas: 7 (overlay, a.yaml:60)",
            "    over 4 (gateway, a.yaml:39)",
            "    over 2 (class, a.yaml:14)",
        ],
    );
    world.check(
        "Service",
        "metadata.labels.team",
        &[r#"metadata.labels.team: "ours""#, r#"  spec.infrastructure.labels.team: "ours" (overlay, a.yaml:61)"#],
    );
    world.check(
        "Service",
        "spec.internalTrafficPolicy",
        &[
            r#"spec.internalTrafficPolicy: "Local""#,
            r#"  spec.objectPatches[0].patch.spec.internalTrafficPolicy: "Local" (overlay, a.yaml:64)"#,
        ],
    );
}

#[test]
fn what_is_there_because_of_something_says_so() {
    let world = world();
    world.check(
        "Deployment",
        "spec.template.spec.containers.args[3]",
        &[
            r#"spec.template.spec.containers[kgateway-proxy].args[3]: "--log-level""#,
            r#"  depends on kube.envoyContainer.bootstrap.logLevel: "info" (built-in, kgateway/defaults.yaml:6)"#,
        ],
    );
    let text = world.explain("ConfigMap", "data[envoy.yaml]").expect("it is there").to_string();
    assert!(text.contains("depends on kube.podTemplate.readinessProbe: {"), "{text}");
    assert!(text.contains("(built-in, kgateway/defaults.yaml:48), lines 55 to 59\n"), "{text}");
}

#[test]
fn what_a_pack_brings_along_names_template_or_value() {
    let world = world();
    let fields = "spec.template.spec.containers[kgateway-proxy]";
    let name = format!(r#"{fields}.name: "kgateway-proxy" (template kgateway/deployment.yaml)"#);
    world.check("Deployment", &format!("{fields}.name"), &[&name]);
    let argument = format!(r#"{fields}.args[0]: "--disable-hot-restart" (pack kgateway, value container.args[0])"#);
    world.check("Deployment", &format!("{fields}.args[0]"), &[&argument]);
}

#[test]
fn settings_are_found_in_the_config_file() {
    let config = "packs:\n  kgateway:\n    managedBy: us\nsyncs:\n  s:\n    commonLabels:\n      some: label\n";
    let world = World::kgateway(config);
    world.check(
        "Service",
        "metadata.labels.app.kubernetes.io/managed-by",
        &[
            r#"metadata.labels["app.kubernetes.io/managed-by"]: "us""#,
            r#"  packs.kgateway.managedBy: "us" (settings, config.yaml:3)"#,
        ],
    );
    world.check(
        "Service",
        "metadata.labels.some",
        &[r#"metadata.labels.some: "label""#, r#"  syncs.s.commonLabels.some: "label" (settings, config.yaml:7)"#],
    );
}

#[test]
fn a_path_that_leads_nowhere_is_no_explanation() {
    let unknown = |kind, path| match world().explain(kind, path) {
        Err(Unexplained::NoField { near, known }) => (near, known),
        other => unreachable!("{other:?}"),
    };
    assert_eq!(unknown("Service", "spec.port").0.as_deref(), Some("spec.ports"));
    assert_eq!(unknown("Gateway", "spec.kube.deployment.replica").0.as_deref(), Some("kube.deployment.replicas"));
    assert_eq!(unknown("Service", "everything").1, ["apiVersion", "kind", "metadata", "spec"]);
    assert_eq!(world().explain("Secret", ""), Err(Unexplained::Absent));
}

#[test]
fn an_explanation_is_plain_json() {
    let explanation = world().explain("Deployment", "spec.replicas").expect("it is there");
    let place = |line, column| json!({"file": "a.yaml", "line": line, "column": column});
    let path = "kube.deployment.replicas";
    assert_eq!(
        serde_json::to_value(explanation).expect("it is plain data"),
        json!({
            "schema": SCHEMA,
            "object": {"group": "apps", "kind": "Deployment", "namespace": "infra", "name": "edge"},
            "unit": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "infra", "name": "edge"},
            "place": place(22, 1),
            "template": "kgateway/deployment.yaml",
            "leaves": [{"path": "spec.replicas", "value": 4, "causes": [{
                "effect": "sets", "layer": "gateway", "place": place(39, 28), "path": path, "value": 4,
                "lower": [{"layer": "class", "place": place(14, 28), "path": path, "value": 2}],
            }]}],
        })
    );
}

/// A pack of somebody else: a Secret, from two parameters.
struct Vault;

impl ValuesGenerator for Vault {
    fn defaults(&self, _: &Subject<'_>) -> Merged {
        Merged::of_value(LayerName::Builtin, "vault/defaults.yaml", &json!({"mode": "safe", "password": "s3cret"}))
    }

    fn values(&self, subject: &Subject<'_>, parameters: &Merged) -> Result<Provision, Vec<Problem>> {
        let mut values = parameters.to_value();
        if values["mode"] != "safe" {
            return Err(vec![subject.problem("there is one mode")]);
        }
        values["name"] = subject.document.id.name.as_str().into();
        Ok(Provision::Values(values))
    }
}

fn vault() -> World {
    let manifest = "{name: vault, controllers: [x/y], classes: {public: x/y}, templates: [secret.yaml], \
                    parameters: {group: x, kind: Codes, versions: [v1]}}";
    let template = "apiVersion: v1\nkind: Secret\nmetadata: {name: {{ name | json }}}\n\
                    stringData: {token: {{ password | json }}}\n";
    let files = BTreeMap::from([("pack.yaml", manifest), ("secret.yaml", template)]);
    let pack = Pack::new(&files, Schema::anything(), Arc::new(Vault)).expect("the pack can be used");
    let gateway = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra}
spec: {gatewayClassName: public}
";
    World::new(gateway, pack, "{}")
}

#[test]
fn no_secret_is_shown() {
    let explanation = vault().explain("Secret", "").expect("it is there");
    let text = format!("{explanation}{}", serde_json::to_string(&explanation).expect("it is plain data"));
    assert!(!text.contains("s3cret"), "{text}");
    assert!(text.contains("stringData.token: \"***\""), "{text}");
    assert!(text.contains("  password: \"***\""), "{text}");
}

#[test]
fn what_takes_no_other_value_is_listed_and_not_guessed_about() {
    let explanation = vault().explain("Secret", "metadata.name").expect("it is there");
    let untried: Vec<&str> = explanation.untried.iter().map(|said| said.path.as_str()).collect();
    assert_eq!(untried, ["mode"]);
    assert!(explanation.to_string().contains("mode: \"safe\" (built-in, vault/defaults.yaml)\n"), "{explanation}");
}

#[test]
fn explaining_twice_gives_the_same_bytes() {
    let bytes = || serde_json::to_string(&world().explain("Deployment", "").expect("it is there"));
    assert_eq!(bytes().ok(), bytes().ok());
}

#[test]
fn many_fields_are_asked_for_at_once() {
    let (world, gateway) = (world(), ObjectId::new(spec::GATEWAY_API, "Gateway", "infra", "edge"));
    let deployment = ObjectId::new("apps", "Deployment", "infra", "edge");
    let service = ObjectId::new("", "Service", "infra", "edge");
    let paths = |paths: &[&str]| paths.iter().map(ToString::to_string).collect::<BTreeSet<String>>();
    let asked = BTreeMap::from([
        (
            deployment.clone(),
            paths(&["spec.replicas", "spec.template.spec.terminationGracePeriodSeconds", "spec.none"]),
        ),
        (service.clone(), paths(&["spec.ports[listener-80]"])),
    ]);
    let found = origins(&world.inputs(), &Questions::from([(gateway, asked)]));
    let place = |id: &ObjectId, path: &str| {
        blame::place(&found[id][path], None, &Value::Null).map(ToString::to_string).unwrap_or_default()
    };
    assert_eq!(place(&deployment, "spec.replicas"), "a.yaml:39");
    let of_pack = place(&deployment, "spec.template.spec.terminationGracePeriodSeconds");
    assert!(of_pack.starts_with("kgateway/defaults.yaml:"), "{of_pack}");
    assert_eq!(place(&deployment, "spec.none"), "");
    assert_eq!(place(&service, "spec.ports[listener-80]"), "a.yaml:28");
}
