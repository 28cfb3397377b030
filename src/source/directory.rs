//! A directory of the local disk as a source.
//!
//! A directory has no commits, so nothing says that what is read belongs together: somebody may be copying files into
//! it right now.
//! Hence nothing in it may have been written for a while, and it is read until two readings in a row are equal; what came
//! of it is named by its content.
//! Waiting for changes is not done here: see [`watch`](super::watch).

use std::error::Error as StdError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use gatewright_engine::text::hex;
use gatewright_engine::tree::{Entry, ReadError, Tree};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use super::{Reason, Snapshot, Source, SourceError, place};
use crate::basics::duration::Period;
use crate::basics::paths::{NoCredentials, Paths};

/// Readings of a directory before it is given up as one that never stops changing.
const READINGS: usize = 6;

/// The shortest time between two readings.
const PAUSE: Duration = Duration::from_millis(100);

/// The settings of a directory source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// The directory, or a single file; a relative path is relative to the config file.
    pub path: PathBuf,
    /// For how long nothing in it may have been written before it is read: a file that is being written may be empty for
    /// a while.
    #[serde(default = "default_settle")]
    pub settle: Period,
    /// The longest time that a poll may take: a network file system may never answer.
    #[serde(default = "crate::source::default_timeout")]
    pub timeout: Period,
    /// The path as it is written in the config file: it stays the same wherever that file is.
    #[serde(skip)]
    pub written: PathBuf,
    /// Several hosts read it, each in a place of its own.
    #[serde(skip)]
    pub is_on_each_host: bool,
}

/// For how long nothing may have been written, where the settings do not say.
fn default_settle() -> Period {
    Period(Duration::from_secs(2))
}

impl Settings {
    /// Takes a directory, all else by default.
    pub fn of(path: impl Into<PathBuf>) -> Self {
        let (settle, timeout, written) = (default_settle(), super::default_timeout(), PathBuf::new());
        Self { path: path.into(), settle, timeout, written, is_on_each_host: false }
    }

    /// Makes the path absolute.
    pub fn resolve(&mut self, paths: &Paths) -> Result<(), NoCredentials> {
        self.written.clone_from(&self.path);
        self.path = paths.resolve(&self.path)?;
        Ok(())
    }
}

/// A directory that is read at each poll.
#[derive(Clone, Debug)]
pub struct DirectorySource {
    settings: Settings,
    /// One reading at a time: one that hangs cannot be ended, and others would only hang beside it.
    turn: Arc<Semaphore>,
}

impl DirectorySource {
    /// Takes the settings of one source; the path is absolute by now.
    pub fn new(settings: Settings) -> Self {
        Self { settings, turn: Arc::new(Semaphore::new(1)) }
    }

    /// Reads it, and finds out when something in it was written last.
    async fn read(&self) -> Result<(Tree, Option<SystemTime>), SourceError> {
        let path = self.settings.path.clone();
        let turn = Arc::clone(&self.turn).acquire_owned().await;
        let reading = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            Ok((Tree::read_dir(&path)?, written(&path, "")))
        });
        let result = reading.await.map_err(|stopped| self.error(Reason::Invalid, None, stopped))?;
        result.map_err(|error: ReadError| {
            if matches!(error, ReadError::TooLarge(_)) {
                let hint = "Point `directory.path` at the folder that holds the specs.".to_owned();
                return self.error(Reason::Invalid, Some(hint), error);
            }
            let kind = error.source().and_then(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
            let (reason, hint) = advice(kind, &self.settings.path);
            self.error(reason, hint, error)
        })
    }

    /// The time until nothing was written for long enough. A time in the future says nothing about that.
    fn rest(&self, written: Option<SystemTime>) -> Duration {
        let age = written.and_then(|written| written.elapsed().ok()).unwrap_or_default();
        self.settings.settle.0.saturating_sub(age)
    }

    fn error(
        &self,
        reason: Reason,
        hint: Option<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> SourceError {
        SourceError { what: self.settings.path.display().to_string(), reason, hint, source: source.into() }
    }
}

