//! The decisions about fields that others write to, in words.

use gatewright_engine::diff::{Difference, folded};
use gatewright_engine::plan::conflicts::{FieldVerdict, Verdict};
use gatewright_engine::text::count;

use crate::report::StepReport;

/// Says what becomes of a difference that somebody else has made, if the line of the difference is all that tells it.
pub(in crate::report) fn word(difference: &Difference, decided: &[FieldVerdict]) -> Option<&'static str> {
    let mut of_it = decided.iter().filter(|field| field.path == difference.path);
    of_it.find_map(|field| in_difference(field.verdict))
}

fn in_difference(verdict: Verdict) -> Option<&'static str> {
    match verdict {
        Verdict::Taken => Some("taken"),
        Verdict::Removed => Some("removed"),
        Verdict::Yielded | Verdict::HandedOver | Verdict::Ignored | Verdict::Migrated | Verdict::Fighting => None,
    }
}

/// Says what was decided about the fields of an object; what its differences say is left out.
pub(crate) fn lines(step: &StepReport) -> impl Iterator<Item = String> {
    let is_said = |decided: &FieldVerdict| {
        let of_it = step.differences.iter().filter(|difference| difference.path == decided.path);
        in_difference(decided.verdict).is_some() && of_it.flat_map(|difference| &difference.managers).next().is_some()
    };
    step.fields.iter().filter(move |decided| !is_said(decided)).map(line)
}

/// Says what was decided about one field.
pub fn line(decided: &FieldVerdict) -> String {
    let FieldVerdict { path, managers, .. } = decided;
    let who = if managers.is_empty() { "nobody".to_owned() } else { managers.join(", ") };
    let ours = decided.wanted.as_ref().map(|value| format!("; ours would be {}", folded(value))).unwrap_or_default();
    match decided.verdict {
        Verdict::Taken => format!("{path}: taken from {who}"),
        Verdict::Removed => format!("{path}: removed, only {who} has set it"),
        Verdict::Yielded => format!("{path}: left to {who}{ours}"),
        Verdict::HandedOver if managers.is_empty() => format!("{path}: not ours any more, and keeps its value"),
        Verdict::HandedOver => format!("{path}: handed over to {who}{ours}"),
        Verdict::Ignored if managers.is_empty() => format!("{path}: ignored{ours}"),
        Verdict::Ignored => format!("{path}: ignored, {who} has set it{ours}"),
        Verdict::Migrated => format!("the fields of {who} become ours, and what is not wanted of them goes"),
        Verdict::Fighting => fighting(decided),
    }
}

/// Says what a fight is about.
pub fn fighting(decided: &FieldVerdict) -> String {
    let who = match decided.managers.as_slice() {
        [] => "somebody who leaves no name, perhaps a webhook".to_owned(),
        managers => managers.join(", "),
    };
    let often = count(decided.corrections.unwrap_or_default() as usize, "time");
    let rest = match decided.rest.unwrap_or_default() {
        0 => "corrected again in the next round".to_owned(),
        rest => format!("left alone for {}", count(rest as usize, "more round")),
    };
    format!("{}: Fighting with {who}, corrected {often} in vain; {rest}", decided.path)
}
