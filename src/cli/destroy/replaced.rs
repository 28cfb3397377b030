//! The hand-over of a sync from one cluster to others: it goes here when it is healthy there.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::object::ObjectId;
use gatewright_engine::text::listed;

use super::Args;
use crate::cli::session::{Selection, Session};
use crate::cli::{EXIT_FAILED, EXIT_HELD, Failure, check_names, complain, complain_line};
use crate::report::{ClusterReport, Mode, Report, UnitReport};

/// The most units that are named, one in a line.
const MOST_UNITS: usize = 20;

/// Refuses clusters for which there is nobody to hand over to, or that the sync has not left.
pub(super) fn check(session: &Session<'_>, args: &Args) -> Result<(), Failure> {
    if args.once_healthy_on.is_empty() {
        return Ok(());
    }
    let name = &args.sync;
    check_names("cluster", &args.once_healthy_on, &session.config.settings.clusters)?;
    let selected = session.config.settings.syncs.get(name).map(|sync| session.config.clusters_of(sync));
    let selected: BTreeSet<&str> = selected.into_iter().flat_map(BTreeMap::into_keys).collect();
    if let Some(other) = args.once_healthy_on.iter().find(|other| !selected.contains(other.as_str())) {
        let message = format!("sync {name:?} does not go to cluster {other:?}: nothing of it will be healthy there");
        return Err(
            Failure::usage(message).hint("add the cluster to the `clusters` of the sync, and apply it there first")
        );
    }
    match args.cluster.iter().find(|cluster| selected.contains(cluster.as_str())) {
        None => Ok(()),
        Some(cluster) => {
            let message =
                format!("sync {name:?} still goes to cluster {cluster:?}: its next round would make all of it again");
            Err(Failure::usage(message).hint("take the cluster out of the `clusters` of the sync first"))
        }
    }
}

/// Refuses to delete what is not healthy yet, as its source says, on all clusters that are to have it.
pub(super) fn check_health(session: &Session<'_>, args: &Args, plan: &Report) -> Result<(), Failure> {
    if args.once_healthy_on.is_empty() {
        return Ok(());
    }
    let units: BTreeSet<&ObjectId> =
        plan.clusters.values().flat_map(|cluster| &cluster.units).map(|unit| &unit.unit).collect();
    let selection = Selection::of(&args.sync, &args.once_healthy_on);
    let ready = session.prepare(&selection, &session.any_installation()?)?;
    let Some(prepared) = ready.rounds.first() else {
        return Err(Failure { code: EXIT_FAILED, ..refused(args, "nobody knows what is wanted there") });
    };
    let there = session.round(prepared, Mode::Plan);
    let missing = |name: &String| missing(&units, name, there.clusters.get(name));
    let missing: Vec<String> = args.once_healthy_on.iter().flat_map(missing).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for line in missing.iter().take(MOST_UNITS) {
        complain_line(line);
    }
    let more = missing.len().saturating_sub(MOST_UNITS);
    if more > 0 {
        complain(&format!("and {more} more\n"));
    }
    let clusters = listed(&args.once_healthy_on, MOST_UNITS);
    Err(refused(args, &format!("what would go is not all healthy on {clusters}")))
}

fn refused(args: &Args, why: &str) -> Failure {
    let hint = format!(
        "`gatewright status {}` says how it is there; without --once-healthy-on it is deleted all the same",
        args.sync
    );
    Failure { code: EXIT_HELD, message: format!("nothing was deleted: {why}"), hint: Some(hint) }
}

/// Says of each unit that is not good on a cluster why.
fn missing(units: &BTreeSet<&ObjectId>, name: &str, report: Option<&ClusterReport>) -> Vec<String> {
    let Some(report) = report else { return vec![format!("{name}: it was not looked at")] };
    if let Some(error) = &report.error {
        return vec![format!("{name}: {}", error.message)];
    }
    let there: BTreeMap<&ObjectId, &UnitReport> = report.units.iter().map(|unit| (&unit.unit, unit)).collect();
    let why = |unit: &&&ObjectId| match there.get(**unit) {
        Some(it) if it.is_healthy() => None,
        Some(it) => {
            let why = it.message.as_ref().or(it.unawaited.as_ref());
            Some(why.cloned().unwrap_or_else(|| "it is not as its source says yet".to_owned()))
        }
        None => Some("it is not wanted there".to_owned()),
    };
    units.iter().filter_map(|unit| Some(format!("{unit} on {name}: {}", why(&unit)?))).collect()
}
