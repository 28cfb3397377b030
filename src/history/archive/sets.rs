//! The renderings of earlier rounds: for each sync on each cluster the last few sets, by the digest of their content.
//!
//! A set is on the disk before anything of it is applied, with all its units noted as not healthy; a unit leaves that note
//! for good once a round has seen it healthy with this set. So a round that was cut off counts as no success.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gatewright_engine::error::Chain;
use gatewright_engine::object::ObjectId;
use gatewright_engine::problem::Scope;
use gatewright_engine::unit::marked::Marked;
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
    /// A person has taken it back since: nothing goes back to it by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_taken_back: bool,
    /// The units that no round has seen healthy with it. What older versions have kept was healthy.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub ill: BTreeSet<ObjectId>,
}

/// Whether all units of a set were seen healthy with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Each of them was.
    Well,
    /// Some were not yet.
    Ill,
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

/// Finds for each of some units what it was when it was last healthy, other than it is now, with the revision of that. `key`
/// names what it is now rendered from.
pub fn healthy(
    archive: &Archive,
    about: &About,
    (now, key): (&[Unit], Option<&str>),
) -> Result<BTreeMap<ObjectId, (Unit, String)>, VaultError> {
    let (vault, sync, cluster) = (archive.vault(), about.sync.as_str(), about.cluster.as_str());
    let mut found = BTreeMap::new();
    let is_other = |set: &Set| set.key.is_none() || set.key.as_deref() != key;
    for set in list(vault, sync, cluster)?.into_iter().filter(|set| is_other(set) && !set.is_taken_back) {
        let rendering = load(vault, sync, cluster, &set).inspect_err(|error| {
            warn!(sync, cluster, error = %Chain(error), "a set cannot be read, and nothing goes back to it");
        });
        for unit in rendering.unwrap_or_default().units {
            let is_other = now.iter().any(|now| now.id == unit.id && !now.all().eq(unit.all()));
            if is_other && !set.ill.contains(&unit.id) {
                found.entry(unit.id.clone()).or_insert((unit, set.revision.clone()));
            }
        }
        if found.len() == now.len() {
            break;
        }
    }
    Ok(found)
}

