//! What graphs become, part by part.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::expand::{self, Data};
use super::settings::Settings;
use super::{FILES, backend};
use crate::object::{Gvk, Object, ObjectId};
use crate::pack::document;
use crate::problem::Problem;
use crate::render::Renderer;
use crate::spec::Document;
use crate::yaml;

const TEMPLATES: [&str; 8] = [
    "rbac.yaml",
    "claims.yaml",
    "configmaps.yaml",
    "services.yaml",
    "picker.yaml",
    "workloads.yaml",
    "cliques.yaml",
    "entrances.yaml",
];

fn graph(text: &str) -> Document {
    let root = yaml::parse(text).expect("the graph is YAML").pop().expect("there is a document");
    let text =
        |path: &[&str]| root.at(path.iter().copied()).and_then(yaml::Node::as_str).unwrap_or_default().to_owned();
    let gvk = Gvk::new(&text(&["apiVersion"]), &text(&["kind"]));
    let id = ObjectId::new("nvidia.com", &text(&["kind"]), "serving", &text(&["metadata", "name"]));
    Document { id, gvk, file: "graph.yaml".into(), root, patched: Vec::new() }
}

fn expanded(text: &str, settings: Value, served: Option<&[&str]>) -> Result<Vec<Object>, Vec<Problem>> {
    let files = BTreeMap::from(FILES);
    let settings: Settings = serde_json::from_value(settings).expect("these are settings");
    let backends = backend::all(&files).expect("the backends can be read");
    let types = document(&files, "types.yaml").expect("the types can be read").to_value();
    let serves = |_: &str, kind: &str| served.is_some_and(|served| served.contains(&kind));
    let serves: Option<&dyn Fn(&str, &str) -> bool> = if served.is_some() { Some(&serves) } else { None };
    let data = Data { settings: &settings, backends: &backends, types: &types, serves };
    let document = graph(text);
    let namespace = document.root.at(["metadata", "namespace"]).and_then(yaml::Node::as_str).unwrap_or("serving");
    let values = expand::values(&document, namespace, &data)?;
    let templates: Vec<_> = TEMPLATES.iter().map(|&name| (name.to_owned(), files[name].to_owned())).collect();
    Ok(Renderer::new(&templates).expect("the templates load").render(&values).expect("the templates can be filled"))
}
