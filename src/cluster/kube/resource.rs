//! Addresses on an API server, and what a request is called in messages.

use gatewright_engine::mask::Masker;
use gatewright_engine::object::{Gvk, ObjectId, is_secret};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::failure::Failure;
use crate::cluster::{KindScope, Mode};

/// The action that is attempted, for errors.
#[derive(Clone, Debug, Default)]
pub(super) struct Attempt {
    /// `apply Service infra/edge`.
    pub(super) action: String,
    /// Whether the server's words may quote a secret.
    pub(super) secret: bool,
    /// The secrets in what was sent, which the server may quote.
    pub(super) sent: Vec<String>,
}

impl Attempt {
    pub(super) fn on(id: &ObjectId, verb: &str) -> Self {
        Self { secret: is_secret(&id.group, &id.kind), ..Self::to(format!("{verb} {id}")) }
    }

    /// Describes a write of one object, or its dry run.
    pub(super) fn in_mode(id: &ObjectId, verb: &str, mode: Mode) -> Self {
        match mode {
            Mode::DryRun => Self::on(id, &format!("dry-run the {verb} of")),
            Mode::Real => Self::on(id, verb),
        }
    }

    pub(super) fn sending(self, body: &Value) -> Self {
        Self { sent: Masker::secrets(body), ..self }
    }

    pub(super) fn on_all(kind: &Gvk, verb: &str) -> Self {
        let action = format!("{verb} the objects of kind {}", kind.kind);
        Self { secret: is_secret(&kind.group, &kind.kind), ..Self::to(action) }
    }

    /// Describes a request that has nothing to do with secrets.
    pub(super) fn to(action: impl Into<String>) -> Self {
        Self { action: action.into(), secret: false, sent: Vec::new() }
    }
}

/// A kind as the server has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Resource {
    pub(super) api_version: String,
    pub(super) plural: String,
    pub(super) scope: KindScope,
}

impl Resource {
    /// Returns the address of all objects of the kind, in all namespaces.
    pub(super) fn everywhere(&self) -> String {
        format!("{}/{}", root(&self.api_version), self.plural)
    }

    /// Returns the address of all objects of the kind in a namespace.
    pub(super) fn within(&self, namespace: &str) -> Result<String, Failure> {
        path_segment("namespace", namespace)?;
        Ok(format!("{}/namespaces/{namespace}/{}", root(&self.api_version), self.plural))
    }

    /// Returns the address of those objects of the kind that are where `id` is.
    pub(super) fn collection(&self, id: &ObjectId) -> Result<String, Failure> {
        path_segment("name", &id.name)?;
        match self.scope {
            KindScope::Cluster => Ok(self.everywhere()),
            KindScope::Namespaced => self.within(&id.namespace),
        }
    }
}

/// Returns the address of a version of an API group.
pub(super) fn root(api_version: &str) -> String {
    let prefix = if api_version.contains('/') { "/apis" } else { "/api" };
    format!("{prefix}/{api_version}")
}

/// Refuses what would change the address that it is put into: names come from specs.
pub(super) fn path_segment(what: &str, text: &str) -> Result<(), Failure> {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-._:~@".contains(character);
    if text.is_empty() || text == "." || text == ".." || !text.chars().all(plain) {
        return Err(Failure::Impossible(format!("the {what} {text:?} cannot stand in the address of an object")));
    }
    Ok(())
}

/// Refuses to send an empty condition, which the server would take for none at all.
pub(super) fn known(what: &str, text: &str) -> Result<(), Failure> {
    if text.is_empty() {
        return Err(Failure::Impossible(format!("the {what} of what is to be changed is not known")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_change_the_address() {
        for name in ["edge", "system:auth", "v1.example.com"] {
            assert!(path_segment("name", name).is_ok(), "{name}");
        }
        for name in ["", ".", "..", "a/b", "a?force=true", "a#b", "a b", "%2e", "ä"] {
            assert!(path_segment("name", name).is_err(), "{name}");
        }
    }
}
