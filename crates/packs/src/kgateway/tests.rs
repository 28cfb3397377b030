//! Tests of the pack as a whole.

mod hostile;
mod merging;
mod strict;

use gatewright_engine::pack::Packs;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{Options, Rendering, render};
use serde_json::Value;

/// A Gateway that refers to the `GatewayParameters` of its own name.
const GATEWAY: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: kgateway
  listeners: [{name: http, protocol: HTTP, port: 8080}]
  infrastructure: {parametersRef: {group: gateway.kgateway.dev, kind: GatewayParameters, name: edge}}
";

fn packs(settings: &Value) -> Packs {
    let pack = crate::pack("kgateway", settings).expect("the settings can be used");
    Packs::new(vec![pack]).expect("the built-in pack can be used")
}

/// Renders [`GATEWAY`] with parameters that have this `spec`, as JSON or YAML of one line.
fn rendering(packs: &Packs, spec: &str) -> Rendering {
    let head = "apiVersion: gateway.kgateway.dev/v1alpha1\nkind: GatewayParameters";
    let parameters = format!("{head}\nmetadata: {{name: edge, namespace: infra}}\nspec: {spec}\n");
    let tree = Tree::from_iter([("gateway.yaml", GATEWAY), ("parameters.yaml", &parameters)]);
    render(&tree, packs, &Options::default())
}
