//! What goes wrong between this host and the object store.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use gatewright_engine::error::Chain;
use tokio::task::JoinError;

use crate::basics::redact::excerpt;
use crate::basics::size::Size;
use crate::shared::settings::StoreConflict;
use crate::state::StateError;

/// The state folder and the object store cannot be made alike.
#[derive(Debug, thiserror::Error)]
pub enum SharedError {
    /// The settings cannot be used.
    #[error(transparent)]
    Settings(#[from] StoreConflict),
    /// The state was opened by someone who does not share it.
    #[error("the state directory is not opened to be shared: its changes are not noted")]
    NotNoting,
    /// The store cannot be opened.
    #[error("cannot open the object store {url}")]
    Open {
        /// Its address.
        url: String,
        /// The reason.
        #[source]
        source: Said,
    },
    /// The objects of the store cannot be listed.
    #[error("cannot list the objects of {url}")]
    List {
        /// The address of the store.
        url: String,
        /// The reason.
        #[source]
        source: Said,
    },
    /// One object cannot be read, written or deleted.
    #[error("cannot {action} {object:?} in {url}")]
    Object {
        /// The attempt.
        action: &'static str,
        /// The name of the object.
        object: String,
        /// The address of the store.
        url: String,
        /// The reason.
        #[source]
        source: Said,
    },
    /// One file is larger than any that belongs there.
    #[error("{object:?} is larger than {most}, and is not shared", most = Size(*most))]
    TooLarge {
        /// The name of the file.
        object: String,
        /// The most bytes that a file may have.
        most: u64,
    },
    /// Others change an object again and again.
    #[error("{object:?} in {url} is changed by others again and again")]
    Contested {
        /// The name of the object.
        object: String,
        /// The address of the store.
        url: String,
    },
    /// The store is not what it was.
    #[error("{url} is not the store that this host has used: {marker:?} is missing there, or another one")]
    OtherStore {
        /// The address of the store.
        url: String,
        /// The object that every store has.
        marker: &'static str,
    },
    /// The store is used by another installation.
    #[error("{url} is the store of the installation {theirs}, and this host belongs to {ours}")]
    OtherInstallation {
        /// The address of the store.
        url: String,
        /// The id of this installation.
        ours: String,
        /// The id that the store names.
        theirs: String,
    },
    /// The store is used by another group of hosts.
    #[error("{url} is the store of the hosts of group {theirs:?}, and this one is of group {ours:?}")]
    OtherGroup {
        /// The address of the store.
        url: String,
        /// The group of this host.
        ours: String,
        /// The group that the store names.
        theirs: String,
    },
    /// Nobody has used the store yet, and this process is not for beginning with it.
    #[error("no host has used {url} yet")]
    Unused {
        /// The address of the store.
        url: String,
    },
    /// The installation that the store names is no id.
    #[error("{marker:?} in {url} holds no id of an installation")]
    NoInstallation {
        /// The address of the store.
        url: String,
        /// The name of the object.
        marker: &'static str,
    },
    /// A file of this host cannot be read or written.
    #[error(transparent)]
    State(#[from] StateError),
    /// A task did not come to its end.
    #[error("cannot read or write the state directory")]
    Stopped(#[source] JoinError),
}

impl SharedError {
    /// Returns what to do next.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Settings(conflict) => conflict.hint(),
            Self::OtherStore { .. } => Some(
                "Bring the store back: mount it, or restore it from a backup. If it is to begin again, stop all hosts, remove \
                 the folder `shared` in the state directory of each and everything below the address, and start first the \
                 host whose data are to count."
                    .to_owned(),
            ),
            Self::OtherGroup { .. } => {
                Some("Two groups of one installation would work on the same objects: give all hosts one hosts.group.".to_owned())
            }
            Self::Open { url, .. } if url.starts_with("file:") => {
                Some("Make the folder, or mount it, and let this user write there.".to_owned())
            }
            Self::Unused { .. } => Some("Start the daemon on one of the hosts first, or mend hosts.store.url.".to_owned()),
            Self::TooLarge { object, .. } => Some(format!(
                "Nothing that needs it is changed. See what is in {object:?} in the state directory, and move it away; if it is \
                 not there, it is in the store."
            )),
            Self::OtherInstallation { .. } => {
                Some("Give each installation a bucket or prefix of its own, and all hosts of one the same id.".to_owned())
            }
            _ => None,
        }
    }
}

/// The answer of a store, or the lack of one, in its own words but without what may be a secret.
#[derive(Debug)]
pub struct Said(String);

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Said {}

impl Said {
    /// Quotes an error. Those of the library repeat their causes.
    pub(super) fn of(error: &dyn Error) -> Self {
        Self(excerpt(&Chain(error).to_string()))
    }

    /// Says that nothing was said for some time.
    pub(super) fn late(limit: Duration) -> Self {
        Self(format!("no answer within {} s", limit.as_secs()))
    }
}
