//! The outline of a report, in a few words: how a cluster is, and how much changes there.

use std::collections::BTreeMap;

use gatewright_engine::plan::refusal::{Reason, Severity};
use gatewright_engine::text::count;

use super::action::StepAction;
use super::{ClusterReport, ClusterState, StepReport};
use crate::report::outcome::Outcome;

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

impl ClusterReport {
    /// Counts what changes: `12 objects to create`; new namespaces apart, because most of them are not ours.
    pub fn changes(&self) -> Vec<String> {
        let mut numbers: BTreeMap<(bool, StepAction), usize> = BTreeMap::new();
        let is_over = |step: &&StepReport| self.is_planned() || step.outcome == Some(Outcome::Done);
        let is_told = |step: &&StepReport| step.is_change() || step.action == StepAction::HandOver;
        for step in self.steps.iter().filter(is_told).filter(is_over) {
            let is_namespace = step.id.is_a("", "Namespace") && step.action == StepAction::Create;
            *numbers.entry((is_namespace, step.action)).or_default() += 1;
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
    let is_passing = matches!(reason, Reason::Terminating | Reason::UnitHeld);
    !is_passing && reason.severity() <= Severity::Held
}
