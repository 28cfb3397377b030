//! The deletions on all clusters of a sync together: what each of them may do by itself can be too much in sum.

use std::collections::BTreeMap;
use std::time::Duration;

use gatewright_engine::error::Chain;
use gatewright_engine::plan::guard::Guard;
use gatewright_engine::plan::guard::rollout::Wait;
use gatewright_engine::text::count;
use jiff::Timestamp;

use super::Rollout;
use super::known::{Asks, Known, Part};
use super::record::Deletions;
use crate::basics::lock::lock;
use crate::state::StateError;

/// The time that deletions wait for clusters of which nothing is known.
pub(super) const DELIBERATION: Duration = Duration::from_mins(2);

impl Known {
    /// Counts the units of which something is to be deleted on a cluster. As long as the same is to be had there, what was
    /// deleted counts on.
    pub(super) fn count(&mut self, Asks { cluster, target, .. }: Asks<'_>, units: usize) {
        if units > 0 {
            Deletions::add(&mut self.ledger.deletions, (cluster, target, units));
        }
    }

    /// Notes that a cluster was looked at.
    pub(super) fn looked_at(&mut self, Asks { cluster, target, .. }: Asks<'_>, deletes: usize) {
        Deletions::add(&mut self.counted, (cluster, target, deletes));
    }
}

impl Rollout {
    /// Says why nothing may be deleted on a cluster, if so: it is too much on all clusters together, or that is not known
    /// yet.
    pub(super) fn deletion(&self, known: &Known, asks: Asks<'_>, number: usize) -> Option<Wait> {
        if number == 0 {
            return None;
        }
        let deleted: BTreeMap<&String, Option<usize>> =
            self.all.iter().map(|name| (name, known.deleted(name, asks.target))).collect();
        let units = |(name, units): (&&String, &Option<usize>)| {
            let units = units.unwrap_or_default();
            if *name == asks.cluster { number.max(units) } else { units }
        };
        let deleting: Vec<usize> = deleted.iter().map(units).filter(|units| *units > 0).collect();
        let is_open = |name: &str| known.parts().get(name).is_some_and(|part| !matches!(part, Some(Part::Absent)));
        let unknown = deleted.iter().find(|(name, units)| **name != asks.cluster && units.is_none() && is_open(name));
        if let Some((name, _)) = unknown.filter(|_| self.deliberates(asks.target, asks.now)) {
            let message = format!(
                "how much is deleted on all clusters together is not known yet: cluster {name} was not looked at"
            );
            let hint = "it is deleted by itself once that is known, unless it is too much".to_owned();
            return Some(Wait { guard: Guard::RolloutDeletion, message, hint, why: None });
        }
        self.too_much(deleting.iter().sum(), deleting.len())
    }

    fn too_much(&self, all: usize, clusters: usize) -> Option<Wait> {
        if all <= self.max_deleted || clusters < 2 {
            return None;
        }
        let (units, max) = (count(all, "unit"), self.max_deleted);
        let message = format!(
            "objects of {units} would be deleted on {clusters} clusters, and {max} are allowed on all together"
        );
        let hint =
            "check the source; if they are to go, approve it, or raise prune.maxDelete.fleet for the sync".to_owned();
        Some(Wait { guard: Guard::MaxDeleteFleet, message, hint, why: None })
    }

    /// Tells whether deletions for a target wait for clusters of which nothing is known, which is not for ever.
    fn deliberates(&self, target: &str, now: Timestamp) -> bool {
        let mut known = lock(&self.deliberated);
        let (_, since) = match known.take() {
            Some(known) if known.0 == target => known,
            _ => (target.to_owned(), now),
        };
        *known = Some((target.to_owned(), since));
        since.checked_add(DELIBERATION).is_ok_and(|end| now < end)
    }
}

/// Has deletions wait where nobody knows how much was deleted on other clusters.
pub(super) fn uncounted(error: &StateError) -> Wait {
    let message = format!("nobody knows how much is deleted on all clusters together: {}", Chain(error));
    let hint = "mend or remove the file; or approve what is deleted here".to_owned();
    Wait { guard: Guard::MaxDeleteFleet, message, hint, why: None }
}
