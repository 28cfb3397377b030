//! Patches of what is rendered.
//!
//! They may change everything but what an object is, where it is, and which pods it is about. With a `dataKey` the
//! document inside of a `ConfigMap` is patched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::patch::{OverlayPatch, Target};
use super::{Assignment, Overlay, ties};
use crate::check::suggest;
use crate::kinds;
use crate::kinds::row::Row;
use crate::marks::OWN_PREFIX;
use crate::object::{Object, ObjectId};
use crate::problem::{Place, Problem};
use crate::spec::overlay::ObjectTarget;
use crate::text::{count, listed};
use crate::yaml::{self, Node};

/// The fields of `metadata` that a patch may change.
const OPEN_METADATA: [&str; 2] = ["labels", "annotations"];

/// The message about what no patch may change.
const CLOSED: &str = "which object it is, which pods it selects, its status and all metadata but labels and annotations \
                      cannot be patched";

/// The name that stands for every object of a kind.
const ALL: &str = "*";

/// The most objects that are named.
const MOST_OBJECTS: usize = 3;

/// The patches that have found something to change: the overlay and the number of the patch.
pub(crate) type Touched = BTreeSet<(ObjectId, usize)>;

/// Applies what overlays say about the objects of one unit.
pub(crate) fn patch(
    overlays: &[&Overlay],
    objects: Vec<Object>,
    (kinds, touched): (&kinds::Table, &mut Touched),
) -> Result<Vec<Object>, Vec<Problem>> {
    if overlays.iter().all(|overlay| overlay.spec.object_patches.is_empty()) {
        return Ok(objects);
    }
    objects.into_iter().map(|object| patched(overlays, object, (kinds, &mut *touched))).collect()
}

fn patched(
    overlays: &[&Overlay],
    mut object: Object,
    (kinds, touched): (&kinds::Table, &mut Touched),
) -> Result<Object, Vec<Problem>> {
    let row = kinds.of(object.id());
    for group in ties::ranks(overlays) {
        let concerns = |change: &OverlayPatch<'_>| matches(&target(change).target, object.id());
        let of = |overlay| OverlayPatch::of_objects(overlay).filter(concerns).collect();
        let changes: Vec<Vec<OverlayPatch<'_>>> = group.iter().map(|overlay| of(overlay)).collect();
        touched.extend(changes.iter().flatten().map(|change| (change.overlay.document.id.clone(), change.index)));
        let ties = contradictions(&changes, &object, row);
        if !ties.is_empty() {
            return Err(ties);
        }
        for change in changes.iter().flatten() {
            object = changed(&object, change, row).map_err(|problem| vec![*problem])?;
        }
    }
    Ok(object)
}

/// Compares the patches of the object, and those of each key of its data.
fn contradictions(changes: &[Vec<OverlayPatch<'_>>], object: &Object, row: &Row) -> Vec<Problem> {
    let gvk = object.gvk();
    let whole = Target { id: object.id(), gvk: &gvk, row };
    let keys: BTreeSet<Option<&String>> =
        changes.iter().flatten().map(|change| target(change).data_key.as_ref()).collect();
    let mut problems = Vec::new();
    for key in keys {
        let of_key = |change: &&OverlayPatch<'_>| target(change).data_key.as_ref() == key;
        let changes: Vec<Vec<OverlayPatch<'_>>> =
            changes.iter().map(|changes| changes.iter().filter(of_key).copied().collect()).collect();
        let value = match key {
            None => Some(object.body().clone()),
            Some(key) => object.body()["data"][key].as_str().and_then(|text| parse(text).ok()),
        };
        problems.extend(value.map(|value| ties::of_changes(&changes, &value, whole)).unwrap_or_default());
    }
    problems
}

fn target<'a>(change: &OverlayPatch<'a>) -> &'a crate::spec::overlay::ObjectPatch {
    &change.overlay.spec.object_patches[change.index]
}

fn matches(target: &ObjectTarget, id: &ObjectId) -> bool {
    let is = |wanted: Option<&str>, value: &str| wanted.is_none_or(|wanted| wanted == value);
    target.kind == id.kind && is(target.group.as_deref(), &id.group) && is(named(target), &id.name)
}

/// Returns the name of the object that is meant, if it is not all of the kind.
fn named(target: &ObjectTarget) -> Option<&str> {
    target.name.as_deref().filter(|name| *name != ALL)
}

/// Returns where the last operation of a JSON patch that sets a part of an object writes it, if one does.
pub(crate) fn written(overlays: &[&Overlay], id: &ObjectId, path: &[String]) -> Option<Place> {
    let mut changes = of_object(overlays, id).filter(|change| change.sets(path));
    changes.next().map(|change| change.place(path))
}

/// Returns the patches of an object that look like a part of it, that which has the last word first.
pub(crate) fn texts<'a>(
    overlays: &'a [&'a Overlay],
    id: &'a ObjectId,
) -> impl Iterator<Item = (&'a Arc<str>, &'a Node)> {
    of_object(overlays, id).filter_map(|change| Some((&change.overlay.document.file, change.node()?)))
}

