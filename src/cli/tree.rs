//! `gatewright tree`.

mod look;

use std::fmt::Write as _;

use gatewright_engine::kinds;
use gatewright_engine::object::ObjectId;
use gatewright_engine::relations::{Branch, branches};
use gatewright_engine::unit::Unit;
use serde_json::{Value, json};

use super::choice::{Choice, Part};
use super::format::Format;
use super::inventory::failed;
use super::named::Named;
use super::session::{Prepared, Selection, Session};
use super::watch::Watch;
use super::{Context, Failure, complain, worst};
use crate::basics::sanitize;
use crate::cluster::Cluster;
use crate::desired::capabilities;
use crate::desired::rendering::Want;
use crate::reconcile::model::Order;
use look::{Node, look};

/// Show what becomes of specs, and how it is: each object behind what leads to it, down to the pods and their images.
///
/// It reads the source and the clusters, with --watch again and again, and changes nothing. What an operator has made of a request is shown behind it.
///
/// Exit codes: 0 shown, 1 failed, 4 a cluster was unreachable, 64 usage or configuration.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The sync; all of them if absent.
    #[arg(value_name = "SYNC")]
    sync: Option<String>,
    #[command(flatten)]
    clusters: Choice,
    /// Only this spec, such as InferencePool/models/llama; may be given several times.
    #[arg(long, value_name = "UNIT")]
    only: Vec<Named>,
    /// The output format.
    #[arg(long = "output", short = 'o', visible_alias = "format", value_name = "FORMAT", default_value = "text")]
    format: Format,
    #[command(flatten)]
    watch: Watch,
}

/// The findings about one spec on one cluster.
struct Found {
    sync: String,
    cluster: String,
    spec: ObjectId,
    nodes: Vec<Node>,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let session = Session::open(context)?;
    let installation = session.state.installation()?.unwrap_or_default();
    args.watch.of_clusters((context, &session), || shown(&session, args, &installation))
}

/// Looks, and returns what there is to be seen with the exit code.
fn shown(session: &Session<'_>, args: &Args, installation: &str) -> Result<(String, u8), Failure> {
    let part = Part { only: args.only.clone(), ..Part::of(args.clusters.clone()) };
    let ready = session.prepare(&Selection { sync: args.sync.clone(), part }, installation)?;
    let (mut codes, mut found, mut failures) = (ready.codes, Vec::new(), String::new());
    for Prepared { order, wanted, .. } in &ready.rounds {
        for (name, cluster) in &order.clusters {
            let Some(want) = wanted.get(name).cloned() else { continue };
            match session.block_on(on((name, cluster.as_ref()), want, order)) {
                Ok(specs) => found.extend(specs.into_iter().map(|(spec, nodes)| Found {
                    sync: order.sync.clone(),
                    cluster: name.clone(),
                    spec,
                    nodes,
                })),
                // Whoever watches a page is told on it, and not again and again beside it.
                Err(failure) if args.watch.goes_on() && args.format == Format::Text => {
                    failures += &failure.text();
                    codes.push(failure.code);
                }
                Err(failure) => codes.push(failure.tell()),
            }
        }
    }
    let text = match args.format.data() {
        Some(data) => {
            let specs: Vec<Value> = found.iter().map(|found| found.json(session.kinds())).collect();
            data.text(&json!({"schema": "gatewright.dev/tree/v1alpha1", "specs": specs}))
        }
        None => text(&found, session.kinds()) + &sanitize::lines(&failures),
    };
    if found.is_empty() && codes.is_empty() && !args.watch.goes_on() {
        complain("gatewright: no source asks for anything; `gatewright inventory show` says what is owned\n");
    }
    Ok((text, worst(codes)))
}

/// Finds the specs that are wanted on a cluster, or some of them, with their objects there.
async fn on(
    (name, cluster): (&str, &dyn Cluster),
    mut want: Want,
    order: &Order,
) -> Result<Vec<(ObjectId, Vec<Node>)>, Failure> {
    let fail = |error| failed(name, &error);
    capabilities::complete([&mut want], cluster).await.map_err(fail)?;
    let rendering = want.rendering().await.map_err(|error| Failure::of(&error).hint(error.hint()))?;
    let is_chosen = |unit: &&Unit| order.only.as_ref().is_none_or(|only| only.contains(&unit.id));
    look(cluster, rendering.units.iter().filter(is_chosen), &order.kinds).await.map_err(fail)
}

fn text(found: &[Found], kinds: &kinds::Table) -> String {
    let (mut out, mut place) = (String::new(), (String::new(), String::new()));
    for one in found {
        let here = (one.sync.clone(), one.cluster.clone());
        if here != place {
            // Writing to a string does not fail.
            let _ = writeln!(out, "sync {} on cluster {}", one.sync, one.cluster);
            place = here;
        }
        let _ = writeln!(out, "{}", sanitize::line(&one.spec.to_string()));
        let bodies: Vec<&Value> = one.nodes.iter().map(|node| &node.body).collect();
        draw(&mut out, &one.nodes, &branches(&bodies, kinds), "");
    }
    out
}

/// Draws branches, each behind what leads to it.
fn draw(out: &mut String, nodes: &[Node], branches: &[Branch], indent: &str) {
    for (number, branch) in branches.iter().enumerate() {
        let node = &nodes[branch.index];
        let is_last = number + 1 == branches.len();
        let (corner, bar) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        let below = format!("{indent}{bar}");
        let _ = writeln!(out, "{indent}{corner}{}", sanitize::line(&node.line()));
        let (lines, has_more) = (node.parts.len() + node.pods.len(), !branch.below.is_empty());
        for (index, line) in node.parts.iter().chain(&node.pods).enumerate() {
            let corner = if index + 1 == lines && !has_more { "└─ " } else { "├─ " };
            let _ = writeln!(out, "{below}{corner}{}", sanitize::line(line));
        }
        draw(out, nodes, &branch.below, &below);
    }
}

impl Found {
    fn json(&self, kinds: &kinds::Table) -> Value {
        let bodies: Vec<&Value> = self.nodes.iter().map(|node| &node.body).collect();
        json!({
            "sync": self.sync,
            "cluster": self.cluster,
            "spec": self.spec.path(),
            "objects": branches(&bodies, kinds).iter().map(|branch| self.branch(branch)).collect::<Vec<_>>(),
        })
    }

    fn branch(&self, branch: &Branch) -> Value {
        let node = &self.nodes[branch.index];
        let below: Vec<Value> = branch.below.iter().map(|branch| self.branch(branch)).collect();
        let (object, parts) = (node.id.path(), &node.parts);
        let mut branch =
            json!({"object": object, "state": node.state, "images": node.images, "pods": node.pods, "below": below});
        if !parts.is_empty() {
            branch["parts"] = json!(parts);
        }
        branch
    }
}
