//! Where specs come from: a git repository or a directory, polled, each yielding a [`Snapshot`].
//!
//! A source never changes anything and never decides anything. It is asked for what is there now; the caller keeps
//! the last good snapshot when it cannot answer.

pub mod directory;
pub mod git;
pub mod watch;

use std::error::Error as StdError;

use async_trait::async_trait;
use gatewright_engine::tree::Tree;
use serde::{Deserialize, Serialize};

/// A source at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// What was found: `main@sha1:<40 hex>` for git, `sha256:<12 hex>` of the content for a directory.
    pub revision: String,
    /// The files.
    pub tree: Tree,
}

/// Something that yields snapshots.
#[async_trait]
pub trait Source: Send + Sync {
    /// Returns what is there now, or `None` when that is still the revision `have`.
    async fn poll(&self, have: Option<&str>) -> Result<Option<Snapshot>, SourceError>;
}

/// Why a source could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {what}")]
pub struct SourceError {
    /// The source, by its address without credentials.
    pub what: String,
    /// What kind of failure it was.
    pub reason: Reason,
    /// What to do next, a sentence of its own.
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
    /// What is there cannot be used.
    Invalid,
}
