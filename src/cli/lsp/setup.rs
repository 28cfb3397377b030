//! What documents are checked and completed by: the config file, packs, and the schemas of kinds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use gatewright_engine::editor::{self, KindVersion};
use gatewright_engine::pack::Packs;
use gatewright_engine::problem::Problem;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::Source;
use serde_json::Value;

use crate::cli::render::{Specs, packs};
use crate::cli::{Context, Failure, check};
use crate::config::{Config, ConfigError};
use crate::report::ProblemReport;

/// What documents are checked and completed by.
pub(super) struct Setup {
    /// The config file, if there is one.
    pub(super) config: Option<Config>,
    /// The packs, with its settings.
    pub(super) packs: Arc<Packs>,
    /// All kinds that have a schema.
    pub(super) kinds: Vec<KindVersion>,
    schemas: Mutex<BTreeMap<KindVersion, Option<Arc<Value>>>>,
}

/// The outcome of reading a config file anew.
pub(super) struct Reading {
    /// The setup; none if the config file, or a pack, cannot be used.
    pub(super) setup: Option<Setup>,
    /// All that is wrong with the config file.
    pub(super) problems: Vec<Problem>,
    /// What else is wrong, in words.
    pub(super) failure: Option<String>,
}

impl Setup {
    /// Reads the config file, whose text somebody may have in an editor, and packs.
    pub(super) fn read(context: &Context, file: Option<&Path>, text: Option<&str>) -> Reading {
        let failed = |failure: Failure| Some(failure.message);
        let nothing = Reading { setup: None, problems: Vec::new(), failure: None };
        let config = file.map(|file| match text {
            Some(text) => context.parse(file, text),
            None => context.read(file),
        });
        match config.transpose() {
            Err(ConfigError::Problems(problems)) => Reading { problems, ..nothing },
            Err(error) => Reading { failure: failed(error.into()), ..nothing },
            Ok(config) => match packs(context, config.as_ref()) {
                Ok(packs) => Reading { setup: Some(Self::new(config, packs)), ..nothing },
                Err(failure) => Reading { failure: failed(failure), ..nothing },
            },
        }
    }

    /// Takes packs, and the config file that they are of.
    pub(super) fn new(config: Option<Config>, packs: Arc<Packs>) -> Self {
        let kinds = editor::kinds(&packs);
        Self { config, packs, kinds, schemas: Mutex::default() }
    }

    /// Returns what `check` finds in some files.
    pub(super) fn findings(&self, tree: &Tree) -> Vec<ProblemReport> {
        if tree.is_empty() {
            return Vec::new();
        }
        let source = Source::load(tree, &self.packs, None);
        let (config, packs, tree) = (self.config.clone(), Arc::clone(&self.packs), tree.clone());
        check::findings(&Specs { config, packs, source, tree }).0
    }

    /// Returns the schema of a kind; a kind that does not say its version has the newest.
    pub(super) fn schema(&self, api_version: &str, kind: &str) -> Option<Arc<Value>> {
        let is_of = |of: &&KindVersion| of.kind == kind && of.api_version() == api_version;
        let of = self.kinds.iter().find(is_of)?;
        let mut schemas = self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        let schema = schemas.entry(of.clone()).or_insert_with(|| editor::schema(&self.packs, of).map(Arc::new));
        schema.clone()
    }

    /// Returns folders and files that hold no specs: the config file, and the folders that it names.
    pub(super) fn others(&self) -> Vec<PathBuf> {
        let Some(config) = &self.config else { return Vec::new() };
        let folders = config.settings.pack_folders.iter().chain(&config.settings.crd_folders);
        folders.chain(&config.settings.cluster_folders).chain([&config.file]).cloned().collect()
    }
}
