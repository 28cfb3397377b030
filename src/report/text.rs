//! The text view: what will happen, or has happened, for a person who reads from the top.

pub mod fields;

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use gatewright_engine::diff::Difference;
use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::conflicts::Settled;
use gatewright_engine::plan::refusal::{Reason, Refusal};
use gatewright_engine::text::count;
use owo_colors::{OwoColorize, Style};
use serde_json::Value;

use super::{ClusterReport, ClusterState, ProblemReport, Report, StepReport, UnitState, named};
use crate::apply::Outcome;

/// Values longer than this are folded.
const LONGEST_VALUE: usize = 100;
/// Lines of a text value that are shown.
const MOST_LINES: usize = 12;

/// How the text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Colors for a terminal.
    pub color: bool,
    /// Also what stays as it is.
    pub verbose: bool,
}

impl Look {
    fn paint(self, text: &str, style: Style) -> String {
        if self.color { text.style(style).to_string() } else { text.to_owned() }
    }
}

/// Writes a report.
pub fn write(report: &Report, look: Look) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = Writer { out: &mut out, look }.report(report);
    out
}

struct Writer<'a> {
    out: &'a mut String,
    look: Look,
}

impl Writer<'_> {
    fn report(&mut self, report: &Report) -> fmt::Result {
        let cause = report.cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default();
        writeln!(self.out, "sync {} at {}{cause}", report.sync, report.revision)?;
        if let Some(suspension) = &report.suspended {
            self.warn(&format!("{}; `gatewright resume {}` ends that", suspension.words(), report.sync))?;
        }
        if let Some(reason) = &report.stale_source {
            self.warn(&format!(
                "source {} could not be read, this is its last good revision: {reason}",
                report.source
            ))?;
        }
        self.problems(&report.problems)?;
        if !report.unclaimed.is_empty() {
            writeln!(self.out, "\nNot claimed by any pack, not applied:")?;
            for unclaimed in &report.unclaimed {
                writeln!(self.out, "  {}  {}", unclaimed.id, unclaimed.place)?;
            }
        }
        for (name, cluster) in &report.clusters {
            writeln!(self.out, "\n{}", self.look.paint(&format!("cluster {name}"), Style::new().bold()))?;
            self.cluster(cluster)?;
        }
        if report.has_changed() && !report.run.is_empty() {
            writeln!(self.out, "\nrun {}", report.run)?;
        }
        Ok(())
    }

    fn problems(&mut self, problems: &[ProblemReport]) -> fmt::Result {
        if problems.is_empty() {
            return Ok(());
        }
        writeln!(self.out, "\n{}", self.look.paint(&count(problems.len(), "problem"), Style::new().red().bold()))?;
        for ProblemReport { problem, clusters } in problems {
            let object = problem.object.as_ref().map(|id| format!("{id}: ")).unwrap_or_default();
            let on = if clusters.is_empty() { String::new() } else { format!("; on {}", named(clusters)) };
            writeln!(self.out, "  {}: {object}{}{on}", problem.place, problem.message)?;
            if let Some(hint) = &problem.hint {
                writeln!(self.out, "    {hint}")?;
            }
        }
        Ok(())
    }

    fn cluster(&mut self, cluster: &ClusterReport) -> fmt::Result {
        if let Some(error) = &cluster.error {
            let word = if cluster.state == ClusterState::Unreachable { "unreachable: " } else { "" };
            self.warn(&format!("{word}{}", error.message))?;
            if let Some(hint) = &error.hint {
                writeln!(self.out, "    {hint}")?;
            }
        }
        for hold in &cluster.holds {
            let (unit, what) = match &hold.unit {
                Some(unit) => (format!("{unit} is "), "it stays as it is"),
                None if hold.guard.holds_only_deletions() => (String::new(), "nothing is deleted here"),
                None => (String::new(), "nothing is changed here"),
            };
            self.warn(&format!("{unit}held by guard {}: {}", hold.guard, hold.message))?;
            writeln!(self.out, "    {what}; {}", hold.hint)?;
            if let Some(token) = &hold.token {
                let steps = count(hold.steps.len(), "step");
                writeln!(self.out, "    gatewright approve {token}    lifts it, for exactly {steps}")?;
            }
        }
        for hold in &cluster.lifted {
            writeln!(self.out, "  guard {} was approved: {}", hold.guard, hold.message)?;
        }
        let mut unit = None;
        let is_verbose = self.look.verbose;
        for step in cluster.steps.iter().filter(|step| is_verbose || step.action != "keep" || !step.fields.is_empty()) {
            if unit != Some(&step.unit) && step.unit != step.id {
                writeln!(self.out, "  {}", step.unit)?;
            }
            unit = Some(&step.unit);
            self.step(step)?;
        }
        self.refusals(cluster)?;
        self.missing_rights(cluster)?;
        self.units(cluster)?;
        self.summary(cluster)
    }

    fn step(&mut self, step: &StepReport) -> fmt::Result {
        let (sign, style) = match step.action.as_str() {
            "create" | "generate" => ("+", Style::new().green()),
            "update" => ("~", Style::new().yellow()),
            "adopt" => ("&", Style::new().cyan()),
            "recreate" => ("±", Style::new().red()),
            "release" => (">", Style::new().cyan()),
            "prune" | "release-first" => ("-", Style::new().red()),
            "forget" => ("x", Style::new().dimmed()),
            _ => ("=", Style::new().dimmed()),
        };
        let line = self.look.paint(&format!("    {sign} {} {}", step.action, step.id), style);
        match &step.outcome {
            None | Some(Outcome::Done) => writeln!(self.out, "{line}")?,
            Some(Outcome::Failed(reason)) => writeln!(self.out, "{line}  FAILED: {}", cause(reason, &step.id))?,
            Some(Outcome::Stale(reason)) => {
                writeln!(self.out, "{line}  changed meanwhile: {}", cause(reason, &step.id))?;
            }
            Some(Outcome::Skipped) => writeln!(self.out, "{line}  not tried")?,
        }
        if let Some(note) = &step.note {
            writeln!(self.out, "        {note}")?;
        }
        step.differences.iter().try_for_each(|difference| self.difference(difference, &step.fields))?;
        fields::lines(step).try_for_each(|line| writeln!(self.out, "        {line}"))
    }

    fn difference(&mut self, difference: &Difference, settled: &[Settled]) -> fmt::Result {
        let by = match difference.managers.first() {
            Some(manager) => {
                let at = manager.time.as_deref().map(|time| format!(" at {time}")).unwrap_or_default();
                let what = fields::word(difference, settled).map(|word| format!("; {word}")).unwrap_or_default();
                format!("  (last written by {}{at}{what})", manager.name)
            }
            None => String::new(),
        };
        match (&difference.before, &difference.after) {
            (Some(Value::String(before)), Some(Value::String(after))) if is_text(before) || is_text(after) => {
                writeln!(self.out, "        {}:{by}", difference.path)?;
                self.lines(before, after)
            }
            (before, after) => {
                let text = |value: &Option<Value>| value.as_ref().map_or_else(|| "nothing".to_owned(), folded);
                writeln!(self.out, "        {}: {} -> {}{by}", difference.path, text(before), text(after))
            }
        }
    }

    /// The changed lines of a text.
    fn lines(&mut self, before: &str, after: &str) -> fmt::Result {
        let diff = similar::TextDiff::from_lines(before, after);
        let changes: Vec<_> =
            diff.iter_all_changes().filter(|change| change.tag() != similar::ChangeTag::Equal).collect();
        for change in changes.iter().take(MOST_LINES) {
            let line = format!("          {} {}", change.tag(), change.value().trim_end());
            let style =
                if change.tag() == similar::ChangeTag::Insert { Style::new().green() } else { Style::new().red() };
            writeln!(self.out, "{}", self.look.paint(&line, style))?;
        }
        match changes.len().saturating_sub(MOST_LINES) {
            0 => Ok(()),
            more => writeln!(self.out, "          … {} more", count(more, "line")),
        }
    }

    /// What is not done, by unit. Four objects that are kept for one reason are one line, unless all are to be shown.
    fn refusals(&mut self, cluster: &ClusterReport) -> fmt::Result {
        let mut units: BTreeMap<&ObjectId, Vec<(String, Vec<&ObjectId>)>> = BTreeMap::new();
        // What is withheld only because of the rest comes after it.
        let (withheld, refused): (Vec<&Refusal>, Vec<&Refusal>) =
            cluster.refusals.iter().partition(|refusal| refusal.reason == Reason::UnitHeld);
        for refusal in refused.into_iter().chain(withheld) {
            let (reasons, reason) = (units.entry(&refusal.unit).or_default(), why(refusal));
            match reasons.iter_mut().find(|(known, _)| *known == reason && !self.look.verbose) {
                Some((_, ids)) => ids.push(&refusal.id),
                None => reasons.push((reason, vec![&refusal.id])),
            }
        }
        for (unit, reasons) in &units {
            writeln!(self.out, "  {unit}")?;
            for (reason, ids) in reasons {
                match ids.as_slice() {
                    [id] => self.refusal(&format!("{id}: {reason}"))?,
                    ids => self.refusal(&format!("{}: {reason}", count(ids.len(), "object")))?,
                }
            }
        }
        Ok(())
    }

    /// Said once, however many objects need a right that is missing.
    fn missing_rights(&mut self, cluster: &ClusterReport) -> fmt::Result {
        let is_right = |reason: &str| reason.contains("is forbidden: User");
        let is_refused = cluster.refusals.iter().any(|refusal| is_right(&refusal.reason.to_string()));
        let failed = |step: &StepReport| matches!(&step.outcome, Some(Outcome::Failed(reason)) if is_right(reason));
        if is_refused || cluster.steps.iter().any(failed) {
            writeln!(self.out, "  grant the missing rights to the user of the kubeconfig; the next round tries again")?;
        }
        Ok(())
    }

    fn refusal(&mut self, text: &str) -> fmt::Result {
        writeln!(self.out, "{}", self.look.paint(&format!("    ! {text}"), Style::new().yellow()))
    }

    fn units(&mut self, cluster: &ClusterReport) -> fmt::Result {
        for unit in &cluster.units {
            match (unit.state, &unit.message) {
                (_, Some(message)) => self.warn(&format!("{}: {message}", unit.unit))?,
                (UnitState::Unhealthy, None) => self.warn(&format!("{}: it is not healthy", unit.unit))?,
                // The steps tell what failed.
                _ => {}
            }
        }
        Ok(())
    }

    fn summary(&mut self, cluster: &ClusterReport) -> fmt::Result {
        if cluster.error.is_some() || cluster.state == ClusterState::Suspended {
            return Ok(());
        }
        let word = match cluster.state {
            ClusterState::Planned => "plan",
            ClusterState::Done => "done",
            ClusterState::Held => "held",
            ClusterState::Stopped => "stopped",
            ClusterState::Suspended => "suspended",
            ClusterState::Failed => "failed",
            ClusterState::Unreachable => "lost on the way",
        };
        let changes = changes(cluster);
        let unchanged = cluster.steps.iter().filter(|step| step.action == "keep").count();
        let mut parts = match (changes.is_empty(), unchanged) {
            (true, 0) if !cluster.refusals.is_empty() => vec!["no changes".to_owned()],
            (true, _) => vec!["no changes".to_owned(), format!("{} up to date", count(unchanged, "object"))],
            (false, 0) => changes,
            (false, _) => changes.into_iter().chain([format!("{unchanged} unchanged")]).collect(),
        };
        let kept = cluster.refusals.iter().filter(|refusal| is_kept(&refusal.reason)).count();
        for (number, word) in [(kept, "kept"), (cluster.refusals.len() - kept, "refused")] {
            if number > 0 {
                parts.push(format!("{} {word}", count(number, "object")));
            }
        }
        writeln!(self.out, "  {word}: {}", parts.join(", "))
    }

    fn warn(&mut self, text: &str) -> fmt::Result {
        writeln!(self.out, "  {}", self.look.paint(text, Style::new().red()))
    }
}

