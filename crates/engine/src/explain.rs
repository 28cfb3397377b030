//! The origin of every field of a rendered object.
//!
//! The way from specs to objects is a pure and quick function, so it can simply be asked: one after the other, each
//! thing that an input says is made to say something else, everything is rendered again, and what differs is what it
//! sets or governs. No pack has to know its own fields for that, and nothing is guessed: what was refused in place of
//! an input is listed as not tried.
//!
//! Two inputs of which either is enough for a field show nothing when they are changed one by one. For fields that
//! are left without a cause whole lists are changed and parts removed; what then is still without one comes from the
//! pack itself. Left out: references, such as `parametersRef`; they say where parameters stand, not what they are.

mod again;
pub mod blame;
mod inputs;
mod path;
mod reads;
mod spots;
mod template;
mod text;
mod trace;
mod vary;
mod watched;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::diff::leads_to;
use crate::mask::{MASK, Masker};
use crate::merge::origin::{LayerName, Merged};
use crate::object::{ObjectId, is_secret};
use crate::overlay::{self, Assignment};
use crate::pack::Packs;
use crate::problem::{Place, Problem};
use crate::resolve::{Resolution, Resolved, resolve};
use crate::spec::Specs;
use crate::unit::{Options, Source};
use crate::yaml::Node;
use blame::Origin;
use inputs::Case;
use spots::{Spot, leaves, parts};
use template::Maker;
use trace::Trace;
use watched::WatchedObject;

/// The version of the form that an [`Explanation`] has as JSON.
pub const SCHEMA: &str = "gatewright.dev/explanation/v1alpha1";

/// The inputs from which everything is rendered.
pub struct Inputs<'a> {
    /// The source.
    pub source: &'a Source,
    /// The packs that render it.
    pub packs: &'a Packs,
    /// The options of a sync for all that it renders.
    pub options: &'a Options,
    /// The config file from which packs and syncs have their settings, if from a file.
    pub config: Option<ConfigFile<'a>>,
}

/// A config file, for the places of settings.
pub struct ConfigFile<'a> {
    /// Its name.
    pub file: Arc<str>,
    /// Its content.
    pub root: &'a Node,
    /// The sync that [`Inputs::options`] are of.
    pub sync: Option<&'a str>,
}

/// The origins of the fields of one object, or of the parameters of one Gateway.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[must_use]
pub struct Explanation {
    /// The version of this form: [`SCHEMA`].
    pub schema: &'static str,
    /// The object; of parameters, the Gateway that they are merged for.
    pub object: ObjectId,
    /// The spec that the object is rendered from.
    pub unit: ObjectId,
    /// The place of that spec.
    pub place: Place,
    /// The template that the object is made by, as `pack/file`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// The inputs without which, as they are, the object would not be there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<Said>,
    /// The fields without parts of their own, in the order of their paths.
    pub leaves: Vec<Leaf>,
    /// Inputs that could not be tried, because whatever was put in their place was refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub untried: Vec<Said>,
}

/// One field.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Leaf {
    /// Its path, as in a plan.
    pub path: String,
    /// Its value; masked if it may be a secret.
    pub value: Value,
    /// Its causes, the most direct first.
    pub causes: Vec<Cause>,
    /// Its origin when no input has a say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed: Option<Fixed>,
}

/// An input that has a say in a field.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    /// Its effect on the field.
    pub effect: Effect,
    /// The statement of the input.
    #[serde(flatten)]
    pub said: Said,
    /// The statements of lower layers that it replaces, the nearest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lower: Vec<Said>,
    /// The lines of a text of several lines that it is about, from 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<usize>,
}

/// The effect of an input on a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Its value is, or is part of, the value of the field.
    Sets,
    /// The field would be different or absent if it said something else.
    Governs,
}

/// Something that an input says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Said {
    /// The layer or spec that says it.
    #[serde(flatten)]
    pub by: By,
    /// The place; not known of what is built into a pack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// The path within the spec, the parameters or the config file.
    pub path: String,
    /// The value.
    pub value: Value,
    /// The values of the cluster that an overlay has put into it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ClusterValue>,
}

/// A value of the cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterValue {
    /// The expression by which an overlay takes it.
    pub expression: String,
    /// Its place in the config file or in a table; absent if nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// The layer or spec that says something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// A layer of parameters, or of settings.
    Layer(LayerName),
    /// A spec itself, such as the Gateway.
    Spec(ObjectId),
}

/// The part of a pack that a field comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fixed {
    /// The pack.
    pub pack: String,
    /// The template, as `pack/file`; absent if no template made the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// The value that the template takes it from, if it is not in the template itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// The reason why something cannot be explained.
