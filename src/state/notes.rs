//! Notes of which files of the state folder were changed, for whoever keeps copies of them elsewhere.

use std::collections::BTreeSet;
use std::mem;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::basics::lock::lock;

/// The paths of files that were written or removed and of which nobody has made a copy yet.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    paths: Mutex<BTreeSet<PathBuf>>,
    /// The clock of this host is right, as others see it.
    is_time_known: AtomicBool,
}

impl Notes {
    /// Adds a path.
    pub(crate) fn add(&self, path: PathBuf) {
        lock(&self.paths).insert(path);
    }

    /// Says whether the clock of this host agrees with that of others.
    pub(crate) fn knows_time(&self, is_known: bool) {
        self.is_time_known.store(is_known, Ordering::Relaxed);
    }

    /// Tells whether what is too old may be deleted: for all hosts, so that none does it by a clock of its own.
    pub(crate) fn may_expire(&self) -> bool {
        self.is_time_known.load(Ordering::Relaxed)
    }

    /// Adds paths that were taken and not dealt with.
    pub(crate) fn put_back(&self, paths: BTreeSet<PathBuf>) {
        lock(&self.paths).extend(paths);
    }

    /// Returns all paths, and forgets them.
    pub(crate) fn take(&self) -> BTreeSet<PathBuf> {
        mem::take(&mut *lock(&self.paths))
    }
}
