//! Steps that we chose not to take, and why.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::guard::Guard;
use crate::object::ObjectId;

/// A step that we chose not to take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The unit.
    pub unit: ObjectId,
    /// The object.
    pub id: ObjectId,
    /// The reason.
    pub reason: Reason,
}

/// The reason why a step is not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "reason", content = "detail")]
pub enum Reason {
    /// It belongs to somebody else.
    Foreign(String),
    /// A deployer in the cluster provisions it; who, and what to do.
    LiveDeployer(String),
    /// Somebody else has set a field to another value, and a rule says that a person is to decide; who, where, and to what.
    Conflict(String),
    /// The sync may not write this namespace or kind.
    NotAllowed(String),
    /// Its namespace does not exist.
    NoNamespace(String),
    /// Its namespace is being deleted.
    NamespaceTerminating(String),
    /// It is not wanted, and is being deleted already.
    Terminating,
    /// The same, and somebody keeps it until then; the finalizers, in words.
    Finalized(String),
    /// It is wanted, and is being deleted; what follows, and the finalizers that it still has, in words.
    NotGone(String),
    /// The cluster does not take it.
    Invalid(String),
    /// The credentials do not allow it.
    Forbidden(String),
    /// The cluster has no such kind.
    NoSuchKind(String),
    /// Its dry run failed.
    Failed(String),
    /// It could not be read, so nobody knows whether it exists.
    Unknown(String),
    /// A mark asks for it to be kept.
    #[serde(rename = "kept")]
    Protected(String),
    /// It does not carry our mark any more.
    Unmarked,
    /// It holds what others have made, and that would go with it; what, in words.
    HoldsOthers(String),
    /// A guard waits for approval.
    Held(Guard),
    /// A unit that stays may need it.
    StillNeeded(String),
    /// Something that stays has what it needs for itself; what, and who.
    Taken(String),
    /// Something is not as it was when the plan was made that is carried out; what.
    #[serde(rename = "moved")]
    Stale(String),
    /// The plan that is carried out does not have it.
    NotInPlan,
    /// A field of it cannot be changed; which, and what to do.
    Immutable(String),
    /// It was made again and again, and somebody has deleted it each time: it is left alone for a while; for how long.
    DeletedAgain(String),
    /// It stands in the source, and the sync does not write it any more.
    NotApplied,
    /// Its spec is broken, so what exists stays as it is.
    Broken,
    /// A file that had a say in it, such as that of an overlay, says nothing that can be understood; which, and why.
    Unreadable(String),
    /// Its spec says that somebody else provisions it; what exists stays as it is.
    SelfManaged,
    /// Its source leaves its Gateway to the deployer, and that has not got it back yet; the unit.
    Released(String),
    /// It cannot go back to its deployer, and why.
    NotReleased(String),
    /// Its spec is left to an operator in the cluster, which takes over what was made for it.
    PassedOn,
    /// It existed before it was ours, and the sync does not delete such objects.
    Adopted,
    /// Pruning is switched off.
    PruneDisabled,
    /// Another of our syncs may want it, and which.
    MayBeClaimed(String),
    /// The inventory is suspect.
    #[serde(rename = "in-doubt")]
    SuspectInventory,
    /// Nothing proves that its entry in the inventory is ours.
    #[serde(rename = "unproven")]
    Unverified,
    /// This host sees the cluster for the first time.
    FirstRound,
    /// Something else of the same unit was refused.
    UnitHeld,
    /// An action of a round on it that cannot be undone.
    NotUndone(String),
}

/// The weight of a refusal, from what is right and safe to what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The object stays as it is, and should.
    Kept,
    /// It waits: for a person, a source that can be read, or another round.
    Held,
    /// It is not for us to write.
    Refused,
    /// Something is wrong with it.
    Failed,
}

