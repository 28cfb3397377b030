//! `gatewright pack lint`.

use std::path::PathBuf;

use gatewright_engine::pack::Packs;
use gatewright_engine::pack::builtin::with_files;
use gatewright_engine::pack::lint::lint;
use gatewright_engine::problem::Scope;
use serde_json::Value;

use super::super::{Context, EXIT_FAILED, Failure, complain, print};
use super::{read, texts};

/// Lint a pack without rendering anything: what its files ask for that is not there, and what nobody asks for.
///
/// Exit codes: 0 nothing is wrong (warnings are printed all the same), 1 something is, 64 usage.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder of the pack.
    #[arg(value_name = "DIR")]
    pack: PathBuf,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let (name, files) = read(context, &args.pack)?;
    let files = texts(&files);
    let pack =
        with_files(&context.environment.builtin, &name, &files, &Value::Null).map_err(|error| Failure::of(&error))?;
    Packs::new(vec![pack]).map_err(|error| Failure::of(&error))?;
    let found = lint(&files);
    for problem in &found {
        complain(&format!("{}/{problem}\n", args.pack.display()));
    }
    let is_wrong = found.iter().any(|problem| problem.scope != Scope::Warning);
    if found.is_empty() {
        print(&format!("pack {name}: nothing is wrong\n"));
    }
    Ok(if is_wrong { EXIT_FAILED } else { 0 })
}
