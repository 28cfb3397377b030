//! Places that only one object of a cluster can have, and who has them.

use std::collections::BTreeSet;

use gatewright_engine::marks::SYNC_LABEL;
use gatewright_engine::object::{Gvk, Object};
use gatewright_engine::plan::Observed;
use gatewright_engine::plan::exclusive::wants_place;

use crate::cluster::{Cluster, ClusterError};
use crate::reconcile::model::Facts;
use crate::reconcile::requests::only_local;

/// Reads whole what nobody has touched, where something new wants a place that one of these may have. Where that cannot
/// be read, the server's own words say that a place is taken.
pub(super) async fn look(cluster: &dyn Cluster, facts: &Facts, observed: &mut Observed) -> Result<(), ClusterError> {
    let is_unchanged = |object: &&Object| observed.unchanged.contains(object.id());
    let mut others = facts.wanted().filter(|object| !is_unchanged(object));
    if !others.any(|object| wants_place(object, observed.live.get(object.id()))) {
        return Ok(());
    }
    let services = facts.wanted().filter(is_unchanged).filter(|object| object.id().is_a("", "Service"));
    let kinds: BTreeSet<Gvk> = services.map(Object::gvk).collect();
    let label = facts.policies.marker.label();
    for kind in kinds {
        let live = match cluster.list(&kind, (SYNC_LABEL, &label)).await {
            Ok(live) => live,
            Err(error) => {
                drop(only_local(error)?);
                continue;
            }
        };
        for live in live {
            if let Some(known) = observed.live.get_mut(live.object.id()).filter(|known| known.uid == live.uid) {
                *known = live;
            }
        }
    }
    Ok(())
}