/// Returns the patches of an object itself, the last one first.
fn of_object<'a>(overlays: &'a [&'a Overlay], id: &'a ObjectId) -> impl Iterator<Item = OverlayPatch<'a>> {
    let changes = overlays
        .iter()
        .rev()
        .flat_map(|overlay| OverlayPatch::of_objects(overlay).collect::<Vec<_>>().into_iter().rev());
    changes.filter(|change| target(change).data_key.is_none() && matches(&target(change).target, id))
}

fn changed(object: &Object, change: &OverlayPatch<'_>, row: &Row) -> Result<Object, Box<Problem>> {
    let gvk = object.gvk();
    let whole = Target { id: object.id(), gvk: &gvk, row };
    let body = match &target(change).data_key {
        None => change.apply(object.body(), whole)?,
        Some(key) => with_data(object, key, (change, whole))?,
    };
    check(object, &body, change)?;
    let fail = |error| change.problem(format!("what is left of {} is no object: {error}", object.id()));
    Object::new(body).map_err(|error| Box::new(fail(error)))
}

/// Patches the document that stands under a key of a `ConfigMap`, and writes it as it was written.
fn with_data(
    object: &Object,
    key: &str,
    (change, whole): (&OverlayPatch<'_>, Target<'_>),
) -> Result<Value, Box<Problem>> {
    let mut body = object.body().clone();
    let Some(text) = body["data"][key].as_str() else {
        let keys = body["data"].as_object().into_iter().flatten().map(|(key, _)| key.as_str());
        let problem = change.problem(format!("the data of {} has no key {key:?}", object.id()));
        return Err(problem.meant(suggest(key, keys)).into());
    };
    let fail = |what| Box::new(change.problem(format!("{key:?} of {} {what}", object.id())));
    let document = parse(text).map_err(fail)?;
    let patched = change.apply(&document, whole)?;
    let is_json = serde_json::from_str::<Value>(text).is_ok();
    let text = if is_json { format!("{patched:#}") } else { yaml::to_string(&patched) };
    body["data"][key] = Value::from(text);
    Ok(body)
}

fn parse(text: &str) -> Result<Value, String> {
    let mut documents = yaml::parse_values(text).map_err(|error| format!("is no YAML: {error}"))?;
    match (documents.pop(), documents.is_empty()) {
        (Some(document), true) => Ok(document),
        (None, _) => Err("is empty".to_owned()),
        (Some(_), false) => Err("holds more than one document".to_owned()),
    }
}

/// Refuses what no patch may change.
fn check(object: &Object, after: &Value, change: &OverlayPatch<'_>) -> Result<(), Box<Problem>> {
    let before = object.body();
    let metadata = before["metadata"].as_object().into_iter().chain(after["metadata"].as_object());
    let fields: BTreeSet<&String> = metadata.flat_map(serde_json::Map::keys).collect();
    let closed = fields.into_iter().filter(|field| !OPEN_METADATA.contains(&field.as_str()));
    let closed = closed.map(|field| vec!["metadata".to_owned(), field.clone()]);
    let others = [vec!["apiVersion"], vec!["kind"], vec!["status"], vec!["spec", "selector"]];
    let others = others.map(|path| path.into_iter().map(str::to_owned).collect());
    let at = |value: &'_ Value, path: &[String]| path.iter().try_fold(value, |value, part| value.get(part)).cloned();
    if let Some(path) = closed.chain(others).find(|path| at(before, path) != at(after, path)) {
        return Err(change.refused(&path, object.id(), CLOSED).into());
    }
    // A pack may set such a key itself: the digest of what pods read.
    let (kept, found) = (own_marks(before), own_marks(after));
    let changed =
        found.iter().find(|mark| !kept.contains(mark)).or_else(|| kept.iter().find(|mark| !found.contains(mark)));
    if let Some((path, _)) = changed {
        let message = format!("{} begins with {OWN_PREFIX}, which is ours", path.join("."));
        return Err(change.problem_at(change.place(path), message).into());
    }
    let selected = after["spec"]["selector"]["matchLabels"].as_object().into_iter().flatten();
    let labels = &after["spec"]["template"]["metadata"]["labels"];
    let mut lost =
        selected.filter(|(key, value)| after["spec"]["template"].is_object() && labels[key.as_str()] != **value);
    match lost.next() {
        None => Ok(()),
        Some((key, _)) => {
            let path = ["spec", "template", "metadata", "labels", key].map(str::to_owned);
            Err(change.refused(&path, object.id(), CLOSED).into())
        }
    }
}

/// Returns the labels and annotations that only we may set, with their paths.
fn own_marks(body: &Value) -> Vec<(Vec<String>, &Value)> {
    let places: [&[&str]; 2] = [&["metadata"], &["spec", "template", "metadata"]];
    let mut marks = Vec::new();
    for (place, field) in places.into_iter().flat_map(|place| OPEN_METADATA.map(|field| (place, field))) {
        let metadata = place.iter().try_fold(body, |value, part| value.get(part));
        let entries = metadata.and_then(|metadata| metadata[field].as_object()).into_iter().flatten();
        for (key, value) in entries.filter(|(key, _)| key.starts_with(OWN_PREFIX)) {
            let path = place.iter().chain(&[field, key]).map(|&part| part.to_owned()).collect();
            marks.push((path, value));
        }
    }
    marks
}

