//! `clusterFolders`: folders in which every kubeconfig is a cluster, and every `NAME.directory.yaml` one that is a directory.
//!
//! The names of files alone say which clusters there are. A kubeconfig that is half written, damaged or may not be
//! read is the failure of one cluster in its rounds, as one that `clusters` names, and changes no list. Labels decide what
//! a cluster is given, so a file of labels that cannot be read makes the whole list unusable, as does a folder that cannot
//! be listed or has nothing in it: it is not taken for one whose clusters are gone. A daemon that starts with such a list
//! goes on with the one that it remembers, and takes the new one when it can be used.

mod beside;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gatewright_engine::error::Chain;
use gatewright_engine::problem::{Place, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::settings::{ClusterSettings, DirectoryTarget, Settings};
use super::validate::{MAX_NAME, is_name};
use crate::basics::duration::Period;
use crate::basics::size::Size;
use crate::cluster::account::Account;
use crate::cluster::exec::allow::Exec;
use crate::cluster::kubeconfig::{self, Origin};

/// The endings of kubeconfigs.
const KUBECONFIGS: [&str; 3] = [".yaml", ".yml", ".kubeconfig"];

/// The ending of files of labels, which stand beside a kubeconfig.
const LABELS: &str = ".labels.yaml";

/// The ending of files that say where a directory is.
const DIRECTORY: &str = ".directory.yaml";

/// The settings for all kubeconfigs of folders, or of an entry of `clusterSecrets`, as `clusters.NAME.kubeconfig` has them for one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Access {
    /// Credential plugins.
    pub exec: Exec,
    /// Whether an unverified certificate, or no TLS at all, is good enough for these clusters.
    pub allow_insecure_tls: bool,
    /// The account that requests to these clusters are made as.
    pub impersonate: Option<Account>,
    /// The time limit of one request, with all its tries; a second at least.
    pub timeout: Period,
    /// The most bytes of answers of each of these clusters that are held at once.
    pub max_bytes: Size,
}

impl Default for Access {
    fn default() -> Self {
        let timeout = Period(Duration::from_secs(30));
        Self {
            exec: Exec::default(),
            allow_insecure_tls: false,
            impersonate: None,
            timeout,
            max_bytes: kubeconfig::MAX_BYTES,
        }
    }
}

impl Access {
    /// Returns how a kubeconfig is used.
    pub(crate) fn to(&self, file: &Path) -> kubeconfig::Settings {
        kubeconfig::Settings {
            path: Some(file.to_owned()),
            context: None,
            exec: self.exec.clone(),
            allow_insecure_tls: self.allow_insecure_tls,
            impersonate: self.impersonate.clone(),
            timeout: self.timeout,
            max_bytes: self.max_bytes,
            origin: Origin::Folder,
        }
    }
}

