//! Secrets of a management cluster that hold the way to another cluster: which cluster it is, and its kubeconfig.
//!
//! In two formats a Secret says all of it: that of Cluster API, whose Secrets hold a whole kubeconfig, and that of Argo CD
//! (`argo_cd`). In two others an object leads to the Secret, and has the labels ([`member`]): those of Open Cluster Management
//! and of Fleet.
//! Nothing that stands in a Secret is in any message, but for the name that makes it a cluster.

mod argo_cd;
mod fleet;
pub mod member;
mod open_cluster_management;

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster::kubeconfig::stored::{Content, Unusable};
use member::Member;

/// The label by which Cluster API says what cluster a Secret is of.
const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";

/// The end of the names of those of its Secrets that hold a kubeconfig; others hold certificates and keys.
const KUBECONFIG: &str = "-kubeconfig";

/// The key of the kubeconfig in them.
const VALUE: &str = "value";

/// The label of Argo CD's Secrets.
const SECRET_TYPE: &str = "argocd.argoproj.io/secret-type";

/// The form in which Secrets hold the way to a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Cluster API: `NAME-kubeconfig` with a kubeconfig under `value`.
    ClusterApi,
    /// Argo CD: `name`, `server` and `config`.
    ArgoCd,
    /// Open Cluster Management: `ManagedCluster`s, with the `token` of a `ManagedServiceAccount` on each of them.
    OpenClusterManagement,
    /// Rancher Fleet: `Cluster`s that name a Secret with a kubeconfig under `value`.
    Fleet,
}

/// A Secret, as far as it matters here.
#[derive(Clone, Deserialize)]
pub struct Secret {
    metadata: Metadata,
    /// The values in base64, by their keys.
    data: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Deserialize)]
struct Metadata {
    name: String,
    namespace: String,
    labels: Option<BTreeMap<String, String>>,
}

/// A Secret that is a cluster.
#[derive(Clone, Debug)]
pub struct Found {
    /// The cluster's name, or why it has none.
    pub name: Result<String, Unusable>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its kubeconfig, or why there is none.
    pub content: Result<Content, Unusable>,
}

impl Format {
    /// Returns the selector of labels by which Secrets of this form are found; empty if they are found by others.
    pub fn labels(self) -> String {
        match self {
            Self::ClusterApi => CLUSTER_NAME.to_owned(),
            Self::ArgoCd => format!("{SECRET_TYPE}=cluster"),
            Self::OpenClusterManagement => open_cluster_management::LABEL.to_owned(),
            Self::Fleet => String::new(),
        }
    }

    /// Returns the selector of fields that leaves out what else has these labels; empty if there is none.
    pub fn fields(self) -> &'static str {
        match self {
            Self::ClusterApi => "type=cluster.x-k8s.io/secret",
            Self::ArgoCd | Self::OpenClusterManagement | Self::Fleet => "",
        }
    }

    /// Returns the namespace where they usually are, if there is one.
    pub fn usual_namespace(self) -> Option<&'static str> {
        match self {
            Self::ClusterApi => None,
            Self::ArgoCd => Some("argocd"),
            // Each is in the namespace of its cluster.
            Self::OpenClusterManagement => Some("*"),
            Self::Fleet => Some("fleet-default"),
        }
    }

    /// Returns the address of the objects that lead to Secrets, in a namespace or, if that is empty, in all; `None` if there
    /// are none.
    pub fn members(self, namespace: &str) -> Option<String> {
        match self {
            Self::ClusterApi | Self::ArgoCd => None,
            Self::OpenClusterManagement => Some(open_cluster_management::MEMBERS.to_owned()),
            Self::Fleet => Some(fleet::members(namespace)),
        }
    }

    /// Tells whether other objects lead to Secrets.
    pub fn has_members(self) -> bool {
        self.members("").is_some()
    }

    /// Returns what these objects are called, and the product that they are of.
    pub fn member_names(self) -> (&'static str, &'static str) {
        match self {
            Self::ClusterApi | Self::ArgoCd => ("Secrets", "Kubernetes"),
            Self::OpenClusterManagement => ("ManagedClusters", "Open Cluster Management"),
            Self::Fleet => ("Clusters of Fleet", "Fleet"),
        }
    }

    /// Returns namespace and name of the Secret that an object names; `None` if it names none.
    pub fn secret_of(self, member: &Member) -> Option<(String, String)> {
        match self {
            Self::ClusterApi | Self::ArgoCd | Self::OpenClusterManagement => None,
            Self::Fleet => fleet::secret_of(member),
        }
    }

    /// Returns the cluster that an object with its Secret stands for; `secret`: `None` if it is not there.
    pub fn read_with(self, member: &Member, secret: Option<&Secret>) -> Option<Found> {
        match self {
            Self::ClusterApi | Self::ArgoCd => None,
            Self::OpenClusterManagement => secret.map(|secret| open_cluster_management::read(member, secret)),
            Self::Fleet => Some(fleet::read(member, secret)),
        }
    }

    /// Returns the cluster that a Secret alone stands for; `None` if it is there for something else.
    pub fn read(self, secret: &Secret) -> Option<Found> {
        let mut labels = secret.metadata.labels.clone().unwrap_or_default();
        match self {
            Self::ClusterApi => {
                let name = labels.remove(CLUSTER_NAME)?;
                let is_kubeconfig = secret.metadata.name.strip_suffix(KUBECONFIG) == Some(&name);
                let content = || secret.text(VALUE).and_then(|text| Content::of_text(&text));
                is_kubeconfig.then(|| Found { content: content(), name: Ok(name), labels })
            }
            Self::ArgoCd => {
                labels.remove(SECRET_TYPE);
                Some(Found { name: argo_cd::name(secret), labels, content: argo_cd::content(secret) })
            }
            Self::OpenClusterManagement | Self::Fleet => None,
        }
    }
}

impl Secret {
    /// Returns its namespace and name: `capi/eu-1-kubeconfig`.
    pub fn path(&self) -> String {
        format!("{}/{}", self.metadata.namespace, self.metadata.name)
    }

    /// Returns its namespace.
    pub fn namespace(&self) -> &str {
        &self.metadata.namespace
    }

    /// Returns what is under a key, in base64.
    fn encoded(&self, key: &str) -> Result<&str, Unusable> {
        let value = self.data.as_ref().and_then(|data| data.get(key)).filter(|value| !value.is_empty());
        value.map(String::as_str).ok_or_else(|| Unusable::new(format!("it has no {key}"), hint(key)))
    }

    /// Returns the text under a key.
    fn text(&self, key: &str) -> Result<String, Unusable> {
        let bytes = BASE64_STANDARD.decode(self.encoded(key)?).ok();
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        text.ok_or_else(|| Unusable::new(format!("its {key} is not base64 of a text"), hint(key)))
    }
}

fn hint(key: &str) -> String {
    format!("see to it that whoever writes the Secret writes {key}")
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Secret").field(&self.path()).finish()
    }
}

#[cfg(test)]
mod tests;
