//! `gatewright render`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gatewright_engine::kinds;
use gatewright_engine::object::Object;
use gatewright_engine::pack::Packs;
use gatewright_engine::problem::{Problem, Scope};
use gatewright_engine::selector::ClusterFacts;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{Options, Rendering, Source, Unit};
use gatewright_engine::yaml;

use super::{Context, EXIT_FAILED, EXIT_USAGE, Failure, check_names, complain, complain_line, emit};
use crate::config::Config;
use crate::config::packs::build;
use crate::desired::rendering::in_order;

/// Render specs to a stream of YAML documents, in the order in which they would be applied. Needs no cluster.
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
    /// Render for this cluster of the config file; otherwise only overlays for all clusters are in force.
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Print the values that the templates get, one document for each Gateway, and not the objects.
    #[arg(long)]
    values: bool,
}

/// Runs the command.
pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let specs = Specs::load(context, &args.paths, args.target_namespace.as_deref(), args.cluster.is_some())?;
    let cluster = args.cluster.as_deref().map(|name| specs.cluster(name)).transpose()?;
    let options = Options {
        target_namespace: args.target_namespace.clone(),
        apply_unclaimed: args.unclaimed,
        apply_specs: args.specs,
        cluster,
        ..Options::default()
    };
    let rendering = specs.source.render(&specs.packs, &options);
    let documents = if args.values { values(&specs, &options) } else { documents(&rendering, specs.packs.table()) };
    for document in &documents {
        emit(document);
    }
    if documents.is_empty() && rendering.problems.is_empty() {
        complain("gatewright: there is nothing to render in what was named\n");
    }
    rendering.problems.iter().for_each(|problem| complain_line(&problem.to_string()));
    Ok(exit_code(&rendering.problems))
}

/// Writes every object as a YAML document, in the order of apply. A generated value is in none;
/// a comment says so.
pub fn documents(rendering: &Rendering, kinds: &kinds::Table) -> Vec<String> {
    let document = |(unit, object): (&Unit, &Object)| {
        let promise = unit.generated(object.id()).map(|generated| format!("# {}\n", generated.promise()));
        format!("---\n{}{}", promise.unwrap_or_default(), yaml::to_string(object.body()))
    };
    in_order(rendering, kinds).into_iter().map(document).collect()
}

/// Writes the values of every Gateway that has some, also where the templates cannot be filled with them.
fn values(specs: &Specs, options: &Options) -> Vec<String> {
    let all = specs.source.values(&specs.packs, options).into_iter();
    all.map(|(id, place, values)| format!("---\n# {id} ({place})\n{}", yaml::to_string(&values))).collect()
}

/// Specs from disk, and what is needed to render them.
pub(super) struct Specs {
    /// The config file, if one was named or is where it is looked for.
    pub config: Option<Config>,
    /// The packs, with its settings.
    pub packs: Arc<Packs>,
    /// The specs.
    pub source: Source,
    /// The texts that they were read from.
    pub tree: Tree,
}

impl Specs {
    /// Reads specs, and the config file if there is one or it is needed.
    pub(super) fn load(
        context: &Context,
        paths: &[PathBuf],
        target_namespace: Option<&str>,
        needs_config: bool,
    ) -> Result<Self, Failure> {
        let config = config(context, needs_config)?;
        let packs = packs(context, config.as_ref())?;
        let mut parts = parts(paths)?;
        if let Some(config) = &config {
            for (path, (_, tree)) in paths.iter().zip(&mut parts) {
                leave_out_own(config, path, tree);
            }
        }
        let tree = joined(parts);
        let source = Source::load(&tree, &packs, target_namespace);
        Ok(Self { config, packs, source, tree })
    }

    /// Returns what overlays can know of the clusters of the config file.
    pub(super) fn clusters(&self) -> impl Iterator<Item = ClusterFacts> {
        let clusters = self.config.iter().flat_map(|config| &config.settings.clusters);
        clusters.map(|(name, settings)| settings.facts(name))
    }

    /// Returns what overlays can know of one of them.
    pub(super) fn cluster(&self, name: &str) -> Result<ClusterFacts, Failure> {
        if let Some(config) = &self.config {
            check_names("cluster", [name], &config.settings.clusters)?;
        }
        let named = self.clusters().find(|cluster| cluster.name == name);
        named.ok_or_else(|| Failure::usage(format!("there is no cluster {name:?}")))
    }
}

/// Reads the config file if there is one or it is needed.
pub(super) fn config(context: &Context, is_needed: bool) -> Result<Option<Config>, Failure> {
    let is_wanted = is_needed || context.has_config();
    is_wanted.then(|| context.load()).transpose()
}

/// Builds the packs, with the settings of a config file if there is one.
pub(super) fn packs(context: &Context, config: Option<&Config>) -> Result<Arc<Packs>, Failure> {
    let Some(config) = config else {
        return build(None, &context.packs()?).map(Arc::new).map_err(|error| Failure::of_configuration(&error));
    };
    config.packs().map_err(|error| Failure::of_configuration(&error))
}

/// Reads files and folders with specs: each with the folder that its files are named by.
pub(super) fn parts(paths: &[PathBuf]) -> Result<Vec<(String, Tree)>, Failure> {
    let mut parts = Vec::new();
    for path in paths {
        let part = Tree::read_dir(path).map_err(|error| Failure { code: EXIT_USAGE, ..Failure::of(&error) })?;
        let folder = if path.is_file() { path.parent() } else { Some(path.as_path()) };
        let folder = folder.filter(|folder| *folder != Path::new("."));
        parts.push((folder.map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default(), part));
    }
    if parts.iter().all(|(_, tree)| tree.is_empty()) {
        let named: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(Failure::usage(format!("there are no YAML or JSON files in {}", named.join(", ")))
            .hint("name a folder with specs, such as examples/quickstart/specs"));
    }
    Ok(parts)
}

/// Takes out of a folder what this program writes there and its config file, none of which is a spec.
fn leave_out_own(config: &Config, path: &Path, tree: &mut Tree) {
    let clusters = config.settings.clusters.values().filter_map(|cluster| Some(&cluster.directory.as_ref()?.path));
    let own = [&config.file, &config.state_dir, &config.reports_dir].into_iter().chain(clusters);
    let own = own.chain(&config.settings.cluster_folders);
    let root = path.canonicalize().ok();
    let below = |own: &PathBuf| own.canonicalize().ok()?.strip_prefix(root.as_ref()?).ok().map(Path::to_path_buf);
    let own: Vec<PathBuf> = own.filter_map(below).filter(|own| !own.as_os_str().is_empty()).collect();
    if !own.is_empty() {
        *tree = tree.only(|file, _| !own.iter().any(|own| Path::new(file).starts_with(own)));
    }
}

/// Returns one tree of several, their files named as on the command line.
pub(super) fn joined(parts: Vec<(String, Tree)>) -> Tree {
    let mut tree = Tree::default();
    for (folder, part) in parts {
        tree.absorb(&folder, part);
    }
    tree
}

/// Returns the exit code of specs with problems.
pub(super) fn exit_code<'a>(problems: impl IntoIterator<Item = &'a Problem>) -> u8 {
    let is_broken = problems.into_iter().any(|problem| problem.scope != Scope::Warning);
    if is_broken { EXIT_FAILED } else { 0 }
}
