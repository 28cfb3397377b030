//! A cluster as it presents itself before anything is done there: its version, its Gateway API, and the rights that the
//! credentials lack.
//!
//! All questions only look, and every user may ask them but two: who the cluster is, and which release of the Gateway API
//! it has. What may not be asked is unknown, and no failure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use gatewright_engine::error::Chain;
use gatewright_engine::object::{Gvk, ObjectId};
use serde::Serialize;
use tokio::time::timeout;

use crate::cluster::right::Right;
use crate::cluster::{Cluster, ClusterError, Reason};

const DEFINITIONS: &str = "apiextensions.k8s.io";

/// The definition whose annotations say which release of the Gateway API is installed.
const GATEWAYS: &str = "gateways.gateway.networking.k8s.io";

/// A cluster that answers.
#[derive(Clone, Debug)]
pub(crate) struct Preflight {
    /// The identity of the cluster; `None`: who it is may not be asked, or nothing was ever written to the directory.
    pub identity: Option<String>,
    /// The version of Kubernetes; `None` of a directory.
    pub version: Option<String>,
    /// Its Gateway API, if it has one, or why that is not known.
    pub gateway_api: Result<Option<GatewayApi>, String>,
    /// The rights that are missing, by sync, or why that is not known.
    pub missing: BTreeMap<String, Result<BTreeSet<Right>, String>>,
}

/// The Gateway API of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GatewayApi {
    /// The release, such as `v1.5.0`; empty if its definitions do not say.
    pub bundle: String,
    /// `standard` or `experimental`; empty if its definitions do not say.
    pub channel: String,
}

/// The reason why a cluster said nothing of itself.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Silence {
    /// It said no, or nobody answered.
    #[error(transparent)]
    Failed(#[from] ClusterError),
    /// The time was up.
    #[error("no answer within {0:?}")]
    TimeUp(Duration),
}

/// The rights that each sync needs on a cluster, with what answers as the account of the sync.
pub(crate) type Needed<'a> = BTreeMap<String, (Arc<dyn Cluster>, &'a BTreeSet<Right>)>;

/// Asks a cluster; `rights` are those that each sync needs there. It has `limit` to answer at all, and as long again for
/// the rest.
pub(crate) async fn ask(cluster: &dyn Cluster, rights: Needed<'_>, limit: Duration) -> Result<Preflight, Silence> {
    let (version, identity) = timeout(limit, introduce(cluster)).await.map_err(|_| Silence::TimeUp(limit))??;
    let mut preflight = Preflight {
        identity,
        version,
        gateway_api: Err(Silence::TimeUp(limit).to_string()),
        missing: rights.keys().map(|sync| (sync.clone(), Err(Silence::TimeUp(limit).to_string()))).collect(),
    };
    // What is not answered in time stays unknown.
    drop(timeout(limit, complete(cluster, &rights, &mut preflight)).await);
    Ok(preflight)
}

async fn introduce(cluster: &dyn Cluster) -> Result<(Option<String>, Option<String>), ClusterError> {
    let version = cluster.version().await?;
    match cluster.identity().await {
        Ok(identity) => Ok((version, Some(identity).filter(|identity| !identity.is_empty()))),
        Err(error) if error.reason == Reason::Forbidden => Ok((version, None)),
        Err(error) => Err(error),
    }
}

async fn complete(cluster: &dyn Cluster, rights: &Needed<'_>, preflight: &mut Preflight) {
    preflight.gateway_api = if cluster.has_health() { gateway_api(cluster).await } else { Ok(None) };
    for (sync, (asked, rights)) in rights {
        let lacking = asked.lacking(rights).await.map_err(|error| Chain(&error).to_string());
        preflight.missing.insert(sync.clone(), lacking);
    }
}

async fn gateway_api(cluster: &dyn Cluster) -> Result<Option<GatewayApi>, String> {
    let kind = Gvk::new(&format!("{DEFINITIONS}/v1"), "CustomResourceDefinition");
    let id = ObjectId::new(DEFINITIONS, "CustomResourceDefinition", "", GATEWAYS);
    let found = cluster.get(&kind, &id).await.map_err(|error| Chain(&error).to_string())?;
    let Some(definition) = found else { return Ok(None) };
    let said = |what: &str| {
        let key = format!("gateway.networking.k8s.io/{what}");
        definition.object.annotation(&key).unwrap_or_default().to_owned()
    };
    Ok(Some(GatewayApi { bundle: said("bundle-version"), channel: said("channel") }))
}
