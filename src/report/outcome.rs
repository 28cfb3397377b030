//! The outcome of a step, once it was carried out.

use serde::{Deserialize, Serialize};

/// The result of one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "result", content = "message")]
pub enum Outcome {
    /// It was done.
    Done,
    /// Somebody else changed the object in the meantime; the next round looks again.
    Stale(String),
    /// It failed.
    Failed(String),
    /// It was not tried, because something before it failed or the round was stopped.
    Skipped,
}
