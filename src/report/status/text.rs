//! The state of a sync in words.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::text::{count, listed};
use jiff::Timestamp;

use super::{Paragraph, Reports, Said, Statement, Values, fold, statements};
use crate::basics::sanitize;
use crate::report::brief::{Line, brief, totals};
use crate::report::{ClusterState, Report};

/// The most values that are shown of what is another on each cluster, unless all are to be.
const MOST_VALUES: usize = 2;

/// Writes how a sync stands on its clusters; `is_verbose` also has every name and every value.
pub(crate) fn write(reports: &Reports, is_verbose: bool) -> String {
    let names: Vec<&str> = reports.keys().map(String::as_str).collect();
    let mut lines = Vec::new();
    for paragraph in fold(&names, reports) {
        let round = paragraph.round().map(|round| format!(": {}", round.round())).unwrap_or_default();
        lines.push(format!("  {}{round}", paragraph.clusters(&paragraph.on).heading(is_verbose)));
        let width = paragraph.statements.iter().map(|statement| statement.said.width()).max().unwrap_or_default();
        for statement in &paragraph.statements {
            lines.extend(statement.lines(&paragraph, width, is_verbose).into_iter().map(|line| format!("    {line}")));
            let indent = if statement.is_round() { "    " } else { "      " };
            let differing = statement.differing(&paragraph, is_verbose);
            lines.extend(differing.into_iter().map(|line| format!("{indent}{line}")));
        }
    }
    text(lines)
}

/// Writes how a sync stands on its clusters in one line for all that stand alike, and counts them.
pub(crate) fn summary(reports: &Reports, is_verbose: bool) -> String {
    let lines: Vec<Line<'_>> = reports.iter().map(|(name, report)| line(name, report.as_ref())).collect();
    let state = |(name, report): (&String, &Option<Report>)| {
        let cluster = report.as_ref().and_then(|report| report.clusters.get(name));
        cluster.map_or(ClusterState::Unknown, |cluster| cluster.state)
    };
    let totals = totals(reports.iter().map(state));
    text(brief(&lines, is_verbose).into_iter().chain([totals]).map(|line| format!("  {line}")))
}

fn text(lines: impl IntoIterator<Item = String>) -> String {
    lines.into_iter().map(|line| sanitize::row(&line)).collect()
}

/// Returns the line of a cluster: `done, REVISION; 1 hold; 11 units current, 1 held`.
fn line<'a>(cluster: &'a str, report: Option<&Report>) -> Line<'a> {
    let (mut rank, mut parts, mut holds) = (0, Vec::new(), 0);
    let mut units: BTreeMap<String, usize> = BTreeMap::new();
    for (said, values) in statements(cluster, report) {
        rank = rank.max(said.rank());
        match said {
            Said::Round { word, revision, .. } => {
                let since = values.since.map(|since| format!(" {since}")).unwrap_or_default();
                let message = values.message.map(|message| format!(": {message}"));
                let what = message.or(revision.map(|revision| format!(", {revision}"))).unwrap_or_default();
                parts.push(format!("{word}{since}{what}"));
            }
            Said::Problem(problem) => parts.extend(problem.split(" in the source").next().map(str::to_owned)),
            Said::Hold { .. } => holds += 1,
            Said::Unit { state, .. } => *units.entry(state).or_default() += 1,
        }
    }
    parts.extend((holds > 0).then(|| count(holds, "hold")));
    let units: Vec<String> =
        units.iter().map(|(state, number)| format!("{} {state}", count(*number, "unit"))).collect();
    parts.extend((!units.is_empty()).then(|| units.join(", ")));
    Line { cluster, rank, words: parts.join("; ") }
}

impl Statement {
    fn is_round(&self) -> bool {
        matches!(self.said, Said::Round { .. })
    }

    /// Returns a value that is the same on all clusters.
    fn same<T: Ord>(&self, value: impl Fn(&Values) -> Option<T>) -> Option<T> {
        let mut all: BTreeSet<Option<T>> = self.values.keys().map(value).collect();
        if all.len() == 1 { all.pop_first().flatten() } else { None }
    }

    /// Names the values that there are, those of the first clusters before the others.
    fn several(&self, value: impl Fn(&Values) -> Option<&String>) -> String {
        let mut all: BTreeMap<&String, usize> = BTreeMap::new();
        for (values, on) in &self.values {
            if let Some(value) = value(values) {
                let first = all.entry(value).or_insert(on[0]);
                *first = (*first).min(on[0]);
            }
        }
        let mut all: Vec<(&String, usize)> = all.into_iter().collect();
        all.sort_by_key(|(_, first)| *first);
        listed(all.into_iter().map(|(value, _)| value), MOST_VALUES)
    }

