//! From a document to a [`Graph`], whichever version it is written in.
//!
//! What is not understood is a problem: to leave out a part of a graph and to say nothing would be worse than to
//! render none of it.

mod alpha;
mod beta;
pub(super) mod fields;
mod types;

use std::collections::BTreeMap;

use gatewright_engine::check::suggest;
use gatewright_engine::problem::Problem;
use gatewright_engine::spec::Document;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_path_to_error::Segment;

use super::model::{Component, Graph, Type, fields};
use crate::json::texts;
use crate::problems;

/// The name of the container that a component is about.
pub(super) const MAIN: &str = "main";

const PASS: &str = "with mode passthrough Dynamo's operator takes care of it";

/// Fields of a graph that cannot be expanded, in both versions.
const GRAPH_REFUSED: [&str; 3] = ["topologyConstraint", "experimental", "providerOverride"];

/// The most nodes of a replica: each of them is named in scripts, so that a slip of the pen would fill the memory.
const MOST_NODES: u64 = 1024;

/// The kind of one component that stands alone.
const ALONE: &str = "DynamoComponentDeployment";

/// The version in which an adapter is a switch.
pub(super) const ALPHA: &str = "v1alpha1";

/// Reads a graph, or says everything that is in the way of rendering it.
pub(super) fn read(document: &Document, namespace: &str) -> Result<Graph, Vec<Problem>> {
    let (graph, problems) = understood(document, namespace);
    if problems.is_empty() { Ok(graph) } else { Err(problems) }
}

/// Reads what can be understood of a graph, and says what cannot be rendered.
pub(super) fn understood(document: &Document, namespace: &str) -> (Graph, Vec<Problem>) {
    let mut reader = Reader { document, problems: Vec::new() };
    let root = document.root.to_value();
    let mut spec = fields(&root["spec"]);
    let alone = document.id.kind == ALONE;
    let mut graph = Graph {
        name: document.id.name.clone(),
        namespace: namespace.to_owned(),
        alone,
        switches: texts(&root["metadata"]["annotations"]),
        backend: spec.get("backendFramework").and_then(text),
        ..Graph::default()
    };
    if alone {
        spec.remove("backendFramework");
    } else {
        graph.labels = texts(&root["spec"]["labels"]);
        graph.annotations = texts(&root["spec"]["annotations"]);
        graph.priority_class = text(&root["spec"]["priorityClassName"]);
        graph.restart = text(&root["spec"]["restart"]["id"]);
    }
    let spec = Value::from(spec);
    match (document.gvk.version == ALPHA, alone) {
        (true, false) => alpha::graph(&mut reader, &spec, &mut graph),
        (true, true) => alpha::alone(&mut reader, &spec, &mut graph),
        (false, false) => beta::graph(&mut reader, &spec, &mut graph),
        (false, true) => beta::alone(&mut reader, spec, &mut graph),
    }
    reader.make_sense(&graph);
    (graph, reader.problems)
}

/// Says what no mode can do anything with: values of another type, names that stand twice, pods without a main container.
pub(super) fn mistakes(document: &Document) -> Vec<Problem> {
    let mut reader = Reader { document, problems: Vec::new() };
    let is_alone = document.id.kind == ALONE;
    if is_alone || document.id.kind == "DynamoGraphDeployment" {
        let spec = &document.root.to_value()["spec"];
        types::check(&mut reader, spec, is_alone);
        fields::check(&mut reader, spec);
    }
    if document.gvk.version != ALPHA && document.id.kind == "DynamoGraphDeployment" {
        let spec = &document.root.to_value()["spec"];
        let components = beta::components(spec);
        let basics = components.map(|(path, written)| beta::component_basics(&mut reader, path, written));
        let basics: Vec<Component> = basics.collect();
        reader.names_are_unique(&basics);
    }
    reader.problems
}

/// Returns a problem with a field below `spec`.
pub(super) fn problem(document: &Document, path: &[String], message: impl Into<String>) -> Problem {
    let path: Vec<&str> = std::iter::once("spec").chain(path.iter().map(String::as_str)).collect();
    problems::problem(document, &path, message)
}

