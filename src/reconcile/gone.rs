//! Clusters that are gone: something was applied there, and the configuration names them no more. And those that are still
//! there, but not for a sync that has applied something: it selects them no more, or is gone itself.
//!
//! Gone is not empty: nothing on such a cluster is touched, and what this host remembers of it stays until a person has it
//! forgotten. They are found by that memory alone, so that there is nothing else to keep true.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::text::listed;

use crate::config::Config;
use crate::config::settings::SyncSettings;
use crate::desired::assemble::DISCOVERY;
use crate::history::{approvals, interrupted, journal};
use crate::inventory::audit;
use crate::reconcile::{aliases, fleet};
use crate::state::{State, StateError};

/// The most clusters that a message names.
const MOST_NAMES: usize = 8;

/// The words about a cluster that is gone.
pub(crate) const WORDS: &str = "gone from the configuration; what was applied there stays as it is";

/// Returns the advice about one.
pub(crate) fn hint(cluster: &str) -> String {
    format!(
        "configure it again, delete what is there: gatewright destroy SYNC --cluster {cluster} --kubeconfig FILE, or leave \
         it: gatewright clusters forget {cluster}"
    )
}

/// Returns the clusters that are gone, each with the syncs that have applied something there. While it is not known which
/// clusters there are, none is.
pub(crate) fn find(config: &Config, state: &State) -> BTreeMap<String, BTreeSet<String>> {
    let mut gone: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    if !config.knows_all_clusters() {
        return gone;
    }
    for (sync, cluster) in audit::SEEN.targets(state) {
        // What has another name now is not gone.
        let is_there = config.settings.clusters.contains_key(config.settings.name_now(&cluster));
        if !is_there {
            gone.entry(cluster).or_default().insert(sync);
        }
    }
    gone
}

/// Returns the syncs that have applied something to clusters where they do not go any more, each with these clusters: a label
/// that was misspelled takes a cluster from a sync as well as a decision does. Clusters that are gone are not among them.
pub(crate) fn unselected(config: &Config, state: &State) -> BTreeMap<String, BTreeSet<String>> {
    let mut unselected: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    if !config.knows_all_clusters() {
        return unselected;
    }
    let settings = &config.settings;
    let goes = |sync: &str, cluster: &str| {
        let is_it = |(name, sync_settings): (&String, &SyncSettings)| {
            let has_its_name = name == sync || sync_settings.moved.iter().any(|moved| moved.from == sync);
            has_its_name && settings.clusters_of(sync_settings).contains_key(cluster)
        };
        settings.syncs.iter().any(is_it)
    };
    for (sync, cluster) in audit::SEEN.targets(state) {
        let name = settings.name_now(&cluster);
        if settings.clusters.contains_key(name) && !goes(&sync, name) {
            unselected.entry(sync).or_default().insert(name.to_owned());
        }
    }
    unselected
}

/// Says where a sync does not go any more, and what can be done: two lines.
pub(crate) fn unselected_words(config: &Config, sync: &str, clusters: &BTreeSet<String>) -> String {
    let names: Vec<&String> = clusters.iter().collect();
    let listed = listed(&names, MOST_NAMES);
    let nouns = if clusters.len() == 1 { "cluster" } else { "clusters" };
    let (what, again) = if config.settings.syncs.contains_key(sync) {
        (format!("does not select {nouns} {listed} any more"), "select it again (`gatewright clusters` shows labels)")
    } else {
        (format!("is not configured any more, and has applied something to {nouns} {listed}"), "configure it again")
    };
    let first = names.first().map(|name| name.as_str()).unwrap_or_default();
    format!(
        "sync {sync} {what}; what was applied there stays as it is\n  {again}, delete it: gatewright destroy {sync} \
         --cluster {first}, or leave it: gatewright clusters forget {first}\n"
    )
}

/// Forgets what this host remembers of syncs on a cluster to which they do not go any more.
pub(crate) fn forget_syncs(state: &State, cluster: &str, syncs: &BTreeSet<String>) -> Result<(), StateError> {
    syncs.iter().try_for_each(|sync| audit::SEEN.remove(state, &[sync, cluster]))
}

/// Forgets all that this host remembers of a cluster, but for its reports and what undo has kept: those expire. What makes a
/// cluster gone is forgotten last.
pub(crate) fn forget(state: &State, cluster: &str) -> Result<(), StateError> {
    DISCOVERY.remove(state, &[cluster])?;
    aliases::forget_cluster(state, cluster)?;
    fleet::forget_cluster(state, cluster)?;
    approvals::forget_cluster(state, cluster)?;
    interrupted::forget_cluster(state, cluster)?;
    journal::forget_cluster(state, cluster)?;
    audit::SEEN.forget(state, cluster)
}
