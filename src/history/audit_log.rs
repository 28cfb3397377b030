//! The audit log: a line for everything that somebody has decided and that a round has changed, in the order in which it
//! happened. Each line holds the digest of the line before, so that none can be changed, taken out or put in between
//! without all that follow it being replaced.
//!
//! Anybody who can write in the state folder can do that. A digest that is kept elsewhere, as in a journal of logs, shows
//! it: [`verify`] looks for such a digest.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use gatewright_engine::text::digest;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tracing::info;

use crate::basics::sanitize;
use crate::history::interrupted;
use crate::report::outcome::Outcome;
use crate::report::{ClusterState, Mode, Report, StepReport};
use crate::state::{State, StateError};

/// The file, below the state folder.
pub(crate) const FILE: &str = "audit.jsonl";

/// The bytes at the end that are read first to find the last line.
const FIRST_LOOK: u64 = 64 * 1024;

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    /// The number of the line among those that are entries, from 1.
    pub number: u64,
    /// When it was written.
    pub time: Timestamp,
    pub by: Actor,
    #[serde(flatten)]
    pub event: Event,
    /// The SHA-256 of the line before, without its end.
    pub previous: String,
}

/// The source of an entry: a person who has decided something, or the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Actor {
    /// Whether it was a person at the command line or at the dashboard, or the daemon by itself.
    pub via: Via,
    /// The user as the environment of the command, or a proxy before the dashboard, names them, which is no proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Via {
    Command,
    Daemon,
    Dashboard,
}

/// The decision, or the round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(crate) enum Event {
    /// A round has changed something.
    Round {
        sync: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        run: String,
        revision: String,
        /// The reason why a person asked for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<String>,
        clusters: BTreeMap<String, OfCluster>,
    },
    /// A person has let go ahead what a guard held.
    Approved {
        sync: String,
        cluster: String,
        guard: String,
        token: String,
        steps: usize,
        until: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Suspended {
        sync: String,
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    Resumed {
        sync: String,
    },
    RolloutsPaused {
        sync: String,
        reason: String,
    },
    RolloutsResumed {
        sync: String,
    },
    InventoryRepaired {
        sync: String,
        cluster: String,
    },
    InventoryClaimed {
        sync: String,
        cluster: String,
        from: String,
    },
    ClusterForgotten {
        cluster: String,
    },
}

/// The outcome of a round on a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OfCluster {
    pub state: ClusterState,
    /// Objects by action.
    pub changes: BTreeMap<String, usize>,
    /// The tokens that let something go ahead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approved: Vec<String>,
}

impl Actor {
    /// Returns the daemon.
    pub(crate) const DAEMON: Self = Self { via: Via::Daemon, user: None };

    /// Returns whoever has decided something at the dashboard.
    pub(crate) fn of_dashboard(user: Option<String>) -> Self {
        Self { via: Via::Dashboard, user }
    }

    /// Returns whoever has given a command.
    pub(crate) fn of_command(user: Option<&str>) -> Self {
        Self { via: Via::Command, user: user.map(str::to_owned) }
    }
}

impl Event {
    /// Returns what a round has changed; `None` if that is nothing.
    pub(crate) fn of_round(report: &Report) -> Option<Self> {
        // Of a round that was interrupted some steps are not known to be done; a log of changes has them, too.
        let is_interrupted = report.cause.as_deref() == Some(interrupted::CAUSE);
        let all = report.clusters.iter().filter(|(_, cluster)| is_interrupted || cluster.has_changed());
        let clusters: BTreeMap<String, OfCluster> = all
            .map(|(name, cluster)| {
                let mut changes: BTreeMap<String, usize> = BTreeMap::new();
                for step in cluster.changes_in(report.mode) {
                    *changes.entry(step.done_word().to_owned()).or_default() += 1;
                }
                let is_failed = |step: &&StepReport| matches!(step.outcome, Some(Outcome::Failed(_)));
                if let (true, number @ 1..) = (is_interrupted, cluster.steps.iter().filter(is_failed).count()) {
                    changes.insert("not known".to_owned(), number);
                }
                let approved = cluster.lifted.iter().filter_map(|hold| hold.token.clone()).collect();
                (name.clone(), OfCluster { state: cluster.state, changes, approved })
            })
            .collect();
        if report.mode != Mode::Apply || clusters.is_empty() {
            return None;
        }
        let Report { sync, run, revision, cause, .. } = report.clone();
        Some(Self::Round { sync, run, revision, cause, clusters })
    }

    /// Returns the sync that it is about, if it is about one.
    pub(crate) fn sync(&self) -> Option<&str> {
        match self {
            Self::Round { sync, .. }
            | Self::Approved { sync, .. }
            | Self::Suspended { sync, .. }
            | Self::Resumed { sync }
            | Self::RolloutsPaused { sync, .. }
            | Self::RolloutsResumed { sync }
            | Self::InventoryRepaired { sync, .. }
            | Self::InventoryClaimed { sync, .. } => Some(sync),
            Self::ClusterForgotten { .. } => None,
        }
    }
}

