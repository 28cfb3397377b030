//! The action of a step; in a drift report, the standing of an object.

use std::fmt;

use gatewright_engine::plan::Action;
use serde::{Deserialize, Serialize};

/// The action of a step, in the order in which actions are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepAction {
    /// It is made.
    Create,
    /// It is made with a generated value.
    Generate,
    /// It is changed.
    Update,
    /// It becomes ours.
    Adopt,
    /// It is deleted and made again.
    Recreate,
    /// It is deleted before what needs its place.
    #[serde(rename = "release-first")]
    DeleteFirst,
    /// It is left to another sync.
    #[serde(rename = "release")]
    HandOver,
    /// It is deleted.
    Prune,
    /// It is not there.
    Missing,
    /// It is not as the source says.
    Different,
    /// Nobody asks for it any more.
    Extra,
    /// It is as it should be.
    #[serde(rename = "keep")]
    Unchanged,
    /// It is not written to this kind of cluster.
    Omit,
    /// It is gone already, and leaves the inventory.
    Forget,
}

impl StepAction {
    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Adopt => "adopt",
            Self::Generate => "generate",
            Self::Recreate => "recreate",
            Self::DeleteFirst => "delete-first",
            Self::Unchanged => "keep",
            Self::Omit => "omit",
            Self::HandOver => "hand-over",
            Self::Prune => "prune",
            Self::Forget => "forget",
            Self::Missing => "missing",
            Self::Different => "different",
            Self::Extra => "extra",
        }
    }

    /// Tells whether the cluster changes by it, or would have to.
    pub fn is_change(self) -> bool {
        !matches!(self, Self::Unchanged | Self::Omit | Self::HandOver | Self::Forget)
    }

    /// Returns what is done, or is to be done, to objects.
    pub(super) fn verb(self, is_planned: bool) -> String {
        match (self, is_planned) {
            (Self::Missing | Self::Different | Self::Extra, _) => self.word().to_owned(),
            (Self::HandOver, true) => "to hand over".to_owned(),
            (Self::DeleteFirst, true) => "to delete first".to_owned(),
            (_, true) => format!("to {self}"),
            (Self::HandOver, false) => "handed over".to_owned(),
            (Self::Prune, false) => "deleted".to_owned(),
            (Self::Adopt, false) => "adopted".to_owned(),
            (Self::DeleteFirst, false) => "deleted first".to_owned(),
            (_, false) => format!("{self}d"),
        }
    }
}

impl From<&Action> for StepAction {
    fn from(action: &Action) -> Self {
        match action {
            Action::CreateNamespace | Action::Create => Self::Create,
            Action::Update(_) => Self::Update,
            Action::Adopt(_) | Action::AdoptFromDeployer(_) => Self::Adopt,
            Action::Generate(_) => Self::Generate,
            Action::Recreate(_) => Self::Recreate,
            Action::DeleteFirst(_) => Self::DeleteFirst,
            Action::Unchanged => Self::Unchanged,
            Action::Omit => Self::Omit,
            Action::Release(_) => Self::HandOver,
            Action::Prune(_) => Self::Prune,
            Action::Forget => Self::Forget,
        }
    }
}

impl fmt::Display for StepAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_actions_are_those_of_the_report_but_for_two_that_it_calls_as_before() {
        let all = [
            StepAction::Create,
            StepAction::Generate,
            StepAction::Update,
            StepAction::Adopt,
            StepAction::Recreate,
            StepAction::DeleteFirst,
            StepAction::HandOver,
            StepAction::Prune,
            StepAction::Missing,
            StepAction::Different,
            StepAction::Extra,
            StepAction::Unchanged,
            StepAction::Omit,
            StepAction::Forget,
        ];
        for action in all {
            let json = match action {
                StepAction::DeleteFirst => "release-first",
                StepAction::HandOver => "release",
                other => other.word(),
            };
            assert_eq!(serde_json::to_value(action).ok(), Some(json.into()));
        }
    }
}
