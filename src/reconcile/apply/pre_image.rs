//! Keeping objects as they are before they are changed or deleted: what cannot be kept is not touched.

use std::error::Error;
use std::sync::Arc;

use gatewright_engine::live::Live;
use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::{Observed, Step};
use tokio::task::spawn_blocking;

use crate::cluster::{Cluster, ClusterError, Reason};
use crate::history::archive::record::Recorder;

/// The place where objects are kept, and what was seen of them.
#[derive(Clone, Copy)]
pub(crate) struct Keep<'a> {
    /// The record; `None` keeps nothing.
    pub recorder: Option<&'a Arc<Recorder>>,
    /// The state observed when the plan was made.
    pub observed: &'a Observed,
}

/// The error for an object that a step would write over and that was changed after the plan.
#[derive(Debug, thiserror::Error)]
#[error("somebody has changed or deleted it since the plan was made")]
struct Changed;

/// Says that a round cannot write down what it is about to do, and so does nothing.
pub(crate) fn unkept(what: &str, error: impl Error + Send + Sync + 'static) -> ClusterError {
    ClusterError {
        action: format!("keep {what}, without which nothing is changed or deleted"),
        reason: Reason::Other,
        hint: Some("make room in the state directory, and let this user write there".to_owned()),
        source: Box::new(error),
    }
}

impl Keep<'_> {
    /// Keeps what a step is about to write over.
    pub(super) async fn before(&self, cluster: &dyn Cluster, step: &Step) -> Result<(), ClusterError> {
        let Some(over) = step.action.over().filter(|_| self.recorder.is_some()) else { return Ok(()) };
        let is_it = |live: &&Live| live.uid == over.uid && live.resource_version == over.resource_version;
        // Of what was known to be unchanged nothing was read that could come back.
        let is_whole = !self.observed.unchanged.contains(&step.id);
        if let Some(live) = self.observed.live.get(&step.id).filter(|live| is_whole && is_it(live)) {
            return self.live(live).await;
        }
        match cluster.get(&step.gvk, &step.id).await? {
            Some(live) if is_it(&&live) => self.live(&live).await,
            _ => Err(ClusterError {
                action: format!("keep {} as it is", step.id),
                reason: Reason::Conflict,
                hint: None,
                source: Box::new(Changed),
            }),
        }
    }

    /// Keeps an object that is about to be deleted.
    ///
    /// Waiting for the disk keeps nobody from talking to clusters.
    pub(super) async fn live(&self, live: &Live) -> Result<(), ClusterError> {
        let Some(recorder) = self.recorder.cloned() else { return Ok(()) };
        let (what, live) = (format!("{} as it is", live.object.id()), live.clone());
        let kept = spawn_blocking(move || recorder.before(&live)).await;
        kept.map_err(|error| unkept(&what, error))?.map_err(|error| unkept(&what, error))
    }

    /// Records what a step has left behind.
    pub(super) fn after(&self, id: &ObjectId, live: Option<&Live>) {
        if let Some(recorder) = self.recorder {
            recorder.after(id, live);
        }
    }
}
