//! The clusters that the Secrets of a management cluster lead to, in each of the formats.
//!
//! It is all of them or none: what is missing from a part of the list would be taken for clusters that are gone.

use std::collections::BTreeMap;

use futures::future::try_join_all;

use crate::cluster::kube::KubeCluster;
use crate::cluster::secrets::member::Member;
use crate::cluster::secrets::{Format, Found, Secret};
use crate::cluster::{ClusterError, Search};
use crate::config::cluster_secrets::SecretSettings;

/// Returns each cluster with the namespace and name of its Secret.
pub(super) async fn all(
    management: &KubeCluster,
    settings: &SecretSettings,
) -> Result<Vec<(String, Found)>, ClusterError> {
    match settings.format {
        Format::ClusterApi | Format::ArgoCd => alone(management, settings).await,
        Format::OpenClusterManagement => with_accounts(management, settings).await,
        Format::Fleet => registered(management, settings).await,
    }
}

/// Each Secret is a cluster.
async fn alone(management: &KubeCluster, settings: &SecretSettings) -> Result<Vec<(String, Found)>, ClusterError> {
    let (format, labels) = (settings.format, settings.selector());
    let search = Search { namespace: settings.namespace(), labels: &labels, fields: format.fields() };
    let secrets = management.secrets(search).await?;
    Ok(secrets.iter().filter_map(|secret| Some((secret.path(), format.read(secret)?))).collect())
}

/// Each `ManagedCluster` for which there is a Secret of the account.
async fn with_accounts(
    management: &KubeCluster,
    settings: &SecretSettings,
) -> Result<Vec<(String, Found)>, ClusterError> {
    let format = settings.format;
    let fields = format!("metadata.name={}", settings.managed_service_account.as_deref().unwrap_or_default());
    let search = Search { namespace: settings.namespace(), labels: &format.labels(), fields: &fields };
    let secrets = management.secrets(search).await?;
    let secrets: BTreeMap<&str, &Secret> = secrets.iter().map(|secret| (secret.namespace(), secret)).collect();
    let members = members(management, settings).await?;
    let found = members.iter().filter_map(|member| {
        let secret = secrets.get(member.name())?;
        Some((secret.path(), format.read_with(member, Some(secret))?))
    });
    Ok(found.collect())
}

/// Each `Cluster` that names a Secret.
async fn registered(management: &KubeCluster, settings: &SecretSettings) -> Result<Vec<(String, Found)>, ClusterError> {
    let format = settings.format;
    let members = members(management, settings).await?;
    let named = members.iter().filter_map(|member| Some((member, format.secret_of(member)?)));
    let read = named.map(async |(member, (namespace, name))| {
        let secret = management.secret(&namespace, &name).await?;
        let found = format.read_with(member, secret.as_ref());
        Ok::<_, ClusterError>(found.map(|found| (format!("{namespace}/{name}"), found)))
    });
    Ok(try_join_all(read).await?.into_iter().flatten().collect())
}

async fn members(management: &KubeCluster, settings: &SecretSettings) -> Result<Vec<Member>, ClusterError> {
    let labels = settings.selector();
    management.members(settings.format, Search { namespace: settings.namespace(), labels: &labels, fields: "" }).await
}
