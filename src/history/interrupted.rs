//! Rounds that have changed something and of which no report was kept: the process was killed, the host went down, or the
//! disk was full.
//!
//! Before its first change a round notes here that it has begun, and the note goes when its report is kept. A note that the
//! next round of the same sync finds on the same cluster is of such a round, unless the history has a report of it all the
//! same. What is known of it is in the archive, and becomes a report for the history and for the audit log.

use std::collections::BTreeMap;

use gatewright_engine::error::Chain;
use gatewright_engine::plan::restore::Deed;
use tracing::warn;

use crate::history::archive::About;
use crate::history::archive::record::Intent;
use crate::history::archive::runs::{self, Progress};
use crate::history::archive::vault::{Vault, VaultError};
use crate::report::action::StepAction;
use crate::report::outcome::Outcome;
use crate::report::{ClusterReport, ClusterState, Mode, Report, StepReport};
use crate::state::store::Store;
use crate::state::{State, StateError};

/// The reason in reports of such rounds.
pub(crate) const CAUSE: &str = "interrupted";

/// The rounds that have begun, by sync and cluster.
const BEGUN: Store<Vec<About>> = Store::new("begun");

/// Notes that a round is about to change something.
pub(super) fn begin(state: &State, about: &About) -> Result<(), StateError> {
    let names = [about.sync.as_str(), about.cluster.as_str()];
    let mut begun = BEGUN.read(state, &names).unwrap_or_default();
    begun.push(about.clone());
    BEGUN.write(state, &names, &begun)
}

/// An earlier round of which nobody has told, as far as its notes say.
pub(crate) struct Untold {
    /// The part of its report about the clusters that are looked at.
    pub report: Report,
    /// Its notes: the name by which a cluster is known now, and what was noted.
    notes: Vec<(String, About)>,
}

/// Returns the earlier rounds on the clusters of a report that nothing was told of, the oldest first.
pub(crate) fn before(state: &State, report: &Report, open: impl FnOnce() -> Result<Vault, VaultError>) -> Vec<Untold> {
    let begun = |cluster: &String| {
        let begun = BEGUN.read(state, &[&report.sync, cluster]).unwrap_or_default();
        begun.into_iter().map(|about| (cluster.clone(), about)).collect::<Vec<_>>()
    };
    let mut notes: Vec<(String, About)> = report.clusters.keys().flat_map(begun).collect();
    notes.retain(|(_, about)| !is_of(about, report) && runs::is_run(&about.run) && !about.run.contains('/'));
    if notes.is_empty() {
        return Vec::new();
    }
    let vault = match open() {
        Ok(vault) => vault,
        Err(error) => {
            warn!(error = %Chain(&error), "an earlier round was interrupted, and what it did cannot be read");
            return Vec::new();
        }
    };
    notes.sort_by(|(a, one), (b, other)| (&one.run, a).cmp(&(&other.run, b)));
    let rounds = notes.chunk_by(|(_, a), (_, b)| a.run == b.run);
    rounds.map(|notes| Untold { report: round_report(&vault, notes, report), notes: notes.to_vec() }).collect()
}

/// Forgets the notes of an earlier round, which is told of.
pub(crate) fn forget(state: &State, untold: &Untold) {
    for (cluster, about) in &untold.notes {
        take_out(state, (&about.sync, cluster), |noted| noted.run == about.run);
    }
}

/// Forgets that a round has begun, whose report is kept.
pub(super) fn told(state: &State, report: &Report) {
    for cluster in report.clusters.keys() {
        take_out(state, (&report.sync, cluster), |noted| is_of(noted, report));
    }
}

/// Tells whether a note is of the round of a report.
fn is_of(about: &About, report: &Report) -> bool {
    about.run == report.run || about.started == report.started
}

fn take_out(state: &State, (sync, cluster): (&str, &str), is_meant: impl Fn(&About) -> bool) {
    let names = [sync, cluster];
    let mut begun = BEGUN.read(state, &names).unwrap_or_default();
    let number = begun.len();
    begun.retain(|about| !is_meant(about));
    let result = match begun.len() {
        0 if number > 0 => BEGUN.remove(state, &names),
        left if left < number => BEGUN.write(state, &names, &begun),
        _ => Ok(()),
    };
    if let Err(error) = result {
        warn!(error = %Chain(&error), "cannot note that a round is told of, so that the next one looks at it again");
    }
}

/// Keeps what is noted of a cluster under another name.
pub(crate) fn rename_cluster(
    state: &State,
    names: (&str, &str),
    is_meant: impl Fn(&str) -> bool,
) -> Result<(), StateError> {
    BEGUN.rename(state, names, is_meant)
}

/// Forgets the rounds on a cluster.
pub(crate) fn forget_cluster(state: &State, cluster: &str) -> Result<(), StateError> {
    BEGUN.forget(state, cluster)
}

/// Reports one round on the clusters where it was interrupted; it is about none if it has changed nothing there.
fn round_report(vault: &Vault, notes: &[(String, About)], next: &Report) -> Report {
    let of_cluster = |(cluster, about): &(String, About)| Some((cluster.clone(), cluster_report(vault, about)?));
    let clusters: BTreeMap<String, ClusterReport> = notes.iter().filter_map(of_cluster).collect();
    let first = notes.first().map(|(_, about)| about);
    let started = first.map_or(next.started, |about| about.started);
    Report {
        run: first.map(|about| about.run.clone()).unwrap_or_default(),
        revision: first.map(|about| about.revision.clone()).unwrap_or_default(),
        cause: Some(CAUSE.to_owned()),
        partial: true,
        clusters,
        ..Report::about((&next.sync, &next.source), Mode::Apply, started)
    }
}

fn cluster_report(vault: &Vault, about: &About) -> Option<ClusterReport> {
    let progress = match runs::progress(vault, about) {
        Ok(progress) => progress,
        Err(error) => {
            let message = format!("the round was interrupted, and what it did cannot be read: {}", Chain(&error));
            return Some(ClusterReport::failed(ClusterState::Failed, message, None));
        }
    };
    if progress.iter().all(|(_, progress)| *progress == Progress::Untouched) {
        return None;
    }
    let steps = progress.into_iter().map(step).collect();
    let message = "the round was interrupted: no report of it was kept".to_owned();
    let hint = Some(format!(
        "the next round went on from there; to see what it did and take it back: gatewright undo {}",
        about.run
    ));
    Some(ClusterReport { steps, ..ClusterReport::failed(ClusterState::Failed, message, hint) })
}

fn step((intent, progress): (Intent, Progress)) -> StepReport {
    let action = match intent.deed {
        Deed::Create => StepAction::Create,
        Deed::Change => StepAction::Update,
        Deed::Adopt => StepAction::Adopt,
        Deed::Delete => StepAction::Prune,
        Deed::Release => StepAction::HandOver,
    };
    let outcome = match progress {
        Progress::Done => Outcome::Done,
        Progress::Unknown => Outcome::Failed("the round ended before this was noted as done".to_owned()),
        Progress::Untouched => Outcome::Skipped,
    };
    StepReport { outcome: Some(outcome), ..StepReport::new(intent.unit, intent.id, action, None) }
}
