//! One negotiation: every field that we want, have, or somebody else has, and what is done about it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::path::FieldPath;
use super::rules::{Policy, built_in, is_kind, is_like, said};
use super::same::is_same;
use super::{Conflicts, FieldVerdict, Negotiated, ObjectView, Transferred, Verdict, is_ours, managed_fields};
use crate::kinds::row::Row;
use crate::live::Live;
use crate::marks::{FIELD_MANAGER, OWN_PREFIX, is_keep_mark};
use crate::object::Object;
use crate::plan::fields::leaf::{Leaf, is_empty, leaves, unheld};
use crate::plan::fields::{difference, remove, union, without};
use crate::plan::policies::Policies;
use crate::plan::refusal::Reason;
use crate::quantity::places::Place;

/// The manager that applies without an API server that knows of managers.
const CLIENT_SIDE_APPLY: &str = "kubectl-client-side-apply";

/// The annotation that `kubectl rollout restart` sets in a pod template; removing it would restart once more.
const RESTARTED_AT: &str = "f:kubectl.kubernetes.io/restartedAt";

/// The treatment of a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Course {
    /// It is applied, which is enough.
    Apply,
    /// It is not applied, and stays as it is.
    Release,
    /// The live value is applied.
    Hold,
    /// It becomes ours, is not applied, and so goes.
    Remove,
}

/// Everything about one object.
pub(super) struct Table<'a> {
    wanted: &'a Object,
    live: &'a Live,
    conflicts: &'a Conflicts,
    /// The row of its kind.
    row: &'a Row,
    view: ObjectView<'a>,
    /// The fields that are ours.
    ours: Value,
    /// The entries that count beside ours; one that only tells of a status does not.
    others: Vec<&'a Value>,
    /// The other holders of each field.
    holders: BTreeMap<Leaf, Vec<&'a str>>,
    /// Fields that are left alone for some rounds, each with the number of rounds that remain after this one.
    resting: Vec<(FieldPath, u32, u32)>,
}

impl<'a> Table<'a> {
    pub(super) fn new(wanted: &'a Object, live: &'a Live, policies: &'a Policies, view: ObjectView<'a>) -> Self {
        let (conflicts, row) = (&policies.conflicts, policies.kinds.of(wanted.id()));
        let entries = managed_fields(live);
        let ours = entries.iter().filter(|entry| is_ours(entry));
        let ours = ours.fold(json!({}), |all, entry| union(&all, &entry["fieldsV1"]));
        let counts = |entry: &&Value| entry["manager"] != FIELD_MANAGER && entry["subresource"] != "status";
        let others: Vec<&Value> = entries.iter().filter(counts).collect();
        let mut holders: BTreeMap<Leaf, Vec<&str>> = BTreeMap::new();
        for entry in &others {
            let manager = entry["manager"].as_str().unwrap_or_default();
            for leaf in leaves(&entry["fieldsV1"]) {
                let known = holders.entry(leaf).or_default();
                if !known.contains(&manager) {
                    known.push(manager);
                }
            }
        }
        let resting = conflicts.fights.resting(wanted.id()).collect();
        Self { wanted, live, conflicts, row, view, ours, others, holders, resting }
    }

    pub(super) fn negotiate(self) -> Result<Negotiated, Reason> {
        let mut result = Negotiated::plain(self.wanted);
        let mut body = Cow::Borrowed(self.wanted.body());
        let mine: BTreeSet<Leaf> = leaves(&self.ours).into_iter().collect();
        let (mut stays, mut released) = (BTreeSet::new(), json!({}));
        for leaf in self.all(&mine) {
            let Some((course, mut decided)) = self.decide(&leaf, mine.contains(&leaf))? else { continue };
            match course {
                Course::Apply | Course::Remove => {}
                Course::Hold => leaf.put(body.to_mut(), leaf.value(self.live.object.body())),
                Course::Release => {
                    released = union(&released, &leaf.set());
                    if mine.contains(&leaf) && leaf.value(self.live.object.body()).is_some() {
                        if decided.verdict == Verdict::Yielded {
                            decided.verdict = Verdict::HandedOver;
                        }
                        result.given.push(leaf.clone());
                    }
                }
            }
            if matches!(course, Course::Release | Course::Hold) {
                stays.insert(leaf);
            }
            result.decided.push(decided);
        }
        if !is_empty(&released) {
            remove(body.to_mut(), &released);
        }
        self.regroup(&mut result, &stays);
        result.lost = self.lost(&result, &body);
        if let Cow::Owned(body) = body
            && body != *self.wanted.body()
        {
            result.object = Object::new(body).expect("what identifies an object is never released");
        }
        Ok(result)
    }

