//! The data that rounds leave behind on this host so that it can come back: objects as they were before they were
//! changed or deleted, and what was rendered in earlier rounds.
//!
//! All of it is encrypted, because Secrets are among it and other objects hold secrets too.

mod packed;
pub mod record;
pub mod runs;
pub mod sets;
pub mod vault;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gatewright_engine::mask::Masker;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::basics::duration::Period;
use crate::basics::lock::lock;
use crate::basics::paths::{NoCredentials, Paths};
use crate::basics::size::Size;
use crate::history::expiry::Expiry;
use crate::state::State;
use packed::Packed;
use record::Recorder;
use vault::{Vault, VaultError};

/// The settings of what is kept for `gatewright undo`, and for how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Undo")]
pub struct Settings {
    /// The time during which a round can be undone.
    pub keep: Period,
    /// The most bytes that are kept in all; the oldest rounds go first.
    pub max_bytes: Size,
    /// A file with the 32 bytes of the key, raw or in base64; without it the file `key` of the state directory, which
    /// is made.
    pub key_file: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { keep: Period(Duration::from_hours(30 * 24)), max_bytes: Size(1 << 30), key_file: None }
    }
}

impl Settings {
    /// Makes paths absolute.
    pub fn resolve(&mut self, paths: &Paths) -> Result<(), NoCredentials> {
        if let Some(file) = &mut self.key_file {
            *file = paths.resolve(file)?;
        }
        Ok(())
    }
}

/// The archive of an installation.
#[derive(Debug)]
pub struct Archive {
    vault: Vault,
    settings: Settings,
    /// The number of rendered sets that are kept of each sync on each cluster.
    sets: usize,
    /// The rounds that are under way.
    active: Mutex<BTreeSet<String>>,
    /// The time of the last look for what is too old.
    expired: Expiry,
    /// The rendered objects, as they are kept.
    packed: Packed,
}

/// The subject of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct About {
    /// The run.
    pub run: String,
    /// The sync.
    pub sync: String,
    /// The cluster.
    pub cluster: String,
    /// The revision that was in force.
    pub revision: String,
    /// When the round began.
    pub started: Timestamp,
}

impl Archive {
    /// Opens the archive to write to it; without a key file one is made.
    pub fn open(state: &State, settings: &Settings, sets: usize) -> Result<Self, VaultError> {
        let vault = match &settings.key_file {
            Some(file) => Vault::with_key(state, file)?,
            None => Vault::making_key(state)?,
        };
        let (active, expired, packed) = (Mutex::default(), Expiry::default(), Packed::default());
        Ok(Self { vault, settings: settings.clone(), sets, active, expired, packed })
    }

    /// Opens what is there already, to read it.
    pub fn existing(state: &State, settings: &Settings) -> Result<Vault, VaultError> {
        Vault::with_key(state, settings.key_file.as_deref().unwrap_or(&Vault::own_key(state)))
    }

    /// Returns what masks secrets where nothing is written: as in the rounds of this installation if there has been one,
    /// else with a key for this process alone.
    pub fn masker(state: &State, settings: &Settings) -> Masker {
        Self::existing(state, settings).map_or_else(|_| Masker::new(rand::random()), |vault| vault.masker().clone())
    }

    /// Returns what reads and writes its files.
    pub fn vault(&self) -> &Vault {
        &self.vault
    }

    /// Begins the record of a round on a cluster; nothing is written before something is about to change.
    pub fn recorder(self: &Arc<Self>, about: About) -> Recorder {
        lock(&self.active).insert(about.run.clone());
        Recorder::new(Arc::clone(self), about)
    }

    /// Returns the subject of the newest round of a sync on a cluster that has changed something there, or was about to.
    ///
    /// # Errors
    ///
    /// Its record cannot be read.
    pub fn last(&self, sync: &str, cluster: &str) -> Result<Option<About>, VaultError> {
        runs::last(&self.vault, sync, cluster)
    }

    /// Deletes records that are older than they are kept, and the oldest of what is too much; at most once in a minute.
    pub fn expire(&self, now: Timestamp) {
        if !self.vault.state.may_expire() || !self.expired.is_due(now) {
            return;
        }
        let folder = self.vault.state.path(runs::FOLDER);
        let limits = (self.settings.keep.0, self.settings.max_bytes.0);
        let _changing = self.vault.state.changing(&folder);
        let deleted = runs::expire(&folder, now, limits, &lock(&self.active));
        for run in &deleted {
            self.vault.state.touched(run);
        }
    }
}
