//! The merging, rendering and planning core of gatewright: specs in, objects and plans out.
//!
//! It has no effects: no runtime, network, cluster, clock or environment, so that others can embed it. The one
//! exception is [`tree`], which reads folders: [`tree::Tree::read_dir`] a source, [`pack::Pack::read_dir`] a pack.
//!
//! `docs/library.md` says what is stable, and what a plan goes by on a real cluster.
//!
//! # Reading order
//!
//! A source is a [`tree`] of texts. [`spec`] reads it as documents, [`yaml`] keeping every position, [`check`] and
//! [`schema`] finding every mistake, each a [`problem`] with its place. [`overlay`] is what differs from cluster to
//! cluster. [`resolve`] finds out which [`pack`] renders a Gateway and which parameters govern it, [`merge`] puts those
//! over each other, [`enforce`] bounds them, and [`render`] turns values and templates into [`object`]s. [`mod@patch`]
//! changes those as `kubectl` would. [`mod@unit`] is that whole way in one function. [`explain`] goes it backwards, from
//! a field to what set it, and [`mod@defaults`] shows what it begins with.
//!
//! What is wanted then meets what is there: [`marks`] says whose an object is, [`inventory`] what we own, [`diff`] what
//! differs, [`health`] how it is, and [`plan`] what will be done, which is complete: carrying it out takes no decision.
//! A [`fingerprint`] tells the next round what need not be compared again, and [`memory`] is a cluster to try it on.
//!
//! # Example
//!
//! The whole way, with a pack of two files: render, mark, plan, apply, and plan again.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use gatewright_engine::inventory::Inventory;
//! use gatewright_engine::marks::Marker;
//! use gatewright_engine::memory::Cluster;
//! use gatewright_engine::pack::{Pack, Packs};
//! use gatewright_engine::plan::{plan, policies::Policies};
//! use gatewright_engine::tree::Tree;
//! use gatewright_engine::unit::{Options, render};
//! use serde_json::Value;
//!
//! let manifest = "
//! name: acme
//! controllers: [acme.example.com/gateway]
//! classes: {acme: acme.example.com/gateway}
//! parameters: {group: acme.example.com, kind: AcmeParameters, versions: [v1]}
//! templates: [service.yaml]
//! ";
//! let service = "{apiVersion: v1, kind: Service, metadata: {name: {{ name | json }}}}";
//! let files = BTreeMap::from([("pack.yaml", manifest), ("service.yaml", service)]);
//! let packs = Packs::new(vec![Pack::declared(&files, &Value::Null)?])?;
//!
//! let gateway = "
//! apiVersion: gateway.networking.k8s.io/v1
//! kind: Gateway
//! metadata: {name: edge, namespace: infra}
//! spec:
//!   gatewayClassName: acme
//!   listeners: [{name: http, port: 8080, protocol: HTTP}]
//! ";
//! let rendering = render(&Tree::from_iter([("edge.yaml", gateway)]), &packs, &Options::default());
//! assert!(rendering.problems.is_empty());
//!
//! let policies = Policies::new(Marker::new("0123456789abcdef", "edge"));
//! let wanted = rendering.marked(&policies.marker);
//! let mut cluster = Cluster::new("cluster-1");
//! let first = plan(&wanted, &cluster.observed(), &Inventory::default(), &policies);
//! assert_eq!(first.to_string(), "+ create Service infra/edge\nplan: 1 to create, 0 unchanged");
//!
//! let owned = cluster.apply(&first)?;
//! assert!(plan(&wanted, &cluster.observed(), &owned, &policies).is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod admission;
pub mod check;
pub mod defaults;
mod devices;
pub mod diff;
pub mod editor;
pub mod enforce;
pub mod error;
pub mod explain;
pub mod fingerprint;
pub mod health;
pub mod interrupt;
pub mod inventory;
pub mod kinds;
pub mod live;
pub mod marks;
pub mod mask;
pub mod memory;
pub mod merge;
pub mod object;
pub mod overlay;
pub mod pack;
pub mod patch;
pub mod plan;
pub mod problem;
pub mod quantity;
pub mod reading;
pub mod references;
pub mod relations;
pub mod render;
pub mod resolve;
pub mod rules;
pub mod schema;
pub mod selector;
pub mod spec;
pub mod text;
pub mod tree;
pub mod unit;

pub use gatewright_yaml as yaml;
