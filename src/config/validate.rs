//! What a schema cannot say about settings: names that lead somewhere, choices of exactly one, paths.

use std::collections::BTreeMap;

use gatewright_engine::check::suggest;
use gatewright_engine::problem::Problem;
use gatewright_engine::yaml::Node;

use super::Reader;
use super::settings::{ClusterSettings, Settings, SourceSettings, SyncSettings};
use crate::paths::{NoCredentials, Paths};
use crate::schedule::Schedule;

/// Names become labels, folders and parts of object names; 40 characters leave room for what is added.
const MAX_NAME: usize = 40;

/// Checks what a schema cannot, and makes all paths absolute.
pub(super) fn validate(reader: &Reader, root: &Node, settings: &mut Settings, paths: &Paths) -> Vec<Problem> {
    let mut checks = Checks { reader, root, problems: Vec::new() };
    checks.names("sources", settings.sources.keys());
    checks.names("clusters", settings.clusters.keys());
    checks.names("syncs", settings.syncs.keys());
    for (name, source) in &mut settings.sources {
        checks.source(name, source, paths);
    }
    for (name, cluster) in &mut settings.clusters {
        checks.cluster(name, cluster, paths);
    }
    for (name, sync) in &settings.syncs {
        checks.sync(name, sync, settings);
    }
    checks.problems
}

struct Checks<'a> {
    reader: &'a Reader,
    root: &'a Node,
    problems: Vec<Problem>,
}

impl Checks<'_> {
    fn problem(&mut self, path: &[&str], message: String, hint: Option<String>) {
        let place = self.reader.place(self.root, path);
        self.problems.push(Problem { hint, ..Problem::file(place, message) });
    }

    fn names<'a>(&mut self, what: &str, names: impl Iterator<Item = &'a String>) {
        for name in names {
            let is_valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_valid) {
                let message = format!(
                    "{name:?} in {what} is no name: up to {MAX_NAME} lower-case letters, digits and dashes are"
                );
                self.problem(&[what, name], message, None);
            }
        }
    }

    fn source(&mut self, name: &str, source: &mut SourceSettings, paths: &Paths) {
        match (&mut source.git, &mut source.directory) {
            (Some(git), None) => {
                self.credentials(&["sources", name, "git"], git.resolve(paths));
                if let Err(conflict) = git.check() {
                    self.problem(&["sources", name, "git"], conflict.to_string(), None);
                }
            }
            (None, Some(directory)) => self.credentials(&["sources", name, "directory"], directory.resolve(paths)),
            _ => self.problem(&["sources", name], format!("source {name:?} needs one of git and directory"), None),
        }
    }

    fn cluster(&mut self, name: &str, cluster: &mut ClusterSettings, paths: &Paths) {
        match (&mut cluster.kubeconfig, &mut cluster.directory) {
            (Some(kubeconfig), None) => {
                if let Some(path) = &mut kubeconfig.path {
                    match paths.resolve(path) {
                        Ok(resolved) => *path = resolved,
                        Err(error) => self.credentials(&["clusters", name, "kubeconfig", "path"], Err(error)),
                    }
                }
            }
            (None, Some(directory)) => directory.path = paths.base.join(&directory.path),
            _ => {
                let hint = "kubeconfig: {} takes the kubeconfig that kubectl would take".to_owned();
                self.problem(
                    &["clusters", name],
                    format!("cluster {name:?} needs one of kubeconfig and directory"),
                    Some(hint),
                );
            }
        }
    }

    fn credentials(&mut self, path: &[&str], result: Result<(), NoCredentials>) {
        if let Err(error) = result {
            let hint = "add LoadCredential= to the unit, or give a path".to_owned();
            self.problem(path, error.to_string(), Some(hint));
        }
    }

    fn sync(&mut self, name: &str, sync: &SyncSettings, settings: &Settings) {
        self.reference(&["syncs", name, "source"], "source", &sync.source, &settings.sources);
        for cluster in sync.clusters.names.iter().flatten() {
            self.reference(&["syncs", name, "clusters", "names"], "cluster", cluster, &settings.clusters);
        }
        if !settings.clusters.iter().any(|(name, cluster)| sync.clusters.selects(name, &cluster.labels)) {
            let hint = "name clusters, or select them by matchLabels".to_owned();
            self.problem(&["syncs", name, "clusters"], format!("sync {name:?} selects no cluster"), Some(hint));
        }
        if let Err(error) = Schedule::parse(&sync.schedule) {
            self.problem(
                &["syncs", name, "schedule"],
                gatewright_engine::error::Chain(&error).to_string(),
                error.hint(),
            );
        }
    }

    fn reference<T>(&mut self, path: &[&str], what: &str, name: &str, known: &BTreeMap<String, T>) {
        if known.contains_key(name) {
            return;
        }
        let near = suggest(name, known.keys().map(String::as_str));
        let hint = near.map(|near| format!("did you mean {near:?}?"));
        self.problem(path, format!("there is no {what} {name:?}"), hint);
    }
}