impl Reason {
    /// Returns the weight of the refusal.
    pub fn severity(&self) -> Severity {
        match self {
            Self::Protected(_)
            | Self::Unmarked
            | Self::HoldsOthers(_)
            | Self::StillNeeded(_)
            | Self::NotInPlan
            | Self::NotApplied
            | Self::SelfManaged
            | Self::PassedOn
            | Self::Adopted
            | Self::PruneDisabled
            | Self::Terminating
            | Self::Finalized(_) => Severity::Kept,
            Self::Held(_)
            | Self::UnitHeld
            | Self::Released(_)
            | Self::Broken
            | Self::Unreadable(_)
            | Self::MayBeClaimed(_)
            | Self::SuspectInventory
            | Self::Unverified
            | Self::FirstRound => Severity::Held,
            Self::Foreign(_)
            | Self::LiveDeployer(_)
            | Self::Conflict(_)
            | Self::NotAllowed(_)
            | Self::DeletedAgain(_)
            | Self::NotReleased(_)
            | Self::NotUndone(_) => Severity::Refused,
            Self::Invalid(_)
            | Self::Forbidden(_)
            | Self::NoSuchKind(_)
            | Self::Failed(_)
            | Self::Unknown(_)
            | Self::NoNamespace(_)
            | Self::NamespaceTerminating(_)
            | Self::NotGone(_)
            | Self::Taken(_)
            | Self::Stale(_)
            | Self::Immutable(_) => Severity::Failed,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign(owner) => write!(f, "foreign: it belongs to {owner}"),
            Self::LiveDeployer(what) => write!(f, "live deployer: {what}"),
            Self::Conflict(what) => {
                write!(f, "conflict: {what} (agree on one of them, or say take or yield in the conflicts of the sync)")
            }
            Self::NotAllowed(what) => write!(f, "not allowed: {what}"),
            Self::NoNamespace(name) => {
                write!(f, "namespace {name:?} does not exist (make it, or set createNamespaces: true for the sync)")
            }
            Self::NamespaceTerminating(name) => write!(f, "namespace {name:?} is being deleted"),
            Self::Terminating => f.write_str("it is being deleted"),
            Self::Finalized(why) | Self::NotGone(why) => write!(f, "it is being deleted{why}"),
            Self::Invalid(message) => write!(f, "the cluster does not take it: {message}"),
            Self::Forbidden(message) => write!(f, "the credentials do not allow it: {message}"),
            Self::NoSuchKind(kind) => write!(f, "the cluster has no {kind}"),
            Self::Failed(message) => write!(f, "the dry run failed: {message}"),
            Self::Unknown(message) => write!(f, "cannot read it: {message}"),
            Self::Protected(mark) => write!(f, "kept: it carries {mark}"),
            Self::Unmarked => f.write_str("kept: it does not carry our mark"),
            Self::HoldsOthers(what) => write!(f, "kept: {what}, and that would go too"),
            Self::Held(guard) => write!(f, "held by guard {guard} until that is approved"),
            Self::StillNeeded(unit) => write!(f, "kept: {unit} stays and may need it"),
            Self::Taken(what) => write!(f, "taken: {what}"),
            Self::Stale(what) => write!(f, "stale: since the plan was made things have changed: {what}; plan again"),
            Self::NotInPlan => f.write_str("left alone: the plan does not have it"),
            Self::Immutable(what) => write!(f, "immutable: {what}"),
            Self::DeletedAgain(what) => write!(f, "deleted again and again: {what}"),
            Self::NotApplied => f.write_str("kept: it stands in the source, and the sync does not write it any more"),
            Self::Broken => f.write_str("kept: its spec is broken"),
            Self::Unreadable(what) => write!(f, "kept: what the source says of it is not known: {what}"),
            Self::SelfManaged => f.write_str("kept: its spec says that somebody else provisions it"),
            Self::Released(unit) => write!(f, "kept: the source releases it: run `gatewright release {unit}`"),
            Self::NotReleased(why) => write!(f, "not released: {why}"),
            Self::PassedOn => {
                f.write_str("kept: its spec is left to the operator in the cluster, which may take it over")
            }
            Self::Adopted => f.write_str("kept: it was adopted, and adopt.prune is false"),
            Self::PruneDisabled => f.write_str("kept: pruning is switched off"),
            Self::MayBeClaimed(what) => write!(f, "kept: {what}"),
            Self::SuspectInventory => {
                f.write_str("kept: the inventory is suspect, and nothing is deleted until it is repaired")
            }
            Self::Unverified => f.write_str("kept: its entry in the inventory has no valid HMAC"),
            Self::FirstRound => {
                f.write_str("kept: this host sees the cluster for the first time; the next round deletes it")
            }
            Self::NotUndone(why) => write!(f, "not undone: {why}"),
            Self::UnitHeld => f.write_str("withheld: another object of the unit was refused"),
        }
    }
}
