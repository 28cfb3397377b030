//! A unit by itself, for what looks into it.

use serde_json::Value;

use super::generated::Generated;
use super::{Options, Source, finish, subject, values};
use crate::marks::OWN_PREFIX;
use crate::merge::origin::Merged;
use crate::object::{Object, ObjectId};
use crate::overlay;
use crate::overlay::object::Touched;
use crate::pack::{self, Packs, Subject};
use crate::problem::{Place, Problem};
use crate::resolve::{Resolution, Resolved, resolve};

impl Source {
    /// Returns the values that the templates get for each Gateway, where there are any.
    pub fn values(&self, packs: &Packs, options: &Options) -> Vec<(ObjectId, Place, Value)> {
        let assignment = self.overlays.on(options.cluster.as_ref(), &self.specs);
        let specs = overlay::gateway::patch(&self.specs, &assignment, packs.kinds());
        let mut found = Vec::new();
        for (document, resolution) in resolve(&specs, packs, &assignment) {
            let Resolution::Ready(resolved) = resolution else { continue };
            if let Ok(Some(values)) = values(&resolved, &subject(&resolved)) {
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
    let rendered = rendered(resolved, subject, parameters, (options, &mut Touched::new()), &mut Vec::new())?;
    Ok(rendered.map(|Rendered { objects, generated }| {
        objects.into_iter().chain(generated.into_iter().map(|generated| generated.object)).collect()
    }))
}

/// What templates yield.
#[derive(Default)]
pub(super) struct Rendered {
    pub(super) objects: Vec<Object>,
    pub(super) generated: Vec<Generated>,
}

/// Returns the objects of one spec, or `None` if somebody else provisions it; remarks that hold nothing back become
/// `notices`.
pub(super) fn rendered(
    resolved: &Resolved<'_>,
    subject: &Subject<'_>,
    parameters: &Merged,
    (options, touched): (&Options, &mut Touched),
    notices: &mut Vec<Problem>,
) -> Result<Option<Rendered>, Vec<Problem>> {
    let Some(values) = resolved.kind.generator.values(subject, parameters)? else { return Ok(None) };
    let fail = |message: String| vec![subject.problem(&message)];
    let objects = resolved.pack.renderer.render(&values).map_err(|error| fail(error.line()))?;
    let overlaid = pack::overlay::apply(&resolved.pack.manifest.overlays, subject, objects)?;
    notices.extend(overlaid.notices);
    let mut objects = overlaid.objects;
    if let Some(post_processor) = &resolved.kind.post_processor {
        objects = post_processor.process(subject, objects)?;
    }
    let mut generated = Vec::new();
    for (value, renderer) in &resolved.pack.generated {
        for object in renderer.render(&values).map_err(|error| fail(error.line()))? {
            let object = finish(object, subject.namespace, options);
            generated.push(Generated::of(object, value).map_err(fail)?);
        }
    }
    let finished = objects.into_iter().map(|object| finish(object, subject.namespace, options));
    let objects = overlay::object::patch(&resolved.overlays, finished.collect(), touched)?;
    let all = objects.iter().chain(generated.iter().map(|generated| &generated.object));
    match all.into_iter().find(|object| has_own_prefix(object)) {
        Some(object) => {
            Err(fail(format!("{} has a label or annotation below {OWN_PREFIX}, which is ours", object.id())))
        }
        None => Ok(Some(Rendered { objects, generated })),
    }
}

fn has_own_prefix(object: &Object) -> bool {
    let metadata = &object.body()["metadata"];
    let maps = ["labels", "annotations"].into_iter().filter_map(|field| metadata[field].as_object());
    maps.flat_map(serde_json::Map::keys).any(|key| key.starts_with(OWN_PREFIX))
}
