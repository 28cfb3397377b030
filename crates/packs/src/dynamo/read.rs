//! From a document to a [`Graph`], whichever version it is written in.
//!
//! What is not understood is a problem: to leave out a part of a graph and to say nothing would be worse than to
//! render none of it.

mod alpha;
mod beta;
mod texts;

use std::collections::BTreeMap;

use gatewright_engine::check::suggest;
use gatewright_engine::problem::Problem;
use gatewright_engine::spec::Document;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

use super::model::{Component, Fields, Graph, Type};

/// The name of the container that a component is about.
pub(super) const MAIN: &str = "main";

const PASS: &str = "with mode passthrough Dynamo's operator takes care of it";

/// Reads a graph, or says everything that is in the way of rendering it.
pub(super) fn read(document: &Document, namespace: &str) -> Result<Graph, Vec<Problem>> {
    let (graph, problems) = understood(document, namespace);
    if problems.is_empty() { Ok(graph) } else { Err(problems) }
}

/// Reads what can be understood of a graph, and says what cannot be rendered.
pub(super) fn understood(document: &Document, namespace: &str) -> (Graph, Vec<Problem>) {
    let mut reader = Reader { document, problems: Vec::new() };
    let spec = fields(&document.root.to_value()["spec"]);
    let alone = document.id.kind == "DynamoComponentDeployment";
    let mut graph = Graph {
        name: document.id.name.clone(),
        namespace: namespace.to_owned(),
        alone,
        switches: texts::texts(&document.root.to_value()["metadata"]["annotations"]),
        ..Graph::default()
    };
    match (document.gvk.version.as_str(), alone) {
        ("v1alpha1", false) => alpha::graph(&mut reader, &spec, &mut graph),
        ("v1alpha1", true) => alpha::alone(&mut reader, spec, &mut graph),
        (_, false) => beta::graph(&mut reader, &spec, &mut graph),
        (_, true) => beta::alone(&mut reader, spec, &mut graph),
    }
    reader.make_sense(&graph);
    (graph, reader.problems)
}

/// Says what no mode can do anything with: names that stand twice, pods without a main container.
pub(super) fn mistakes(document: &Document, namespace: &str) -> Vec<Problem> {
    let mut reader = Reader { document, problems: Vec::new() };
    let spec = fields(&document.root.to_value()["spec"]);
    if document.gvk.version != "v1alpha1" && document.id.kind == "DynamoGraphDeployment" {
        let mut graph = Graph { namespace: namespace.to_owned(), ..Graph::default() };
        for (index, component) in items(&spec, "components").into_iter().enumerate() {
            let path = vec!["components".to_owned(), index.to_string()];
            graph.components.push(beta::component_basics(&mut reader, path, &fields(&component)));
        }
        reader.names_are_unique(&graph);
    }
    reader.problems
}

/// Collects what is wrong.
struct Reader<'a> {
    document: &'a Document,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    /// A problem with a field below `spec`.
    fn problem(&self, path: &[String], message: impl Into<String>) -> Problem {
        let path: Vec<&str> = std::iter::once("spec").chain(path.iter().map(String::as_str)).collect();
        Problem::document(self.document.place_of(&path), message).about(self.document.id.clone())
    }

    /// Reads a field as a type; what is wrong in it is a problem where it stands. A null says nothing.
    fn typed<T: DeserializeOwned + Default>(&mut self, path: &[String], field: &str, value: &Value) -> T {
        if value.is_null() {
            return T::default();
        }
        serde_path_to_error::deserialize(value).unwrap_or_else(|error| {
            let below = error.path().iter().map(|segment| match segment {
                Segment::Seq { index } => index.to_string(),
                Segment::Map { .. } | Segment::Enum { .. } | Segment::Unknown => segment.to_string(),
            });
            let path: Vec<String> = path.iter().cloned().chain([field.to_owned()]).chain(below).collect();
            self.problems.push(self.problem(&path, format!("{field} cannot be used: {}", error.inner())));
            T::default()
        })
    }

    /// Checks that nothing is written that would be left out.
    fn only(&mut self, path: &[String], fields: &Fields, known: &[&str], refused: &[&str]) {
        for field in fields.keys().filter(|field| !known.contains(&field.as_str())) {
            let path: Vec<String> = path.iter().cloned().chain([field.clone()]).collect();
            let problem = if refused.contains(&field.as_str()) {
                self.problem(&path, format!("{field} cannot be expanded")).hint(PASS)
            } else {
                let problem = self.problem(&path, format!("the field {field:?} is not known here"));
                match suggest(field, known.iter().copied()) {
                    Some(meant) => problem.hint(format!("did you mean {meant:?}?")),
                    None => problem.hint(PASS),
                }
            };
            self.problems.push(problem);
        }
    }

    fn make_sense(&mut self, graph: &Graph) {
        self.names_are_unique(graph);
        if graph.components.is_empty() {
            let problem = self.problem(&[], "the graph has no components");
            self.problems.push(problem);
        }
        for component in graph.components.iter().filter(|component| component.main.get("image").is_none()) {
            let message = format!("component {:?} has no image for its container {MAIN:?}", component.name);
            let problem = self.problem(&component.path, message);
            self.problems.push(problem);
        }
        let pickers: Vec<_> = graph.components.iter().filter(|component| component.kind == Type::Epp).collect();
        if let [_, second, ..] = pickers[..] {
            let problem = self.problem(&second.path, "a graph has at most one component of type epp");
            self.problems.push(problem);
        }
    }

    fn names_are_unique(&mut self, graph: &Graph) {
        let mut seen: BTreeMap<String, &Component> = BTreeMap::new();
        let mut problems = Vec::new();
        for component in &graph.components {
            if let Some(first) = seen.insert(component.lower(), component) {
                let message = format!("component {:?} has the name of {:?}", component.name, first.name);
                let hint = "names of objects are made of them in lower case";
                problems.push(self.problem(&component.path, message).hint(hint));
            }
        }
        self.problems.extend(problems);
    }
}

/// Returns the fields of a mapping, or none.
fn fields(value: &Value) -> Fields {
    value.as_object().cloned().unwrap_or_default()
}

/// Returns the items of a list that is a field, or none.
fn items(fields: &Fields, field: &str) -> Vec<Value> {
    fields.get(field).and_then(Value::as_array).cloned().unwrap_or_default()
}

fn text(fields: &Fields, field: &str) -> Option<String> {
    fields.get(field).and_then(Value::as_str).map(str::to_owned)
}

/// Reads what both versions have in common.
fn common(reader: &mut Reader<'_>, component: &mut Component, fields: &Fields) {
    component.replicas = fields.get("replicas").and_then(Value::as_u64);
    component.min_available = fields.get("minAvailable").and_then(Value::as_u64);
    // Whoever says multinode and no number means two.
    let nodes = |multinode: &Value| multinode.get("nodeCount").and_then(Value::as_u64).unwrap_or(2);
    component.nodes = fields.get("multinode").filter(|it| !it.is_null()).map_or(1, nodes);
    component.model = fields.get("modelRef").and_then(|model| model["name"].as_str()).map(str::to_owned);
    let picker = fields.get("eppConfig").filter(|it| !it.is_null());
    component.picker = picker.map(|picker| reader.typed(&component.path, "eppConfig", picker));
}
