//! The text view: what will happen, or has happened, for a person who reads from the top.

pub mod fields;
mod summary;
mod units;

use std::collections::BTreeMap;
use std::io;

use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::refusal::Reason;
use gatewright_engine::problem::counted;
use gatewright_engine::text::count;
use owo_colors::{OwoColorize, Style};

use super::action::StepAction;
use super::blast::{blast, order};
use super::folded::{Differing, MOST_VALUES, Paragraph, fold, fold_news};
use super::outline::{Section, Sections};
use super::shown::{Shown, dated, tags};
use super::trend::Summary;
use super::warnings::Warning;
use super::withheld::{HoldReport, MOST_HELD, RefusalReport};
use super::{ClusterReport, ClusterState, Mode, ProblemReport, Report, StepReport, named};
use crate::basics::sanitize;
use crate::report::outcome::Outcome;

/// The most findings that are named of those that are gone, unless all are to be shown: whoever reads wants to know what
/// is to be done.
const MOST_GONE: usize = 3;

/// The look of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Colors for a terminal.
    pub color: bool,
    /// Also what stays as it is.
    pub verbose: bool,
    /// No more than a line for clusters that are alike.
    pub summary: bool,
}

/// Writes a report.
pub fn write(report: &Report, look: Look) -> String {
    let mut out = Vec::new();
    // Memory takes everything.
    drop(write_to(report, look, &mut out));
    String::from_utf8_lossy(&out).into_owned()
}

/// Writes a report: what is the same on several clusters once.
///
/// # Errors
/// Those of what it is written to.
pub fn write_to(report: &Report, look: Look, out: &mut impl io::Write) -> io::Result<()> {
    let mut writer = Writer { out: String::new(), look };
    if look.summary {
        writer.in_short(report);
        return out.write_all(writer.out.as_bytes());
    }
    writer.report(report);
    let sections = Sections::of(report.clusters.values());
    let paragraphs: Box<dyn Iterator<Item = Paragraph<'_>>> =
        if look.verbose { Box::new(fold(report)) } else { Box::new(fold_news(report)) };
    for paragraph in paragraphs {
        let before = std::mem::take(&mut writer.out);
        writer.paragraph(&paragraph, &sections);
        let said = std::mem::replace(&mut writer.out, before);
        if !said.is_empty() {
            writer.line("");
            writer.painted(&paragraph.clusters.heading(look.verbose), Style::new().bold(), "");
            writer.out.push_str(&said);
        }
        out.write_all(std::mem::take(&mut writer.out).as_bytes())?;
    }
    if report.has_changed() && !report.run.is_empty() {
        writer.line("");
        writer.line(&format!("run {}", report.run));
    }
    out.write_all(writer.out.as_bytes())
}

/// Writes what is to be known first of several reports, in front of them.
pub fn first(reports: &[Report], look: Look) -> String {
    let mut writer = Writer { out: String::new(), look };
    let warnings: Vec<Warning> = reports.iter().flat_map(Warning::all).collect();
    for Warning { word, place, message, hint, .. } in &warnings {
        writer.painted(&format!("{word} {place}"), Style::new().red(), &format!(": {message}"));
        if let Some(hint) = hint {
            writer.line(&format!("    {hint}"));
        }
    }
    // A single report says it itself.
    if let Some(words) = Summary::of(reports).words().filter(|_| reports.len() > 1) {
        writer.line(&words);
    }
    if !writer.out.is_empty() {
        writer.out.push('\n');
    }
    writer.out
}

struct Writer {
    out: String,
    look: Look,
}

impl Writer {
    /// Writes one line, whatever stands in what others have said.
    fn line(&mut self, text: &str) {
        self.out.push_str(&sanitize::line(text));
        self.out.push('\n');
    }

    /// Writes a line in which the first part is colored.
    fn painted(&mut self, text: &str, style: Style, rest: &str) {
        let text = sanitize::line(text);
        if self.look.color {
            self.out.push_str(&text.style(style).to_string());
        } else {
            self.out.push_str(&text);
        }
        self.line(rest);
    }

    fn report(&mut self, report: &Report) {
        self.title(report);
        // What a single cluster comes to stands at its end.
        if let Some(blast) = blast(report).filter(|_| report.clusters.len() > 1 || report.mode != Mode::Apply) {
            self.painted(&blast, Style::new().bold(), "");
        }
        self.state(report);
        let summary = Summary::of(std::slice::from_ref(report));
        if let Some(words) = summary.words() {
            self.line(&format!("  {words}"));
        }
        self.problems(report);
        self.gone(&summary);
        if !report.unclaimed.is_empty() {
            self.line("");
            self.line("Not claimed by any pack, not applied:");
            for unclaimed in &report.unclaimed {
                self.line(&format!("  {}  {}", unclaimed.id, unclaimed.place));
            }
        }
    }

