//! `gatewright rollback`.

mod goal;

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::error::Chain;
use gatewright_engine::object::ObjectId;

use super::choice::Choice;
use super::plan::show;
use super::session::{Prepared, Session, is_chosen};
use super::sync::{How, round_back};
use super::{Context, EXIT_FAILED, Failure, check_names, complain, complain_line, print, worst};
use crate::basics::sanitize;
use crate::config::Config;
use crate::history::archive::sets::{self, Set};
use crate::history::archive::vault::{Vault, VaultError};
use crate::reconcile::rollout::{Rollout, record};
use crate::report::{ClusterReport, ClusterState, Mode, Report, UnitReport, UnitState};
use crate::state::State;
use goal::{Goal, Sets};

/// Apply what was rendered in an earlier round again, without the source, and suspend the sync.
///
/// Each cluster goes back to the last set that was healthy there before the last change of the sync; one that this change
/// has not reached stays as it is. A rollback is a round like any other: whoever is at a terminal sees its plan and is
/// asked, and all guards hold; what one of them holds stays, and the rest goes ahead. With `rollout.waves` it goes through
/// them in reverse. Done again it changes nothing. `gatewright resume SYNC` applies the source again.
///
/// Exit codes: 0 done, 1 failed or there is nothing to go back to on a cluster, 3 held by a guard, 4 a cluster was
/// unreachable, 64 usage or configuration; of several the first of 1, 3, 4, 0.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The sync.
    #[arg(value_name = "SYNC")]
    sync: String,
    /// The set to go back to, whether it was healthy or not: its number in the list, or how a digest, a revision or the
    /// name of a run begins.
    #[arg(long, value_name = "SET")]
    to: Option<String>,
    /// List what there is, the newest first, and change nothing.
    #[arg(long)]
    list: bool,
    /// Change all clusters at once, and not wave by wave.
    #[arg(long)]
    now: bool,
    #[command(flatten)]
    clusters: Choice,
    /// Show what would be done, and change nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    how: How,
}

impl Args {
    /// Returns the sync that is to go back, if it is to go back and nobody has said where to.
    pub(super) fn sync_to_go_back(&self, config: &Config) -> Option<&str> {
        let is_asked = !self.list && self.to.is_none() && config.settings.syncs.contains_key(&self.sync);
        is_asked.then_some(self.sync.as_str())
    }
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    args.how.check()?;
    let session = Session::open(context)?;
    check_names("sync", [&args.sync], &session.config.settings.syncs)?;
    let clusters = clusters(&session, args)?;
    if args.clusters.is_of_all() {
        session.tell_gone_from(Some(&args.sync));
    }
    let _lock = if args.dry_run || args.list { None } else { session.lock_with_siblings()? };
    let (vault, sets) = kept(&session, &args.sync, &clusters)?;
    let goals = goals(args, &session.state, (vault.as_ref(), &sets))?;
    if args.list {
        list(&sets, &goals);
        return Ok(0);
    }
    for line in goal::lines(&goals) {
        complain_line(&line);
    }
    let code = if goals.values().all(|goal| goal.to.is_some()) { 0 } else { EXIT_FAILED };
    let Some(vault) = vault.filter(|_| goals.values().any(|goal| goal.to.is_some())) else { return Err(none(args)) };
    let prepared = prepare(&session, args, &vault, &goals)?;
    let code = if prepared.order.clusters.len() == goals.len() { code } else { EXIT_FAILED };
    if args.dry_run {
        let plan = session.round(&prepared, Mode::Plan);
        show(context, &plan, args.how.format, args.how.extent());
        return Ok(worst([code, plan.exit_code()]));
    }
    let report = round_back(context, &args.how, &session, prepared)?;
    if let Some(report) = &report {
        start_over(&session.state, report)?;
        note(&vault, &goals, report)?;
    }
    Ok(worst([code, report.map_or(EXIT_FAILED, |report| report.exit_code())]))
}

