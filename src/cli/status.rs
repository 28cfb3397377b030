//! `gatewright status`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::refusal::Reason;
use gatewright_engine::spec::GATEWAY_API;
use gatewright_engine::text::count;
use serde_json::json;

use super::choice::Choice;
use super::plan::Format;
use super::session::is_chosen;
use super::{Context, Failure, check_names, print, print_json};
use crate::config::Config;
use crate::history::journal;
use crate::reconcile::gone;
use crate::report::text::why;
use crate::report::withheld::MOST_HELD;
use crate::report::{ClusterReport, Report, UnitReport, UnitState};
use crate::source::cache::{TROUBLES, Trouble};
use crate::state::State;
use crate::state::suspension::{self, Suspension};
use crate::state::timekeeping;

/// Show how every sync stood after its last round, with the addresses and ports of each Gateway.
///
/// It reads what the last rounds have left behind, and asks no cluster. A unit is `unawaited` if its last round did not
/// wait until it was well, and nobody has seen that it is. Exit codes: 0 however things stand, 64 usage
/// or configuration.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The sync; all of them if absent.
    #[arg(value_name = "SYNC")]
    sync: Option<String>,
    #[command(flatten)]
    clusters: Choice,
    /// The output format.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
}

/// The last report of each sync, by cluster; `None` where there was no round yet.
type Reports = BTreeMap<String, BTreeMap<String, Option<Report>>>;

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let config = context.load()?;
    check_names("sync", &args.sync, &config.settings.syncs)?;
    let state = State::open(&config.state_dir);
    let troubles = TROUBLES.read(&state, &[]).unwrap_or_default();
    let chosen = args.clusters.names(&config.settings.clusters, |_| true)?;
    let reports = last_reports(&config, &state, (args.sync.as_deref(), &chosen));
    let installation = state.installation()?;
    let now = timekeeping::believed(&state, context.clock.as_ref());
    let suspended = |sync: &String| suspension::of(&state, sync, now).map(|it| it.map(|it| (sync.clone(), it)));
    let gone = if args.clusters.is_of_all() { gone::find(&config, &state) } else { BTreeMap::new() };
    let gone: BTreeMap<_, _> =
        gone.into_iter().filter(|(_, syncs)| args.sync.as_ref().is_none_or(|sync| syncs.contains(sync))).collect();
    let suspended = reports.keys().filter_map(|sync| suspended(sync).transpose()).collect::<Result<_, _>>()?;
    match args.format {
        Format::Json => {
            let schema = "gatewright.dev/status/v1alpha1";
            print_json(&json!({
                "schema": schema, "installation": installation, "sources": troubles, "syncs": reports,
                "suspended": suspended, "gone": gone,
            }));
        }
        Format::Text => {
            let is_new = reports.values().flat_map(BTreeMap::values).all(Option::is_none);
            let mut out = if is_new { introduced(installation.as_deref(), &config) } else { String::new() };
            // Writing to a string does not fail.
            let _ = write_all(&mut out, &troubles, &reports, &suspended);
            out.extend(gone.keys().map(|name| format!("cluster {name}: {}\n  {}\n", gone::WORDS, gone::hint(name))));
            print(&out);
        }
    }
    Ok(0)
}

/// Says who this installation is, where nothing else is known of it yet.
fn introduced(installation: Option<&str>, config: &Config) -> String {
    let state = config.state_dir.display();
    match installation {
        Some(id) => format!("installation {id}, state directory {state}\n"),
        None => format!(
            "no installation in state directory {state} yet: the first `gatewright plan` or `sync` makes one; to go on \
             where another host was, copy its state directory first\n"
        ),
    }
}

fn last_reports(config: &Config, state: &State, (sync, chosen): (Option<&str>, &[String])) -> Reports {
    let syncs = config.settings.syncs.iter().filter(|(name, _)| sync.is_none_or(|sync| sync == *name));
    let of_sync = syncs.map(|(name, settings)| {
        let clusters = config.clusters_of(settings).into_keys().filter(|cluster| is_chosen(chosen, cluster));
        let reports = clusters.map(|cluster| (cluster.to_owned(), journal::last(state, name, cluster)));
        (name.clone(), reports.collect())
    });
    of_sync.filter(|(_, reports): &(String, BTreeMap<_, _>)| chosen.is_empty() || !reports.is_empty()).collect()
}