/// Returns the patches that no object of any unit has been for, with the units that they were meant for. `rendered`
/// has the objects of each unit.
///
/// Where a unit that an overlay governs is not rendered, its object may have been there.
pub(crate) fn untouched(
    overlays: &Assignment,
    rendered: &BTreeMap<ObjectId, Vec<ObjectId>>,
    unrendered: &BTreeSet<ObjectId>,
    touched: &Touched,
) -> Vec<(Problem, BTreeSet<ObjectId>)> {
    let mut problems = Vec::new();
    let is_rendered = |ids: &BTreeSet<&ObjectId>| !ids.iter().any(|id| unrendered.contains(*id));
    for (overlay, gateways) in governed(overlays).into_values().filter(|(_, ids)| is_rendered(ids)) {
        let units: BTreeSet<ObjectId> = gateways.into_iter().filter(|id| rendered.contains_key(id)).cloned().collect();
        let is_lost = |change: &OverlayPatch<'_>| !touched.contains(&(overlay.document.id.clone(), change.index));
        for change in OverlayPatch::of_objects(overlay).filter(|change| !units.is_empty() && is_lost(change)) {
            let objects = units.iter().flat_map(|unit| &rendered[unit]);
            problems.push((lost(&change, objects), units.clone()));
        }
    }
    problems
}

/// Returns a warning for each patch that names no object and is for several objects of one unit. Who means all of them
/// says so.
pub(crate) fn broad(overlays: &Assignment, rendered: &BTreeMap<ObjectId, Vec<ObjectId>>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (overlay, units) in governed(overlays).into_values() {
        for change in OverlayPatch::of_objects(overlay).filter(|change| target(change).target.name.is_none()) {
            let met = |unit: &&ObjectId| {
                let objects = rendered.get(*unit).into_iter().flatten();
                let met: Vec<&str> =
                    objects.filter(|id| matches(&target(&change).target, id)).map(|id| id.name.as_str()).collect();
                (met.len() > 1).then_some((unit.to_string(), met))
            };
            let all: Vec<(String, Vec<&str>)> = units.iter().filter_map(met).collect();
            problems.extend(all.first().map(|(unit, names)| several(&change, unit, names, all.len() - 1)));
        }
    }
    problems
}

fn several(change: &OverlayPatch<'_>, unit: &str, names: &[&str], others: usize) -> Problem {
    let ObjectTarget { kind, .. } = &target(change).target;
    let names = listed(names, MOST_OBJECTS);
    let others =
        if others == 0 { String::new() } else { format!(", and it is so for {}", count(others, "other spec")) };
    let message = format!("the patch is for every {kind} of {unit}: {names}{others}");
    let place = change.overlay.document.place_of(&["spec", change.list, &change.index.to_string(), "target"]);
    let problem = Problem::warning(place, message).about(change.overlay.document.id.clone());
    problem.hint("name one of them in its target, or say name: \"*\" if all are meant")
}

/// Returns the overlays that are in force, with the specs that they govern.
fn governed(overlays: &Assignment) -> BTreeMap<&ObjectId, (&Overlay, BTreeSet<&ObjectId>)> {
    let mut governed: BTreeMap<&ObjectId, (&Overlay, BTreeSet<&ObjectId>)> = BTreeMap::new();
    for (gateway, overlays) in &overlays.governed {
        for overlay in overlays {
            governed.entry(&overlay.document.id).or_insert_with(|| (overlay, BTreeSet::new())).1.insert(gateway);
        }
    }
    governed
}

fn lost<'a>(change: &OverlayPatch<'_>, there: impl Iterator<Item = &'a ObjectId> + Clone) -> Problem {
    let ObjectTarget { group, kind, .. } = &target(change).target;
    let about = |field, message: String, near: Option<&str>| {
        let path = ["spec", change.list, &change.index.to_string(), "target", field];
        change.overlay.document.problem(&path, message).meant(near)
    };
    if !there.clone().any(|id| id.kind == *kind) {
        let near = suggest(kind, there.map(|id| id.kind.as_str()));
        return about("kind", format!("nothing of kind {kind:?} is rendered that could be patched"), near);
    }
    let of_kind = there.filter(|id| id.kind == *kind);
    match (named(&target(change).target), group) {
        (Some(name), _) if !of_kind.clone().any(|id| id.name == *name) => {
            let near = suggest(name, of_kind.map(|id| id.name.as_str()));
            about("name", format!("no {kind} {name:?} is rendered that could be patched"), near)
        }
        (_, group) => {
            let group = group.as_deref().unwrap_or_default();
            about("group", format!("no {kind} of group {group:?} is rendered that could be patched"), None)
        }
    }
}
