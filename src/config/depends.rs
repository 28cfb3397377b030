//! Dependencies between syncs: one changes nothing on a cluster before others are through.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use gatewright_engine::selector::ClusterSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::did_you_mean;
use super::settings::{Settings, SyncSettings};

/// Another sync that has to be through first: on the same cluster, unless something else is said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DependsOn {
    /// The other sync.
    pub sync: String,
    /// The cluster on which it has to be through, in place of the same one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The clusters of it on all of which it has to be through, in place of the same one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters: Option<ClusterSelector>,
}

/// A mistake in the dependencies of a sync: its place among them, what is wrong, and advice.
pub(super) type Mistake = (Vec<String>, String, String);

/// Finds what is wrong with the dependencies of a sync; `is_whole`: all clusters are known.
pub(super) fn check(name: &str, sync: &SyncSettings, settings: &Settings, is_whole: bool) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    for (index, dependency) in sync.depends_on.iter().enumerate() {
        let found = match settings.syncs.get(&dependency.sync) {
            None => {
                let hint = did_you_mean(&dependency.sync, settings.syncs.keys().map(String::as_str));
                Some(("sync", format!("there is no sync {:?}", dependency.sync), hint))
            }
            Some(other) => misdirected(name, sync, (dependency, other), settings, is_whole),
        };
        if let Some((field, message, hint)) = found {
            mistakes.push((vec![index.to_string(), field.to_owned()], message, hint));
        }
    }
    mistakes
}

/// Finds a dependency that leads to no cluster, with the field that says so.
fn misdirected(
    name: &str,
    sync: &SyncSettings,
    (dependency, other): (&DependsOn, &SyncSettings),
    settings: &Settings,
    is_whole: bool,
) -> Option<(&'static str, String, String)> {
    let (selected, awaited) = (settings.clusters_of(other), &dependency.sync);
    // Clusters of folders and Secrets come and go.
    let is_fixed = settings.cluster_folders.is_empty() && settings.cluster_secrets.is_empty();
    match (&dependency.cluster, &dependency.clusters) {
        (Some(_), Some(_)) => {
            let message = "a dependency is on one cluster or on several, not both".to_owned();
            Some(("cluster", message, "leave out cluster or clusters".to_owned()))
        }
        (Some(cluster), None) if is_whole && !settings.clusters.contains_key(cluster) => {
            let hint = did_you_mean(cluster, settings.clusters.keys().map(String::as_str));
            Some(("cluster", format!("there is no cluster {cluster:?}"), hint))
        }
        (Some(cluster), None)
            if settings.clusters.contains_key(cluster) && !selected.contains_key(cluster.as_str()) =>
        {
            let message = format!("sync {awaited:?} does not select cluster {cluster:?}");
            Some(("cluster", message, did_you_mean(cluster, selected.keys().copied())))
        }
        (None, Some(selector)) if is_fixed && !selected.iter().any(|(name, it)| selector.selects(name, &it.labels)) => {
            let message = format!("sync {awaited:?} has no cluster that is selected here");
            Some(("clusters", message, "select some of its clusters".to_owned()))
        }
        (None, None) if is_fixed && !settings.clusters_of(sync).keys().any(|it| selected.contains_key(it)) => {
            let message = format!("syncs {name:?} and {awaited:?} have no cluster in common");
            Some(("sync", message, "say with cluster or clusters where the other has to be through".to_owned()))
        }
        (Some(_) | None, None) | (None, Some(_)) => None,
    }
}

/// Finds the syncs that wait for themselves: each mistake stands at the first sync of its cycle by name.
pub(super) fn cycles(syncs: &BTreeMap<String, SyncSettings>) -> Vec<(String, Mistake)> {
    let edges: BTreeMap<&str, Vec<&str>> = syncs
        .iter()
        .map(|(name, sync)| (name.as_str(), sync.depends_on.iter().map(|it| it.sync.as_str()).collect()))
        .collect();
    let cycle = |name: &String| {
        let names = cycle_of(name, &edges)?;
        let next = names.get(1).copied().unwrap_or(name);
        let index = edges[name.as_str()].iter().position(|it| *it == next).unwrap_or_default();
        let message = match names.len() {
            1 => format!("sync {name:?} depends on itself"),
            _ => format!("these syncs wait for each other for ever: {}", [&names[..], &[name]].concat().join(" → ")),
        };
        let hint = "take one of these dependencies out; waves (rollout) are the order of clusters within one sync";
        Some((name.clone(), (vec![index.to_string(), "sync".to_owned()], message, hint.to_owned())))
    };
    syncs.keys().filter_map(cycle).collect()
}

/// Returns the shortest way from a sync back to itself by those that come after it by name, so that each cycle is found at
/// its first one.
fn cycle_of<'a>(first: &'a str, edges: &BTreeMap<&'a str, Vec<&'a str>>) -> Option<Vec<&'a str>> {
    let (mut ways, mut seen) = (VecDeque::from([vec![first]]), BTreeSet::new());
    while let Some(way) = ways.pop_front() {
        let last = way.last().copied().unwrap_or(first);
        for &next in edges.get(last).into_iter().flatten() {
            if next == first {
                return Some(way);
            }
            if next > first && seen.insert(next) {
                ways.push_back([&way[..], &[next]].concat());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn syncs(edges: &[Vec<usize>]) -> BTreeMap<String, SyncSettings> {
        let sync = |(number, others): (usize, &Vec<usize>)| {
            let others: Vec<_> = others.iter().map(|other| json!({"sync": format!("s{other}")})).collect();
            let settings = json!({"source": "a", "clusters": {"matchLabels": {}}, "dependsOn": others});
            (format!("s{number}"), serde_json::from_value(settings).expect("these are settings"))
        };
        edges.iter().enumerate().map(sync).collect()
    }

    /// Takes away whoever waits for nobody, until nobody is left or all wait.
    fn has_cycle(edges: &[Vec<usize>]) -> bool {
        let mut left: BTreeSet<usize> = (0..edges.len()).collect();
        loop {
            let before = left.len();
            let waiting = left.clone();
            left.retain(|number| edges[*number].iter().any(|other| waiting.contains(other)));
            if left.len() == before {
                return before > 0;
            }
        }
    }

    proptest! {
        #[test]
        fn a_cycle_is_found_exactly_where_there_is_one(
            edges in prop::collection::vec(prop::collection::vec(0..7_usize, 0..3), 7)
        ) {
            let syncs = syncs(&edges);
            let found = cycles(&syncs);
            prop_assert_eq!(!found.is_empty(), has_cycle(&edges), "{:?}", edges);
            for (name, (place, message, _)) in found {
                let number: usize = place[0].parse().expect("it is the place in a list");
                prop_assert!(syncs[&name].depends_on.len() > number, "{}", message);
                // Each arrow that is listed is a dependency, and the way ends where it began.
                let Some((_, way)) = message.split_once(": ") else { continue };
                let names: Vec<&str> = way.split(" → ").collect();
                prop_assert_eq!(names.first(), names.last());
                for pair in names.windows(2) {
                    prop_assert!(syncs[pair[0]].depends_on.iter().any(|it| it.sync == pair[1]), "{}", message);
                }
            }
        }
    }
}
