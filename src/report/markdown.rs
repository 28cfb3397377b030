//! The Markdown view: for a comment on a pull request, where there is only so much room.
//!
//! What others have named stands in code spans and code blocks only, so that it is neither a link, a mention nor HTML.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use gatewright_engine::text::count;
use jiff::Timestamp;

use super::action::StepAction;
use super::folded::{Differing, MOST_VALUES, Paragraph, fold};
use super::outline::{Section, Sections};
use super::shown::{Line, Shown, Values, dated, tags};
use super::text::why;
use super::trend::{Gone, Summary};
use super::warnings::Warning;
use super::{ClusterReport, ClusterState, Report, StepReport};
use crate::basics::sanitize;
use crate::report::outcome::Outcome;

/// The longest view, in bytes: GitHub takes 65,536 characters in a comment, and somebody may add a line.
pub const ROOM: usize = 60_000;

/// The bytes kept free for the words that say how much is left out.
const LAST_WORDS: usize = 200;

/// Writes reports, and leaves out of the details what would not fit.
pub fn write(reports: &[Report], room: usize) -> String {
    let mut page = Page { out: String::new(), room: room.saturating_sub(LAST_WORDS), left_out: 0 };
    page.out += "### gatewright\n\n";
    for Warning { word, place, message, held, .. } in reports.iter().flat_map(Warning::all) {
        let first = format!("- **{word}** {}: {}\n", code(&place), code(&message));
        page.add(&held.iter().fold(first, |text, line| text + "  - " + &code(line) + "\n"));
    }
    let summary = Summary::of(reports);
    if let Some(words) = summary.words() {
        page.add(&format!("\n{words}\n"));
    }
    page.out += "\n| sync | cluster | | changes | unchanged | refused | trend |\n|---|---|---|---|---:|---:|---|\n";
    for report in reports {
        fold(report).filter_map(|paragraph| row(report, &paragraph)).for_each(|row| page.add(&row));
    }
    page.add(&gone("Resolved", &summary.resolved));
    page.add(&gone("Not looked at", &summary.unseen));
    for report in reports {
        let sections = Sections::of(report.clusters.values());
        let blocks = fold(report).flat_map(|paragraph| details(report, &paragraph, &sections));
        blocks.for_each(|block| page.add(&block));
    }
    if page.left_out > 0 {
        let words = format!("\n{} left out, because there is no room for more.\n", count(page.left_out, "part"));
        page.out += &words;
    }
    page.out
}

struct Page {
    out: String,
    room: usize,
    left_out: usize,
}

impl Page {
    fn add(&mut self, part: &str) {
        if self.out.len() + part.len() <= self.room { self.out += part } else { self.left_out += 1 }
    }
}

/// The sum of a report on some clusters, in the table of all.
fn row(report: &Report, paragraph: &Paragraph<'_>) -> Option<String> {
    let cluster = paragraph.summary?;
    let changes = if cluster.error.is_some() || cluster.state == ClusterState::Suspended {
        "unknown".to_owned()
    } else {
        cluster.changes().join(", ")
    };
    let (_, refused) = cluster.not_done();
    Some(format!(
        "| {} | {} | {} | {changes} | {} | {refused} | {} |\n",
        cell(&report.sync),
        cell(&paragraph.clusters.to_string()),
        cluster.state.word(),
        cluster.unchanged(),
        cluster.trend_in_short(),
    ))
}

