//! `gatewright destroy`.

mod replaced;

use gatewright_engine::plan::policies::MaxDelete;
use gatewright_engine::text::count;
use gatewright_engine::unit::Rendering;
use serde_json::json;

use super::elsewhere::Elsewhere;
use super::plan::show;
use super::session::{Prepared, Session};
use super::view::Extent;
use super::{Context, EXIT_FAILED, EXIT_HELD, Failure, check_names, complain, print, worst};
use crate::config::settings::SyncSettings;
use crate::inventory::{audit, store};
use crate::reconcile::gone;
use crate::report::{ClusterReport, Mode, NOTHING, Report};

/// Delete everything that a sync owns, on all of its clusters or on some.
///
/// An object goes as in every round: only if the inventory, its mark and its uid agree, and not if it asks to be kept,
/// was adopted (unless adopt.prune is true) or holds what others have made. What another sync wants is released to it.
/// As long as a sync that depends on it (dependsOn) owns something, nothing is deleted. The plan is shown first, and the name
/// of the sync must be typed; in a script say --yes. The sync may be gone from the config file: then --cluster says where. So
/// may the cluster: then --kubeconfig says how to reach it, and it must be the one that this host has worked on by that name.
/// Where a sync moves to another cluster, --once-healthy-on makes sure that all of it is good there first.
///
/// Exit codes: 0 all is gone, 1 failed or cancelled, 3 something is kept or held, or another sync depends on it, 4 a cluster
/// was unreachable, 64 usage or configuration; of several the first of 1, 3, 4, 0.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The sync.
    #[arg(value_name = "SYNC")]
    sync: String,
    /// Only this cluster; may be given several times.
    #[arg(long, value_name = "NAME")]
    cluster: Vec<String>,
    /// Delete nothing unless all that goes is healthy on this cluster, which the sync goes to in its place; may be given
    /// several times.
    #[arg(long, value_name = "NAME", requires = "cluster")]
    once_healthy_on: Vec<String>,
    #[command(flatten)]
    elsewhere: Elsewhere,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    /// Show what would be deleted, and delete nothing.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// The output format of the reports.
    #[arg(long = "output", short = 'o', visible_alias = "format", value_name = "FORMAT", default_value = "text")]
    format: super::format::Format,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let session = args.elsewhere.open(context, &args.cluster)?;
    check_names_or_gone(&session, &args.cluster)?;
    check_gone(&session, args)?;
    replaced::check(&session, args)?;
    let settings = settings(&session, args)?;
    if args.cluster.is_empty() {
        session.tell_gone_from(Some(&args.sync));
    }
    let _lock = if args.dry_run { None } else { Some(session.state.lock()?) };
    check_needed(&session, args, &settings)?;
    let nothing = session.config.clusters_of(&settings).into_keys().map(|name| (name.to_owned(), Rendering::default()));
    let nothing = (NOTHING.to_owned(), nothing.collect());
    let mut prepared = session.without_source((&args.sync, &settings), nothing)?;
    let plan = session.round(&prepared, Mode::Plan);
    // Whoever has agreed already sees what becomes of it.
    if !args.yes || !plan.has_changes() {
        show(context, &plan, args.format, Extent::default());
    }
    if session.is_stopped() {
        return Ok(EXIT_FAILED);
    }
    replaced::check_health(&session, args, &plan)?;
    if args.dry_run {
        return Ok(plan.exit_code());
    }
    if plan.has_changes() {
        let number = plan.counts().get("prune").copied().unwrap_or_default();
        let question = format!("Delete {}?", count(number, "object"));
        if !session.confirm(args.yes, &question, &args.sync)? {
            return Ok(EXIT_FAILED);
        }
    } else if plan.exit_code() != 0 {
        return Ok(plan.exit_code());
    }
    prepared.order.keep_in(session.archive()?);
    session.hold(&args.sync)?;
    let report = session.round(&prepared, Mode::Apply);
    show(context, &report, args.format, Extent::default());
    session.keep(&report);
    session.send();
    finish(&session, &prepared, &report, args)
}

/// Refuses clusters that are not configured; of those that are gone it says how they can be reached.
fn check_names_or_gone(session: &Session<'_>, names: &[String]) -> Result<(), Failure> {
    let gone = gone::find(&session.config, &session.state);
    if let Some(name) = names.iter().find(|name| gone.contains_key(*name)) {
        let failure = Failure::usage(format!("cluster {name:?} is gone from the configuration"));
        return Err(failure.hint("say how it can be reached: --kubeconfig FILE"));
    }
    check_names("cluster", names, &session.config.settings.clusters)
}

