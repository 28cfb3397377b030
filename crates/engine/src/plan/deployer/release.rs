//! Handing a data plane back to the deployer from which it was adopted, without a restart: adoption in reverse.
//!
//! While its Gateway is self-managed, the deployer leaves everything of it alone. So every object becomes the deployer's
//! first, each by one patch of its metadata; then the Gateway is what the source says, and the deployer applies what is
//! there already. The parameters that had told it to stay away go last.
//!
//! The label by which a deployer finds what it deletes is not put back here. Its own apply does that, so that no object has
//! it that the deployer would not render.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{is_of, references};
use crate::diff::{Difference, differences};
use crate::inventory::{Entry, Inventory};
use crate::kinds::has_pods;
use crate::live::Live;
use crate::marks::{FIELD_MANAGER, MARKS, Marker, keep_mark};
use crate::mask::Masker;
use crate::object::{Gvk, Object, ObjectId};
use crate::plan::Over;
use crate::plan::conflicts::{is_applied_by, managed_fields};
use crate::plan::fields::{difference, union};
use crate::plan::refusal::{Reason, Refusal};
use crate::spec::GATEWAY_API;
use crate::unit::Unit;
use crate::unit::released::Released;

/// All that is known when a Gateway is to be handed back.
#[derive(Clone, Copy)]
pub struct Situation<'a> {
    /// The Gateway, as the source says it.
    pub released: &'a Released,
    /// Everything that its deployer will render.
    pub deployed: &'a Unit,
    /// The inventory of the sync that has it.
    pub owned: &'a Inventory,
    /// The objects of the inventory that are on the cluster, and the Gateway.
    pub live: &'a BTreeMap<ObjectId, Live>,
    /// Our objects as they would be if the deployer applied, or why it could not: the answers to [`Situation::questions`].
    pub applied: &'a BTreeMap<ObjectId, Result<Live, String>>,
    /// The marks of the sync.
    pub marker: &'a Marker,
    /// It decides what is shown of values that may be secret.
    pub masker: &'a Masker,
}

/// One object, and its deed.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The object.
    pub id: ObjectId,
    /// Its kind and version.
    pub gvk: Gvk,
    /// The live object; `None` where there is none, or it is not touched.
    pub over: Option<Over>,
    /// The deed.
    pub deed: Deed,
    /// The differences once that is done and the deployer has applied.
    pub differences: Vec<Difference>,
}

/// A change to an object on its way back; they are done in the order in which they stand here.
#[derive(Clone, Debug, PartialEq)]
pub enum Deed {
    /// This patch makes it the deployer's.
    HandBack(Vec<Value>),
    /// This patch makes it nobody's.
    Unmark(Vec<Value>),
    /// Only our field manager is still among those of the object; this patch ends that.
    Tidy(Vec<Value>),
    /// It becomes what the source says, without marks.
    Restore(Box<Object>),
    /// It is deleted.
    Delete,
    /// It is not there, or not ours: it leaves the inventory.
    Forget,
}

/// All that happens, in order; nothing of it does if anything is refused.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
    /// The refusals.
    pub refusals: Vec<Refusal>,
}