    /// Tells whether the object has fields of ours and of nobody else, and no setting says anything of one: then we get
    /// all that we want, and the others stay as they are but for the number of replicas.
    fn is_ours_alone(&self) -> bool {
        let has_say = self.view.autoscaler.is_some() || !self.conflicts.ignore.is_empty() || !self.resting.is_empty();
        self.others.is_empty() && !has_say
    }

    /// Every field that somebody has, and those that nobody has and we want; of these only what is to be decided.
    fn all(&self, mine: &BTreeSet<Leaf>) -> BTreeSet<Leaf> {
        if self.is_ours_alone() {
            return mine.get(&replicas()).cloned().into_iter().collect();
        }
        let held = self.others.iter().fold(self.ours.clone(), |all, entry| union(&all, &entry["fieldsV1"]));
        // What holds something for one manager may be all that another has of it; that says nothing about what is in it.
        let known: BTreeSet<Leaf> = leaves(&held).into_iter().collect();
        let some = self.holders.keys().chain(mine).filter(|leaf| known.contains(*leaf)).cloned();
        let new = unheld(self.wanted.body(), &held, self.live.object.body());
        some.chain(new).filter(|leaf| !is_fixed(leaf)).collect()
    }

    /// Decides about one field; `None` if there is nothing to say about it.
    fn decide(&self, leaf: &Leaf, is_mine: bool) -> Result<Option<(Course, FieldVerdict)>, Reason> {
        let (wanted, live) = (leaf.value(self.wanted.body()), leaf.value(self.live.object.body()));
        let holders = self.holders.get(leaf).map_or(&[][..], Vec::as_slice);
        match (wanted, live) {
            (Some(wanted), Some(live)) if self.is_same(leaf, wanted, live) => return Ok(None),
            // What goes into an empty mapping is in nobody's way.
            (Some(Value::Object(_)), Some(live)) if is_empty(live) => return Ok(None),
            (None, _) if holders.is_empty() && !is_mine => return Ok(None),
            _ => {}
        }
        let is_addition = wanted.is_none() && !is_mine;
        if is_addition && (is_exempt(leaf, self.row) || *leaf == replicas() || !self.is_taken(leaf, holders)?) {
            return Ok(None);
        }
        let decided = |course, verdict| Some((course, self.decided(leaf, verdict, holders)));
        if self.is_ignored(leaf, holders) {
            return Ok(decided(Course::Release, Verdict::Ignored));
        }
        if let Some((_, corrections, rest)) = self.resting.iter().find(|(path, ..)| path.touches(leaf, self.bodies())) {
            let course = if is_mine && live.is_some() { Course::Hold } else { Course::Release };
            let (corrections, rest) = (Some(*corrections), Some(*rest));
            let decided = FieldVerdict { corrections, rest, ..self.decided(leaf, Verdict::Fighting, holders) };
            return Ok(Some((course, decided)));
        }
        if *leaf == replicas() && (wanted.is_none() || self.view.autoscaler.is_some()) {
            return Ok(self.scaled(leaf, holders).map(|decided| (Course::Release, decided)));
        }
        Ok(match (wanted, holders) {
            (_, []) => None,
            (Some(_), _) if live.is_none() => None,
            (Some(_), _) if self.is_taken(leaf, holders)? => decided(Course::Apply, Verdict::Taken),
            (Some(_), _) => decided(Course::Release, Verdict::Yielded),
            (None, _) if !is_exempt(leaf, self.row) && self.is_taken(leaf, holders)? => {
                decided(Course::Remove, Verdict::Removed)
            }
            (None, _) => None,
        })
    }

    fn is_same(&self, leaf: &Leaf, wanted: &Value, live: &Value) -> bool {
        let id = self.wanted.id();
        let fields = leaf.words().iter().filter_map(|word| word.strip_prefix("f:"));
        is_same(wanted, live, fields.fold(Place::root(&id.group, &id.kind, self.row.resources), Place::field))
    }

    /// Replicas belong to what scales the object; where nothing is wanted, to whoever does.
    fn scaled(&self, leaf: &Leaf, holders: &[&str]) -> Option<FieldVerdict> {
        leaf.value(self.live.object.body())?;
        let mut decided = self.decided(leaf, Verdict::Yielded, holders);
        if let Some(autoscaler) = self.view.autoscaler {
            decided.managers = vec![autoscaler.to_string()];
        }
        Some(decided)
    }

