//! `gatewright render`.

use std::path::PathBuf;

use gatewright_engine::plan::order::rank;
use gatewright_engine::problem::Scope;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{Options, Rendering, render};
use gatewright_engine::yaml;

use super::{Context, EXIT_FAILED, Failure, print};
use crate::config;

/// Renders specs to a stream of YAML documents, in the order in which they would be applied. Needs no cluster.
///
/// Problems go to standard error. Exit codes: 0 all rendered, 1 some specs have problems, 64 usage.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files or folders with specs.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Put all objects into this namespace.
    #[arg(long, value_name = "NAMESPACE")]
    target_namespace: Option<String>,
}

/// Runs the command.
pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let options = Options { target_namespace: args.target_namespace.clone(), ..Options::default() };
    let rendering = load(context, &args.paths, &options)?;
    let mut objects: Vec<_> =
        rendering.units.iter().flat_map(|unit| unit.objects.iter().map(move |o| (&unit.id, o))).collect();
    objects.sort_by(|(a_unit, a), (b_unit, b)| {
        (a_unit, rank(&a.id().kind), a.id()).cmp(&(b_unit, rank(&b.id().kind), b.id()))
    });
    for (_, object) in objects {
        print(&format!("---\n{}", yaml::to_string(object.body())));
    }
    Ok(complain(&rendering))
}

/// Reads and renders specs from disk, with the pack settings of a config file if one was named.
pub(super) fn load(context: &Context, paths: &[PathBuf], options: &Options) -> Result<Rendering, Failure> {
    let usage = |error: &dyn std::error::Error| Failure { code: super::EXIT_USAGE, ..Failure::of(error) };
    let packs = match &context.config {
        Some(_) => context.load()?.packs().map_err(|error| usage(&error))?,
        None => config::packs(None).map_err(|error| usage(&error))?,
    };
    let mut tree = Tree::default();
    for path in paths {
        let part = Tree::read_dir(path).map_err(|error| usage(&error))?;
        let folder = if path.is_file() { path.parent() } else { Some(path.as_path()) };
        tree.absorb(&folder.map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default(), part);
    }
    if tree.is_empty() {
        return Err(Failure::usage("there are no YAML or JSON files in what was named")
            .hint("name a folder with specs, such as examples/quickstart/specs"));
    }
    Ok(render(&tree, &packs, options))
}

/// Writes the problems to standard error and returns the exit code.
pub(super) fn complain(rendering: &Rendering) -> u8 {
    for problem in &rendering.problems {
        drop(std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{problem}\n")));
    }
    if rendering.problems.iter().any(|problem| problem.scope != Scope::Notice) { EXIT_FAILED } else { 0 }
}
