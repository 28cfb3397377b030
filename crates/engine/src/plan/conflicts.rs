//! Fields that others write to: whose value counts, and what has to be done before an apply so that it does.
//!
//! An apply with force takes every field that we want and leaves everything else that others have set. Neither is always
//! right. What a person has changed or added by hand is to go, what a controller has set is to stay, and a field that we
//! let go of must keep its value although the server drops what its only owner does not apply any more. So here the
//! object to apply and the owners of its fields (`managedFields`) are decided together, from the live object alone. The
//! result is what is dry-run, what is planned and what is carried out.
//!
//! An object without `managedFields`, such as a file, has nothing to negotiate about.

pub mod fights;
pub mod path;
pub mod rules;
pub(super) mod same;
pub(super) mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Observed;
use super::deployer::{content, held_by};
use super::fields::leaf::{Leaf, leaves, wholes};
use super::fields::{difference, remove, union, without};
use super::policies::Policies;
use super::refusal::Reason;
use crate::diff::{Difference, key_of, leads_to};
use crate::live::Live;
use crate::marks::FIELD_MANAGER;
use crate::mask::Masker;
use crate::object::{Object, ObjectId};
use crate::unit::Unit;
use fights::Fights;
use rules::{Ignore, Rule};
use table::Table;

/// Facts that are known beforehand about fields that others write to.
#[derive(Clone, Debug, Default)]
pub struct Conflicts {
    /// The rules about who wins, before those that are built in; the first that covers a field counts.
    pub rules: Vec<Rule>,
    /// Fields that are never changed.
    pub ignore: Vec<Ignore>,
    /// Fields that were corrected again and again.
    pub fights: Fights,
    /// The masker: it decides what is shown of values that may be secret.
    pub masker: Masker,
}

/// The decisions about a field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FieldVerdict {
    /// The path, as in a difference; empty if it is about an object as a whole.
    pub path: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The others who write there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managers: Vec<String>,
    /// The value that we would have there, if that is not what there is; masked if it may be a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<Value>,
    /// The number of times it was corrected for nothing, this time included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrections: Option<u32>,
    /// For how many more rounds it is left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<u32>,
}

/// The decision that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It gets our value.
    Taken,
    /// Somebody has added it by hand, and it goes.
    Removed,
    /// It keeps its value, which is somebody else's.
    Yielded,
    /// The same, and it was ours until now.
    HandedOver,
    /// A setting says that it is not ours to change.
    Ignored,
    /// A field that client-side applies have left behind: it becomes ours, so that it can go.
    Migrated,
    /// Somebody sets it back whenever we correct it.
    Fighting,
}

impl FieldVerdict {
    /// Decides a field; what only some verdicts have is left out.
    pub(super) fn new(path: String, verdict: Verdict, managers: Vec<String>) -> Self {
        Self { path, verdict, managers, wanted: None, corrections: None, rest: None }
    }
}

/// An object as it is to be applied, and what comes before.
#[derive(Clone, Debug, PartialEq)]
pub struct Negotiated {
    /// The object that is applied.
    pub object: Object,
    /// All that is done first, by one guarded patch: operations of a JSON patch (RFC 6902); empty if nothing.
    pub first: Vec<Value>,
    /// The decisions that were made.
    pub decided: Vec<FieldVerdict>,
    /// Whether it has to be done even if no value changes by it.
    pub is_due: bool,
    /// The wanted object that it was decided for.
    pub(super) wanted: Object,
    transferred: Vec<Transferred>,
    given: Vec<Leaf>,
    lost: Value,
}

/// Fields of another manager that become ours.
#[derive(Clone, Debug, PartialEq)]
struct Transferred {
    /// The entry of `managedFields` that they leave.
    entry: Value,
    set: Value,
}

impl Transferred {
    fn is_from(&self, entry: &Value) -> bool {
        ["manager", "operation", "subresource", "apiVersion"].iter().all(|field| entry[*field] == self.entry[*field])
    }
}

/// The others that have a say in an object, beside those who have written to it.
#[derive(Clone, Copy, Default)]
struct ObjectView<'a> {
    /// The autoscaler that scales it.
    autoscaler: Option<&'a ObjectId>,
    /// The deployer that has made it and is gone.
    deployer: Option<&'a str>,
    /// Nothing is going to be written: what differs is only told.
    compares: bool,
}

