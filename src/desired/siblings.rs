//! The objects that the syncs of this installation want beside each other on a cluster, for plans that must not delete
//! what only moves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use gatewright_engine::kinds;
use gatewright_engine::plan::claims::{Claim, Claims, Wanted};
use gatewright_engine::unit::marked::Marked;

use crate::config::Config;
use crate::config::settings::Mode;
use crate::desired::rendering::Want;
use crate::desired::rendering::work::{RenderingError, within};

/// The objects that another sync wants on a cluster.
#[derive(Clone)]
pub enum Sibling {
    /// The content of its source, which is rendered only if a round has to ask.
    Wants(Want),
    /// Its source cannot be read, and why: it may want anything.
    Unread(String),
}

/// The other syncs of this installation as one of them sees them on a cluster, by name; `None` has nothing to do there.
#[derive(Clone, Default)]
pub struct Siblings {
    syncs: BTreeMap<String, Option<Sibling>>,
    /// Those that only report.
    reports: BTreeSet<String>,
    limit: Option<Duration>,
}

impl Siblings {
    /// Puts together the others, where `known` says what each of those wants that go to the cluster.
    ///
    /// A sync of which it says nothing may want anything.
    pub fn new(config: &Config, sync: &str, cluster: &str, known: &BTreeMap<String, Sibling>) -> Self {
        let others = config.settings.syncs.iter().filter(|(name, _)| *name != sync);
        let unread = || Sibling::Unread("its source has not been read".to_owned());
        let wants = |name: &String| known.get(name).cloned().unwrap_or_else(unread);
        let goes_there = |settings| config.clusters_of(settings).contains_key(cluster);
        let syncs = others.clone().map(|(name, settings)| (name.clone(), goes_there(settings).then(|| wants(name))));
        let reports = others.clone().filter(|(_, settings)| settings.mode == Mode::Report);
        Self { syncs: syncs.collect(), reports: reports.map(|(name, _)| name.clone()).collect(), limit: None }
    }

    /// Returns these syncs, which apply what they want, and nothing of a configuration.
    pub fn of(siblings: impl IntoIterator<Item = (String, Sibling)>) -> Self {
        let syncs = siblings.into_iter().map(|(name, sibling)| (name, Some(sibling))).collect();
        Self { syncs, reports: BTreeSet::new(), limit: None }
    }

    /// Waits for all of them together no longer than this; without it, for each as long as its rendering may take.
    #[must_use]
    pub fn within_limit(self, limit: Duration) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// Returns what they want, as far as their sources say it.
    pub fn wants_mut(&mut self) -> impl Iterator<Item = &mut Want> {
        self.syncs.values_mut().filter_map(|sibling| match sibling {
            Some(Sibling::Wants(want)) => Some(want),
            Some(Sibling::Unread(_)) | None => None,
        })
    }

    /// Finds out what they want. Of one that is not rendered, or not yet, that is not known, and nobody else suffers
    /// for it.
    pub async fn claims(&self, kinds: &kinds::Table) -> Claims {
        let claim = async |(name, sibling): (&String, &Option<Sibling>)| {
            let claim = match sibling {
                None => Claim::Known(Arc::new(Wanted::default())),
                Some(Sibling::Wants(want)) => known(within(self.limit, want.rendering()).await, kinds),
                Some(Sibling::Unread(why)) => Claim::Unknown(why.clone()),
            };
            (name.clone(), claim)
        };
        let syncs = join_all(self.syncs.iter().map(claim)).await.into_iter().collect();
        Claims { syncs, reports: self.reports.clone() }
    }
}

fn known(rendering: Option<Result<Arc<Marked>, RenderingError>>, kinds: &kinds::Table) -> Claim {
    match rendering {
        Some(Ok(rendering)) => Claim::Known(Arc::new(Wanted::of(&rendering, kinds))),
        Some(Err(RenderingError::Bug(_))) => Claim::Unknown("its rendering ended in a bug, see the log".to_owned()),
        Some(Err(RenderingError::Late(limit))) => Claim::Unknown(format!("it was not rendered within {limit}")),
        None => Claim::Unknown("it is still being rendered".to_owned()),
    }
}

/// Returns the other syncs that go to a cluster.
pub fn siblings<'a>(config: &'a Config, sync: &'a str, cluster: &'a str) -> impl Iterator<Item = &'a str> {
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
        let kinds = kinds::Table::builtin();
        assert!(matches!(known(Some(ended), &kinds), Claim::Unknown(why) if why.contains("bug")));
        assert!(matches!(known(None, &kinds), Claim::Unknown(_)));
    }
}
