//! A right on an API server, as RBAC has them: a verb on a resource, somewhere or everywhere.

use std::fmt;

use serde::Serialize;

use crate::cluster::SYSTEM_NAMESPACE;

/// The verb of the right to be taken for somebody else.
pub(crate) const IMPERSONATE: &str = "impersonate";

/// One right.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Right {
    /// The namespace; `None`: in all of them, or on what is in none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource, such as `deployments`.
    pub resource: String,
    /// The verb, such as `patch`.
    pub verb: String,
    /// The name of the only object that it is about; `None`: about all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Right {
    /// Tells whether it is for what we do on a cluster for ourselves, whatever account a sync acts as: to keep our records, to
    /// find what bears our label, to know which cluster it is, and to act as somebody.
    pub(crate) fn is_our_own(&self) -> bool {
        let is_identity = self.resource == "namespaces" && self.name.as_deref() == Some("kube-system");
        let is_list = self.verb == "list" && self.namespace.is_none();
        let is_record = self.namespace.as_deref() == Some(SYSTEM_NAMESPACE);
        is_record || is_list || (is_identity && self.verb == "get") || self.verb == IMPERSONATE
    }
}

/// Displays as `patch deployments.apps in shop`.
impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        self.name.iter().try_for_each(|name| write!(f, " {name}"))?;
        self.namespace.iter().try_for_each(|namespace| write!(f, " in {namespace}"))
    }
}
