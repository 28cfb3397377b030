//! `gatewright hosts`.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::json;

use super::format::{ListFormat, names};
use super::session::runtime;
use super::table::table;
use super::{Context, Failure, print};
use crate::hosts::{self, Seen};

/// The version of the JSON form.
const SCHEMA: &str = "gatewright.dev/hosts/v1alpha1";

/// List the hosts that share the fleet, when each was last seen, and which syncs it looks after.
///
/// It reads the Leases on the management cluster and changes nothing. Whether a host is alive is seen by whether it renews
/// its Lease, not by what its clock says: a look that is shorter than that tells only what the Lease says.
///
/// Exit codes: 0 listed, 1 the management cluster does not say it, 64 usage or configuration.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The output format.
    #[arg(long = "output", short = 'o', visible_alias = "format", value_name = "FORMAT", default_value = "text")]
    format: ListFormat,
}

/// A host.
#[derive(Debug, Default, Serialize)]
struct Line {
    renewed: Option<jiff::Timestamp>,
    syncs: Vec<String>,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let config = context.load_with_state()?;
    let Some(settings) = &config.settings.hosts else {
        let failure = Failure::usage("this host shares its fleet with no other one");
        return Err(failure.hint("docs/hosts.md says how several do, with `hosts` in the config file"));
    };
    let seen = runtime()?.block_on(hosts::seen(&config, settings, &context.clock));
    let seen = seen.map_err(|error| Failure { hint: error.hint.clone(), ..Failure::of(&error) })?;
    let mut lines: BTreeMap<String, Line> = BTreeMap::new();
    for Seen { host, renewed } in seen.hosts {
        lines.insert(host, Line { renewed, syncs: Vec::new() });
    }
    let mut nobody: Vec<&String> = Vec::new();
    for sync in config.settings.syncs.keys() {
        match seen.syncs.get(sync).filter(|host| !host.is_empty()) {
            Some(host) => lines.entry(host.clone()).or_default().syncs.push(sync.clone()),
            None => nobody.push(sync),
        }
    }
    match args.format.data() {
        Some(data) => data.print(&json!({"schema": SCHEMA, "hosts": lines, "unowned": nobody})),
        None if args.format == ListFormat::Name => print(&names(lines.keys())),
        None => print(&text(&lines, &nobody, context.clock.now())),
    }
    Ok(0)
}

fn text(lines: &BTreeMap<String, Line>, nobody: &[&String], now: jiff::Timestamp) -> String {
    let row = |(host, line): (&String, &Line)| {
        let renewed = match line.renewed {
            Some(time) => format!("{}s ago", now.duration_since(time).as_secs().max(0)),
            None => "gone".to_owned(),
        };
        [host.clone(), renewed, line.syncs.join(", ")]
    };
    let rows: Vec<[String; 3]> = lines.iter().map(row).collect();
    let mut out = table(["HOST", "RENEWED", "SYNCS"], &rows);
    if !nobody.is_empty() {
        let names: Vec<&str> = nobody.iter().map(|name| name.as_str()).collect();
        out.extend(["nobody looks after ", &names.join(", "), "\n"]);
    }
    out
}
