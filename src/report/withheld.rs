//! What was not done, and since when: the refusals and holds of a plan, with the time that plans know nothing of.

use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::guard::token::HeldStep;
use gatewright_engine::plan::guard::{Guard, Hold};
use gatewright_engine::plan::refusal::{Reason, Refusal};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A step that we chose not to take: [`Refusal`], and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalReport {
    /// The unit.
    pub unit: ObjectId,
    /// The object.
    pub id: ObjectId,
    /// Why.
    pub reason: Reason,
    /// Since which report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// A guard that stopped something: [`Hold`], and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldReport {
    /// Which guard.
    pub guard: Guard,
    /// The unit that waits; `None`: nothing at all is done on this cluster, or nothing is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<ObjectId>,
    /// What it saw.
    pub message: String,
    /// How to go on.
    pub hint: String,
    /// What lifts it for exactly these steps; `None` if no approval does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// What waits for approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<HeldStep>,
    /// Since which report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

impl From<&Refusal> for RefusalReport {
    fn from(refusal: &Refusal) -> Self {
        let Refusal { unit, id, reason } = refusal.clone();
        Self { unit, id, reason, since: None }
    }
}

impl From<&Hold> for HoldReport {
    fn from(hold: &Hold) -> Self {
        let Hold { guard, unit, message, hint, token, steps } = hold.clone();
        Self { guard, unit, message, hint, token, steps, since: None }
    }
}

impl From<&HoldReport> for Hold {
    fn from(hold: &HoldReport) -> Self {
        let HoldReport { guard, unit, message, hint, token, steps, since: _ } = hold.clone();
        Self { guard, unit, message, hint, token, steps }
    }
}
