//! `gatewright status`.

use std::collections::BTreeMap;

use serde_json::json;

use super::choice::Choice;
use super::format::{ListFormat, names};
use super::session::is_chosen;
use super::view::Extent;
use super::watch::Watch;
use super::{Context, Failure, check_names};
use crate::basics::sanitize;
use crate::config::Config;
use crate::reconcile::{gone, renamed};
use crate::report::{Report, status};
use crate::source::cache::{TROUBLES, Trouble};
use crate::state::State;
use crate::state::suspension::{self, Suspension};
use crate::state::timekeeping;

/// Show how every sync stood after its last round, with the addresses and ports of each Gateway.
///
/// It reads what the last rounds have left behind, and asks no cluster. Clusters on which a sync stands alike are one
/// paragraph; --verbose, or -o wide, names each of them, gives each value and the
/// images of each unit, --summary leaves a line for each paragraph. A unit is `unawaited` if its last round did not
/// wait until it was well, and nobody has seen that it is. Exit codes: 0 however things stand, 64 usage
/// or configuration.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The sync; all of them if absent.
    #[arg(value_name = "SYNC")]
    sync: Option<String>,
    #[command(flatten)]
    clusters: Choice,
    #[command(flatten)]
    extent: Extent,
    /// The output format.
    #[arg(long = "output", short = 'o', visible_alias = "format", value_name = "FORMAT", default_value = "text")]
    format: ListFormat,
    #[command(flatten)]
    watch: Watch,
}

/// The version of the JSON form.
const SCHEMA: &str = "gatewright.dev/status/v1alpha1";

/// The last reports, by sync and cluster.
type Reports = BTreeMap<String, status::Reports>;

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    args.extent.check(args.format == ListFormat::Text)?;
    let config = context.load_with_state()?;
    check_names("sync", &args.sync, &config.settings.syncs)?;
    let chosen = args.clusters.names(&config.settings.clusters, |_| true)?;
    args.watch.print(context, &config, |state| shown(context, args, (&config, state), &chosen))
}

/// Returns what there is to be seen now.
fn shown(
    context: &Context,
    args: &Args,
    (config, state): (&Config, &State),
    chosen: &[String],
) -> Result<String, Failure> {
    let troubles = TROUBLES.read(state, &[]).unwrap_or_default();
    let reports = last_reports(config, state, (args.sync.as_deref(), chosen));
    let installation = state.installation()?;
    let now = timekeeping::believed(state, context.clock.as_ref());
    let suspended = |sync: &String| suspension::of(state, sync, now).map(|it| it.map(|it| (sync.clone(), it)));
    let gone = if args.clusters.is_of_all() { gone::find(config, state) } else { BTreeMap::new() };
    let gone: BTreeMap<_, _> =
        gone.into_iter().filter(|(_, syncs)| args.sync.as_ref().is_none_or(|sync| syncs.contains(sync))).collect();
    let unselected = if args.clusters.is_of_all() { gone::unselected(config, state) } else { BTreeMap::new() };
    let is_about = |sync: &String| args.sync.as_ref().is_none_or(|wanted| wanted == sync);
    let unselected: BTreeMap<_, _> = unselected.into_iter().filter(|(sync, _)| is_about(sync)).collect();
    let suspended = reports.keys().filter_map(|sync| suspended(sync).transpose()).collect::<Result<_, _>>()?;
    if let Some(data) = args.format.data() {
        return Ok(data.text(&json!({
            "schema": SCHEMA, "installation": installation, "sources": troubles, "syncs": reports,
            "suspended": suspended, "gone": gone, "unselected": unselected,
        })));
    }
    if args.format == ListFormat::Name {
        let units = |(name, report): (&String, &Option<Report>)| {
            let cluster = report.as_ref().and_then(|report| report.clusters.get(name));
            cluster.map(status::units).unwrap_or_default()
        };
        return Ok(names(reports.values().flatten().flat_map(units).map(|unit| unit.unit.path())));
    }
    let is_new = reports.values().flat_map(BTreeMap::values).all(Option::is_none);
    let mut out = if is_new { introduced(installation.as_deref(), config) } else { String::new() };
    out += &write_all(
        &troubles,
        &reports,
        &suspended,
        Extent { verbose: args.extent.verbose || args.format == ListFormat::Wide, ..args.extent },
    );
    out.extend(gone.keys().map(|name| format!("cluster {name}: {}\n  {}\n", gone::WORDS, gone::hint(name))));
    out.extend(unselected.iter().map(|(sync, clusters)| gone::unselected_words(config, sync, clusters)));
    Ok(sanitize::lines(&out).into_owned())
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
        let reports =
            clusters.map(|cluster| (cluster.to_owned(), renamed::last_report(config, state, (name, cluster))));
        (name.clone(), reports.collect())
    });
    of_sync.filter(|(_, reports): &(String, status::Reports)| chosen.is_empty() || !reports.is_empty()).collect()
}

fn write_all(
    troubles: &BTreeMap<String, Trouble>,
    reports: &Reports,
    suspended: &BTreeMap<String, Suspension>,
    extent: Extent,
) -> String {
    let source = |(name, trouble): (&String, &Trouble)| sanitize::row(&format!("source {name} {}", trouble.words()));
    let write = if extent.summary { status::summary } else { status::write };
    let sync = |(name, clusters): (&String, &status::Reports)| {
        let words = suspended.get(name).map(|suspension| format!(": {}", suspension.words())).unwrap_or_default();
        format!("sync {name}{words}\n{}", write(clusters, extent.verbose))
    };
    troubles.iter().map(source).chain(reports.iter().map(sync)).collect()
}
