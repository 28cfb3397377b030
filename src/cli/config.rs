//! `gatewright config`.

use gatewright_engine::text::count;
use gatewright_engine::yaml;
use serde_json::Value;

use super::{Context, Failure, complain, emit, print};
use crate::config::ConfigError;
use crate::config::examine::examine;

/// Check or show the configuration.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Args {
    /// Checks the config file: its names, and the kubeconfigs and other files that it refers to. Connects to nothing.
    ///
    /// What is probably a mistake is a warning: two clusters with one API server, a label that no cluster has, the file of a
    /// token that cannot be read. Exit codes:
    /// 0 it can be used, 64 it cannot, and every mistake is listed with its line.
    Check,
    /// Prints the configuration that is in force: defaults, file, environment and flags, every path absolute.
    ///
    /// What it prints is a config file itself. Exit codes: 0, or 64 when the configuration cannot be used.
    Show,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let config = context.load()?;
    config.packs().map_err(|error| Failure::of_configuration(&error))?;
    let settings = &config.settings;
    match args {
        Args::Check => {
            let counts = [
                count(settings.sources.len(), "source"),
                count(settings.clusters.len() - config.found_in_secrets().clusters.len(), "cluster"),
                count(settings.syncs.len(), "sync"),
            ];
            let found = examine(&config);
            if !found.problems.is_empty() {
                return Err(ConfigError::Problems(found.problems).into());
            }
            found.warnings.iter().for_each(|warning| complain(&format!("warning: {warning}\n")));
            print(&format!("{} is valid: {}\n", config.file.display(), counts.join(", ")));
        }
        Args::Show => {
            let mut settings = settings.clone();
            // What stands in folders and Secrets is found there again.
            config.found_in_folders().leave(&mut settings);
            config.found_in_secrets().leave(&mut settings);
            let mut shown = serde_json::to_value(&settings).map_err(|error| Failure::of(&error))?;
            shown["stateDir"] = config.state_dir.to_string_lossy().into();
            shown["reports"]["dir"] = config.reports_dir.to_string_lossy().into();
            emit(&yaml::to_string(&without_nulls(shown)));
        }
    }
    Ok(0)
}

/// A setting that says nothing is left out.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let said = fields.into_iter().filter(|(_, value)| !value.is_null());
            said.map(|(name, value)| (name, without_nulls(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        scalar => scalar,
    }
}
