//! The sources of specs: a git repository or a directory, polled, each yielding a [`Snapshot`].
//!
//! A source never changes anything and never decides anything. It is asked for what is there now; the caller keeps
//! the last good snapshot when it cannot answer.

pub mod cache;
pub mod directory;
pub mod git;
mod place;
pub mod watch;

use std::error::Error as StdError;
use std::time::Duration;

use async_trait::async_trait;
use gatewright_engine::tree::Tree;
use serde::{Deserialize, Serialize};

use crate::basics::duration::Period;

/// A source at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The revision that was found: `main@sha1:<40 hex>` for git, `sha256:<12 hex>` of the content for a directory.
    pub revision: String,
    /// The files.
    pub tree: Tree,
    /// The address of the source and the path in it, without credentials; empty where there is none.
    pub address: String,
    /// A digest of where the address leads from, for one that says something else in each place; empty for others.
    pub place: String,
    /// The time when it was committed, in seconds since 1970, where the source knows it.
    pub committed: Option<i64>,
    /// Whether the source itself has named this revision since the process started; otherwise it was remembered.
    pub is_polled: bool,
}

impl Snapshot {
    /// A revision that a source has named, and what was found in it.
    pub fn new(revision: String, tree: Tree) -> Self {
        let (address, place) = (String::new(), String::new());
        Self { revision, tree, address, place, committed: None, is_polled: true }
    }

    /// Names the folder of it that a sync reads.
    pub fn address_of(&self, path: &str) -> String {
        address(&self.address, path)
    }
}

/// Writes an address and a path in it as one text; the root is no path.
fn address(of: &str, path: &str) -> String {
    match path.trim_start_matches("./").trim_matches('/') {
        _ if of.is_empty() => String::new(),
        "" | "." => of.to_owned(),
        path => format!("{of}//{path}"),
    }
}

/// The longest time for a poll, where the settings do not say.
fn default_timeout() -> Period {
    Period(Duration::from_mins(2))
}

/// Something that yields snapshots.
#[async_trait]
pub trait Source: Send + Sync {
    /// Returns what is there now, or `None` when that is still the revision `have`.
    async fn poll(&self, have: Option<&str>) -> Result<Option<Snapshot>, SourceError>;
}

/// The reason why a source could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {what}")]
pub struct SourceError {
    /// The source, by its address without credentials.
    pub what: String,
    /// The kind of failure.
    pub reason: Reason,
    /// Advice on what to do next, a sentence of its own.
    pub hint: Option<String>,
    /// The cause; never with a secret in its text.
    #[source]
    pub source: Box<dyn StdError + Send + Sync>,
}

/// Kinds of failure, for metrics and for how soon it is worth trying again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// Nobody answered, or not in time.
    Unreachable,
    /// The credentials were refused.
    AuthFailed,
    /// The server is not who it should be: an unknown host key, an untrusted certificate.
    Untrusted,
    /// The branch, tag, commit or sub-path is not there.
    NotFound,
    /// Content that is there and cannot be used.
    Invalid,
}
