//! `gatewright render`.

use std::path::{Path, PathBuf};

use gatewright_engine::pack::Packs;
use gatewright_engine::plan::order::rank;
use gatewright_engine::problem::Scope;
use gatewright_engine::resolve::{Resolution, resolve};
use gatewright_engine::spec;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{self, Options, Rendering, render};
use gatewright_engine::yaml;

use super::{Context, EXIT_FAILED, EXIT_USAGE, Failure, complain, print};
use crate::config::{self, Config};

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
    /// Print the values that the templates get, one document for each Gateway, and not the objects.
    #[arg(long)]
    values: bool,
}

/// Runs the command.
pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let options = Options { target_namespace: args.target_namespace.clone(), ..Options::default() };
    let (tree, packs) = (read(&args.paths)?, packs(config(context)?.as_ref())?);
    let rendering = render(&tree, &packs, &options);
    if args.values {
        print(&values(&tree, &packs, &options));
        return Ok(tell_problems(&rendering));
    }
    let units = rendering.units.iter();
    let mut objects: Vec<_> =
        units.flat_map(|unit| unit.objects.iter().map(move |object| (&unit.id, object))).collect();
    objects.sort_by_key(|(unit, object)| (*unit, rank(&object.id().kind), object.id()));
    for (_, object) in &objects {
        print(&format!("---\n{}", yaml::to_string(object.body())));
    }
    if objects.is_empty() && rendering.problems.is_empty() {
        complain("gatewright: there is no Gateway to render in what was named\n");
    }
    Ok(tell_problems(&rendering))
}

/// Writes the values of every Gateway that has some, also where the templates cannot be filled with them.
fn values(tree: &Tree, packs: &Packs, options: &Options) -> String {
    let specs = spec::load(tree, packs.kinds(), options.target_namespace.as_deref());
    let resolved = resolve(&specs, packs).into_iter().filter_map(|(document, resolution)| match resolution {
        Resolution::Ready(resolved) => Some((document, resolved)),
        Resolution::NotOurs { .. } | Resolution::Broken(_) => None,
    });
    let texts = resolved.filter_map(|(document, resolved)| {
        let values = unit::values(&resolved, &unit::subject(&resolved)).ok()??;
        Some(format!("---\n# {} ({})\n{}", document.id, document.place(), yaml::to_string(&values)))
    });
    texts.collect::<Vec<_>>().concat()
}

/// Reads and renders specs from disk, with the pack settings of a config file if one was named.
pub(super) fn load(context: &Context, paths: &[PathBuf], options: &Options) -> Result<Rendering, Failure> {
    let packs = packs(config(context)?.as_ref())?;
    Ok(render(&read(paths)?, &packs, options))
}

/// Reads the config file if one was named.
pub(super) fn config(context: &Context) -> Result<Option<Config>, Failure> {
    context.config.as_ref().map(|_| context.load()).transpose()
}

/// Builds the packs, with the settings of a config file if there is one.
pub(super) fn packs(config: Option<&Config>) -> Result<Packs, Failure> {
    let packs = config.map_or_else(|| config::packs(None), Config::packs);
    packs.map_err(|error| Failure::of_configuration(&error))
}

/// Reads specs from disk; places have the paths as they were given.
pub(super) fn read(paths: &[PathBuf]) -> Result<Tree, Failure> {
    let mut tree = Tree::default();
    for path in paths {
        let part = Tree::read_dir(path).map_err(|error| Failure { code: EXIT_USAGE, ..Failure::of(&error) })?;
        let folder = if path.is_file() { path.parent() } else { Some(path.as_path()) };
        let folder = folder.filter(|folder| *folder != Path::new("."));
        tree.absorb(&folder.map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default(), part);
    }
    if tree.is_empty() {
        let named: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(Failure::usage(format!("there are no YAML or JSON files in {}", named.join(", ")))
            .hint("name a folder with specs, such as examples/quickstart/specs"));
    }
    Ok(tree)
}

/// Writes the problems to standard error and returns the exit code.
pub(super) fn tell_problems(rendering: &Rendering) -> u8 {
    rendering.problems.iter().for_each(|problem| complain(&format!("{problem}\n")));
    if rendering.problems.iter().any(|problem| problem.scope != Scope::Notice) { EXIT_FAILED } else { 0 }
}