/// Keeps the sets of a cluster for some syncs under another name, after those that are kept under it already. What cannot be
/// read is told to `lost`, and is not among them.
pub fn rename_cluster(
    vault: &Vault,
    (old, new): (&str, &str),
    is_meant: impl Fn(&str) -> bool,
    lost: impl Fn(&str, &VaultError),
) -> Result<(), StateError> {
    for sync in vault.state.names(FOLDER).into_iter().filter(|sync| is_meant(sync)) {
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

/// Tells of what has this name whether it was kept last, and whether all of it was healthy; `None`: it was not kept last.
pub fn kept_last(archive: &Archive, about: &About, key: Option<&str>) -> Result<Option<Health>, VaultError> {
    let sets = list(archive.vault(), &about.sync, &about.cluster)?;
    let last = sets.first().filter(|last| !last.is_taken_back && key.is_some() && last.key.as_deref() == key);
    Ok(last.map(|last| if last.ill.is_empty() { Health::Well } else { Health::Ill }))
}

/// Keeps what is to be applied, unless it is what was kept last, and drops what is too much. `names` are those of all that
/// it was rendered from: here, and whatever the cluster.
pub fn keep(
    archive: &Archive,
    about: &About,
    rendering: &Arc<Marked>,
    names: (Option<String>, Option<String>),
) -> Result<(), VaultError> {
    let (vault, sync, cluster) = (archive.vault(), about.sync.as_str(), about.cluster.as_str());
    let mut sets = list(vault, sync, cluster)?;
    let (key, target) = names;
    if key.is_some() && sets.first().is_some_and(|last| !last.is_taken_back && last.key == key) {
        return Ok(());
    }
    let digest = rendering.digest();
    let digest = digest.map_err(|error| StateError::Write(vault.state.path(index(sync, cluster)), error.into()))?;
    let digest = digest[..DIGITS].to_owned();
    if let Some(last) = sets.first_mut().filter(|last| last.digest == digest) {
        (last.key, last.is_taken_back) = (key, false);
        return vault.write(&index(sync, cluster), &sets);
    }
    let file = path(sync, cluster, &digest);
    let packed = archive.packed.of(rendering, || vault.packed(&file, &***rendering))?;
    vault.write_packed(&file, packed.to_vec())?;
    let objects = rendering.units.iter().map(|unit| unit.all().count()).sum();
    let ill = rendering.units.iter().map(|unit| &unit.id).chain(&rendering.broken).cloned().collect();
    let is_broken = rendering.problems.iter().any(|problem| problem.scope != Scope::Warning);
    let (revision, run) = (about.revision.clone(), about.run.clone());
    sets.insert(
        0,
        Set { digest, revision, run, time: about.started, objects, key, target, is_broken, is_taken_back: false, ill },
    );
    let dropped = surplus(&mut sets, archive.sets);
    vault.write(&index(sync, cluster), &sets)?;
    for set in dropped.iter().filter(|old| sets.iter().all(|set| set.digest != old.digest)) {
        drop(vault.state.remove(path(sync, cluster, &set.digest)));
    }
    Ok(())
}

/// Notes that a person has gone back to one of the sets: those that came after it are taken back.
pub fn go_back(vault: &Vault, (sync, cluster): (&str, &str), to: &Set) -> Result<(), VaultError> {
    let mut sets = list(vault, sync, cluster)?;
    let Some(at) = sets.iter().position(|set| set.digest == to.digest && set.run == to.run) else { return Ok(()) };
    sets.iter_mut().enumerate().for_each(|(index, set)| set.is_taken_back = index < at);
    vault.write(&index(sync, cluster), &sets)
}

/// Notes that a person has undone the run that applied the last set first. What came before that says more than one change, and
/// others build on it.
pub fn undo(vault: &Vault, (sync, cluster): (&str, &str), run: &str) -> Result<(), VaultError> {
    let mut sets = list(vault, sync, cluster)?;
    match sets.first_mut() {
        Some(last) if last.run == run && !last.is_taken_back => last.is_taken_back = true,
        _ => return Ok(()),
    }
    vault.write(&index(sync, cluster), &sets)
}

/// Takes out what is too much: those of which most was never healthy, and of these the oldest. What was kept last stays, of
/// which nothing is known yet, and so does the newest set with which each of its units was healthy, and one with which all
/// were: no number of failures drives out what one can go back to.
fn surplus(sets: &mut Vec<Set>, wanted: usize) -> Vec<Set> {
    let mut dropped = Vec::new();
    while sets.len() > wanted.max(2) {
        let needed = needed(sets);
        let worst = |at: &usize| (!needed.contains(at), sets[*at].ill.len(), *at);
        let at = (1..sets.len()).max_by_key(worst).unwrap_or(sets.len() - 1);
        dropped.push(sets.remove(at));
    }
    dropped
}

/// Returns the places of the sets that something may go back to.
fn needed(sets: &[Set]) -> BTreeSet<usize> {
    let ill: BTreeSet<&ObjectId> = sets.iter().flat_map(|set| &set.ill).collect();
    let well = ill.into_iter().filter_map(|unit| sets.iter().position(|set| !set.ill.contains(unit)));
    let whole = sets.iter().position(|set| set.ill.is_empty());
    let standing = sets.iter().position(|set| set.ill.is_empty() && !set.is_taken_back);
    well.chain(whole).chain(standing).collect()
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

#[cfg(test)]
mod tests {
    use gatewright_engine::spec::GATEWAY_API;
    use proptest::prelude::*;

    use super::*;

    fn gateway(name: u8) -> ObjectId {
        ObjectId::new(GATEWAY_API, "Gateway", "infra", &name.to_string())
    }

    fn set(number: usize, ill: BTreeSet<ObjectId>) -> Set {
        let (digest, revision, run) = (number.to_string(), number.to_string(), String::new());
        let (key, target, is_broken) = (None, None, false);
        let (is_taken_back, time) = (false, Timestamp::UNIX_EPOCH);
        Set { digest, revision, run, time, objects: 0, key, target, is_broken, is_taken_back, ill }
    }

    proptest! {
        /// Whatever is healthy with which set: of each unit the last set is kept with which it was, as long as there is room
        /// for one of each.
        #[test]
        fn each_unit_can_go_back_to_where_it_was_healthy(rounds in prop::collection::vec(prop::collection::btree_set(0_u8..3, 0..4), 1..40)) {
            let (mut sets, mut last) = (Vec::new(), std::collections::BTreeMap::new());
            for (number, well) in rounds.iter().enumerate() {
                sets.insert(0, set(number, (0..3).map(gateway).collect()));
                surplus(&mut sets, 5);
                prop_assert!(sets.len() <= 5);
                for (unit, number) in &last {
                    let kept = sets.iter().find(|set| !set.ill.contains(unit));
                    prop_assert_eq!(kept.map(|set| &set.digest), Some(number), "{}", unit);
                }
                sets[0].ill.retain(|unit| !well.iter().any(|name| gateway(*name) == *unit));
                last.extend(well.iter().map(|name| (gateway(*name), number.to_string())));
            }
        }
    }
}
