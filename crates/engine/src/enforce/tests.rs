use super::*;
use crate::merge::merge;
use crate::merge::origin::Layer;
use crate::pack::{Pack, Packs};
use crate::tree::Tree;
use crate::unit::Source;
use crate::yaml;

const GATEWAY_TEXT: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra, labels: {tier: edge}}
spec:
  gatewayClassName: acme
  allowedListeners: {namespaces: {from: All}}
  listeners:
    - {name: http, port: 8080, protocol: HTTP}
    - {name: https, port: 8443, protocol: HTTPS}
";

const PARAMETERS: &str = "
kube:
  deployment: {replicas: 3}
  service: {type: ClusterIP, ports: [{port: 8080, nodePort: 30080}]}
  proxyContainer:
    image: {registry: mirror.example.com}
    resources: {limits: {cpu: 2, memory: 512Mi}}
    env: [{name: A, value: x}]
  podTemplate:
    extraLabels: {a: b, c: d}
";

const MANIFEST: &str = "
name: acme
controllers: [acme.example.com/acme]
parameters: {group: acme.example.com, kind: AcmeParameters, versions: [v1], schema: parameters.schema.yaml}
templates: []
";

const SCHEMA: &str = "
type: object
properties:
  kube:
    type: object
    properties:
      deployment: {type: object, properties: {replicas: {type: integer}}}
      stats: {type: object, properties: {enabled: {type: boolean}}}
      service:
        type: object
        properties:
          type: {type: string}
          clusterIP: {type: string}
          ports:
            type: array
            items: {type: object, properties: {port: {type: integer}, nodePort: {type: integer}}}
      podTemplate:
        type: object
        properties: {extraLabels: {type: object, additionalProperties: {type: string}}}
      proxyContainer:
        type: object
        properties:
          image: {type: object, properties: {registry: {type: string}}}
          resources:
            type: object
            properties: {limits: {type: object, additionalProperties: {type: [string, number]}}}
          env:
            type: array
            items: {type: object, properties: {name: {type: string}, value: {type: string}}}
";

fn packs() -> Packs {
    let files = BTreeMap::from([("pack.yaml", MANIFEST), ("parameters.schema.yaml", SCHEMA)]);
    let pack = Pack::declared(&files, &Value::Null).expect("the pack is sound");
    Packs::new(vec![pack]).expect("the pack is sound")
}

fn rule(text: &str) -> Result<Rule, RuleError> {
    let packs = packs();
    let bound = Bound { rule: text.to_owned(), message: Some("no".to_owned()) };
    Rule::new(&bound, Place { file: "rules.yaml".into(), line: 7, column: 1 }, &Vocabulary::of_all(packs.kinds()))
}

/// Returns what a rule says about one Gateway: nothing if it holds.
fn outcome(text: &str) -> String {
    outcome_of(text, PARAMETERS, GATEWAY_TEXT)
}

/// The verdict of a rule about a Gateway with parameters.
fn outcome_of(text: &str, parameters: &str, gateway: &str) -> String {
    let node = yaml::parse(parameters).expect("it is YAML").remove(0);
    let parameters = merge(&[Layer::new(LayerName::Gateway, "p.yaml", &node)], &crate::merge::Table::default());
    let specs = Source::load(&Tree::from_iter([("g.yaml", gateway)]), &packs(), None).specs;
    let gateway = specs.documents.values().next().expect("there is one");
    let cluster = ClusterFacts {
        name: "eu-1".to_owned(),
        labels: [("region".to_owned(), "eu".to_owned())].into(),
        ..ClusterFacts::default()
    };
    let facts = Facts { parameters: &parameters, spec: gateway, cluster: Some(&cluster) };
    let rule = rule(text).expect(text);
    check([&rule], &facts).into_iter().map(|problem| problem.to_string()).collect()
}

#[track_caller]
fn holds(text: &str) {
    assert_eq!(outcome(text), "", "{text}");
}

#[track_caller]
fn breaks(text: &str, said: &str) {
    assert!(outcome(text).contains(said), "{text}: {}", outcome(text));
}

#[track_caller]
fn refused(text: &str, said: &str) {
    let error = rule(text).expect_err(text).at(Place::file("rules.yaml")).to_string();
    assert!(error.contains(said), "{text}: {error}");
}

