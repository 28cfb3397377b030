//! The history: rounds that changed something or said something new, the newest first.

use gatewright_engine::problem::counted;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::board::Knowledge;
use super::cell::cut;
use super::target::MOST_CHARACTERS;
use crate::history::journal;
use crate::report::{Mode, Report};

/// The version of the form.
const SCHEMA: &str = "gatewright.dev/rounds/v1alpha1";

/// Rounds of a page, unless it is asked for another number.
const ROUNDS: usize = 20;

/// The most rounds of a page; for each a file is read.
const MOST_ROUNDS: usize = 50;

/// The most clusters of a round that are named.
const MOST_CLUSTERS: usize = 8;

/// The part of it that somebody asks for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    /// Only rounds of this sync.
    sync: Option<String>,
    /// Only rounds on this cluster.
    cluster: Option<String>,
    /// Only rounds before the one of this name.
    before: Option<String>,
    /// The number of rounds.
    limit: Option<usize>,
}

/// A page of the history.
#[derive(Serialize)]
pub(super) struct Rounds {
    schema: &'static str,
    #[serde(rename = "rounds")]
    page: Vec<Round>,
    /// The name of the round before which the next page begins; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A round.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Round {
    /// The name of its file, without the ending.
    name: String,
    /// The name by which it can be undone; absent if it was not to change anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    sync: String,
    clusters: Vec<String>,
    /// The number of clusters beyond those.
    more: usize,
    revision: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    mode: Mode,
    started: Timestamp,
    finished: Timestamp,
    /// The changes that it made or found, in words.
    did: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    problems: Option<String>,
    /// The exit code that the same round of `sync` has.
    exit: u8,
}

/// Tells of rounds.
pub(super) fn rounds(known: &Knowledge, asked: &Asked) -> Rounds {
    let limit = asked.limit.unwrap_or(ROUNDS).clamp(1, MOST_ROUNDS);
    let (sync, cluster, before) = (asked.sync.as_deref(), asked.cluster.as_deref(), asked.before.as_deref());
    let history = journal::history_of(&known.config.reports_dir, (sync, cluster), before);
    let mut page: Vec<Round> = history.take(limit + 1).map(|(name, report)| Round::of(name, &report)).collect();
    let has_more = page.len() > limit;
    page.truncate(limit);
    let next = page.last().filter(|_| has_more).map(|round| round.name.clone());
    Rounds { schema: SCHEMA, page, next }
}

impl Round {
    fn of(name: String, report: &Report) -> Self {
        let problems = (!report.problems.is_empty()).then(|| counted(report.problems.iter().map(|it| &it.problem)));
        Self {
            name,
            run: Some(report.run.clone()).filter(|run| !run.is_empty()),
            sync: report.sync.clone(),
            clusters: report.clusters.keys().take(MOST_CLUSTERS).cloned().collect(),
            more: report.clusters.len().saturating_sub(MOST_CLUSTERS),
            revision: report.revision.clone(),
            cause: report.cause.as_ref().map(|cause| cut(cause, MOST_CHARACTERS)),
            mode: report.mode,
            started: report.started,
            finished: report.finished,
            did: report.did(),
            problems,
            exit: report.exit_code(),
        }
    }
}
