//! `gatewright explain`.

use std::path::PathBuf;
use std::sync::Arc;

use gatewright_engine::check::suggest;
use gatewright_engine::explain::{self, ConfigFile, Inputs, Unexplained};
use gatewright_engine::object::{Object, ObjectId};
use gatewright_engine::pack::Packs;
use gatewright_engine::problem::counted;
use gatewright_engine::spec::GATEWAY_API;
use gatewright_engine::text::count;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{Options, Rendering, Unit};

use super::format::Format;
use super::named::Named;
use super::render::{Specs, packs};
use super::session::Session;
use super::{Context, EXIT_FAILED, Failure, check_names, complain_line, print};
use crate::config::did_you_mean;
use crate::desired::rendering::{Reading, facts_of};

/// The most Gateways that are listed for somebody who named an object that is not there.
const MOST_GATEWAYS: usize = 10;

/// Show where every field of a rendered object comes from: file, line and layer, and what lower layers had said.
///
/// Of a Gateway, or another spec, it explains the merged parameters; where a spec is rendered itself, as a pool is, they
/// go by their own kind: EndpointPickerParameters/infra/pool. Needs no cluster; as with `render`, settings of packs count if
/// --config names a file.
///
/// Exit codes: 0 explained, 1 the Gateway cannot be rendered, 64 usage, or there is no such object or field.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The object, such as Deployment/infra/edge or Gateway/infra/edge; without a namespace, default is meant.
    #[arg(value_name = "KIND/NAMESPACE/NAME")]
    object: Named,
    /// Only this field and those below it, such as `spec.template.spec.containers[kgateway-proxy].image`; of a
    /// Gateway a parameter, such as `kube.deployment`. Keys of lists may be left out.
    #[arg(value_name = "FIELD", default_value = "", hide_default_value = true)]
    field: String,
    /// A file or folder with specs; may be given several times. The current folder if absent.
    #[arg(long = "path", short = 'f', value_name = "PATH", conflicts_with = "sync")]
    paths: Vec<PathBuf>,
    /// The source of this sync of the config file, with all that the sync says about what it renders.
    #[arg(long, value_name = "NAME")]
    sync: Option<String>,
    /// For this cluster of the config file; otherwise only overlays for all clusters are in force.
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// The output format.
    #[arg(long = "output", short = 'o', visible_alias = "format", value_name = "FORMAT", default_value = "text")]
    format: Format,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let (Specs { config, packs, source, .. }, options) = &specs_of(context, args)?;
    let rendering = source.render(packs, options);
    let (unit, object) = find(&rendering, packs, &args.object)?;
    let config = config.as_ref().map(|config| ConfigFile {
        file: Arc::from(config.file.to_string_lossy()),
        root: config.root(),
        sync: args.sync.as_deref(),
    });
    let inputs = Inputs { source, packs, options, config };
    let explained = match object {
        Some(object) => explain::object(&inputs, unit, object, &args.field),
        None => explain::parameters(&inputs, unit, &args.field),
    };
    let explanation = explained.map_err(|why| failure(why, object.unwrap_or(unit), &args.field))?;
    match args.format.data() {
        Some(data) => data.print(&explanation),
        None => print(&explanation.to_string()),
    }
    Ok(0)
}

/// Reads the specs, and what is said about them.
fn specs_of(context: &Context, args: &Args) -> Result<(Specs, Options), Failure> {
    if let Some(sync) = &args.sync {
        return specs_of_sync(context, sync, args.cluster.as_deref());
    }
    let here = [PathBuf::from(".")];
    let paths = if args.paths.is_empty() { &here[..] } else { &args.paths };
    let specs = Specs::load(context, paths, None, args.cluster.is_some())?;
    let cluster = args.cluster.as_deref().map(|name| specs.cluster(name)).transpose()?;
    Ok((specs, Options { cluster, ..Options::default() }))
}

fn specs_of_sync(context: &Context, sync: &str, cluster: Option<&str>) -> Result<(Specs, Options), Failure> {
    let session = Session::open(context)?;
    let config = &session.config;
    check_names("sync", [sync], &config.settings.syncs)?;
    check_names("cluster", cluster, &config.settings.clusters)?;
    let settings = &config.settings.syncs[sync];
    let cluster = match cluster {
        None => None,
        Some(name) => {
            let found = facts_of(config, settings).into_iter().find(|cluster| cluster.name == name);
            Some(found.ok_or_else(|| Failure::usage(format!("sync {sync:?} does not select cluster {name:?}")))?)
        }
    };
    let packs = packs(context, Some(config))?;
    let reading = Reading::new(&*session.source(&settings.source)?, settings, &packs);
    let (source, options) = (reading.source().clone(), reading.options(cluster.as_ref()));
    Ok((Specs { config: Some(config.clone()), packs, source, tree: Tree::default() }, options))
}

