//! `gatewright check`.

use std::path::PathBuf;

use gatewright_engine::text::count;
use gatewright_engine::unit::Options;

use super::render::{load, tell_problems};
use super::{Context, Failure, print};

/// Checks specs without a cluster: structure, names, references, and that everything renders.
///
/// Problems go to standard error. Exit codes: 0 nothing is wrong, 1 something is, 64 usage.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files or folders with specs.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
}

/// Runs the command.
pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let rendering = load(context, &args.paths, &Options::default())?;
    let code = tell_problems(&rendering);
    let objects = rendering.units.iter().map(|unit| unit.objects.len()).sum();
    let rendered = format!("{} from {}", count(objects, "object"), count(rendering.units.len(), "Gateway"));
    let others = [
        (rendering.self_managed.len(), "Gateway", "self-managed"),
        (rendering.broken.len(), "Gateway", "with problems"),
        (rendering.unclaimed.len(), "document", "that no pack claims"),
    ];
    let others = others.into_iter().filter(|(number, ..)| *number > 0);
    let others = others.map(|(number, thing, words)| format!("{} {words}", count(number, thing)));
    let line = [rendered].into_iter().chain(others).collect::<Vec<_>>().join(", ");
    print(&format!("{line}\n"));
    Ok(code)
}