#[derive(Clone, Debug, PartialEq)]
pub enum Unexplained {
    /// There is no such spec, or it renders no such object.
    Absent,
    /// No pack renders the Gateways of this controller.
    NotOurs(String),
    /// It cannot be rendered.
    Broken(Vec<Problem>),
    /// The object has no such field.
    NoField {
        /// The one that may have been meant.
        near: Option<String>,
        /// Those that stand where it was looked for.
        known: Vec<String>,
    },
}

/// Explains the fields of one object of a Gateway at a path, or below it; an empty path means all.
pub fn object(
    inputs: &Inputs<'_>,
    gateway: &ObjectId,
    object: &ObjectId,
    path: &str,
) -> Result<Explanation, Unexplained> {
    let mut found = explained(inputs, gateway, |known| (known == object).then_some(path))?;
    found.pop().ok_or(Unexplained::Absent)
}

/// Explains all fields of all objects of a Gateway, in the order in which they are rendered.
pub fn objects(inputs: &Inputs<'_>, gateway: &ObjectId) -> Result<Vec<Explanation>, Unexplained> {
    explained(inputs, gateway, |_| Some(""))
}

/// Questions about some Gateways: about which objects, at which paths, as differences have them.
pub type Questions = BTreeMap<ObjectId, BTreeMap<ObjectId, BTreeSet<String>>>;

/// The origins of fields, by object and path: all that has a say in each, in no order. [`blame::place`] names one of
/// them for a difference.
pub type Origins = BTreeMap<ObjectId, BTreeMap<String, Vec<Origin>>>;

/// Says for many fields at once which inputs set or govern each of them. All specs are resolved once, and only single
/// inputs are changed.
pub fn origins(inputs: &Inputs<'_>, questions: &Questions) -> Origins {
    let (assignment, specs) = assigned(inputs);
    let mut origins = Origins::new();
    for (document, resolution) in resolve(&specs, inputs.packs, &assignment) {
        let (Some(asked), Resolution::Ready(resolved)) = (questions.get(&document.id), resolution) else { continue };
        origins.extend(places(&Case::new(&resolved, inputs), asked));
    }
    origins
}

fn places(case: &Case<'_>, asked: &BTreeMap<ObjectId, BTreeSet<String>>) -> Origins {
    let Some(objects) = again::render(case, &[]) else { return Origins::new() };
    let mut targets = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        let Some(paths) = asked.get(object.id()) else { continue };
        let is_asked = |spot: &Spot| paths.iter().any(|path| path::is_at(spot, path));
        targets.push(WatchedObject::new(&objects, index, is_asked));
    }
    let mut trace = Trace::new(case, targets);
    trace.run_once();
    let of = |target: &WatchedObject<'_>| {
        let id = target.object().id();
        let paths = asked.get(id).into_iter().flatten();
        (id.clone(), paths.map(|path| (path.clone(), target.origins(path))).collect())
    };
    trace.targets.iter().map(of).collect()
}

/// Explains the objects for which there is a path.
fn explained<'p>(
    inputs: &Inputs<'_>,
    gateway: &ObjectId,
    path: impl Fn(&ObjectId) -> Option<&'p str>,
) -> Result<Vec<Explanation>, Unexplained> {
    with(inputs, gateway, |case| {
        let objects = again::render(case, &[]).ok_or(Unexplained::Absent)?;
        let mut targets = Vec::new();
        for (index, object) in objects.iter().enumerate() {
            if let Some(path) = path(object.id()) {
                check_path(object.body(), path)?;
                targets.push(WatchedObject::new(&objects, index, |spot| path::is_at(spot, path)));
            }
        }
        let mut trace = Trace::new(case, targets);
        trace.run();
        let Trace { targets, untried, .. } = trace;
        Ok(targets.into_iter().map(|target| explanation(case, target, untried.clone())).collect())
    })
}

fn explanation(case: &Case<'_>, mut target: WatchedObject<'_>, mut untried: Vec<Said>) -> Explanation {
    let object = target.object();
    let maker = Maker::of(case, object, target.is_open());
    let because = std::mem::take(&mut target.because);
    let mut leaves = target.into_leaves(&maker);
    mask(object.id(), &mut leaves);
    for said in &mut untried {
        said.value = Masker::default().at(&said.path, &said.value);
    }
    Explanation { template: maker.template, because, leaves, untried, ..about(case.resolved, object.id()) }
}

