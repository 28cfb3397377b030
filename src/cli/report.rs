//! `gatewright report`.

pub(super) mod chosen;
mod diff;
mod list;
mod show;

use super::{Context, Failure};

/// List, show and diff the reports that rounds have left behind; it asks no cluster and changes nothing.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Args {
    List(list::Args),
    Show(show::Args),
    Diff(diff::Args),
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    match args {
        Args::List(args) => list::run(context, args),
        Args::Show(args) => show::run(context, args),
        Args::Diff(args) => diff::run(context, args),
    }
}
