//! Notes of which files of the state folder were changed, for whoever keeps copies of them elsewhere.
//!
//! A note stays until somebody has dealt with what it is about, so that whoever asks meanwhile sees that there is something
//! to be done, and so that nothing is forgotten because of an error or of somebody who did not wait.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::basics::lock::lock;

/// Paths of files that were written or removed, each with the number of its last note.
pub(crate) type Noted = BTreeMap<PathBuf, u64>;

/// The paths of files that were written or removed and of which nobody has made a copy yet.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    now: Mutex<Now>,
    /// The clock of this host is right, as others see it.
    is_time_known: AtomicBool,
}

#[derive(Debug, Default)]
struct Now {
    last: u64,
    paths: Noted,
    /// The paths that are being changed and will be noted in a moment, and how many do that.
    under_way: BTreeMap<PathBuf, usize>,
}

/// A file, or all in a folder, that is being changed, until this is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay<'a> {
    notes: &'a Notes,
    path: PathBuf,
}

impl Notes {
    /// Adds a path.
    pub(crate) fn add(&self, path: PathBuf) {
        let now = &mut *lock(&self.now);
        now.last += 1;
        now.paths.insert(path, now.last);
    }

    /// Says that a path is about to be changed, and noted before the result is dropped: a removal can be seen before it is
    /// noted.
    pub(crate) fn under_way(&self, path: PathBuf) -> UnderWay<'_> {
        *lock(&self.now).under_way.entry(path.clone()).or_default() += 1;
        UnderWay { notes: self, path }
    }

    /// Tells whether a file or a folder that it is in is noted, or is being changed.
    pub(crate) fn is_about(&self, path: &Path) -> bool {
        let now = lock(&self.now);
        path.ancestors().any(|path| now.paths.contains_key(path) || now.under_way.contains_key(path))
    }

    /// Says whether the clock of this host agrees with that of others.
    pub(crate) fn knows_time(&self, is_known: bool) {
        self.is_time_known.store(is_known, Ordering::Relaxed);
    }

    /// Tells whether what is too old may be deleted: for all hosts, so that none does it by a clock of its own.
    pub(crate) fn may_expire(&self) -> bool {
        self.is_time_known.load(Ordering::Relaxed)
    }

    /// Returns all paths.
    pub(crate) fn all(&self) -> Noted {
        lock(&self.now).paths.clone()
    }

    /// Forgets paths that were dealt with, but for those that were noted again since.
    pub(crate) fn done(&self, noted: &Noted) {
        lock(&self.now).paths.retain(|path, number| noted.get(path) != Some(number));
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let under_way = &mut lock(&self.notes.now).under_way;
        if let Some(count) = under_way.get_mut(&self.path) {
            *count -= 1;
            if *count == 0 {
                under_way.remove(&self.path);
            }
        }
    }
}
