//! The history of what rounds have rendered and applied with success, kept for a rollback.

use std::sync::Arc;

use gatewright_engine::error::Chain;
use tokio::task::spawn_blocking;
use tracing::warn;

use crate::desired::rendering::Want;
use crate::history::archive::vault::VaultError;
use crate::history::archive::{About, Archive, sets};
use crate::reconcile::model::{Conclusion, Order};
use crate::report::{ClusterState, Mode};

/// The place where a round keeps what it has rendered.
pub(super) struct RenderHistory {
    archive: Arc<Archive>,
    about: About,
}

impl RenderHistory {
    /// Returns where a round keeps what it renders; `None` if that is not all that the sync wants.
    pub(super) fn of(order: &Order, about: About) -> Option<Self> {
        let is_whole = order.mode == Mode::Apply && order.only.is_none() && order.undo.is_none();
        let archive = order.archive.clone().filter(|_| is_whole)?;
        Some(Self { archive, about })
    }

    /// Keeps what was rendered, if it was applied with success. What cannot be kept can be rendered again.
    pub(super) async fn keep(&self, want: &Want, conclusion: &Conclusion) {
        let report = &conclusion.report;
        if report.state == ClusterState::Done
            && report.is_well()
            && let Err(error) = self.try_keep(want, conclusion).await
        {
            warn!(error = %Chain(&error), "cannot keep what was rendered, for a rollback");
        }
    }

    /// A round in which nothing has changed has rendered nothing. Where its set is kept already, it need not; where the
    /// one before it was not well, it must.
    async fn try_keep(&self, want: &Want, conclusion: &Conclusion) -> Result<(), VaultError> {
        let no_change = conclusion.last_round.as_ref().and_then(|last_round| last_round.no_change.as_ref());
        let key = no_change.map(|no_change| no_change.key.clone());
        if sets::is_last(&self.archive, &self.about, key.as_deref())? {
            return Ok(());
        }
        let rendering = match &conclusion.rendering {
            Some(rendering) => Arc::clone(rendering),
            None => match want.rendering().await {
                Ok(rendering) => rendering,
                // It is told where rendering is needed.
                Err(_) => return Ok(()),
            },
        };
        let has_changed = conclusion.report.has_changed();
        let (archive, about) = (Arc::clone(&self.archive), self.about.clone());
        let keep = move || sets::keep(&archive, &about, &rendering, (key, has_changed));
        spawn_blocking(keep).await.unwrap_or(Ok(()))
    }
}
