//! Writing down what a round is about to do, what was there before, and what it left behind.
//!
//! What it is about to do, and each object before it is changed or deleted, is on the disk before the request goes out.
//! What was left behind is noted after it; a process that ends in between leaves that unknown, and undo says so.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gatewright_engine::error::Chain;
use gatewright_engine::inventory::Inventory;
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, ObjectId};
use gatewright_engine::plan::restore::{Deed, Left};
use gatewright_engine::plan::{Action, Plan, Step};
use gatewright_engine::text::digest;
use serde::{Deserialize, Serialize};
use tracing::warn;
use zstd::bulk::Compressor;

use super::vault::{VaultError, packer};
use super::{About, Archive, runs};
use crate::basics::lock::lock;
use crate::basics::private::append_file;
use crate::history::interrupted;
use crate::state::StateError;

/// The steps that a round is about to take on a cluster.
#[derive(Debug, Serialize, Deserialize)]
pub struct Steps {
    /// The round.
    pub about: About,
    /// Its steps that change something.
    pub steps: Vec<Intent>,
}

/// One of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Intent {
    /// The unit.
    pub unit: ObjectId,
    /// The object.
    pub id: ObjectId,
    /// Its kind and version.
    pub gvk: Gvk,
    /// The files that had a say in it.
    pub files: BTreeSet<String>,
    /// The action on the object.
    pub deed: Deed,
}

/// The record of what was left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeRecord {
    /// The object.
    pub id: ObjectId,
    /// In which of the plans of the round, from 1.
    pub attempt: u32,
    /// The state in which it was left; `None` if it was deleted.
    pub left: Option<Left>,
}

/// The record of one round on one cluster.
pub struct Recorder {
    archive: Arc<Archive>,
    about: About,
    log: Mutex<Log>,
}

#[derive(Default)]
struct Log {
    attempt: u32,
    /// The objects that are about to be changed.
    before: BTreeMap<ObjectId, Live>,
    records: Option<RecordFile>,
}

/// The notes that are being written.
struct RecordFile {
    file: File,
    packer: Compressor<'static>,
    lines: usize,
}

/// The name of the file for an object in one of the plans of a round.
pub fn file_name(id: &ObjectId, attempt: u32) -> String {
    format!("{}-{attempt}.before", &digest(id.key().as_bytes())[..32])
}

/// The place of a line of the notes: none can be put in the place of another.
pub(super) fn line_place(path: &str, line: usize) -> String {
    format!("{path}#{line}")
}

impl Recorder {
    pub(super) fn new(archive: Arc<Archive>, about: About) -> Self {
        Self { archive, about, log: Mutex::default() }
    }

    /// Writes down what a plan is about to do to what is owned, before any of it is done.
    pub fn begin(&self, plan: &Plan, owned: &Inventory) -> Result<(), VaultError> {
        self.begin_with(plan.steps.iter().filter_map(|step| intent(step, plan, owned)).collect())
    }

    /// Writes down what is about to be done, before any of it is done.
    pub fn begin_with(&self, steps: Vec<Intent>) -> Result<(), VaultError> {
        if steps.is_empty() {
            return Ok(());
        }
        let attempt = {
            let mut log = lock(&self.log);
            log.attempt += 1;
            log.attempt
        };
        if attempt == 1 {
            interrupted::begin(&self.archive.vault().state, &self.about)?;
        }
        let path = self.path(&runs::steps_name(attempt));
        let file = self.archive.vault().state.path(&path);
        if file.exists() {
            // The clock was set back, and two rounds began at one time by it.
            return Err(StateError::Write(file, ErrorKind::AlreadyExists.into()).into());
        }
        self.archive.vault().write(&path, &Steps { about: self.about.clone(), steps })
    }

    /// Keeps an object as it is, before it is changed or deleted.
    pub fn before(&self, live: &Live) -> Result<(), VaultError> {
        let attempt = lock(&self.log).attempt;
        self.archive.vault().write(&self.path(&file_name(live.object.id(), attempt)), live)?;
        lock(&self.log).before.insert(live.object.id().clone(), live.clone());
        Ok(())
    }

    /// Records how an object was left. It has happened, so that a failure here is no failure of the step.
    pub fn after(&self, id: &ObjectId, live: Option<&Live>) {
        let before = lock(&self.log).before.remove(id);
        if let Err(error) = self.append(id, live.map(|live| Left::after(before.as_ref(), live))) {
            warn!(object = %id, error = %Chain(&error), "cannot note how it was left, so that undo will not touch it");
        }
    }

    fn append(&self, id: &ObjectId, left: Option<Left>) -> Result<(), VaultError> {
        let mut log = lock(&self.log);
        let record = ChangeRecord { id: id.clone(), attempt: log.attempt, left };
        let (vault, path) = (self.archive.vault(), self.path(runs::NOTES));
        let file = vault.state.path(&path);
        let fail = |error| StateError::Write(file.clone(), error);
        let json = serde_json::to_vec(&record).map_err(|error| fail(error.into()))?;
        let records = match &mut log.records {
            Some(records) => records,
            empty => empty.insert(RecordFile { file: append_file(&file).map_err(fail)?, packer: packer()?, lines: 0 }),
        };
        let encrypted = vault.encrypt(&mut records.packer, &line_place(&path, records.lines), &json)?;
        let written = records.file.write_all(format!("{}\n", STANDARD.encode(encrypted)).as_bytes());
        vault.state.touched(&path);
        written.map_err(fail)?;
        records.lines += 1;
        Ok(())
    }

    fn path(&self, name: &str) -> String {
        runs::path(&self.about.run, &self.about.cluster, name)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some(records) = &lock(&self.log).records {
            drop(records.file.sync_all());
        }
        lock(&self.archive.active).remove(&self.about.run);
    }
}

/// Returns what there is to undo about a step. A namespace that was made stays. An object that passes from one unit to another
/// is kept with the one that it goes back to.
fn intent(step: &Step, plan: &Plan, owned: &Inventory) -> Option<Intent> {
    let deed = match &step.action {
        Action::Create => Deed::Create,
        Action::Generate(it) if it.over.is_none() => Deed::Create,
        Action::Update(_) | Action::Generate(_) | Action::Recreate(_) => Deed::Change,
        Action::Adopt(_) | Action::AdoptFromDeployer(_) => Deed::Adopt,
        Action::Prune(_) | Action::DeleteFirst(_) => Deed::Delete,
        Action::CreateNamespace | Action::Unchanged | Action::Omit | Action::Release(_) | Action::Forget => {
            return None;
        }
    };
    let former = owned.entries.get(&step.id);
    let unit = former.map_or(&step.unit, |entry| &entry.unit).clone();
    let files = former.or_else(|| plan.inventory.entries.get(&step.id)).map(|entry| entry.files.clone());
    Some(Intent { unit, id: step.id.clone(), gvk: step.gvk.clone(), files: files.unwrap_or_default(), deed })
}
