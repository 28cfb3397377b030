//! The rollouts that are under way: which change is how far, and on which clusters, by wave where waves are set.

use std::collections::BTreeSet;

use gatewright_engine::error::Chain;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::cell::cut;
use super::target::MOST_CHARACTERS;
use crate::config::Config;
use crate::config::settings::SyncSettings;
use crate::reconcile::rollout::progress::{self, Progress};
use crate::reconcile::rollout::record::{self, Pause, Stage};
use crate::state::State;

/// The version of the form.
const SCHEMA: &str = "gatewright.dev/rollouts/v1alpha1";

/// The part that somebody asks for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    /// Only this sync.
    pub(super) sync: Option<String>,
}

/// The rollouts of syncs.
#[derive(Serialize)]
pub(crate) struct Rollouts {
    schema: &'static str,
    syncs: Vec<OfSync>,
}

/// The rollouts of a sync; those without any are left out, unless they are paused.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OfSync {
    sync: String,
    /// The words of whoever has paused them.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<String>,
    /// The reason why nobody knows how far they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    rollouts: Vec<Rollout>,
    /// The number of rollouts beyond those.
    more: usize,
}

/// The rollout of a change.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rollout {
    revision: String,
    since: Timestamp,
    units: Vec<String>,
    more_units: usize,
    /// The clusters in the order in which they get it; one wave where no order is set.
    waves: Vec<Wave>,
}

/// Clusters that get a change together.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Wave {
    /// Whether a person agrees first.
    approval: bool,
    /// The number of clusters that neither have the change nor wait for it.
    others: usize,
    healthy: Names,
    going: Names,
    waiting: Names,
    failed: Vec<Failed>,
}

/// Some names, and the number of all.
#[derive(Default, Serialize)]
struct Names {
    total: usize,
    names: Vec<String>,
}

/// A cluster that has not become healthy with a change.
#[derive(Serialize)]
struct Failed {
    cluster: String,
    /// Whether it has what it had before again.
    returned: bool,
    why: String,
}

/// Tells of all rollouts of a sync, or of all, that are under way; at most so many of them, of their units and clusters are
/// named.
pub(crate) fn rollouts((state, config): (&State, &Config), sync: Option<&str>, most: usize) -> Rollouts {
    let syncs = config.settings.syncs.iter().filter(|(name, _)| sync.is_none_or(|sync| sync == name.as_str()));
    let told = syncs.map(|it| OfSync::of(state, config, it, most));
    let told = told.filter(|it| it.paused.is_some() || it.error.is_some() || !it.rollouts.is_empty());
    Rollouts { schema: SCHEMA, syncs: told.collect() }
}

impl OfSync {
    fn of(state: &State, config: &Config, (name, settings): (&String, &SyncSettings), most: usize) -> Self {
        let empty = Self { sync: name.clone(), paused: None, error: None, rollouts: Vec::new(), more: 0 };
        let ledger = match record::read(state, name) {
            Ok(ledger) => ledger,
            Err(error) => return Self { error: Some(Chain(&error).to_string()), ..empty },
        };
        let waves: Vec<(bool, Vec<String>)> = if settings.rollout.waves.is_empty() {
            vec![(false, config.clusters_of(settings).into_keys().map(str::to_owned).collect())]
        } else {
            let waves = settings.rollout.waves_of(&config.clusters_of(settings)).into_iter();
            waves.map(|(wave, names)| (wave.is_some_and(|wave| wave.approval), names)).collect()
        };
        let open = progress::open(&ledger);
        Self {
            paused: ledger.paused.as_ref().map(Pause::words),
            rollouts: open.iter().take(most).map(|progress| Rollout::of(progress, &waves, most)).collect(),
            more: open.len().saturating_sub(most),
            ..empty
        }
    }
}

impl Rollout {
    fn of(progress: &Progress<'_>, waves: &[(bool, Vec<String>)], most: usize) -> Self {
        Self {
            revision: progress.revision.to_owned(),
            since: progress.since,
            units: progress.units.iter().take(most).map(ToString::to_string).collect(),
            more_units: progress.units.len().saturating_sub(most),
            waves: waves.iter().map(|(approval, names)| Wave::of(progress, *approval, names, most)).collect(),
        }
    }
}

impl Wave {
    fn of(progress: &Progress<'_>, approval: bool, names: &[String], most: usize) -> Self {
        let mut wave = Self { approval, ..Self::default() };
        let waiting: BTreeSet<&String> = progress.waiting.iter().copied().collect();
        for name in names {
            match progress.members.get(name) {
                Some(Stage::Healthy) => wave.healthy.add(name, most),
                Some(Stage::Going) => wave.going.add(name, most),
                Some(Stage::Halted(why)) => wave.fail(name, false, why, most),
                Some(Stage::Returned(failure)) => wave.fail(name, true, &failure.words(name), most),
                None if waiting.contains(name) => wave.waiting.add(name, most),
                None => wave.others += 1,
            }
        }
        wave
    }

    fn fail(&mut self, cluster: &str, returned: bool, why: &str, most: usize) {
        if self.failed.len() < most {
            self.failed.push(Failed { cluster: cluster.to_owned(), returned, why: cut(why, MOST_CHARACTERS) });
        }
    }
}

impl Names {
    fn add(&mut self, name: &str, most: usize) {
        self.total += 1;
        if self.names.len() < most {
            self.names.push(name.to_owned());
        }
    }
}
