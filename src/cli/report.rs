//! `gatewright report`.

mod chosen;
mod diff;
mod list;
mod show;

use clap::Subcommand;

use super::{Context, Failure};

/// List, show and diff the reports that rounds have left behind; it asks no cluster and changes nothing.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::Args),
    Show(show::Args),
    Diff(diff::Args),
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    match &args.command {
        Command::List(args) => list::run(context, args),
        Command::Show(args) => show::run(context, args),
        Command::Diff(args) => diff::run(context, args),
    }
}
