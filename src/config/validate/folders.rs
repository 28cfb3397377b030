//! Folders that must not lie in each other.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use super::Checks;
use crate::config::settings::{ClusterSettings, Settings, SourceSettings};

/// Finds the real path of a directory, which may not exist yet.
struct Whereabouts {
    /// Without symbolic links, as far as it exists.
    path: PathBuf,
    /// Device and number of what exists: a directory may be mounted in two places.
    identity: Option<(u64, u64)>,
}

impl Whereabouts {
    fn of(path: &Path) -> Self {
        let there = |above: &Path| Some((above.canonicalize().ok()?, path.strip_prefix(above).ok()?));
        let (mut real, rest) = path.ancestors().find_map(there).unwrap_or((PathBuf::new(), path));
        for part in rest.components() {
            // What does not exist is no link that could lead elsewhere.
            match part {
                Component::ParentDir => {
                    real.pop();
                }
                part => real.push(part),
            }
        }
        let identity = real.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()));
        Self { path: real, identity }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.is_within(other) || other.is_within(self)
    }

    /// Tells whether it is there, or in it.
    fn is_within(&self, other: &Self) -> bool {
        let is_same = self.identity.is_some() && self.identity == other.identity;
        is_same || self.path.starts_with(&other.path)
    }
}

impl Checks<'_> {
    /// Checks that no two clusters share a directory: what one has in it the other would delete.
    pub(super) fn directories(&mut self, clusters: &BTreeMap<String, ClusterSettings>) {
        let paths = clusters.iter().filter_map(|(name, cluster)| Some((name, &cluster.directory.as_ref()?.path)));
        let places: Vec<(&String, Whereabouts)> = paths.map(|(name, path)| (name, Whereabouts::of(path))).collect();
        for (index, (name, place)) in places.iter().enumerate() {
            let alias = places[..index].iter().find(|(_, other)| place.overlaps(other));
            let Some((other, _)) = alias else { continue };
            let message =
                format!("clusters {other:?} and {name:?} share a directory, or one lies in that of the other");
            let hint = "give each a directory of its own, or have the syncs of both select one of the two";
            self.problem(&["clusters", name, "directory", "path"], message, Some(hint));
        }
    }

    /// Checks that no source reads what this program writes: each round would be a reason for another one.
    pub(super) fn sources(&mut self, settings: &Settings, state_dir: &Path) {
        let clusters = settings.clusters.iter().filter_map(|(name, cluster)| {
            Some((format!("the folder of cluster {name:?}"), Whereabouts::of(&cluster.directory.as_ref()?.path)))
        });
        let state = ("the state directory".to_owned(), Whereabouts::of(state_dir));
        let written: Vec<(String, Whereabouts)> = clusters.chain([state]).collect();
        for (name, source) in &settings.sources {
            let SourceSettings { directory: Some(directory), .. } = source else { continue };
            let source = Whereabouts::of(&directory.path);
            for (what, _) in written.iter().filter(|(_, place)| place.is_within(&source)) {
                let message =
                    format!("source {name:?} has {what} in it, and would read what is written there as specs");
                let hint = "keep the specs in a folder of their own";
                self.problem(&["sources", name, "directory", "path"], message, Some(hint));
            }
        }
    }
}
