//! Overlays: parameters that patch what the pack has rendered, for all that has no parameter of its own.
//!
//! Which parameters these are is data of the pack. An overlay has labels and annotations, which it sets one by one, and
//! a `spec`, which is a strategic merge patch (see [`mod@crate::patch`]). Overlays do not merge with each other: those
//! of each layer go over what the layers below have made of the object, the lowest layer first.
//!
//! Some overlays make their object first: a budget or an autoscaler for the workload exists if any layer has something
//! to say about it, and it is one object, whatever number of layers that is.
//!
//! What an overlay must not touch: the identity of the object, which pods a workload counts as its own, and our marks.

mod check;
pub(super) mod created;
mod lint;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use super::Subject;
use crate::diff::Segment;
use crate::merge::origin::Layer;
use crate::object::{Object, ObjectId};
use crate::patch::{PatchError, PatchType, patch};
use crate::problem::{Place, Problem};
use crate::yaml::{Content, Node, Position};

/// A parameter that is an overlay: a line of `overlays` in `pack.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OverlayParameter {
    /// Its path in the parameters: fields, separated by dots.
    pub path: String,
    /// The kind of the objects that it changes.
    pub kind: String,
    /// No template renders the object, it is made for the workload. This is possible for a `PodDisruptionBudget`, a
    /// `HorizontalPodAutoscaler` and a `VerticalPodAutoscaler`.
    #[serde(default)]
    pub creates: bool,
}

/// Objects after overlays.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Overlaid {
    /// The objects; those that overlays have made come last, in the order of `overlays`.
    pub objects: Vec<Object>,
    /// Overlays that are allowed and yet hardly do what was meant.
    pub warnings: Vec<Problem>,
}

/// Lays what the layers say, the lowest first, over the objects of one unit.
pub(crate) fn apply(
    overlays: &[OverlayParameter],
    subject: &Subject<'_>,
    objects: Vec<Object>,
) -> Result<Overlaid, Vec<Problem>> {
    if !says(overlays, subject.layers) {
        return Ok(Overlaid { objects, warnings: Vec::new() });
    }
    let mut work = Work { subject, result: Overlaid { objects, warnings: Vec::new() }, problems: Vec::new() };
    let (making, changing): (Vec<&OverlayParameter>, Vec<&OverlayParameter>) =
        overlays.iter().partition(|overlay| overlay.creates);
    let mut workloads = Vec::new();
    for layer in subject.layers {
        for said in changing.iter().filter_map(|overlay| Said::by(layer, overlay)) {
            work.change(&said);
        }
        workloads.push(created::workload(&work.result.objects).cloned());
    }
    for overlay in making {
        let said = subject
            .layers
            .iter()
            .zip(&workloads)
            .filter_map(|(layer, workload)| Some((Said::by(layer, overlay)?, workload)));
        let (said, workloads): (Vec<Said<'_>>, Vec<&Option<Object>>) = said.unzip();
        work.create(&said, workloads.last().and_then(|workload| workload.as_ref()));
    }
    if work.problems.is_empty() { Ok(work.result) } else { Err(work.problems) }
}

/// Tells whether any layer says something about an object itself.
pub(crate) fn says(overlays: &[OverlayParameter], layers: &[Layer<'_>]) -> bool {
    layers.iter().any(|layer| overlays.iter().any(|overlay| Said::by(layer, overlay).is_some()))
}

/// The statement of one layer in one overlay.
struct Said<'a> {
    overlay: &'a OverlayParameter,
    layer: &'a Layer<'a>,
    node: &'a Node,
}

impl<'a> Said<'a> {
    fn by(layer: &'a Layer<'a>, overlay: &'a OverlayParameter) -> Option<Self> {
        let node = layer.node.at(overlay.path.split('.')).filter(|node| node.content != Content::Null)?;
        Some(Self { overlay, layer, node })
    }

    /// Returns the patch: of all that an overlay says, the spec alone is one.
    fn patch(&self) -> Option<Value> {
        let spec = self.node.get("spec").map(Node::to_value)?;
        spec.as_object().is_some_and(|fields| !fields.is_empty()).then(|| json!({ "spec": spec }))
    }

    fn place(&self, position: Position) -> Place {
        Place::at(&self.layer.file, position)
    }

    /// Returns the place of what a path leads to in this overlay, or of the nearest thing around it that exists.
    fn place_of(&self, path: &[Segment]) -> Place {
        let mut deepest = self.node;
        for segment in path {
            let Some(node) = lint::step(deepest, segment) else { break };
            deepest = node;
        }
        self.place(deepest.position)
    }
}

/// The objects of a unit while overlays go over them.
struct Work<'a> {
    subject: &'a Subject<'a>,
    result: Overlaid,
    problems: Vec<Problem>,
}

