//! Clusters of Open Cluster Management: a `ManagedCluster` says where a cluster is, and the add-on
//! managed-serviceaccount keeps a token for it in a Secret.
//!
//! The Secret is in the namespace that has the name of the cluster, and has the name of its `ManagedServiceAccount`.

use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::member::Member;
use super::{Found, Secret};
use crate::cluster::kubeconfig::stored::{Content, Unusable};

/// The label of the Secrets of the add-on.
pub(super) const LABEL: &str = "authentication.open-cluster-management.io/is-managed-serviceaccount=true";

/// The address of all clusters.
pub(super) const MEMBERS: &str = "/apis/cluster.open-cluster-management.io/v1/managedclusters";

/// The name of everything in the kubeconfig that is made.
const NAME: &str = "open-cluster-management";

/// Returns the cluster that an object and the Secret for it stand for.
pub(super) fn read(member: &Member, secret: &Secret) -> Found {
    Found { name: Ok(member.name().to_owned()), labels: member.labels(), content: content(member, secret) }
}

/// Makes a kubeconfig of both: the authorities of the `ManagedCluster` are those of its address, and where it names none
/// those of the Secret are meant.
fn content(member: &Member, secret: &Secret) -> Result<Content, Unusable> {
    let token = secret.text("token")?;
    let Some(server) = member.text("/managedClusterClientConfigs/0/url") else {
        let hint = "add the url and caBundle of its API server to the ManagedCluster; a cluster that is reached through \
                    cluster-proxy only needs a kubeconfig in clusters or clusterFolders";
        return Err(Unusable::new("its ManagedCluster has no managedClusterClientConfigs with an address", hint));
    };
    let authority = match member.text("/managedClusterClientConfigs/0/caBundle") {
        Some(bundle) => bundle.to_owned(),
        None => secret.encoded("ca.crt")?.to_owned(),
    };
    let made_of = Sha256::digest(format!("{server}\n{authority}\n{token}"));
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": NAME,
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
        "clusters": [{"name": NAME, "cluster": {"server": server, "certificate-authority-data": authority}}],
        "users": [{"name": NAME, "user": {"token": token.trim()}}],
    });
    Content::of_value(kubeconfig, &made_of)
}
