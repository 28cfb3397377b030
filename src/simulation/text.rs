//! The outcome of a simulation for people.

use std::fmt::Write as _;

use super::outcome::{Outcome, Phase, Planned, Times};
use crate::cluster::simulated::link::Verb;

/// Writes it.
pub(crate) fn write(outcome: &Outcome) -> String {
    let faults = outcome.faults.iter().map(|(fault, number)| format!("{number} {}", fault.word()));
    let all = std::iter::once(format!("{} simulated clusters", outcome.clusters)).chain(faults);
    let mut text = format!("{}; seed {}\n", all.collect::<Vec<_>>().join(", "), outcome.seed);
    text.extend(outcome.phases.iter().map(of_phase));
    text.extend(outcome.plan.as_ref().map(|plan| format!("\n{}\n", plan_in_short(plan))));
    let (objects, bodies) = (outcome.objects, outcome.bodies);
    let peak = outcome.peak_memory.map(|bytes| {
        let bytes = bytes / 1_000_000;
        format!("peak memory {bytes} MB, the simulated clusters included; ")
    });
    let peak = peak.unwrap_or_default();
    text + &format!("\n{peak}{objects} objects on all clusters, of {bodies} different contents\n")
}

/// Says in a line how a phase has ended.
pub(crate) fn in_short(phase: &Phase) -> String {
    let Phase { name, converged, clusters, cpu, .. } = phase;
    let (took, memory) = (seconds(phase.took), megabytes(phase.peak_memory));
    format!("{name}: {converged} of {clusters} clusters in {took}, {cpu:.1}s of CPU{memory}")
}

/// Says in a line what the plan of the change has cost.
pub(crate) fn plan_in_short(plan: &Planned) -> String {
    let Planned { steps, clusters, cpu, .. } = plan;
    let (took, memory) = (seconds(plan.took), megabytes(plan.peak_memory));
    format!("plan of the change: {steps} steps on {clusters} clusters in {took}, {cpu:.1}s of CPU{memory}")
}

fn megabytes(peak: Option<u64>) -> String {
    peak.map(|bytes| format!(", {} MB at most so far", bytes / 1_000_000)).unwrap_or_default()
}

fn of_phase(phase: &Phase) -> String {
    let mut text = format!("\n{}\n", in_short(phase));
    for (whose, times) in [("clusters", &phase.sound), ("with a fault", &phase.faulty)] {
        let Some(Times { p50, p95, p99, max }) = times else { continue };
        let [p50, p95, p99, max] = [p50, p95, p99, max].map(|time| seconds(*time));
        let line =
            format!("  {whose}: half within {p50}, 95 % within {p95}, 99 % within {p99}, the last after {max}\n");
        text.push_str(&line);
    }
    text += &requests(phase);
    text.push_str("  slowest:\n");
    for slow in &phase.slowest {
        let took = slow.took.map_or_else(|| "not converged".to_owned(), seconds);
        writeln!(text, "    {}  {took}  {}", slow.cluster, slow.reasons.join("; ")).expect("a text takes everything");
    }
    text
}

fn requests(phase: &Phase) -> String {
    let all: u64 = phase.requests.values().sum();
    let each = |number: u64| {
        let of = u64::try_from(phase.clusters.max(1)).unwrap_or(u64::MAX);
        format!("{}.{}", number / of, number % of * 10 / of)
    };
    let of_verb = |(verb, number): (&Verb, &u64)| format!("{} {}", verb.word(), each(*number));
    let verbs = phase.requests.iter().map(of_verb).collect::<Vec<_>>().join(", ");
    let (throttled, errors, unanswered) = (phase.throttled, phase.errors, phase.unanswered);
    let bad = [(throttled, "answered 429"), (errors, "answered 503"), (unanswered, "not answered")];
    let bad = bad.iter().filter(|(number, _)| *number > 0).map(|(number, what)| format!("{number} {what}"));
    let all_of_it = std::iter::once(verbs).chain(bad).collect::<Vec<_>>().join("; ");
    format!("  requests: {all}, for each cluster {}: {all_of_it}\n", each(all))
}

fn seconds(time: f64) -> String {
    if time < 120.0 {
        format!("{time:.2}s")
    } else {
        format!("{}m{:02.0}s", (time / 60.0).floor(), (time % 60.0).floor())
    }
}
