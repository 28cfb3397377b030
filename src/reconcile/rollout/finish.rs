//! A revision that comes while another one is rolled out: where that is to be finished first, rounds go on with it as long
//! as it goes well.
//!
//! It is held in memory: a source gives its newest revision only. So a process that begins goes on with the newest.

use std::sync::Arc;

use super::Rollout;
use super::known::{Known, Part};
use super::record::Record;
use crate::basics::lock::lock;
use crate::source::Snapshot;

impl Rollout {
    /// Returns the revision that a round is about: the newest, or the one that is to be finished first.
    pub(crate) fn goes_on_with(&self, newest: &Arc<Snapshot>) -> Arc<Snapshot> {
        if !self.finishes {
            return Arc::clone(newest);
        }
        let mut current = lock(&self.current);
        if let Some(current) = current.as_ref().filter(|it| it.revision != newest.revision && self.is_under_way(it)) {
            return Arc::clone(current);
        }
        Arc::clone(current.insert(Arc::clone(newest)))
    }

    /// Has all rounds begin with the newest revision if there is nothing to finish any more.
    pub(crate) fn goes_on_after(&self, newest: &Snapshot) {
        let is_over = |it: &Arc<Snapshot>| it.revision != newest.revision && !self.is_under_way(it);
        if lock(&self.current).as_ref().is_some_and(is_over) {
            self.nudge_all(&self.all);
        }
    }

    /// Tells whether a revision is on its way to some clusters, and has failed on none. What cannot be read is told, and
    /// nothing is waited for.
    fn is_under_way(&self, snapshot: &Snapshot) -> bool {
        self.look(None, |known| known.is_under_way(&snapshot.revision)).unwrap_or(false)
    }
}

impl Known {
    fn is_under_way(&self, revision: &str) -> bool {
        let of_it = || self.ledger.units.iter().filter(|record| record.revision == revision);
        let has_failed = of_it().flat_map(|record| record.members.values()).any(|member| member.stage.has_failed());
        !has_failed && of_it().any(|record| self.has_some_left(record))
    }

    /// Tells whether clusters that can be reached have something of a rollout before them.
    fn has_some_left(&self, record: &Record) -> bool {
        let is_there =
            |cluster: &String| matches!(self.parts().get(cluster), Some(part) if *part != Some(Part::Absent));
        let going = record.members.iter().filter(|(_, member)| member.is_on_the_way()).map(|(cluster, _)| cluster);
        let has_looked = |part: &Option<Part>| match part {
            Some(Part::Looked { target, .. }) => *target == record.target,
            Some(Part::Absent) => true,
            Some(Part::Running) | None => false,
        };
        going.chain(record.wants.keys()).any(is_there) || !self.parts().values().all(has_looked)
    }
}