fn clusters(session: &Session<'_>, args: &Args) -> Result<Vec<String>, Failure> {
    let settings = &session.config.settings;
    let selected = session.config.clusters_of(&settings.syncs[&args.sync]);
    let chosen = args.clusters.names(&settings.clusters, |name| selected.contains_key(name))?;
    for name in &chosen {
        if !selected.contains_key(name.as_str()) {
            return Err(Failure::usage(format!("sync {:?} does not select cluster {name:?}", args.sync)));
        }
    }
    Ok(selected.into_keys().filter(|name| is_chosen(&chosen, name)).map(str::to_owned).collect())
}

/// Returns what is kept of a sync on clusters. Before the first round there is no key, and nothing to read with it.
fn kept(session: &Session<'_>, sync: &str, clusters: &[String]) -> Result<(Option<Vault>, Sets), Failure> {
    let empty = || clusters.iter().map(|name| (name.clone(), Vec::new())).collect::<Sets>();
    if !clusters.iter().any(|cluster| sets::exist(&session.state, sync, cluster)) {
        return Ok((None, empty()));
    }
    let vault = session.vault()?;
    let mut kept = empty();
    for (cluster, sets) in &mut kept {
        *sets = readable(cluster, sets::list(&vault, sync, cluster)).unwrap_or_default();
    }
    Ok((Some(vault), kept))
}

/// Tells what cannot be read of a cluster, which is in the way of no other.
fn readable<T>(cluster: &str, read: Result<T, VaultError>) -> Option<T> {
    read.inspect_err(|error| complain(&format!("gatewright: cluster {cluster}: {}\n", Chain(error)))).ok()
}

/// Finds the set of every cluster before anything is changed on one.
fn goals<'a>(
    args: &Args,
    state: &State,
    (vault, sets): (Option<&Vault>, &'a Sets),
) -> Result<BTreeMap<String, Goal<'a>>, Failure> {
    let attempt = goal::last_attempt(sets).unwrap_or_default();
    // An incident does not wait for a record to be mended.
    let ledger = record::read(state, &args.sync).unwrap_or_default();
    let mut goals = BTreeMap::new();
    for (cluster, sets) in sets {
        let units = |set: &Set| -> Result<_, VaultError> {
            let Some(vault) = vault else { return Ok(BTreeSet::new()) };
            let rendering = sets::load(vault, &args.sync, cluster, set)?;
            Ok(rendering.units.into_iter().map(|unit| unit.id).collect())
        };
        let goal = match &args.to {
            None => {
                let is_halted = sets.first().is_some_and(|set| record::is_halted(&ledger, cluster, set.attempt()));
                let last = (attempt, is_halted);
                readable(cluster, goal::healthy(sets, last, units)).unwrap_or(Goal { from: sets.first(), to: None })
            }
            Some(name) => Goal { from: sets.first(), to: Some(named(args, cluster, sets, name)?) },
        };
        goals.insert(cluster.clone(), goal);
    }
    Ok(goals)
}

/// A set that a person names must be there on all clusters that are chosen: it may be a slip.
fn named<'a>(args: &Args, cluster: &str, sets: &'a [Set], name: &str) -> Result<&'a Set, Failure> {
    goal::named(sets, name).ok_or_else(|| {
        let count = sets.len();
        let message = format!("sync {:?} has no set {name:?} on cluster {cluster:?}, of {count}", args.sync);
        let hint = "shows what there is; --cluster names others";
        Failure::usage(message).hint(format!("`gatewright rollback {} --list` {hint}", args.sync))
    })
}

fn none(args: &Args) -> Failure {
    let message = format!("sync {:?} has no earlier set that was healthy, on any of these clusters", args.sync);
    let list = format!("`gatewright rollback {} --list` shows what there is, --to names one of them", args.sync);
    Failure { code: EXIT_FAILED, message, hint: Some(format!("{list}; `gatewright undo` takes back one round")) }
}

