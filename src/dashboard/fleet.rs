//! The matrix: clusters by syncs, those first of which there is most to be said, a page at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::board::Knowledge;
use super::cell::{Cell, Status, cut};
use super::target::MOST_CHARACTERS;
use crate::config::settings::Mode;
use crate::state::suspension::Suspension;

/// The version of the form.
const SCHEMA: &str = "gatewright.dev/fleet/v1alpha1";

/// Rows of a page, unless it is asked for another number.
const ROWS: usize = 50;

/// The most rows of a page.
const MOST_ROWS: usize = 200;

/// The most cells of a page, but for those of its first row.
const MOST_CELLS: usize = 2_000;

/// The most revisions of a sync that are named.
const MOST_REVISIONS: usize = 3;

/// The part of the matrix that somebody asks for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    /// A part of the name of clusters, or of one of their labels, as `key=value`.
    q: String,
    /// Only clusters that have this.
    status: Option<Status>,
    /// Only this sync.
    sync: Option<String>,
    /// The number of rows before.
    from: usize,
    /// The number of rows.
    limit: Option<usize>,
    order: Order,
}

/// The order of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Order {
    /// The worst first.
    #[default]
    Worst,
    /// By name.
    Name,
}

/// A page of the matrix, and sums over all of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Fleet<'a> {
    schema: &'static str,
    version: u64,
    /// All syncs, by name.
    syncs: Vec<Sync<'a>>,
    /// The number of clusters that there are.
    clusters: usize,
    /// The number of clusters that meet the question.
    matching: usize,
    /// The number of them before this page.
    from: usize,
    rows: Vec<Row<'a>>,
    /// The number of rows before the next page; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
}

/// A sync on all its clusters.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sync<'a> {
    name: &'a str,
    source: &'a str,
    mode: Mode,
    clusters: usize,
    /// The number of clusters of each status.
    statuses: BTreeMap<Status, usize>,
    /// The revisions on most clusters, with their number.
    revisions: Vec<(&'a str, usize)>,
    /// The number of holds that a person can lift.
    waiting: usize,
    /// The end of its last round.
    #[serde(skip_serializing_if = "Option::is_none")]
    finished: Option<Timestamp>,
    /// The reason why it has no rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    suspended: Option<String>,
    /// Since when its source cannot be read, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
}

#[derive(Serialize)]
struct Row<'a> {
    cluster: &'a str,
    labels: &'a BTreeMap<String, String>,
    cells: Vec<&'a Cell>,
}

/// Answers a question about the matrix.
pub(super) fn fleet(known: &Arc<Knowledge>, asked: &Asked) -> impl Serialize + use<> {
    let known = Arc::clone(known);
    serde_json::to_value(of(&known, asked)).unwrap_or_default()
}

fn of<'a>(known: &'a Knowledge, asked: &Asked) -> Fleet<'a> {
    let mut rows: Vec<Row<'a>> =
        known.cells.iter().filter_map(|(name, cells)| row(known, (name, cells), asked)).collect();
    if asked.order == Order::Worst {
        rows.sort_by_cached_key(|row| row.cells.iter().map(|cell| cell.status).min().unwrap_or(Status::Ok));
    }
    let (matching, from) = (rows.len(), asked.from.min(rows.len()));
    let mut cells = 0;
    let fits = |row: &Row<'_>| {
        cells += row.cells.len();
        cells <= MOST_CELLS || cells == row.cells.len()
    };
    let limit = asked.limit.unwrap_or(ROWS).clamp(1, MOST_ROWS);
    let rows: Vec<Row<'a>> = rows.into_iter().skip(from).take(limit).take_while(fits).collect();
    let next = Some(from + rows.len()).filter(|next| *next < matching);
    let syncs = known.config.settings.syncs.keys().map(|name| sync(known, name)).collect();
    Fleet { schema: SCHEMA, version: known.version, syncs, clusters: known.cells.len(), matching, from, rows, next }
}

/// Returns the row of a cluster, if it meets the question.
fn row<'a>(
    known: &'a Knowledge,
    (name, cells): (&'a String, &'a BTreeMap<String, Arc<Cell>>),
    asked: &Asked,
) -> Option<Row<'a>> {
    let cluster = known.config.settings.clusters.get(name)?;
    let is_labeled = |(key, value): (&String, &String)| format!("{key}={value}").contains(&asked.q);
    if !asked.q.is_empty() && !name.contains(&asked.q) && !cluster.labels.iter().any(is_labeled) {
        return None;
    }
    let is_meant = |cell: &&Cell| asked.sync.as_ref().is_none_or(|sync| cell.sync == *sync);
    let cells: Vec<&Cell> = cells.values().map(AsRef::as_ref).filter(is_meant).collect();
    let has_it = asked.status.is_none_or(|status| cells.iter().any(|cell| cell.status == status));
    let is_selected = asked.sync.is_none() || !cells.is_empty();
    (has_it && is_selected).then_some(Row { cluster: name, labels: &cluster.labels, cells })
}

fn sync<'a>(known: &'a Knowledge, name: &'a str) -> Sync<'a> {
    let settings = &known.config.settings.syncs[name];
    let (mut statuses, mut revisions) = (BTreeMap::new(), BTreeMap::<&str, usize>::new());
    let (mut clusters, mut waiting, mut finished) = (0, 0, None);
    for cell in known.cells.values().filter_map(|cells| cells.get(name)) {
        clusters += 1;
        waiting += cell.waiting;
        finished = finished.max(cell.finished);
        *statuses.entry(cell.status).or_default() += 1;
        cell.revision.iter().for_each(|revision| *revisions.entry(revision).or_default() += 1);
    }
    let mut revisions: Vec<(&str, usize)> = revisions.into_iter().collect();
    revisions.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    revisions.truncate(MOST_REVISIONS);
    let suspended = known.suspended.get(name).map(Suspension::words);
    let (source, mode) = (settings.source.as_str(), settings.mode);
    let trouble = known.troubles.get(source).map(|trouble| cut(&trouble.words(), MOST_CHARACTERS));
    Sync { name, source, mode, clusters, statuses, revisions, waiting, finished, suspended, trouble }
}
