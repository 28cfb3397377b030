//! Do we render what the real systems render? Their own cases say.
//!
//! One line a case and a total a suite; it fails if a case differs in anything that `suites/<suite>.yaml` does not
//! list as deliberate, with its reason. `GATEWRIGHT_CASES` names the folder with the cases; a suite without any is skipped,
//! but for CI, where it fails.
//! Words on the command line limit it to the cases in whose names one of them occurs, as for every test program.

mod compare;

#[path = "../support/cases.rs"]
mod cases;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::process::ExitCode;

use cases::{Case, Deliberate, Suite, is_meant};
use gatewright_engine::object::Object;

/// More of them, and a suite says little.
const MOST_DELIBERATE: usize = 4;

/// Lines of one case that are printed; the first say what is wrong.
const MOST_LINES: usize = 12;

/// The outcome of a case.
enum Verdict {
    Equal,
    Deliberate(BTreeSet<String>),
    Different(Vec<String>),
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let suites = cases::suites(&cases::folder());
    let passed: Vec<bool> = suites.iter().map(|suite| run(suite, &words)).collect();
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
    let (mut all, mut equal, mut deliberate, mut used) = (0, 0, 0, BTreeSet::new());
    let cases = suite.cases();
    if cases.is_empty() {
        let (name, folder) = (&suite.name, suite.folder.display());
        say(&format!(
            "{name}: skipped, there are no cases in {folder}; GATEWRIGHT_CASES names the folder that has them"
        ));
        return !is_ci();
    }
    for (stem, folder) in cases {
        let name = format!("{}/{stem}", suite.name);
        if !words.is_empty() && !words.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        all += 1;
        match verdict(suite, &stem, suite.case(&stem, &folder), &mut used) {
            Verdict::Equal => {
                equal += 1;
                say(&format!("{name}: equal"));
            }
            Verdict::Deliberate(reasons) => {
                deliberate += 1;
                say(&format!("{name}: deliberately different"));
                for reason in reasons {
                    say(&format!("    {reason}"));
                }
            }
            Verdict::Different(lines) => {
                say(&format!("{name}: DIFFERENT"));
                for line in lines.iter().take(MOST_LINES) {
                    say(&format!("    {line}"));
                }
                if lines.len() > MOST_LINES {
                    say(&format!("    and {} more", lines.len() - MOST_LINES));
                }
            }
        }
    }
    if all > 0 {
        say(&format!("{}: {equal} of {all} equal, {deliberate} deliberately different", suite.name));
    }
    let is_stale = words.is_empty() && says_stale(suite, &used);
    equal + deliberate == all && deliberate <= MOST_DELIBERATE && !is_stale
}

fn verdict(suite: &Suite, stem: &str, case: Case, used: &mut BTreeSet<usize>) -> Verdict {
    let problems: Vec<String> = case.rendering.problems.iter().map(ToString::to_string).collect();
    let rendered = case.objects();
    let lines = match (case.expected, rendered.is_empty()) {
        (None, true) if !problems.is_empty() => Vec::new(),
        (None, _) => vec![format!("refused by the real system; {} objects are rendered", rendered.len())],
        (Some(expected), _) => {
            let is_compared = |object: &&Object| suite.kinds.is_empty() || suite.kinds.contains(&object.id().kind);
            let rendered = rendered.iter().filter(is_compared).map(|object| object.body().clone()).collect();
            compare::differences(suite, rendered, expected)
        }
    };
    let (mut reasons, mut rest) = (BTreeSet::new(), Vec::new());
    for line in lines {
        let is_this = |it: &Deliberate| is_meant(&it.cases, stem) && line.starts_with(&it.line);
        match suite.differences.iter().position(is_this) {
            Some(index) => {
                used.insert(index);
                reasons.insert(suite.differences[index].reason.clone());
            }
            None => rest.push(line),
        }
    }
    match (rest.is_empty(), reasons.is_empty()) {
        (false, _) => Verdict::Different(rest.into_iter().chain(problems).collect()),
        (true, true) => Verdict::Equal,
        (true, false) => Verdict::Deliberate(reasons),
    }
}

/// A difference that is listed and does not exist is a list that nobody can trust.
fn says_stale(suite: &Suite, used: &BTreeSet<usize>) -> bool {
    let is_stale = |(index, it): &(usize, &Deliberate)| {
        let concerns = suite.cases().iter().any(|(stem, _)| is_meant(&it.cases, stem));
        concerns && !used.contains(index)
    };
    let stale: Vec<_> = suite.differences.iter().enumerate().filter(is_stale).collect();
    for (_, it) in &stale {
        say(&format!("{}: no case differs in {:?} any more", suite.name, it.line));
    }
    !stale.is_empty()
}