/// Finds a spec, or an object and its spec.
fn find<'a>(
    rendering: &'a Rendering,
    packs: &Packs,
    wanted: &Named,
) -> Result<(&'a ObjectId, Option<&'a ObjectId>), Failure> {
    let unclaimed = rendering.unclaimed.iter().map(|(id, _)| id).filter(|id| packs.is_spec(&id.group, &id.kind));
    // A spec that is among its own objects, as a pool is, has fields to explain.
    let has_fields = |unit: &&Unit| !rendered(unit).any(|object| *object == unit.id);
    let units = specs(rendering, packs).filter(has_fields).map(|unit| &unit.id);
    let all = units.chain(&rendering.broken).chain(&rendering.self_managed).chain(unclaimed).map(|id| (id, None));
    let objects = specs(rendering, packs).flat_map(|unit| rendered(unit).map(|object| (&unit.id, Some(object))));
    let all: Vec<_> = all.chain(objects).collect();
    let id = |(unit, object): &(&'a ObjectId, Option<&'a ObjectId>)| object.unwrap_or(*unit);
    if let Some(found) = all.iter().find(|candidate| wanted.is(id(candidate), packs.table())) {
        return Ok(*found);
    }
    if let Some(unit) = specs(rendering, packs).find(|unit| is_governed(&unit.id, packs, wanted)) {
        return Ok((&unit.id, None));
    }
    if let Some(unit) = rendering.units.iter().find(|unit| wanted.is(&unit.id, packs.table())) {
        return Err(Failure::usage(format!("{} is applied as it stands at {}", unit.id, unit.place)));
    }
    let written = wanted.path();
    let paths: Vec<String> = all.iter().map(|candidate| id(candidate).path()).collect();
    let elsewhere = all.iter().map(id).find(|id| wanted.is_alike(id, packs.table())).map(ObjectId::path);
    let near = elsewhere.or_else(|| suggest(&written, paths.iter().map(String::as_str)).map(str::to_owned));
    let hint = near.map(|near| format!("did you mean {near:?}?")).into_iter().chain(listed(rendering, packs));
    let failure = Failure::usage(format!("{written:?} is not rendered from these specs"));
    Err(failure.hint(hint.collect::<Vec<_>>().join("\n  ")))
}

/// Tells whether somebody means the parameters of a spec, by their kind and its name.
fn is_governed(spec: &ObjectId, packs: &Packs, wanted: &Named) -> bool {
    let Some(pack) = packs.claiming(&spec.group, &spec.kind) else { return false };
    let kind = &pack.own.kind;
    wanted.is(&ObjectId::new(&kind.group, &kind.kind, &spec.namespace, &spec.name), packs.table())
}

/// Returns the specs that are rendered; other units are documents that are applied as they are.
fn specs<'a>(rendering: &'a Rendering, packs: &Packs) -> impl Iterator<Item = &'a Unit> {
    rendering.units.iter().filter(|unit| packs.is_spec(&unit.id.group, &unit.id.kind))
}

/// Returns the objects that are rendered for a unit; specs that are applied are as they were written.
fn rendered(unit: &Unit) -> impl Iterator<Item = &ObjectId> {
    unit.generated.iter().map(|generated| &generated.object).chain(&unit.objects).map(Object::id)
}

/// Lists what can be explained, and what may be why something cannot.
fn listed(rendering: &Rendering, packs: &Packs) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for unit in specs(rendering, packs).take(MOST_GATEWAYS) {
        let objects: Vec<String> = rendered(unit).map(ObjectId::path).collect();
        lines.push(format!("{} becomes {}", unit.id.path(), objects.join(", ")));
    }
    let more = specs(rendering, packs).skip(MOST_GATEWAYS).count();
    if more > 0 {
        let what = if specs(rendering, packs).all(|unit| unit.id.is_a(GATEWAY_API, "Gateway")) {
            "more Gateway"
        } else {
            "more spec"
        };
        lines.push(format!("and there are {}", count(more, what)));
    }
    if lines.is_empty() {
        lines.push("there is no Gateway or other spec that is rendered".to_owned());
    }
    if !rendering.problems.is_empty() {
        let problems = counted(&rendering.problems);
        lines.push(format!("the specs have {problems}: `gatewright check` says which"));
    }
    lines
}

fn failure(why: Unexplained, id: &ObjectId, field: &str) -> Failure {
    match why {
        Unexplained::Absent => Failure::usage(format!("{id} is not rendered from these specs")),
        Unexplained::NotOurs(controller) => {
            Failure::usage(format!("no pack renders {id}, its class is of controller {controller:?}"))
        }
        Unexplained::Broken(problems) => {
            for problem in problems {
                complain_line(&problem.to_string());
            }
            Failure { code: EXIT_FAILED, message: format!("{id} cannot be rendered"), hint: None }
        }
        Unexplained::NoField { near, known } => {
            let hint = match near {
                Some(near) => format!("did you mean {near:?}?"),
                None => did_you_mean(field, known.iter().map(String::as_str)),
            };
            Failure::usage(format!("{id} has no field {field:?}")).hint(hint)
        }
    }
}