impl Work<'_> {
    /// Lays an overlay over all objects of its kind.
    fn change(&mut self, said: &Said<'_>) {
        let kinds: BTreeSet<String> = self.result.objects.iter().map(|object| object.id().kind.clone()).collect();
        if !kinds.contains(&said.overlay.kind) {
            let other = check::WORKLOADS.into_iter().find(|kind| kinds.contains(*kind));
            let message = check::no_object(said.overlay, other);
            return self.refuse(said, said.place(said.node.position), &message);
        }
        for index in 0..self.result.objects.len() {
            let object = self.result.objects[index].clone();
            if object.id().kind == said.overlay.kind
                && let Some(object) = self.overlaid(said, &object)
            {
                self.result.objects[index] = object;
            }
        }
    }

    /// Makes the object of an overlay, and lays over it what the layers say. It is for the workload as the highest of
    /// them leaves it: control planes make it again with each layer, and the last one remains.
    fn create(&mut self, said: &[Said<'_>], workload: Option<&Object>) {
        let Some(first) = said.first() else { return };
        let mut object = match created::create(&first.overlay.kind, workload) {
            Ok(object) => object,
            Err(message) => return self.refuse(first, first.place(first.node.position), &message),
        };
        for said in said {
            let Some(next) = self.overlaid(said, &object) else { return };
            object = next;
        }
        self.result.objects.push(object);
    }

    /// Returns an object with one overlay over it, unless something is wrong with that.
    fn overlaid(&mut self, said: &Said<'_>, object: &Object) -> Option<Object> {
        let faults = check::faults(said.node, object);
        let is_sound = faults.is_empty();
        for (position, message) in faults {
            self.refuse(said, said.place(position), &message);
        }
        let mut body = with_metadata(object.clone(), said.node).into_body();
        if let Some(change) = said.patch() {
            self.result.warnings.extend(lint::lint(said, object, &change));
            body = match patched(&body, &change, object) {
                Ok(body) => body,
                Err(error) => {
                    let message = format!("cannot be laid over {}: {}", self.named(object), error);
                    self.refuse(said, said.place_of(error.path()), &message);
                    return None;
                }
            };
            if check::is_other_selector(object, &body) {
                let message = format!("changes which pods are those of {}", self.named(object));
                let path = ["spec", "selector"].map(|field| Segment::Field(field.to_owned()));
                self.refuse(said, said.place_of(&path), &message);
                return None;
            }
        }
        // The identity is what it was, so the body always is an object.
        Object::new(body).ok().filter(|_| is_sound)
    }

    fn named(&self, object: &Object) -> ObjectId {
        object.id().within(self.subject.namespace)
    }

    fn refuse(&mut self, said: &Said<'_>, place: Place, message: &str) {
        let problem = Problem::document(place, format!("{} {message}", said.overlay.path));
        self.problems.push(problem.about(self.subject.document.id.clone()));
    }
}

/// Sets labels and annotations one by one; a null is an empty text.
fn with_metadata(object: Object, overlay: &Node) -> Object {
    let entries = |field| {
        let fields = overlay.at(["metadata", field]).into_iter().flat_map(Node::fields);
        fields.map(|(key, field)| (key.to_owned(), field.node.as_str().unwrap_or_default().to_owned()))
    };
    object.with_metadata("labels", entries("labels")).with_metadata("annotations", entries("annotations"))
}

/// Patches an object. How lists of custom resources merge is not known, so of these whole fields of the spec are set.
fn patched(body: &Value, change: &Value, object: &Object) -> Result<Value, PatchError> {
    match patch(body, PatchType::Strategic, change, &object.gvk()) {
        Err(PatchError::Kind(_)) => {
            let mut body = body.clone();
            if let (Some(spec), Some(change)) = (body["spec"].as_object_mut(), change["spec"].as_object()) {
                spec.extend(change.clone());
                spec.retain(|_, value| !value.is_null());
            }
            Ok(body)
        }
        result => result,
    }
}
