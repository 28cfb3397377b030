use super::*;
use crate::defaults::defaults;
use crate::health;
use crate::pack::Packs;
use crate::tree::Tree;
use crate::unit::{Options, Rendering, render};

const MANIFEST: &str = "
name: cache
claims:
  - {group: example.com, kind: Cache, versions: [v1]}
  - {group: old.example.com, kind: Cache, versions: [v1]}
  - {group: gatewright.dev, kind: CacheParameters, versions: [v1alpha1]}
parameters: {group: gatewright.dev, kind: CacheParameters, versions: [v1alpha1], schema: parameters.schema.yaml}
defaults: defaults.yaml
values:
  - {name: size, value: resource?.spec?.size or params.size}
  - {name: title, value: 'name ~ \"-\" ~ size'}
templates:
  - map.yaml
  - {file: extra.yaml, when: params.replicas > 1}
checks:
  - {rule: has(params.port), message: 'port is required: where does it listen?'}
  - {rule: port > 1023, message: the port is privileged, warning: true}
health:
  - {kind: ConfigMap, when: params.replicas > 1, current: object.data.ready == 'yes'}
";

const SCHEMA: &str = "
type: object
properties: {size: {type: string}, replicas: {type: integer}, port: {type: integer}, broken: {type: string}}
";

const MAP: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ title | json }}}
data:
  port: {{ params.port | str | json }}
  all: {{ params | yaml | json }}
  {%- if params.broken %}
  broken: {{ params.broken.deep | json }}
  {%- endif %}
";

const EXTRA: &str = "{apiVersion: v1, kind: Secret, metadata: {name: {{ title | hash | json }}}}";

fn packs() -> Packs {
    let files = BTreeMap::from([
        ("pack.yaml", MANIFEST),
        ("defaults.yaml", "{size: small, replicas: 1}"),
        ("parameters.schema.yaml", SCHEMA),
        ("map.yaml", MAP),
        ("extra.yaml", EXTRA),
    ]);
    let pack = Pack::declared(&files, &Value::Null).expect("the pack is sound");
    Packs::new(vec![pack]).expect("the pack is sound")
}

fn rendered(text: &str) -> Rendering {
    render(&Tree::from_iter([("in.yaml", text)]), &packs(), &Options::default())
}

fn parameters(name: &str, spec: &str) -> String {
    format!(
        "{{apiVersion: gatewright.dev/v1alpha1, kind: CacheParameters, metadata: {{name: {name}}}, spec: {spec}}}\n---\n"
    )
}

fn cache(group: &str, name: &str, metadata: &str, spec: &str) -> String {
    format!("{{apiVersion: {group}/v1, kind: Cache, metadata: {{name: {name}{metadata}}}, spec: {spec}}}\n---\n")
}

/// Returns the objects as `Kind name`, and the problems as they are said.
fn outcome(text: &str) -> (Vec<String>, Vec<String>) {
    let rendering = rendered(text);
    let objects = rendering.units.iter().flat_map(|unit| &unit.objects);
    let objects = objects.map(|object| format!("{} {}", object.id().kind, object.id().name)).collect();
    (objects, rendering.problems.iter().map(ToString::to_string).collect())
}

#[test]
fn parameters_of_the_same_name_govern_a_spec() {
    let text = parameters("a", "{port: 8080}") + &cache("example.com", "a", "", "{}");
    assert_eq!(outcome(&text), (vec!["ConfigMap a-small".to_owned()], vec![]));
    let text = parameters("a", "{port: 8080}") + &cache("example.com", "a", "", "{size: large}");
    assert_eq!(outcome(&text), (vec!["ConfigMap a-large".to_owned()], vec![]));
}

#[test]
fn parameters_may_be_named() {
    let metadata = ", annotations: {gatewright.dev/parameters: common}";
    let both = |name: &str| cache("example.com", name, metadata, "{}");
    let text = parameters("common", "{port: 8080}") + &both("a") + &both("b");
    assert_eq!(outcome(&text).0, ["ConfigMap a-small", "ConfigMap b-small"]);
    let (objects, problems) = outcome(&both("a"));
    assert!(objects.is_empty() && problems[0].contains("there is no CacheParameters"), "{problems:?}");
}

