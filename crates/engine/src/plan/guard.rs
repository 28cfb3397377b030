//! Guards: what stops a whole sync on a cluster, or one of its units, before anything is done.
//!
//! Most holds can be lifted: they have a [token] that stands for exactly the steps that they hold, and the policies say
//! which tokens a person has approved. Two cannot: behind another cluster or another installation stands a mistake that
//! no approval of steps puts right.

pub(super) mod adopt;
pub mod confirm;
pub mod contents;
pub mod in_use;
pub(super) mod overlay;
pub mod rollout;
pub(super) mod source;
pub mod token;

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::policies::Policies;
use super::{Inputs, Observed, Plan};
use crate::inventory::Inventory;
use crate::object::ObjectId;
use crate::problem::Scope;
use crate::text::count;
use crate::unit::Rendering;
use rollout::Wait;
use token::HeldStep;

/// A guard stopped a sync on a cluster, or one of its units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hold {
    /// The guard.
    pub guard: Guard,
    /// The unit that waits; `None`: nothing at all is done on this cluster, or nothing is deleted, or see
    /// [`Hold::units`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<ObjectId>,
    /// The units that wait where they are several, for one reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<ObjectId>,
    /// The finding of the guard.
    pub message: String,
    /// Advice on how to go on.
    pub hint: String,
    /// The token that lifts it for exactly [`Hold::steps`]; `None` if no approval does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The token that lifts it on every cluster where the same steps wait; `None` if no approval does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet_token: Option<String>,
    /// The steps that wait for approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<HeldStep>,
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
    /// Something is to be deleted that a person has to look at first.
    Confirm,
    /// It is not certain that something was withdrawn.
    Withdrawal,
    /// The source is another one than the one that was applied last.
    SourceIdentity,
    /// The revision of the source is older than the one that was applied last, or may be.
    OlderSource,
    /// Something has to be deleted before what takes its place can be made.
    #[serde(rename = "release-first")]
    DeleteFirst,
    /// Something exists that bears nobody's mark, and is to become ours; or was made for another unit, of which it is not
    /// certain that it was withdrawn.
    Adopt,
    /// To take something over from a deployer would replace its pods.
    AdoptRestart,
    /// The change goes to another cluster first, and is not known to be healthy there yet.
    Rollout,
    /// It has been there, and is not healthy.
    RolloutHalted,
    /// The wave of the cluster has come, and a person has to agree.
    RolloutApproval,
    /// A person has paused the rollouts, or nobody knows how far they are; no approval lifts that.
    RolloutPaused,
    /// More would be deleted than the sync may on all its clusters together.
    MaxDeleteFleet,
    /// It is not known yet how much would be deleted on all clusters together.
    RolloutDeletion,
    /// Something would lose what an overlay has fed it, and the overlay is still there.
    OverlayLost,
    /// Another sync has to be through first.
    DependsOn,
    /// Something is to be deleted that pods need which stay.
    InUse,
}

impl Guard {
    /// Tells whether everything but deletions goes on.
    pub fn holds_only_deletions(self) -> bool {
        matches!(
            self,
            Self::Inventory | Self::SourceIdentity | Self::OlderSource | Self::MaxDeleteFleet | Self::RolloutDeletion
        )
    }
}

impl Guard {
    /// Tells whether a change waits for its turn after other clusters.
    pub fn is_of_rollout(self) -> bool {
        matches!(self, Self::Rollout | Self::RolloutHalted | Self::RolloutApproval | Self::RolloutPaused)
    }

    /// Tells whether a unit is changed once it is approved, and never deleted.
    fn holds_changes(self) -> bool {
        matches!(self, Self::Adopt | Self::AdoptRestart | Self::OverlayLost) || self.is_of_rollout()
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Stored holds have an older name of this one.
        if *self == Self::DeleteFirst { f.write_str("delete-first") } else { self.serialize(f) }
    }
}

/// Below this number of deleted units a percentage means nothing: one of two is half of all.
const PERCENT_COUNTS_FROM: usize = 3;

/// Adds every guard that stops this plan.
pub(super) fn add(plan: &mut Plan, inputs: Inputs<'_>) {
    let Inputs { rendering, observed, owned, policies } = inputs;
    let empty = empty_render(plan, inputs);
    // Whoever approves what an empty source deletes has seen how much it is.
    let much = if empty.is_none() { max_delete(plan, inputs) } else { None };
    let holds = [
        other_installation(observed, owned, policies),
        two_names(observed, policies),
        cluster_identity(observed, owned, policies),
        empty,
        much,
        problem(rendering, policies),
        inventory(observed, policies),
        depends_on(plan, inputs),
    ];
    for hold in holds.into_iter().flatten() {
        plan.stops(hold, inputs);
    }
}

