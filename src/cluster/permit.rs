//! The permission to change something, asked for before each try of a request.
//!
//! A request waits for its turn, and some time between two tries. Meanwhile this host may have lost the right to make it.

use std::sync::Arc;

tokio::task_local! {
    /// The permission that the work of this task needs.
    static PERMIT: Arc<Permit>;
}

/// Says whether a request may be sent at this moment.
pub(crate) type Permit = dyn Fn() -> Result<(), Withdrawn> + Send + Sync;

/// A request may not be sent any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub(crate) struct Withdrawn {
    /// The reason.
    pub why: String,
    /// Advice on what to do.
    pub hint: String,
}

/// Does some work, no request of which is sent without a permission.
pub(crate) async fn under<T>(permit: Arc<Permit>, work: impl Future<Output = T>) -> T {
    PERMIT.scope(permit, work).await
}

/// Asks whether a request may be sent. Work that needs no permission has it.
pub(crate) fn ask() -> Result<(), Withdrawn> {
    PERMIT.try_with(|permit| permit()).unwrap_or(Ok(()))
}
