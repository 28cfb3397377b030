//! The defaults, which hold where nobody says otherwise: the lowest parameters of a pack, as a document of one's own.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::merge::origin::{Merged, MergedContent, Origin};
use crate::object::{Gvk, ObjectId};
use crate::pack::manifest::ParameterKind;
use crate::pack::{Pack, Parameters};
use crate::resolve::Resolved;
use crate::spec::config_map::is_shared;
use crate::spec::gateway::{Gateway, GatewaySpec};
use crate::spec::{Document, GATEWAY_API, Metadata, Specs};
use crate::unit::{Options, parameters, subject};
use crate::yaml::{self, Node};

/// The parameters that a Gateway has when neither it nor its class says anything.
#[derive(Clone, Debug, PartialEq)]
pub struct Defaults {
    /// A document of the parameter kind of the pack, named after the class.
    pub document: Value,
    /// The origin of each parameter, by its path in `spec`.
    pub origins: Vec<(String, Origin)>,
    /// The lists that a document of one's own would add to and not replace, by their paths in `spec`.
    pub appended: Vec<String>,
}

/// Returns the parameters that a Gateway of a class begins with: those of the pack, and of its settings.
pub fn defaults(pack: &Pack, class: &str) -> Defaults {
    let gateway = least_gateway(class);
    let (document, specs, options) = (document_of(&gateway), Specs::default(), Options::default());
    let resolved = Resolved::new(&document, &specs, gateway, pack);
    let merged = parameters(&resolved, &subject(&resolved, &options));
    let ParameterKind { group, kind, versions, .. } = &pack.own.kind;
    let version = versions.first().cloned().unwrap_or_default();
    let api_version = Gvk { group: group.clone(), version, kind: kind.clone() }.api_version();
    let (field, content) =
        if is_shared(group, kind) { ("data", as_data(&merged.to_value())) } else { ("spec", merged.to_value()) };
    let document = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": class}, field: content});
    let mut defaults = Defaults { document, origins: Vec::new(), appended: Vec::new() };
    defaults.collect(&merged, &pack.own, &mut Vec::new());
    defaults
}

/// Returns parameters as a `ConfigMap` holds them: each field is a key, with YAML as its text.
fn as_data(parameters: &Value) -> Value {
    let fields = parameters.as_object().into_iter().flatten();
    fields.map(|(name, value)| (name.clone(), Value::from(yaml::to_string(value)))).collect()
}

/// Makes a Gateway that asks for nothing but its class.
fn least_gateway(class: &str) -> Gateway {
    Gateway {
        api_version: format!("{GATEWAY_API}/v1"),
        kind: "Gateway".to_owned(),
        metadata: Metadata { name: class.to_owned(), namespace: Some("default".to_owned()), ..Metadata::default() },
        spec: GatewaySpec { gateway_class_name: class.to_owned(), ..GatewaySpec::default() },
        status: None,
    }
}

fn document_of(gateway: &Gateway) -> Document {
    let Metadata { name, namespace, .. } = &gateway.metadata;
    let root = json!({
        "apiVersion": gateway.api_version,
        "kind": gateway.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"gatewayClassName": gateway.spec.gateway_class_name},
    });
    let gvk = Gvk::new(&gateway.api_version, &gateway.kind);
    let id = ObjectId::new(&gvk.group, &gvk.kind, namespace.as_deref().unwrap_or_default(), name);
    Document { id, gvk, file: Arc::from(""), root: Node::of_value(&root), patched: Vec::new() }
}

impl Defaults {
    fn collect<'a>(&mut self, merged: &'a Merged, kind: &Parameters, path: &mut Vec<&'a str>) {
        match &merged.content {
            MergedContent::Map(fields) if !fields.is_empty() => {
                for (name, field) in fields {
                    path.push(name);
                    self.collect(field, kind, path);
                    path.pop();
                }
                return;
            }
            MergedContent::List(items) if !items.is_empty() && kind.table.appends(path.iter().copied()) => {
                self.appended.push(path.join("."));
            }
            MergedContent::Map(_) | MergedContent::List(_) | MergedContent::Leaf(_) => {}
        }
        self.origins.push((path.join("."), merged.origin.clone()));
    }
}
