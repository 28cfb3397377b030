//! Fields that are misspelled, and words that nobody understands: the operator's API server drops the one, and no operator
//! does anything with the other, in whichever mode.

use gatewright_engine::check::suggest;
use gatewright_engine::problem::{Place, Problem};
use gatewright_engine::quantity::Quantity;
use gatewright_engine::spec::Document;
use gatewright_engine::text::did_you_mean;
use serde_json::{Map, Value};

use super::{ALONE, ALPHA, GRAPH_REFUSED, Reader, alpha, beta};
use crate::problems;

/// The frameworks that a graph can name.
const FRAMEWORKS: [&str; 3] = ["sglang", "trtllm", "vllm"];

/// The phases that a worker can be for.
const PHASES: [&str; 2] = ["decode", "prefill"];

/// The types of components that mean something; others are free.
const TYPES: [&str; 6] = ["decode", "epp", "frontend", "planner", "prefill", "worker"];

/// The fields of quantities in `v1alpha1` that are no quantities.
const NO_QUANTITIES: [&str; 2] = ["custom", "gpuType"];

/// One mapping of a document, and the fields that it may have.
struct Part<'a> {
    path: Vec<String>,
    written: &'a Value,
    known: Vec<&'static str>,
}

/// Says which fields are not known and nearly are, which words no operator understands, and that a graph is empty.
pub(super) fn check(reader: &mut Reader<'_>, spec: &Value) {
    for (path, field, near) in unknown(reader.document, spec) {
        if let Some(hint) = did_you_mean(near) {
            let problem = reader.problem(&path, format!("the field {field:?} is not known here"));
            let place = key(reader.document, &path).unwrap_or_else(|| problem.place.clone());
            reader.problems.push(Problem { place, ..problem.hint(hint) });
        }
    }
    word(reader, &[], spec, "backendFramework", &FRAMEWORKS);
    let parts = parts(reader.document, spec);
    let is_alone = reader.document.id.kind == ALONE;
    for part in parts.iter().filter(|part| is_alone || !part.path.is_empty()) {
        phase(reader, part);
        devices(reader, part);
    }
    if !is_alone && parts.len() < 2 {
        let field = if reader.document.gvk.version == ALPHA { "services" } else { "components" };
        let problem = reader.problem(&[], "the graph has no components").hint(format!("write them below spec.{field}"));
        reader.problems.push(problem);
    }
}

/// Warns of fields that are not known, which a newer operator may know, and of types that are nearly others.
pub(in super::super) fn doubts(document: &Document) -> Vec<Problem> {
    let spec = &document.root.to_value()["spec"];
    let warning = |path: &[String], message: String| {
        let path: Vec<&str> = std::iter::once("spec").chain(path.iter().map(String::as_str)).collect();
        problems::warning(document, &path, message)
    };
    let mut warnings = Vec::new();
    // What is nearly known is a mistake already.
    for (path, field, _) in unknown(document, spec).into_iter().filter(|(.., near)| near.is_none()) {
        let hint = "an API server drops what the operator's definitions do not have";
        warnings.push(warning(&path, format!("the field {field:?} is not known here")).hint(hint));
    }
    for part in parts(document, spec) {
        let field = if document.gvk.version == ALPHA { "componentType" } else { "type" };
        let Some(written) = part.written[field].as_str().filter(|written| !TYPES.contains(written)) else { continue };
        if let Some(hint) = did_you_mean(suggest(written, TYPES)) {
            let path: Vec<String> = part.path.iter().cloned().chain([field.to_owned()]).collect();
            warnings
                .push(warning(&path, format!("{field} is {written:?}, for which nothing special is done")).hint(hint));
        }
    }
    warnings
}

/// Returns where the name of a field stands.
fn key(document: &Document, path: &[String]) -> Option<Place> {
    let (field, above) = path.split_last()?;
    let parent = document.root.get("spec")?.at(above.iter().map(String::as_str))?;
    let (_, field) = parent.fields().find(|(name, _)| name == field)?;
    Some(Place::at(&document.file, field.key))
}

