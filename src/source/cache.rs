//! A source with a memory: the last good snapshot stays in force while the source cannot be read.

use std::collections::BTreeMap;
use std::sync::Arc;

use gatewright_engine::error::Chain;
use gatewright_engine::text::digest;
use gatewright_engine::tree::{Entry, Tree};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::source::{Snapshot, Source, SourceError};
use crate::state::store::Store;
use crate::state::{State, StateError};

/// The sources that the daemon cannot read, noted for `status`.
pub(crate) const TROUBLES: Store<BTreeMap<String, Trouble>> = Store::new("status/.sources");

/// The last good snapshots, by source.
const SNAPSHOTS: Store<Stored> = Store::new("sources");

/// A source and what it last said.
pub struct SourceCache {
    name: String,
    source: Box<dyn Source>,
    last: Option<Arc<Snapshot>>,
    trouble: Option<Trouble>,
}

/// Since when a source cannot be read, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    /// Since when.
    pub since: Timestamp,
    /// The reason why it could not be read the last time.
    pub message: String,
}

impl Trouble {
    /// Says since when, and why.
    pub fn words(&self) -> String {
        format!("cannot be read since {}: {}", self.since.strftime("%F %T UTC"), self.message)
    }
}

/// A snapshot on disk, so that a restart while the source is down changes nothing.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    /// The identity of the source when it was taken: another address makes it another source.
    identity: String,
    revision: String,
    #[serde(default)]
    address: String,
    #[serde(default)]
    committed: Option<i64>,
    files: Vec<(String, String)>,
    unreadable: Vec<(String, String)>,
    /// Missing in what an earlier version has stored.
    #[serde(default)]
    not_entered: Vec<(String, String)>,
}

impl SourceCache {
    /// Takes a source, with what is remembered of it. `identity` says which source it is, whatever its name; `trouble`
    /// is what was wrong with it when it was last asked.
    pub fn new(name: &str, source: Box<dyn Source>, identity: &str, trouble: Option<Trouble>, state: &State) -> Self {
        let stored = SNAPSHOTS.read(state, &[name]).filter(|stored| stored.identity == digest(identity.as_bytes()));
        let last = stored.map(|stored| Arc::new(snapshot(stored)));
        Self { name: name.to_owned(), source, last, trouble }
    }

    /// Returns the snapshot that is in force.
    pub fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.last.clone()
    }

    /// Returns what is wrong with the source, if something is.
    pub fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }

    /// Asks the source. Tells whether there is a new snapshot; a failure leaves the last one in force.
    pub async fn poll(&mut self, now: Timestamp, identity: &str, state: &State) -> Result<bool, SourceError> {
        let have = self.last.as_ref().map(|snapshot| snapshot.revision.clone());
        match self.source.poll(have.as_deref()).await {
            Ok(None) => {
                self.trouble = None;
                if let Some(snapshot) = self.last.as_mut().filter(|snapshot| !snapshot.is_polled) {
                    Arc::make_mut(snapshot).is_polled = true;
                }
                Ok(false)
            }
            Ok(Some(snapshot)) => {
                self.trouble = None;
                if let Err(error) = store(&self.name, &snapshot, identity, state) {
                    tracing::warn!(source = self.name, error = %Chain(&error), "cannot remember the snapshot");
                }
                self.last = Some(Arc::new(snapshot));
                Ok(true)
            }
            Err(error) => {
                let since = self.trouble.as_ref().map_or(now, |trouble| trouble.since);
                self.trouble = Some(Trouble { since, message: Chain(&error).to_string() });
                Err(error)
            }
        }
    }
}

/// Stores a snapshot of a source as the last good one: who starts while the source is down begins with it.
pub fn store(name: &str, snapshot: &Snapshot, identity: &str, state: &State) -> Result<(), StateError> {
    SNAPSHOTS.write(state, &[name], &stored(snapshot, identity))
}

fn stored(snapshot: &Snapshot, identity: &str) -> Stored {
    let mut stored = Stored {
        identity: digest(identity.as_bytes()),
        revision: snapshot.revision.clone(),
        address: snapshot.address.clone(),
        committed: snapshot.committed,
        files: Vec::new(),
        unreadable: Vec::new(),
        not_entered: Vec::new(),
    };
    for (path, entry) in snapshot.tree.files() {
        match entry {
            Entry::Text(text) => stored.files.push((path.to_owned(), text.to_string())),
            Entry::Unreadable(reason) => stored.unreadable.push((path.to_owned(), reason.clone())),
            Entry::NotEntered(reason) => stored.not_entered.push((path.to_owned(), reason.clone())),
        }
    }
    stored
}

fn snapshot(stored: Stored) -> Snapshot {
    let mut tree = Tree::from_iter(stored.files);
    stored.unreadable.into_iter().for_each(|(path, reason)| tree.insert_unreadable(path, reason));
    stored.not_entered.into_iter().for_each(|(path, reason)| tree.insert_not_entered(path, reason));
    let Stored { revision, address, committed, .. } = stored;
    Snapshot { address, committed, is_polled: false, ..Snapshot::new(revision, tree) }
}
