//! `gatewright config`.

use super::{Context, Failure, print};
use gatewright_engine::text::count;
use gatewright_engine::yaml;

/// Checks or shows the configuration.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Checks the config file and everything it refers to by name. Connects to nothing.
    Check,
    /// Prints the configuration that is in force: defaults, file, environment and flags.
    Show,
}

/// Runs the command.
pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let config = context.load()?;
    config.packs().map_err(|error| Failure { code: super::EXIT_USAGE, ..Failure::of(&error) })?;
    let settings = &config.settings;
    match args.command {
        Command::Check => {
            let counts = [
                count(settings.sources.len(), "source"),
                count(settings.clusters.len(), "cluster"),
                count(settings.syncs.len(), "sync"),
            ];
            print(&format!("{} is valid: {}\n", config.file.display(), counts.join(", ")));
        }
        Command::Show => {
            let mut shown = serde_json::to_value(settings).map_err(|error| Failure::of(&error))?;
            shown["stateDir"] = config.state_dir.to_string_lossy().into();
            shown["reports"]["dir"] = config.reports_dir.to_string_lossy().into();
            print(&yaml::to_string(&shown));
        }
    }
    Ok(0)
}
