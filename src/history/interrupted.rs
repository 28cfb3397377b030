//! Rounds that have changed something and of which no report was kept: the process was killed, the host went down, or the
//! disk was full.
//!
//! Before its first change a round notes here that it has begun, and the note goes when its report is kept. A note that the
//! next round of the same sync finds on the same cluster is of such a round. What is known of it is in the archive, and
//! becomes a report for the history and for the audit log.

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

/// Returns reports of earlier rounds on the clusters of a report that nothing was told of, the oldest first.
pub(crate) fn before(state: &State, report: &Report, open: impl FnOnce() -> Result<Vault, VaultError>) -> Vec<Report> {
    let begun = |cluster: &String| BEGUN.read(state, &[&report.sync, cluster]).unwrap_or_default();
    let mut untold: Vec<About> = report.clusters.keys().flat_map(begun).collect();
    untold.retain(|about| about.run != report.run && about.started != report.started);
    if untold.is_empty() {
        return Vec::new();
    }
    let vault = match open() {
        Ok(vault) => vault,
        Err(error) => {
            warn!(error = %Chain(&error), "an earlier round was interrupted, and what it did cannot be read");
            return Vec::new();
        }
    };
    untold.sort_by(|a, b| (&a.run, &a.cluster).cmp(&(&b.run, &b.cluster)));
    let rounds = untold.chunk_by(|a, b| a.run == b.run);
    rounds.filter_map(|round| round_report(&vault, round, &report.source)).collect()
}

/// Forgets what has begun on the clusters of a report, which is kept now.
pub(crate) fn told(state: &State, report: &Report) {
    for cluster in report.clusters.keys() {
        if let Err(error) = BEGUN.remove(state, &[&report.sync, cluster]) {
            warn!(error = %Chain(&error), "cannot note that the report is kept, so that the next round tells of it again");
        }
    }
}

/// Forgets the rounds on a cluster.
pub(crate) fn forget_cluster(state: &State, cluster: &str) -> Result<(), StateError> {
    BEGUN.forget(state, cluster)
}

/// Reports one round on all clusters where it was interrupted; `None` if it has changed nothing there.
fn round_report(vault: &Vault, round: &[About], source: &str) -> Option<Report> {
    let first = round.first()?;
    let clusters: BTreeMap<String, ClusterReport> =
        round.iter().filter_map(|about| Some((about.cluster.clone(), cluster_report(vault, about)?))).collect();
    if clusters.is_empty() {
        return None;
    }
    Some(Report {
        run: first.run.clone(),
        revision: first.revision.clone(),
        cause: Some(CAUSE.to_owned()),
        partial: true,
        clusters,
        ..Report::about((&first.sync, source), Mode::Apply, first.started)
    })
}

fn cluster_report(vault: &Vault, about: &About) -> Option<ClusterReport> {
    let progress = runs::progress(vault, about).unwrap_or_else(|error| {
        warn!(run = about.run, cluster = about.cluster, error = %Chain(&error), "an interrupted round cannot be read");
        Vec::new()
    });
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
