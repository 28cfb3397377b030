//! `gatewright undo`.

use std::collections::BTreeMap;

use gatewright_engine::error::Chain;
use gatewright_engine::plan::restore::{Change, Deed, candidates};

use super::choice::Choice;
use super::plan::show;
use super::session::{Prepared, Session, is_chosen};
use super::sync::{How, round_back};
use super::{Context, EXIT_FAILED, Failure, complain, find_name, print};
use crate::basics::sanitize;
use crate::config::did_you_mean;
use crate::history::archive::runs::{self, Outline, Recorded};
use crate::history::archive::sets;
use crate::history::archive::vault::Vault;
use crate::report::{ClusterReport, ClusterState, Mode};

/// Take back what a round has changed and deleted, and suspend the sync, so that no round does it again.
///
/// Objects that it deleted are made again, as they were set before, the values of Secrets included. Objects that it
/// changed get the fields back that were ours, if nobody has changed them since. Objects that it made are deleted, if they
/// still are the same. What cannot be taken back is said with its reason; namespaces stay. `gatewright resume SYNC`
/// applies the source again.
///
/// An undo is a round like any other, with a name, and can be undone. Without a name the rounds are listed that can.
///
/// Exit codes: 0 done, or nothing to do, 1 failed, 3 something was changed by others or cannot come back, 4 a cluster was
/// unreachable, 64 usage or configuration; of several the first of 1, 3, 4, 0.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The round, as `history` and reports name it, or how its name begins.
    #[arg(value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    clusters: Choice,
    /// Show what would be done, and change nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    how: How,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    args.how.check()?;
    let session = Session::open(context)?;
    let known = runs::list(&session.state.path(runs::FOLDER));
    let Some(written) = &args.run else {
        // A script whose name of a round has come out empty has undone nothing.
        if args.dry_run || args.how.yes {
            let failure = Failure::usage("no round is named, so that nothing was undone");
            return Err(failure.hint("`gatewright undo` lists the rounds that can be"));
        }
        return list(&session, &known);
    };
    let run = find(written, &known)?;
    let _lock = if args.dry_run { None } else { session.lock_with_siblings()? };
    let vault = session.vault()?;
    if !args.dry_run {
        wait_for(&session, &vault, run)?;
    }
    let recorded = by_names_of_now(&session, runs::read(&vault, run)?);
    let chosen = args.clusters.names(&session.config.settings.clusters, |name| recorded.contains_key(name))?;
    let prepared = prepare(&session, run, recorded, &chosen)?;
    let plan = session.round(&prepared, Mode::Plan);
    if args.dry_run || !plan.has_changes() {
        show(context, &plan, args.how.format, args.how.extent());
        let is_known = plan.clusters.values().all(|cluster| cluster.state == ClusterState::Planned);
        if is_known && !plan.has_changes() {
            complain("gatewright: there is nothing to undo\n");
        }
        return Ok(plan.exit_code());
    }
    let report = round_back(context, &args.how, &session, prepared)?;
    if let Some(report) = &report {
        let is_whole = |it: &ClusterReport| it.state == ClusterState::Done && it.refusals.is_empty();
        for (cluster, _) in report.clusters.iter().filter(|(_, it)| is_whole(it)) {
            sets::undo(&vault, (&report.sync, cluster), run)?;
        }
    }
    Ok(report.map_or(EXIT_FAILED, |report| report.exit_code()))
}

/// A round that is still under way has not written down all that it does.
fn wait_for(session: &Session<'_>, vault: &Vault, run: &str) -> Result<(), Failure> {
    let outline = runs::outline(vault, run)?;
    match outline.values().next() {
        Some(first) => {
            let names: Vec<String> = outline.keys().map(|it| session.config.settings.name_now(it).to_owned()).collect();
            session.lock_rounds(&first.about.sync, &names).map(drop)
        }
        None => Ok(()),
    }
}

/// A cluster may have had another name then.
fn by_names_of_now(session: &Session<'_>, recorded: Recorded) -> Recorded {
    let settings = &session.config.settings;
    recorded.into_iter().map(|(name, record)| (settings.name_now(&name).to_owned(), record)).collect()
}

/// Finds the one run whose name begins so.
fn find<'a>(written: &str, known: &'a [String]) -> Result<&'a str, Failure> {
    let found = find_name(written, known, "run", "`gatewright undo` without a name lists them")?;
    found.map(String::as_str).ok_or_else(|| {
        let hint = did_you_mean(written, known.iter().map(String::as_str));
        let why = "runs that changed nothing leave none, and old ones are deleted (undo.keep)";
        Failure::usage(format!("there is no record of a run {written:?}")).hint(format!("{hint}; {why}"))
    })
}

fn list(session: &Session<'_>, known: &[String]) -> Result<u8, Failure> {
    if known.is_empty() {
        complain("gatewright: there are no rounds yet that changed something\n");
        return Ok(0);
    }
    let vault = session.vault()?;
    let mut code = 0;
    for run in known {
        let outline = match runs::outline(&vault, run) {
            Ok(outline) => outline,
            Err(error) => {
                complain(&format!("gatewright: {}\n", Chain(&error)));
                code = EXIT_FAILED;
                continue;
            }
        };
        for (cluster, Outline { about, counts }) in &outline {
            let time = about.started.strftime("%F %T UTC");
            let line = format!("{time}  {}  {cluster}  {}  {}  {run}", about.sync, about.revision, did(counts));
            print(&sanitize::row(&line));
        }
    }
    Ok(code)
}

/// Says what was done, in the words of plans.
fn did(counts: &BTreeMap<Deed, usize>) -> String {
    let word = |deed: &Deed| match deed {
        Deed::Create => "create",
        Deed::Change => "update",
        Deed::Adopt => "adopt",
        Deed::Delete => "prune",
        Deed::Release => "release",
    };
    counts.iter().map(|(deed, number)| format!("{} {number}", word(deed))).collect::<Vec<_>>().join(", ")
}

/// Prepares the round that undoes another one.
fn prepare(session: &Session<'_>, run: &str, mut clusters: Recorded, only: &[String]) -> Result<Prepared, Failure> {
    if let Some(lost) = only.iter().find(|name| !clusters.contains_key(*name)) {
        let hint = did_you_mean(lost, clusters.keys().map(String::as_str));
        return Err(Failure::usage(format!("run {run} has changed nothing on cluster {lost:?}")).hint(hint));
    }
    clusters.retain(|name, _| is_chosen(only, name));
    let Some((about, _)) = clusters.values().next() else {
        return Err(Failure::usage(format!("run {run} has changed nothing")));
    };
    let about = about.clone();
    let Some(settings) = session.config.settings.syncs.get(&about.sync) else {
        return Err(Failure::usage(format!("sync {:?} is not configured any more", about.sync))
            .hint("undo takes the sync back into the config file"));
    };
    let selected = session.config.clusters_of(settings);
    if let Some(lost) = clusters.keys().find(|name| !selected.contains_key(name.as_str())) {
        return Err(Failure::usage(format!("sync {:?} does not select cluster {lost:?} any more", about.sync))
            .hint("name others with --cluster, or take it back into the config file"));
    }
    let changes: BTreeMap<String, Vec<Change>> =
        clusters.into_iter().map(|(name, (_, changes))| (name, changes)).collect();
    let wanted = changes.iter().map(|(name, changes)| (name.clone(), candidates(changes))).collect();
    let mut prepared = session.without_source((&about.sync, settings), (about.revision, wanted))?;
    prepared.order.cause = Some(format!("undo of {run}"));
    prepared.order.undo = Some(changes);
    Ok(prepared)
}