/// Collects what is wrong.
struct Reader<'a> {
    document: &'a Document,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    /// A problem with a field below `spec`.
    fn problem(&self, path: &[String], message: impl Into<String>) -> Problem {
        problem(self.document, path, message)
    }

    /// Reads a field as a type; what is wrong in it is a problem where it stands. A null says nothing.
    fn typed<T: DeserializeOwned + Default>(&mut self, path: &[String], field: &str, value: &Value) -> T {
        let path: Vec<String> = path.iter().cloned().chain([field.to_owned()]).collect();
        self.typed_at(&path, value)
    }

    /// Reads what stands at a path as a type.
    fn typed_at<T: DeserializeOwned + Default>(&mut self, path: &[String], value: &Value) -> T {
        if value.is_null() {
            return T::default();
        }
        serde_path_to_error::deserialize(value).unwrap_or_else(|error| {
            let below = error.path().iter().map(|segment| match segment {
                Segment::Seq { index } => index.to_string(),
                Segment::Map { .. } | Segment::Enum { .. } | Segment::Unknown => segment.to_string(),
            });
            let place: Vec<String> = path.iter().cloned().chain(below).collect();
            let is_name = |part: &&String| part.parse::<usize>().is_err();
            let field = place.iter().rev().find(is_name).map_or("spec", String::as_str);
            let reason = error.inner().to_string().replace("u32", "a whole number from 0 to 4294967295");
            let message = format!("{field} cannot be used: {reason}");
            self.problems.push(self.problem(&place, message));
            T::default()
        })
    }

    /// Checks that nothing is written that would be left out.
    fn only(&mut self, path: &[String], written: &Value, known: &[&str], refused: &[&str]) {
        let fields = written.as_object().into_iter().flat_map(Map::keys);
        for field in fields.filter(|field| !known.contains(&field.as_str())) {
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
        self.names_are_unique(&graph.components);
        if graph.components.is_empty() {
            self.problems.push(self.problem(&[], "the graph has no components"));
        }
        let pickers: Vec<_> = graph.components.iter().filter(|component| component.kind == Type::Epp).collect();
        if let [_, second, ..] = pickers[..] {
            self.problems.push(self.problem(&second.path, "a graph has at most one component of type epp"));
        }
    }

    fn names_are_unique(&mut self, components: &[Component]) {
        let mut seen: BTreeMap<String, &Component> = BTreeMap::new();
        for component in components {
            if let Some(first) = seen.insert(component.lower(), component) {
                let message = format!("component {:?} has the name of {:?}", component.name, first.name);
                let hint = "names of objects are made of them in lower case";
                self.problems.push(self.problem(&component.path, message).hint(hint));
            }
        }
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Reads what both versions have in common.
fn common(reader: &mut Reader<'_>, component: &mut Component, written: &Value, kind: &str) {
    component.kind_text = text(&written[kind]).unwrap_or_default();
    component.kind = Type::of(&component.kind_text);
    component.global = written["globalDynamoNamespace"] == true;
    component.replicas = written["replicas"].as_u64();
    component.min_available = written["minAvailable"].as_u64();
    // Whoever says multinode and no number means two.
    let nodes = |multinode: &Value| multinode["nodeCount"].as_u64().unwrap_or(2);
    component.nodes = Some(&written["multinode"]).filter(|it| !it.is_null()).map_or(1, nodes);
    if component.nodes > MOST_NODES {
        let path: Vec<String> =
            component.path.iter().map(String::as_str).chain(["multinode", "nodeCount"]).map(str::to_owned).collect();
        let message =
            format!("component {:?} is on {} nodes, and {MOST_NODES} are the most", component.name, component.nodes);
        reader.problems.push(reader.problem(&path, message));
    }
    component.model = text(&written["modelRef"]["name"]);
    let picker = Some(&written["eppConfig"]).filter(|it| !it.is_null());
    component.picker = picker.map(|picker| reader.typed(&component.path, "eppConfig", picker));
}