/// Returns the fields that are not known: their paths, and what was probably meant.
fn unknown(document: &Document, spec: &Value) -> Vec<(Vec<String>, String, Option<&'static str>)> {
    let of_part = |part: Part<'_>| {
        let fields = part.written.as_object().into_iter().flat_map(Map::keys);
        let unknown = fields.filter(|field| !part.known.contains(&field.as_str()));
        let found = unknown.map(|field| {
            let path = part.path.iter().cloned().chain([field.clone()]).collect();
            (path, field.clone(), suggest(field, part.known.iter().copied()))
        });
        found.collect::<Vec<_>>()
    };
    parts(document, spec).into_iter().flat_map(of_part).collect()
}

/// Returns the mappings of a document whose fields are known: the spec, and the components in it.
fn parts<'a>(document: &Document, spec: &'a Value) -> Vec<Part<'a>> {
    let is_alpha = document.gvk.version == ALPHA;
    let of_component: &[&[&'static str]] = if is_alpha {
        &[&alpha::COMPONENT, &alpha::COMPONENT_REFUSED]
    } else {
        &[&beta::COMPONENT, &beta::COMPONENT_REFUSED, &["env"]]
    };
    let component = |path, written| Part { path, written, known: of_component.concat() };
    if document.id.kind == ALONE {
        let mut whole = component(Vec::new(), spec);
        whole.known.push("backendFramework");
        return vec![whole];
    }
    let of_graph: [&[&'static str]; 2] = [if is_alpha { &alpha::GRAPH } else { &beta::GRAPH }, &GRAPH_REFUSED];
    let mut parts = vec![Part { path: Vec::new(), written: spec, known: of_graph.concat() }];
    if is_alpha {
        let services = spec["services"].as_object().into_iter().flatten();
        parts.extend(services.map(|(name, written)| component(vec!["services".to_owned(), name.clone()], written)));
    } else {
        parts.extend(beta::components(spec).map(|(path, written)| component(path, written)));
    }
    parts
}

fn word(reader: &mut Reader<'_>, path: &[String], written: &Value, field: &str, words: &[&str]) {
    let Some(text) = written[field].as_str().filter(|text| !text.is_empty() && !words.contains(text)) else { return };
    let path: Vec<String> = path.iter().cloned().chain([field.to_owned()]).collect();
    let problem = reader.problem(&path, format!("{field} is {text:?}, but must be {}", words.join(" or ")));
    let hint = did_you_mean(suggest(text, words.iter().copied()));
    reader.problems.push(hint.map_or_else(|| problem.clone(), |hint| problem.clone().hint(hint)));
}

/// Whatever is no phase has no meaning, and may be somebody's own.
fn phase(reader: &mut Reader<'_>, part: &Part<'_>) {
    let field = "subComponentType";
    let Some(text) = part.written[field].as_str().filter(|text| !PHASES.contains(text)) else { return };
    if let Some(hint) = did_you_mean(suggest(text, PHASES)) {
        let path: Vec<String> = part.path.iter().cloned().chain([field.to_owned()]).collect();
        let problem = reader.problem(&path, format!("{field} is {text:?}, which is neither decode nor prefill"));
        reader.problems.push(problem.hint(hint));
    }
}

/// Quantities of `v1alpha1` are texts, and a device is a whole number of them.
fn devices(reader: &mut Reader<'_>, part: &Part<'_>) {
    for side in ["limits", "requests"] {
        for (resource, amount) in part.written["resources"][side].as_object().into_iter().flatten() {
            if NO_QUANTITIES.contains(&resource.as_str()) || amount.is_null() {
                continue;
            }
            let quantity = Quantity::of(amount);
            // A part of a device counts as one, and there is no such part.
            let is_whole = |it: Quantity| it == Quantity::parse(&it.whole().to_string()).unwrap_or_default();
            if quantity.is_some_and(|it| it >= Quantity::default() && (resource != "gpu" || is_whole(it))) {
                continue;
            }
            let path = ["resources", side, resource].map(str::to_owned);
            let path: Vec<String> = part.path.iter().cloned().chain(path).collect();
            let wanted =
                if resource == "gpu" { "a whole number, such as 1" } else { "a quantity, such as 500m, 1.5 or 2Gi" };
            reader.problems.push(reader.problem(&path, format!("{resource} is {amount}, but must be {wanted}")));
        }
    }
}