/// The contents of the folders.
#[derive(Clone, Debug, Default)]
pub(crate) struct Folders {
    /// The clusters, by name.
    pub clusters: BTreeMap<String, FolderCluster>,
    /// Files that are no cluster, and why: they may be mistakes.
    pub ignored: Vec<(PathBuf, &'static str)>,
    /// The reasons why the list is not known; the clusters are those that are remembered.
    pub unread: Vec<Problem>,
}

/// A cluster of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FolderCluster {
    /// Its kubeconfig, or what says where its directory is.
    pub file: PathBuf,
    /// Its directory, if it is one.
    directory: Option<DirectoryTarget>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// The role of a file, by its name.
#[derive(Debug, PartialEq, Eq)]
enum Role<'a> {
    Kubeconfig(&'a str),
    Directory(&'a str),
    Labels(&'a str),
    /// Hidden, or what an editor leaves behind.
    Nothing,
    Unknown,
}

impl Folders {
    /// Reads the folders of the settings, whose paths are absolute. `place` says where the setting of each stands.
    pub(super) fn read(folders: &[PathBuf], place: impl Fn(usize) -> Place) -> Result<Self, Vec<Problem>> {
        let (mut found, mut problems) = (Self::default(), Vec::new());
        for (index, folder) in folders.iter().enumerate() {
            if let Err(error) = found.read_one(folder, &mut problems) {
                let message = format!("cannot read the cluster folder {}: {}", folder.display(), Chain(&error));
                let hint = "one that cannot be read is not taken for an empty one: make, mount or unlock it";
                problems.push(Problem::file(place(index), message).hint(hint));
            } else if !found.clusters.values().any(|cluster| cluster.file.parent() == Some(folder)) {
                let message = format!("the cluster folder {} has no kubeconfig in it", folder.display());
                let hint = "put NAME.yaml there for each cluster (NAME.directory.yaml for a directory), or take the folder out of clusterFolders";
                problems.push(Problem::file(place(index), message).hint(hint));
            }
        }
        if problems.is_empty() { Ok(found) } else { Err(problems) }
    }

    fn read_one(&mut self, folder: &Path, problems: &mut Vec<Problem>) -> std::io::Result<()> {
        let entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
        let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        files.sort();
        let mut labels: BTreeMap<String, PathBuf> = BTreeMap::new();
        for file in files {
            match role(file.file_name().and_then(|name| name.to_str()).unwrap_or_default()) {
                Role::Kubeconfig(name) => problems.extend(self.add(name, &file, None)),
                Role::Directory(name) => match beside::directory(&file) {
                    Ok(directory) => problems.extend(self.add(name, &file, Some(directory))),
                    Err(mistakes) => problems.extend(mistakes),
                },
                Role::Labels(name) => drop(labels.insert(name.to_owned(), file)),
                Role::Nothing => {}
                Role::Unknown => {
                    self.ignored.push((file, "a kubeconfig there is named NAME.yaml, NAME.yml or NAME.kubeconfig"));
                }
            }
        }
        for (name, file) in labels {
            match self.clusters.get_mut(&name).filter(|cluster| cluster.file.parent() == Some(folder)) {
                None => self.ignored.push((file, "there is no kubeconfig of this name beside it")),
                Some(cluster) => match beside::labels(&file) {
                    Ok(labels) => cluster.labels = labels,
                    Err(mistakes) => problems.extend(mistakes),
                },
            }
        }
        Ok(())
    }

    /// Adds a cluster, or returns why it cannot be one.
    fn add(&mut self, name: &str, file: &Path, directory: Option<DirectoryTarget>) -> Option<Problem> {
        let problem = |message: String, hint: &str| {
            let place = Place::file(file.to_string_lossy().into_owned());
            Some(Problem::file(place, message).hint(hint))
        };
        if !is_name(name) {
            let hint = format!("name the file by up to {MAX_NAME} lower-case letters, digits and dashes");
            return problem(format!("{name:?} cannot be the name of a cluster"), &hint);
        }
        // A link that leads nowhere is the kubeconfig of a cluster all the same: it cannot be read.
        if fs::metadata(file).is_ok_and(|metadata| !metadata.is_file()) {
            return problem("it is named as a kubeconfig, and is no file".to_owned(), "remove or rename it");
        }
        if let Some(other) = self.clusters.get(name) {
            return problem(format!("cluster {name:?} is also {}", other.file.display()), "keep one of the two");
        }
        let cluster = FolderCluster { file: file.to_owned(), directory, labels: BTreeMap::new() };
        self.clusters.insert(name.to_owned(), cluster);
        None
    }

    /// Takes remembered clusters for the list that is not known: of the folders of the settings, and of names that no other
    /// cluster has.
    ///
    /// A directory without the file that says where it is may not be mounted: it is a cluster that fails, and nothing is
    /// written there.
    pub(super) fn recall(&mut self, remembered: BTreeMap<String, FolderCluster>, settings: &Settings) {
        let is_meant = |name: &String, cluster: &FolderCluster| {
            let is_configured = settings.cluster_folders.iter().any(|folder| cluster.file.parent() == Some(folder));
            is_configured && !settings.clusters.contains_key(name)
        };
        self.clusters = remembered.into_iter().filter(|(name, cluster)| is_meant(name, cluster)).collect();
        for cluster in self.clusters.values_mut().filter(|cluster| !cluster.file.is_file()) {
            cluster.directory = None;
        }
    }

    /// Tells whether the list is known.
    pub(crate) fn is_whole(&self) -> bool {
        self.unread.is_empty()
    }

    /// Adds the clusters to the settings, all or none; `place` says where a cluster stands there.
    pub(super) fn join(&self, settings: &mut Settings, place: impl Fn(&str) -> Place) -> Vec<Problem> {
        let twice = self.clusters.iter().filter(|(name, _)| settings.clusters.contains_key(*name));
        let problem = |(name, cluster): (&String, &FolderCluster)| {
            let message = format!("cluster {name:?} is also {}, in a cluster folder", cluster.file.display());
            Problem::file(place(name), message).hint("keep one of the two, or rename one")
        };
        let problems: Vec<Problem> = twice.map(problem).collect();
        if !problems.is_empty() {
            return problems;
        }
        for (name, cluster) in &self.clusters {
            let access = &settings.cluster_folder_access;
            let kubeconfig = cluster.directory.is_none().then(|| access.to(&cluster.file));
            let (directory, labels) = (cluster.directory.clone(), cluster.labels.clone());
            let cluster = ClusterSettings { kubeconfig, directory, labels, ..ClusterSettings::default() };
            settings.clusters.insert(name.clone(), cluster);
        }
        Vec::new()
    }

    /// Takes the clusters out of the settings.
    pub(crate) fn leave(&self, settings: &mut Settings) {
        settings.clusters.retain(|name, _| !self.clusters.contains_key(name));
    }
}

fn role(name: &str) -> Role<'_> {
    if name.starts_with('.') || name.starts_with('#') || name.ends_with('~') {
        return Role::Nothing;
    }
    if let Some(name) = name.strip_suffix(LABELS) {
        return Role::Labels(name);
    }
    if let Some(name) = name.strip_suffix(DIRECTORY) {
        return Role::Directory(name);
    }
    match KUBECONFIGS.iter().find_map(|ending| name.strip_suffix(ending)) {
        Some(name) => Role::Kubeconfig(name),
        None => Role::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Reads a folder with these files, and returns the clusters with their labels, what is ignored, and the problems.
    fn read(files: &[(&str, &str)]) -> (Vec<String>, Vec<String>, String) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in files {
            fs::write(folder.path().join(name), text).expect("a temporary folder can be written");
        }
        symlink("nowhere", folder.path().join("link.yaml")).expect("a temporary folder can be written");
        let name = |path: &Path| path.file_name().expect("it is a file").to_string_lossy().into_owned();
        match Folders::read(&[folder.path().to_owned()], |_| Place::file("config")) {
            Ok(found) => {
                let told = |(name, it): (&String, &FolderCluster)| format!("{name} {:?}", it.labels);
                let ignored = found.ignored.iter().map(|(file, _)| name(file)).collect();
                (found.clusters.iter().map(told).collect(), ignored, String::new())
            }
            Err(problems) => {
                let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
                (Vec::new(), Vec::new(), problems.join("\n").replace(&*folder.path().to_string_lossy(), ""))
            }
        }
    }

    #[test]
    fn names_of_files_are_those_of_clusters() {
        let files = [
            ("eu-1.yaml", "half writ"),
            ("eu-2.yml", ""),
            ("us-1.kubeconfig", ""),
            ("eu-1.labels.yaml", "{region: eu}"),
            (".us-2.yaml.swp", ""),
            ("eu-1.yaml~", ""),
            ("#eu-1.yaml#", ""),
            ("us-3.conf", ""),
            ("us-4.labels.yaml", "{region: us}"),
            ("lab.directory.yaml", "path: rendered/lab"),
            ("lab.labels.yaml", "{region: eu}"),
        ];
        let (clusters, ignored, problems) = read(&files);
        assert_eq!(problems, "");
        assert_eq!(
            clusters,
            ["eu-1 {\"region\": \"eu\"}", "eu-2 {}", "lab {\"region\": \"eu\"}", "link {}", "us-1 {}"]
        );
        assert_eq!(ignored, ["us-3.conf", "us-4.labels.yaml"]);
    }

    #[test]
    fn a_list_that_is_not_certain_is_none() {
        let check = |files: &[(&str, &str)], expected: &str| {
            let (clusters, _, problems) = read(files);
            assert!(clusters.is_empty() && problems.contains(expected), "{clusters:?} {problems}");
        };
        check(&[("a.yaml", ""), ("a.yml", "")], "/a.yml: cluster \"a\" is also /a.yaml");
        check(&[("a.yaml", ""), ("a.directory.yaml", "path: a")], "/a.yaml: cluster \"a\" is also /a.directory.yaml");
        check(&[("a.directory.yaml", "")], "/a.directory.yaml: it is empty");
        check(&[("a.directory.yaml", "path:")], "/a.directory.yaml:1");
        check(&[("a.directory.yaml", "pat: a")], "/a.directory.yaml:1");
        check(&[("EU_1.yaml", "")], "\"EU_1\" cannot be the name of a cluster");
        check(&[("a.yaml", ""), ("a.labels.yaml", "")], "/a.labels.yaml: it is empty");
        check(&[("a.yaml", ""), ("a.labels.yaml", "tier: 1")], "/a.labels.yaml:1");
        check(&[("a.yaml", ""), ("a.labels.yaml", "region: [eu")], "/a.labels.yaml:");
        check(&[("a.yaml", ""), ("a.labels.yaml", "[eu]")], "/a.labels.yaml:1");
    }

    #[test]
    fn a_folder_without_kubeconfigs_is_none_without_clusters() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let check = |path: PathBuf, expected: &str| {
            let problems = Folders::read(&[path], |_| Place::file("config")).expect_err(expected);
            assert!(problems[0].message.contains(expected), "{}", problems[0]);
        };
        check(folder.path().to_owned(), "has no kubeconfig in it");
        check(folder.path().join("gone"), "cannot read the cluster folder");
        fs::create_dir(folder.path().join("a.yaml")).expect("a temporary folder can be written");
        check(folder.path().to_owned(), "is no file");
    }
}
