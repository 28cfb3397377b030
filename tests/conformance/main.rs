//! Do we render what the real systems render? Their own cases say.
//!
//! One line a case and a total for each folder of a suite; it fails if a case differs in anything that
//! `suites/<suite>.yaml` does not list as deliberate, with its reason, or if more differ than its limits allow.
//! `GATEWRIGHT_CASES` names the folders with the cases, divided by colons; a suite without any is skipped, but for CI,
//! where it fails.
//! Words on the command line limit it to the cases in whose names one of them occurs, as for every test program.

mod compare;
mod rules;
mod schemas;
mod tally;
mod validation;

#[path = "../support/cases.rs"]
#[expect(dead_code, reason = "what a person wrote is for the test of command lines alone")]
mod cases;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::process::ExitCode;

use cases::{Case, Suite, is_meant};
use gatewright_engine::object::Object;
use tally::{Tally, Verdict};

/// Lines of one case that are printed; the first say what is wrong.
const MOST_LINES: usize = 12;

/// A pattern of an entry among the deliberate differences, by their places, which applied to a case.
type Used = BTreeSet<(usize, usize)>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let suites = cases::suites(&cases::folders());
    let mut passed: Vec<bool> = suites.iter().map(|suite| run(suite, &words)).collect();
    passed.push(validation::run(&cases::folders(), &words));
    passed.push(rules::run(&cases::folders(), &words));
    if words.is_empty() {
        let inputs =
            |suite: &Suite| suite.cases().into_iter().map(|(_, folder)| folder.join("in.yaml")).collect::<Vec<_>>();
        let inputs: Vec<_> = suites.iter().flat_map(inputs).collect();
        passed.push(validation::raise_no_alarm(&inputs));
        passed.push(schemas::run(&cases::folders(), &inputs));
        passed.push(rules::raise_no_alarm(&cases::folders(), &inputs));
    }
    if passed.iter().all(|passed| *passed) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Tells whether this is CI, where nobody would notice that nothing was compared.
#[expect(clippy::disallowed_methods, reason = "the variable by which CI systems say that it is one")]
fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

fn say(line: &str) {
    // Nobody listens any more: nothing to report.
    drop(writeln!(io::stdout(), "{line}"));
}

/// Runs a suite, and tells whether all is as it should be.
fn run(suite: &Suite, words: &[String]) -> bool {
    let cases = suite.cases();
    if cases.is_empty() {
        let name = &suite.name;
        say(&format!("{name}: skipped, there are no cases; GATEWRIGHT_CASES names the folders that have them"));
        return !is_ci();
    }
    let (mut tallies, mut used) = (BTreeMap::<String, Tally>::new(), Used::new());
    let mut all = Tally::default();
    for (stem, folder) in cases {
        let name = format!("{}/{stem}", suite.name);
        if !words.is_empty() && !words.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        let verdict = verdict(suite, &stem, suite.case(&stem, &folder), &mut used);
        tell(&name, &verdict);
        let above = stem.rsplit_once('/').map_or(String::new(), |(above, _)| format!("/{above}"));
        tallies.entry(above).or_default().add(suite, &stem, &verdict);
        all.add(suite, &stem, &verdict);
    }
    if tallies.len() > 1 {
        for (folder, tally) in &tallies {
            say(&format!("{}{folder}: {tally}", suite.name));
        }
    }
    if !tallies.is_empty() {
        say(&format!("{}: {all}", suite.name));
    }
    let exceeded = all.exceeded(suite);
    for line in &exceeded {
        say(&format!("{}: {line}", suite.name));
    }
    let is_stale = words.is_empty() && says_stale(suite, &used);
    all.different == 0 && exceeded.is_empty() && !is_stale
}

fn tell(name: &str, verdict: &Verdict) {
    let (outcome, lines): (_, Vec<&String>) = match verdict {
        Verdict::Equal => ("equal", Vec::new()),
        Verdict::Deliberate(reasons) => ("deliberately different", reasons.iter().collect()),
        Verdict::Refused(problems) => ("refused", problems.iter().collect()),
        Verdict::Different(lines) => ("DIFFERENT", lines.iter().collect()),
    };
    say(&format!("{name}: {outcome}"));
    lines.iter().take(MOST_LINES).for_each(|line| say(&format!("    {line}")));
    if lines.len() > MOST_LINES {
        say(&format!("    and {} more", lines.len() - MOST_LINES));
    }
}

fn verdict(suite: &Suite, stem: &str, case: Case, used: &mut Used) -> Verdict {
    let problems: Vec<String> = case.rendering.problems.iter().map(ToString::to_string).collect();
    let rendered = case.objects();
    let is_refused = rendered.is_empty() && !problems.is_empty();
    let lines = match case.expected {
        None if is_refused => Vec::new(),
        None => vec![format!("refused by the real system; {} objects are rendered", rendered.len())],
        Some(_) if is_refused => problems.iter().map(|problem| format!("refused: {problem}")).collect(),
        Some(expected) => {
            let kinds = suite.kinds_of(stem);
            let is_compared = |object: &&Object| kinds.is_empty() || kinds.contains(&object.id().kind);
            let rendered = rendered.iter().filter(is_compared).map(|object| object.body().clone()).collect();
            compare::differences(suite, stem, rendered, expected)
        }
    };
    let (reasons, rest) = sort(suite, stem, lines, used);
    match (rest.is_empty(), reasons.is_empty()) {
        (false, _) if is_refused && suite.limit_of(stem).is_some_and(|limit| suite.limits[limit].refusals) => {
            Verdict::Refused(problems)
        }
        (false, _) if is_refused => Verdict::Different(rest),
        (false, _) => Verdict::Different(rest.into_iter().chain(problems).collect()),
        (true, true) => Verdict::Equal,
        (true, false) => Verdict::Deliberate(reasons),
    }
}

/// Returns the reasons for what is deliberate among these lines, and the rest of them.
fn sort(suite: &Suite, stem: &str, lines: Vec<String>, used: &mut Used) -> (BTreeSet<String>, Vec<String>) {
    let (mut reasons, mut rest) = (BTreeSet::new(), Vec::new());
    for line in lines {
        let pattern_of = |it: &cases::Deliberate| {
            let pattern = it.cases.iter().position(|pattern| is_meant(std::slice::from_ref(pattern), stem))?;
            line.starts_with(&it.line).then_some(pattern)
        };
        let mut found = suite.differences.iter().enumerate().filter_map(|(n, it)| Some((n, pattern_of(it)?)));
        match found.next() {
            Some((index, pattern)) => {
                used.insert((index, pattern));
                reasons.insert(suite.differences[index].reason.clone());
            }
            None => rest.push(line),
        }
    }
    (reasons, rest)
}

/// A difference that is listed and does not exist is a list that nobody can trust.
fn says_stale(suite: &Suite, used: &Used) -> bool {
    let cases = suite.cases();
    let mut is_stale = false;
    for (index, it) in suite.differences.iter().enumerate() {
        for (number, pattern) in it.cases.iter().enumerate() {
            let concerns = cases.iter().any(|(stem, _)| is_meant(std::slice::from_ref(pattern), stem));
            if concerns && !used.contains(&(index, number)) {
                say(&format!("{}: {pattern} does not differ in {:?} any more", suite.name, it.line));
                is_stale = true;
            }
        }
    }
    is_stale
}
