//! Steps that we chose not to take, and why.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::object::ObjectId;

/// A step that we chose not to take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The unit.
    pub unit: ObjectId,
    /// The object.
    pub id: ObjectId,
    /// Why.
    pub reason: Reason,
}

/// Why a step is not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "reason", content = "detail")]
pub enum Reason {
    /// It belongs to somebody else.
    Foreign(String),
    /// A deployer in the cluster provisions it; who, and what to do.
    LiveDeployer(String),
    /// The sync may not write this namespace or kind.
    NotAllowed(String),
    /// Its namespace does not exist.
    NoNamespace(String),
    /// Its namespace is being deleted.
    NamespaceTerminating(String),
    /// It is being deleted itself.
    Terminating,
    /// The cluster does not take it.
    Invalid(String),
    /// The credentials do not allow it.
    Forbidden(String),
    /// The cluster has no such kind.
    NoSuchKind(String),
    /// Rehearsing it failed.
    Failed(String),
    /// It could not be read, so nobody knows whether it exists.
    Unknown(String),
    /// A mark asks for it to be kept.
    Kept(String),
    /// It does not carry our mark any more.
    Unmarked,
    /// It holds what others have made, and goes with it.
    HoldsOthers,
    /// It stands in the source, and the sync does not write it any more.
    NotApplied,
    /// Its spec is broken, so what exists stays as it is.
    Broken,
    /// A file that may hold its spec, or an overlay of it, cannot be read.
    Unreadable(String),
    /// Its spec says that somebody else provisions it; what exists stays as it is.
    SelfManaged,
    /// It existed before it was ours, and the sync does not delete such objects.
    Adopted,
    /// Pruning is switched off.
    PruneDisabled,
    /// This host sees the cluster for the first time.
    FirstRound,
    /// Something else of the same unit was refused.
    UnitHeld,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign(owner) => write!(f, "foreign: it belongs to {owner}"),
            Self::LiveDeployer(what) => write!(f, "live deployer: {what}"),
            Self::NotAllowed(what) => write!(f, "not allowed: {what}"),
            Self::NoNamespace(name) => {
                write!(f, "namespace {name:?} does not exist (make it, or set createNamespaces: true for the sync)")
            }
            Self::NamespaceTerminating(name) => write!(f, "namespace {name:?} is being deleted"),
            Self::Terminating => f.write_str("it is being deleted"),
            Self::Invalid(message) => write!(f, "the cluster does not take it: {message}"),
            Self::Forbidden(message) => write!(f, "the credentials do not allow it: {message}"),
            Self::NoSuchKind(kind) => write!(f, "the cluster has no {kind}"),
            Self::Failed(message) => write!(f, "cannot rehearse it: {message}"),
            Self::Unknown(message) => write!(f, "cannot read it: {message}"),
            Self::Kept(mark) => write!(f, "kept: it carries {mark}"),
            Self::Unmarked => f.write_str("kept: it does not carry our mark any more"),
            Self::HoldsOthers => f.write_str("kept: its kind holds what others have made; delete it by hand"),
            Self::NotApplied => f.write_str("kept: it stands in the source, and the sync does not write it any more"),
            Self::Broken => f.write_str("kept: its spec is broken"),
            Self::Unreadable(file) => write!(f, "kept: {file} cannot be read, and may speak of it"),
            Self::SelfManaged => f.write_str("kept: its spec says that somebody else provisions it"),
            Self::Adopted => f.write_str("kept: it was adopted, and adopt.prune is false"),
            Self::PruneDisabled => f.write_str("kept: pruning is switched off"),
            Self::FirstRound => {
                f.write_str("kept: this host sees the cluster for the first time; the next round deletes it")
            }
            Self::UnitHeld => f.write_str("withheld: another object of the unit was refused"),
        }
    }
}
