//! From a source to units: the whole way of a snapshot through the engine.
//!
//! A unit is all objects that are rendered from one spec: what is held, awaited, counted and released together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::merge::{merge_over, origin::Merged};
use crate::object::{Object, ObjectId};
use crate::pack::{Packs, Subject};
use crate::problem::{Place, Problem};
use crate::resolve::{Resolution, Resolved, resolve};
use crate::spec::{self, Document, GATEWAY_API};
use crate::tree::Tree;

/// The prefix of our own labels and annotations.
pub const OWN_PREFIX: &str = "gatewright.dev/";

/// What a sync says about all that it renders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The namespace that all specs count as written for.
    pub target_namespace: Option<String>,
    /// Labels for every object.
    pub common_labels: BTreeMap<String, String>,
    /// Annotations for every object.
    pub common_annotations: BTreeMap<String, String>,
}

/// All objects of one spec.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// The spec.
    pub id: ObjectId,
    /// Where it stands.
    pub place: Place,
    /// The files that had a say in it.
    pub files: BTreeSet<Arc<str>>,
    /// The objects, in the order of the templates.
    pub objects: Vec<Object>,
}

/// What became of a snapshot.
#[derive(Clone, Debug, Default)]
pub struct Rendering {
    /// What is wanted on a cluster.
    pub units: Vec<Unit>,
    /// Specs that are there but could not be rendered: what exists of them stays as it is.
    pub broken: BTreeSet<ObjectId>,
    /// Specs that somebody else provisions.
    pub self_managed: BTreeSet<ObjectId>,
    /// Documents that no pack claims, with their place.
    pub unclaimed: Vec<(ObjectId, Place)>,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

/// Renders a snapshot. Same inputs, same bytes.
pub fn render(tree: &Tree, packs: &Packs, options: &Options) -> Rendering {
    let specs = spec::load(tree, packs.kinds(), options.target_namespace.as_deref());
    let is_gateway = |id: &&ObjectId| id.group == GATEWAY_API && id.kind == "Gateway";
    let mut rendering = Rendering {
        broken: specs.broken.keys().filter(is_gateway).cloned().collect(),
        unclaimed: specs.unclaimed.iter().map(|document| (document.id.clone(), document.place())).collect(),
        problems: specs.problems.clone(),
        ..Rendering::default()
    };
    for (document, resolution) in resolve(&specs, packs) {
        match resolution {
            Resolution::Ready(resolved) => rendering.add(&resolved, options),
            Resolution::NotOurs { .. } => rendering.unclaimed.push((document.id.clone(), document.place())),
            Resolution::Broken(problems) => rendering.add_broken(document, problems),
        }
    }
    rendering.refuse_collisions();
    rendering.problems.sort();
    // What is wrong with one line is said once, however many Gateways depend on it.
    rendering.problems.dedup();
    rendering.unclaimed.sort();
    rendering
}

impl Rendering {
    fn add(&mut self, resolved: &Resolved<'_>, options: &Options) {
        let subject = subject(resolved);
        let parameters = parameters(resolved, &subject);
        self.problems.extend(resolved.kind.generator.lint(&subject, &parameters));
        match objects(resolved, &subject, &parameters, options) {
            Ok(Some(objects)) => self.units.push(Unit {
                id: resolved.document.id.clone(),
                place: resolved.document.place(),
                files: resolved.files.clone(),
                objects,
            }),
            Ok(None) => {
                self.self_managed.insert(resolved.document.id.clone());
            }
            Err(problems) => self.add_broken(resolved.document, problems),
        }
    }

    fn add_broken(&mut self, document: &Document, problems: Vec<Problem>) {
        self.broken.insert(document.id.clone());
        self.problems.extend(problems);
    }

    /// Two units that want one object would take turns for ever: neither is used.
    fn refuse_collisions(&mut self) {
        let mut owners: BTreeMap<&ObjectId, Vec<&Unit>> = BTreeMap::new();
        for unit in &self.units {
            unit.objects.iter().for_each(|object| owners.entry(object.id()).or_default().push(unit));
        }
        let mut problems = Vec::new();
        for (object, units) in owners.into_iter().filter(|(_, units)| units.len() > 1) {
            problems.extend(units.iter().map(|unit| {
                let others = units.iter().filter(|other| other.id != unit.id).map(|other| other.id.to_string());
                let message = format!("{object} is rendered for {} too", others.collect::<Vec<_>>().join(" and "));
                Problem::document(unit.place.clone(), message).about(unit.id.clone())
            }));
        }
        self.broken.extend(problems.iter().filter_map(|problem| problem.object.clone()));
        self.units.retain(|unit| !problems.iter().any(|problem| problem.object.as_ref() == Some(&unit.id)));
        self.problems.extend(problems);
    }
}

/// Returns the objects of one spec, or `None` if somebody else provisions it.
pub(crate) fn objects(
    resolved: &Resolved<'_>,
    subject: &Subject<'_>,
    parameters: &Merged,
    options: &Options,
) -> Result<Option<Vec<Object>>, Vec<Problem>> {
    let Some(values) = resolved.kind.generator.values(subject, parameters)? else { return Ok(None) };
    let fail = |message: String| vec![subject.problem(&message)];
    let mut objects = resolved.pack.renderer.render(&values).map_err(|error| fail(error.line()))?;
    if let Some(post_processor) = &resolved.kind.post_processor {
        objects = post_processor.process(subject, &resolved.layers, objects)?;
    }
    let finished = objects.into_iter().map(|object| finish(object, subject.namespace, options));
    let objects: Vec<Object> = finished.collect();
    match objects.iter().find(|object| has_own_prefix(object)) {
        Some(object) => {
            Err(fail(format!("{} has a label or annotation below {OWN_PREFIX}, which is ours", object.id())))
        }
        None => Ok(Some(objects)),
    }
}

/// Returns the values that the templates of one Gateway get, or `None` if somebody else provisions it.
pub fn values(resolved: &Resolved<'_>, subject: &Subject<'_>) -> Result<Option<Value>, Vec<Problem>> {
    resolved.kind.generator.values(subject, &parameters(resolved, subject))
}

/// Returns the merged parameters of one Gateway.
pub fn parameters(resolved: &Resolved<'_>, subject: &Subject<'_>) -> Merged {
    let defaults = resolved.kind.generator.defaults(subject, &resolved.layers);
    merge_over(defaults, &resolved.layers, &resolved.kind.table)
}

/// Returns what generators and post-processors see of a resolved Gateway.
pub fn subject<'a>(resolved: &'a Resolved<'_>) -> Subject<'a> {
    Subject {
        document: resolved.document,
        gateway: &resolved.gateway,
        namespace: &resolved.document.id.namespace,
        class: &resolved.gateway.spec.gateway_class_name,
        listener_sets: &resolved.listener_sets,
    }
}

/// Puts an object into the namespace of its Gateway and adds what the sync adds to all.
fn finish(object: Object, namespace: &str, options: &Options) -> Object {
    let pairs = |map: &BTreeMap<String, String>| map.clone().into_iter();
    object
        .in_namespace(namespace)
        .with_metadata("labels", pairs(&options.common_labels))
        .with_metadata("annotations", pairs(&options.common_annotations))
}

fn has_own_prefix(object: &Object) -> bool {
    let metadata = &object.body()["metadata"];
    let maps = ["labels", "annotations"].into_iter().filter_map(|field| metadata[field].as_object());
    maps.flat_map(serde_json::Map::keys).any(|key| key.starts_with(OWN_PREFIX))
}