/// Decides whose value counts in every field of a wanted object that exists.
///
/// Refuses if a rule says that somebody else's field is a matter for a person. What a live deployer holds is no matter
/// of single fields: there the wanted object comes back as it is.
pub fn negotiated(
    unit: &Unit,
    object: &Object,
    live: &Live,
    observed: &Observed,
    policies: &Policies,
) -> Result<Negotiated, Reason> {
    let is_held = || held_by(unit, object.id(), live, observed.gateways.get(&unit.id)).is_some();
    if observed.is_unmarked || managed_fields(live).is_empty() || is_held() {
        return Ok(Negotiated::plain(object));
    }
    let view = ObjectView {
        autoscaler: observed.autoscaled.get(object.id()),
        deployer: unit.deployer.as_ref().map(|deployer| deployer.manager.as_str()),
        compares: false,
    };
    Table::new(object, live, policies, view).negotiate()
}

/// Decides the same where nothing is going to be written, and somebody else provisions the object: what that one has
/// set and we do not want differs, as does every field that we want otherwise, whoever has set it.
///
/// What a rule leaves to another manager, what an `ignore` covers and the replicas of what is scaled are no difference.
pub(crate) fn compared(
    unit: &Unit,
    object: &Object,
    live: &Live,
    autoscaler: Option<&ObjectId>,
    policies: &Policies,
) -> Result<Negotiated, Reason> {
    if managed_fields(live).is_empty() {
        return Ok(Negotiated::plain(object));
    }
    let deployer = unit.deployer.as_ref().map(|deployer| deployer.manager.as_str());
    let view = ObjectView { autoscaler, deployer: provisioner(object, live, deployer), compares: true };
    Table::new(object, live, policies, view).negotiate()
}

/// Names who has made a live object: the deployer if it has a part in it, or whoever has most of what we want.
fn provisioner<'a>(object: &Object, live: &'a Live, deployer: Option<&'a str>) -> Option<&'a str> {
    let entries = managed_fields(live);
    let whole = || entries.iter().filter(|entry| entry["subresource"].as_str().unwrap_or_default().is_empty());
    if whole().any(is_ours) || whole().any(|entry| entry["manager"].as_str() == deployer) {
        return deployer;
    }
    let wanted = |entry: &Value| {
        let leaves = leaves(&entry["fieldsV1"]);
        leaves.iter().filter(|leaf| leaf.value(object.body()).is_some()).count()
    };
    whole().max_by_key(|entry| wanted(entry)).and_then(|entry| entry["manager"].as_str())
}

/// Returns what scales what, among wanted objects: everything that names a `scaleTargetRef`.
pub fn autoscaled<'a>(units: impl IntoIterator<Item = &'a Unit>) -> BTreeMap<ObjectId, ObjectId> {
    let target = |object: &Object| {
        let target = object.body().pointer("/spec/scaleTargetRef")?;
        let group = target["apiVersion"].as_str().unwrap_or("apps/v1").split_once('/').map_or("", |(group, _)| group);
        let kind = target["kind"].as_str().unwrap_or("Deployment");
        let id = ObjectId::new(group, kind, &object.id().namespace, target["name"].as_str()?);
        Some((id, object.id().clone()))
    };
    units.into_iter().flat_map(Unit::all).filter_map(target).collect()
}

impl Negotiated {
    fn plain(object: &Object) -> Self {
        let (transferred, given) = (Vec::new(), Vec::new());
        let (first, decided, lost) = (Vec::new(), Vec::new(), Value::Null);
        let (wanted, object) = (object.clone(), object.clone());
        Self { object, first, decided, is_due: false, wanted, transferred, given, lost }
    }

