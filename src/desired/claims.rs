//! What the syncs of this installation want beside each other on a cluster, for plans that must not delete what only
//! moves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use gatewright_engine::plan::claims::{Claim, Claims, Wanted};
use gatewright_engine::unit::Rendering;

use crate::config::Config;
use crate::config::settings::Mode;
use crate::desired::rendering::Want;
use crate::desired::rendering::work::{RenderingError, patiently};

/// What another sync wants on a cluster.
#[derive(Clone)]
pub enum Neighbor {
    /// What its source says, which is rendered only if a round has to ask.
    Wants(Want),
    /// Its source cannot be read, and why: it may want anything.
    Unread(String),
}

/// The other syncs of this installation as one of them sees them on a cluster, by name; `None` has nothing to do there.
#[derive(Clone, Default)]
pub struct Beside {
    syncs: BTreeMap<String, Option<Neighbor>>,
    /// Those that only report.
    reports: BTreeSet<String>,
    patience: Option<Duration>,
}

impl Beside {
    /// Puts together the others, where `known` says what each of those wants that go to the cluster.
    ///
    /// A sync of which it says nothing may want anything.
    pub fn new(config: &Config, sync: &str, cluster: &str, known: &BTreeMap<String, Neighbor>) -> Self {
        let others = config.settings.syncs.iter().filter(|(name, _)| *name != sync);
        let mut syncs: BTreeMap<String, Option<Neighbor>> =
            others.clone().map(|(name, _)| (name.clone(), None)).collect();
        for name in neighbors(config, sync, cluster) {
            let unread = || Neighbor::Unread("its source has not been read".to_owned());
            syncs.insert(name.to_owned(), Some(known.get(name).cloned().unwrap_or_else(unread)));
        }
        let reports = others.filter(|(_, settings)| settings.mode == Mode::Report).map(|(name, _)| name.clone());
        Self { syncs, reports: reports.collect(), patience: None }
    }

    /// Returns these syncs, which apply what they want, and nothing of a configuration.
    pub fn of(neighbors: impl IntoIterator<Item = (String, Neighbor)>) -> Self {
        let syncs = neighbors.into_iter().map(|(name, neighbor)| (name, Some(neighbor))).collect();
        Self { syncs, reports: BTreeSet::new(), patience: None }
    }

    /// Waits for all of them together no longer than this; without it, for each as long as its rendering may take.
    #[must_use]
    pub fn patient(self, patience: Duration) -> Self {
        Self { patience: Some(patience), ..self }
    }

    /// Returns what they want, as far as their sources say it.
    pub fn wants_mut(&mut self) -> impl Iterator<Item = &mut Want> {
        self.syncs.values_mut().filter_map(|neighbor| match neighbor {
            Some(Neighbor::Wants(want)) => Some(want),
            Some(Neighbor::Unread(_)) | None => None,
        })
    }

    /// Finds out what they want. Of one that is not rendered, or not yet, that is not known, and nobody else suffers
    /// for it.
    pub async fn claims(&self) -> Claims {
        let claim = async |(name, neighbor): (&String, &Option<Neighbor>)| {
            let claim = match neighbor {
                None => Claim::Known(Arc::new(Wanted::default())),
                Some(Neighbor::Wants(want)) => known(patiently(self.patience, want.rendering()).await),
                Some(Neighbor::Unread(why)) => Claim::Unknown(why.clone()),
            };
            (name.clone(), claim)
        };
        let syncs = join_all(self.syncs.iter().map(claim)).await.into_iter().collect();
        Claims { syncs, reports: self.reports.clone() }
    }
}

fn known(rendering: Option<Result<Arc<Rendering>, RenderingError>>) -> Claim {
    match rendering {
        Some(Ok(rendering)) => Claim::Known(Arc::new(Wanted::of(&rendering))),
        Some(Err(RenderingError::Bug(_))) => Claim::Unknown("its rendering ended in a bug, see the log".to_owned()),
        Some(Err(RenderingError::Late(limit))) => Claim::Unknown(format!("it was not rendered within {limit}")),
        None => Claim::Unknown("it is still being rendered".to_owned()),
    }
}

/// Returns the other syncs that go to a cluster.
pub fn neighbors<'a>(config: &'a Config, sync: &'a str, cluster: &'a str) -> impl Iterator<Item = &'a str> {
    let others = config.settings.syncs.iter().filter(move |(name, _)| *name != sync);
    let shares = move |(name, settings)| config.clusters_of(settings).contains_key(cluster).then_some(name);
    others.filter_map(move |(name, settings)| shares((name.as_str(), settings)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_sync_whose_rendering_did_not_end_may_want_anything() {
        let rendering = tokio::spawn(std::future::pending());
        rendering.abort();
        let ended = rendering.await.map_err(RenderingError::Bug);
        assert!(matches!(known(Some(ended)), Claim::Unknown(why) if why.contains("bug")));
        assert!(matches!(known(None), Claim::Unknown(_)));
    }
}
