//! `gatewright completions`.

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;

use super::{Cli, emit};

/// Print a script that completes commands and options in a shell.
///
/// Packages install those of bash, zsh and fish. Elsewhere:
///
/// Exit codes: 0 printed, 64 usage.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The shell.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut visible(&Cli::command()), "gatewright", &mut script);
    emit(&String::from_utf8_lossy(&script));
    0
}

/// Leaves out the commands that are for the program itself: help does not list them, and scripts would complete them.
fn visible(command: &Command) -> Command {
    let listed = command.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    Command::default()
        .name("gatewright")
        .version(env!("CARGO_PKG_VERSION"))
        .args(command.get_arguments().cloned())
        .subcommands(listed.collect::<Vec<_>>())
}
