//! The notifications that wait for a webhook: a file for each, named by its time first, so that names are their order.

use std::fs::{self, File};
use std::io;

use crate::basics::private::{no_link, try_lock};
use crate::state::{State, StateError};

/// The folder of all that waits, below the state folder: one for each webhook.
pub(super) const FOLDER: &str = "webhooks";

/// The ending of the names of what waits until it is told with others.
const PENDING: &str = ".pending";

/// More than this is no news any more.
const MOST: usize = 100;

/// The folder of a webhook.
#[derive(Debug)]
pub(super) struct Queue {
    state: State,
    folder: String,
}

#[derive(Debug)]
pub(super) struct Waiting {
    /// The id by which it is known, the same in every try.
    pub(super) id: String,
    /// The body that is to be sent.
    pub(super) body: Vec<u8>,
}

impl Queue {
    pub(super) fn new(state: &State, name: &str) -> Self {
        Self { state: state.clone(), folder: format!("{FOLDER}/{name}") }
    }

    /// Adds one; when this returns it is on the disk. Returns how many of the oldest had to make room.
    pub(super) fn put(&self, id: &str, body: &[u8]) -> Result<usize, StateError> {
        self.state.write(self.path(id), body)?;
        let ids = self.ids();
        let lost = ids.len().saturating_sub(MOST);
        ids.iter().take(lost).for_each(|id| self.remove(id));
        Ok(lost)
    }

    /// Returns the one that waits longest; one that cannot be read is passed over.
    pub(super) fn oldest(&self) -> Option<Waiting> {
        let read = |id: String| Some(Waiting { body: self.state.read(self.path(&id)).ok()??, id });
        self.ids().into_iter().find_map(read)
    }

    /// Takes one out. If it is gone already, somebody else has sent it.
    pub(super) fn remove(&self, id: &str) {
        drop(self.state.remove(self.path(id)));
    }

    /// Writes down what waits of a sync before it is a notification.
    pub(super) fn write_pending(&self, sync: &str, bytes: &[u8]) -> Result<(), StateError> {
        self.state.write(self.pending_path(sync), bytes)
    }

    pub(super) fn read_pending(&self, sync: &str) -> Option<Vec<u8>> {
        self.state.read(self.pending_path(sync)).ok()?
    }

    pub(super) fn remove_pending(&self, sync: &str) {
        drop(self.state.remove(self.pending_path(sync)));
    }

    /// Returns the syncs of which something waits so.
    pub(super) fn syncs_pending(&self) -> Vec<String> {
        let names = self.state.names(&self.folder);
        names.iter().filter_map(|name| name.strip_suffix(PENDING)).map(str::to_owned).collect()
    }

    fn pending_path(&self, sync: &str) -> String {
        format!("{}/{sync}{PENDING}", self.folder)
    }

    pub(super) fn len(&self) -> usize {
        self.ids().len()
    }

    /// Drops everything, and returns how much that was.
    pub(super) fn clear(&self) -> usize {
        let number = self.len();
        let folder = self.state.path(&self.folder);
        // What is left of it does nobody harm.
        drop(no_link(&self.state.path(""), &folder).and_then(|()| fs::remove_dir_all(folder)));
        number
    }

    /// Makes sure that no other process sends the same; `None` if one does. It ends with the returned file. There must
    /// have been a notification.
    pub(super) fn lock(&self) -> io::Result<Option<File>> {
        let path = self.state.path(&self.folder).join("lock");
        no_link(&self.state.path(""), &path).and_then(|()| try_lock(&path))
    }

    fn path(&self, id: &str) -> String {
        format!("{}/{id}.json", self.folder)
    }

    fn ids(&self) -> Vec<String> {
        let names = self.state.names(&self.folder);
        names.iter().filter_map(|name| name.strip_suffix(".json")).map(str::to_owned).collect()
    }
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
        queue.remove(&queue.oldest().expect("there is one").id);
        assert_eq!((queue.len(), state.names(FOLDER)), (MOST - 1, vec!["ops".to_owned()]));
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