    /// Puts the last round into words: what stands behind the names of the clusters.
    fn round(&self) -> String {
        let Said::Round { word, revision, .. } = &self.said else { return String::new() };
        let times: BTreeSet<Timestamp> = self.values.keys().filter_map(|values| values.at).collect();
        let at = match (times.first(), times.last()) {
            (Some(first), Some(last)) if first == last => format!(" at {}", time(*first)),
            (Some(first), Some(last)) => format!(" between {} and {}", first.strftime("%F %T"), time(*last)),
            _ => String::new(),
        };
        // What is another on some clusters stands below.
        let since = self.same(|values| values.since.clone());
        let next = self.values.keys().filter_map(|values| values.next).min();
        let next = next.map(|next| format!("asked again at {}", next.strftime("%T UTC")));
        let known: Vec<String> = since.into_iter().chain(next).collect();
        let known = (!known.is_empty()).then(|| format!(" ({})", known.join(", ")));
        let message = self.same(|values| values.message.clone()).map(|message| format!(": {message}"));
        let revision = revision.as_ref().map(|revision| format!(", {revision}"));
        [Some(word.clone()), Some(at), known, message, revision].into_iter().flatten().collect()
    }

    /// Returns its lines, but that of a round, which is in the heading.
    fn lines(&self, paragraph: &Paragraph<'_>, width: usize, is_verbose: bool) -> Vec<String> {
        match &self.said {
            Said::Round { hint, .. } => hint.iter().cloned().collect(),
            Said::Problem(problem) => vec![problem.clone()],
            Said::Hold { lines, fleet_token } => {
                let own = self.same(|values| values.token.clone());
                let token = if paragraph.on.len() == 1 { own } else { fleet_token.clone().or(own) };
                let token = token.map(|token| format!("  gatewright approve {token}"));
                lines.iter().cloned().chain(token).collect()
            }
            Said::Unit { unit, state, ports, .. } => {
                let (name, addresses) = (unit.to_string(), self.several(|values| values.addresses.as_ref()));
                let pods = self.several(|values| values.pods.as_ref());
                let pods = if pods.is_empty() { pods } else { format!("  {pods}") };
                let message = self.same(|values| values.message.clone());
                let message = message.map(|message| format!("  {message}")).unwrap_or_default();
                let images = self.same(|values| values.images.clone()).filter(|_| is_verbose);
                let line = format!("{name:width$}  {state:9}  {addresses}  {ports}{pods}{message}");
                [line].into_iter().chain(images.map(|images| format!("  {images}"))).collect()
            }
        }
    }

    /// Returns the values that are others on one of the clusters than on another: what is wrong, or all of them.
    fn differing(&self, paragraph: &Paragraph<'_>, is_verbose: bool) -> Vec<String> {
        let is_approved_at_once = matches!(&self.said, Said::Hold { fleet_token: Some(_), .. });
        let is_told = |field: usize| {
            is_verbose || (Values::WRONG.contains(&field) && !(field == Values::TOKEN && is_approved_at_once))
        };
        let all: Vec<[Option<String>; Values::FIELDS]> = self.values.keys().map(Values::fields).collect();
        let differs = |field: &usize| all.iter().any(|values| values[*field] != all[0][*field]);
        let fields: Vec<usize> = (0..Values::FIELDS).filter(|field| is_told(*field)).filter(differs).collect();
        let mut found: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (values, on) in all.iter().zip(self.values.values()) {
            let words: Vec<&str> = fields.iter().filter_map(|field| values[*field].as_deref()).collect();
            found.entry(words.join("  ")).or_default().extend(on);
        }
        found.remove("");
        let mut found: Vec<(Vec<usize>, String)> = found.into_iter().map(|(words, on)| (on, words)).collect();
        found.sort_by_cached_key(|(on, _)| on.iter().min().copied());
        let most = if is_verbose { usize::MAX } else { MOST_VALUES };
        let line = |(mut on, words): (Vec<usize>, String)| {
            on.sort_unstable();
            format!("{}: {words}", paragraph.clusters(&on).words(is_verbose))
        };
        let more = found.len().checked_sub(most).filter(|more| *more > 0).map(|more| format!("… {more} more"));
        found.into_iter().take(most).map(line).chain(more).collect()
    }
}

impl Said {
    fn width(&self) -> usize {
        match self {
            Self::Unit { unit, .. } => unit.to_string().len(),
            Self::Round { .. } | Self::Problem(_) | Self::Hold { .. } => 0,
        }
    }
}

impl Values {
    /// The fields that say what is wrong, and what is to be done.
    const WRONG: [usize; 3] = [1, 4, Self::TOKEN];
    /// The token.
    const TOKEN: usize = 5;

    /// The number of all fields.
    const FIELDS: usize = 8;

    fn fields(&self) -> [Option<String>; Self::FIELDS] {
        let token = self.token.as_ref().map(|token| format!("gatewright approve {token}"));
        let (at, since) = (self.at.map(time), self.since.clone());
        let next = self.next.map(|next| format!("asked again at {}", time(next)));
        let [addresses, pods, message, images] =
            [&self.addresses, &self.pods, &self.message, &self.images].map(Clone::clone);
        [at, since, addresses, pods, message, token, next, images]
    }
}

fn time(time: Timestamp) -> String {
    time.strftime("%F %T UTC").to_string()
}
