//! Clusters that have another name now: what this host keeps of them by name goes on under the new one.
//!
//! It is done once, before anything else is under the new configuration, by whoever holds the state folder. What stands
//! on a cluster bears no name of it, so that nothing there changes. Each value is moved by itself, and the memory of
//! inventories, which tells that there is something to do, last: whoever is interrupted goes on the next time. Records for
//! undo and reports of the history keep the name that they were written with; undo knows both.
//!
//! Of several hosts each does so for the syncs that it looks after: what they share of a sync is for its host to write. What is
//! of no sync, each host keeps for itself. A sync that nobody looks after keeps its names until somebody does.

use std::collections::BTreeMap;

use gatewright_engine::error::Chain;
use jiff::Timestamp;
use tracing::{info, warn};

use crate::config::Config;
use crate::desired::assemble::DISCOVERY;
use crate::history::archive::{Archive, sets};
use crate::history::{approvals, interrupted, journal};
use crate::inventory::audit;
use crate::reconcile::rollout::record::{self, Ledger, Record, Stage};
use crate::reconcile::{aliases, fleet};
use crate::report::Report;
use crate::state::{State, StateError};

/// The reason why a cluster cannot have its new name.
#[derive(Debug, thiserror::Error)]
pub enum RenameError {
    /// Something was applied by the new name to another cluster than by the old one.
    #[error(
        "cluster {new:?} cannot have moved from {old:?}: this host has worked on two clusters by these names, \
         {now} and {before}"
    )]
    Other {
        /// The new name.
        new: String,
        /// The old one.
        old: String,
        /// The identity of what had the new name.
        now: String,
        /// The identity of what had the old one.
        before: String,
    },
    /// The knowledge of it cannot be moved.
    #[error("cannot carry over what is known of cluster {0:?}")]
    State(String, #[source] StateError),
}

impl RenameError {
    /// Returns what to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Other { .. } => "take the old name out of moved, or give the other cluster another name",
            Self::State(..) => "mend that, and it goes on from there; until then nothing is done",
        }
    }
}

/// Returns the clusters of which something is known for some syncs by an old name, each with that name.
pub(crate) fn open(config: &Config, state: &State, is_meant: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let names = config.settings.renamed();
    names
        .filter(|(_, old)| is_known(state, old, &is_meant))
        .map(|(new, old)| (new.to_owned(), old.to_owned()))
        .collect()
}

/// Refuses a name by which something was applied to another cluster.
pub(crate) fn check(config: &Config, state: &State) -> Result<(), RenameError> {
    for (new, old) in open(config, state, |_| true) {
        if let Some((before, now)) = aliases::identities(state, &old, &new).filter(|(before, now)| before != now) {
            return Err(RenameError::Other { new, old, now, before });
        }
    }
    Ok(())
}

/// Carries over what is known of clusters by their old names, for the syncs that are this host's; whoever calls it holds the
/// state folder.
pub(crate) fn carry_over(
    config: &Config,
    state: &State,
    now: Timestamp,
    is_ours: impl Fn(&str) -> bool,
) -> Result<(), RenameError> {
    check(config, state)?;
    for (new, old) in open(config, state, &is_ours) {
        let names = (old.as_str(), new.as_str());
        move_all(config, state, (names, now), &is_ours).map_err(|error| RenameError::State(old.clone(), error))?;
        info!(cluster = new, old, "has another name in the configuration, and what is known of it goes on");
    }
    Ok(())
}

/// Returns the last report of a sync on a cluster, also where that is still kept by an old name: by whoever only looks.
pub(crate) fn last_report(config: &Config, state: &State, (sync, cluster): (&str, &str)) -> Option<Report> {
    let by_old_name = |(_, old): (&str, &str)| {
        let mut report = journal::last(state, sync, old)?;
        report.rename_cluster(old, cluster);
        Some(report)
    };
    let mut olds = config.settings.renamed().filter(|(new, _)| *new == cluster);
    journal::last(state, sync, cluster).or_else(|| olds.find_map(by_old_name))
}

fn is_known(state: &State, cluster: &str, is_meant: impl Fn(&str) -> bool) -> bool {
    audit::SEEN.knows(state, cluster, &is_meant) || journal::knows(state, cluster, &is_meant)
}

/// Renames it in the record of a sync. One that cannot be read holds the rollouts of its sync, and nothing is lost with it.
fn rename_in_rollouts(state: &State, sync: &str, names: (&str, &str)) -> Result<(), StateError> {
    let Ok(mut ledger) = record::read(state, sync) else { return Ok(()) };
    let before = ledger.clone();
    rename_in(&mut ledger, names);
    if ledger == before { Ok(()) } else { record::update(state, sync, |ledger| rename_in(ledger, names)) }
}

