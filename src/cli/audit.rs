//! `gatewright audit`.

use std::collections::BTreeMap;

use gatewright_engine::text::count;
use serde_json::json;

use super::format::Format;
use super::{Context, Failure, complain, print};
use crate::basics::sanitize;
use crate::history::audit_log::{self, Entry, Event, OfCluster, Via};

/// The version of the JSON form.
const SCHEMA: &str = "gatewright.dev/audit/v1alpha1";

/// List what was decided and changed, and by whom, the newest first; or verify that nobody has changed the list.
///
/// It is the file audit.jsonl in the state directory of this host. A user is named as the environment of their command
/// says, which is no proof.
///
/// Exit codes: 0 listed, 1 the state cannot be read, 64 usage or configuration.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Only what is about this sync.
    #[arg(value_name = "SYNC")]
    sync: Option<String>,
    /// The most entries that are listed.
    #[arg(long, short = 'n', value_name = "NUMBER", default_value_t = 20)]
    limit: usize,
    /// The output format.
    #[arg(long = "output", short = 'o', visible_alias = "format", value_name = "FORMAT", default_value = "text")]
    format: Format,
}

/// Something else than listing.
#[derive(Debug, clap::Subcommand)]
enum Action {
    Verify(Verify),
}

/// Verify that no line was changed, taken out or put in between.
///
/// Each line holds the digest of the one before. Anybody who can write in the state directory can replace all of it: keep
/// the digest that this prints elsewhere, or take one from the log of the daemon, and name it with --digest. Then that
/// line must still be there.
///
/// Exit codes: 0 it is as it was written, 1 it is not, or cannot be read, 64 usage or configuration.
#[derive(Debug, clap::Args)]
struct Verify {
    /// The digest of a line, from an earlier time or from the log of the daemon.
    #[arg(long, value_name = "SHA256")]
    digest: Option<String>,
    /// The output format.
    #[arg(long = "output", short = 'o', visible_alias = "format", value_name = "FORMAT", default_value = "text")]
    format: Format,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let config = context.load_with_state()?;
    let state = config.state();
    if let Some(Action::Verify(args)) = &args.action {
        let verified = audit_log::verify(&state, args.digest.as_deref())?.map_err(|broken| Failure {
            hint: Some(
                "compare it with a copy, and with the log of the daemon, which has the digest of each line".to_owned(),
            ),
            ..Failure::of(&broken)
        })?;
        match args.format.data() {
            Some(data) => data.print(&verified),
            None => print(&format!(
                "{} as written, {} cut off by a crash; the last line has the digest\n{}\n",
                count(usize::try_from(verified.entries).unwrap_or(usize::MAX), "entry").replace("ys", "ies"),
                verified.cut_off,
                verified.digest
            )),
        }
        return Ok(0);
    }
    let mut entries = audit_log::read(&state)?;
    entries.retain(|entry| args.sync.is_none() || entry.event.sync() == args.sync.as_deref());
    entries.reverse();
    entries.truncate(args.limit);
    match args.format.data() {
        Some(data) => data.print(&json!({"schema": SCHEMA, "entries": entries})),
        None if entries.is_empty() => complain("gatewright: nothing was decided or changed yet\n"),
        None => print(&entries.iter().map(line).collect::<String>()),
    }
    Ok(0)
}

fn line(entry: &Entry) -> String {
    let who = match (&entry.by.via, &entry.by.user) {
        (Via::Daemon, _) => "daemon",
        (Via::Command | Via::Dashboard, Some(user)) => user,
        (Via::Command | Via::Dashboard, None) => "somebody",
    };
    sanitize::row(&format!("{}  {who}  {}", entry.time.strftime("%F %T UTC"), words(&entry.event)))
}

fn words(event: &Event) -> String {
    let because = |reason: &Option<String>| reason.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
    match event {
        Event::Round { sync, run, revision, cause, clusters } => {
            let cause = cause.as_ref().map(|cause| format!(" ({cause})")).unwrap_or_default();
            format!("round {run} of sync {sync} at {revision}{cause} {}", changes(clusters))
        }
        Event::Approved { sync, cluster, guard, token, steps, until, reason } => {
            let (steps, until) = (count(*steps, "step"), until.strftime("%F %H:%M UTC"));
            let reason = because(reason);
            format!(
                "approved {token} until {until}: {steps} of sync {sync} on cluster {cluster}, guard {guard}{reason}"
            )
        }
        Event::Suspended { sync, reason, until } => {
            let until = until.map(|until| format!(" until {}", until.strftime("%F %H:%M UTC"))).unwrap_or_default();
            format!("suspended sync {sync}{until}: {reason}")
        }
        Event::Resumed { sync } => format!("resumed sync {sync}"),
        Event::RolloutsPaused { sync, reason } => format!("paused rollouts of sync {sync}: {reason}"),
        Event::RolloutsResumed { sync } => format!("resumed rollouts of sync {sync}"),
        Event::InventoryRepaired { sync, cluster } => {
            format!("repaired the inventory of sync {sync} on cluster {cluster}")
        }
        Event::InventoryClaimed { sync, cluster, from } => {
            format!("claimed what installation {from} owned of sync {sync} on cluster {cluster}")
        }
        Event::ClusterForgotten { cluster } => format!("forgot cluster {cluster}"),
    }
}

fn changes(clusters: &BTreeMap<String, OfCluster>) -> String {
    let of_cluster = |(name, cluster): (&String, &OfCluster)| {
        let changes = cluster.changes.iter().map(|(action, number)| format!("{action} {number}"));
        let changes = changes.collect::<Vec<_>>().join(", ");
        let approved = match cluster.approved.as_slice() {
            [] => String::new(),
            tokens => format!(", approved by {}", tokens.join(", ")),
        };
        format!("on cluster {name}: {changes}{approved}")
    };
    clusters.iter().map(of_cluster).collect::<Vec<_>>().join("; ")
}
