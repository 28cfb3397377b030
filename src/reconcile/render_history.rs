//! The history of what rounds have rendered and applied, kept for a rollback.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gatewright_engine::error::Chain;
use gatewright_engine::object::ObjectId;
use gatewright_engine::unit::Unit;
use gatewright_engine::unit::marked::Marked;
use tokio::task::spawn_blocking;
use tracing::warn;

use crate::desired::rendering::Want;
use crate::history::archive::vault::VaultError;
use crate::history::archive::{About, Archive, sets};
use crate::reconcile::model::{Conclusion, Order};
use crate::report::{ClusterReport, ClusterState, Mode};

/// The place where a round keeps what it renders.
pub struct RenderHistory {
    archive: Arc<Archive>,
    about: About,
    has_begun: AtomicBool,
}

impl RenderHistory {
    /// Returns where a round keeps what it renders; `None` if nothing is applied, or if it comes from no source.
    pub(super) fn of(order: &Order, about: About, want: &Want) -> Option<Self> {
        let is_of_source = order.mode == Mode::Apply && order.undo.is_none() && want.target().is_some();
        let archive = order.archive.clone().filter(|_| is_of_source)?;
        Some(Self { archive, about, has_begun: AtomicBool::new(false) })
    }

    /// Keeps what is about to be applied: whatever becomes of it, a rollback knows that it was tried. What cannot be kept
    /// can be rendered again.
    pub(super) async fn begin(&self, want: &Want, rendering: &Arc<Marked>) {
        if self.has_begun.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Err(error) = self.keep(want, rendering).await {
            warn!(error = %Chain(&error), "cannot keep what was rendered, for a rollback");
        }
    }

    /// Notes which units were seen healthy.
    pub(super) async fn end(&self, want: &Want, conclusion: &Conclusion) {
        if let Err(error) = self.try_end(want, conclusion).await {
            warn!(error = %Chain(&error), "cannot note for a rollback how the round has ended");
        }
    }

    /// A round in which nothing has changed has rendered nothing. Where its set is kept already, it need not.
    async fn try_end(&self, want: &Want, conclusion: &Conclusion) -> Result<(), VaultError> {
        if !self.has_begun.load(Ordering::Relaxed) {
            let no_change = conclusion.last_round.as_ref().and_then(|last_round| last_round.no_change.as_ref());
            let key = no_change.map(|no_change| no_change.key.as_str());
            if conclusion.report.state != ClusterState::Done {
                return Ok(());
            }
            let kept = sets::kept_last(&self.archive, &self.about, key)?;
            if kept == Some(sets::Health::Well) {
                return Ok(());
            }
            if kept.is_none() {
                // What cannot be rendered is told where rendering is needed.
                let rendering = match &conclusion.rendering {
                    Some(rendering) => Some(Arc::clone(rendering)),
                    None => want.rendering().await.ok(),
                };
                let Some(rendering) = rendering else { return Ok(()) };
                self.keep(want, &rendering).await?;
            }
        }
        let (archive, about, report) = (Arc::clone(&self.archive), self.about.clone(), conclusion.report.clone());
        let see = move || see(&archive, &about, &report);
        spawn_blocking(see).await.unwrap_or(Ok(()))
    }

    /// Finds for each of some units what it was when it was last healthy here, other than it is wanted, with the revision of
    /// that.
    pub(super) async fn healthy(
        &self,
        units: BTreeSet<ObjectId>,
        want: &Want,
    ) -> Result<BTreeMap<ObjectId, (Unit, String)>, VaultError> {
        // What cannot be rendered is told where rendering is needed.
        let Ok(rendering) = want.rendering().await else { return Ok(BTreeMap::new()) };
        let now: Vec<Unit> = rendering.units.iter().filter(|unit| units.contains(&unit.id)).cloned().collect();
        let (archive, about, key) = (Arc::clone(&self.archive), self.about.clone(), want.key());
        let find = move || sets::healthy(&archive, &about, (&now, key.as_deref()));
        spawn_blocking(find).await.unwrap_or_else(|_| Ok(BTreeMap::new()))
    }

    async fn keep(&self, want: &Want, rendering: &Arc<Marked>) -> Result<(), VaultError> {
        let (archive, about, rendering) = (Arc::clone(&self.archive), self.about.clone(), Arc::clone(rendering));
        let want = want.clone();
        let keep = move || {
            let target = want.target().map(|(target, _)| target);
            sets::keep(&archive, &about, &rendering, (want.key(), target))
        };
        spawn_blocking(keep).await.unwrap_or(Ok(()))
    }
}

fn see(archive: &Archive, about: &About, report: &ClusterReport) -> Result<(), VaultError> {
    sets::see(archive, about, |unit| report.units.iter().any(|it| it.unit == *unit && it.is_healthy()))
}
