//! Clusters of Rancher Fleet that its manager has registered: a `Cluster` names a Secret, which holds a kubeconfig.
//!
//! A cluster whose agent has registered itself names none, and there are no credentials for it in the management cluster.

use super::member::Member;
use super::{Found, Secret, VALUE};
use crate::cluster::kubeconfig::stored::{Content, Unusable};

/// The address of all clusters, and of those in a namespace.
pub(super) fn members(namespace: &str) -> String {
    let place = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
    format!("/apis/fleet.cattle.io/v1alpha1{place}/clusters")
}

/// Returns namespace and name of the Secret of a cluster; `None` if it has none.
pub(super) fn secret_of(member: &Member) -> Option<(String, String)> {
    let name = member.text("/kubeConfigSecret")?;
    let namespace = member.text("/kubeConfigSecretNamespace").unwrap_or(member.namespace());
    Some((namespace.to_owned(), name.to_owned()))
}

/// Returns the cluster that an object and its Secret, if that is there, stand for.
pub(super) fn read(member: &Member, secret: Option<&Secret>) -> Found {
    let hint = "see to it that kubeConfigSecret of its Cluster names a Secret that is there";
    let secret = secret.ok_or_else(|| Unusable::new("it is not there", hint));
    let content = secret.and_then(|secret| secret.text(VALUE)).and_then(|text| Content::of_text(&text));
    Found { name: Ok(member.name().to_owned()), labels: member.labels(), content }
}
