//! `gatewright report show`.

use super::chosen::{find, state};
use crate::cli::others;
use crate::cli::view::{Extent, View};
use crate::cli::{Context, Failure, emit};
use crate::report::text;

/// Show a report that is kept, or the last known state of a sync or of the whole fleet.
///
/// The last known state is what the last rounds have left behind on each cluster of the config file. At the top stands what
/// is missing from it: clusters that could not be asked, had no round yet, or none for longer than the schedule says,
/// syncs that are suspended or held, and sources that cannot be read.
///
/// Exit codes: 0 however things stand, 64 usage or configuration.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// A report as `report list` names it, how its name begins, or `latest`; or a sync. The whole fleet if absent.
    #[arg(value_name = "NAME|SYNC")]
    name: Option<String>,
    #[command(flatten)]
    extent: Extent,
    /// The output format.
    #[arg(long = "output", short = 'o', visible_alias = "format", value_name = "FORMAT", default_value = "text")]
    format: View,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    args.extent.check(args.format == View::Text)?;
    let config = context.load_with_state()?;
    others::looking(context, &config)?;
    let clock = context.clock.as_ref();
    let reports = match &args.name {
        Some(name) => find(&config, name, clock)?.1,
        None if config.settings.syncs.is_empty() => {
            let message = format!("no syncs are configured in {}", config.file.display());
            return Err(Failure::usage(message).hint("a sync says which source goes to which clusters"));
        }
        None => state(&config, None, clock)?,
    };
    if args.format == View::Text {
        emit(&text::first(&reports, args.extent.look(context)));
    }
    for (index, report) in reports.iter().enumerate() {
        if args.format == View::Text && index > 0 {
            emit("\n");
        }
        args.format.print_one(context, report, args.extent);
    }
    args.format.print_page(&reports);
    Ok(0)
}
