//! Documents of kinds that nobody here knows, with a namespace or without, as the cluster has the kind.

use std::collections::BTreeSet;

use gatewright_engine::object::{Gvk, Object};
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::unit::Rendering;
use gatewright_engine::unit::marked::Marked;
use tracing::warn;

use crate::cluster::{Cluster, ClusterError, KindScope};

/// Puts the documents of a rendering into a namespace or not; `None` if they are right already.
pub(super) async fn located(
    cluster: &dyn Cluster,
    policies: &Policies,
    rendering: &Rendering,
) -> Result<Option<Marked>, ClusterError> {
    let guessed = rendering.units.iter().filter(|unit| unit.home.is_some() && policies.is_about(&unit.id));
    let kinds: BTreeSet<Gvk> = guessed.flat_map(|unit| unit.objects.iter().map(Object::gvk)).collect();
    if kinds.is_empty() {
        return Ok(None);
    }
    let known = cluster.kinds(&kinds).await?.served;
    let scoped = rendering.scoped(|kind| known.get(kind).map(|scope| *scope == KindScope::Namespaced));
    Ok(scoped.map(|scoped| {
        for problem in scoped.problems.iter().filter(|problem| !rendering.problems.contains(problem)) {
            warn!(%problem, "problem in the source on this cluster");
        }
        scoped.marked(&policies.marker)
    }))
}
