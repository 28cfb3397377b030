//! The notifications that wait for a webhook: a file for each, named by its time first, so that names are their order.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::folder;
use crate::basics::private::{lock_file, no_link};
use crate::state::{State, StateError, write_file};

/// More than this is no news any more.
const MOST: usize = 100;

/// The folder of a webhook.
#[derive(Debug)]
pub(super) struct Queue {
    /// The state folder.
    root: PathBuf,
    folder: PathBuf,
}

/// One notification.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The id by which it is known, the same in every try.
    pub(super) id: String,
    /// The body that is to be sent.
    pub(super) body: Vec<u8>,
    path: PathBuf,
}

impl Queue {
    pub(super) fn new(state: &State, name: &str) -> Self {
        Self { root: state.path(""), folder: folder(state).join(name) }
    }

    /// Adds one; when this returns it is on the disk. Returns how many of the oldest had to make room.
    pub(super) fn put(&self, id: &str, body: &[u8]) -> Result<usize, StateError> {
        let path = self.folder.join(format!("{id}.json"));
        no_link(&self.root, &path).map_err(|error| StateError::Write(path.clone(), error))?;
        write_file(&path, body)?;
        let files = self.files();
        let lost = files.len().saturating_sub(MOST);
        files.iter().take(lost).for_each(remove);
        Ok(lost)
    }

    /// Returns the one that waits longest; one that cannot be read is passed over.
    pub(super) fn oldest(&self) -> Option<Waiting> {
        self.files().into_iter().find_map(|path| {
            let id = path.file_stem()?.to_str()?.to_owned();
            let body = fs::read(&path).ok()?;
            Some(Waiting { id, body, path })
        })
    }

    pub(super) fn len(&self) -> usize {
        self.files().len()
    }

    /// Drops everything, and returns how much that was.
    pub(super) fn clear(&self) -> usize {
        let number = self.len();
        // What is left of it does nobody harm.
        if no_link(&self.root, &self.folder).is_ok() {
            drop(fs::remove_dir_all(&self.folder));
        }
        number
    }

    /// Makes sure that no other process sends the same; `None` if one does. It ends with the returned file. There must
    /// have been a notification.
    pub(super) fn lock(&self) -> io::Result<Option<File>> {
        let path = self.folder.join("lock");
        no_link(&self.root, &path)?;
        let file = lock_file(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        if no_link(&self.root, &self.folder).is_err() {
            return Vec::new();
        }
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut files: Vec<PathBuf> =
            entries.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect();
        files.sort();
        files
    }
}

impl Waiting {
    /// Takes it out of the queue.
    pub(super) fn finish(&self) {
        remove(&self.path);
    }
}

/// One that is gone already was sent by somebody else.
fn remove(path: impl AsRef<Path>) {
    drop(fs::remove_file(path));
}

/// Returns the names of all webhooks for which something was left once.
pub(super) fn names(state: &State) -> Vec<String> {
    let entries = fs::read_dir(folder(state)).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_in_order_and_bounded() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let state = State::open(folder.path());
        let queue = Queue::new(&state, "ops");
        assert!(queue.oldest().is_none());
        for number in (0..MOST).rev() {
            assert_eq!(queue.put(&format!("n{number:03}"), b"{}").expect("it is written"), 0);
        }
        assert_eq!(queue.oldest().expect("there is one").id, "n000");
        assert_eq!(queue.put("n999", b"{}").expect("it is written"), 1);
        assert_eq!((queue.len(), queue.oldest().expect("there is one").id), (MOST, "n001".to_owned()));
        queue.oldest().expect("there is one").finish();
        assert_eq!((queue.len(), names(&state)), (MOST - 1, vec!["ops".to_owned()]));
        assert_eq!((queue.clear(), queue.len()), (MOST - 1, 0));
    }

    #[test]
    fn one_process_sends_at_a_time() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let queue = Queue::new(&State::open(folder.path()), "ops");
        queue.put("n1", b"{}").expect("it is written");
        let lock = queue.lock().expect("it can be written").expect("nobody has it");
        assert!(queue.lock().expect("it can be written").is_none());
        drop(lock);
        assert!(queue.lock().expect("it can be written").is_some());
    }
}
