//! Parts of a notification that wait for each other: the reports of a sync on single clusters, at one revision.
//!
//! What waits is on the disk, as a list of kept reports beside the notifications that wait for the same webhook, and is put
//! together when it is told. If this process ends before that, the next one tells it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Mutex;

use gatewright_engine::error::Chain;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tracing::error;

use super::gather::Progress;
use super::notification::Notification;
use super::queue::Queue;
use crate::basics::lock::lock;
use crate::history::journal;
use crate::report::merged::merged;
use crate::state::StateError;

/// Rounds add parts while others tell them.
static FILES: Mutex<()> = Mutex::new(());

/// The parts that wait.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pending {
    revision: String,
    due: Timestamp,
    progress: Progress,
    /// The kept reports, by the cluster that each is of.
    parts: BTreeMap<String, PathBuf>,
}

/// A part: the kept report of a sync on a cluster.
pub(super) struct Part<'a> {
    pub(super) sync: &'a str,
    pub(super) revision: &'a str,
    pub(super) cluster: &'a str,
    pub(super) kept: PathBuf,
}

impl Queue {
    /// Adds a part, to be told at `due` at the latest. What waits for another revision is told now, and so is what there is
    /// of the same cluster. Returns how many notifications were lost, because too many wait.
    pub(super) fn add(&self, part: Part<'_>, progress: Progress, due: Timestamp) -> Result<usize, StateError> {
        let _files = lock(&FILES);
        let mut lost = 0;
        let mut pending = self.pending(part.sync);
        if let Some(old) = &pending
            && (old.revision != part.revision || old.parts.contains_key(part.cluster))
        {
            lost += self.close_now(part.sync)?;
            pending = None;
        }
        let mut pending = pending.unwrap_or_else(|| Pending { due, ..Pending::default() });
        part.revision.clone_into(&mut pending.revision);
        (pending.due, pending.progress) = (pending.due.min(due), progress);
        pending.parts.insert(part.cluster.to_owned(), part.kept);
        self.hold(part.sync, &pending)?;
        Ok(lost)
    }

    /// Has a part be told now and by itself, after what waits; a part that another round adds meanwhile is not told with it.
    pub(super) fn tell_alone(&self, part: Part<'_>, progress: Progress) -> Result<usize, StateError> {
        let _files = lock(&FILES);
        let lost = self.close_now(part.sync)?;
        let parts = BTreeMap::from([(part.cluster.to_owned(), part.kept)]);
        let pending = Pending { revision: part.revision.to_owned(), progress, parts, ..Pending::default() };
        self.hold(part.sync, &pending)?;
        Ok(lost + self.close_now(part.sync)?)
    }

    /// Has what waits of a sync be told now; `progress` is how far it has come by now.
    pub(super) fn close(&self, sync: &str, progress: Progress) -> Result<usize, StateError> {
        let _files = lock(&FILES);
        if let Some(pending) = self.pending(sync) {
            let pending = Pending { progress, ..pending };
            self.hold(sync, &pending)?;
        }
        self.close_now(sync)
    }

    /// Has be told what was to be told by now, and this long ago.
    pub(super) fn close_due(&self, now: Timestamp, since: SignedDuration) -> Result<usize, StateError> {
        let _files = lock(&FILES);
        let mut lost = 0;
        for sync in self.syncs_pending() {
            let is_due = self.pending(&sync).is_none_or(|pending| now.duration_since(pending.due) >= since);
            if is_due {
                lost += self.close_now(&sync)?;
            }
        }
        Ok(lost)
    }

    /// Makes one notification of what waits; of several that differ in more than the cluster, one each.
    fn close_now(&self, sync: &str) -> Result<usize, StateError> {
        let Some(pending) = self.pending(sync) else {
            self.remove_pending(sync);
            return Ok(0);
        };
        let mut lost = 0;
        for report in merged(pending.parts.values().filter_map(|kept| journal::read(kept))) {
            let kept: BTreeSet<&PathBuf> = report.clusters.keys().filter_map(|name| pending.parts.get(name)).collect();
            let Some(newest) = kept.into_iter().next_back() else { continue };
            let notification = Notification::of(&report, newest).at(pending.progress);
            match notification.body() {
                Ok(body) => lost += self.put(&notification.id, body.as_bytes())?,
                // The next try would end in the same way.
                Err(error) => error!(error = %Chain(&error), "cannot write a notification"),
            }
        }
        self.remove_pending(sync);
        Ok(lost)
    }

    fn hold(&self, sync: &str, pending: &Pending) -> Result<(), StateError> {
        self.write_pending(sync, &serde_json::to_vec(pending).unwrap_or_default())
    }

    fn pending(&self, sync: &str) -> Option<Pending> {
        serde_json::from_slice(&self.read_pending(sync)?).ok()
    }
}
