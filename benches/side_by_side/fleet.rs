//! The Gateways that are measured with, and the objects that they come to.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gatewright::config::packs::Folders;
use gatewright_engine::marks::Marker;
use gatewright_engine::object::Object;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{self, Options};
use serde_json::{Value, json};

/// In how many namespaces they are.
pub(crate) const NAMESPACES: usize = 10;

/// The values that a merge patch of [`drift`] sets.
pub(crate) const STRAY_REPLICAS: u64 = 7;
const STRAY_TEXT: &str = "somebody was here";

/// The number of pods is said, so that changing it on the cluster is drift.
const CLASS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: kgateway}
spec:
  controllerName: kgateway.dev/kgateway
  parametersRef: {group: gateway.kgateway.dev, kind: GatewayParameters, name: all, namespace: team-0}
---
apiVersion: gateway.kgateway.dev/v1alpha1
kind: GatewayParameters
metadata: {name: all, namespace: team-0}
spec:
  kube:
    deployment: {replicas: 2}
    envoyContainer:
      resources:
        requests: {cpu: 100m, memory: 128Mi}
        limits: {memory: 256Mi}
";

const GATEWAY: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: NAME, namespace: NAMESPACE}
spec:
  gatewayClassName: kgateway
  listeners:
    - {name: http, protocol: HTTP, port: 8080}
    - {name: https, protocol: HTTPS, port: 8443, tls: {certificateRefs: [{name: NAME}]}}
";

/// Returns the name of a namespace.
pub(crate) fn namespace(index: usize) -> String {
    format!("team-{index}")
}

/// Returns the path and the text of each spec.
fn specs(gateways: usize) -> impl Iterator<Item = (String, String)> {
    let gateway = |number: usize| {
        let (name, namespace) = (format!("gateway-{number:04}"), namespace(number % NAMESPACES));
        (format!("{namespace}/{name}.yaml"), GATEWAY.replace("NAMESPACE", &namespace).replace("NAME", &name))
    };
    std::iter::once(("class.yaml".to_owned(), CLASS.to_owned())).chain((0..gateways).map(gateway))
}

/// Makes a folder hold the specs of so many Gateways and nothing else.
pub(crate) fn write_specs(folder: &Path, gateways: usize) {
    if folder.exists() {
        fs::remove_dir_all(folder).expect("a folder of our own can be removed");
    }
    for (path, text) in specs(gateways) {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap_or(folder)).expect("a temporary folder can be written");
        fs::write(path, text).expect("a temporary folder can be written");
    }
}

/// Returns the objects of so many Gateways, marked: exactly what gatewright applies. Each Gateway has four, together.
pub(crate) fn objects(gateways: usize, marker: &Marker) -> Vec<Object> {
    let folders = Folders { builtin: gatewright_packs::all().into(), own: BTreeMap::new() };
    let packs = gatewright::config::packs::build(None, &folders).expect("the built-in packs are sound");
    let tree: Tree = specs(gateways).collect();
    let rendering = unit::render(&tree, &packs, &Options::default());
    assert_eq!((rendering.units.len(), rendering.problems.len()), (gateways, 0), "{:?}", rendering.problems);
    let wanted = rendering.marked(marker);
    let objects: Vec<Object> = wanted.units.iter().flat_map(|unit| unit.objects.clone()).collect();
    assert_eq!(objects.len(), 4 * gateways, "a Gateway has four objects");
    objects
}

/// Returns the address of an object on the API server.
pub(crate) fn address(object: &Object) -> String {
    let (id, kind) = (object.id(), object.gvk());
    let root = if kind.group.is_empty() { "api" } else { "apis" };
    let plural = format!("{}s", id.kind.to_lowercase());
    format!("/{root}/{}/namespaces/{}/{plural}/{}", kind.api_version(), id.namespace, id.name)
}

/// Chooses one object in a hundred, a Deployment and a ConfigMap in turn, and what somebody does to each.
pub(crate) fn drift(objects: &[Object]) -> Vec<(&Object, Value)> {
    let of = |kind: &'static str| objects.iter().filter(move |object| object.id().kind == kind).step_by(50);
    let scaled = of("Deployment").map(|object| (object, json!({"spec": {"replicas": STRAY_REPLICAS}})));
    let edited = of("ConfigMap").filter_map(|object| {
        let key = object.body()["data"].as_object()?.keys().next()?;
        Some((object, json!({"data": {key.as_str(): STRAY_TEXT}})))
    });
    scaled.zip(edited).flat_map(|(one, other)| [one, other]).collect()
}
