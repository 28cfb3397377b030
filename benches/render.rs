//! The cost of rendering: `cargo bench --bench render`.
//!
//! Renders 1,000 Gateways of four objects each; half of them have parameters of both levels.
//! Figures are CPU time, as the kernel counts it for this thread, so that other work on the machine does not matter
//! much; the least of several rounds counts, because nothing makes a program faster than it is. Freeing what was made counts too.

use std::fs;

use gatewright_engine::explain::{self, Inputs};
use gatewright_engine::object::Object;
use gatewright_engine::overlay::Assignment;
use gatewright_engine::pack::{Packs, Provision};
use gatewright_engine::resolve::{Resolution, Resolved, resolve};
use gatewright_engine::spec;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{self, Options, Source};
use gatewright_engine::yaml;
use serde_json::Value;

const GATEWAYS: u32 = 1_000;
const OBJECTS: u32 = 4 * GATEWAYS;
const ROUNDS: usize = 10;
/// The shortest time that one measurement takes, in nanoseconds.
const SPAN: u64 = 300_000_000;

const CLASSES: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: plain}
spec: {controllerName: kgateway.dev/kgateway}
---
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
      image: {registry: ghcr.io, repository: org/envoy, tag: v1}
      resources:
        requests: {cpu: 100m, memory: 128Mi}
        limits: {memory: 256Mi}
    podTemplate:
      nodeSelector: {example.com/pool: gateways}
      tolerations:
        - {key: example.com/pool, operator: Exists}
";

const PLAIN: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata:
  name: NAME
  namespace: NAMESPACE
spec:
  gatewayClassName: plain
  listeners:
    - name: http
      protocol: HTTP
      port: 8080
    - name: https
      protocol: HTTPS
      port: 8443
      tls:
        certificateRefs:
          - name: NAME
";

const WITH_PARAMETERS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata:
  name: NAME
  namespace: NAMESPACE
spec:
  gatewayClassName: public
  listeners:
    - name: http
      protocol: HTTP
      port: 8080
    - name: https
      protocol: HTTPS
      port: 8443
      tls:
        certificateRefs:
          - name: NAME
  infrastructure:
    labels:
      example.com/team: NAMESPACE
    parametersRef:
      group: gateway.kgateway.dev
      kind: GatewayParameters
      name: NAME
---
apiVersion: gateway.kgateway.dev/v1alpha1
kind: GatewayParameters
metadata:
  name: NAME
  namespace: NAMESPACE
spec:
  kube:
    deployment:
      replicas: 5
    envoyContainer:
      bootstrap:
        logLevel: warning
      resources:
        requests:
          cpu: 2
    service:
      extraAnnotations:
        example.com/load-balancer: internal
";

fn tree() -> Tree {
    let mut files = vec![("classes.yaml".to_owned(), CLASSES.to_owned())];
    for number in 0..GATEWAYS {
        let text = if number % 2 == 0 { PLAIN } else { WITH_PARAMETERS };
        let (name, namespace) = (format!("gateway-{number:04}"), format!("team-{}", number / 100));
        files.push((format!("{namespace}/{name}.yaml"), text.replace("NAMESPACE", &namespace).replace("NAME", &name)));
    }
    Tree::from_iter(files)
}

fn packs() -> Packs {
    let pack = gatewright_packs::pack("kgateway", &Value::Null).expect("the built-in pack can be used");
    let packs = Packs::new(vec![pack]).expect("the built-in pack can be used");
    packs.with_definitions(gatewright_packs::definitions())
}

/// Returns the CPU time of this thread in nanoseconds.
fn cpu() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux says what a thread has used");
    text.split(' ').next().and_then(|field| field.parse().ok()).expect("the first number is the CPU time")
}

/// Returns the least CPU time of one run of something in milliseconds per Gateway.
///
/// The kernel counts in steps of some milliseconds, so short work is measured in several runs at once.
fn measure<T>(rounds: usize, work: impl FnMut() -> T) -> f64 {
    least(rounds, work) / f64::from(GATEWAYS)
}

/// Returns the least CPU time of one run of something in milliseconds.
fn least<T>(rounds: usize, mut work: impl FnMut() -> T) -> f64 {
    let mut span = |runs: u32| {
        let start = cpu();
        (0..runs).for_each(|_| drop(std::hint::black_box(work())));
        cpu() - start
    };
    let runs = if rounds == 1 { 1 } else { u32::try_from(SPAN / span(1).max(SPAN / 100)).unwrap_or(1).max(1) };
    let least = (0..rounds).map(|_| span(runs)).min().unwrap_or_default();
    #[expect(clippy::cast_precision_loss, reason = "no run takes weeks")]
    let milliseconds = least as f64 / 1e6;
    milliseconds / f64::from(runs)
}

