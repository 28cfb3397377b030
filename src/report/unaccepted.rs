//! Gateways that no control plane has accepted as self-managed in time: however many they are, one finding.

use std::collections::BTreeSet;
use std::time::Duration;

use gatewright_engine::object::ObjectId;
use gatewright_engine::text::listed;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{ClusterReport, StepReport};
use crate::basics::duration::Period;
use crate::report::outcome::Outcome;

/// The most Gateways that are named.
const MOST_NAMED: usize = 8;

/// Gateways whose control plane has not said that it leaves them to us: nothing more of them was adopted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unaccepted {
    /// The Gateways.
    pub units: BTreeSet<ObjectId>,
    /// The finding.
    pub message: String,
    /// Advice on what to look at.
    pub hint: String,
    /// Since which report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

impl Unaccepted {
    /// Tells of Gateways that were not accepted within some time; `None` if there are none.
    pub fn within(limit: Duration, units: BTreeSet<ObjectId>) -> Option<Self> {
        let first = units.first()?;
        let message = format!(
            "no control plane has accepted {} as self-managed within {}; nothing more was adopted",
            listed(&units, MOST_NAMED),
            Period(limit)
        );
        let hint = format!(
            "see whether the controller of the class runs and watches the namespace, and what it says: `kubectl describe \
             gateway {} -n {}`; pods and addresses are as they were, and the next `gatewright adopt` goes on",
            first.name, first.namespace
        );
        Some(Self { units, message, hint, since: None })
    }
}

impl ClusterReport {
    /// Tells whether a unit waits for its control plane: that is told once for all of them.
    pub fn is_unaccepted(&self, unit: &ObjectId) -> bool {
        self.unaccepted.as_ref().is_some_and(|unaccepted| unaccepted.units.contains(unit))
    }

    /// Tells whether a step was not tried for want of that.
    pub fn awaits_acceptance(&self, step: &StepReport) -> bool {
        step.outcome == Some(Outcome::Skipped) && self.is_unaccepted(&step.unit)
    }
}