#[test]
fn parameters_alone_are_a_spec() {
    assert_eq!(outcome(&parameters("a", "{port: 8080}")).0, ["ConfigMap a-small"]);
}

#[test]
fn parameters_of_a_broken_spec_are_nobody_elses() {
    let twice = cache("example.com", "a", "", "{}") + &cache("example.com", "a", "", "{}");
    let rendering = rendered(&(parameters("a", "{port: 8080}") + &twice));
    assert_eq!((rendering.units.len(), rendering.broken.len(), rendering.problems.len()), (0, 1, 1));
}

#[test]
fn parameters_are_no_spec_while_a_file_cannot_be_read() {
    let text = parameters("a", "{port: 8080}");
    let tree = Tree::from_iter([("a.yaml", text.as_str()), ("b.yaml", "a: [")]);
    let rendering = render(&tree, &packs(), &Options::default());
    assert_eq!((rendering.units.len(), rendering.broken.len(), rendering.problems.len()), (0, 1, 2));
}

#[test]
fn one_name_in_two_groups_is_one_problem() {
    let text = parameters("a", "{port: 8080}")
        + &cache("example.com", "a", "", "{}")
        + &cache("old.example.com", "a", "", "{}");
    let rendering = rendered(&text);
    assert_eq!((rendering.units.len(), rendering.broken.len()), (0, 2));
    let problem = "in.yaml:5: Cache default/a: it stands here in group old.example.com, and at in.yaml:3 in example.com \
                   (remove one of the two; until then neither is used)";
    assert_eq!(outcome(&text).1, [problem]);
}

#[test]
fn a_check_speaks_for_itself() {
    let (objects, problems) = outcome(&cache("example.com", "a", "", "{}"));
    assert!(objects.is_empty());
    assert_eq!(problems, ["in.yaml:1: Cache default/a: port is required: where does it listen?"]);
    let (objects, problems) = outcome(&parameters("a", "{port: 80}"));
    assert_eq!(objects, ["ConfigMap a-small"]);
    assert_eq!(problems, ["in.yaml:1: CacheParameters default/a: the port is privileged"]);
}

#[test]
fn a_condition_adds_objects_and_hints() {
    let rendering = rendered(&parameters("a", "{port: 8080, replicas: 2}"));
    let objects = &rendering.units[0].objects;
    assert_eq!(objects.len(), 2);
    assert_eq!(objects[0].body()["metadata"]["annotations"][health::HINT], "object.data.ready == 'yes'");
    assert_eq!(objects[1].id().name.len(), 64);
    let rendering = rendered(&parameters("a", "{port: 8080}"));
    assert_eq!(rendering.units[0].objects[0].body()["metadata"].get("annotations"), None);
}

#[test]
fn a_mistake_in_the_parameters_has_a_place() {
    let (_, problems) = outcome(&parameters("a", "{prot: 8080}"));
    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with("in.yaml:1:") && problems[0].contains("did you mean \"port\"?"), "{problems:?}");
}

#[test]
fn a_mistake_in_a_template_says_where_and_what_there_is() {
    let (objects, problems) = outcome(&parameters("a", "{port: 8080, broken: x}"));
    assert!(objects.is_empty());
    for part in [
        "map.yaml:9",
        "params.broken.deep",
        "in scope are gateway, name, namespace, params, resource, said, settings, size, title",
    ] {
        assert!(problems[0].contains(part), "{part}: {problems:?}");
    }
}

/// A pack whose parameters stand in `ConfigMaps`.
fn mapped() -> Pack {
    let manifest = "
name: mapped
controllers: [example.com/mapped]
classes: {mapped: example.com/mapped}
parameters: {group: '', kind: ConfigMap, versions: [v1], schema: parameters.schema.yaml}
defaults: defaults.yaml
templates: [map.yaml]
";
    let schema = "{type: object, properties: {deployment: {type: object, properties: {replicas: {type: integer}}}}}";
    let map = "{apiVersion: v1, kind: Secret, metadata: {name: {{ name | json }}}, data: {n: {{ params.deployment.replicas | json_text | json }}}}";
    // A number of four digits is base64 as well, as a Secret has it.
    let defaults = "{deployment: {replicas: 2000}}";
    let files =
        [("pack.yaml", manifest), ("parameters.schema.yaml", schema), ("map.yaml", map), ("defaults.yaml", defaults)];
    Pack::declared(&BTreeMap::from(files), &Value::Null).expect("it is sound")
}

