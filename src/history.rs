//! The data of rounds that is kept on this host: reports, pre-images for undo, renderings for rollback, saved plans,
//! approvals.
//!
//! May use `report` and all that stands below it in `ARCHITECTURE.md`.

pub(crate) mod approvals;
pub mod archive;
pub(crate) mod audit_log;
pub(crate) mod decisions;
pub(crate) mod expiry;
pub(crate) mod interrupted;
pub(crate) mod journal;
pub(crate) mod saved_plan;