/// One block for each unit of which anything is to be said, and one for all documents.
fn details(report: &Report, paragraph: &Paragraph<'_>, sections: &Sections<'_>) -> Vec<String> {
    let (cluster, mut all) = (&paragraph.part, BTreeMap::<Section<'_>, String>::new());
    for step in cluster.steps.iter().filter(|step| step.is_change()) {
        let text = all.entry(sections.of_step(step)).or_default();
        *text += &changed(step, paragraph);
    }
    for refusal in cluster.told_refusals() {
        let text = all.entry(sections.of_unit(&refusal.unit)).or_default();
        let mark = mark(cluster, refusal.since);
        *text += &sanitize::line(&format!("# {}: {}{mark}", refusal.id, why(refusal)));
        text.push('\n');
    }
    let block = |(section, text): (Section<'_>, String)| {
        let title = html(&format!("{section} ({} on {})", report.sync, paragraph.clusters));
        let fence = "`".repeat(longest_run(&text).max(2) + 1);
        format!("\n<details><summary>{title}</summary>\n\n{fence}diff\n{text}{fence}\n\n</details>\n")
    };
    all.into_iter().map(block).collect()
}

/// Returns the findings that are gone, or not known any more, in a block that can be unfolded.
fn gone(title: &str, findings: &[Gone]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = findings.iter().map(|gone| format!("- {}", code(&gone.words()))).collect();
    let lines = lines.join("\n");
    format!("\n<details><summary>{title}: {}</summary>\n\n{lines}\n\n</details>\n", Gone::number(findings))
}

fn mark(cluster: &ClusterReport, since: Option<Timestamp>) -> String {
    cluster.mark(since).map(|mark| format!("  ({mark})")).unwrap_or_default()
}

/// A step, with what differs: each line begins with the sign that colors it.
fn changed(step: &StepReport, paragraph: &Paragraph<'_>) -> String {
    let cluster = &paragraph.part;
    let sign = match step.action {
        StepAction::Create | StepAction::Generate => '+',
        StepAction::Prune | StepAction::DeleteFirst => '-',
        StepAction::Update
        | StepAction::Adopt
        | StepAction::Recreate
        | StepAction::HandOver
        | StepAction::Missing
        | StepAction::Different
        | StepAction::Extra
        | StepAction::Unchanged
        | StepAction::Omit
        | StepAction::Forget => '!',
    };
    let became = match &step.outcome {
        Some(Outcome::Failed(why)) => format!("  FAILED: {why}"),
        Some(Outcome::Stale(why)) => format!("  changed meanwhile: {why}"),
        Some(Outcome::Skipped) => "  not tried".to_owned(),
        Some(Outcome::Done) | None => String::new(),
    };
    let tags = tags(step).iter().fold(String::new(), |all, tag| format!("{all}  ({tag})"));
    let mut lines = vec![format!("{sign} {} {}{tags}{became}{}", step.action, step.id, mark(cluster, step.since))];
    lines.extend(step.note.iter().map(|note| format!("#   {note}")));
    step.differences.iter().for_each(|difference| lines.extend(differing(dated(difference, step, cluster))));
    for Differing { path, values } in paragraph.differing(step) {
        lines.push(format!("!   {path} differs by cluster:"));
        for (clusters, difference) in values.iter().take(MOST_VALUES) {
            lines.extend(differing(Shown { path: format!("  {clusters}"), ..dated(difference, step, cluster) }));
        }
        lines.extend(values.len().checked_sub(MOST_VALUES + 1).map(|more| format!("#     … {} more", more + 1)));
    }
    lines.push(String::new());
    lines.iter().map(|line| sanitize::line(line)).collect::<Vec<_>>().join("\n")
}

/// A difference, in a line for what goes and one for what comes, or more of them.
fn differing(Shown { path, by, values }: Shown) -> Vec<String> {
    let mut lines = Vec::new();
    match values {
        Values::Pair(before, after) => {
            lines.extend(before.map(|before| format!("-   {path}: {before}  {by}").trim_end().to_owned()));
            lines.extend(after.map(|after| format!("+   {path}: {after}")));
        }
        Values::Lines { lines: changed, more } => {
            lines.push(format!("!   {path}:  {by}").trim_end().to_owned());
            let sign = |is_new: bool| if is_new { '+' } else { '-' };
            lines.extend(changed.iter().map(|Line { is_new, text }| format!("{}     {text}", sign(*is_new))));
            if more > 0 {
                lines.push(format!("#     … {} more", count(more, "line")));
            }
        }
    }
    lines
}

/// Returns a text as a code span.
fn code(text: &str) -> String {
    let text = sanitize::line(text);
    let fence = "`".repeat(longest_run(&text) + 1);
    // A space is taken off each end if both have one.
    let pad = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// The same in a table, where a bar would end the cell.
fn cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

fn longest_run(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or_default()
}

/// Returns a text as HTML within Markdown, in which Markdown finds nothing to read either.
fn html(text: &str) -> String {
    let mut out = String::new();
    for character in sanitize::line(text).chars() {
        if character.is_alphanumeric() || " /-.,:()".contains(character) {
            out.push(character);
        } else {
            // Writing to a string does not fail.
            let _ = write!(out, "&#{};", u32::from(character));
        }
    }
    out
}
