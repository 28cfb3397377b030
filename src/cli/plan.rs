//! `gatewright plan`.

use gatewright_engine::text::digest;

use super::session::{Selection, Session};
use super::{Context, EXIT_PENDING, Failure, print, worst};
use crate::report::{Mode, Report, text};

/// Shows what the next round would do, on every cluster, and changes nothing.
///
/// Exit codes: 0 (with --detailed-exitcode: no changes), 2 changes are pending (only with --detailed-exitcode),
/// 1 failed, 3 held by a guard, 4 a cluster was unreachable, 64 usage.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Exit with 2 if anything would be changed.
    #[arg(long)]
    detailed_exitcode: bool,
    /// Also show objects that stay as they are.
    #[arg(long, short)]
    verbose: bool,
    /// How to print it.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
}

/// How a report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs; one JSON document per sync and line.
    Json,
}

/// Runs the command.
pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let config = context.load()?;
    context.log_quietly(&config)?;
    let session = Session::new(context, &config)?;
    // A plan writes nothing, not even who we are: before the first sync a stand-in does.
    let installation = session.state.installation().map_err(|error| Failure::of(&error))?;
    let installation =
        installation.unwrap_or_else(|| digest(config.state_dir.to_string_lossy().as_bytes())[..32].to_owned());
    let mut codes = Vec::new();
    for (name, sync) in session.syncs(&args.selection)? {
        let prepared = session.prepare(name, sync, &args.selection, &installation, Mode::Plan)?;
        let report = session.round(&prepared)?;
        show(context, &report, args.format, args.verbose);
        codes.push(report.exit_code());
        if args.detailed_exitcode && report.has_changes() {
            codes.push(EXIT_PENDING);
        }
    }
    Ok(worst(codes))
}

/// Prints a report.
pub(super) fn show(context: &Context, report: &Report, format: Format, verbose: bool) {
    match format {
        Format::Text => print(&text::write(report, text::Look { color: context.color, verbose })),
        Format::Json => {
            let json = serde_json::to_string(report).expect("a report is plain data");
            print(&format!("{json}\n"));
        }
    }
}
