//! A unit by itself, for what looks into it.

use serde_json::Value;

use super::{Options, Rendered, Source, rendered, subject, values};
use crate::merge::origin::Merged;
use crate::object::{Object, ObjectId};
use crate::overlay;
use crate::overlay::object::Touched;
use crate::pack::{Packs, Subject};
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