    fn decided(&self, leaf: &Leaf, verdict: Verdict, holders: &[&str]) -> FieldVerdict {
        let wanted = if verdict == Verdict::Taken { None } else { self.shown(leaf, self.wanted.body()) };
        let managers = holders.iter().map(ToString::to_string).collect();
        FieldVerdict { wanted, ..FieldVerdict::new(self.text(leaf), verdict, managers) }
    }

    /// Tells whether every holder of a field gives way to us; a rule may refuse that it is decided at all.
    fn is_taken(&self, leaf: &Leaf, holders: &[&str]) -> Result<bool, Reason> {
        let policies = || holders.iter().map(|manager| (self.policy(manager, leaf), *manager));
        if let Some((_, manager)) = policies().find(|(policy, _)| *policy == Policy::Fail) {
            let value = |body: &Value| self.shown(leaf, body).map_or("nothing".to_owned(), |it| it.to_string());
            let (now, ours) = (value(self.live.object.body()), value(self.wanted.body()));
            let what = format!("{manager:?} has set {} to {now}, ours would be {ours}", self.text(leaf));
            return Err(Reason::Conflict(what));
        }
        Ok(policies().all(|(policy, _)| policy == Policy::Take))
    }

    fn policy(&self, manager: &str, leaf: &Leaf) -> Policy {
        let said = said(&self.conflicts.rules, manager, self.wanted.id(), leaf, self.bodies());
        match said.unwrap_or_else(|| built_in(manager)) {
            // Nobody applies these fields any more.
            Policy::Yield if self.view.deployer == Some(manager) => Policy::Take,
            // Who only compares decides nothing: what differs is told, whoever has set it.
            Policy::Fail if self.view.compares => Policy::Take,
            Policy::Yield if self.view.compares && said.is_none() && leaf.value(self.wanted.body()).is_some() => {
                Policy::Take
            }
            policy => policy,
        }
    }

    fn is_ignored(&self, leaf: &Leaf, holders: &[&str]) -> bool {
        self.conflicts.ignore.iter().any(|ignore| {
            let is_written_by = |pattern: &String| holders.iter().any(|manager| is_like(pattern, manager));
            is_kind(&ignore.kind, self.wanted.id())
                && ignore.path.means(leaf, self.bodies())
                && ignore.manager.as_ref().is_none_or(is_written_by)
        })
    }

    /// Writes down who owns the fields from now on.
    fn regroup(&self, result: &mut Negotiated, stays: &BTreeSet<Leaf>) {
        let is_about = |verdict| result.decided.iter().any(|decided| decided.verdict == verdict);
        let mut left_behind = false;
        let has_additions = is_about(Verdict::Removed);
        for entry in &self.others {
            let transferred = self.transferred(entry, stays);
            let is_left_behind = entry["manager"] == CLIENT_SIDE_APPLY;
            if transferred.as_object().is_some_and(|set| !set.is_empty()) && (has_additions || is_left_behind) {
                left_behind |= is_left_behind;
                result.transferred.push(Transferred { entry: (*entry).clone(), set: transferred });
            }
        }
        if left_behind {
            let managers = vec![CLIENT_SIDE_APPLY.to_owned()];
            result.decided.push(FieldVerdict::new(String::new(), Verdict::Migrated, managers));
        }
        result.is_due = left_behind || !result.given.is_empty();
        if !result.transferred.is_empty() || !result.given.is_empty() {
            let entries = self.entries(result);
            result.first = vec![json!({"op": "replace", "path": "/metadata/managedFields", "value": entries})];
        }
    }

    /// The fields that nobody has any more when all is done.
    fn lost(&self, result: &Negotiated, body: &Value) -> Value {
        let is_kept = |leaf: &Leaf| leaf.value(body).is_some() || result.given.contains(leaf);
        if result.transferred.is_empty() && leaves(&self.ours).iter().all(is_kept) {
            return json!({});
        }
        let others = self.others.iter().fold(json!({}), |all, entry| union(&all, &result.left(entry)));
        let ours = result.transferred.iter().fold(self.ours.clone(), |all, transferred| union(&all, &transferred.set));
        let wanted = leaves(&ours).into_iter().filter(is_kept);
        let kept = wanted.fold(others, |all, leaf| union(&all, &leaf.set()));
        without(&ours, &kept)
    }