/// The audit log is not as it was written.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Broken {
    /// A line does not follow from the line before.
    #[error(
        "line {0} does not follow from the line before: one of them was changed, or something between them is gone"
    )]
    Chain(usize),
    /// Lines are missing at the beginning.
    #[error("the first entry is number {0}: what was before is gone")]
    Beginning(u64),
    /// A digest that was kept elsewhere is that of no line.
    #[error("no line has the digest {0}: it was changed, or taken out with all that followed")]
    Digest(String),
}

/// The result for a log that is as it was written.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Verified {
    pub entries: u64,
    /// The lines that a crash has cut off.
    pub cut_off: usize,
    /// The digest of the last line.
    pub digest: String,
}

/// Adds a line at the end; when this returns it is on the disk.
///
/// A last line that a crash has cut off stays, and the next one begins behind it.
pub(crate) fn record(state: &State, now: Timestamp, by: &Actor, event: Event) -> Result<(), StateError> {
    let _lock = state.wait_to_lock("audit.lock")?;
    let (end, length) = end(state)?;
    let last = end.lines().last().unwrap_or_default();
    let number = end.lines().filter_map(parse).next_back().map_or(0, |entry| entry.number) + 1;
    let entry = Entry { number, time: now, by: by.clone(), event, previous: of_line(last) };
    // Like all that programs read, without what moves a cursor.
    let line = sanitize::json(&entry).expect("an entry is plain data");
    let separator = if end.is_empty() || end.ends_with('\n') { "" } else { "\n" };
    let text = format!("{separator}{line}\n");
    match length {
        0 => state.write(FILE, text.as_bytes())?,
        length => drop(state.append(FILE, length, text.as_bytes())?),
    }
    info!(number, digest = of_line(&line), "audit log");
    Ok(())
}

/// Returns the end of the log, with at least one entry if there is one, and the length of the whole.
fn end(state: &State) -> Result<(String, u64), StateError> {
    let mut most = FIRST_LOOK;
    loop {
        let Some((bytes, length)) = state.read_end(FILE, most)? else { return Ok((String::new(), 0)) };
        let is_whole = length <= most;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        // The first line may be the end of one.
        let text =
            if is_whole { text } else { text.split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap_or_default() };
        if is_whole || text.lines().any(|line| parse(line).is_some()) {
            return Ok((text, length));
        }
        most *= 2;
    }
}

/// Returns the entries of the log, the oldest first. What is no entry is left out.
pub(crate) fn read(state: &State) -> Result<Vec<Entry>, StateError> {
    let bytes = state.read(FILE)?.unwrap_or_default();
    Ok(String::from_utf8_lossy(&bytes).lines().filter_map(parse).collect())
}

/// Tells whether the log has what a round has done on some clusters.
pub(crate) fn has_round(state: &State, report: &Report) -> Result<bool, StateError> {
    let is_it = |entry: &Entry| match &entry.event {
        Event::Round { run, clusters, .. } => {
            *run == report.run && report.clusters.keys().all(|cluster| clusters.contains_key(cluster))
        }
        _ => false,
    };
    Ok(read(state)?.iter().any(is_it))
}

/// Tells whether the log is as it was written, and holds the line whose digest somebody has kept.
pub(crate) fn verify(state: &State, kept: Option<&str>) -> Result<Result<Verified, Broken>, StateError> {
    let bytes = state.read(FILE)?.unwrap_or_default();
    Ok(check(&String::from_utf8_lossy(&bytes), kept))
}

fn check(text: &str, kept: Option<&str>) -> Result<Verified, Broken> {
    let mut verified = Verified::default();
    let mut is_kept = kept.is_none();
    for (index, line) in text.lines().enumerate() {
        match parse(line) {
            None => verified.cut_off += 1,
            Some(entry) if index == 0 && entry.number != 1 => return Err(Broken::Beginning(entry.number)),
            Some(entry) if entry.number != verified.entries + 1 || entry.previous != verified.digest => {
                return Err(Broken::Chain(index + 1));
            }
            Some(_) => verified.entries += 1,
        }
        verified.digest = of_line(line);
        is_kept |= kept == Some(&verified.digest);
    }
    match kept {
        Some(kept) if !is_kept => Err(Broken::Digest(kept.to_owned())),
        _ => Ok(verified),
    }
}

fn parse(line: &str) -> Option<Entry> {
    serde_json::from_str(line).ok()
}

/// Returns the digest of a line; that of none is empty.
fn of_line(line: &str) -> String {
    if line.is_empty() { String::new() } else { digest(line.as_bytes()) }
}
