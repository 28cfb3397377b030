//! The renderings of earlier rounds: for each sync on each cluster the last few sets, by the digest of their content.
//!
//! A set is on the disk before anything of it is applied, with all its units noted as not healthy; a unit leaves that note
//! for good once a round has seen it healthy with this set. So a round that was cut off counts as no success.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::error::Chain;
use gatewright_engine::object::ObjectId;
use gatewright_engine::problem::Scope;
use gatewright_engine::text::digest;
use gatewright_engine::unit::{Rendering, Unit};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::warn;

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

/// A set that was rendered, and applied or about to be.
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
    /// Names what was to be had on all clusters of the sync, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Something of the source could not be read or rendered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_broken: bool,
    /// The units that no round has seen healthy with it. What older versions have kept was healthy.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub ill: BTreeSet<ObjectId>,
}

impl Set {
    /// Names what was to be had on all clusters when it was rendered.
    pub fn attempt(&self) -> &str {
        self.target.as_deref().unwrap_or(&self.revision)
    }
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

/// Finds for each of some units what it was when it was last healthy, other than it is in the set that was kept last, with
/// the revision of that.
pub fn healthy(
    archive: &Archive,
    about: &About,
    units: &BTreeSet<ObjectId>,
) -> Result<BTreeMap<ObjectId, (Unit, String)>, VaultError> {
    let (vault, sync, cluster) = (archive.vault(), about.sync.as_str(), about.cluster.as_str());
    let (mut last, mut found) = (None, BTreeMap::new());
    for set in list(vault, sync, cluster)? {
        let rendering = load(vault, sync, cluster, &set).inspect_err(|error| {
            warn!(sync, cluster, error = %Chain(error), "a set cannot be read, and nothing goes back to it");
        });
        let is_open = |unit: &Unit| units.contains(&unit.id) && !found.contains_key(&unit.id);
        let open: Vec<Unit> = rendering.unwrap_or_default().units.into_iter().filter(is_open).collect();
        let Some(last) = &last else {
            last = Some(open);
            continue;
        };
        let is_other = |unit: &Unit| !last.iter().any(|last: &Unit| last.id == unit.id && last.all().eq(unit.all()));
        let well = open.into_iter().filter(|unit| !set.ill.contains(&unit.id) && is_other(unit));
        found.extend(well.map(|unit| (unit.id.clone(), (unit, set.revision.clone()))));
        if found.len() == units.len() {
            break;
        }
    }
    Ok(found)
}

/// Keeps the sets of a cluster under another name, whatever the sync, after those that are kept under it already. What cannot be
/// read is told to `lost`, and is not among them.
pub fn rename_cluster(
    vault: &Vault,
    (old, new): (&str, &str),
    lost: impl Fn(&str, &VaultError),
) -> Result<(), StateError> {
    for sync in vault.state.names(FOLDER) {
        if exist(&vault.state, &sync, old)
            && let Err(error) = rename(vault, &sync, (old, new), |error| lost(&sync, error))
        {
            lost(&sync, &error);
        }
    }
    Ok(())
}

/// The index is written when all is there that it names, and that of the old name is removed last.
fn rename(vault: &Vault, sync: &str, (old, new): (&str, &str), lost: impl Fn(&VaultError)) -> Result<(), VaultError> {
    let (before, mut sets) = (list(vault, sync, old)?, list(vault, sync, new)?);
    for set in &before {
        let (from, to) = (path(sync, old, &set.digest), path(sync, new, &set.digest));
        let copied = if vault.state.path(&to).exists() { Ok(true) } else { vault.copy(&from, &to) };
        match copied {
            Ok(true) if !sets.contains(set) => sets.push(set.clone()),
            Ok(_) => {}
            Err(error @ VaultError::State(_)) => return Err(error),
            Err(error) => lost(&error),
        }
    }
    vault.write(&index(sync, new), &sets)?;
    for set in before.iter().filter(|set| sets.contains(set)) {
        vault.state.remove(path(sync, old, &set.digest))?;
    }
    Ok(vault.state.remove(index(sync, old))?)
}

/// Tells whether what has this name was kept last, and nothing of it is left that was not healthy yet.
pub fn is_last(archive: &Archive, about: &About, key: Option<&str>) -> Result<bool, VaultError> {
    let sets = list(archive.vault(), &about.sync, &about.cluster)?;
    let is_it = |last: &Set| last.key.as_deref() == key && last.ill.is_empty();
    Ok(key.is_some() && sets.first().is_some_and(is_it))
}

/// Keeps what is to be applied, unless it is what was kept last, and drops what is too much. `names` are those of all that
/// it was rendered from: here, and whatever the cluster.
pub fn keep(
    archive: &Archive,
    about: &About,
    rendering: &Rendering,
    names: (Option<String>, Option<String>),
) -> Result<(), VaultError> {
    let (vault, sync, cluster) = (archive.vault(), about.sync.as_str(), about.cluster.as_str());
    let mut sets = list(vault, sync, cluster)?;
    let (key, target) = names;
    if key.is_some() && sets.first().is_some_and(|last| last.key == key) {
        return Ok(());
    }
    let json = serde_json::to_vec(&rendering.units)
        .map_err(|error| StateError::Write(vault.state.path(index(sync, cluster)), error.into()))?;
    let digest = digest(&json)[..DIGITS].to_owned();
    if let Some(last) = sets.first_mut().filter(|last| last.digest == digest) {
        last.key = key;
        return vault.write(&index(sync, cluster), &sets);
    }
    vault.write(&path(sync, cluster, &digest), rendering)?;
    let objects = rendering.units.iter().map(|unit| unit.all().count()).sum();
    let ill = rendering.units.iter().map(|unit| &unit.id).chain(&rendering.broken).cloned().collect();
    let is_broken = rendering.problems.iter().any(|problem| problem.scope != Scope::Warning);
    let (revision, run) = (about.revision.clone(), about.run.clone());
    sets.insert(0, Set { digest, revision, run, time: about.started, objects, key, target, is_broken, ill });
    let dropped = surplus(&mut sets, archive.sets);
    vault.write(&index(sync, cluster), &sets)?;
    for set in dropped.iter().filter(|old| sets.iter().all(|set| set.digest != old.digest)) {
        drop(vault.state.remove(path(sync, cluster, &set.digest)));
    }
    Ok(())
}

/// Takes out what is too much: those of which most was never healthy, and of these the oldest. What was kept last stays,
/// and so many others as are wanted, so that no number of failures drives out what one can go back to.
fn surplus(sets: &mut Vec<Set>, wanted: usize) -> Vec<Set> {
    let mut dropped = Vec::new();
    while sets.len() > wanted.max(2) {
        let worst = (1..sets.len()).max_by_key(|at| (sets[*at].ill.len(), *at)).unwrap_or(sets.len() - 1);
        dropped.push(sets.remove(worst));
    }
    dropped
}

/// Notes which units were seen healthy with what was kept last.
pub fn see(archive: &Archive, about: &About, is_well: impl Fn(&ObjectId) -> bool) -> Result<(), VaultError> {
    let (vault, sync, cluster) = (archive.vault(), about.sync.as_str(), about.cluster.as_str());
    let mut sets = list(vault, sync, cluster)?;
    let Some(last) = sets.first_mut() else { return Ok(()) };
    let before = last.ill.len();
    last.ill.retain(|unit| !is_well(unit));
    if last.ill.len() == before {
        return Ok(());
    }
    vault.write(&index(sync, cluster), &sets)
}