/// Shows the sets of each cluster, and which of them it would be.
fn list(sets: &Sets, goals: &BTreeMap<String, Goal<'_>>) {
    for (cluster, sets) in sets {
        print(&format!("cluster {cluster}\n"));
        for (number, set) in sets.iter().enumerate() {
            let Set { digest, revision, run, time, objects, .. } = set;
            let (time, health) = (time.strftime("%F %T UTC"), set.health());
            let is_goal = goals[cluster].to.is_some_and(|goal| std::ptr::eq(goal, set));
            let has_gone = sets.first().is_some_and(|first| first.is_taken_back);
            let goal = match (is_goal, has_gone) {
                (true, false) => "  <- rollback goes here",
                (true, true) => "  <- rollback went here",
                (false, _) => "",
            };
            let back = if set.is_taken_back { ", taken back" } else { "" };
            let line =
                format!("  {number:2}  {digest}  {time}  {revision}  {objects} objects  {run}  {health}{back}{goal}");
            print(&sanitize::row(&line));
        }
    }
}

/// Prepares the round: what is wanted are the sets, on the clusters that have one.
fn prepare(
    session: &Session<'_>,
    args: &Args,
    vault: &Vault,
    goals: &BTreeMap<String, Goal<'_>>,
) -> Result<Prepared, Failure> {
    let mut wanted = BTreeMap::new();
    let mut found: Vec<&Set> = Vec::new();
    for (cluster, set) in goals.iter().filter_map(|(cluster, goal)| Some((cluster, goal.to?))) {
        let Some(rendering) = readable(cluster, sets::load(vault, &args.sync, cluster, set)) else { continue };
        wanted.insert(cluster.clone(), rendering);
        if found.iter().all(|known| known.digest != set.digest) {
            found.push(set);
        }
    }
    let digests = found.iter().map(|set| set.digest.as_str()).collect::<Vec<_>>().join(", ");
    let mut revisions: Vec<&str> = found.iter().map(|set| set.revision.as_str()).collect();
    revisions.dedup();
    let settings = &session.config.settings.syncs[&args.sync];
    let clusters: Vec<String> = wanted.keys().cloned().collect();
    if clusters.is_empty() {
        let message = format!("none of the sets of sync {:?} can be read, and nothing was changed", args.sync);
        let list = format!("--to names another one of `gatewright rollback {} --list`", args.sync);
        return Err(Failure { code: EXIT_FAILED, message, hint: Some(list) });
    }
    let mut prepared = session.without_source((&args.sync, settings), (revisions.join(", "), wanted))?;
    prepared.order.cause = Some(format!("rollback to {digests}"));
    let selected = session.config.clusters_of(settings);
    let waits = !args.now && args.how.waits() && settings.wait.enabled;
    prepared.order.rollout = Rollout::back((&args.sync, settings), &selected, &clusters, waits);
    Ok(prepared)
}

/// Has the rollouts of what was taken back begin with the first cluster again, if it is wanted once more: these clusters
/// are not ahead of the others any more.
fn start_over(state: &State, report: &Report) -> Result<(), Failure> {
    let back = report.clusters.iter().map(|(name, cluster)| (name.as_str(), changed_whole(cluster))).collect();
    Ok(record::start_over(state, &report.sync, &back)?)
}

/// Notes what was taken back, so that nothing goes back to it when the next change is taken back.
fn note(vault: &Vault, goals: &BTreeMap<String, Goal<'_>>, report: &Report) -> Result<(), Failure> {
    for (cluster, goal) in goals {
        let is_done = report.clusters.get(cluster).is_some_and(|it| it.state == ClusterState::Done);
        if let (Some(to), true) = (goal.to.filter(|_| goal.from.is_some()), is_done) {
            sets::go_back(vault, (&report.sync, cluster), to)?;
        }
    }
    Ok(())
}

/// Returns the units that were changed, and of which nothing is left to do.
fn changed_whole(cluster: &ClusterReport) -> BTreeSet<&ObjectId> {
    let is_left = |unit: &UnitReport| matches!(unit.state, UnitState::Held | UnitState::Failed);
    let left: BTreeSet<&ObjectId> = cluster.units.iter().filter(|unit| is_left(unit)).map(|unit| &unit.unit).collect();
    let changed: BTreeSet<&ObjectId> = cluster.changes_in(Mode::Apply).map(|step| &step.unit).collect();
    &changed - &left
}
