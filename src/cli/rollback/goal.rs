//! The sets that the clusters of a sync go back to.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::object::ObjectId;
use gatewright_engine::text::{count, listed};

use crate::history::archive::sets::Set;

/// Numbers up to this many digits count sets; longer ones are digests.
const MOST_DIGITS: usize = 3;
/// The most names in a line.
const MOST_NAMES: usize = 8;

/// The sets of each cluster, the newest first.
pub(super) type Sets = BTreeMap<String, Vec<Set>>;

/// The sets that clusters have when a rollback begins, and those that they go back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Goal<'a> {
    /// The set that was tried last, if that is taken back.
    pub from: Option<&'a Set>,
    /// The set that it goes back to; `None`: there is none.
    pub to: Option<&'a Set>,
}

/// Returns the set that a person names: how many sets back, or how a digest, a revision or the name of a run begins.
pub(super) fn named<'a>(sets: &'a [Set], name: &str) -> Option<&'a Set> {
    if name.len() <= MOST_DIGITS
        && let Ok(number) = name.parse::<usize>()
    {
        return sets.get(number);
    }
    let is_it = |set: &&Set| {
        let commit = set.revision.rsplit(':').next().unwrap_or_default();
        [set.digest.as_str(), &set.revision, commit, &set.run].iter().any(|it| it.starts_with(name))
    };
    sets.iter().find(is_it)
}

/// Names what was tried last on any of the clusters: that is what a rollback takes back.
pub(super) fn last_attempt(sets: &Sets) -> Option<&str> {
    sets.values().filter_map(|sets| sets.first()).max_by_key(|set| set.time).map(Set::attempt)
}

/// Returns what a cluster goes back to: the last set that was healthy there before the last attempt. Where that has not
/// come it stays as it is, unless a rollout `is_halted` on that very cluster.
///
/// A unit that was healthy with none of the sets that have it says nothing against one of them. `units` reads which units a
/// set has, where that counts.
pub(super) fn healthy<'a, E>(
    sets: &'a [Set],
    (attempt, is_halted): (&str, bool),
    units: impl Fn(&Set) -> Result<BTreeSet<ObjectId>, E>,
) -> Result<Goal<'a>, E> {
    let Some(from) = sets.first().filter(|newest| is_halted || newest.attempt() == attempt) else {
        return Ok(Goal { from: None, to: sets.first() });
    };
    let mut candidates = sets.iter().skip(1).filter(|set| !set.is_taken_back);
    // Where the source was broken before, that is no reason against one that it was rendered from.
    let other = |set: &&Set| from.digest != set.digest && (from.is_broken || !set.is_broken);
    let never = if candidates.clone().filter(other).all(|set| set.ill.is_empty()) {
        BTreeSet::new()
    } else {
        never_healthy(sets, units)?
    };
    Ok(Goal { from: Some(from), to: candidates.find(|set| other(set) && set.ill.is_subset(&never)) })
}

fn never_healthy<E>(
    sets: &[Set],
    units: impl Fn(&Set) -> Result<BTreeSet<ObjectId>, E>,
) -> Result<BTreeSet<ObjectId>, E> {
    let mut ill: BTreeSet<ObjectId> = sets.iter().flat_map(|set| set.ill.iter().cloned()).collect();
    for set in sets {
        let has = units(set)?;
        ill.retain(|unit| !has.contains(unit) || set.ill.contains(unit));
    }
    Ok(ill)
}

/// Says for each cluster what it goes back to: those that are alike in one line.
pub(super) fn lines(goals: &BTreeMap<String, Goal<'_>>) -> Vec<String> {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for (cluster, goal) in goals {
        let line = goal.line();
        match groups.iter_mut().find(|(known, _)| *known == line) {
            Some((_, clusters)) => clusters.push(cluster),
            None => groups.push((line, vec![cluster])),
        }
    }
    groups.into_iter().map(|(line, clusters)| format!("{}: {line}", on(&clusters, goals.len()))).collect()
}

fn on(clusters: &[&str], all: usize) -> String {
    match clusters {
        [one] => format!("on cluster {one}"),
        more if more.len() == all => format!("on all {all} clusters"),
        more => format!("on {} of {all} clusters ({})", more.len(), listed(more, MOST_NAMES)),
    }
}

impl Goal<'_> {
    fn line(&self) -> String {
        match (self.from, self.to) {
            (Some(from), Some(to)) => {
                let is_same = from.revision == to.revision;
                let time = if is_same { to.time.strftime(" as of %F %T UTC").to_string() } else { String::new() };
                format!("back to {}{time}, from {}", to.revision, from.attempted())
            }
            (None, Some(to)) => format!("{} stays, as nothing newer has come there", to.revision),
            (Some(from), None) => format!("no earlier set was healthy there; it keeps {}", from.attempted()),
            (None, None) => "nothing was ever healthy there; it stays as it is".to_owned(),
        }
    }
}

impl Set {
    fn attempted(&self) -> String {
        format!("{} ({})", self.revision, self.health())
    }

    /// Says how healthy it was.
    pub(super) fn health(&self) -> String {
        let ill = self.ill.len();
        match self.ill.first() {
            None => "healthy".to_owned(),
            Some(unit) if ill == 1 => format!("{unit} was never healthy with it"),
            Some(unit) => format!("{unit} and {} were never healthy with it", count(ill - 1, "other unit")),
        }
    }
}

#[cfg(test)]
mod tests;
