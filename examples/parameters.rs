//! A parameter kind of somebody else: `cargo run --example parameters` prints the Deployment that it leads to.
//!
//! ```text
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata:
//!   labels:
//!     acme.example/cost-center: "4711"
//!     acme.example/tenant: shop
//! …
//! spec:
//!   replicas: 3
//! …
//! ```
//!
//! `AcmeParameters` embeds `GatewayParameters` and adds two fields. It merges by the table of the kgateway pack, and
//! is rendered by its templates.

use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;

use gatewright_engine::merge::Table;
use gatewright_engine::merge::origin::Merged;
use gatewright_engine::pack::manifest::ParameterKind;
use gatewright_engine::pack::{Packs, Parameters, Provision, Subject, ValuesGenerator};
use gatewright_engine::problem::Problem;
use gatewright_engine::schema::Schema;
use gatewright_engine::spec::Resource;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{Options, render};
use gatewright_engine::yaml;
use gatewright_packs::kgateway::parameters::Spec as GatewaySpec;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

const SPECS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shop, namespace: infra}
spec:
  gatewayClassName: kgateway
  listeners: [{name: http, port: 8080, protocol: HTTP}]
  infrastructure: {parametersRef: {group: acme.example, kind: AcmeParameters, name: shop}}
---
apiVersion: acme.example/v1
kind: AcmeParameters
metadata: {name: shop, namespace: infra}
spec: {tenant: shop, costCenter: 4711, kube: {deployment: {replicas: 3}}}
";

/// The `spec` of an `AcmeParameters`: all that `GatewayParameters` can, and two fields more.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(flatten)]
    _gateway: GatewaySpec,
    tenant: String,
    cost_center: Option<u32>,
}

/// Adds Acme's labels to the values of the kgateway pack.
struct Generator(Arc<dyn ValuesGenerator>);

impl ValuesGenerator for Generator {
    fn defaults(&self, subject: &Subject<'_>) -> Merged {
        self.0.defaults(subject)
    }

    fn values(&self, subject: &Subject<'_>, parameters: &Merged) -> Result<Provision, Vec<Problem>> {
        let mut values = match self.0.values(subject, parameters)? {
            Provision::Values(values) => values,
            others => return Ok(others),
        };
        let spec: Spec = subject.read(parameters)?;
        values["labels"]["acme.example/tenant"] = spec.tenant.into();
        values["labels"]["acme.example/cost-center"] = spec.cost_center.unwrap_or_default().to_string().into();
        Ok(Provision::Values(values))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout())
}

pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let pack = gatewright_packs::pack("kgateway", &Value::Null)?;
    let kind = ParameterKind {
        group: "acme.example".into(),
        kind: "AcmeParameters".into(),
        versions: vec!["v1".into()],
        schema: None,
    };
    let (table, generator) = (Table::new(&pack.manifest.merge), Generator(Arc::clone(&pack.own.generator)));
    let schema = Schema::of::<Resource<Spec>>()?;
    let acme = Parameters { kind, schema, sense: None, table, generator: Arc::new(generator), post_processor: None };
    let packs = Packs::new(vec![pack.with_kind(acme)])?;
    let rendering = render(&Tree::from_iter([("shop.yaml", SPECS)]), &packs, &Options::default());
    rendering.problems.iter().try_for_each(|problem| writeln!(io::stderr(), "{problem}"))?;
    let mut objects = rendering.units.iter().flat_map(|unit| &unit.objects);
    let deployment = objects.find(|object| object.id().kind == "Deployment").ok_or("nothing is rendered")?;
    Ok(write!(out, "{}", yaml::to_string(deployment.body()))?)
}