fn rename_in(ledger: &mut Ledger, (old, new): (&str, &str)) {
    rename_key(&mut ledger.deletions, (old, new));
    let renamed = |name: String| if name == old { new.to_owned() } else { name };
    for Record { first, members, wants, back, good, .. } in &mut ledger.units {
        *first = first.take().map(renamed);
        rename_key(members, (old, new));
        rename_key(wants, (old, new));
        rename_key(back, (old, new));
        rename_key(good, (old, new));
        let returned = members.values_mut().filter_map(|member| match &mut member.stage {
            Stage::Returned(failure) => Some(failure),
            Stage::Going | Stage::Healthy | Stage::Halted(_) => None,
        });
        for failure in returned.chain(back.values_mut().map(|back| &mut back.failure)) {
            failure.on = renamed(std::mem::take(&mut failure.on));
        }
    }
}

fn rename_key<T>(map: &mut BTreeMap<String, T>, (old, new): (&str, &str)) {
    if let Some(value) = map.remove(old) {
        map.entry(new.to_owned()).or_insert(value);
    }
}

fn move_all(
    config: &Config,
    state: &State,
    (names, now): ((&str, &str), Timestamp),
    is_ours: impl Fn(&str) -> bool,
) -> Result<(), StateError> {
    DISCOVERY.remove(state, &[names.0])?;
    aliases::rename_cluster(state, names)?;
    fleet::rename_cluster(state, names)?;
    for sync in config.settings.syncs.keys().filter(|sync| is_ours(sync)) {
        rename_in_rollouts(state, sync, names)?;
    }
    approvals::rename_cluster(state, names, now, &is_ours)?;
    match Archive::existing(state, &config.settings.undo) {
        Ok(vault) => sets::rename_cluster(&vault, names, &is_ours, |sync, error| {
            warn!(sync, cluster = names.1, error = %Chain(error), "a set cannot be carried over, and is not there for a rollback");
        })?,
        Err(error) => warn!(cluster = names.1, error = %Chain(&error), "no set is carried over for a rollback"),
    }
    interrupted::rename_cluster(state, names, &is_ours)?;
    journal::rename_cluster(state, names, &is_ours)?;
    audit::SEEN.rename(state, names, &is_ours)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::config::{self, environment::Environment};

    #[test]
    fn each_host_carries_over_the_syncs_that_it_looks_after_and_no_others() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let text = "stateDir: state\nsources: {s: {directory: {path: specs}}}\nclusters:\n  uno: {directory: {path: out}, moved: [one]}\n\
                    syncs:\n  red: {source: s, clusters: {names: [uno]}}\n  blue: {source: s, clusters: {names: [uno]}}\n";
        let file = folder.path().join("gatewright.yaml");
        let config = config::parse(&file, text, &Environment::default()).expect("it is good");
        let state = State::open(folder.path().join("state")).noting();
        for sync in ["red", "blue"] {
            for name in [format!("seen/{sync}/one.json"), format!("asked/{sync}/one.json")] {
                State::open(state.path("")).write(name, b"{}").expect("a test may");
            }
        }
        let files = || -> BTreeSet<String> {
            let of = |folder: &str, sync: &str| {
                let names = state.names(Path::new(folder).join(sync));
                names.into_iter().map(|name| format!("{folder}/{sync}/{name}")).collect::<Vec<_>>()
            };
            ["seen", "asked"].iter().flat_map(|folder| [of(folder, "red"), of(folder, "blue")].concat()).collect()
        };
        let blue = files();
        let carry_over = |ours: &'static str| carry_over(&config, &state, Timestamp::UNIX_EPOCH, |sync| sync == ours);
        carry_over("green").expect("nothing is to be done");
        assert_eq!(files(), blue);
        carry_over("red").expect("it can be written");
        let expected = ["asked/blue/one.json", "asked/red/uno.json", "seen/blue/one.json", "seen/red/uno.json"];
        assert_eq!(files(), expected.map(str::to_owned).into());
        assert_eq!(open(&config, &state, |sync| sync == "red"), []);
        let is_noted = |path: &str| state.notes().is_some_and(|notes| notes.is_about(&state.path(path)));
        assert!(is_noted("seen/red/one.json") && !is_noted("seen/blue/one.json"), "others hear of our syncs only");
        carry_over("blue").expect("it can be written");
        assert_eq!(open(&config, &state, |_| true), []);
    }
}
