//! Several hosts that are one installation: they share its id, and the key of what it keeps encrypted.
//!
//! Both lie in a Secret of the management cluster, which the first host makes. The data that the key is for lie elsewhere,
//! in the store.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use crate::cluster::leases::Leases;
use crate::cluster::{ClusterError, Reason};
use crate::history::archive::vault::{Vault, VaultError};
use crate::inventory::audit;
use crate::shared::{Shared, SharedError};
use crate::state::{State, StateError};

const INSTALLATION: &str = "installation";
const KEY: &str = "key";

/// Tries to be the first.
const TRIES: usize = 3;

/// This host cannot be one of a group.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JoinError {
    /// The management cluster does not say who they are.
    #[error("cannot join the other hosts")]
    Cluster(#[source] ClusterError),
    /// The Secret is not what a host has made.
    #[error("Secret gatewright-system/{0} does not hold what hosts share: {1} is missing")]
    Incomplete(String, &'static str),
    /// This host has worked alone.
    #[error("this host is installation {ours}, and the hosts of group {group:?} are {theirs}")]
    Other {
        /// The group.
        group: String,
        /// The id of this host.
        ours: String,
        /// Theirs.
        theirs: String,
    },
    /// The key here is another one.
    #[error("the key file {file:?} is not the one that the hosts of group {group:?} share")]
    OtherKey {
        /// The group.
        group: String,
        /// The key file.
        file: PathBuf,
    },
    /// Nobody has made it yet, and this is not for making it.
    #[error("no host of group {0:?} has started yet: there is no Secret gatewright-system/{0}.installation")]
    Nobody(String),
    /// The Secret is gone, and this host is not one of those that had it.
    #[error("Secret gatewright-system/{secret} is gone; the store is that of installation {installation}")]
    Lost {
        /// Its name.
        secret: String,
        /// The installation.
        installation: String,
    },
    /// The store does not say whose it is.
    #[error("cannot ask the store whose it is")]
    Store(#[source] SharedError),
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// No key can be made.
    #[error(transparent)]
    Key(#[from] VaultError),
}

impl JoinError {
    /// Returns what to do next.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Cluster(error) => error.hint.clone(),
            Self::Incomplete(..) => {
                Some("restore it from a backup, or delete it so that the next host makes it".to_owned())
            }
            Self::Other { .. } => Some(
                "start with an empty stateDir to join them, or give these hosts a hosts.group of their own".to_owned(),
            ),
            Self::OtherKey { .. } => {
                Some("move that file away; what was encrypted with it stays unreadable".to_owned())
            }
            Self::Nobody(_) => Some("start the daemon on one of them first".to_owned()),
            Self::Lost { .. } => Some(
                "restore it from a backup, or start a host that was one of them: it makes it again from its state directory"
                    .to_owned(),
            ),
            Self::Store(error) => error.hint(),
            Self::State(_) | Self::Key(_) => None,
        }
    }
}

/// Makes this host one of a group, or with `may_found` the first one. With `has_key_file` the key is the business of the
/// settings. Tells whether it is the first one.
pub(super) async fn join(
    leases: &dyn Leases,
    (group, store): (&str, &Shared),
    state: &State,
    (has_key_file, may_found): (bool, bool),
) -> Result<bool, JoinError> {
    let name = format!("{group}.installation");
    let mut lost = None;
    for _ in 0..TRIES {
        if let Some(shared) = leases.read_secret(&name).await.map_err(JoinError::Cluster)? {
            return take_over(&name, group, &shared, state, has_key_file).map(|()| false);
        }
        if !may_found {
            return Err(JoinError::Nobody(group.to_owned()));
        }
        let theirs = store.installation().await.map_err(JoinError::Store)?;
        let ours = state.installation()?;
        if let Some(installation) = theirs.filter(|theirs| ours.as_ref() != Some(theirs)) {
            return Err(JoinError::Lost { secret: name, installation });
        }
        let mut values = BTreeMap::from([(INSTALLATION.to_owned(), state.make_installation()?)]);
        if !has_key_file {
            Vault::making_key(state)?;
            values.insert(KEY.to_owned(), own_key(state)?.unwrap_or_default());
        }
        match leases.create_secret(&name, &values).await {
            Ok(()) => return Ok(true),
            Err(error) if error.reason == Reason::Conflict => lost = Some(error),
            Err(error) => return Err(JoinError::Cluster(error)),
        }
    }
    Err(lost.map_or_else(|| JoinError::Incomplete(name, INSTALLATION), JoinError::Cluster))
}

/// Takes over what the others share.
fn take_over(
    name: &str,
    group: &str,
    shared: &BTreeMap<String, String>,
    state: &State,
    has_key_file: bool,
) -> Result<(), JoinError> {
    let value = |key: &'static str| {
        let value = shared.get(key).map(|value| value.trim()).filter(|value| !value.is_empty());
        value.ok_or_else(|| JoinError::Incomplete(name.to_owned(), key))
    };
    let theirs = value(INSTALLATION)?;
    // A plan that was made here before leaves an id behind, but nothing on any cluster.
    let has_applied = !audit::SEEN.targets(state).is_empty();
    let ours = state.installation()?;
    let is_one = ours.as_deref() == Some(theirs);
    if let Some(ours) = ours.filter(|_| !is_one && has_applied) {
        return Err(JoinError::Other { group: group.to_owned(), ours, theirs: theirs.to_owned() });
    }
    if !has_key_file {
        let key = value(KEY)?;
        match own_key(state)? {
            Some(own) if own == key => {}
            Some(_) if has_applied => {
                return Err(JoinError::OtherKey { group: group.to_owned(), file: Vault::own_key(state) });
            }
            _ => state.write(Vault::own_key(state), format!("{key}\n").as_bytes())?,
        }
    }
    if !is_one {
        state.write(INSTALLATION, theirs.as_bytes())?;
    }
    Ok(())
}

fn own_key(state: &State) -> Result<Option<String>, StateError> {
    let file = Vault::own_key(state);
    match fs::read_to_string(&file) {
        Ok(key) => Ok(Some(key.trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StateError::Read(file, error)),
    }
}
