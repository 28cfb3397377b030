//! `gatewright status`.

use std::collections::BTreeMap;
use std::fmt::Write;

use gatewright_engine::text::count;

use super::{Context, Failure, print};
use crate::config::settings::SyncSettings;
use crate::feed::Trouble;
use crate::journal;
use crate::report::{ClusterReport, Report, UnitReport};
use crate::state::State;

/// Shows how every sync stood after its last round, with the addresses and ports of each Gateway.
///
/// It reads what the last rounds have left behind, and asks no cluster.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print it as JSON.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: super::plan::Format,
}

/// Where the daemon notes which sources it cannot read.
pub const TROUBLES: &str = "status/.sources.json";

/// Runs the command.
pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let config = context.load()?;
    let state = State::open(&config.state_dir);
    let troubles: BTreeMap<String, Trouble> = state.read_json(TROUBLES).unwrap_or_default();
    let of_sync = |(name, settings): (&String, &SyncSettings)| {
        let clusters = config.clusters_of(settings).into_keys();
        let reports = clusters.map(|cluster| (cluster.to_owned(), journal::last(&state, name, cluster)));
        (name.clone(), reports.collect())
    };
    let reports: BTreeMap<String, BTreeMap<String, Option<Report>>> =
        config.settings.syncs.iter().map(of_sync).collect();
    if args.format == super::plan::Format::Json {
        let json =
            serde_json::json!({"schema": "gatewright.dev/status/v1alpha1", "sources": troubles, "syncs": reports});
        print(&format!("{json}\n"));
        return Ok(0);
    }
    let mut out = String::new();
    for (name, trouble) in &troubles {
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "source {name} cannot be read since {}: {}",
            trouble.since.strftime("%F %T UTC"),
            trouble.message
        );
    }
    for (name, clusters) in &reports {
        let _ = write_sync(&mut out, name, clusters);
    }
    print(&out);
    Ok(0)
}

fn write_sync(out: &mut String, name: &str, clusters: &BTreeMap<String, Option<Report>>) -> std::fmt::Result {
    writeln!(out, "sync {name}")?;
    for (cluster, report) in clusters {
        let Some(report) = report else {
            writeln!(out, "  cluster {cluster}: no round yet")?;
            continue;
        };
        if let Some(state) = report.clusters.get(cluster) {
            write_cluster(out, cluster, state, report)?;
        }
    }
    Ok(())
}

fn write_cluster(out: &mut String, name: &str, cluster: &ClusterReport, report: &Report) -> std::fmt::Result {
    let (state, at) = (word(&cluster.state), report.finished.strftime("%F %T UTC"));
    match &cluster.error {
        Some(error) => writeln!(out, "  cluster {name}: {state} at {at}: {}", error.message)?,
        None => writeln!(out, "  cluster {name}: {state} at {at}, {}", report.revision)?,
    }
    if !report.problems.is_empty() {
        writeln!(out, "    {} in the source", count(report.problems.len(), "problem"))?;
    }
    for hold in &cluster.holds {
        writeln!(out, "    held by guard {}: {}", hold.guard, hold.message)?;
    }
    let width = cluster.units.iter().map(|unit| unit.unit.to_string().len()).max().unwrap_or_default();
    cluster.units.iter().try_for_each(|unit| write_unit(out, unit, width))
}

fn write_unit(out: &mut String, unit: &UnitReport, width: usize) -> std::fmt::Result {
    let addresses = if unit.addresses.is_empty() { "no address".to_owned() } else { unit.addresses.join(",") };
    let ports: Vec<String> = unit.ports.iter().map(u16::to_string).collect();
    let message = unit.message.as_ref().map(|message| format!("  {message}")).unwrap_or_default();
    let name = unit.unit.to_string();
    writeln!(out, "    {name:width$}  {:9}  {addresses}  {}{message}", word(&unit.state), ports.join(","))
}

/// The word for a state is the one that JSON has for it.
fn word(state: &impl serde::Serialize) -> String {
    serde_json::to_value(state).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
