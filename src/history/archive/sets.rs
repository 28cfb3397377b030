//! The renderings of earlier rounds: for each sync on each cluster the last few sets, by the digest of their content.

use gatewright_engine::text::digest;
use gatewright_engine::unit::Rendering;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::vault::{Vault, VaultError};
use super::{About, Archive};
use crate::state::{State, StateError};

/// The folder of the sets, below the state directory.
const FOLDER: &str = "rendered";
/// Digits of a digest that name a set.
const DIGITS: usize = 16;

/// The settings of what is kept for `gatewright rollback`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Rollback")]
pub struct Settings {
    /// The number of rendered sets that are kept of each sync on each cluster.
    #[schemars(range(min = 1))]
    pub keep: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { keep: 10 }
    }
}

/// A set that was rendered, and applied with success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Set {
    /// The digest of what it wants.
    pub digest: String,
    /// The revision that it was rendered from.
    pub revision: String,
    /// The run that applied it first.
    pub run: String,
    /// When.
    pub time: Timestamp,
    /// The number of objects that it wants.
    pub objects: usize,
    /// Names all that it was rendered from, if that is known: what has the same name need not be rendered again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

fn path(sync: &str, cluster: &str, name: &str) -> String {
    format!("{FOLDER}/{sync}/{cluster}/{name}")
}

fn index(sync: &str, cluster: &str) -> String {
    path(sync, cluster, "index")
}

/// Tells whether anything is kept of a sync on a cluster.
pub fn exist(state: &State, sync: &str, cluster: &str) -> bool {
    state.path(index(sync, cluster)).exists()
}

/// Returns the sets of a sync on a cluster, the newest first.
pub fn list(vault: &Vault, sync: &str, cluster: &str) -> Result<Vec<Set>, VaultError> {
    vault.read(&index(sync, cluster)).map(Option::unwrap_or_default)
}

/// Reads a set.
pub fn load(vault: &Vault, sync: &str, cluster: &str, set: &Set) -> Result<Rendering, VaultError> {
    let path = path(sync, cluster, &set.digest);
    let missing = || StateError::Read(vault.state.path(&path), std::io::ErrorKind::NotFound.into());
    Ok(vault.read(&path)?.ok_or_else(missing)?)
}

/// Tells whether what has this name was kept last.
pub fn is_last(archive: &Archive, about: &About, key: Option<&str>) -> Result<bool, VaultError> {
    let sets = list(archive.vault(), &about.sync, &about.cluster)?;
    Ok(key.is_some() && sets.first().is_some_and(|last| last.key.as_deref() == key))
}

/// Keeps what was rendered, unless it is what was kept last, and drops the oldest of what is too many.
///
/// `key` names all that it was rendered from. Where nobody knows that, a round that has changed nothing on a cluster with
/// a revision that is kept already is not looked at further.
pub fn keep(
    archive: &Archive,
    about: &About,
    rendering: &Rendering,
    (key, has_changed): (Option<String>, bool),
) -> Result<(), VaultError> {
    let (vault, sync, cluster) = (archive.vault(), about.sync.as_str(), about.cluster.as_str());
    let mut sets = list(vault, sync, cluster)?;
    if key.is_none() && !has_changed && sets.first().is_some_and(|last| last.revision == about.revision) {
        return Ok(());
    }
    let json = serde_json::to_vec(&rendering.units)
        .map_err(|error| StateError::Write(vault.state.path(index(sync, cluster)), error.into()))?;
    let digest = digest(&json)[..DIGITS].to_owned();
    if let Some(last) = sets.first_mut().filter(|last| last.digest == digest) {
        if key.is_none() || last.key == key {
            return Ok(());
        }
        last.key = key;
        return vault.write(&index(sync, cluster), &sets);
    }
    vault.write(&path(sync, cluster, &digest), rendering)?;
    let objects = rendering.units.iter().map(|unit| unit.all().count()).sum();
    let (revision, run) = (about.revision.clone(), about.run.clone());
    sets.insert(0, Set { digest, revision, run, time: about.started, objects, key });
    let dropped = sets.split_off(sets.len().min(archive.sets.max(1)));
    vault.write(&index(sync, cluster), &sets)?;
    for set in dropped.iter().filter(|old| sets.iter().all(|set| set.digest != old.digest)) {
        drop(vault.state.remove(path(sync, cluster, &set.digest)));
    }
    Ok(())
}
