//! Rendering one unit again, with inputs that say something else.

use std::sync::Arc;

use serde_json::Value;

use super::inputs::{Case, Input, Kind};
use super::reads::{generator_with, specs_with};
use crate::merge::merge_over;
use crate::merge::origin::{LayerName, Merged};
use crate::object::{Object, ObjectId};
use crate::overlay::Overlay;
use crate::pack::{Parameters, ValuesGenerator};
use crate::resolve::{Resolved, gateway_of};
use crate::schema::Schema;
use crate::spec::listener_set::ListenerSet;
use crate::spec::overlay::ClusterOverlay;
use crate::spec::{Document, Specs};
use crate::unit::single::objects;
use crate::unit::{self, Options};
use crate::yaml::Node;

/// An input, and what it says instead.
pub(super) type Instead<'a> = (&'a Input, &'a Value);

/// The inputs that are not as they were.
#[derive(Default)]
struct Changed {
    document: Option<Document>,
    sets: Vec<(usize, ListenerSet)>,
    defaults: Option<Merged>,
    layers: Vec<(usize, Node)>,
    overlays: Vec<(usize, Overlay)>,
    kind: Option<Parameters>,
    options: Option<Options>,
    specs: Option<Specs>,
}

/// Returns the objects of a unit with some of its inputs changed; `None` if that is refused.
pub(super) fn render(case: &Case<'_>, instead: &[Instead<'_>]) -> Option<Vec<Object>> {
    let mut changed = Changed::default();
    for (input, root) in instead {
        changed.set(case, input.kind, root)?;
    }
    changed.render(case)
}

impl Changed {
    fn set(&mut self, case: &Case<'_>, kind: Kind, root: &Value) -> Option<()> {
        match kind {
            Kind::Spec => self.document = Some(document(case, root)),
            Kind::Set(index) => self.sets.push((index, serde_json::from_value(root.clone()).ok()?)),
            Kind::Defaults => self.defaults = Some(Merged::of_value(LayerName::Builtin, "", root)),
            Kind::Layer(index) => self.layers.push((index, Node::of_value(root))),
            Kind::Overlay(index) => self.overlays.push((index, overlay(case.resolved.overlays[index], root)?)),
            Kind::Read(_) => {
                let specs = self.specs.as_ref().unwrap_or(case.resolved.specs);
                self.specs = Some(specs_with(specs, case.reads.document(kind)?, root));
            }
            Kind::Builtin(_) => {
                let known = self.kind.as_ref().unwrap_or(case.resolved.kind);
                let generator = generator_with(&*known.generator, case.reads.document(kind)?, root)?;
                self.kind = Some(with_generator(known, generator));
            }
            Kind::Settings => {
                let known = self.kind.as_ref().unwrap_or(case.resolved.kind);
                self.kind = Some(with_generator(known, known.generator.with_settings(root)?));
            }
            Kind::Sync => self.options = Some(options(case.inputs.options, root)),
        }
        Some(())
    }

    fn render(&self, case: &Case<'_>) -> Option<Vec<Object>> {
        let options = self.options.as_ref().unwrap_or(case.inputs.options);
        let mut resolved: Resolved<'_> = case.resolved.clone();
        let mut document = self.document.as_ref().unwrap_or(resolved.document).clone();
        if let Some(namespace) = &options.target_namespace {
            document.id = document.id.within(namespace);
        }
        if self.document.is_some() {
            resolved.gateway = gateway_of(&document)?;
        }
        for (index, set) in &self.sets {
            resolved.listener_sets[*index] = set.clone();
        }
        let mut resolved: Resolved<'_> = Resolved { document: &document, ..resolved };
        for (index, node) in &self.layers {
            resolved.layers[*index].node = node;
        }
        for (index, overlay) in &self.overlays {
            resolved.overlays[*index] = overlay;
        }
        if let Some(kind) = &self.kind {
            resolved.kind = kind;
        }
        if let Some(specs) = &self.specs {
            resolved.specs = specs;
        }
        let subject = unit::subject(&resolved, options);
        let parameters = match &self.defaults {
            Some(defaults) => merge_over(defaults.clone(), &resolved.layers, &resolved.kind.table),
            None => unit::parameters(&resolved, &subject),
        };
        objects(&resolved, &subject, &parameters, options).ok().flatten()
    }
}

/// Makes the Gateway that a changed document is.
fn document(case: &Case<'_>, root: &Value) -> Document {
    let mut document = Document { root: Node::of_value(root), ..case.resolved.document.clone() };
    let text = |pointer| root.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (group, kind) = document.id.group_kind();
    document.id = ObjectId::new(group, kind, &text("/metadata/namespace"), &text("/metadata/name"));
    document
}

/// Makes the overlay that a changed document is; what it enforces holds nothing back here.
fn overlay(overlay: &Overlay, root: &Value) -> Option<Overlay> {
    let document = Document { root: Node::of_value(root), ..overlay.document.clone() };
    let spec = document.read_with_nulls::<ClusterOverlay>().ok()?.spec;
    Some(Overlay::new(document, spec))
}

fn with_generator(kind: &Parameters, generator: Arc<dyn ValuesGenerator>) -> Parameters {
    Parameters {
        kind: kind.kind.clone(),
        // Specs are read by now, and checked.
        schema: Schema::anything(),
        sense: None,
        table: kind.table.clone(),
        generator,
        post_processor: kind.post_processor.clone(),
    }
}

fn options(base: &Options, root: &Value) -> Options {
    let pairs = |field: &str| serde_json::from_value(root[field].clone()).unwrap_or_default();
    let mut options = base.clone();
    options.target_namespace = root["targetNamespace"].as_str().map(str::to_owned);
    options.common_labels = pairs("commonLabels");
    options.common_annotations = pairs("commonAnnotations");
    options
}
