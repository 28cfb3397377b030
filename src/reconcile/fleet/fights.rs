//! The record that this host keeps of values that somebody sets back again and again: a file for each sync and cluster.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::diff::Difference;
use gatewright_engine::error::Chain;
use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::conflicts::FieldVerdict;
use gatewright_engine::plan::conflicts::fights::{Fights, Seen, left_alone, made};
use gatewright_engine::plan::refusal::Reason;
use tracing::error;

use crate::reconcile::model::Order;
use crate::report::action::StepAction;
use crate::report::outcome::Outcome;
use crate::report::{ClusterReport, ClusterState, Mode, StepReport};
use crate::state::store::Store;
use crate::state::{State, StateError};

const FIGHTS: Store<Fights> = Store::new("fights");

/// Forgets what is kept of a cluster.
pub(super) fn forget_cluster(state: &State, cluster: &str) -> Result<(), StateError> {
    FIGHTS.forget(state, cluster)
}

/// Keeps what is kept of a cluster under another name.
pub(super) fn rename_cluster(state: &State, names: (&str, &str)) -> Result<(), StateError> {
    FIGHTS.rename(state, names, |_| true)
}

/// Returns what is remembered; without the file nothing is.
pub(super) fn remembered(order: &Order, cluster: &str, state: &State) -> Fights {
    FIGHTS.read(state, &[&order.sync, cluster]).unwrap_or_default()
}

/// Remembers what a round has corrected. A plan is no round, and neither is one that a guard holds. An undo corrects nothing:
/// what it has changed nobody else has, and whoever makes that again is in no fight.
pub(super) fn remember(order: &Order, clusters: &BTreeMap<String, ClusterReport>, state: &State) {
    let is_round = |report: &ClusterReport| match report.state {
        ClusterState::Done | ClusterState::Failed | ClusterState::Stopped => {
            !report.steps.is_empty() || report.refusals.iter().any(|refusal| is_rest(&refusal.reason))
        }
        ClusterState::Planned
        | ClusterState::Compared
        | ClusterState::Held
        | ClusterState::Unreachable
        | ClusterState::Suspended
        | ClusterState::Unknown => false,
    };
    let is_undo = order.undo.is_some();
    let rounds = clusters.iter().filter(|(_, report)| order.mode == Mode::Apply && is_round(report));
    for (name, report) in rounds {
        let before = remembered(order, name, state);
        let steps = report.steps.iter().map(|step| &step.id);
        let known: BTreeSet<String> =
            steps.chain(report.refusals.iter().map(|refusal| &refusal.id)).map(ObjectId::key).collect();
        let (made, alone) = ([made()], [left_alone()]);
        let seen = report.steps.iter().filter_map(|step| if is_undo { taken_back(step) } else { seen(step, &made) });
        let rests = report.refusals.iter().filter_map(|refusal| rests(&refusal.id, &refusal.reason, &alone));
        let seen: Vec<Seen<'_>> = seen.chain(rests).collect();
        let after = before.after(&seen, |key| is_undo || order.only.is_some() || known.contains(key));
        if after != before
            && let Err(error) = FIGHTS.write(state, &[&order.sync, name], &after)
        {
            error!(error = %Chain(&error), "cannot remember what was corrected");
        }
    }
}

/// Returns what a step has shown; `None` if it was not carried out.
fn seen<'a>(step: &'a StepReport, made: &'a [Difference]) -> Option<Seen<'a>> {
    let corrected: &[Difference] = match (step.action, &step.outcome) {
        (StepAction::Update, Some(Outcome::Done)) => &step.differences,
        (StepAction::Create, Some(Outcome::Done)) => made,
        (StepAction::Unchanged, None) | (_, Some(Outcome::Done)) => &[],
        _ => return None,
    };
    Some(Seen { id: &step.id, corrected, decided: &step.fields })
}

/// Returns what a step of an undo has shown; `None` if it was not carried out.
fn taken_back(step: &StepReport) -> Option<Seen<'_>> {
    (step.outcome == Some(Outcome::Done)).then_some(Seen { id: &step.id, corrected: &[], decided: &[] })
}

/// Reads a refusal: an object that somebody deletes again and again was left alone in this round.
fn rests<'a>(id: &'a ObjectId, reason: &Reason, alone: &'a [FieldVerdict]) -> Option<Seen<'a>> {
    is_rest(reason).then_some(Seen { id, corrected: &[], decided: alone })
}

fn is_rest(reason: &Reason) -> bool {
    matches!(reason, Reason::DeletedAgain(_))
}
