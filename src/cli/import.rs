//! `gatewright import`.

mod gather;
mod repository;
mod written;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use gatewright_engine::text::{count, listed};

use super::access::Access;
use super::format::Format;
use super::plan::show;
use super::session::{Selection, Session, runtime};
use super::view::Extent;
use super::{Context, EXIT_FAILED, EXIT_UNREACHABLE, Failure, print, render, worst};
use crate::cluster::directory::Problem;
use crate::cluster::directory::file::folder_of;
use crate::cluster::kube::KubeCluster;
use crate::cluster::kubeconfig;
use crate::config::validate::{MAX_NAME, is_name};
use crate::report::{Mode, Report};
use gather::{Found, gather};
use repository::{Repository, most};

/// The most objects that are named for one reason.
const NAMED: usize = 5;

/// Write the specs of a cluster into a folder, with a config file, and compare the two.
///
/// For whoever comes from a deployer in the cluster. What packs render something from is read there: Gateways of classes
/// that a pack knows, with their classes, parameters and listener sets, inference pools, model servers, graphs of
/// Dynamo. Each becomes a file without what the server has added; what controllers have made, and what gatewright looks
/// after already, does not. No Secret is read.
///
/// The config file has one sync, with `mode: report`, and the settings of packs with which most of what is there was made.
/// At last that sync is compared with the cluster, so that the report shows what differs from what gatewright renders.
/// Nothing is ever written to the cluster.
///
/// Exit codes: 0 imported, with whatever differences; 1 failed, or something could not be read; 4 the cluster was
/// unreachable; 64 usage or configuration.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The folder to write; it is made, or is empty.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    #[command(flatten)]
    access: Access,
    /// Only what is in this namespace; may be given several times. Classes are in none.
    #[arg(long, short, value_name = "NAMESPACE")]
    namespace: Vec<String>,
    /// The name of the cluster in the config file, and of its sync.
    #[arg(long, value_name = "NAME", default_value = "local")]
    name: String,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    if !is_name(&args.name) {
        let failure = Failure::usage(format!("--name {:?} cannot be the name of a cluster", args.name));
        return Err(failure.hint(format!("write up to {MAX_NAME} lower-case letters, digits and dashes")));
    }
    if let Some(wrong) = args.namespace.iter().find(|name| name.is_empty() || folder_of(name).is_err()) {
        let failure = Failure::usage(format!("--namespace {wrong:?} cannot be the name of a namespace"));
        return Err(failure.hint("leave it out to import all of them"));
    }
    let settings = args.access.pinned(context, &args.name)?;
    let unusable = |error: std::io::Error| {
        let failure = Failure::usage(format!("cannot import into {}: {error}", args.folder.display()));
        failure.hint("name a folder that does not exist yet; nothing is overwritten")
    };
    let repository = Repository::new(&args.folder, &args.name, &settings).map_err(unusable)?;
    let found = read(context, args, settings)?;
    if found.documents.is_empty() {
        print(&found.rest());
        return Err(found.nothing(&args.namespace));
    }
    let unwritten =
        |problem: Problem| Failure::of(&problem).hint(format!("{} is incomplete; remove it", args.folder.display()));
    repository.write_specs(&found.documents).map_err(unwritten)?;
    repository.write_config(&BTreeMap::new()).map_err(unwritten)?;
    let context = with_config(context, &repository)?;
    let (mut reports, mut codes) = compare(&context)?;
    let settings = most(&reports.iter().flat_map(Report::proposals).collect::<Vec<_>>());
    if !settings.is_empty() {
        repository.write_config(&settings).map_err(unwritten)?;
        (reports, codes) = compare(&context)?;
    }
    print(&format!("{}{}\n", found.summary(&repository), found.rest()));
    for report in &reports {
        show(&context, report, Format::Text, Extent::default());
    }
    print(&next(&repository));
    codes.push(u8::from(!found.unread.is_empty()));
    Ok(worst(codes))
}

/// Reads the specs of the cluster.
fn read(context: &Context, args: &Args, settings: kubeconfig::Settings) -> Result<Found, Failure> {
    let packs = render::packs(context, None)?;
    let standard = context.environment.standard_lookup();
    let cluster = KubeCluster::new(&args.name, settings, standard, Arc::clone(&context.clock));
    runtime()?.block_on(gather(&cluster, &packs, &args.namespace)).map_err(|error| {
        let code = if error.is_unreachable() { EXIT_UNREACHABLE } else { EXIT_FAILED };
        Failure { code, ..Failure::of(&error) }.hint(error.hint.clone().unwrap_or_default())
    })
}

/// Goes on with the config file that was written, and starts the log as that says.
fn with_config(context: &Context, repository: &Repository) -> Result<Context, Failure> {
    let environment = context.environment.clone().without_state_dir();
    let context = Context { config: Some(repository.config_file()), environment, ..context.clone() };
    context.log_quietly(&context.load_file()?)?;
    Ok(context)
}

/// Compares what was written with the cluster.
fn compare(context: &Context) -> Result<(Vec<Report>, Vec<u8>), Failure> {
    let session = Session::new(context, context.load_file()?)?;
    let installation = session.state.make_installation()?;
    let ready = session.prepare(&Selection::default(), &installation)?;
    let reports: Vec<Report> = ready.rounds.iter().map(|prepared| session.round(prepared, Mode::Report)).collect();
    let codes = ready.codes.into_iter().chain(reports.iter().map(Report::exit_code)).collect();
    Ok((reports, codes))
}

impl Found {
    /// Says why there is nothing to write.
    fn nothing(&self, namespaces: &[String]) -> Failure {
        if !self.unread.is_empty() {
            let message = "nothing was imported: what is above could not be read".to_owned();
            let failure = Failure { code: EXIT_FAILED, message, hint: None };
            return failure.hint("the right to get and list these kinds is enough, such as that of ClusterRole view");
        }
        let place = match namespaces {
            [] => "there".to_owned(),
            some => format!("in {}", listed(some, NAMED)),
        };
        let failure = Failure::usage(format!("there is nothing to import: no pack renders anything that is {place}"));
        failure.hint("`gatewright import` wants Gateways of a known class, pools, services or graphs")
    }

    fn summary(&self, repository: &Repository) -> String {
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        for document in self.documents.values() {
            *kinds.entry(document["kind"].as_str().unwrap_or_default()).or_default() += 1;
        }
        let kinds: Vec<String> = kinds.into_iter().map(|(kind, number)| format!("{kind} ({number})")).collect();
        let documents = count(self.documents.len(), "document");
        format!("imported {documents} into {}: {}\n", repository.folder().display(), kinds.join(", "))
    }

    /// Says what was not imported, and what somebody else applies.
    fn rest(&self) -> String {
        let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (id, reason) in &self.left {
            reasons.entry(format!("left out, because {reason}")).or_default().push(id.to_string());
        }
        for (id, tool) in &self.applied {
            reasons.entry(format!("also applied by {tool}")).or_default().push(id.to_string());
        }
        for (what, reason) in &self.unread {
            reasons.entry(format!("could not be read: {reason}")).or_default().push(what.clone());
        }
        let line = |(reason, ids): (&String, &Vec<String>)| format!("  {reason}: {}\n", listed(ids, NAMED));
        reasons.iter().map(line).collect()
    }
}

fn next(repository: &Repository) -> String {
    let file = repository.config_file();
    let file = file.display();
    format!(
        "\nNothing on the cluster was changed. What differs above is what to look at; then\n  \
         gatewright plan --config {file}          compares again\n  \
         gatewright plan --adopt --config {file}  shows what taking over would do\n"
    )
}