    fn title(&mut self, report: &Report) {
        let cause = report.cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default();
        self.line(&format!("sync {} at {}{cause}", report.sync, report.revision));
    }

    /// Writes what is to be known of all clusters.
    fn state(&mut self, report: &Report) {
        if let Some(next) = &report.next_revision {
            self.line(&format!("  {next} waits until the rollout of {} is over", report.revision));
        }
        if let Some(order) = order(report) {
            self.line(&format!("  {order}"));
        }
        if let Some(suspension) = &report.suspended {
            self.warn(&format!("{}; `gatewright resume {}` ends that", suspension.words(), report.sync));
        }
        if let Some(reason) = &report.stale_source {
            let what = "could not be read, this is its last good revision";
            let mark = in_brackets(report.mark(report.stale_since));
            self.warn(&format!("source {} {what}: {reason}{mark}", report.source));
        }
    }

    /// Writes which findings are gone, and which nobody knows any more.
    fn gone(&mut self, summary: &Summary) {
        for (title, findings) in [("Resolved:", &summary.resolved), ("Not looked at:", &summary.unseen)] {
            if !findings.is_empty() {
                self.line("");
                self.line(title);
            }
            let most = if self.look.verbose { usize::MAX } else { MOST_GONE };
            for gone in findings.iter().take(most) {
                self.line(&format!("  {}", gone.words()));
            }
            if let Some(more) = findings.len().checked_sub(most).filter(|more| *more > 0) {
                self.line(&format!("  … {more} more"));
            }
        }
    }

    fn problems(&mut self, report: &Report) {
        let problems = &report.problems;
        if problems.is_empty() {
            return;
        }
        self.out.push('\n');
        let all = counted(problems.iter().map(|it| &it.problem));
        self.painted(&all, Style::new().red().bold(), "");
        for ProblemReport { problem, clusters, since } in problems {
            let object = problem.object.as_ref().map(|id| format!("{id}: ")).unwrap_or_default();
            let on = if clusters.is_empty() { String::new() } else { format!("; on {}", named(clusters)) };
            let mark = report.mark(*since).map(|mark| format!("  ({mark})")).unwrap_or_default();
            let rule = problem.rule.map(|rule| format!(" [{rule}]")).unwrap_or_default();
            let (word, place, message) = (problem.mark(), &problem.place, &problem.message);
            self.line(&format!("  {word}{place}: {object}{message}{rule}{on}{mark}"));
            if let Some(hint) = &problem.hint {
                self.line(&format!("    {hint}"));
            }
        }
    }

    fn paragraph(&mut self, paragraph: &Paragraph<'_>, sections: &Sections<'_>) {
        let cluster = &paragraph.part;
        if let Some(overdue) = &cluster.overdue {
            self.warn(overdue);
        }
        if let Some(error) = &cluster.error {
            let word = if cluster.state == ClusterState::Unreachable { "unreachable: " } else { "" };
            self.warn(&format!("{word}{}{}", error.message, in_brackets(cluster.mark(cluster.since))));
            if let Some(hint) = &error.hint {
                self.line(&format!("    {hint}"));
            }
        }
        for note in &cluster.notes {
            self.line(&format!("  {note}"));
        }
        if let Some(unaccepted) = &cluster.unaccepted {
            self.warn(&format!("{}{}", unaccepted.message, in_brackets(cluster.mark(unaccepted.since))));
            self.line(&format!("    {}", unaccepted.hint));
        }
        let is_one = paragraph.clusters.names.len() == 1;
        cluster.holds.iter().for_each(|hold| self.hold(hold, cluster, is_one));
        for hold in &cluster.lifted {
            self.line(&format!("  guard {} was approved: {}", hold.guard, hold.message));
        }
        self.steps(paragraph, sections);
        self.refusals(cluster, sections);
        self.missing_rights(cluster);
        self.units(cluster);
        if let Some(cluster) = paragraph.summary {
            self.summary(cluster, if is_one { "" } else { " on each" });
        }
    }

