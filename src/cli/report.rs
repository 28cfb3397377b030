//! `gatewright report`.

mod chosen;
mod compare;
mod list;
mod show;

use clap::Subcommand;

use super::{Context, Failure};

/// Lists, shows and compares the reports that rounds have left behind; it asks no cluster and changes nothing.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::Args),
    Show(show::Args),
    Compare(compare::Args),
}

/// Runs the command.
pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    match &args.command {
        Command::List(args) => list::run(context, args),
        Command::Show(args) => show::run(context, args),
        Command::Compare(args) => compare::run(context, args),
    }
}
