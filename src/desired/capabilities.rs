//! The capabilities of a cluster, where they decide what is rendered for it.
//!
//! Some packs leave a spec to an operator where one is at work, and provision it themselves where there is none. So the
//! cluster is asked before anything is rendered: which kinds it serves, and whether the operator's Deployment is to have
//! pods. That is a few requests of a round, and only for sources that hold such specs. A cluster that does not answer has
//! no round: guessing would have us provision what an operator provisions, or take away what we have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gatewright_engine::live::Live;
use gatewright_engine::object::Gvk;
use gatewright_engine::pack::manifest::Manifest;
use gatewright_engine::selector::Capabilities;

use crate::cluster::{Cluster, ClusterError, Reason};
use crate::desired::rendering::Want;

/// A part of the API does not answer, so that nobody knows whether the cluster has its kinds.
#[derive(Debug, thiserror::Error)]
#[error("the part of the API that serves {0} does not answer")]
struct Unanswered(Gvk);

/// Adds what a cluster can do to what is wanted on it, where that matters. It is asked once for all.
pub(crate) async fn complete<'a>(
    wants: impl IntoIterator<Item = &'a mut Want>,
    cluster: &dyn Cluster,
) -> Result<(), ClusterError> {
    let mut asking: Vec<&mut Want> = wants.into_iter().filter(|want| !want.asking().is_empty()).collect();
    if asking.is_empty() || !cluster.has_health() {
        return Ok(());
    }
    let packs = asking.iter().flat_map(|want| want.asking()).map(|manifest| (manifest.name.clone(), manifest));
    let capabilities = ask(&packs.collect(), cluster).await?;
    for want in &mut asking {
        want.know(&capabilities);
    }
    Ok(())
}

async fn ask(packs: &BTreeMap<String, Arc<Manifest>>, cluster: &dyn Cluster) -> Result<Capabilities, ClusterError> {
    let found = cluster.kinds(&packs.values().flat_map(|manifest| kinds(manifest)).collect()).await?;
    if let Some(kind) = found.unanswered.into_iter().next() {
        let action = "find out what the cluster can do".to_owned();
        let hint = Some("nothing was changed; the next round asks again".to_owned());
        return Err(ClusterError { action, reason: Reason::Overloaded, hint, source: Box::new(Unanswered(kind)) });
    }
    let kinds: BTreeSet<_> = found.served.into_keys().map(|kind| (kind.group, kind.kind)).collect();
    let mut capabilities = Capabilities { kinds, operators: BTreeSet::new() };
    for (name, manifest) in packs {
        let is_installed = manifest.claims.iter().any(|claim| capabilities.serves(&claim.group, &claim.kind));
        if is_installed && is_at_work(manifest, cluster).await? {
            capabilities.operators.insert(name.clone());
        }
    }
    Ok(capabilities)
}

/// Returns what a pack wants to know of a cluster.
fn kinds(manifest: &Manifest) -> impl Iterator<Item = Gvk> {
    let claims = manifest.claims.iter().flat_map(|claim| {
        let (group, kind) = (claim.group.clone(), claim.kind.clone());
        claim.versions.iter().map(move |version| Gvk {
            group: group.clone(),
            version: version.clone(),
            kind: kind.clone(),
        })
    });
    let others = manifest.operator.iter().flat_map(|operator| &operator.kinds);
    claims.chain(others.map(|kind| Gvk::new(&kind.api_version, &kind.kind)))
}

/// Tells whether the operator of a pack is to have pods; that it has none at this moment is an upgrade, or a fault of its
/// own. Who may not see that is told yes: the kinds are there, and to provision beside an operator does more harm than to
/// leave a spec to one that is not there.
async fn is_at_work(manifest: &Manifest, cluster: &dyn Cluster) -> Result<bool, ClusterError> {
    let deployment = Gvk::new("apps/v1", "Deployment");
    for labels in manifest.operator.iter().flat_map(|operator| &operator.labels) {
        let Some((key, value)) = labels.iter().next() else { continue };
        let found = match cluster.list(&deployment, (key, value)).await {
            Ok(found) => found,
            Err(error) if error.reason == Reason::Forbidden => return Ok(true),
            Err(error) => return Err(error),
        };
        if found.iter().any(|live| is_operator(live, labels)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Tells whether a Deployment bears all of some labels and is to have pods.
fn is_operator(live: &Live, labels: &BTreeMap<String, String>) -> bool {
    let replicas = &live.object.body()["spec"]["replicas"];
    replicas != 0 && labels.iter().all(|(key, value)| live.object.label(key) == Some(value.as_str()))
}