    fn hold(&mut self, hold: &HoldReport, cluster: &ClusterReport, is_one: bool) {
        let (unit, what) = match &hold.unit {
            Some(_) => (hold.subject(), "it stays as it is"),
            None if hold.is_of_units() => (hold.subject(), "they stay as they are"),
            None if hold.guard.holds_only_deletions() => (String::new(), "nothing is deleted here"),
            None => (String::new(), "nothing is changed here"),
        };
        let mark = in_brackets(cluster.mark(hold.since));
        self.warn(&format!("{unit}held by guard {}: {}{mark}", hold.guard, hold.message));
        self.line(&format!("    {what}; {}", hold.hint));
        let most = if self.look.verbose { usize::MAX } else { MOST_HELD };
        cluster.withheld(hold, most).iter().for_each(|line| self.line(&format!("    {line}")));
        let steps = count(hold.steps.len(), "step");
        match (&hold.token, &hold.fleet_token) {
            (_, Some(token)) if !is_one => {
                self.line(&format!("    gatewright approve {token}    lifts it on each of them, for exactly {steps}"));
            }
            (Some(token), _) => self.line(&format!("    gatewright approve {token}    lifts it, for exactly {steps}")),
            (None, _) => {}
        }
    }

    fn steps(&mut self, paragraph: &Paragraph<'_>, sections: &Sections<'_>) {
        let (cluster, is_verbose) = (&paragraph.part, self.look.verbose);
        let is_told = |step: &&StepReport| is_verbose || (step.is_news() && !cluster.awaits_acceptance(step));
        // Namespaces come first, and need no heading.
        let mut last = Section::Namespaces;
        for step in cluster.steps.iter().filter(is_told) {
            let section = sections.of_step(step);
            if section != last {
                self.line(&format!("  {section}"));
            }
            last = section;
            self.step(step, paragraph);
        }
    }

    fn step(&mut self, step: &StepReport, paragraph: &Paragraph<'_>) {
        let cluster = &paragraph.part;
        let (sign, style) = match step.action {
            StepAction::Create | StepAction::Generate => ("+", Style::new().green()),
            StepAction::Update | StepAction::Different => ("~", Style::new().yellow()),
            StepAction::Adopt => ("&", Style::new().cyan()),
            StepAction::Recreate => ("±", Style::new().red()),
            StepAction::HandOver => (">", Style::new().cyan()),
            StepAction::Prune | StepAction::DeleteFirst | StepAction::Missing => ("-", Style::new().red()),
            StepAction::Extra => ("+", Style::new().yellow()),
            StepAction::Forget => ("x", Style::new().dimmed()),
            StepAction::Unchanged | StepAction::Omit => ("=", Style::new().dimmed()),
        };
        let became = match &step.outcome {
            None | Some(Outcome::Done) => String::new(),
            Some(Outcome::Failed(reason)) => format!("  FAILED: {}", cause(reason, &step.id)),
            Some(Outcome::Stale(reason)) => format!("  changed meanwhile: {}", cause(reason, &step.id)),
            Some(Outcome::Skipped) => "  not tried".to_owned(),
        };
        let tags = tags(step).iter().fold(String::new(), |all, tag| format!("{all}  ({tag})"));
        let mark = cluster.mark(step.since).map(|mark| format!("  {mark}")).unwrap_or_default();
        self.painted(&format!("    {sign} {} {}", step.action, step.id), style, &format!("{tags}{became}{mark}"));
        if let Some(note) = &step.note {
            self.line(&format!("        {note}"));
        }
        step.differences.iter().for_each(|difference| self.difference("        ", dated(difference, step, cluster)));
        for Differing { path, values } in paragraph.differing(step) {
            self.line(&format!("        {path} differs by cluster:"));
            let most = if self.look.verbose { usize::MAX } else { MOST_VALUES };
            for (clusters, difference) in values.iter().take(most) {
                let path = clusters.words(self.look.verbose);
                self.difference("          ", Shown { path, ..dated(difference, step, cluster) });
            }
            if let Some(more) = values.len().checked_sub(most).filter(|more| *more > 0) {
                self.line(&format!("          … {more} more"));
            }
        }
        fields::lines(step).for_each(|line| self.line(&format!("        {line}")));
    }

    fn difference(&mut self, indent: &str, difference: Shown) {
        for (is_new, line) in difference.plain() {
            let line = format!("{indent}{line}");
            match is_new {
                None => self.line(&line),
                Some(true) => self.painted(&line, Style::new().green(), ""),
                Some(false) => self.painted(&line, Style::new().red(), ""),
            }
        }
    }

