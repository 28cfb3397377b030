//! The way of `undo`: from what a round has done to objects back to what is wanted.
//!
//! The answer is a rendering and a part of the inventory, from which the usual plan is made: nothing is written or
//! deleted here that a round could not. What others have changed since is theirs, and what cannot come back is said.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::conflicts::is_applied_by;
use super::fields::{difference, extract, union};
use super::recreate::pre_image;
use super::refusal::{Reason, Refusal};
use super::{Observed, owner};
use crate::inventory::Inventory;
use crate::live::Live;
use crate::marks::{FIELD_MANAGER, MANAGED_ANNOTATION, Marker, Owner};
use crate::object::{Gvk, Object, ObjectId};
use crate::problem::Place;
use crate::text::digest;
use crate::unit::marked::Marked;
use crate::unit::{Rendering, Unit};

/// An action of a round on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deed {
    /// It made it.
    Create,
    /// It changed what was ours.
    Change,
    /// It made ours what was not.
    Adopt,
    /// It deleted it.
    Delete,
    /// It gave it back to its deployer.
    Release,
}

/// One object that a round was at work on.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The unit that it belongs to.
    pub unit: ObjectId,
    /// The object.
    pub id: ObjectId,
    /// Its kind and version.
    pub gvk: Gvk,
    /// The files that had a say in it.
    pub files: BTreeSet<String>,
    /// The action that was taken, or was about to be.
    pub deed: Deed,
    /// The object as it was before; `None` for one that was made, and where nothing was sent.
    pub before: Option<Live>,
    /// The state that was left behind; `None` if the round ended before that was known.
    pub left: Option<Left>,
}

/// By what an object is known again as it was left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Left {
    /// Its uid.
    pub uid: String,
    /// Its resource version; a status that is written changes it.
    pub resource_version: String,
    /// Its generation and a digest of who wrote what and when, apart from its status; absent where nobody keeps that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writers: Option<String>,
    /// The fields that others had set before and do not have any more (`FieldsV1`): they were taken from them, or removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Value>,
}

/// The objects that are wanted, and those of which it can be said that they are not.
#[derive(Clone, Debug)]
pub struct Restoration {
    /// The wanted objects, each with the marks that it had.
    pub rendering: Marked,
    /// The part of the inventory that this is about.
    pub owned: Inventory,
    /// The refusals: what cannot be undone.
    pub refusals: Vec<Refusal>,
}

impl Left {
    /// Records how a live object is.
    pub fn of(live: &Live) -> Self {
        let entries: Vec<String> = writers(live.object.body()).map(Value::to_string).collect();
        let generation = &live.object.body()["metadata"]["generation"];
        let text = || format!("[{generation},[{}]]", entries.join(","));
        let writers = (!entries.is_empty()).then(|| digest(text().as_bytes()));
        Self { uid: live.uid.clone(), resource_version: live.resource_version.clone(), writers, lost: None }
    }

    /// Records how a change has left an object, and what others have lost by it.
    pub fn after(before: Option<&Live>, live: &Live) -> Self {
        let lost = before.map(|before| difference(&of_others(before), &of_others(live)));
        Self { lost: lost.filter(|lost| *lost != json!({})), ..Self::of(live) }
    }

    /// Records that the object was changed earlier in the same round, too.
    #[must_use]
    pub fn since(self, earlier: &Self) -> Self {
        let lost = match (&earlier.lost, &self.lost) {
            (Some(earlier), Some(lost)) => Some(union(earlier, lost)),
            (earlier, lost) => lost.as_ref().or(earlier.as_ref()).cloned(),
        };
        Self { lost, ..self }
    }

    /// Tells whether nobody has changed an object since, its status aside.
    pub fn is(&self, live: &Live) -> bool {
        let now = Self::of(live);
        let is_same_version = self.resource_version == now.resource_version;
        self.uid == now.uid && (is_same_version || (self.writers.is_some() && self.writers == now.writers))
    }
}

/// The entries of `managedFields` that are about more than the status.
fn writers(body: &Value) -> impl Iterator<Item = &Value> {
    let entries = body.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    entries.filter(|entry| entry["subresource"] != "status")
}

/// The fields that somebody else has set.
fn of_others(live: &Live) -> Value {
    let entries = writers(live.object.body()).filter(|entry| !is_applied_by(entry, FIELD_MANAGER));
    entries.fold(json!({}), |all, entry| union(&all, &entry["fieldsV1"]))
}

/// Says who has written to an object last.
fn last_writer(live: &Live) -> String {
    let latest = writers(live.object.body()).max_by_key(|entry| entry["time"].as_str());
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or("unknown").to_owned();
    latest.map_or_else(
        || "it was changed since".to_owned(),
        |entry| format!("it was changed since, last by {} at {}", text(entry, "manager"), text(entry, "time")),
    )
}

