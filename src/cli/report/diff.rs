//! `gatewright report diff`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::chosen::{find, state};
use crate::cli::format::Format;
use crate::cli::others;
use crate::cli::{Context, EXIT_PENDING, Failure, print};
use crate::report::Report;
use crate::report::diff::diff;
use crate::report::trend::time;

/// Show what is new, still there and resolved from one report to another, by cluster.
///
/// Where the newer one could not look, nothing is resolved. Without a newer one the older is compared with the last known
/// state of its sync on its clusters.
///
/// Exit codes: 0 (with --detailed-exitcode: nothing is new), 2 something is new (only with --detailed-exitcode), 64 usage
/// or configuration.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The older one: a report as `report list` names it, how its name begins, or `latest`; or a sync.
    #[arg(value_name = "OLD")]
    old: String,
    /// The newer one, likewise; the last known state if absent.
    #[arg(value_name = "NEW")]
    new: Option<String>,
    /// Exit with 2 if something is new.
    #[arg(long)]
    detailed_exitcode: bool,
    /// The output format.
    #[arg(long = "output", short = 'o', visible_alias = "format", value_name = "FORMAT", default_value = "text")]
    format: Format,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let config = context.load_with_state()?;
    others::looking(context, &config)?;
    let clock = context.clock.as_ref();
    let old = find(&config, &args.old, clock)?;
    let new = match &args.new {
        Some(name) => find(&config, name, clock)?,
        None => ("the last known state".to_owned(), of_same_places(&old.1, state(&config, None, clock)?)),
    };
    let found = diff(&old.1, &new.1);
    match args.format.data() {
        None => {
            print(&format!("{} compared with {}\n\n{}", title(&new), title(&old), found.text()));
        }
        Some(data) => {
            let schema = "gatewright.dev/report-comparison/v1alpha1";
            data.print(&json!({"schema": schema, "old": side(&old), "new": side(&new), "syncs": found.syncs}));
        }
    }
    Ok(if args.detailed_exitcode && found.has_new() { EXIT_PENDING } else { 0 })
}

/// Leaves of the last known state what the older one is about: what is elsewhere is not new.
fn of_same_places(old: &[Report], mut new: Vec<Report>) -> Vec<Report> {
    let mut places: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
    for report in old {
        places.entry(&report.sync).or_default().extend(report.clusters.keys());
    }
    for report in &mut new {
        let clusters = places.get(report.sync.as_str()).map(Vec::as_slice).unwrap_or_default();
        report.clusters.retain(|name, _| clusters.contains(&name));
    }
    new.retain(|report| !report.clusters.is_empty());
    new
}

fn title((name, reports): &(String, Vec<Report>)) -> String {
    let finished = reports.iter().map(|report| report.finished).max();
    match finished {
        Some(finished) => format!("{name} ({})", time(finished)),
        None => name.clone(),
    }
}

fn side((name, reports): &(String, Vec<Report>)) -> Value {
    let finished = reports.iter().map(|report| report.finished).max();
    json!({"name": name, "finished": finished})
}
