//! What becomes of a field: which fields of rendered objects it sets, and what lower layers had said in its place.

use std::sync::Arc;

use gatewright_engine::explain::{self, Effect, Explanation, Inputs, Said};
use gatewright_engine::object::ObjectId;
use gatewright_engine::problem::Place;
use gatewright_engine::unit::{Options, Source};
use gatewright_engine::yaml::{self, Node};
use serde_json::Value;

use super::cursor::Step;
use super::workspace::Job;

/// The most fields that are listed.
const MOST_FIELDS: usize = 8;

/// The longest value that is shown whole.
const LONGEST: usize = 60;

/// Returns what becomes of the field that a path leads to in the document around a line of a file; nothing of what is
/// rendered for nobody.
pub(super) fn said(job: &Job, line: u32, path: &[Step]) -> Option<String> {
    let file = &job.of.as_ref()?.name;
    let place = place(file, job.tree.text(file)?, line, path)?;
    let source = Source::load(&job.tree, &job.setup.packs, None);
    let options = Options::default();
    let rendering = source.render(&job.setup.packs, &options);
    let of_file: Vec<_> = rendering.units.iter().filter(|unit| unit.files.contains(file.as_str())).collect();
    let unit = of_file.iter().find(|unit| unit.place.file == place.file).or(of_file.first())?;
    let inputs = Inputs { source: &source, packs: &job.setup.packs, options: &options, config: None };
    let explanations = explain::objects(&inputs, &unit.id).ok()?;
    let lines = lines(&explanations, &place);
    let others = match of_file.len() {
        1 => String::new(),
        more => format!(", and for {} more", more - 1),
    };
    (!lines.is_empty()).then(|| format!("For {}{others}:\n\n{}", unit.id, lines.concat()))
}

/// Returns the place of a field, as inputs of a rendering have it.
fn place(file: &str, text: &str, line: u32, path: &[Step]) -> Option<Place> {
    let documents = yaml::parse(text).ok()?;
    // The position of a document is that of its first name.
    let document = documents.iter().rev().find(|root| root.position.line <= line)?;
    let node = path.iter().try_fold(document, |node, step| match step {
        Step::Field(name) => node.get(name),
        Step::Item(index) => node.items().get(*index),
    });
    node.map(|node: &Node| Place::at(&Arc::from(file), node.position))
}

fn lines(explanations: &[Explanation], place: &Place) -> Vec<String> {
    let mut lines = Vec::new();
    let mut more = 0;
    for explanation in explanations {
        for leaf in &explanation.leaves {
            for cause in leaf.causes.iter().filter(|cause| cause.effect == Effect::Sets) {
                let is_here = |said: &Said| said.place.as_ref() == Some(place);
                let field = field(&explanation.object, &leaf.path, &leaf.value);
                let line = if is_here(&cause.said) {
                    let lower = cause.lower.iter().map(|said| format!(", over {}", short(&said.value)) + &who(said));
                    format!("- sets {field}{}\n", lower.collect::<String>())
                } else if cause.lower.iter().any(is_here) {
                    format!("- does not set {field}: {} is over it{}\n", short(&cause.said.value), who(&cause.said))
                } else {
                    continue;
                };
                if lines.len() < MOST_FIELDS {
                    lines.push(line);
                } else {
                    more += 1;
                }
            }
        }
    }
    if more > 0 {
        lines.push(format!("- and {more} more\n"));
    }
    lines
}

fn field(object: &ObjectId, path: &str, value: &Value) -> String {
    let value = if value.is_object() || value.is_array() { String::new() } else { format!(" = {}", short(value)) };
    format!("{object} `{path}`{value}")
}

fn short(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let line = text.lines().next().unwrap_or_default();
    let cut: String = line.chars().take(LONGEST).collect();
    let rest = if cut.len() < text.trim_end().len() { "…" } else { "" };
    format!("`{cut}{rest}`")
}

fn who(said: &Said) -> String {
    match &said.place {
        Some(place) => format!(" ({}, {place})", said.by),
        None => format!(" ({})", said.by),
    }
}
