//! The refusals and holds of a plan: what was not done, and since when, with the time that plans know nothing of.

use std::ops::Deref;

use gatewright_engine::plan::guard::Hold;
use gatewright_engine::plan::refusal::Refusal;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Something of a plan, and since which report it is known. It reads as what it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dated<T> {
    /// The refusal or hold.
    #[serde(flatten)]
    pub what: T,
    /// Since which report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// A step that we chose not to take.
pub type RefusalReport = Dated<Refusal>;

/// A guard that stopped something.
pub type HoldReport = Dated<Hold>;

impl<T> From<T> for Dated<T> {
    fn from(what: T) -> Self {
        Self { what, since: None }
    }
}

impl<T> Deref for Dated<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.what
    }
}
