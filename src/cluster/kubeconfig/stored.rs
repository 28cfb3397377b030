//! A kubeconfig that lies in memory: it came from a Secret of a management cluster, and is written to no file.
//!
//! Whoever reads the Secret again puts what it says now in its place; the clusters that are built of it use that from
//! their next round on, as with a file that was replaced.

use std::fmt;
use std::sync::{Arc, Mutex};

use gatewright_engine::yaml;
use kube::config::Kubeconfig;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{KubeconfigError, Place};
use crate::basics::lock::lock;

/// A kubeconfig in memory, shared by all who use it.
#[derive(Clone)]
pub struct Stored(Arc<Shared>);

struct Shared {
    source: String,
    secret: String,
    content: Mutex<Result<Content, Unusable>>,
}

/// The content of a Secret that can be used as a kubeconfig.
#[derive(Clone)]
pub struct Content {
    kubeconfig: Arc<Kubeconfig>,
    digest: Sha256,
}

/// The reason why a Secret is no kubeconfig. Never with a part of what is in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct Unusable {
    /// The problem.
    pub problem: String,
    /// Advice on what to do about it.
    pub hint: String,
    /// Whether nobody has read it, so that nothing is known to be wrong with it.
    pub is_unread: bool,
}

impl Unusable {
    /// Says what is wrong, and what to do about it.
    pub fn new(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { problem: problem.into(), hint: hint.into(), is_unread: false }
    }

    /// Says why it was not read, and what to do about it.
    pub fn unread(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { is_unread: true, ..Self::new(problem, hint) }
    }
}

impl Content {
    /// Reads the text of a kubeconfig. Of what is wrong the place alone is told: parsers quote, even keys.
    pub fn of_text(text: &str) -> Result<Self, Unusable> {
        let hint = "compare it with the output of `kubectl config view`";
        if text.trim().is_empty() {
            return Err(Unusable::new("the kubeconfig in it is empty", hint));
        }
        yaml::parse(text).map_err(|error| {
            let (line, column) = (error.position.line, error.position.column);
            Unusable::new(format!("the kubeconfig in it is not YAML: line {line}, column {column}"), hint)
        })?;
        let kubeconfig = Kubeconfig::from_yaml(text);
        let kubeconfig = kubeconfig.map_err(|_| Unusable::new("what is in it is not a kubeconfig", hint))?;
        Ok(Self::new(kubeconfig, text.as_bytes()))
    }

    /// Takes a kubeconfig that was put together out of `made_of`.
    pub fn of_value(kubeconfig: Value, made_of: &[u8]) -> Result<Self, Unusable> {
        let kubeconfig = serde_json::from_value(kubeconfig);
        let kubeconfig = kubeconfig.map_err(|_| Unusable::new("no kubeconfig can be made of it", "correct it"))?;
        Ok(Self::new(kubeconfig, made_of))
    }

    fn new(kubeconfig: Kubeconfig, made_of: &[u8]) -> Self {
        Self { kubeconfig: Arc::new(kubeconfig), digest: Sha256::new_with_prefix(made_of) }
    }

    /// Tells whether another one says the same.
    fn is(&self, other: &Self) -> bool {
        self.digest.clone().finalize() == other.digest.clone().finalize()
    }
}

impl Stored {
    /// Takes what a Secret says. `source` is the entry of `clusterSecrets` that it was found by, and `secret` names it in
    /// messages.
    pub fn new(source: &str, secret: &str, content: Result<Content, Unusable>) -> Self {
        let content = Mutex::new(content);
        Self(Arc::new(Shared { source: source.to_owned(), secret: secret.to_owned(), content }))
    }

    /// Returns the entry of `clusterSecrets`.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// Tells whether nobody has read the Secret.
    pub(super) fn is_unread(&self) -> bool {
        lock(&self.0.content).as_ref().is_err_and(|unusable| unusable.is_unread)
    }

    /// Replaces what the Secret says, and tells whether it says something else now.
    pub fn put(&self, content: Result<Content, Unusable>) -> bool {
        let mut held = lock(&self.0.content);
        let is_same = match (&*held, &content) {
            (Ok(old), Ok(new)) => old.is(new),
            (Err(old), Err(new)) => old == new,
            _ => false,
        };
        *held = content;
        !is_same
    }

    /// Returns what it says, where it stands, and a digest of it.
    pub(super) fn read(&self) -> Result<(Kubeconfig, Place, Sha256), KubeconfigError> {
        let place = Place { secret: Some(self.0.secret.as_str().into()), ..Place::default() };
        match &*lock(&self.0.content) {
            Ok(content) => Ok(((*content.kubeconfig).clone(), place, content.digest.clone())),
            Err(unusable) => Err(place.error(&unusable.problem, &unusable.hint)),
        }
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stored").field(&self.0.secret).finish()
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content").finish_non_exhaustive()
    }
}

/// The same one is held, whatever it says.
impl PartialEq for Stored {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Stored {}
