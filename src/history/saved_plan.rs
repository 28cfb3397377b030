//! Plans as files: what `plan --out` writes and `apply` carries out.
//!
//! A file holds what was shown and what it takes to tell whether it still is so, and no bodies. It is checked whole
//! before anything is done: a digest shows that it is not damaged, and a signature with the key of the state directory
//! that nobody has changed it, because it names a commit, which need not be on the branch that the configuration names.
//! It never permits what the configuration does not.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use gatewright_engine::plan::guard::Hold;
use gatewright_engine::plan::saved::SavedStep;
use gatewright_engine::text::digest;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::basics::private::write_whole;
use crate::history::archive::vault::Vault;
use crate::report::{Report, Saved};

/// The form of the file, without its version.
const FORM: &str = "gatewright.dev/plan/";

/// The version of the form that is written, and the only one that is read.
const VERSION: &str = "v1alpha1";

/// Only the owner reads it: it tells what runs where.
const MODE: u32 = 0o600;

/// The file as a whole.
#[derive(Serialize, Deserialize)]
struct Envelope {
    schema: String,
    digest: String,
    /// HMAC with a key of the installation.
    #[serde(default)]
    signature: String,
    plan: Value,
}

/// A plan that was read, and of which nobody knows yet who has written it.
#[derive(Debug)]
pub(crate) struct Unverified {
    path: PathBuf,
    /// The plan in it.
    pub plan: PlanFile,
    text: String,
    signature: String,
}

/// A plan that is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlanFile {
    /// The version of gatewright, of its engine and of its packs, which are one.
    pub version: String,
    /// The installation that has made it.
    pub installation: String,
    /// When it was made.
    pub made: Timestamp,
    /// Whether objects may be adopted from deployers.
    #[serde(default)]
    pub adopt: bool,
    /// The units that it is about; all of them if absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// The syncs.
    pub syncs: Vec<PlannedSync>,
}

/// The plan for a sync.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlannedSync {
    /// Its name.
    pub sync: String,
    /// Its source.
    pub source: String,
    /// The revision of the source.
    pub revision: String,
    /// By cluster.
    pub clusters: BTreeMap<String, PlannedCluster>,
}

/// The plan for a cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlannedCluster {
    /// The identity of the cluster; empty for a directory that nobody has written to.
    pub identity: String,
    /// The steps that would be taken.
    pub steps: Vec<SavedStep>,
    /// The holds that wait for approval, with their tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<Hold>,
}

/// A plan cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanFileError {
    #[error("cannot read the plan {0:?}")]
    Read(PathBuf, #[source] io::Error),
    #[error("cannot write the plan {0:?}")]
    Write(PathBuf, #[source] io::Error),
    #[error("{0:?} is no plan of gatewright, or was cut off")]
    NoPlan(PathBuf),
    #[error("the plan {0:?} has the form {1:?}, and this version reads {FORM}{VERSION}")]
    OtherVersion(PathBuf, String),
    #[error("the plan {0:?} is not as this installation has written it")]
    Forged(PathBuf),
    #[error("the plan {0:?} is damaged: it is not as it was written")]
    Damaged(PathBuf),
}

impl PlannedSync {
    /// Keeps what a plan has shown, but for clusters on which nothing could be planned.
    pub(crate) fn of(report: &Report) -> Self {
        let is_planned = |cluster: &crate::report::ClusterReport| cluster.error.is_none();
        let planned = report.clusters.iter().filter(|(_, cluster)| is_planned(cluster));
        let clusters = planned.map(|(name, cluster)| {
            let Saved { identity, steps } = cluster.saved.clone();
            let holds = cluster.holds.iter().map(|hold| hold.what.clone()).collect();
            (name.clone(), PlannedCluster { identity, steps, holds })
        });
        Self {
            sync: report.sync.clone(),
            source: report.source.clone(),
            revision: report.revision.clone(),
            clusters: clusters.collect(),
        }
    }

    /// Returns the steps by cluster.
    pub(crate) fn saved(&self) -> BTreeMap<String, Saved> {
        let saved =
            |planned: &PlannedCluster| Saved { identity: planned.identity.clone(), steps: planned.steps.clone() };
        self.clusters.iter().map(|(name, planned)| (name.clone(), saved(planned))).collect()
    }

    /// Returns the commit of a revision of git, if it is one.
    pub(crate) fn commit(&self) -> Option<&str> {
        self.revision.rsplit_once("sha1:").map(|(_, commit)| commit)
    }
}

impl PlanFile {
    /// Writes it, signed, whole or not at all.
    ///
    /// # Panics
    /// Never: a plan is plain data.
    pub(crate) fn write(&self, path: &Path, vault: &Vault) -> Result<(), PlanFileError> {
        let text = serde_json::to_string(self).expect("a plan is plain data");
        // Read once, it is what it will be when it is read again.
        let plan: Value = serde_json::from_str(&text).expect("it was just written");
        let schema = format!("{FORM}{VERSION}");
        let signature = vault.sign_plan(&plan.to_string());
        let envelope = Envelope { schema, digest: digest(plan.to_string().as_bytes()), signature, plan };
        let mut json = serde_json::to_vec_pretty(&envelope).expect("a plan is plain data");
        json.push(b'\n');
        write_whole(path, &json, MODE).map_err(|error| PlanFileError::Write(path.to_owned(), error))
    }

    /// Reads it and checks that it is not damaged.
    pub(crate) fn read(path: &Path) -> Result<Unverified, PlanFileError> {
        let bytes = fs::read(path).map_err(|error| PlanFileError::Read(path.to_owned(), error))?;
        let no_plan = || PlanFileError::NoPlan(path.to_owned());
        let value: Value = serde_json::from_slice(&bytes).map_err(|_| no_plan())?;
        let schema = value["schema"].as_str().filter(|schema| schema.starts_with(FORM)).ok_or_else(no_plan)?;
        if schema != format!("{FORM}{VERSION}") {
            return Err(PlanFileError::OtherVersion(path.to_owned(), schema.to_owned()));
        }
        let damaged = || PlanFileError::Damaged(path.to_owned());
        let envelope: Envelope = serde_json::from_value(value).map_err(|_| damaged())?;
        let text = envelope.plan.to_string();
        if digest(text.as_bytes()) != envelope.digest {
            return Err(damaged());
        }
        let plan = serde_json::from_value(envelope.plan).map_err(|_| damaged())?;
        Ok(Unverified { path: path.to_owned(), plan, text, signature: envelope.signature })
    }
}

impl Unverified {
    /// Returns the plan if this installation has written it as it is.
    pub(crate) fn verified(self, vault: &Vault) -> Result<PlanFile, PlanFileError> {
        if !vault.verifies_plan(&self.text, &self.signature) {
            return Err(PlanFileError::Forged(self.path));
        }
        Ok(self.plan)
    }
}