    /// The fields of an entry that become ours when some do: all that its manager gives way in.
    fn transferred(&self, entry: &Value, stays: &BTreeSet<Leaf>) -> Value {
        let manager = entry["manager"].as_str().unwrap_or_default();
        // Sets are written in the terms of one version, and a scale is no part of an object.
        if entry["apiVersion"] != self.version() || !entry["subresource"].as_str().unwrap_or_default().is_empty() {
            return json!({});
        }
        let is_left = |leaf: &Leaf| {
            let is_scale = *leaf == replicas() && leaf.value(self.wanted.body()).is_none();
            is_exempt(leaf, self.row) || is_scale || stays.contains(leaf) || self.policy(manager, leaf) != Policy::Take
        };
        let left = leaves(&entry["fieldsV1"]).into_iter().filter(is_left);
        let left = left.fold(json!({}), |all, leaf| union(&all, &leaf.set()));
        without(&entry["fieldsV1"], &left)
    }

    /// The version in whose terms our own set is written.
    fn version(&self) -> Value {
        let own = managed_fields(self.live).iter().find(|entry| is_ours(entry));
        own.map_or_else(|| self.wanted.body()["apiVersion"].clone(), |entry| entry["apiVersion"].clone())
    }

    fn entries(&self, result: &Negotiated) -> Vec<Value> {
        let given = result.given.iter().fold(json!({}), |all, leaf| union(&all, &leaf.set()));
        let gained = result.transferred.iter().fold(json!({}), |all, transferred| union(&all, &transferred.set));
        let ours = union(&difference(&self.ours, &given), &gained);
        let entries = managed_fields(self.live);
        let first = entries
            .iter()
            .find(|entry| is_ours(entry))
            .or(result.transferred.first().map(|transferred| &transferred.entry));
        let own = first.map(|first| {
            let mut own = first.clone();
            own["manager"] = FIELD_MANAGER.into();
            own["operation"] = "Apply".into();
            own["fieldsV1"] = ours;
            own
        });
        let others = entries.iter().filter(|entry| !is_ours(entry)).map(|entry| {
            let mut left = entry.clone();
            left["fieldsV1"] = result.left(entry);
            left
        });
        own.into_iter().chain(others).filter(|entry| !is_empty(&entry["fieldsV1"])).collect()
    }

    fn bodies(&self) -> [&Value; 2] {
        [self.live.object.body(), self.wanted.body()]
    }

    fn text(&self, leaf: &Leaf) -> String {
        let [live, wanted] = self.bodies();
        leaf.text(if leaf.value(live).is_some() { live } else { wanted })
    }

    /// Returns what is shown of the value of a field of a body. What surrounds it says whether it is secret.
    fn shown(&self, leaf: &Leaf, body: &Value) -> Option<Value> {
        let value = leaf.value(body)?;
        let masker = &self.conflicts.masker;
        Some(leaf.value(&masker.body(body)).cloned().unwrap_or_else(|| masker.value(value)))
    }
}

fn replicas() -> Leaf {
    Leaf::of(&["spec", "replicas"])
}

/// Tells whether a field identifies an object, or says that it is ours.
fn is_fixed(leaf: &Leaf) -> bool {
    let words: Vec<&str> = leaf.words().iter().map(String::as_str).collect();
    match words.as_slice() {
        ["f:apiVersion" | "f:kind"] | ["f:metadata", "f:name" | "f:namespace" | "f:labels" | "f:annotations"] => true,
        ["f:metadata", _, key, ..] => key.strip_prefix("f:").is_some_and(|key| key.starts_with(OWN_PREFIX)),
        _ => false,
    }
}

/// Additions that are no drift: what a restart leaves, what keeps an object from being deleted, a status, and what its kind
/// leaves to others.
fn is_exempt(leaf: &Leaf, row: &Row) -> bool {
    let words: Vec<&str> = leaf.words().iter().map(String::as_str).collect();
    let starts = |path: &String| {
        let mut words = words.iter().map(|word| word.strip_prefix("f:"));
        path.split('.').all(|field| words.next() == Some(Some(field)))
    };
    if row.others_may_add.iter().any(starts) {
        return true;
    }
    match words.as_slice() {
        ["f:status", ..] | ["f:metadata", "f:finalizers" | "f:ownerReferences", ..] => true,
        ["f:metadata", "f:labels" | "f:annotations", key] => {
            key.strip_prefix("f:").is_some_and(is_keep_mark) || *key == RESTARTED_AT
        }
        [.., key] => *key == RESTARTED_AT,
        [] => false,
    }
}
