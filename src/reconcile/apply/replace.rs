//! Deleting an object for one that takes its place: under its own name, or in a place that only one can have.
//!
//! What is deleted is kept in memory until the other one is there, and is put back if that fails.

use std::collections::BTreeSet;
use std::time::Duration;

use gatewright_engine::error::Chain;
use gatewright_engine::live::Live;
use gatewright_engine::marks::{Owner, keep_mark};
use gatewright_engine::object::{Gvk, Object, ObjectId};
use gatewright_engine::plan::Over;
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::plan::recreate::pre_image;
use tokio::time::{Instant, sleep};

use super::model::Terms;
use super::pre_image::Keep;
use crate::cluster::{Cluster, ClusterError, Mode, Precondition, Reason};
use crate::report::outcome::Outcome;

/// The longest time for a deletion; what a finalizer holds longer is replaced by a later round.
const PATIENCE: Duration = Duration::from_secs(20);
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The result of a deletion.
pub(super) enum Removal {
    /// The object is gone; this is what it was, if it was there.
    Gone(Option<Box<Live>>),
    /// It is still there.
    Not(Outcome),
}

/// Deletes an object and waits until it is gone, if it still is the same, ours, and nobody asks for it to be kept.
///
/// Once the deletion is asked for it is among the `removed`, whatever comes of it.
pub(super) async fn remove(
    cluster: &dyn Cluster,
    (gvk, id): (&Gvk, &ObjectId),
    over: &Over,
    terms: Terms<'_>,
    removed: &mut BTreeSet<ObjectId>,
) -> Result<Removal, ClusterError> {
    let Some(live) = cluster.get(gvk, id).await? else { return Ok(Removal::Gone(None)) };
    if let Some(why) = reason_to_keep(cluster, &live, over, terms.policies) {
        return Ok(Removal::Not(Outcome::Stale(why)));
    }
    terms.keep.live(&live).await?;
    cluster.delete(gvk, id, &live.uid, &live.resource_version).await?;
    removed.insert(id.clone());
    terms.keep.after(id, None);
    let deadline = Instant::now() + PATIENCE;
    let mut pause = FIRST_PAUSE;
    loop {
        match cluster.get(gvk, id).await? {
            None => return Ok(Removal::Gone(Some(Box::new(live)))),
            Some(now) if now.uid != live.uid => {
                let why = "another object took its place while it was deleted".to_owned();
                return Ok(Removal::Not(Outcome::Stale(why)));
            }
            Some(_) if Instant::now() >= deadline => {
                let why = "it is being deleted, and something (a finalizer) holds it; a later round goes on";
                return Ok(Removal::Not(Outcome::Failed(why.to_owned())));
            }
            Some(_) => sleep(pause).await,
        }
        pause = (pause * 2).min(Duration::from_secs(2));
    }
}

/// Time has passed since the plan: says why an object is not the one any more that was to be deleted.
pub(super) fn reason_to_keep(cluster: &dyn Cluster, live: &Live, over: &Over, policies: &Policies) -> Option<String> {
    if live.uid != over.uid {
        return Some("another object stands in its place now".to_owned());
    }
    let owner = policies.marker.owner(&live.object);
    if cluster.carries_marks() && owner != Owner::Us && !policies.is_former(&owner) {
        return Some("it does not carry our mark any more".to_owned());
    }
    keep_mark(live.object.body()).map(|mark| format!("it carries {mark} now"))
}

/// Creates an object again whose former self is gone; where that fails the former one is put back.
pub(super) async fn make(
    cluster: &dyn Cluster,
    object: &Object,
    former: Option<&Live>,
    keep: Keep<'_>,
) -> Result<Live, (Outcome, Option<Live>)> {
    match cluster.apply(object, &Precondition::Absent, Mode::Real).await {
        Ok(live) => {
            keep.after(object.id(), Some(&live));
            Ok(live)
        }
        Err(error) if error.reason == Reason::Conflict => Err((Outcome::Stale(Chain(&error).to_string()), None)),
        Err(error) => {
            let (words, restored) = put_back(cluster, former, keep).await;
            Err((Outcome::Failed(format!("{}; {words}", Chain(&error))), restored))
        }
    }
}

/// Puts an object back that was deleted, and says how that went.
pub(super) async fn put_back(cluster: &dyn Cluster, former: Option<&Live>, keep: Keep<'_>) -> (String, Option<Live>) {
    let Some(former) = former else { return ("nothing was there before".to_owned(), None) };
    match cluster.apply(&pre_image(former), &Precondition::Absent, Mode::Real).await {
        Ok(live) => {
            keep.after(former.object.id(), Some(&live));
            (format!("the former {} was put back", former.object.id()), Some(live))
        }
        Err(error) => {
            let (id, why) = (former.object.id(), Chain(&error));
            (format!("the former {id} could not be put back, which `gatewright undo` can do later: {why}"), None)
        }
    }
}