fn write_all(
    out: &mut String,
    troubles: &BTreeMap<String, Trouble>,
    reports: &Reports,
    suspended: &BTreeMap<String, Suspension>,
) -> fmt::Result {
    for (name, trouble) in troubles {
        let since = trouble.since.strftime("%F %T UTC");
        writeln!(out, "source {name} cannot be read since {since}: {}", trouble.message)?;
    }
    for (name, clusters) in reports {
        let words = suspended.get(name).map(|suspension| format!(": {}", suspension.words())).unwrap_or_default();
        writeln!(out, "sync {name}{words}")?;
        for (cluster, report) in clusters {
            match report.as_ref().and_then(|report| Some((report, report.clusters.get(cluster)?))) {
                None => writeln!(out, "  cluster {cluster}: no round yet")?,
                Some((report, state)) => write_cluster(out, cluster, state, report)?,
            }
        }
    }
    Ok(())
}

fn write_cluster(out: &mut String, name: &str, cluster: &ClusterReport, report: &Report) -> fmt::Result {
    let (state, at) = (word(&cluster.state), report.finished.strftime("%F %T UTC"));
    match &cluster.error {
        Some(error) => {
            writeln!(out, "  cluster {name}: {state} at {at}: {}", error.message)?;
            error.hint.iter().try_for_each(|hint| writeln!(out, "    {hint}"))?;
        }
        None => writeln!(out, "  cluster {name}: {state} at {at}, {}", report.revision)?,
    }
    let problems: Vec<_> = report.problems.iter().filter(|problem| problem.is_on(name)).collect();
    if let Some(first) = problems.first() {
        let number = count(problems.len(), "problem");
        let words = if problems.len() == 1 { "" } else { ", the first is" };
        writeln!(out, "    {number} in the source{words}: {}", first.problem)?;
    }
    for hold in &cluster.holds {
        let unit = hold.subject();
        writeln!(out, "    {unit}held by guard {}: {}", hold.guard, hold.message)?;
        writeln!(out, "      {}", hold.hint)?;
        hold.listed(MOST_HELD).iter().try_for_each(|line| writeln!(out, "      {line}"))?;
        if let Some(token) = &hold.token {
            writeln!(out, "      gatewright approve {token}")?;
        }
    }
    let units = units(cluster);
    let width = units.iter().map(|unit| unit.unit.to_string().len()).max().unwrap_or_default();
    units.iter().try_for_each(|unit| write_unit(out, unit, width))
}

/// Returns the units with why they are held; one whose spec is broken stands only in the refusals.
fn units(cluster: &ClusterReport) -> Vec<UnitReport> {
    let reason = |unit: &ObjectId| {
        let mut refusals = cluster.refusals.iter().filter(|refusal| refusal.unit == *unit);
        refusals
            .find(|refusal| refusal.reason != Reason::UnitHeld)
            .map(|refusal| format!("{}: {}", refusal.id, why(refusal)))
    };
    let known: BTreeSet<&ObjectId> = cluster.units.iter().map(|unit| &unit.unit).collect();
    let broken: BTreeSet<&ObjectId> = cluster.refusals.iter().map(|refusal| &refusal.unit).collect();
    let broken = broken.difference(&known).map(|unit| UnitReport::new((*unit).clone(), UnitState::Held));
    let mut units: Vec<UnitReport> = cluster.units.iter().cloned().chain(broken).collect();
    for unit in units.iter_mut().filter(|unit| unit.message.is_none()) {
        unit.message = reason(&unit.unit);
    }
    units.sort_by(|a, b| a.unit.cmp(&b.unit));
    units
}

fn write_unit(out: &mut String, unit: &UnitReport, width: usize) -> fmt::Result {
    let ports: Vec<String> = unit.ports.iter().map(u16::to_string).collect();
    let has_addresses = unit.unit.is_a(GATEWAY_API, "Gateway") || !ports.is_empty();
    let addresses = match unit.addresses.as_slice() {
        [] if has_addresses => "no address".to_owned(),
        addresses => addresses.join(","),
    };
    let is_unawaited = matches!(unit.state, UnitState::Current | UnitState::Changed) && unit.unawaited.is_some();
    let state = if is_unawaited { "unawaited".to_owned() } else { word(&unit.state) };
    let pods = unit.pods.map(|pods| format!("  {pods}")).unwrap_or_default();
    let message = unit.message.as_ref().or(unit.unawaited.as_ref().filter(|_| is_unawaited));
    let message = message.map(|message| format!("  {message}")).unwrap_or_default();
    let name = unit.unit.to_string();
    writeln!(out, "    {name:width$}  {state:9}  {addresses}  {}{pods}{message}", ports.join(","))
}

/// The word for a state is the one that JSON has for it.
pub(super) fn word(state: &impl serde::Serialize) -> String {
    serde_json::to_value(state).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