#[test]
fn rules_see_parameters_gateway_and_cluster() {
    holds("kube.deployment.replicas <= 10");
    holds("kube.service.type in ['ClusterIP', 'NodePort']");
    holds("kube.proxyContainer.image.registry.startsWith('mirror.')");
    holds("kube.proxyContainer.image.registry.matches('^mirror[.]') && !kube.service.type.contains('Load')");
    holds("gateway.spec.listeners.all(l, l.port > 1024 && l.protocol != 'TCP')");
    holds("gateway.spec.listeners.all(l, gateway.spec.listeners.exists_one(m, m.name == l.name))");
    holds("gateway.metadata.labels.tier == 'edge' && gateway.metadata.labels['tier'] == 'edge'");
    holds("cluster.name == 'eu-1' && cluster.labels.region == 'eu'");
    holds("kube.podTemplate.extraLabels.all(key, size(key) < 5)");
    holds("kube.service.ports.map(p, p.port).all(p, p + 1 > 1024)");
    holds("kube.service.ports[0].port == gateway.spec.listeners[0].port");
    holds("quantity(kube.proxyContainer.resources.limits.memory) <= quantity('1Gi')");
    holds("quantity(kube.proxyContainer.resources.limits.cpu) > quantity('1500m')");
    holds("has(kube.service.type) ? kube.service.type == 'ClusterIP' : false");
}

#[test]
fn a_breach_names_the_rule_and_who_set_the_value() {
    let said = "p.yaml:3: Gateway infra/edge: kube.deployment.replicas = 3 (gateway, p.yaml:3) breaks the rule \
                \"kube.deployment.replicas < 3\" at rules.yaml:7 (no)";
    assert_eq!(outcome("kube.deployment.replicas < 3"), said);
    breaks(
        "gateway.spec.listeners.all(l, l.port < 8443)",
        "g.yaml:9: Gateway infra/edge: gateway.spec.listeners[].port (g.yaml:9) breaks",
    );
    breaks("kube.proxyContainer.env.all(e, e.name == 'B')", "kube.proxyContainer.env[].name (gateway, p.yaml:8)");
    breaks("cluster.name == 'us-1'", "rules.yaml:7: Gateway infra/edge: it breaks the rule");
}

#[test]
fn a_rule_does_not_apply_to_what_nobody_has_set() {
    holds("kube.service.clusterIP == '10.0.0.1' || true");
    holds("kube.stats.enabled == true");
    holds("kube.podTemplate.extraLabels.nothing == 'x'");
    breaks("has(kube.stats.enabled)", "breaks the rule");
    breaks("has(kube.stats) && kube.stats.enabled", "breaks the rule");
}

#[test]
fn what_cannot_be_evaluated_is_a_problem() {
    breaks("kube.deployment.replicas > 'x'", "rules.yaml:7: Gateway infra/edge: the rule");
    breaks("quantity(kube.service.type) > 1", "\"ClusterIP\" is no quantity, such as 2, 500m or 1Gi");
    breaks("10 / (kube.deployment.replicas - 3) > 1", "cannot be checked");
    breaks("gateway.spec.allowedListeners", "it yields neither true nor false");
}

#[test]
fn a_rule_that_cannot_be_meant_is_refused() {
    refused("kube.deployment.replicas <=", "the rule is no CEL: ");
    refused("kube.deployment.replica <= 3", "there is no field kube.deployment.replica (did you mean \"replicas\"?)");
    refused("kub.deployment.replicas <= 3", "there is no \"kub\" (did you mean \"kube\"?)");
    refused("cluster.label.region == 'eu'", "there is no field cluster.label.region (did you mean \"labels\"?)");
    refused(
        "gateway.spec.listeners.all(l, l.prt > 1)",
        "no field gateway.spec.listeners[].prt (did you mean \"port\"?)",
    );
    refused("kube.service.type.startWith('C')", "no function \"startWith\" (did you mean \"startsWith\"?)");
    refused("gateway.spec.listeners.al(l, true)", "there is no function \"al\" (did you mean \"all\"?)");
    refused("kube.deployment.replicas", "yields a value of another type, and not true or false");
    refused("kube.deployment.replicas + 1", "yields a sum");
    refused("true ? 'yes' : 'no'", "yields text");
    refused("gateway.spec.listeners.map(l, l.port)", "yields a list");
}

