//! What a cluster can do, where that decides what is rendered for it.
//!
//! Some packs leave a spec to an operator where one is at work, and provision it themselves where there is none. So the
//! cluster is asked before anything is rendered: which kinds it serves, and whether the operator's Deployment has pods.
//! That is a few requests of a round, and only for sources that hold such specs. A cluster that does not answer has no
//! round: guessing would have us provision what an operator provisions, or take away what we have.

use std::collections::BTreeSet;
use std::sync::Arc;

use gatewright_engine::live::Live;
use gatewright_engine::object::Gvk;
use gatewright_engine::pack::manifest::Manifest;
use gatewright_engine::selector::Capabilities;

use crate::cluster::{Cluster, ClusterError, Reason};
use crate::rendering::Want;

/// Returns what is wanted on a cluster with what it can do, if that matters.
pub async fn complete(want: Want, cluster: &dyn Cluster) -> Result<Want, ClusterError> {
    let Want::Later { renderings, snapshot, cluster: mut facts } = want else { return Ok(want) };
    let packs = renderings.asking(&snapshot);
    if !packs.is_empty() && cluster.has_health() {
        facts.capabilities = Some(ask(&packs, cluster).await?);
    }
    Ok(Want::Later { renderings, snapshot, cluster: facts })
}

async fn ask(packs: &[Arc<Manifest>], cluster: &dyn Cluster) -> Result<Capabilities, ClusterError> {
    let kinds = packs.iter().flat_map(|manifest| kinds(manifest)).collect();
    let served: BTreeSet<Gvk> = cluster.kinds(&kinds).await?.served.into_keys().collect();
    let mut capabilities = Capabilities::default();
    for manifest in packs {
        let is_installed = manifest
            .claims
            .iter()
            .any(|claim| served.iter().any(|kind| kind.kind == claim.kind && kind.group == claim.group));
        if is_installed && is_at_work(manifest, cluster).await? {
            capabilities.operators.insert(manifest.name.clone());
        }
    }
    capabilities.kinds = served.into_iter().map(|kind| (kind.group, kind.kind)).collect();
    Ok(capabilities)
}

/// Returns what a pack wants to know of a cluster.
fn kinds(manifest: &Manifest) -> impl Iterator<Item = Gvk> {
    let claims = manifest.claims.iter().flat_map(|claim| {
        let gvk =
            |version: &String| Gvk { group: claim.group.clone(), version: version.clone(), kind: claim.kind.clone() };
        claim.versions.iter().map(gvk)
    });
    let others = manifest.operator.iter().flat_map(|operator| &operator.kinds);
    claims.chain(others.map(|kind| Gvk::new(&kind.api_version, &kind.kind)))
}

/// Tells whether the operator of a pack has pods. Who may not see that is told yes: the kinds are there, and to provision
/// beside an operator does more harm than to leave a spec to one that is not there.
async fn is_at_work(manifest: &Manifest, cluster: &dyn Cluster) -> Result<bool, ClusterError> {
    let deployment = Gvk::new("apps/v1", "Deployment");
    for labels in manifest.operator.iter().flat_map(|operator| &operator.labels) {
        let Some((key, value)) = labels.iter().next() else { continue };
        let found = match cluster.list(&deployment, (key, value)).await {
            Ok(found) => found,
            Err(error) if error.reason == Reason::Forbidden => return Ok(true),
            Err(error) => return Err(error),
        };
        let bears = |live: &Live| {
            labels.iter().all(|(key, value)| live.object.body()["metadata"]["labels"][key] == value.as_str())
        };
        let has_pods =
            |live: &Live| live.object.body()["status"]["availableReplicas"].as_u64().is_some_and(|pods| pods > 0);
        if found.iter().any(|live| bears(live) && has_pods(live)) {
            return Ok(true);
        }
    }
    Ok(false)
}
