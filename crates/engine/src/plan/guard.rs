//! Guards: what stops a whole sync on a cluster before anything is done.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::policies::Policies;
use super::{Action, Observed, Plan};
use crate::inventory::Inventory;
use crate::object::ObjectId;
use crate::problem::Scope;
use crate::text::count;
use crate::unit::Rendering;

/// A guard stopped a sync on a cluster: nothing at all is done there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Which guard.
    pub guard: Guard,
    /// What it saw.
    pub message: String,
    /// How to go on.
    pub hint: String,
}

/// The guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guard {
    /// The source renders to nothing, but something is owned.
    EmptyRender,
    /// More would be deleted than the sync may.
    MaxDelete,
    /// Another cluster answers where this one was.
    ClusterIdentity,
    /// Another installation of gatewright owns this sync's objects.
    OtherInstallation,
    /// A problem, and the sync says that one is enough.
    Problem,
    /// The inventory is not what this host has written.
    Inventory,
}

impl Guard {
    /// Tells whether everything but deletions goes on.
    pub fn holds_only_deletions(self) -> bool {
        self == Self::Inventory
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EmptyRender => "empty-render",
            Self::MaxDelete => "max-delete",
            Self::ClusterIdentity => "cluster-identity",
            Self::OtherInstallation => "other-installation",
            Self::Problem => "problem",
            Self::Inventory => "inventory",
        })
    }
}

/// Below this number of deleted units a percentage means nothing: one of two is half of all.
const PERCENT_COUNTS_FROM: usize = 3;

/// Returns every guard that stops this plan.
pub(super) fn holds(
    plan: &Plan,
    rendering: &Rendering,
    observed: &Observed,
    owned: &Inventory,
    policies: &Policies,
) -> Vec<Hold> {
    [
        other_installation(observed, owned, policies),
        cluster_identity(observed, owned),
        empty_render(rendering, owned, policies),
        max_delete(plan, owned, policies),
        problem(rendering, policies),
        inventory(observed, policies),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn hold(guard: Guard, message: String, hint: &str) -> Hold {
    Hold { guard, message, hint: hint.to_owned() }
}

/// A directory keeps its own inventory, and any installation may go on with it: that is how it works in CI.
fn other_installation(observed: &Observed, owned: &Inventory, policies: &Policies) -> Option<Hold> {
    let ours = &policies.marker.installation;
    if !observed.carries_marks || owned.installation.is_empty() || owned.installation == *ours {
        return None;
    }
    Some(hold(
        Guard::OtherInstallation,
        format!(
            "sync {:?} on this cluster belongs to installation {}, and this one is {ours}",
            policies.marker.sync, owned.installation
        ),
        &format!(
            "give this sync another name, copy the state directory (file installation) of the other host, or make it all \
             ours by `gatewright takeover {} --cluster {}`",
            policies.marker.sync, policies.cluster
        ),
    ))
}

fn cluster_identity(observed: &Observed, owned: &Inventory) -> Option<Hold> {
    if owned.cluster.is_empty() || observed.cluster.is_empty() || owned.cluster == observed.cluster {
        return None;
    }
    Some(hold(
        Guard::ClusterIdentity,
        format!("the inventory was written for cluster {}, but {} answers", owned.cluster, observed.cluster),
        "check the kubeconfig; if the cluster was restored from another one's backup, delete the ConfigMaps gatewright.* in gatewright-system",
    ))
}

fn empty_render(rendering: &Rendering, owned: &Inventory, policies: &Policies) -> Option<Hold> {
    let is_empty = rendering.units.is_empty() && rendering.broken.is_empty() && rendering.self_managed.is_empty();
    // What still stands in the source, or in that of another sync, is not deleted anyway.
    let is_wanted = |id: &ObjectId| rendering.documents.contains(id) || policies.claims.by(id).is_some();
    let is_safe = owned.entries.keys().all(is_wanted);
    if !is_empty || is_safe || policies.allow_empty {
        return None;
    }
    Some(hold(
        Guard::EmptyRender,
        format!("the source renders to nothing, but {} owned here", are(owned.entries.len(), "object")),
        "check the source's ref and path; if all of it is to go, set prune.allowEmpty: true for the sync",
    ))
}

fn max_delete(plan: &Plan, owned: &Inventory, policies: &Policies) -> Option<Hold> {
    let prunes = plan.steps.iter().filter(|step| matches!(step.action, Action::Prune(_)));
    let units: BTreeSet<&ObjectId> = prunes.map(|step| &step.unit).collect();
    let all = owned.units().len().max(1);
    let percent = units.len() * 100 / all;
    let limits = policies.max_delete;
    let is_many = units.len() > limits.units;
    let is_much = units.len() >= PERCENT_COUNTS_FROM && percent > limits.percent;
    if !is_many && !is_much {
        return None;
    }
    let allowed = format!("{} and {} % are allowed at once", count(limits.units, "unit"), limits.percent);
    Some(hold(
        Guard::MaxDelete,
        format!("objects of {} of {all} ({percent} %) would be deleted, and {allowed}", count(units.len(), "unit")),
        "check the source; if they are to go, raise prune.maxDelete for the sync",
    ))
}

fn problem(rendering: &Rendering, policies: &Policies) -> Option<Hold> {
    let first = rendering.problems.iter().find(|problem| problem.scope != Scope::Notice)?;
    if !policies.hold_on_problem {
        return None;
    }
    Some(hold(
        Guard::Problem,
        format!("the source has problems, the first is {first}"),
        "mend the source, or set onProblem: hold-unit for the sync",
    ))
}

fn inventory(observed: &Observed, policies: &Policies) -> Option<Hold> {
    let message = match (&observed.doubt, observed.unproven.first()) {
        (Some(doubt), _) => format!("the inventory is not as this host has left it: {}", doubt.what),
        (None, Some(first)) => {
            let number = count(observed.unproven.len(), "entry").replace("entrys", "entries");
            format!("{number} of the inventory without a valid HMAC, such as {first}")
        }
        (None, None) => return None,
    };
    let sync = observed.doubt.as_ref().map_or(&policies.marker.sync, |doubt| &doubt.sync);
    let cluster = &policies.cluster;
    let hint = format!("see who has changed it, then run `gatewright inventory repair {sync} --cluster {cluster}`");
    Some(hold(Guard::Inventory, message, &hint))
}

fn are(number: usize, thing: &str) -> String {
    format!("{} {}", count(number, thing), if number == 1 { "is" } else { "are" })
}
