//! Locks by which one file at a time is made alike: by whoever exchanges all files with the store, by whoever pushes what is
//! new, and by other processes of this host.
//!
//! A lock is held for one file, and never two at once, so that nobody waits for longer than one file takes. Files share a
//! fixed number of locks: those of files that are gone would have to be removed.

use gatewright_engine::text::digest;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::sleep;

use std::io;

use crate::shared::error::SharedError;
use crate::shared::groups::Name;
use crate::shared::pass::blocking;
use crate::shared::{LOOK_AGAIN, MOST_TRIES};
use crate::state::{Lock, State, StateError};

/// The locks of the files of this host.
#[derive(Debug)]
pub(super) struct Locks {
    state: State,
    /// Beside the files: who waits in this process is woken up, and in order.
    here: Vec<Mutex<()>>,
}

/// Held for one file.
#[derive(Debug)]
pub(super) struct Held<'a> {
    _everywhere: Lock,
    _here: MutexGuard<'a, ()>,
}

impl Locks {
    /// Names the folder.
    pub(super) fn new(state: &State) -> Self {
        Self { state: state.clone(), here: (0..=u8::MAX).map(|_| Mutex::new(())).collect() }
    }

    /// Waits until nobody else makes a file alike.
    pub(super) async fn of(&self, name: &Name) -> Result<Held<'_>, SharedError> {
        let number = number(name);
        let here = self.here[usize::from(number)].lock().await;
        for _ in 0..MOST_TRIES {
            let state = self.state.clone();
            if let Some(lock) = blocking(move || Ok(state.try_lock_files(number)?)).await? {
                return Ok(Held { _everywhere: lock, _here: here });
            }
            sleep(LOOK_AGAIN).await;
        }
        let path = self.state.path("shared/locks").join(name.as_str());
        Err(StateError::Write(path, io::ErrorKind::TimedOut.into()).into())
    }
}

/// Returns the number of the lock of a file.
pub(super) fn number(name: &Name) -> u8 {
    // A digest says at its beginning by which algorithm it is.
    let digest = digest(name.as_str().as_bytes());
    digest.get(digest.len() - 2..).and_then(|end| u8::from_str_radix(end, 16).ok()).unwrap_or_default()
}