impl Hold {
    fn on_sync(guard: Guard, message: String, hint: &str) -> Self {
        let hint = hint.to_owned();
        Self { guard, unit: None, units: Vec::new(), message, hint, token: None, fleet_token: None, steps: Vec::new() }
    }

    /// A unit waits, and approval of these steps lifts it.
    pub(super) fn on_unit(guard: Guard, unit: &ObjectId, message: String, hint: &str, steps: Vec<HeldStep>) -> Self {
        Self { unit: Some(unit.clone()), steps, ..Self::on_sync(guard, message, hint) }
    }

    /// Names what waits, as the beginning of a sentence: `Gateway infra/edge is `, `12 units are `; empty if all does.
    pub fn subject(&self) -> String {
        match (&self.unit, self.units.len()) {
            (Some(unit), _) => format!("{unit} is "),
            (None, 0) => String::new(),
            (None, number) => format!("{} are ", count(number, "unit")),
        }
    }

    fn with_tokens(mut self, observed: &Observed, policies: &Policies) -> Self {
        if !self.steps.is_empty() {
            self.token = Some(token::token(&self, observed, policies));
            self.fleet_token = Some(token::fleet_token(&self, policies));
        }
        self
    }

    /// Tells whether some units wait, and others do not.
    pub fn is_of_units(&self) -> bool {
        self.unit.is_some() || !self.units.is_empty()
    }

    fn with_prunes(self, plan: &Plan, inputs: Inputs<'_>) -> Self {
        let prunes = plan.steps.iter().filter(|step| step.action.deletes());
        Self { steps: prunes.map(|step| inputs.held(step)).collect(), ..self }
    }
}

impl Plan {
    /// Adds a hold with its token, unless it is approved; tells whether it stops anything.
    pub(super) fn stops(&mut self, hold: Hold, Inputs { observed, policies, .. }: Inputs<'_>) -> bool {
        self.add(hold, observed, policies)
    }

    fn add(&mut self, hold: Hold, observed: &Observed, policies: &Policies) -> bool {
        let hold = hold.with_tokens(observed, policies);
        let is_approved = hold.token.as_ref().is_some_and(|token| policies.approved.contains(token));
        if is_approved { &mut self.lifted } else { &mut self.holds }.push(hold);
        !is_approved
    }

    /// Tells whether a person has approved that all of a unit goes, for whatever reason that was held.
    pub(super) fn is_approved(&self, unit: &ObjectId) -> bool {
        self.lifted.iter().any(|hold| hold.unit.as_ref() == Some(unit) && !hold.guard.holds_changes())
    }

    /// Tells whether a guard stops everything.
    pub fn is_stopped(&self) -> bool {
        self.holds.iter().any(|hold| !hold.is_of_units() && !hold.guard.holds_only_deletions())
    }
}

/// A directory keeps its own inventory, and any installation may go on with it from the same place: that is how it works in
/// CI. Two that render what stands in two places would delete each other's.
fn other_installation(observed: &Observed, owned: &Inventory, policies: &Policies) -> Option<Hold> {
    let ours = &policies.marker.installation;
    let may_go_on = observed.is_unmarked && !source::is_elsewhere(owned, policies);
    if may_go_on || owned.installation.is_empty() || owned.installation == *ours {
        return None;
    }
    Some(Hold::on_sync(
        Guard::OtherInstallation,
        format!(
            "sync {:?} on this cluster belongs to installation {}, and this one is {ours}",
            policies.marker.sync, owned.installation
        ),
        &format!(
            "give this sync another name, copy the state directory (file installation) of the other host, or make it all \
             ours by `gatewright inventory claim {} --cluster {}`",
            policies.marker.sync, policies.cluster
        ),
    ))
}

/// Under each of its names it would be another's to prune what was made under the other.
fn two_names(observed: &Observed, policies: &Policies) -> Option<Hold> {
    let (twin, name, identity) = (policies.twin.as_ref()?, &policies.cluster, &observed.cluster);
    let message = format!("clusters {name:?} and {twin:?} of the config file are the same one, {identity}");
    let hint =
        "keep one of the two names, and have the syncs of both select it; until then nothing is done under either";
    Some(Hold::on_sync(Guard::ClusterIdentity, message, hint))
}

