//! `gatewright clusters`.

mod ask;
mod forget;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;

use super::choice::Choice;
use super::format::{ListFormat, names};
use super::session::{Session, is_chosen};
use super::{Context, EXIT_FAILED, Failure, print, worst};
use crate::basics::duration::Period;
use crate::cluster::account::Account;
use crate::cluster::right::Right;
use crate::config::Config;
use crate::config::settings::ClusterSettings;
use crate::desired::preflight::GatewayApi;
use crate::history::journal;
use crate::reconcile::gone;
use crate::report::{self, ClusterState};
use crate::state::State;

/// The version of the JSON form.
const SCHEMA: &str = "gatewright.dev/clusters/v1alpha1";

/// List the clusters: labels, versions, whether they answer, the last rounds, and which rights are missing.
///
/// All are asked beside each other, and one that does not answer is a line like the others. Which rights a sync needs
/// follows from what its source says now, as in `rbac`; nothing is tried to find out which of them are missing. Clusters
/// that are gone from the config file, and on which something was applied, are listed until they are forgotten.
///
/// Exit codes: 0 every cluster has answered, 1 one of them refuses us or is set up wrongly, or a source cannot be read, 4 a
/// cluster was unreachable, 64 usage or configuration; of several the first of 1, 4, 0.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    clusters: Choice,
    /// Only what is known here: no cluster is asked, and no source is read.
    #[arg(long)]
    offline: bool,
    /// The time that a cluster has to answer.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    timeout: Period,
    /// The output format.
    #[arg(long = "output", short = 'o', visible_alias = "format", value_name = "FORMAT", default_value = "text")]
    format: ListFormat,
}

/// Something else than listing them.
#[derive(Debug, clap::Subcommand)]
enum Action {
    Forget(forget::Args),
}

/// One cluster.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
    labels: BTreeMap<String, String>,
    /// The account that requests are made as, where a setting says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    impersonates: Option<String>,
    state: Standing,
    /// The failure that kept it from answering.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<report::Failure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway_api: Option<GatewayApi>,
    /// Those that select it; of a cluster that is gone, those that have applied something there.
    syncs: BTreeMap<String, OfSync>,
    /// The questions that were not answered, and why.
    unknown: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    ApiServer,
    Directory,
}

/// The state of a cluster, as far as this command knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Standing {
    NotAsked,
    Reachable,
    Unreachable,
    /// It does not accept who we are, or lets us see nothing.
    Refused,
    /// Its kubeconfig, or the directory, cannot be used.
    Misconfigured,
    Failed,
    Gone,
}

/// A sync on a cluster.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct OfSync {
    /// The account as which objects are read and written, where the sync has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    impersonates: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_round: Option<LastRound>,
    /// `None` if they are not known, or not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_rights: Option<BTreeSet<Right>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LastRound {
    finished: Timestamp,
    state: ClusterState,
    revision: String,
    /// The exit code of `sync` for such a round.
    #[serde(skip)]
    code: u8,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    if let Some(Action::Forget(args)) = &args.action {
        return forget::run(context, args);
    }
    let session = if args.offline { Session::offline(context) } else { Session::open(context) }?;
    let (config, state) = (&session.config, &session.state);
    let chosen = args.clusters.names(&config.settings.clusters, |_| true)?;
    let clusters = config.settings.clusters.iter().filter(|(name, _)| is_chosen(&chosen, name));
    let mut lines: Vec<Line> = clusters.map(|(name, settings)| line(config, state, name, settings)).collect();
    let mut codes = if args.offline { Vec::new() } else { ask::all(&session, &mut lines, limit(args))? };
    codes.extend(lines.iter().map(Line::exit_code));
    if args.clusters.is_of_all() {
        lines.extend(gone::find(config, state).into_iter().map(|(name, syncs)| gone_line(state, name, syncs)));
    }
    let unselected = if args.clusters.is_of_all() { gone::unselected(config, state) } else { BTreeMap::new() };
    match args.format.data() {
        Some(data) => data.print(&json!({"schema": SCHEMA, "clusters": lines, "unselected": unselected})),
        None if args.format == ListFormat::Name => print(&names(lines.iter().map(|line| &line.name))),
        None => {
            print(&text::of(&lines, args.format == ListFormat::Wide));
            for (sync, names) in &unselected {
                print(&gone::unselected_words(config, sync, names));
            }
        }
    }
    Ok(worst(codes))
}

/// No time at all would make every cluster unreachable.
fn limit(args: &Args) -> Duration {
    args.timeout.0.max(Duration::from_millis(1))
}

fn line(config: &Config, state: &State, name: &str, settings: &ClusterSettings) -> Line {
    let syncs = config.settings.syncs.iter();
    let selecting =
        syncs.filter(|(_, sync)| sync.clusters.selects(name, &settings.labels)).map(|(sync, _)| sync.clone());
    let line = Line {
        kind: Some(if settings.directory.is_some() { Kind::Directory } else { Kind::ApiServer }),
        labels: settings.labels.clone(),
        impersonates: settings.kubeconfig.as_ref().and_then(|it| it.impersonate.as_ref()).map(Account::to_string),
        ..Line::of(state, name.to_owned(), selecting, Standing::NotAsked)
    };
    if settings.kubeconfig.is_some() { line.acting(config) } else { line }
}

fn gone_line(state: &State, name: String, syncs: BTreeSet<String>) -> Line {
    Line::of(state, name, syncs, Standing::Gone)
}

impl Line {
    fn of(state: &State, name: String, syncs: impl IntoIterator<Item = String>, standing: Standing) -> Self {
        let of_sync = |sync: String| {
            let last_round = last_round(state, &sync, &name);
            (sync, OfSync { impersonates: None, last_round, missing_rights: None })
        };
        Self {
            syncs: syncs.into_iter().map(of_sync).collect(),
            name,
            kind: None,
            labels: BTreeMap::new(),
            impersonates: None,
            state: standing,
            error: None,
            identity: None,
            version: None,
            gateway_api: None,
            unknown: BTreeMap::new(),
        }
    }

    /// Adds the accounts of its syncs; in a directory there are none.
    fn acting(mut self, config: &Config) -> Self {
        for (name, of_sync) in &mut self.syncs {
            let account = config.settings.syncs.get(name).and_then(|sync| sync.impersonate.as_ref());
            of_sync.impersonates = account.map(Account::to_string);
        }
        self
    }

    fn exit_code(&self) -> u8 {
        match self.state {
            Standing::NotAsked | Standing::Reachable | Standing::Gone => 0,
            Standing::Unreachable => 4,
            Standing::Refused | Standing::Misconfigured | Standing::Failed => EXIT_FAILED,
        }
    }
}

fn last_round(state: &State, sync: &str, cluster: &str) -> Option<LastRound> {
    let report = journal::last(state, sync, cluster)?;
    let (code, state) = (report.exit_code(), report.clusters.get(cluster)?.state);
    Some(LastRound { finished: report.finished, state, revision: report.revision, code })
}
