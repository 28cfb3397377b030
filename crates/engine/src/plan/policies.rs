//! The policies that say what a sync may do: everything that is decided before anything is looked at.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::claims::Claims;
use super::conflicts::Conflicts;
use super::guard::rollout::{Wait, Waiting};
use super::refusal::Reason;
use super::saved::SavedStep;
use crate::inventory::Applied;
use crate::kinds;
use crate::kinds::name::KindName;
use crate::marks::{Marker, Owner};
use crate::object::ObjectId;

/// When an existing object without our mark may become ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Adopt {
    /// Not at all.
    Never,
    /// If nobody else has marked it, and a person has approved it.
    #[default]
    Confirm,
    /// If nobody else has marked it.
    IfUnowned,
    // Never, if it belongs to another sync or installation of gatewright.
    /// Even if it belongs to another tool.
    Always,
}

/// The most that may be deleted at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MaxDelete {
    /// Units (Gateways).
    pub units: usize,
    /// Percent of the units that are owned; counts only from three deleted units on.
    #[schemars(range(min = 0, max = 100))]
    pub percent: usize,
    /// Units on all clusters of a sync together.
    pub fleet: usize,
}

impl Default for MaxDelete {
    fn default() -> Self {
        Self { units: 5, percent: 25, fleet: 50 }
    }
}

/// The rules for what is not deleted before a person has agreed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confirm {
    /// Kinds.
    pub kinds: BTreeSet<KindName>,
    /// Whether that goes for whatever asks for a GPU.
    pub gpus: bool,
}

/// The namespaces and kinds that a sync may write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allow {
    /// Namespaces; `*` is any.
    pub namespaces: BTreeSet<String>,
    /// Kinds, with a namespace or without.
    pub kinds: BTreeSet<KindName>,
    /// Those of them that may be written although they are in no namespace; `None` leaves it to the namespaces.
    pub cluster_kinds: Option<BTreeSet<KindName>>,
}

impl Allow {
    /// Any kind in any namespace, and in none.
    pub fn everything() -> Self {
        Self { namespaces: ["*".to_owned()].into(), kinds: [KindName::ANY].into(), cluster_kinds: None }
    }

    /// Returns why an object may not be written, if it may not.
    fn forbids(&self, id: &ObjectId) -> Option<String> {
        let is_among = |kinds: &BTreeSet<KindName>| kinds.iter().any(|kind| kind.is_of(id));
        if !id.namespace.is_empty() && !self.is_everywhere() && !self.namespaces.contains(&id.namespace) {
            return Some(format!("namespace {:?} is not in allow.namespaces", id.namespace));
        }
        if !is_among(&self.kinds) {
            return Some(format!("kind {:?} is not in allow.kinds", id.kind));
        }
        if !id.namespace.is_empty() {
            return None;
        }
        // Who may write into some namespaces only would get out of them by a ClusterRoleBinding, or a webhook.
        match &self.cluster_kinds {
            Some(kinds) if is_among(kinds) => None,
            Some(_) => Some(format!("kind {:?} is in no namespace and not in allow.clusterKinds", id.kind)),
            None if self.is_everywhere() => None,
            None => Some(format!(
                "kind {:?} is in no namespace, and where allow.namespaces names some, allow.clusterKinds must name it",
                id.kind
            )),
        }
    }

    fn is_everywhere(&self) -> bool {
        self.namespaces.contains("*")
    }
}