#[async_trait]
impl Source for DirectorySource {
    async fn poll(&self, have: Option<&str>) -> Result<Option<Snapshot>, SourceError> {
        let limit = self.settings.timeout;
        if let Ok(result) = tokio::time::timeout(limit.0, self.stable(have)).await {
            return result;
        }
        let hint = "Look whether the file system answers: `ls` may hang there too. If the directory is only large, raise \
                    `timeout`.";
        Err(self.error(Reason::Unreachable, Some(hint.to_owned()), format!("it was not read within {limit}")))
    }
}

impl DirectorySource {
    /// Reads until two readings agree.
    async fn stable(&self, have: Option<&str>) -> Result<Option<Snapshot>, SourceError> {
        let mut reading = self.read().await?;
        for _ in 1..READINGS {
            let revision = revision(&reading.0);
            if have == Some(revision.as_str()) {
                // It is what it was, and that was at rest.
                return Ok(None);
            }
            tokio::time::sleep(self.rest(reading.1).max(PAUSE)).await;
            let again = self.read().await?;
            if again == reading {
                let written = &self.settings.written;
                let address = written.to_string_lossy().into_owned();
                let has_place = written.is_relative() && !self.settings.is_on_each_host;
                let place = if has_place { place::of(&self.settings.path) } else { String::new() };
                return Ok(Some(Snapshot { address, place, ..Snapshot::new(revision, again.0) }));
            }
            reading = again;
        }
        let hint = "Let whatever writes the directory fill a new one beside it, and rename that when it is complete.";
        Err(self.error(Reason::Invalid, Some(hint.to_owned()), "it keeps changing while it is read"))
    }
}

/// Returns when a folder, or something in it that may be a spec, was written last, as far as that can be seen.
fn written(folder: &Path, prefix: &str) -> Option<SystemTime> {
    let mut latest = fs::symlink_metadata(folder).and_then(|found| found.modified()).ok();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        let Ok(found) = entry.metadata() else { continue };
        let time = match () {
            () if found.is_dir() && !Tree::is_hidden(&path) => written(&entry.path(), &path),
            () if found.is_file() && Tree::wants(&path) => found.modified().ok(),
            () => None,
        };
        latest = latest.max(time);
    }
    latest
}

/// Says what an unreadable directory means and what to do about it.
fn advice(kind: Option<io::ErrorKind>, path: &Path) -> (Reason, Option<String>) {
    match kind {
        Some(io::ErrorKind::NotFound) => {
            let hint = format!("Create {}, or correct `directory.path` of the source.", path.display());
            (Reason::NotFound, Some(hint))
        }
        Some(io::ErrorKind::PermissionDenied) => {
            let hint = format!("Let the user that gatewright runs as read {} and every folder in it.", path.display());
            (Reason::Invalid, Some(hint))
        }
        _ => (Reason::Invalid, None),
    }
}

/// Names a tree by what is in it.
///
/// Lengths stand before what they measure, so that no two trees run together into the same bytes.
pub(crate) fn revision(tree: &Tree) -> String {
    let mut digest = Sha256::new();
    for (path, entry) in tree.files() {
        let (kind, text): (u8, &str) = match entry {
            Entry::Text(text) => (0, text),
            Entry::Unreadable(reason) => (1, reason),
            Entry::NotEntered(reason) => (2, reason),
        };
        digest.update((path.len() as u64).to_be_bytes());
        digest.update(path);
        digest.update([kind]);
        digest.update((text.len() as u64).to_be_bytes());
        digest.update(text);
    }
    format!("sha256:{}", hex(&digest.finalize()[..6]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_tells_trees_apart_by_paths_and_by_content() {
        let of = |files: &[(&str, &str)]| revision(&files.iter().copied().collect());
        let revisions = [
            of(&[]),
            of(&[("a.yaml", "")]),
            of(&[("b.yaml", "")]),
            of(&[("a.yaml", "b.yaml")]),
            of(&[("a.yaml", ""), ("b.yaml", "")]),
        ];
        for (index, revision) in revisions.iter().enumerate() {
            assert_eq!(revision.len(), "sha256:".len() + 12);
            assert!(!revisions[..index].contains(revision), "{revision} came twice");
        }
        assert_eq!(of(&[("b.yaml", "x"), ("a.yaml", "y")]), of(&[("a.yaml", "y"), ("b.yaml", "x")]));
    }
}