#[test]
fn what_a_rule_costs_is_bounded() {
    refused(&format!("true{}", " ".repeat(1_000)), "more than 1000 characters");
    refused(&format!("{}true{}", "[".repeat(40), "]".repeat(40)), "the rule is no CEL: ");
    refused(&format!("1{} > 1", "+1".repeat(400)), "the rule nests too deep");
    refused("[1].all(a, [1].all(b, [1].all(c, true)))", "macros nest more than 2 deep");
    refused("['a'].map(a, a + a).size() > 1", "a sum of values could grow");
    refused("['a'].map(a, [a, a]).size() > 1", "a list of values could grow");
    refused("[1].map(a, [1].map(b, gateway)).size() > 1", "map cannot be used");
    refused("kube.podTemplate.extraLabels.map(k, k) == ['a', 'c']", "map and filter need a list");
    refused("[1].filter(a, true)[0] == 1", "only fields can be looked into");
    holds(&format!("{}true{}", "(".repeat(400), ")".repeat(400)));
    holds(&format!("true{}", "&&true".repeat(150)));
    holds(&format!("[{}1].all(a, [{}1].all(b, a == b))", "1,".repeat(200), "1,".repeat(200)));
    for garbage in
        ["!!(!!!!!!(!!!!(((((!!(!!(!!!!((".repeat(30), "(]{[)}".repeat(160), "{".repeat(999), "!(".repeat(499)]
    {
        assert!(rule(&garbage).is_err(), "{garbage}");
    }
}

/// Parameters with as many variables as a list may be long, and a Gateway with an annotation of 200 KB.
fn long() -> (String, String) {
    let env: Vec<String> = (0..1_000).map(|n| format!("\n    - {{name: v{n}, value: x}}")).collect();
    let parameters = format!("kube:\n  proxyContainer:\n    env: {}\n", env.concat());
    let annotations = format!("{{name: edge, annotations: {{long: {}}}, ", "a".repeat(200_000));
    (parameters, GATEWAY_TEXT.replace("{name: edge, ", &annotations))
}

#[test]
fn a_rule_that_takes_too_many_steps_cannot_be_checked() {
    let (parameters, gateway) = long();
    let ends = |text: &str| outcome_of(text, &parameters, &gateway);
    let env = "kube.proxyContainer.env";
    let many = [
        format!("{env}.all(a, {env}.all(b, !gateway.metadata.annotations.long.contains('zz')))"),
        format!("{env}.all(a, {env}.all(b, a.name != 'zz' || b.name == a.value))"),
        format!("{env}.exists(a, {env}.exists(b, a.name == 'zz'))"),
        format!("{env}.all(a, {env}.exists_one(b, b.name == a.name))"),
        format!("{env}.all(a, {env}.filter(b, b == a).size() == 1)"),
        format!("{env}.all(a, gateway.metadata.annotations.long != gateway.metadata.annotations['long'] || true)"),
        format!("{env}.all(a, size(gateway.metadata.annotations.long) > 3)"),
        format!("{env}.all(a, resource == resource)"),
        format!("{env}.all(a, a.name.matches('(x{{1,100}}){{1,100}}') || true)"),
        format!("{env}.map(a, a.name).all(n, {env}.map(a, a).size() > 0)"),
    ];
    for rule in many {
        let said = ends(&rule);
        assert!(said.contains("cannot be checked: it takes more than 5000000 steps"), "{rule}: {said}");
    }
    for rule in [
        format!("{env}.all(a, size(a.name) < 6)"),
        format!("{env}.map(a, a.name).size() == 1000 && {env}.filter(a, a.name == 'v7').size() == 1"),
        format!("{env}.exists_one(a, a.name == 'v999')"),
        "gateway.metadata.annotations.long.startsWith('aaa')".to_owned(),
        "!gateway.metadata.annotations.long.matches('b$')".to_owned(),
    ] {
        assert_eq!(ends(&rule), "", "{rule}");
    }
    let said = ends(&format!("{env}.all(a, a.name == 'v1')"));
    assert!(said.contains("and 994 more)"), "{said}");
}
