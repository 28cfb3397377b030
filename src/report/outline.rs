//! What a report comes to, in a few words: how a cluster is, and how much changes there.

use gatewright_engine::plan::refusal::Reason;
use gatewright_engine::text::count;

use super::{ClusterReport, ClusterState, StepReport};
use crate::report::outcome::Outcome;

/// The actions that are counted, in the order in which they are told.
pub(super) const ACTIONS: [&str; 11] = [
    "create",
    "generate",
    "update",
    "adopt",
    "recreate",
    "release-first",
    "release",
    "prune",
    "missing",
    "different",
    "extra",
];

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
        let objects = ACTIONS.map(|action| (action, "object", self.number(action, false)));
        let namespaces = [("create", "namespace", self.number("create", true))];
        let all = objects.into_iter().chain(namespaces).filter(|(_, _, number)| *number > 0);
        all.map(|(action, thing, number)| format!("{} {}", count(number, thing), verb(action, self.is_planned())))
            .collect()
    }

    /// Counts the objects that stay as they are because they are right.
    pub fn unchanged(&self) -> usize {
        self.unlisted + self.steps.iter().filter(|step| step.action == "keep").count()
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

    fn number(&self, action: &str, is_namespace: bool) -> usize {
        let counts = |step: &&StepReport| {
            let is_over = self.is_planned() || matches!(step.outcome, Some(Outcome::Done));
            let is_new_namespace = step.id.is_a("", "Namespace") && action == "create";
            step.action == action && is_new_namespace == is_namespace && is_over
        };
        self.steps.iter().filter(counts).count()
    }
}

/// Returns what is done, or is to be done, to objects.
pub(super) fn verb(action: &str, is_planned: bool) -> String {
    match (action, is_planned) {
        ("missing" | "different" | "extra", _) => action.to_owned(),
        (action, true) => format!("to {action}"),
        ("prune", false) => "deleted".to_owned(),
        ("adopt", false) => "adopted".to_owned(),
        ("release-first", false) => "released first".to_owned(),
        (action, false) => format!("{action}d"),
    }
}

/// Tells whether an object stays as it is because that is right or safe, and not because something is wrong with it.
fn is_kept(reason: &Reason) -> bool {
    match reason {
        Reason::Protected(_)
        | Reason::Unmarked
        | Reason::HoldsOthers(_)
        | Reason::StillNeeded(_)
        | Reason::NotInPlan
        | Reason::Held(_)
        | Reason::NotApplied
        | Reason::Broken
        | Reason::Unreadable(_)
        | Reason::SelfManaged
        | Reason::PassedOn
        | Reason::Adopted
        | Reason::PruneDisabled
        | Reason::MayBeClaimed(_)
        | Reason::SuspectInventory
        | Reason::Unverified
        | Reason::FirstRound => true,
        Reason::Foreign(_)
        | Reason::LiveDeployer(_)
        | Reason::Conflict(_)
        | Reason::NotAllowed(_)
        | Reason::NoNamespace(_)
        | Reason::NamespaceTerminating(_)
        | Reason::Terminating
        | Reason::Invalid(_)
        | Reason::Forbidden(_)
        | Reason::NoSuchKind(_)
        | Reason::Failed(_)
        | Reason::Unknown(_)
        | Reason::Taken(_)
        | Reason::Stale(_)
        | Reason::DeletedAgain(_)
        | Reason::Immutable(_)
        | Reason::NotUndone(_)
        | Reason::UnitHeld => false,
    }
}
