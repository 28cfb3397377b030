//! A unit by itself, for what looks into it.

use serde_json::Value;

use super::duplicates;
use super::generated::Generated;
use super::written::written;
use super::{Options, Source, finish, subject, values};
use crate::marks::OWN_PREFIX;
use crate::merge::origin::Merged;
use crate::object::{Object, ObjectId};
use crate::overlay;
use crate::overlay::object::Touched;
use crate::pack::declared::in_scope;
use crate::pack::{self, Pack, Packs, Provision, Subject};
use crate::problem::{Place, Problem};
use crate::render::RenderError;
use crate::resolve::{Resolution, Resolved, resolve};
use crate::spec::Document;
use crate::yaml::Node;

impl Source {
    /// Returns the values that the templates get for each spec, where there are any.
    pub fn values(&self, packs: &Packs, options: &Options) -> Vec<(ObjectId, Place, Value)> {
        let assignment = self.overlays.on(options.cluster.as_ref(), &self.specs);
        let specs = overlay::specs::patch(&self.specs, &assignment, packs.kinds());
        let mut found = Vec::new();
        for (document, resolution) in resolve(&specs, packs, &assignment) {
            let Resolution::Ready(resolved) = resolution else { continue };
            if let Ok(Provision::Values(values)) = values(&resolved, &subject(&resolved, options)) {
                found.push((document.id.clone(), document.place(), values));
            }
        }
        found
    }
}

/// Returns the objects of one spec, those with a generated value without it, or `None` if somebody else provisions it.
pub(crate) fn objects(
    resolved: &Resolved<'_>,
    subject: &Subject<'_>,
    parameters: &Merged,
    options: &Options,
) -> Result<Option<Vec<Object>>, Vec<Problem>> {
    let made = rendered(resolved, subject, parameters, (options, &mut Touched::new()), &mut Vec::new())?;
    let generated = made.generated.into_iter().map(|generated| generated.object);
    Ok((made.way != Way::SelfManaged).then(|| made.objects.into_iter().chain(generated).collect()))
}

/// The way in which a spec comes to the cluster.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Templates have made objects of it.
    Rendered,
    /// It goes to the cluster as it is, for an operator.
    PassedOn,
    /// Somebody else provisions it.
    SelfManaged,
}

/// The outcome for a spec.
pub(super) struct Made {
    pub(super) way: Way,
    pub(super) objects: Vec<Object>,
    pub(super) generated: Vec<Generated>,
}

/// Makes the objects of one spec; warnings that hold nothing back become `warnings`.
pub(super) fn rendered(
    resolved: &Resolved<'_>,
    subject: &Subject<'_>,
    parameters: &Merged,
    (options, touched): (&Options, &mut Touched),
    warnings: &mut Vec<Problem>,
) -> Result<Made, Vec<Problem>> {
    let fail = |message: String| vec![subject.problem(&message)];
    let (objects, generated, values) = match resolved.kind.generator.values(subject, parameters)? {
        Provision::SelfManaged => {
            return Ok(Made { way: Way::SelfManaged, objects: Vec::new(), generated: Vec::new() });
        }
        Provision::PassThrough(bodies) => {
            let objects = bodies.iter().map(|body| passed_on(subject, body));
            (objects.collect::<Result<_, _>>().map_err(|problem| vec![*problem])?, Vec::new(), None)
        }
        Provision::Values(values) => {
            let (objects, generated) = filled(resolved.pack, subject, &values, options)?;
            (objects, generated, Some(values))
        }
    };
    let overlaid = pack::overlay::apply(&resolved.pack.manifest.overlays, subject, objects)?;
    warnings.extend(overlaid.warnings);
    let mut objects = overlaid.objects;
    if let Some(post_processor) = &resolved.kind.post_processor {
        objects = post_processor.process(subject, objects)?;
    }
    let finished = objects.into_iter().map(|object| finish(object, subject.namespace, &subject.specs.kinds, options));
    let objects = overlay::object::patch(&resolved.overlays, finished.collect(), (&subject.specs.kinds, touched))?;
    let all = objects.iter().chain(generated.iter().map(|generated| &generated.object));
    if let Some(object) = all.into_iter().find(|object| has_own_prefix(object)) {
        return Err(fail(format!("{} has a label or annotation below {OWN_PREFIX}, which is ours", object.id())));
    }
    let twice = duplicates::find(&objects, &subject.specs.kinds);
    if !twice.is_empty() {
        return Err(twice.iter().map(|message| subject.problem(message)).collect());
    }
    let Some(values) = values else { return Ok(Made { way: Way::PassedOn, objects, generated }) };
    let objects = resolved.pack.with_health(objects, &values).map_err(|error| fail(error.line()))?;
    Ok(Made { way: Way::Rendered, objects, generated })
}

/// Fills the templates of a pack.
fn filled(
    pack: &Pack,
    subject: &Subject<'_>,
    values: &Value,
    options: &Options,
) -> Result<(Vec<Object>, Vec<Generated>), Vec<Problem>> {
    let fail = |message: String| vec![subject.problem(&message)];
    let failed = |error: RenderError| {
        let problem = subject.problem(&format!("pack {:?}: {}", pack.manifest.name, error.line()));
        problem.hint(in_scope(values))
    };
    let (objects, errors) = pack.renderer.render_each(values);
    if !errors.is_empty() {
        return Err(errors.into_iter().map(failed).collect());
    }
    let mut generated = Vec::new();
    for (value, renderer) in &pack.generated {
        for object in renderer.render(values).map_err(|error| vec![failed(error)])? {
            let object = finish(object, subject.namespace, &subject.specs.kinds, options);
            generated.push(Generated::of(object, value).map_err(fail)?);
        }
    }
    Ok((objects, generated))
}

/// Makes an object of a document that goes to the cluster as it is.
fn passed_on(subject: &Subject<'_>, body: &Value) -> Result<Object, Box<Problem>> {
    let object = Object::new(body.clone()).map_err(|error| Box::new(subject.problem(&error.to_string())))?;
    // Another document may go along.
    let document = subject.specs.documents.get(object.id()).unwrap_or(subject.document);
    written(&Document { root: Node::of_value(body), ..document.clone() })
}

fn has_own_prefix(object: &Object) -> bool {
    let metadata = &object.body()["metadata"];
    let maps = ["labels", "annotations"].into_iter().filter_map(|field| metadata[field].as_object());
    maps.flat_map(serde_json::Map::keys).any(|key| key.starts_with(OWN_PREFIX))
}
