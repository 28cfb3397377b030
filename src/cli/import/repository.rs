//! The folder that an import writes: specs, and a config file with one sync that only compares.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use gatewright_engine::plan::deployer::settings::Proposal;
use gatewright_engine::yaml;
use serde_json::{Value, json};

use crate::cli::first_config::{FILE, FirstConfig, said};
use crate::cluster::directory::Problem;
use crate::cluster::directory::file::{FOR_ALL, write};
use crate::cluster::kubeconfig;
use crate::config::settings::Mode;

/// The folder of the specs.
const SPECS: &str = "specs";

/// A folder with a config file and specs.
pub(super) struct Repository {
    folder: PathBuf,
    /// The name of the cluster, and of the sync.
    name: String,
    kubeconfig: Value,
}

impl Repository {
    /// Begins one in a folder that is empty or not there.
    pub(super) fn new(folder: &Path, name: &str, kubeconfig: &kubeconfig::Settings) -> io::Result<Self> {
        match fs::read_dir(folder) {
            Ok(mut entries) => {
                // What version control keeps there is in nobody's way.
                if entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() != ".git")) {
                    return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is not empty"));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(Self { folder: folder.to_owned(), name: name.to_owned(), kubeconfig: said(kubeconfig)? })
    }

    /// Returns the folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns its config file.
    pub(super) fn config_file(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// Writes the specs.
    pub(super) fn write_specs(&self, documents: &BTreeMap<String, Value>) -> Result<(), Problem> {
        let root = self.folder.join(SPECS);
        write(&self.folder, Path::new(".gitignore"), "/state/\n", FOR_ALL)?;
        for (path, document) in documents {
            write(&root, Path::new(path), &format!("{}\n", yaml::to_string(document).trim_end()), FOR_ALL)?;
        }
        Ok(())
    }

    /// Writes the config file, with settings of packs.
    pub(super) fn write_config(&self, packs: &BTreeMap<String, Value>) -> Result<(), Problem> {
        let config = FirstConfig {
            name: self.name.clone(),
            source: json!({"directory": {"path": format!("./{SPECS}")}}),
            kubeconfig: self.kubeconfig.clone(),
            packs: packs.clone(),
            mode: Mode::Report,
        };
        write(&self.folder, Path::new(FILE), &config.text(), FOR_ALL)
    }
}

/// Returns of each pack the settings with which most of what is there was made.
pub(super) fn most(proposals: &[Proposal]) -> BTreeMap<String, Value> {
    let mut most: BTreeMap<&str, &Proposal> = BTreeMap::new();
    for proposal in proposals {
        let first = most.entry(&proposal.pack).or_insert(proposal);
        if proposal.made.len() > first.made.len() {
            *first = proposal;
        }
    }
    most.into_iter().map(|(pack, proposal)| (pack.to_owned(), proposal.settings.clone())).collect()
}

#[cfg(test)]
mod tests {
    use gatewright_engine::object::ObjectId;

    use super::*;

    #[test]
    fn settings_are_those_of_most() {
        let proposal = |version: &str, made: usize| Proposal {
            manager: "m".to_owned(),
            pack: "acme".to_owned(),
            settings: json!({"version": version}),
            made: (0..made).map(|number| ObjectId::new("apps", "Deployment", "a", &number.to_string())).collect(),
        };
        let most = most(&[proposal("v1", 1), proposal("v2", 3), proposal("v3", 2)]);
        assert_eq!(most, BTreeMap::from([("acme".to_owned(), json!({"version": "v2"}))]));
    }

    #[test]
    fn a_folder_with_something_in_it_is_left_alone() {
        let folder = tempfile::tempdir().expect("a test may");
        let new = |path: &Path| Repository::new(path, "prod", &kubeconfig::Settings::default()).map(|_| ());
        assert!(new(&folder.path().join("new")).is_ok());
        fs::create_dir(folder.path().join(".git")).expect("a test may");
        assert!(new(folder.path()).is_ok(), "a repository without a commit is as good as empty");
        fs::write(folder.path().join("a"), "").expect("a test may");
        let refused = new(folder.path()).expect_err("there is a file");
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert!(new(&folder.path().join("a")).is_err(), "a file is no folder");
    }
}