impl<'a> Situation<'a> {
    /// Returns what is to be dry-run over the live objects: what the deployer will render, and the Gateway.
    pub fn questions(&self) -> Vec<(&'a Object, &'a Live)> {
        let deployed = self.deployed.all().chain([&self.released.gateway]);
        let ours = |object: &'a Object| {
            let live = self.live.get(object.id())?;
            let entry = self.owned.entries.get(object.id())?;
            self.is_ours(entry, live).then_some((object, live))
        };
        deployed.filter_map(ours).collect()
    }

    /// Decides what happens to everything of the Gateway.
    pub fn plan(&self) -> Plan {
        let unit = self.released.gateway.id();
        let mut plan = Plan::default();
        if let Err(why) = self.gateway() {
            plan.refuse(unit, unit, why);
            return plan;
        }
        for (id, entry) in self.owned.entries.iter().filter(|(_, entry)| entry.unit == *unit) {
            match self.decide(id, entry) {
                Ok(step) => plan.steps.push(step),
                Err(why) => plan.refuse(unit, id, why),
            }
        }
        plan.steps.sort_by_key(|step| step.deed.rank());
        plan
    }

    /// The deployer has to find a Gateway that it knows, and that is ours or has been handed back already.
    fn gateway(&self) -> Result<&'a Live, String> {
        let id = self.released.gateway.id();
        let told = self.released.told.as_ref().ok_or("its deployer cannot be told to leave a Gateway to others")?;
        let live = self.live.get(id).ok_or("it is not on the cluster, so that nobody would provision it")?;
        let named = live.object.body().pointer("/spec/infrastructure/parametersRef/name").and_then(Value::as_str);
        let is_ours = self.owned.entries.get(id).is_some_and(|entry| self.is_ours(entry, live));
        if !is_ours && named == Some(&told.name) {
            return Err(format!(
                "it names {told} and does not bear our mark: give it the parameters that it had before"
            ));
        }
        Ok(live)
    }

    fn is_ours(&self, entry: &Entry, live: &Live) -> bool {
        entry.uid.as_ref().is_none_or(|uid| *uid == live.uid) && self.marker.is_on(&live.object)
    }

    fn decide(&self, id: &ObjectId, entry: &Entry) -> Result<Step, String> {
        let heir = self.heir(id);
        let Some(live) = self.live.get(id) else { return Ok(forget(id, entry)) };
        if live.is_terminating() {
            return Err("it is being deleted".to_owned());
        }
        if !self.is_ours(entry, live) {
            let is_same = entry.uid.as_ref() == Some(&live.uid);
            let patch = tidy(live, heir).filter(|_| is_same);
            return Ok(patch.map_or_else(|| forget(id, entry), |patch| step(live, Deed::Tidy(patch))));
        }
        let unit = self.released.gateway.id();
        if id == unit {
            let restored = Deed::Restore(Box::new(self.released.gateway.clone()));
            return Ok(Step { differences: self.differences(live)?, ..step(live, restored) });
        }
        if self.released.told.as_ref() == Some(id) && keep_mark(live.object.body()).is_none() {
            return Ok(step(live, Deed::Delete));
        }
        if let Some(manager) = heir {
            let differences = self.differences(live)?;
            check_pods(id, manager, &differences)?;
            return Ok(Step { differences, ..step(live, Deed::HandBack(hand_back(live, manager, self.gateway()?))) });
        }
        let told_group = self.released.told.as_ref().map(|told| told.group.as_str());
        if id.group == GATEWAY_API || Some(id.group.as_str()) == told_group {
            return Ok(step(live, Deed::Unmark(unmark(live))));
        }
        let manager = &self.released.deployer.manager;
        Err(format!(
            "{manager} would not make it, so that it would be nobody's; take out what asks for it, sync, and try again"
        ))
    }

    /// Returns the manager that has an object after us: its deployer, of what that renders.
    fn heir(&self, id: &ObjectId) -> Option<&'a str> {
        let is_rendered = self.deployed.all().any(|object| object.id() == id);
        is_rendered.then_some(self.released.deployer.manager.as_str())
    }

    /// Returns the differences to come, marks and owners aside.
    fn differences(&self, live: &Live) -> Result<Vec<Difference>, String> {
        let after = match self.applied.get(live.object.id()) {
            Some(Ok(after)) => after,
            Some(Err(message)) => return Err(format!("the cluster would not take what becomes of it: {message}")),
            None => return Err("it was not dry-run".to_owned()),
        };
        let plain = |live: &Live| without_marks(&live.object).without_metadata("ownerReferences");
        let mut found = differences(plain(live).body(), plain(after).body(), FIELD_MANAGER, self.masker);
        found.retain(|difference| !difference.changes_nothing());
        Ok(found)
    }
}

impl Plan {
    fn refuse(&mut self, unit: &ObjectId, id: &ObjectId, why: impl Into<String>) {
        let reason = Reason::NotReleased(why.into());
        self.refusals.push(Refusal { unit: unit.clone(), id: id.clone(), reason });
    }
}

impl Deed {
    fn rank(&self) -> u8 {
        match self {
            Self::HandBack(_) => 0,
            Self::Unmark(_) | Self::Tidy(_) => 1,
            Self::Restore(_) => 2,
            Self::Delete => 3,
            Self::Forget => 4,
        }
    }
}

/// Nothing goes back that would get another generation by it: pods are worth more than being rid of us.
fn check_pods(id: &ObjectId, manager: &str, differences: &[Difference]) -> Result<(), String> {
    let paths = differences.iter().map(|difference| difference.path.as_str()).filter(|path| path.starts_with("spec"));
    let paths: Vec<&str> = paths.collect();
    if paths.is_empty() || !has_pods(&id.kind) {
        return Ok(());
    }
    Err(format!(
        "{manager} would change {}; say in the parameters on the cluster what is there, as source and settings do",
        paths.join(", ")
    ))
}

