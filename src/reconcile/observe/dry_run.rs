//! The dry run of one object: as it was negotiated, because that is what will be applied.

use gatewright_engine::live::Live;
use gatewright_engine::object::Object;
use gatewright_engine::plan::Observed;
use gatewright_engine::plan::conflicts::{Negotiated, negotiated};
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::unit::Unit;

use crate::cluster::{Cluster, ClusterError, Mode, Precondition, Reason};

/// What is dry-run.
pub enum DryRun<'a> {
    /// An object that is to be made.
    Create(Object),
    /// An object that is there.
    Change(Box<Negotiated>, &'a Live, Precondition),
}

impl<'a> DryRun<'a> {
    /// Prepares a dry run; `None` if there is nothing to dry-run, because the plan will refuse.
    pub fn of(
        unit: &Unit,
        wanted: &Object,
        only_if: Precondition,
        observed: &'a Observed,
        policies: &Policies,
    ) -> Option<Self> {
        let Some(live) = observed.live.get(wanted.id()) else { return Some(Self::Create(wanted.clone())) };
        let agreed = negotiated(unit, wanted, live, observed, policies).ok()?;
        Some(Self::Change(Box::new(agreed), live, only_if))
    }

    /// Asks the cluster what would become of the object. Where owners of fields change first, that is seen only by a
    /// second dry run: the first knows them as they are.
    pub async fn run(&self, cluster: &dyn Cluster) -> Result<Live, ClusterError> {
        let (agreed, live, only_if) = match self {
            Self::Create(object) => return cluster.apply(object, &Precondition::Absent, Mode::DryRun).await,
            Self::Change(agreed, live, only_if) => (agreed, live, only_if),
        };
        let operations = match cluster.apply(&agreed.object, only_if, Mode::DryRun).await {
            // Most are as they are, and are not kept twice.
            Ok(applied) if agreed.first.is_empty() => {
                return Ok(if applied == **live { (*live).clone() } else { applied });
            }
            Ok(applied) => agreed.dry_run(live, &applied),
            Err(error) if error.reason == Reason::Invalid && !agreed.first.is_empty() => agreed.draft(live),
            Err(error) => return Err(error),
        };
        let kind = agreed.object.gvk();
        cluster.patch(&kind, agreed.object.id(), &live.uid, &live.resource_version, &operations, Mode::DryRun).await
    }
}