    /// Writes what is not done, by unit. Four objects that are kept for one reason are one line, unless all are to be
    /// shown.
    fn refusals(&mut self, cluster: &ClusterReport, sections: &Sections<'_>) {
        let mut all: BTreeMap<Section<'_>, Vec<(String, Vec<&ObjectId>)>> = BTreeMap::new();
        // What is withheld only because of the rest comes after it.
        let (withheld, refused): (Vec<&RefusalReport>, Vec<&RefusalReport>) =
            cluster.told_refusals().partition(|refusal| refusal.reason == Reason::UnitHeld);
        for refusal in refused.into_iter().chain(withheld) {
            let mark = in_brackets(cluster.mark(refusal.since));
            let section = sections.of_unit(&refusal.unit);
            let (reasons, reason) = (all.entry(section).or_default(), format!("{}{mark}", why(refusal)));
            // A unit says which objects are its own.
            let is_folded = section != Section::Documents && !self.look.verbose;
            match reasons.iter_mut().find(|(known, _)| is_folded && *known == reason) {
                Some((_, ids)) => ids.push(&refusal.id),
                None => reasons.push((reason, vec![&refusal.id])),
            }
        }
        for (section, reasons) in &all {
            self.line(&format!("  {section}"));
            for (reason, ids) in reasons {
                match ids.as_slice() {
                    [id] => self.refusal(&format!("{id}: {reason}")),
                    ids => self.refusal(&format!("{}: {reason}", count(ids.len(), "object"))),
                }
            }
        }
    }

    /// Said once, however many objects need a right that is missing.
    fn missing_rights(&mut self, cluster: &ClusterReport) {
        let is_right = |reason: &str| reason.contains("is forbidden: User");
        let is_refused = cluster.refusals.iter().any(|refusal| is_right(&refusal.reason.to_string()));
        let failed = |step: &StepReport| matches!(&step.outcome, Some(Outcome::Failed(reason)) if is_right(reason));
        if is_refused || cluster.steps.iter().any(failed) {
            self.line("  grant the missing rights to the user that the server names; the next round tries again");
        }
    }

    fn refusal(&mut self, text: &str) {
        self.painted(&format!("    ! {text}"), Style::new().yellow(), "");
    }

    fn summary(&mut self, cluster: &ClusterReport, on: &str) {
        if let Some((word, parts)) = comes_to(cluster) {
            let is_sick = cluster.state == ClusterState::Done && !cluster.is_well();
            let end = if is_sick { ", not healthy" } else { "" };
            self.line(&format!("  {word}{end}{on}: {parts}"));
        }
    }

    fn warn(&mut self, text: &str) {
        self.painted(&format!("  {text}"), Style::new().red(), "");
    }
}

/// Says what a round on a cluster comes to, in a word and in numbers; nothing where there was none.
fn comes_to(cluster: &ClusterReport) -> Option<(&'static str, String)> {
    if cluster.error.is_some() || cluster.state == ClusterState::Suspended {
        return None;
    }
    let word = if cluster.state == ClusterState::Unreachable { "lost on the way" } else { cluster.state.word() };
    let (changes, unchanged) = (cluster.changes(), cluster.unchanged());
    let none = if cluster.state == ClusterState::Compared { "no differences" } else { "no changes" };
    let mut parts = match (changes.is_empty(), unchanged) {
        (true, 0) if !cluster.refusals.is_empty() && cluster.state == ClusterState::Compared => {
            vec!["nothing could be compared".to_owned()]
        }
        (true, 0) if !cluster.refusals.is_empty() => vec![none.to_owned()],
        (true, _) => vec![none.to_owned(), format!("{} up to date", count(unchanged, "object"))],
        (false, 0) => changes,
        (false, _) => changes.into_iter().chain([format!("{unchanged} unchanged")]).collect(),
    };
    let (kept, refused) = cluster.not_done();
    let (failed, untried) = cluster.not_succeeded();
    // Where nothing has failed another line says why some were not tried.
    let untried = if failed == 0 { 0 } else { untried };
    for (number, word) in [(failed, "failed"), (untried, "not tried"), (kept, "kept"), (refused, "refused")] {
        if number > 0 {
            parts.push(format!("{} {word}", count(number, "object")));
        }
    }
    Some((word, parts.join(", ")))
}

/// Writes since when something is known behind it.
pub(super) fn in_brackets(mark: Option<String>) -> String {
    mark.map(|mark| format!(" ({mark})")).unwrap_or_default()
}

/// Says why something is refused, and names the object only where the line does not.
pub fn why(refusal: &RefusalReport) -> String {
    cause(&refusal.reason.to_string(), &refusal.id)
}

/// Leaves out of an error what was attempted on an object (`cannot apply Service infra/edge: `): the line says it.
fn cause(error: &str, id: &ObjectId) -> String {
    let end = format!(" {id}: ");
    let attempt = error.split_once(&end).and_then(|(before, rest)| Some((before.rfind("cannot ")?, rest)));
    match attempt {
        Some((start, rest)) => format!("{}{rest}", &error[..start]),
        None => error.to_owned(),
    }
}