/// Returns all objects that may be wanted: what is to be looked at.
pub fn candidates(changes: &[Change]) -> Rendering {
    rendering(changes.iter().filter_map(|change| Some((change, earlier(change)?))))
}

/// Returns the earlier state of an object as it would be applied; `None` if there is nothing to apply.
fn earlier(change: &Change) -> Option<Object> {
    let before = change.before.as_ref()?;
    match change.deed {
        Deed::Change => settable(before, change.left.as_ref()),
        Deed::Delete => Some(whole(before)),
        Deed::Create | Deed::Adopt | Deed::Release => None,
    }
}

/// Decides what is to be undone, from what is there now.
pub fn restoration(changes: &[Change], observed: &Observed, owned: &Inventory, marker: &Marker) -> Restoration {
    let mut wanted = Vec::new();
    let mut about = BTreeSet::new();
    let mut refusals = Vec::new();
    for change in changes {
        let context = Context { change, observed, owned, marker };
        match context.decide() {
            Ok(Decision::Nothing) => {}
            Ok(Decision::Delete) => drop(about.insert(&change.id)),
            Ok(Decision::Apply(object)) => {
                about.insert(&change.id);
                wanted.push((change, object));
            }
            Err(why) => {
                let (unit, id) = (change.unit.clone(), change.id.clone());
                refusals.push(Refusal { unit, id, reason: Reason::NotUndone(why) });
            }
        }
    }
    let entries = owned.entries.iter().filter(|(id, _)| about.contains(id));
    let entries = entries.map(|(id, entry)| (id.clone(), entry.clone())).collect();
    let rendering = Marked::applied_before(rendering(wanted));
    Restoration { rendering, owned: Inventory { entries, ..owned.clone() }, refusals }
}

impl Restoration {
    /// Leaves out what cannot be undone for another reason.
    pub fn refuse(&mut self, refusals: Vec<Refusal>) {
        self.rendering.leave_out(|id| refusals.iter().any(|refusal| refusal.id == *id));
        self.refusals.extend(refusals);
    }
}

enum Decision {
    /// It is as it was.
    Nothing,
    /// It was made, and goes.
    Delete,
    /// It is applied in its earlier state.
    Apply(Object),
}

struct Context<'a> {
    change: &'a Change,
    observed: &'a Observed,
    owned: &'a Inventory,
    marker: &'a Marker,
}

impl Context<'_> {
    fn decide(&self) -> Result<Decision, String> {
        let Change { id, deed, before, .. } = self.change;
        if let Some(message) = self.observed.unknown.get(id) {
            return Err(format!("cannot read it: {message}"));
        }
        let live = self.observed.live.get(id);
        match (deed, before, live) {
            (Deed::Create, _, Some(live)) => self.made(live),
            (Deed::Change, Some(before), Some(live)) => self.changed(before, live),
            // It was deleted to be made again, which has failed: nothing was left behind.
            (Deed::Change, Some(before), None) if self.change.left.is_none() => Ok(Decision::Apply(whole(before))),
            (Deed::Change, Some(_), None) => Err("it does not exist any more".to_owned()),
            (Deed::Adopt, Some(before), Some(live)) if before.resource_version != live.resource_version => {
                Err("it was adopted, and what others had set before is not given back; it stays ours".to_owned())
            }
            (Deed::Release, Some(_), _) => {
                let adopt =
                    format!("`gatewright adopt` takes it back once the source says {MANAGED_ANNOTATION} no more");
                Err(format!("it was released; {adopt}"))
            }
            (Deed::Delete, Some(before), None) => Ok(Decision::Apply(whole(before))),
            (Deed::Delete, Some(before), Some(live)) => self.returned(before, live),
            // Nothing was sent, or nothing is left of it.
            (Deed::Create, _, None) | (Deed::Change | Deed::Delete | Deed::Release, None, _) | (Deed::Adopt, _, _) => {
                Ok(Decision::Nothing)
            }
        }
    }

    fn is_ours(&self, live: &Live) -> bool {
        owner(live, self.observed, self.owned, self.marker) == Owner::Us
    }

    fn made(&self, live: &Live) -> Result<Decision, String> {
        match &self.change.left {
            _ if !self.owned.entries.contains_key(&self.change.id) => Ok(Decision::Nothing),
            // Without a note of what it made, the inventory says whether it is one of ours, but not from which round.
            None => Err("the round ended before it could note what it had made".to_owned()),
            Some(left) if left.uid != live.uid => Ok(Decision::Nothing),
            Some(_) => Ok(Decision::Delete),
        }
    }

    fn changed(&self, before: &Live, live: &Live) -> Result<Decision, String> {
        if before.uid != live.uid {
            return Err("another object stands in its place now".to_owned());
        }
        if !self.is_ours(live) {
            return Err("it does not carry our mark any more".to_owned());
        }
        let Some(earlier) = settable(before, self.change.left.as_ref()) else {
            return Err("nothing of it was ours before".to_owned());
        };
        if before.resource_version == live.resource_version || settable(live, None).as_ref() == Some(&earlier) {
            return Ok(Decision::Nothing);
        }
        match &self.change.left {
            None => {
                Err("the round ended before it could note what it left behind; others may have changed it".to_owned())
            }
            Some(left) if !left.is(live) => Err(last_writer(live)),
            Some(_) => Ok(Decision::Apply(earlier)),
        }
    }

    /// It is there all the same: it was never deleted, or somebody has made it again.
    fn returned(&self, before: &Live, live: &Live) -> Result<Decision, String> {
        match () {
            () if live.is_terminating() => Err("it is still being deleted; try again when it is gone".to_owned()),
            () if before.uid == live.uid || self.is_ours(live) => Ok(Decision::Nothing),
            () => Err("somebody else's object stands in its place now".to_owned()),
        }
    }
}