fn step(live: &Live, deed: Deed) -> Step {
    let (id, gvk) = (live.object.id().clone(), live.object.gvk());
    Step { id, gvk, over: Some(Over::of(live)), deed, differences: Vec::new() }
}

fn forget(id: &ObjectId, entry: &Entry) -> Step {
    Step { id: id.clone(), gvk: entry.gvk.clone(), over: None, deed: Deed::Forget, differences: Vec::new() }
}

fn hand_back(live: &Live, manager: &str, gateway: &Live) -> Vec<Value> {
    let id = gateway.object.id();
    let owner = json!({
        "apiVersion": gateway.object.gvk().api_version(), "kind": id.kind, "name": id.name, "uid": gateway.uid,
        "controller": true,
    });
    let others = references(live).iter().filter(|reference| !is_of(reference, id)).cloned();
    let owners: Vec<Value> = others.chain([owner]).collect();
    let mut operations = unmarking(live);
    operations.push(json!({"op": "add", "path": "/metadata/ownerReferences", "value": owners}));
    operations.extend(inherited(live, Some(manager)));
    operations
}

fn unmark(live: &Live) -> Vec<Value> {
    unmarking(live).into_iter().chain(inherited(live, None)).collect()
}

/// Returns the patch that makes the heir the only one who has set what we have, or nobody: a server writes down whoever
/// changes something, so that our own patch leaves our name. `None` if it is not there.
pub fn tidy(live: &Live, heir: Option<&str>) -> Option<Vec<Value>> {
    managed_fields(live).iter().any(is_by_us).then(|| inherited(live, heir).into_iter().collect())
}

/// Tells who has an object after a step by which it is somebody else's.
pub fn heir<'a>(released: &'a Released, step: &Step) -> Option<&'a str> {
    matches!(step.deed, Deed::HandBack(_)).then_some(released.deployer.manager.as_str())
}

/// Removes our marks one by one: whatever else is said in labels and annotations stays.
fn unmarking(live: &Live) -> Vec<Value> {
    let is_there = |(field, key): &(&str, &str)| live.object.body()["metadata"][*field].get(*key).is_some();
    let removal = |(field, key): (&str, &str)| json!({"op": "remove", "path": format!("/metadata/{field}/{}", key.replace('~', "~0").replace('/', "~1"))});
    MARKS.into_iter().filter(is_there).map(removal).collect()
}

fn without_marks(object: &Object) -> Object {
    let mut body = object.body().clone();
    for (field, key) in MARKS {
        let Some(map) = body["metadata"].get_mut(field).and_then(Value::as_object_mut) else { continue };
        map.remove(key);
        if map.is_empty()
            && let Some(metadata) = body["metadata"].as_object_mut()
        {
            metadata.remove(field);
        }
    }
    Object::new(body).unwrap_or_else(|_| object.clone())
}

/// Replaces the record of who has set what: what was ours is the heir's, or nobody's.
fn inherited(live: &Live, heir: Option<&str>) -> Option<Value> {
    let entries = managed_fields(live);
    let is_merged = |entry: &&Value| is_by_us(entry) || heir.is_some_and(|heir| is_applied_by(entry, heir));
    let (merged, others): (Vec<&Value>, Vec<&Value>) = entries.iter().partition(is_merged);
    let first = merged.iter().find(|entry| entry["operation"] == "Apply").or(merged.first())?;
    let all = merged.iter().fold(json!({}), |all, entry| union(&all, &entry["fieldsV1"]));
    let mut left: Vec<Value> = others.into_iter().cloned().collect();
    if let Some(heir) = heir {
        let mut entry = (*first).clone();
        entry["manager"] = heir.into();
        entry["operation"] = "Apply".into();
        entry["fieldsV1"] = difference(&all, &our_fields());
        left.push(entry);
    }
    if left.is_empty() {
        // An empty list counts as none at all, and is ignored.
        left.push(json!({}));
    }
    Some(json!({"op": "replace", "path": "/metadata/managedFields", "value": left}))
}

fn is_by_us(entry: &Value) -> bool {
    entry["manager"] == FIELD_MANAGER && entry["subresource"].as_str().unwrap_or_default().is_empty()
}

/// The fields of our marks, and the containers that a patch counts as fields of their own.
fn our_fields() -> Value {
    let mut fields =
        json!({"f:metadata": {"f:ownerReferences": {".": {}}, "f:labels": {".": {}}, "f:annotations": {".": {}}}});
    for (field, key) in MARKS {
        fields["f:metadata"][format!("f:{field}")][format!("f:{key}")] = json!({});
    }
    fields
}