    /// Returns what was decided, as far as it shows: what is taken or removed where that changes something, and with the
    /// path of the difference.
    pub(super) fn reported(&self, differences: &[Difference], fights: &Fights) -> Vec<FieldVerdict> {
        let mut fields: Vec<FieldVerdict> = Vec::new();
        for decided in &self.decided {
            if !matches!(decided.verdict, Verdict::Taken | Verdict::Removed) {
                fields.push(decided.clone());
                continue;
            }
            let is_it = |path: &str| leads_to(path, &decided.path) || leads_to(&decided.path, path);
            for difference in differences.iter().filter(|difference| is_it(&difference.path)) {
                let known =
                    |field: &&mut FieldVerdict| field.path == difference.path && field.verdict == decided.verdict;
                match fields.iter_mut().find(known) {
                    Some(field) => {
                        field.managers.extend(decided.managers.iter().cloned());
                        field.managers.sort();
                        field.managers.dedup();
                    }
                    None => fields.push(FieldVerdict { path: difference.path.clone(), ..decided.clone() }),
                }
            }
        }
        fields.extend(differences.iter().filter_map(|difference| fights.named(self.object.id(), difference)));
        fields
    }

    /// Returns a patch that makes a live object what it will be when all is done; only for a dry run. `applied` is
    /// what an apply alone would make of it, with the owners of its fields as they are.
    pub fn dry_run(&self, live: &Live, applied: &Live) -> Vec<Value> {
        let transferred = self.transferred.iter().fold(json!({}), |all, transferred| union(&all, &transferred.set));
        let kept = managed_fields(applied).iter().fold(json!({}), |all, entry| union(&all, &self.left(entry)));
        let mut body = applied.object.body().clone();
        remove(&mut body, &without(&transferred, &kept));
        for leaf in &self.given {
            leaf.put(&mut body, leaf.value(live.object.body()));
        }
        content(live, &body)
    }

    /// The same where an apply alone would not be taken, as with a port that somebody has given another number: beside
    /// it the one that we want would be a second one of its name.
    pub fn draft(&self, live: &Live) -> Vec<Value> {
        content(live, &self.laid(live))
    }

    /// Returns what is wanted laid over what is left of a live object; elements of lists go by their names.
    pub(super) fn laid(&self, live: &Live) -> Value {
        let mut body = self.remainder(live);
        lay(&mut body, self.object.body());
        // What somebody has as a whole is exchanged as a whole.
        let owned = managed_fields(live).iter().fold(json!({}), |all, entry| union(&all, &entry["fieldsV1"]));
        for leaf in wholes(&owned) {
            if let Some(wanted @ Value::Object(_)) = leaf.value(self.object.body()) {
                leaf.put(&mut body, Some(wanted));
            }
        }
        body
    }

    /// Returns what is left of a live object when what is to go has gone.
    pub(super) fn remainder(&self, live: &Live) -> Value {
        let mut body = live.object.body().clone();
        remove(&mut body, &self.lost);
        body
    }

    /// Returns what is left of an entry once what moves is transferred.
    fn left(&self, entry: &Value) -> Value {
        let from = self.transferred.iter().filter(|transferred| transferred.is_from(entry));
        from.fold(entry["fieldsV1"].clone(), |left, transferred| difference(&left, &transferred.set))
    }
}

/// Lays one body over another; elements of lists go by what identifies them.
fn lay(body: &mut Value, over: &Value) {
    match (body, over) {
        (Value::Object(body), Value::Object(over)) => {
            over.iter().for_each(|(field, over)| lay(body.entry(field.clone()).or_insert(Value::Null), over));
        }
        (Value::Array(body), Value::Array(over))
            if let Some(key) = key_of(&[body, over]).filter(|_| !over.is_empty()) =>
        {
            for over in over {
                match body.iter_mut().find(|element| element[key] == over[key]) {
                    Some(element) => lay(element, over),
                    None => body.push(over.clone()),
                }
            }
        }
        (body, over) => *body = over.clone(),
    }
}

/// Returns who owns which fields of a live object, as the API server writes it down.
pub(super) fn managed_fields(live: &Live) -> &[Value] {
    live.object.body().pointer("/metadata/managedFields").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Tells whether an entry says what a manager has applied; what it says of the status is another matter.
pub(super) fn is_applied_by(entry: &Value, manager: &str) -> bool {
    let is_whole = entry["subresource"].as_str().unwrap_or_default().is_empty();
    entry["manager"] == manager && entry["operation"] == "Apply" && is_whole
}

fn is_ours(entry: &Value) -> bool {
    is_applied_by(entry, FIELD_MANAGER)
}
