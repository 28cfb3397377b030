//! `gatewright orphans`.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::text::count;
use serde_json::json;

use super::choice::Choice;
use super::elsewhere::Elsewhere;
use super::format::{ListFormat, names};
use super::inventory::failed;
use super::session::{Session, is_chosen};
use super::table::table;
use super::view::Extent;
use super::{Context, EXIT_FAILED, Failure, print, worst};
use crate::cluster::Cluster;
use crate::inventory::maintenance::orphans::{Abandoned, Orphan, Orphans, find};
use crate::reconcile::aliases;
use crate::report::brief::{Line, brief};

/// List what bears the marks of this installation and stands in no inventory of its syncs, and inventories of syncs that
/// are not configured. Changes nothing.
///
/// It looks among the kinds that stand in inventories and those that packs render. What a sync should own comes back by
/// `inventory repair SYNC --cluster NAME`, what nobody wants goes by `destroy SYNC --cluster NAME`.
/// A cluster that is gone from the config file takes its --kubeconfig, here and there.
///
/// Exit codes: 0 whatever there is, 1 failed, 4 a cluster was unreachable, 64 usage or configuration.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    clusters: Choice,
    #[command(flatten)]
    elsewhere: Elsewhere,
    /// One line for clusters that are alike, and one that counts them.
    #[arg(long)]
    summary: bool,
    /// The output format.
    #[arg(long = "output", short = 'o', visible_alias = "format", value_name = "FORMAT", default_value = "text")]
    format: ListFormat,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let extent = Extent { summary: args.summary, verbose: false };
    extent.check(args.format == ListFormat::Text)?;
    let session = args.elsewhere.open(context, &args.clusters.named)?;
    let config = &session.config;
    let chosen = args.clusters.names(&config.settings.clusters, |_| true)?;
    let installation = session.state.installation()?.unwrap_or_default();
    let (mut codes, mut all) = (Vec::new(), BTreeMap::new());
    for name in config.settings.clusters.keys().filter(|name| is_chosen(&chosen, name)) {
        let syncs = config.settings.syncs.iter();
        let selected = syncs.filter(|(_, sync)| config.clusters_of(sync).contains_key(name.as_str()));
        let is_gone = args.elsewhere.is_said();
        let configured: BTreeSet<&str> = selected.filter(|_| !is_gone).map(|(sync, _)| sync.as_str()).collect();
        let cluster = session.cluster(name)?;
        if is_gone {
            check_identity(&session, name, cluster.as_ref())?;
        }
        match session.block_on(find(cluster.as_ref(), &installation, &configured, session.kinds())) {
            Ok(orphans) => drop(all.insert(name.clone(), orphans)),
            Err(error) => codes.push(failed(name, &error).tell()),
        }
    }
    match args.format.data() {
        Some(data) => data.print(&json!({"schema": "gatewright.dev/orphans/v1alpha1", "clusters": all})),
        None if args.format == ListFormat::Name => {
            print(&names(all.values().flat_map(|orphans| &orphans.objects).map(|orphan| orphan.id.path())));
        }
        None => print(&told(&all, args.summary)),
    }
    Ok(worst(codes))
}

/// Makes sure that a kubeconfig leads to the cluster that this host has worked on by a name: with those of another one all
/// that is owned there would look like left behind.
fn check_identity(session: &Session<'_>, name: &str, cluster: &dyn Cluster) -> Result<(), Failure> {
    let Some(before) = aliases::identity(&session.state, name) else { return Ok(()) };
    let now = session.block_on(cluster.identity()).map_err(|error| failed(name, &error))?;
    if now == before {
        return Ok(());
    }
    let message = format!("the kubeconfig leads to cluster {now}, and what this host has called {name:?} is {before}");
    Err(Failure { code: EXIT_FAILED, message, hint: Some("name the kubeconfig of that one".to_owned()) })
}

/// Writes what there is: clusters with nothing are one line, and in a summary all that have as much.
fn told(all: &BTreeMap<String, Orphans>, is_summary: bool) -> String {
    let (clean, others): (BTreeMap<&String, &Orphans>, BTreeMap<_, _>) =
        all.iter().partition(|(_, orphans)| orphans.is_empty());
    let short =
        clean.iter().chain(others.iter().filter(|_| is_summary)).map(|(cluster, orphans)| line(cluster, orphans));
    let totals = format!("{}: {}", count(all.len(), "cluster"), numbers(all.values()));
    let lines = brief(&short.collect::<Vec<_>>(), false).into_iter().chain(is_summary.then_some(totals));
    let rest = others.iter().filter(|_| !is_summary).map(|(cluster, orphans)| text(cluster, orphans));
    lines.map(|line| line + "\n").chain(rest).collect()
}

fn line<'a>(cluster: &'a str, orphans: &Orphans) -> Line<'a> {
    let blind = if orphans.blind.is_empty() { "" } else { "; not all was looked at" };
    let words = format!("{}{blind}", numbers([orphans].into_iter()));
    Line { cluster, rank: u8::from(!orphans.is_empty()), words }
}

/// Counts what there is: `2 objects and 1 inventory`.
fn numbers<'a>(all: impl Iterator<Item = &'a Orphans> + Clone) -> String {
    let objects = all.clone().map(|orphans| orphans.objects.len()).sum();
    let inventories = count(all.map(|orphans| orphans.inventories.len()).sum(), "inventory").replace("ys", "ies");
    format!("{} and {inventories}", count(objects, "object"))
}

fn text(cluster: &str, orphans: &Orphans) -> String {
    let mut out = vec![format!("cluster {cluster}: {}\n", numbers([orphans].into_iter()))];
    for message in &orphans.blind {
        out.push(format!("  not looked at: {message}\n"));
    }
    let object = |it: &Orphan| [it.id.to_string(), it.uid.clone(), it.sync.clone()];
    let objects: Vec<[String; 3]> = orphans.objects.iter().map(object).collect();
    if !objects.is_empty() {
        out.push(table(["OBJECT", "UID", "SYNC"], &objects));
    }
    let inventory = |it: &Abandoned| {
        let of = if it.is_ours { "this one".to_owned() } else { it.installation.clone() };
        [it.sync.clone(), it.objects.to_string(), of]
    };
    let inventories: Vec<[String; 3]> = orphans.inventories.iter().map(inventory).collect();
    if !inventories.is_empty() {
        out.push(table(["INVENTORY OF SYNC", "OBJECTS", "INSTALLATION"], &inventories));
    }
    out.concat()
}