fn of_config_maps(text: &str) -> Rendering {
    let packs = Packs::new(vec![mapped()]).expect("it is sound");
    let gateway = "apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: mapped
  listeners: [{name: http, port: 8080, protocol: HTTP}]
  infrastructure: {parametersRef: {group: '', kind: ConfigMap, name: size}}
";
    let tree = Tree::from_iter([("gateway.yaml", gateway), ("map.yaml", text)]);
    render(&tree, &packs, &Options::default())
}

#[test]
fn a_config_map_that_is_referred_to_is_parameters() {
    let map = |name: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: infra}}\ndata:\n  deployment: |\n    replicas: 3000\n---\n"
        )
    };
    let rendering = of_config_maps(&(map("size") + &map("other")));
    assert_eq!(rendering.problems, []);
    assert_eq!(rendering.units[0].objects[0].body()["data"]["n"], "3000");
    let unclaimed: Vec<&str> = rendering.unclaimed.iter().map(|(id, _)| id.name.as_str()).collect();
    assert_eq!(unclaimed, ["other"]);
}

#[test]
fn defaults_of_a_config_map_can_be_used_as_they_are_printed() {
    let mut document = defaults(&mapped(), "mapped").document;
    assert_eq!(document["data"], serde_json::json!({"deployment": "replicas: 2000\n"}));
    assert!(document.get("spec").is_none());
    document["metadata"] = serde_json::json!({"name": "size", "namespace": "infra"});
    let rendering = of_config_maps(&crate::yaml::to_string(&document));
    assert_eq!(rendering.problems, []);
    assert_eq!(rendering.units[0].objects[0].body()["data"]["n"], "2000");
}

#[test]
fn a_mistake_inside_of_a_config_map_has_its_own_line() {
    let wrong = |data: &str| {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: size, namespace: infra}}\ndata:\n  deployment: {data}"
        );
        let rendering = of_config_maps(&text);
        assert!(rendering.units.is_empty());
        rendering
            .problems
            .iter()
            .map(ToString::to_string)
            .filter(|text| text.starts_with("map.yaml"))
            .collect::<String>()
    };
    let found = wrong("|\n    replcas: 3\n");
    assert!(found.starts_with("map.yaml:6: ") && found.contains("did you mean \"replicas\"?"), "{found}");
    let found = wrong("|\n    replicas: 3\n    b: [\n");
    assert!(found.contains("data.deployment holds no YAML"), "{found}");
    let found = wrong("'{replicas: x}'");
    assert!(found.starts_with("map.yaml:5: "), "{found}");
}

#[test]
fn the_fields_of_a_gateway_are_those_that_lint_knows() {
    let files = BTreeMap::from([
        (
            "pack.yaml",
            "{name: x, controllers: [c], classes: {x: c}, parameters: {group: example.com, kind: P, versions: [v1]}, templates: [m.yaml]}",
        ),
        (
            "m.yaml",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {gateway: {{ gateway | json_text | json }}}}",
        ),
    ]);
    let packs =
        Packs::new(vec![Pack::declared(&files, &Value::Null).expect("the pack is sound")]).expect("it is alone");
    let gateway = "{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: a}, spec: {gatewayClassName: x, \
        addresses: [{value: 192.0.2.1}], listeners: [{name: a, port: 80, protocol: HTTP}]}}";
    let rendering = render(&Tree::from_iter([("in.yaml", gateway)]), &packs, &Options::default());
    let text = rendering.units[0].objects[0].body()["data"]["gateway"].as_str().expect("it is a text").to_owned();
    let gateway: Value = serde_json::from_str(&text).expect("it is JSON");
    let keys = |value: &Value| value.as_object().into_iter().flat_map(Map::keys).cloned().collect::<Vec<_>>();
    let sorted = |fields: &[&str]| fields.iter().map(ToString::to_string).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(keys(&gateway), gateway_fields(None).expect("it has fields"));
    for (list, fields) in ITEMS {
        let found: std::collections::BTreeSet<String> = keys(&gateway[list][0]).into_iter().collect();
        assert_eq!(found, sorted(fields), "{list}");
    }
}
