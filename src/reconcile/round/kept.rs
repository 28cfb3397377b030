//! What is kept of rollouts on the cluster of a round: read with the inventory, and written with it.
//!
//! It is written before anything is done, with what else is written ahead, and at the end, when it is known how that went.
//! A round in which nothing has changed writes nothing, and asks for nothing more.

use gatewright_engine::error::Chain;
use gatewright_engine::inventory::Inventory;
use gatewright_engine::plan::Plan;
use tracing::warn;

use crate::cluster::{Cluster, ClusterError};
use crate::inventory::store::{self, Shards, Store};
use crate::reconcile::model::{Conclusion, RoundSettings};
use crate::reconcile::rollout::Turn;
use crate::reconcile::rollout::recall::{Beside, Keep};
use crate::report::ClusterState;

fn beside<'a>(settings: &'a RoundSettings, inventory: &'a Inventory) -> Beside<'a> {
    Beside { inventory, audit: settings.audit.as_ref() }
}

/// Sees what is kept on the cluster. Where that is something, and this host has noted nothing, all clusters are asked.
pub(super) async fn read(settings: &RoundSettings, inventory: &Inventory, text: Option<&str>) {
    let Some(turn) = &settings.turn else { return };
    if turn.sees_kept(text, beside(settings, inventory)) {
        settings.stop.run_until_cancelled(turn.recall()).await;
    }
}

/// Asks all clusters what is kept there before a plan is carried out, where this host has noted nothing.
pub(super) async fn recall(settings: &RoundSettings, plan: &Plan) {
    if let Some(turn) = settings.turn.as_ref().filter(|_| !plan.is_stopped() && plan.changes().next().is_some()) {
        settings.stop.run_until_cancelled(turn.recall()).await;
    }
}

/// Writes an inventory, with what is to be kept of rollouts.
pub(super) async fn save(
    cluster: &dyn Cluster,
    settings: &RoundSettings,
    inventory: &Inventory,
    store: &mut Store,
) -> Result<(), ClusterError> {
    let words = settings.turn.as_ref().map(|turn| turn.keep(beside(settings, inventory)));
    let Some(Keep::Words(words)) = words else { return store.save(cluster, settings.sync(), inventory).await };
    store.tell_of_rollouts(words);
    store.save(cluster, settings.sync(), inventory).await?;
    if let Some(turn) = &settings.turn {
        turn.sees_kept(store.rollouts(), beside(settings, inventory));
    }
    Ok(())
}

/// Keeps how a round has ended. Where that fails the next round does it.
pub(crate) async fn keep(cluster: &dyn Cluster, settings: &RoundSettings, conclusion: &mut Conclusion) {
    let is_there = !matches!(conclusion.report.state, ClusterState::Unreachable | ClusterState::Unknown);
    let unsigned = Beside { inventory: &Inventory::default(), audit: None };
    let has_to = |turn: &Turn| matches!(turn.keep(unsigned), Keep::Words(_));
    if !is_there || !settings.turn.as_ref().is_some_and(has_to) {
        return;
    }
    if let Err(error) = try_keep(cluster, settings, conclusion).await {
        let (sync, error) = (settings.sync(), Chain(&error));
        warn!(sync, %error, "cannot keep on the cluster how far rollouts are");
    }
}

async fn try_keep(
    cluster: &dyn Cluster,
    settings: &RoundSettings,
    conclusion: &mut Conclusion,
) -> Result<(), ClusterError> {
    let mut store = store::watched(cluster, settings.sync(), settings.audit.as_ref(), Shards::Here).await?;
    if !store.exists() || store.suspicion.is_some() {
        return Ok(());
    }
    let before = store.version().map(str::to_owned);
    let inventory = store.inventory.clone();
    if let Some(turn) = &settings.turn {
        turn.sees_kept(store.rollouts(), beside(settings, &inventory));
    }
    save(cluster, settings, &inventory, &mut store).await?;
    let no_change = conclusion.last_round.as_mut().and_then(|last_round| last_round.no_change.as_mut());
    if let (Some(no_change), Some(version)) = (no_change, store.version())
        && Some(&no_change.inventory) == before.as_ref()
    {
        (no_change.inventory, conclusion.is_new) = (version.to_owned(), true);
    }
    Ok(())
}