/// Refuses a cluster that is gone and on which this host knows nothing of the sync: it could not tell whether a kubeconfig
/// leads to the one that is meant.
fn check_gone(session: &Session<'_>, args: &Args) -> Result<(), Failure> {
    let names = if args.elsewhere.is_said() { args.cluster.as_slice() } else { &[] };
    match names.iter().find(|name| audit::SEEN.read(&session.state, &[&args.sync, name]).is_none()) {
        None => Ok(()),
        Some(name) => {
            let message = format!("this host does not know what sync {:?} owns on cluster {name:?}", args.sync);
            Err(Failure::usage(message)
                .hint("put the cluster into the config file again, and say it without --kubeconfig"))
        }
    }
}

/// Refuses to delete what another sync stands on that still owns something.
fn check_needed(session: &Session<'_>, args: &Args, settings: &SyncSettings) -> Result<(), Failure> {
    let dependencies = session.dependencies();
    for cluster in session.config.clusters_of(settings).into_keys() {
        for (sync, place) in dependencies.after((&args.sync, cluster)) {
            let target = session.cluster(place)?;
            let owned = session
                .block_on(store::load(target.as_ref(), sync))
                .map_err(|error| super::inventory::failed(place, &error))?;
            if !owned.inventory.entries.is_empty() {
                let (number, name) = (count(owned.inventory.entries.len(), "object"), &args.sync);
                let message = format!(
                    "nothing was deleted: sync {sync:?} depends on sync {name:?} and owns {number} on cluster {place}"
                );
                let hint = format!(
                    "the other way round: first `gatewright destroy {sync} --cluster {place}`; or take dependsOn out of its settings"
                );
                return Err(Failure { code: EXIT_HELD, message, hint: Some(hint) });
            }
        }
    }
    Ok(())
}

/// Returns the settings of the sync in the config, or what is needed of one that it does not know.
fn settings(session: &Session<'_>, args: &Args) -> Result<SyncSettings, Failure> {
    let known = &session.config.settings.syncs;
    let mut settings = match known.get(&args.sync) {
        Some(settings) => settings.clone(),
        None if args.cluster.is_empty() => {
            check_names("sync", [&args.sync], known)?;
            return Err(Failure::usage(format!("there is no sync {:?}", args.sync)));
        }
        None => serde_json::from_value(json!({"source": "", "clusters": {"names": args.cluster}}))
            .expect("these are the settings that have no default"),
    };
    if !args.cluster.is_empty() {
        // Also where the sync does not go any more.
        settings.clusters = serde_json::from_value(json!({"names": args.cluster})).expect("these are names");
    }
    settings.moved.clear();
    settings.prune.enabled = true;
    settings.prune.allow_empty = true;
    settings.prune.max_delete = MaxDelete { units: usize::MAX, percent: 100, fleet: usize::MAX };
    Ok(settings)
}

/// Removes the inventory too where nothing is owned any more, and returns the exit code.
fn finish(session: &Session<'_>, prepared: &Prepared, report: &Report, args: &Args) -> Result<u8, Failure> {
    let mut codes = vec![report.exit_code()];
    if session.is_stopped() {
        codes.push(EXIT_FAILED);
    }
    for (name, cluster) in &prepared.order.clusters {
        let is_kept = |report: &ClusterReport| !report.refusals.is_empty();
        if report.clusters.get(name).is_some_and(is_kept) {
            codes.push(3);
        }
        let fail = |error| super::inventory::failed(name, &error);
        let emptied = async {
            let store = store::load(cluster.as_ref(), &args.sync).await?;
            let is_ours = store.inventory.installation == prepared.order.installation;
            let is_over = store.exists() && is_ours && store.inventory.entries.is_empty();
            if is_over {
                store::remove(cluster.as_ref(), &args.sync, store).await?;
            }
            Ok(is_over)
        };
        if report.clusters.get(name).is_some_and(|report| report.error.is_none())
            && session.block_on(emptied).map_err(fail)?
        {
            audit::SEEN.remove(&session.state, &[&args.sync, name])?;
        }
    }
    let known = session.config.settings.syncs.get(&args.sync);
    let selected = known.map(|sync| session.config.clusters_of(sync)).unwrap_or_default();
    let is_wanted = |name: &String| selected.contains_key(name.as_str()) && !args.elsewhere.is_said();
    if prepared.order.clusters.keys().any(is_wanted) {
        complain(&format!(
            "gatewright: sync {:?} is still configured, and its next round makes all of it again\n",
            args.sync
        ));
    } else if worst(codes.iter().copied()) == 0 {
        print("nothing of it is left\n");
    }
    Ok(worst(codes))
}
