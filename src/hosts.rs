//! Several hosts that share a fleet: which of them looks after which sync, and what one has to know of the others.
//!
//! Leases on a management cluster say which host looks after which sync: one renews the Lease of its own, and where it does
//! not, the others take its syncs. A sync is one host's with all its clusters, because they wait for each other. What a host
//! knows that others need lies in an object store ([`crate::shared`]); its id and its key in a Secret.

mod command;
mod exchange;
mod fence;
mod fenced;
mod identity;
mod keeper;
mod membership;
#[cfg(test)]
mod tests;
mod view;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::basics::clock::Clock;
use crate::cluster::kube::KubeCluster;
use crate::cluster::leases::{Lease, Leases};
use crate::cluster::{ClusterError, Reason};
use crate::config::Config;
use crate::config::hosts::HostSettings;
use crate::shared::{Shared, SharedError};
use crate::state::State;
use crate::state::store::Store;
pub(crate) use command::Command;
pub(crate) use fenced::Fenced;
pub(crate) use identity::JoinError;
pub(crate) use keeper::{Keeper, Share};
use membership::{Membership, Terms};
use view::Kind;

/// The identity of the last daemon with this state directory.
const IDENTITY: Store<Former> = Store::new("host");

/// The last daemon with a state directory, and what makes it certain that it has ended: it has held the lock of the same
/// folder, since the same start of the machine. A copy of a state directory, or one that was restored, proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Former {
    identity: String,
    boot: String,
    folder: (u64, u64),
}

impl Former {
    /// Describes this process; `None` where nothing could be proven by it.
    fn this(identity: &str, state: &State, clock: &dyn Clock) -> Option<Self> {
        let boot = clock.boot().map(|boot| boot.id).filter(|id| !id.is_empty())?;
        let lock = state.path("lock").metadata().ok()?;
        Some(Self { identity: identity.to_owned(), boot, folder: (lock.dev(), lock.ino()) })
    }

    /// Returns the identity of the last daemon, if it has certainly ended. The caller holds the lock.
    fn ended(state: &State, clock: &dyn Clock) -> Option<String> {
        let former = IDENTITY.read(state, &[])?;
        let this = Self::this(&former.identity, state, clock)?;
        (this == former).then_some(former.identity)
    }
}

/// This host cannot take part.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostsError {
    /// It cannot join the others.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The store cannot be used at all.
    #[error("cannot use hosts.store")]
    Store(#[source] SharedError),
}

impl HostsError {
    /// Tells whether the management cluster does not answer, which may be over in a moment.
    pub(crate) fn is_passing(&self) -> bool {
        let is_passing = |error: &ClusterError| matches!(error.reason, Reason::Unreachable | Reason::Overloaded);
        matches!(self, Self::Join(JoinError::Cluster(error)) if is_passing(error))
    }

    /// Returns what to do next.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Join(error) => error.hint(),
            Self::Store(error) => error.hint(),
        }
    }
}

/// Makes this daemon one of several hosts. Nothing is asked for before [`Keeper::keep`] but who they are.
pub(crate) async fn daemon(
    config: &Config,
    settings: &HostSettings,
    state: &State,
    clock: &Arc<dyn Clock>,
) -> Result<(Keeper, Share), HostsError> {
    let (terms, shared) = join(config, settings, state, (clock, true)).await?;
    let membership = Membership::new(terms, Kind::Host, Former::ended(state, clock.as_ref()));
    Ok(Keeper::new(membership, state, &shared))
}

/// Makes this command one among several hosts.
pub(crate) async fn command(
    config: &Config,
    settings: &HostSettings,
    state: &State,
    clock: &Arc<dyn Clock>,
) -> Result<Command, HostsError> {
    let (terms, shared) = join(config, settings, state, (clock, false)).await?;
    Ok(Command::new(Membership::new(terms, Kind::Command, None), shared))
}

/// A host, as its Lease shows it.
#[derive(Debug)]
pub(crate) struct Seen {
    /// Its name.
    pub host: String,
    /// The time at which it says that it has renewed its Lease.
    pub renewed: Option<Timestamp>,
}

/// The hosts of a group, and the one that looks after each sync.
#[derive(Debug)]
pub(crate) struct Group {
    /// Those that have a Lease.
    pub hosts: Vec<Seen>,
    /// The name of the host of each sync; empty: nobody.
    pub syncs: BTreeMap<String, String>,
}

/// Looks at the Leases of all hosts, once.
pub(crate) async fn seen(
    config: &Config,
    settings: &HostSettings,
    clock: &Arc<dyn Clock>,
) -> Result<Group, ClusterError> {
    let (listed, _) = leases(config, settings, clock).list((view::GROUP, &settings.group)).await?;
    let mut view = view::View::default();
    view.look(&settings.group, listed, clock.uptime());
    let host_of = |identity: &str| identity.rsplit_once('_').map_or(identity, |(host, _)| host).to_owned();
    let member = |lease: &Lease| Seen { host: host_of(&lease.holder), renewed: lease.renewed };
    let hosts = view.members.values().map(member).collect();
    let syncs = view.syncs.iter().map(|(sync, lease)| (sync.clone(), host_of(&lease.holder))).collect();
    Ok(Group { hosts, syncs })
}

async fn join(
    config: &Config,
    settings: &HostSettings,
    state: &State,
    (clock, may_found): (&Arc<dyn Clock>, bool),
) -> Result<(Terms, Arc<Shared>), HostsError> {
    let terms = Terms {
        leases: leases(config, settings, clock),
        group: settings.group.clone(),
        host: settings.host().unwrap_or_default(),
        duration: settings.lease_duration.0,
        clock: Arc::clone(clock),
        is_founder: false,
    };
    let shared = Shared::open(&settings.store, state, &config.reports_dir, &terms.group, may_found);
    let shared = shared.map_err(HostsError::Store)?;
    let has_key_file = config.settings.undo.key_file.is_some();
    let store = (terms.group.as_str(), &shared);
    let is_founder = identity::join(terms.leases.as_ref(), store, state, (has_key_file, may_found)).await?;
    Ok((Terms { is_founder, ..terms }, Arc::new(shared)))
}

fn leases(config: &Config, settings: &HostSettings, clock: &Arc<dyn Clock>) -> Arc<dyn Leases> {
    let of_cluster = config.settings.clusters.get(&settings.cluster).and_then(|cluster| cluster.kubeconfig.clone());
    let (standard, clock) = (config.standard_lookup.clone(), Arc::clone(clock));
    Arc::new(KubeCluster::new(&settings.cluster, of_cluster.unwrap_or_default(), standard, clock))
}
