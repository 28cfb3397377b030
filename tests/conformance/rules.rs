//! Do rules come to the verdict of the standard?
//!
//! `<folder>/validation/VERDICTS.tsv` says which files an API server takes although they are wrong in their meaning (layer
//! `semantic`); `rules.yaml` has the verdict of each, and a case that it does not list counts by the words in the table.
//! What the standard calls valid, and what real systems have taken, is no error.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use gatewright_engine::pack::Packs;
use gatewright_engine::problem::{Problem, Scope};
use gatewright_engine::rules::{ALL, Id};
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{self, Options};
use serde::Deserialize;

use crate::say;
use crate::validation::{files, packs, with_values};

/// What is expected.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Expected {
    cases: BTreeMap<String, String>,
    beside: BTreeSet<Id>,
    invalid: BTreeMap<String, BTreeSet<Id>>,
    warnings: BTreeMap<Id, String>,
    pods: BTreeSet<Id>,
}

fn expected() -> Expected {
    let value = gatewright_engine::yaml::parse_values(include_str!("rules.yaml")).expect("it is YAML").remove(0);
    serde_json::from_value(value).expect("it is as this test reads it")
}

fn all_packs() -> Packs {
    packs(gatewright_packs::definitions())
}

/// Checks the cases in all folders, and tells whether every verdict is as expected.
pub(super) fn run(folders: &[PathBuf], words: &[String]) -> bool {
    let (expected, packs) = (expected(), all_packs());
    let mut outcomes = BTreeMap::new();
    for folder in folders.iter().map(|folder| folder.join("validation")) {
        let listed = fs::read_to_string(folder.join("VERDICTS.tsv")).unwrap_or_default();
        for line in listed.lines().map(|line| line.split('\t').collect::<Vec<_>>()) {
            if let [file, "semantic", _, _, said, ..] = line.as_slice() {
                let stem = file.trim_end_matches(".yaml");
                let wanted = expected.cases.get(stem).map_or_else(|| verdict(said), String::as_str);
                outcomes.insert(stem.to_owned(), judge(&folder.join(file), wanted, &expected, &packs));
            }
        }
    }
    let is_meant = |name: &String| words.is_empty() || words.iter().any(|word| format!("rules/{name}").contains(word));
    outcomes.retain(|name, _| is_meant(name));
    let wrong = outcomes.values().filter(|wrong| wrong.is_some()).count();
    for (name, wrong) in &outcomes {
        if let Some(wrong) = wrong {
            say(&format!("rules/{name}: {wrong}"));
        }
    }
    if !outcomes.is_empty() {
        say(&format!("rules: {} of {} cases have the verdict of the standard", outcomes.len() - wrong, outcomes.len()));
    }
    wrong == 0
}

/// Returns the verdict in the words of the table, of any rule.
fn verdict(said: &str) -> &'static str {
    let said = said.trim_start_matches("semantic:").trim();
    let says = |words: &[&str]| words.iter().any(|word| said.starts_with(word));
    if says(&["linter error", "Gateway Accepted=False", "GatewayClass Accepted=False"]) {
        "any error"
    } else if says(&["valid", "allowed", "legal", "must still"]) {
        "valid"
    } else {
        "any"
    }
}

/// Says how the findings in a case differ from what is wanted.
fn judge(path: &Path, wanted: &str, expected: &Expected, packs: &Packs) -> Option<String> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => return Some(error.to_string()),
    };
    let found: BTreeSet<(Id, &str)> = problems(&text, packs).iter().filter_map(finding).collect();
    let (rule, severity) = wanted.split_once(' ').unwrap_or((wanted, ""));
    let is_it = |(id, found): &(Id, &str)| {
        let is_any = rule == "any" && !expected.beside.contains(id);
        (id.to_string() == rule || is_any) && (severity.is_empty() || severity == *found)
    };
    let is_said = found.iter().any(is_it) || rule == "valid";
    let others = found.iter().filter(|it| !is_it(it) && !expected.beside.contains(&it.0) && rule != "any");
    let is_right = is_said && others.count() == 0;
    let found: Vec<String> = found.iter().map(|(id, severity)| format!("{id} {severity}")).collect();
    (!is_right).then(|| format!("{wanted} is expected, and found is: {}", found.join(", ")))
}

/// Finds what rules say of documents that real systems have taken, and tells whether all of it is meant.
pub(super) fn raise_no_alarm(folders: &[PathBuf], inputs: &[PathBuf]) -> bool {
    let (expected, packs) = (expected(), all_packs());
    let of_standard = folders.iter().flat_map(|folder| files(&folder.join("gateway-api")));
    let all: BTreeSet<PathBuf> = of_standard.chain(inputs.iter().cloned()).collect();
    let (mut alarms, mut warnings, mut of_pods) = (Vec::new(), BTreeMap::<Id, usize>::new(), BTreeMap::new());
    for path in &all {
        let Ok(text) = fs::read_to_string(path) else { continue };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let meant = expected.invalid.get(&stem);
        for problem in problems(&text, &packs) {
            match finding(&problem) {
                Some((id, _)) if expected.pods.contains(&id) => *of_pods.entry(id).or_default() += 1,
                Some((id, "warning")) => *warnings.entry(id).or_default() += 1,
                Some((id, _)) if is_free(id) && !meant.is_some_and(|meant| meant.contains(&id)) => {
                    alarms.push(format!("{}: {problem}", path.display()));
                }
                _ => {}
            }
        }
    }
    let unexplained = warnings.iter().filter(|(id, _)| !expected.warnings.contains_key(id));
    alarms
        .extend(unexplained.map(|(id, count)| format!("{count} warnings by {id}, which rules.yaml does not explain")));
    for line in &alarms {
        say(line);
    }
    let counted = |counts: &BTreeMap<Id, usize>| {
        counts.iter().map(|(id, count)| format!("{count} by {id}")).collect::<Vec<_>>().join(", ")
    };
    let (warnings, of_pods) = (counted(&warnings), counted(&of_pods));
    say(&format!("rules: {} inputs, {} alarms, warnings: {warnings}; of pods: {of_pods}", all.len(), alarms.len()));
    alarms.is_empty()
}

/// Tells whether a rule is more than a name for what keeps a document from being rendered.
fn is_free(id: Id) -> bool {
    ALL.iter().any(|rule| rule.id == id && !rule.is_fixed)
}

fn finding(problem: &Problem) -> Option<(Id, &'static str)> {
    Some((problem.rule?, if problem.scope == Scope::Warning { "warning" } else { "error" }))
}

fn problems(text: &str, packs: &Packs) -> Vec<Problem> {
    unit::render(
        &Tree::from_iter([("it.yaml", with_values(text))]),
        packs,
        &Options { is_check: true, ..Options::default() },
    )
    .problems
}