/// Explains the merged parameters of one Gateway at a path, or below it; an empty path means all.
pub fn parameters(inputs: &Inputs<'_>, gateway: &ObjectId, path: &str) -> Result<Explanation, Unexplained> {
    with(inputs, gateway, |case| {
        let merged = case.parameters();
        let value = merged.to_value();
        // In the file they stand below `spec`.
        let from_spec = path.strip_prefix("spec.").filter(|_| merged.get("spec").is_none());
        let path = from_spec.unwrap_or(path);
        check_path(&value, path)?;
        let leaf = |spot: Spot| {
            let cause = merged.part(spot.steps()).map(|origin| cause_of(case, origin, &spot));
            Leaf { path: spot.text(), value: spot.value, causes: cause.into_iter().collect(), fixed: None }
        };
        let wanted = leaves(&value).into_iter().filter(|spot| path::is_at(spot, path));
        let mut leaves: Vec<Leaf> = wanted.map(leaf).collect();
        mask(gateway, &mut leaves);
        Ok(Explanation { leaves, ..about(case.resolved, gateway) })
    })
}

/// Says who set a merged parameter.
fn cause_of(case: &Case<'_>, origin: &Merged, spot: &Spot) -> Cause {
    let (by, place) = case.origin(origin, &spot.steps);
    let said = case.saying(by, place, spot.text(), spot.value.clone());
    Cause { effect: Effect::Sets, said, lower: case.below_origin(origin, spot), lines: Vec::new() }
}

/// Returns which overlays are in force where the inputs are for, and the specs as they are under them.
fn assigned<'a>(inputs: &Inputs<'a>) -> (Assignment, Cow<'a, Specs>) {
    let Inputs { source, packs, options, .. } = inputs;
    let assignment = source.overlays.on(options.cluster.as_ref(), &source.specs);
    let specs = overlay::specs::patch(&source.specs, &assignment, packs.kinds());
    (assignment, specs)
}

/// Finds a Gateway and calls a function with everything that it is made of.
fn with<T>(
    inputs: &Inputs<'_>,
    gateway: &ObjectId,
    explain: impl FnOnce(&Case<'_>) -> Result<T, Unexplained>,
) -> Result<T, Unexplained> {
    let (assignment, specs) = assigned(inputs);
    if specs.broken.contains_key(gateway) {
        let problems = specs.problems.iter().filter(|problem| problem.object.as_ref() == Some(gateway));
        return Err(Unexplained::Broken(problems.cloned().collect()));
    }
    let resolutions = resolve(&specs, inputs.packs, &assignment);
    match resolutions.into_iter().find(|(document, _)| document.id == *gateway) {
        None => Err(Unexplained::Absent),
        Some((_, Resolution::NotOurs { controller, .. })) => Err(Unexplained::NotOurs(controller)),
        Some((_, Resolution::Broken(problems))) => Err(Unexplained::Broken(problems)),
        Some((_, Resolution::Ready(resolved))) => explain(&Case::new(&resolved, inputs)),
    }
}

/// Checks that something stands at a path.
fn check_path(value: &Value, path: &str) -> Result<(), Unexplained> {
    let parts = parts(value);
    if parts.iter().any(|spot| path::is_at(spot, path)) {
        return Ok(());
    }
    Err(Unexplained::NoField { near: path::nearest(&parts, path), known: path::beside(&parts, path) })
}

fn about(resolved: &Resolved<'_>, object: &ObjectId) -> Explanation {
    Explanation {
        schema: SCHEMA,
        object: object.clone(),
        unit: resolved.document.id.clone(),
        place: resolved.document.place(),
        template: None,
        because: Vec::new(),
        leaves: Vec::new(),
        untried: Vec::new(),
    }
}

/// Takes away what nobody may read: what may be secret, and what it was made from. Nothing is compared with what it was
/// before, so there are no fingerprints.
fn mask(object: &ObjectId, leaves: &mut [Leaf]) {
    let masker = Masker::default();
    let is_data = |path: &str| ["data", "stringData"].iter().any(|field| leads_to(field, path));
    for leaf in leaves {
        let whole = is_secret(&object.group, &object.kind) && is_data(&leaf.path);
        let shown = if whole { masker.value(&leaf.value) } else { masker.at(&leaf.path, &leaf.value) };
        let is_masked = shown == MASK && shown != leaf.value;
        leaf.value = shown;
        for cause in &mut leaf.causes {
            for said in [&mut cause.said].into_iter().chain(&mut cause.lower) {
                said.value = if is_masked { masker.value(&said.value) } else { masker.at(&said.path, &said.value) };
            }
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layer(layer) => layer.fmt(f),
            Self::Spec(id) => id.fmt(f),
        }
    }
}
