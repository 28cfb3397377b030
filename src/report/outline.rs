//! The outline of a report: its sections, and in a few words how a cluster is, and how much changes there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::refusal::{Reason, Severity};
use gatewright_engine::spec::GATEWAY_API;
use gatewright_engine::text::count;

use super::action::StepAction;
use super::{ClusterReport, ClusterState, Mode, Report, StepReport};
use crate::report::outcome::Outcome;

/// The section of a report under which something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Section<'a> {
    /// Namespaces that are made for what goes there.
    Namespaces,
    /// A unit of several objects.
    Unit(&'a ObjectId),
    /// Documents that are each a unit of their own.
    Documents,
}

impl fmt::Display for Section<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Namespaces => f.write_str("Namespaces"),
            Self::Unit(id) => id.fmt(f),
            Self::Documents => f.write_str("Documents applied as they are"),
        }
    }
}

/// The sections of what a report says.
pub(super) struct Sections<'a> {
    /// Units of which it tells of objects that are not the spec itself.
    with_objects: BTreeSet<&'a ObjectId>,
}

impl<'a> Sections<'a> {
    /// Finds out which units are more than a document on any cluster.
    pub(super) fn of(clusters: impl Iterator<Item = &'a ClusterReport>) -> Self {
        let all = clusters.flat_map(|cluster| {
            let steps = cluster.steps.iter().map(|step| (&step.unit, &step.id));
            steps.chain(cluster.refusals.iter().map(|refusal| (&refusal.unit, &refusal.id)))
        });
        let is_made = |(unit, id): &(&ObjectId, &ObjectId)| unit != id;
        Self { with_objects: all.filter(is_made).map(|(unit, _)| unit).collect() }
    }

    /// Returns that of what belongs to a unit.
    pub(super) fn of_unit<'b>(&self, unit: &'b ObjectId) -> Section<'b> {
        // A history may have the copy of a Gateway and nothing else of it.
        let is_unit = self.with_objects.contains(unit) || unit.is_a(GATEWAY_API, "Gateway");
        if is_unit { Section::Unit(unit) } else { Section::Documents }
    }

    /// Returns that of a step.
    pub(super) fn of_step<'b>(&self, step: &'b StepReport) -> Section<'b> {
        let is_made = step.place.is_none() && matches!(step.action, StepAction::Create | StepAction::Missing);
        if is_made && step.id.is_a("", "Namespace") { Section::Namespaces } else { self.of_unit(&step.unit) }
    }
}

impl ClusterState {
    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Planned => "plan",
            Self::Compared => "report",
            Self::Done => "done",
            Self::Held => "held",
            Self::Stopped => "stopped",
            Self::Suspended => "suspended",
            Self::Failed => "failed",
            Self::Unreachable => "unreachable",
            Self::Unknown => "unknown",
        }
    }
}

impl Report {
    /// Says what a round has done, or would do: `update 2, prune 1`.
    pub(crate) fn did(&self) -> String {
        if self.suspended.is_some() {
            return "suspended".to_owned();
        }
        let counts: Vec<String> =
            self.counts().into_iter().map(|(action, number)| format!("{action} {number}")).collect();
        match (counts.is_empty(), self.mode) {
            (true, Mode::Report) => "no differences".to_owned(),
            (true, Mode::Apply | Mode::Plan) => "no changes".to_owned(),
            (false, Mode::Apply) => counts.join(", "),
            (false, Mode::Report) => format!("found {}", counts.join(", ")),
            (false, Mode::Plan) => format!("planned {}", counts.join(", ")),
        }
    }
}

impl StepReport {
    /// Returns the word by which an object is found: what is done with it, or that this went wrong.
    pub(crate) fn result(&self) -> &str {
        match &self.outcome {
            Some(Outcome::Failed(_) | Outcome::Stale(_)) => "failed",
            Some(Outcome::Skipped) => "not tried",
            Some(Outcome::Done) | None => self.action.word(),
        }
    }

    /// Returns the word for what was done: a replacement that failed halfway was a deletion.
    pub(crate) fn done_word(&self) -> &'static str {
        self.done().word()
    }

    fn done(&self) -> StepAction {
        if self.deleted { StepAction::DeleteFirst } else { self.action }
    }

    /// Returns what is to be said of it beside its differences.
    pub(crate) fn said(&self) -> Option<String> {
        match &self.outcome {
            Some(Outcome::Failed(why)) => Some(why.clone()),
            Some(Outcome::Stale(why)) => Some(format!("changed meanwhile: {why}")),
            Some(Outcome::Skipped | Outcome::Done) | None => self.note.clone(),
        }
    }
}

impl ClusterReport {
    /// Counts what changes: `12 objects to create`; new namespaces apart, because most of them are not ours.
    pub fn changes(&self) -> Vec<String> {
        let mut numbers: BTreeMap<(bool, StepAction), usize> = BTreeMap::new();
        let is_over = |step: &&StepReport| self.is_planned() || step.deleted || step.outcome == Some(Outcome::Done);
        let is_told = |step: &&StepReport| step.is_change() || step.action == StepAction::HandOver;
        for step in self.steps.iter().filter(is_told).filter(is_over) {
            let is_namespace = step.id.is_a("", "Namespace") && step.action == StepAction::Create;
            *numbers.entry((is_namespace, step.done())).or_default() += 1;
        }
        let words = numbers.into_iter().map(|((is_namespace, action), number)| {
            let thing = if is_namespace { "namespace" } else { "object" };
            format!("{} {}", count(number, thing), action.verb(self.is_planned()))
        });
        words.collect()
    }

    /// Counts the objects that stay as they are because they are right.
    pub fn unchanged(&self) -> usize {
        self.unlisted + self.steps.iter().filter(|step| step.action == StepAction::Unchanged).count()
    }

    /// Counts the changes that came to nothing: those that failed, and those that were not tried after one that had.
    pub fn not_succeeded(&self) -> (usize, usize) {
        let number = |result: &str| self.steps.iter().filter(|step| step.result() == result).count();
        (number("failed"), number("not tried"))
    }

    /// Counts what was not done: objects that are kept on purpose, and those of which something is wrong.
    pub fn not_done(&self) -> (usize, usize) {
        let kept = self.refusals.iter().filter(|refusal| is_kept(&refusal.reason)).count();
        (kept, self.refusals.len() - kept)
    }

    /// Tells whether the steps are what would be done, and not what was.
    pub fn is_planned(&self) -> bool {
        matches!(self.state, ClusterState::Planned | ClusterState::Held | ClusterState::Compared)
    }
}

/// Tells whether an object stays as it is because that is right or safe, and not because something is wrong with it.
fn is_kept(reason: &Reason) -> bool {
    let is_passing = matches!(reason, Reason::Terminating | Reason::Finalized(_) | Reason::UnitHeld);
    !is_passing && reason.severity() <= Severity::Held
}
