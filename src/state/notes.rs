//! Notes of which files of the state folder were changed, for whoever keeps copies of them elsewhere.

use std::collections::BTreeSet;
use std::mem;
use std::path::PathBuf;
use std::sync::Mutex;

use crate::basics::lock::lock;

/// The paths of files that were written or removed and of which nobody has made a copy yet.
#[derive(Debug, Default)]
pub(crate) struct Notes(Mutex<BTreeSet<PathBuf>>);

impl Notes {
    /// Adds a path.
    pub(crate) fn add(&self, path: PathBuf) {
        lock(&self.0).insert(path);
    }

    /// Adds paths that were taken and not dealt with.
    pub(crate) fn put_back(&self, paths: BTreeSet<PathBuf>) {
        lock(&self.0).extend(paths);
    }

    /// Returns all paths, and forgets them.
    pub(crate) fn take(&self) -> BTreeSet<PathBuf> {
        mem::take(&mut *lock(&self.0))
    }
}
