//! Secrets of a management cluster that hold the way to another cluster: which cluster it is, and its kubeconfig.
//!
//! Two formats are known: that of Cluster API, whose Secrets hold a whole kubeconfig, and that of Argo CD (`argo_cd`).
//! Nothing that stands in a Secret is in any message, but for the name that makes it a cluster.

mod argo_cd;

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster::kubeconfig::stored::{Content, Unusable};

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
    /// Returns the selector of labels by which Secrets of this form are found.
    pub fn labels(self) -> String {
        match self {
            Self::ClusterApi => CLUSTER_NAME.to_owned(),
            Self::ArgoCd => format!("{SECRET_TYPE}=cluster"),
        }
    }

    /// Returns the selector of fields that leaves out what else has these labels; empty if there is none.
    pub fn fields(self) -> &'static str {
        match self {
            Self::ClusterApi => "type=cluster.x-k8s.io/secret",
            Self::ArgoCd => "",
        }
    }

    /// Returns the namespace where they usually are, if there is one.
    pub fn usual_namespace(self) -> Option<&'static str> {
        match self {
            Self::ClusterApi => None,
            Self::ArgoCd => Some("argocd"),
        }
    }

    /// Returns the cluster that a Secret stands for; `None` if it is there for something else.
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
        }
    }
}

impl Secret {
    /// Returns its namespace and name: `capi/eu-1-kubeconfig`.
    pub fn path(&self) -> String {
        format!("{}/{}", self.metadata.namespace, self.metadata.name)
    }

    /// Returns the text under a key.
    fn text(&self, key: &str) -> Result<String, Unusable> {
        let hint = || format!("see to it that whoever writes the Secret writes {key}");
        let value = self.data.as_ref().and_then(|data| data.get(key)).filter(|value| !value.is_empty());
        let value = value.ok_or_else(|| Unusable::new(format!("it has no {key}"), hint()))?;
        let bytes = BASE64_STANDARD.decode(value).ok();
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        text.ok_or_else(|| Unusable::new(format!("its {key} is not base64 of a text"), hint()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Secret").field(&self.path()).finish()
    }
}

#[cfg(test)]
mod tests;