/// Says why something is refused, and names the object only where the line does not.
pub fn why(refusal: &Refusal) -> String {
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

/// Tells whether an object stays as it is because that is right or safe, and not because something is wrong with it.
fn is_kept(reason: &Reason) -> bool {
    match reason {
        Reason::Kept(_)
        | Reason::Unmarked
        | Reason::HoldsOthers(_)
        | Reason::StillNeeded(_)
        | Reason::NotInPlan
        | Reason::Held(_)
        | Reason::NotApplied
        | Reason::Broken
        | Reason::Unreadable(_)
        | Reason::SelfManaged
        | Reason::Adopted
        | Reason::PruneDisabled
        | Reason::MayBeClaimed(_)
        | Reason::InDoubt
        | Reason::Unproven
        | Reason::FirstRound => true,
        Reason::Foreign(_)
        | Reason::LiveDeployer(_)
        | Reason::Conflict(_)
        | Reason::NotAllowed(_)
        | Reason::NoNamespace(_)
        | Reason::NamespaceTerminating(_)
        | Reason::Terminating
        | Reason::Invalid(_)
        | Reason::Forbidden(_)
        | Reason::NoSuchKind(_)
        | Reason::Failed(_)
        | Reason::Unknown(_)
        | Reason::Taken(_)
        | Reason::Moved(_)
        | Reason::Immutable(_)
        | Reason::NotUndone(_)
        | Reason::UnitHeld => false,
    }
}

/// Counts what changes: `12 objects to create`; new namespaces apart, because most of them are not ours.
fn changes(cluster: &ClusterReport) -> Vec<String> {
    let is_planned = matches!(cluster.state, ClusterState::Planned | ClusterState::Held);
    let words = |action: &str| match (action, is_planned) {
        (action, true) => format!("to {action}"),
        ("prune", false) => "deleted".to_owned(),
        ("adopt", false) => "adopted".to_owned(),
        ("release-first", false) => "released first".to_owned(),
        (action, false) => format!("{action}d"),
    };
    let number = |action: &str, is_namespace: bool| {
        let counts = |step: &&StepReport| {
            let is_over = is_planned || matches!(step.outcome, Some(Outcome::Done));
            let is_new_namespace = step.id.kind == "Namespace" && action == "create";
            step.action == action && is_new_namespace == is_namespace && is_over
        };
        cluster.steps.iter().filter(counts).count()
    };
    let objects = ["create", "generate", "update", "adopt", "recreate", "release-first", "release", "prune"]
        .map(|action| (action, "object", number(action, false)));
    let namespaces = [("create", "namespace", number("create", true))];
    let all = objects.into_iter().chain(namespaces).filter(|(_, _, number)| *number > 0);
    all.map(|(action, thing, number)| format!("{} {}", count(number, thing), words(action))).collect()
}

fn is_text(text: &str) -> bool {
    text.contains('\n')
}

fn folded(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(LONGEST_VALUE) {
        None => text,
        Some((end, _)) => format!("{}… ({} characters)", &text[..end], text.chars().count()),
    }
}