/// The rules for what a sync may do.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting that stands for itself")]
pub struct Policies {
    /// Our identity: the installation and the sync.
    pub marker: Marker,
    /// The table of kinds: that of [`Packs::table`](crate::pack::Packs::table), or what is built in.
    pub kinds: kinds::Table,
    /// Name of the cluster, for messages.
    pub cluster: String,
    /// The identity of the cluster that this host has worked on by that name; empty if it has not, or does not know.
    pub known_cluster: String,
    /// Another name by which the same cluster answers, if there is one.
    pub twin: Option<String>,
    /// Name of the source, for the inventory.
    pub source: String,
    /// The revision of it that is rendered.
    pub applying: Applied,
    /// Whether the source itself has named that revision, since this process started.
    pub is_polled: bool,
    /// Adoption.
    pub adopt: Adopt,
    /// Whether objects may be adopted from a deployer that provisions their Gateway.
    pub adopt_deployer: bool,
    /// Whether what was adopted may be deleted like what was made.
    pub prune_adopted: bool,
    /// Whether anything is deleted at all.
    pub prune: bool,
    /// The most that may be deleted at once.
    pub max_delete: MaxDelete,
    /// The rules for what is not deleted before a person has agreed.
    pub confirm: Confirm,
    /// Kinds whose objects may be deleted and created again where a field cannot be changed.
    pub recreate: BTreeSet<KindName>,
    /// The tokens of the holds that a person has approved.
    pub approved: BTreeSet<String>,
    /// Everything that waits for other clusters.
    pub waiting: Waiting,
    /// The reason why another sync is waited for, if one is.
    pub awaited: Option<Wait>,
    /// The steps of a plan that was made before, if nothing else is to be done.
    pub pinned: Option<Vec<SavedStep>>,
    /// Whether an empty source may empty a cluster.
    pub allow_empty: bool,
    /// Whether missing namespaces are made.
    pub create_namespaces: bool,
    /// The namespaces and kinds that may be written.
    pub allow: Allow,
    /// The units that this round is about; `None` is all.
    pub only: Option<BTreeSet<ObjectId>>,
    /// This host has not seen this cluster before, so it deletes nothing yet.
    pub first_round: bool,
    /// One problem holds the whole sync, not only what it feeds.
    pub hold_on_problem: bool,
    /// The rules for who wins where others write to our fields.
    pub conflicts: Conflicts,
    /// The claims of our other syncs: what they want on this cluster.
    pub claims: Claims,
    /// Former names of this sync: what bears their marks becomes its own.
    pub renamed_from: BTreeSet<String>,
    /// Objects that keep nothing of what they refer to: an undo is asked to take it away, and leaves them only because
    /// their round ended before it could note what it had done to them.
    pub left_alone: BTreeSet<ObjectId>,
}

impl Policies {
    /// The policies of a sync about which nothing is configured: nobody else's objects are touched, little is deleted at
    /// once, and namespaces have to be there.
    pub fn new(marker: Marker) -> Self {
        Self {
            marker,
            kinds: kinds::Table::builtin(),
            cluster: String::new(),
            known_cluster: String::new(),
            twin: None,
            source: String::new(),
            applying: Applied::default(),
            is_polled: true,
            adopt: Adopt::default(),
            adopt_deployer: false,
            prune_adopted: false,
            prune: true,
            max_delete: MaxDelete::default(),
            confirm: Confirm::default(),
            recreate: BTreeSet::new(),
            waiting: Waiting::default(),
            awaited: None,
            approved: BTreeSet::new(),
            pinned: None,
            allow_empty: false,
            create_namespaces: false,
            allow: Allow::everything(),
            only: None,
            first_round: false,
            hold_on_problem: false,
            conflicts: Conflicts::default(),
            claims: Claims::default(),
            renamed_from: BTreeSet::new(),
            left_alone: BTreeSet::new(),
        }
    }

    /// Tells whether a unit is what this round is about.
    pub fn is_about(&self, unit: &ObjectId) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(unit))
    }

    /// Tells whether a mark is that of a former name of this sync.
    pub fn is_former(&self, owner: &Owner) -> bool {
        matches!(owner, Owner::OtherSync(sync) if self.renamed_from.contains(sync))
    }

    /// Returns why an object may not be written, if it may not: known before any request.
    pub fn forbids(&self, id: &ObjectId) -> Option<Reason> {
        self.allow.forbids(id).map(Reason::NotAllowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(namespaces: &[&str], kinds: &[&str], cluster_kinds: Option<&[&str]>) -> Allow {
        let named = |kinds: &[&str]| kinds.iter().map(|kind| kind.parse().expect("it names a kind")).collect();
        let namespaces = namespaces.iter().map(|&name| name.to_owned()).collect();
        Allow { namespaces, kinds: named(kinds), cluster_kinds: cluster_kinds.map(named) }
    }

    #[test]
    fn kinds_without_a_namespace_need_a_word_of_their_own() {
        let role = ObjectId::new("rbac.authorization.k8s.io", "ClusterRole", "", "a");
        let map = ObjectId::new("", "ConfigMap", "team", "a");
        let check = |allow: &Allow, expected: [bool; 2]| {
            let allowed = [&role, &map].map(|id| allow.forbids(id).is_none());
            assert_eq!(allowed, expected, "{allow:?}");
        };
        check(&allow(&["*"], &["*"], None), [true, true]);
        check(&allow(&["team"], &["*"], None), [false, true]);
        check(&allow(&["team"], &["ClusterRole", "ConfigMap"], None), [false, true]);
        check(&allow(&["team"], &["*"], Some(&["ClusterRole"])), [true, true]);
        check(&allow(&["team"], &["*"], Some(&["ClusterRole.example.com"])), [false, true]);
        check(&allow(&["team"], &["ConfigMap"], Some(&["*"])), [false, true]);
        check(&allow(&["*"], &["*"], Some(&[])), [false, true]);
        check(&allow(&["*", "team"], &["*.core"], None), [false, true]);
        check(&allow(&["other"], &["*"], Some(&["*"])), [true, false]);
    }
}
