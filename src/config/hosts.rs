//! `hosts`: several daemons that share a fleet.

use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::did_you_mean;
use super::settings::Settings;
use crate::basics::duration::Period;
use crate::shared::StoreSettings;

/// The shortest Lease: below it a slow API server would look like a dead host.
pub(crate) const SHORTEST_LEASE: Duration = Duration::from_secs(3);

/// The place where the kernel says what the host is called.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// The settings of several hosts that share a fleet: one of them looks after each sync, another one where it has died.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Hosts")]
pub struct HostSettings {
    /// The management cluster: Leases on it say which host looks after which sync. One of `clusters`, with an API server.
    pub cluster: String,
    /// The name of this host; that of the machine by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The name of the hosts that share a fleet. It begins the names of their Leases, so that several such groups can use one
    /// management cluster.
    #[serde(default = "group")]
    pub group: String,
    /// The time after which a host counts as dead that does not renew its Lease.
    #[serde(default = "lease_duration")]
    pub lease_duration: Period,
    /// The place for what one host knows and the others need: undo records, rendered sets, approvals, suspensions, reports.
    pub store: StoreSettings,
}

fn group() -> String {
    "gatewright".to_owned()
}

fn lease_duration() -> Period {
    Period(Duration::from_secs(30))
}

impl HostSettings {
    /// Returns the name of this host: the one that is set, or that of the machine; `None` if that cannot be had.
    pub(crate) fn host(&self) -> Option<String> {
        let of_machine = || std::fs::read_to_string(Path::new(HOST_NAME)).ok();
        let name = self.name.clone().or_else(of_machine)?;
        Some(name.trim().to_ascii_lowercase()).filter(|name| is_host_name(name))
    }

    /// Finds what is wrong with them: the field, the message, and advice.
    pub(super) fn check(&self, settings: &Settings, is_whole: bool) -> Vec<(&'static str, String, String)> {
        let mut mistakes = Vec::new();
        match settings.clusters.get(&self.cluster) {
            None if is_whole => {
                let hint = did_you_mean(&self.cluster, settings.clusters.keys().map(String::as_str));
                mistakes.push(("cluster", format!("there is no cluster {:?}", self.cluster), hint));
            }
            Some(cluster) if cluster.directory.is_some() => {
                let message = format!("cluster {:?} is a directory, which has no Leases", self.cluster);
                mistakes.push(("cluster", message, "name a cluster with a kubeconfig".to_owned()));
            }
            _ => {}
        }
        let is_named = self.host().is_some();
        if !is_named {
            let message = "the name of this host cannot be the name of a Lease".to_owned();
            let hint = "set hosts.name: lower-case letters, digits, \"-\" and \".\", at most 63".to_owned();
            mistakes.push(("name", message, hint));
        }
        if !is_host_name(&self.group) || self.group.contains('.') {
            let hint = "use lower-case letters, digits and \"-\", at most 63".to_owned();
            mistakes.push(("group", format!("{:?} cannot begin the name of a Lease", self.group), hint));
        }
        if let Err(error) = self.store.check() {
            mistakes.push(("store", error.to_string(), error.hint().unwrap_or_default()));
        }
        if self.lease_duration.0 < SHORTEST_LEASE {
            let message = "a Lease this short would be lost whenever an API server is slow".to_owned();
            mistakes.push(("leaseDuration", message, "give it 3s at least; 30s is usual".to_owned()));
        }
        mistakes
    }
}

/// Tells whether a name can be part of that of a Lease, and a label.
fn is_host_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.len() <= 63
        && name.starts_with(is_end)
        && name.ends_with(is_end)
        && !name.contains("..")
        && !name.contains(".-")
        && !name.contains("-.")
        && name.chars().all(is_plain)
}
