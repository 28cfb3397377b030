//! A right on an API server, as RBAC has them: a verb on a resource, somewhere or everywhere.

use std::fmt;

use serde::Serialize;

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
