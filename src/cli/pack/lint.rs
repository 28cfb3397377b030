//! `gatewright pack lint`.

use std::path::PathBuf;

use gatewright_engine::pack::builtin::{Builtin, Files, with_files};
use gatewright_engine::pack::lint::lint;
use gatewright_engine::pack::{PackError, Packs};
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
    let (name, own) = read(context, &args.pack)?;
    let own = texts(&own);
    let builtin = &context.environment.builtin;
    let replaced = builtin.iter().find(|pack| pack.name == name);
    let loaded = load(builtin, &name, &own);
    let is_declarative = loaded.as_ref().map_or(replaced.is_none(), |is_declarative| *is_declarative);
    // Of a built-in pack, what a folder leaves as it is belongs to the pack, and is no business of the folder.
    let mut files = replaced.map(|pack| pack.files.clone()).unwrap_or_default();
    files.extend(&own);
    let mut found = lint(&files, is_declarative);
    found.retain(|problem| own.contains_key(&*problem.place.file));
    let unusable = match loaded {
        Ok(_) => None,
        Err(PackError::Arguments(mistakes)) => {
            found.extend(mistakes);
            None
        }
        // Each template was examined by itself.
        Err(PackError::Template(_)) if found.iter().any(|problem| problem.scope != Scope::Warning) => None,
        Err(error) => Some(Failure::of(&error)),
    };
    found.sort();
    found.dedup();
    for problem in &found {
        complain(&format!("{}/{problem}\n", args.pack.display()));
    }
    if let Some(unusable) = unusable {
        return Err(unusable);
    }
    let is_wrong = found.iter().any(|problem| problem.scope != Scope::Warning);
    if found.is_empty() {
        print(&format!("pack {name}: nothing is wrong\n"));
    }
    Ok(if is_wrong { EXIT_FAILED } else { 0 })
}

/// Loads a pack, and tells whether its folder is all there is to it.
fn load(builtin: &[Builtin], name: &str, files: &Files<'_>) -> Result<bool, PackError> {
    let pack = with_files(builtin, name, files, &Value::Null)?;
    let is_declarative = pack.is_declarative;
    Packs::new(vec![pack]).map(|_| is_declarative)
}
