//! Flushes: files that this host has just written, pushed to the store before anything that needs them there.
//!
//! It never waits for a whole exchange with the store, which may list and download much, but only for the file that it is
//! about. What is noted stays noted until it is in the store, whoever is at it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::{Shared, Work, right_to_say};
use crate::shared::error::SharedError;
use crate::shared::groups::Name;
use crate::shared::pass::{Look, Moved, Way, blocking};
use crate::shared::remote;
use crate::state::notes::Noted;

impl Shared {
    /// Pushes every file that was written or removed through the state since the last push; returns when all is in the
    /// store. Of callers at one time the second waits for the first, and pushes what that has left.
    ///
    /// Where somebody else has changed the same file, ours wins if it is of a sync that is ours, and the store's if not: a
    /// host that has lost a sync may still have a late word to say about it, which is not pushed unless nobody has ever had
    /// the file. The one that loses is kept aside.
    pub async fn flush(&self, is_ours: impl Fn(&str) -> bool + Sync) -> Result<(), SharedError> {
        let mut left = self.push(is_ours).await?;
        // A file that is too large says nothing of the store.
        left.sort_by_key(|(_, error)| matches!(error, SharedError::TooLarge { .. }));
        left.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Pushes all, as [`Shared::flush`] does; returns when all is in the store that others need to go on with one sync. A
    /// file of another sync may be too large to be there.
    pub async fn flush_for(&self, sync: &str, is_ours: impl Fn(&str) -> bool + Sync) -> Result<(), SharedError> {
        let left = self.push(is_ours).await?;
        let is_needed = |(name, error): &(Name, SharedError)| {
            !matches!(error, SharedError::TooLarge { .. }) || name.sync().is_none_or(|of| of == sync)
        };
        left.into_iter().find(is_needed).map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Pushes all, and returns the files that are not in the store, each with the reason.
    async fn push(&self, is_ours: impl Fn(&str) -> bool + Sync) -> Result<Vec<(Name, SharedError)>, SharedError> {
        let _turn = self.flushing.lock().await;
        let mut noted = self.notes.all();
        let paths_of = self.names_of(&noted).await?;
        if !paths_of.is_empty() {
            self.confirm_again().await?;
        }
        let work = |name: &Name| Work { name: name.clone(), look: Look::AsKnown, is_lost: false };
        let work = paths_of.keys().map(work).collect();
        let way = |work: &Work| Way::Merge(right_to_say(&work.name, &is_ours));
        let mut left = Vec::new();
        for (work, result) in self.all(work, way).await {
            let refused = matches!(result, Ok((Moved::Refused, _)));
            let error = if refused { Some(remote::too_large(work.name.as_str())) } else { result.err() };
            if let Some(error) = error {
                noted.retain(|path, _| paths_of.get(&work.name).is_none_or(|paths| !paths.contains(path)));
                left.push((work.name, error));
            }
        }
        self.notes.done(&noted);
        Ok(left)
    }

    /// Returns the shared files that the noted paths are about, each with those paths.
    async fn names_of(&self, noted: &Noted) -> Result<BTreeMap<Name, BTreeSet<PathBuf>>, SharedError> {
        let (local, noted): (_, Vec<PathBuf>) = (self.local.clone(), noted.keys().cloned().collect());
        let named = blocking(move || {
            let of = |path: PathBuf| local.noted(&path).map(|names| (path, names));
            noted.into_iter().map(of).collect::<Result<Vec<_>, _>>()
        });
        let mut paths_of: BTreeMap<Name, BTreeSet<PathBuf>> = BTreeMap::new();
        for (path, names) in named.await? {
            for name in names {
                paths_of.entry(name).or_default().insert(path.clone());
            }
        }
        Ok(paths_of)
    }
}
