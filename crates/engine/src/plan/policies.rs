//! What a sync may do: everything that is decided before anything is looked at.

use std::collections::BTreeSet;

use super::claims::Claims;
use super::conflicts::Conflicts;
use super::refusal::Reason;
use super::saved::SavedStep;
use crate::inventory::Applied;
use crate::marks::{Marker, Owner};
use crate::object::ObjectId;

/// When an existing object without our mark may become ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Adopt {
    /// Not at all.
    Never,
    /// If nobody else has marked it, and a person agrees.
    #[default]
    Confirm,
    /// If nobody else has marked it.
    IfUnowned,
    /// Even if it belongs to another tool. Never, if it belongs to another sync or installation of gatewright.
    Always,
}

/// How much may be deleted at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxDelete {
    /// Units.
    pub units: usize,
    /// Percent of the units that are owned; counts only from three units on.
    pub percent: usize,
}

/// What is not deleted before a person has agreed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confirm {
    /// Kinds.
    pub kinds: BTreeSet<String>,
    /// Whether that goes for whatever asks for a GPU.
    pub gpus: bool,
}

/// What a sync may do.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting that stands for itself")]
pub struct Policies {
    /// Who we are.
    pub marker: Marker,
    /// Name of the cluster, for messages.
    pub cluster: String,
    /// What identifies the cluster that this host has worked on by that name; empty if it has not, or does not know.
    pub known_cluster: String,
    /// Name of the source, for the inventory.
    pub source: String,
    /// The revision of it that is rendered.
    pub applying: Applied,
    /// Whether the source itself has named that revision, since this process started.
    pub is_polled: bool,
    /// Adoption.
    pub adopt: Adopt,
    /// Whether objects may be taken over from a deployer that provisions their Gateway.
    pub adopt_deployer: bool,
    /// Whether what was adopted may be deleted like what was made.
    pub prune_adopted: bool,
    /// Whether anything is deleted at all.
    pub prune: bool,
    /// How much may be deleted at once.
    pub max_delete: MaxDelete,
    /// What is not deleted before a person has agreed.
    pub confirm: Confirm,
    /// Kinds whose objects may be deleted and made anew where a field cannot be changed.
    pub recreate: BTreeSet<String>,
    /// The tokens of the holds that a person has approved.
    pub approved: BTreeSet<String>,
    /// The steps of a plan that was made before, if nothing else is to be done.
    pub pinned: Option<Vec<SavedStep>>,
    /// Whether an empty source may empty a cluster.
    pub allow_empty: bool,
    /// Whether missing namespaces are made.
    pub create_namespaces: bool,
    /// Namespaces that may be written to; `*` is any.
    pub namespaces: BTreeSet<String>,
    /// Kinds that may be written; `*` is any.
    pub kinds: BTreeSet<String>,
    /// The units that this round is about; `None` is all.
    pub only: Option<BTreeSet<ObjectId>>,
    /// This host has not seen this cluster before, so it deletes nothing yet.
    pub first_round: bool,
    /// One problem holds the whole sync, not only what it feeds.
    pub hold_on_problem: bool,
    /// Who wins where others write to our fields.
    pub conflicts: Conflicts,
    /// What our other syncs want on this cluster.
    pub claims: Claims,
    /// Former names of this sync: what bears their marks is taken over.
    pub moved: BTreeSet<String>,
}

impl Policies {
    /// The policies of a sync about which nothing is configured: nobody else's objects are touched, little is deleted at
    /// once, and namespaces have to be there.
    pub fn new(marker: Marker) -> Self {
        let any = || BTreeSet::from(["*".to_owned()]);
        Self {
            marker,
            cluster: String::new(),
            known_cluster: String::new(),
            source: String::new(),
            applying: Applied::default(),
            is_polled: true,
            adopt: Adopt::default(),
            adopt_deployer: false,
            prune_adopted: false,
            prune: true,
            max_delete: MaxDelete { units: 5, percent: 25 },
            confirm: Confirm::default(),
            recreate: BTreeSet::new(),
            approved: BTreeSet::new(),
            pinned: None,
            allow_empty: false,
            create_namespaces: false,
            namespaces: any(),
            kinds: any(),
            only: None,
            first_round: false,
            hold_on_problem: false,
            conflicts: Conflicts::default(),
            claims: Claims::default(),
            moved: BTreeSet::new(),
        }
    }

    /// Tells whether a unit is what this round is about.
    pub fn is_about(&self, unit: &ObjectId) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(unit))
    }

    /// Tells whether a mark is that of a former name of this sync.
    pub fn is_former(&self, owner: &Owner) -> bool {
        matches!(owner, Owner::OtherSync(sync) if self.moved.contains(sync))
    }

    /// Returns why an object may not be written, if it may not: known before any request.
    pub fn forbids(&self, id: &ObjectId) -> Option<Reason> {
        let allows = |list: &BTreeSet<String>, name: &str| list.contains("*") || list.contains(name);
        if !id.namespace.is_empty() && !allows(&self.namespaces, &id.namespace) {
            return Some(Reason::NotAllowed(format!("namespace {:?} is not in allow.namespaces", id.namespace)));
        }
        (!allows(&self.kinds, &id.kind))
            .then(|| Reason::NotAllowed(format!("kind {:?} is not in allow.kinds", id.kind)))
    }
}