fn ready<'a>(specs: &'a spec::Specs, packs: &'a Packs, none: &'a Assignment) -> Vec<Box<Resolved<'a>>> {
    let resolutions = resolve(specs, packs, none).into_iter().filter_map(|(_, resolution)| match resolution {
        Resolution::Ready(resolved) => Some(resolved),
        Resolution::NotOurs { .. } | Resolution::Broken(_) => None,
    });
    resolutions.collect()
}

#[expect(clippy::print_stdout, reason = "the figures are for the person who runs this")]
fn report(what: &str, milliseconds: f64) {
    let per_second = 1e3 / milliseconds * f64::from(OBJECTS) / f64::from(GATEWAYS);
    println!("{what:<52} {milliseconds:>8.3} ms CPU per Gateway {per_second:>10.0} objects/s");
}

#[expect(clippy::print_stdout, reason = "the figures are for the person who runs this")]
fn report_one(what: &str, milliseconds: f64, fields: usize) {
    println!("{what:<52} {milliseconds:>8.3} ms CPU for {fields} fields");
}

/// A single Gateway with parameters of both levels.
fn one_gateway() -> Tree {
    let text = WITH_PARAMETERS.replace("NAMESPACE", "team").replace("NAME", "gateway");
    Tree::from_iter([("classes.yaml", CLASSES.to_owned()), ("gateway.yaml", text)])
}

fn main() {
    // `cargo test --all-targets` runs this too, without the argument.
    let rounds = if std::env::args().any(|argument| argument == "--bench") { ROUNDS } else { 1 };
    let (tree, packs, options) = (tree(), packs(), Options::default());
    let rendering = unit::render(&tree, &packs, &options);
    let objects: Vec<&Object> = rendering.units.iter().flat_map(|unit| &unit.objects).collect();
    assert_eq!((objects.len(), rendering.problems.len()), (OBJECTS as usize, 0), "every Gateway is rendered");
    let texts: Vec<String> = objects.iter().map(|object| yaml::to_string(object.body())).collect();

    let specs = Source::load(&tree, &packs, None).specs;
    let none = Assignment::default();
    let resolved = ready(&specs, &packs, &none);
    let value = |resolved: &Resolved<'_>| match unit::values(resolved, &unit::subject(resolved, &options)) {
        Ok(Provision::Values(values)) => Some(values),
        Ok(Provision::SelfManaged | Provision::PassThrough(_)) | Err(_) => None,
    };
    let values: Vec<Value> = resolved.iter().filter_map(|resolved| value(resolved)).collect();
    let renderer = &resolved[0].pack.renderer;

    let whole = measure(rounds, || unit::render(&tree, &packs, &options));
    let load = measure(rounds, || Source::load(&tree, &packs, None));
    let merge = measure(rounds, || resolved.iter().filter_map(|resolved| value(resolved)).count());
    let fill = measure(rounds, || values.iter().map(|values| renderer.render(values)).collect::<Vec<_>>());
    let decode = measure(rounds, || texts.iter().map(|text| yaml::parse_values(text)).collect::<Vec<_>>());
    report("from specs to objects", whole);
    report("  without reading the specs", whole - load);
    report("  reading and checking the specs", load);
    report("  merging parameters, computing values", merge);
    report("  filling and decoding the templates", fill);
    report("for comparison: decoding the same objects as YAML", decode);

    // Of a fleet of one: finding a Gateway among others is not what this is about.
    let gateway = one_gateway();
    let source = Source::load(&gateway, &packs, None);
    let inputs = Inputs { source: &source, packs: &packs, options: &options, config: None };
    let unit = unit::render(&gateway, &packs, &options).units.remove(0);
    for (what, kind, path) in [
        ("explaining one field that a parameter sets", "Deployment", "spec.replicas"),
        ("explaining all fields of the Deployment", "Deployment", ""),
        ("explaining all fields of the ConfigMap", "ConfigMap", ""),
    ] {
        let object = unit.objects.iter().map(Object::id).find(|id| id.kind == kind).expect("it is rendered");
        let explain = || explain::object(&inputs, &unit.id, object, path);
        report_one(what, least(rounds, explain), explain().map_or(0, |found| found.leaves.len()));
    }
}
