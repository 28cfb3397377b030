//! `gatewright man`.

use std::fs;
use std::path::PathBuf;

use gatewright_engine::error::Chain;

use super::{EXIT_FAILED, Failure, examples};

/// Write manual pages into a folder: gatewright.1, and one for each command.
///
/// Packages install them. Elsewhere `~/.local/share/man/man1` is a folder that `man` looks into.
///
/// Exit codes: 0 written, 1 a file cannot be written, 64 usage.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The folder; it is made if it is missing.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<u8, Failure> {
    let written =
        fs::create_dir_all(&args.folder).and_then(|()| clap_mangen::generate_to(examples::command(), &args.folder));
    written.map_err(|error| Failure {
        code: EXIT_FAILED,
        message: format!("cannot write manual pages to {}: {}", args.folder.display(), Chain(&error)),
        hint: None,
    })?;
    Ok(0)
}