fn rendering<'a>(wanted: impl IntoIterator<Item = (&'a Change, Object)>) -> Rendering {
    let mut units: BTreeMap<&ObjectId, Unit> = BTreeMap::new();
    for (change, object) in wanted {
        let unit = units.entry(&change.unit).or_insert_with(|| Unit::empty(change.unit.clone(), Place::file("")));
        unit.files.extend(change.files.iter().map(|file| Arc::from(file.as_str())));
        unit.notes.extend(note(change, &object).map(|note| (change.id.clone(), note)));
        unit.objects.push(object);
    }
    Rendering { units: units.into_values().collect(), ..Rendering::default() }
}

/// Returns a note where a server chooses again what it chose by itself.
fn note(change: &Change, object: &Object) -> Option<String> {
    let before = change.before.as_ref().filter(|_| change.deed == Deed::Delete && change.id.is_a("", "Service"))?;
    let had = before.object.body().pointer("/spec/clusterIP")?.as_str()?;
    let is_set = object.body().pointer("/spec/clusterIP").is_some();
    (!is_set && had != "None").then(|| format!("it gets a new clusterIP; {had} was the server's choice"))
}

/// Returns what was ours of an object, which is what our field manager had applied, and what others have lost of it since.
/// Where nobody keeps that, it is all of it.
fn settable(live: &Live, left: Option<&Left>) -> Option<Object> {
    if writers(live.object.body()).next().is_none() {
        return Some(whole(live));
    }
    let mut fields = of_ours(live);
    if fields.is_empty() {
        return None;
    }
    fields.extend(left.and_then(|left| left.lost.as_ref()));
    Some(without_others(live, with_fields(live, &fields)))
}

fn of_ours(live: &Live) -> Vec<&Value> {
    let entries = writers(live.object.body()).filter(|entry| is_applied_by(entry, FIELD_MANAGER));
    entries.map(|entry| &entry["fieldsV1"]).collect()
}

/// Returns an object as somebody had set it, whoever that was; what the server had set by itself is left out.
fn whole(live: &Live) -> Object {
    let fields: Vec<&Value> = writers(live.object.body()).map(|entry| &entry["fieldsV1"]).collect();
    if fields.is_empty() {
        return pre_image(live);
    }
    without_others(live, with_fields(live, &fields))
}

/// Takes out what belongs to others even if the object was ours.
fn without_others(live: &Live, object: Object) -> Object {
    let mut body = object.into_body();
    let ours = with_fields(live, &of_ours(live)).into_body();
    for field in OF_OTHERS {
        match (ours["metadata"].get(field), body["metadata"].as_object_mut()) {
            (Some(ours), _) => body["metadata"][field] = ours.clone(),
            (None, Some(metadata)) => drop(metadata.remove(field)),
            (None, None) => {}
        }
    }
    Object::new(body).unwrap_or_else(|_| live.object.clone())
}

/// Fields that belong to others even if the object was ours: who asked to be told of its end, and what it would go
/// with.
const OF_OTHERS: [&str; 2] = ["finalizers", "ownerReferences"];

fn with_fields(live: &Live, fields: &[&Value]) -> Object {
    let body = live.object.body();
    let all = fields.iter().fold(json!({}), |all, fields| union(&all, fields));
    let mut found = extract(body, &all).unwrap_or_else(|| json!({}));
    for field in ["apiVersion", "kind"] {
        found[field] = body[field].clone();
    }
    if !found["metadata"].is_object() {
        found["metadata"] = json!({});
    }
    for field in ["name", "namespace"] {
        if let Some(value) = body["metadata"].get(field) {
            found["metadata"][field] = value.clone();
        }
    }
    Object::new(found).unwrap_or_else(|_| live.object.clone())
}
