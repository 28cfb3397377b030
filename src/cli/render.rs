//! `gatewright render`.

use std::path::PathBuf;

use gatewright_engine::object::Object;
use gatewright_engine::plan::order::{rank, wave};
use gatewright_engine::problem::Scope;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{Options, Rendering, Unit, render};
use gatewright_engine::yaml;

use super::{Context, EXIT_FAILED, EXIT_USAGE, Failure, complain, print};
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
    /// Also what `unclaimed: apply` applies: documents that no pack claims, as they are.
    #[arg(long)]
    unclaimed: bool,
    /// Also what `specs: apply` applies: the specs themselves.
    #[arg(long)]
    specs: bool,
}

/// Runs the command.
pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let options = Options {
        target_namespace: args.target_namespace.clone(),
        apply_unclaimed: args.unclaimed,
        apply_specs: args.specs,
        ..Options::default()
    };
    let rendering = load(context, &args.paths, &options)?;
    let documents = documents(&rendering);
    for document in &documents {
        print(document);
    }
    if documents.is_empty() && rendering.problems.is_empty() {
        complain("gatewright: there is nothing to render in what was named\n");
    }
    Ok(tell_problems(&rendering))
}

/// Writes every object as a YAML document, in the order of apply. A value that is made once on each cluster is in none;
/// a comment says so.
pub fn documents(rendering: &Rendering) -> Vec<String> {
    let mut objects: Vec<(&Unit, &Object)> =
        rendering.units.iter().flat_map(|unit| unit.all().map(move |object| (unit, object))).collect();
    objects.sort_by_key(|(unit, object)| (wave(&unit.id), &unit.id, rank(&object.id().kind), object.id()));
    let document = |(unit, object): (&Unit, &Object)| {
        let promise = unit.generated(object.id()).map(|generated| format!("# {}\n", generated.promise()));
        format!("---\n{}{}", promise.unwrap_or_default(), yaml::to_string(object.body()))
    };
    objects.into_iter().map(document).collect()
}

/// Reads and renders specs from disk, with the pack settings of a config file if one was named.
pub(super) fn load(context: &Context, paths: &[PathBuf], options: &Options) -> Result<Rendering, Failure> {
    let packs = match &context.config {
        Some(_) => context.load()?.packs(),
        None => config::packs(None),
    };
    let packs = packs.map_err(|error| Failure::of_configuration(&error))?;
    let mut tree = Tree::default();
    for path in paths {
        let part = Tree::read_dir(path).map_err(|error| Failure { code: EXIT_USAGE, ..Failure::of(&error) })?;
        let folder = if path.is_file() { path.parent() } else { Some(path.as_path()) };
        tree.absorb(&folder.map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default(), part);
    }
    if tree.is_empty() {
        let named: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(Failure::usage(format!("there are no YAML or JSON files in {}", named.join(", ")))
            .hint("name a folder with specs, such as examples/quickstart/specs"));
    }
    Ok(render(&tree, &packs, options))
}

/// Writes the problems to standard error and returns the exit code.
pub(super) fn tell_problems(rendering: &Rendering) -> u8 {
    rendering.problems.iter().for_each(|problem| complain(&format!("{problem}\n")));
    if rendering.problems.iter().any(|problem| problem.scope != Scope::Notice) { EXIT_FAILED } else { 0 }
}