/// A kubeconfig that leads to another cluster has changed hands, or the cluster was built again: a person knows which.
fn cluster_identity(observed: &Observed, owned: &Inventory, policies: &Policies) -> Option<Hold> {
    let is_other = |known: &str| !known.is_empty() && !observed.cluster.is_empty() && known != observed.cluster;
    let (here, sync, cluster) = (&observed.cluster, &policies.marker.sync, &policies.cluster);
    let message = if is_other(&owned.cluster) {
        format!("the inventory was written for cluster {}, but {here} answers", owned.cluster)
    } else if is_other(&policies.known_cluster) {
        format!("this host has worked on cluster {}, but {here} answers by its name", policies.known_cluster)
    } else if observed.is_unmarked && observed.cluster.is_empty() && !owned.cluster.is_empty() {
        format!("the inventory was written for cluster {}, and what says which one this is has gone", owned.cluster)
    } else {
        return None;
    };
    let hint = format!(
        "check the kubeconfig; if the cluster was built again or restored from another one's backup, say so by `gatewright \
         inventory repair {sync} --cluster {cluster}`"
    );
    Some(Hold::on_sync(Guard::ClusterIdentity, message, &hint))
}

fn empty_render(plan: &Plan, inputs: Inputs<'_>) -> Option<Hold> {
    let Inputs { rendering, owned, policies, .. } = inputs;
    let is_empty = rendering.units.is_empty() && rendering.broken.is_empty() && rendering.self_managed.is_empty();
    // What still stands in the source, or in that of another sync, is not deleted anyway.
    let is_wanted = |id: &ObjectId| rendering.documents.contains(id) || policies.claims.by(id).is_some();
    let is_safe = owned.entries.keys().all(is_wanted);
    if !is_empty || is_safe || policies.allow_empty {
        return None;
    }
    let hold = Hold::on_sync(
        Guard::EmptyRender,
        format!("the source renders to nothing, but {} owned here", are(owned.entries.len(), "object")),
        "check the source's ref and path; if all of it is to go, approve it, or set prune.allowEmpty: true for the sync",
    );
    Some(hold.with_prunes(plan, inputs))
}

fn max_delete(plan: &Plan, inputs: Inputs<'_>) -> Option<Hold> {
    let units: BTreeSet<&ObjectId> = plan.prunes().map(|step| &step.unit).collect();
    let all = inputs.owned.units().len().max(1);
    let percent = units.len() * 100 / all;
    let limits = inputs.policies.max_delete;
    let is_many = units.len() > limits.units;
    let is_much = units.len() >= PERCENT_COUNTS_FROM && percent > limits.percent;
    if !is_many && !is_much {
        return None;
    }
    let allowed = format!("{} and {} % are allowed at once", count(limits.units, "unit"), limits.percent);
    let hold = Hold::on_sync(
        Guard::MaxDelete,
        format!("objects of {} of {all} ({percent} %) would be deleted, and {allowed}", count(units.len(), "unit")),
        "check the source; if they are to go, approve it, or raise prune.maxDelete for the sync",
    );
    Some(hold.with_prunes(plan, inputs))
}

fn problem(rendering: &Rendering, policies: &Policies) -> Option<Hold> {
    let first = rendering.problems.iter().find(|problem| problem.scope != Scope::Warning)?;
    if !policies.hold_on_problem {
        return None;
    }
    Some(Hold::on_sync(
        Guard::Problem,
        format!("the source has problems, the first is {first}"),
        "mend the source, or set onProblem: hold-unit for the sync",
    ))
}

fn inventory(observed: &Observed, policies: &Policies) -> Option<Hold> {
    let message = match (&observed.suspicion, observed.unverified.first()) {
        (Some(suspicion), _) => format!("the inventory is not as this host has left it: {}", suspicion.what),
        (None, Some(first)) => {
            let number = count(observed.unverified.len(), "entry").replace("entrys", "entries");
            format!("{number} of the inventory without a valid HMAC, such as {first}")
        }
        (None, None) => return None,
    };
    let sync = observed.suspicion.as_ref().map_or(&policies.marker.sync, |suspicion| &suspicion.sync);
    let cluster = &policies.cluster;
    let hint = format!("see who has changed it, then run `gatewright inventory repair {sync} --cluster {cluster}`");
    Some(Hold::on_sync(Guard::Inventory, message, &hint))
}

/// Whatever is to be done waits, deletions too: what they are about may be in use by what is not there yet.
fn depends_on(plan: &Plan, inputs: Inputs<'_>) -> Option<Hold> {
    let Wait { guard, message, hint, .. } = inputs.policies.awaited.as_ref()?;
    let steps: Vec<HeldStep> = plan.changes().map(|step| inputs.held(step)).collect();
    (!steps.is_empty()).then(|| Hold { steps, ..Hold::on_sync(*guard, message.clone(), hint) })
}

fn are(number: usize, thing: &str) -> String {
    format!("{} {}", count(number, thing), if number == 1 { "is" } else { "are" })
}
