//! Does reading a document come to the verdict of a real API server?
//!
//! `<folder>/validation/VERDICTS.tsv` names files, what a server says of each (`ACCEPT`, `REJECT`), and the fields that it
//! drops without a word, which count as refused. Everything in `<folder>/gateway-api` is valid.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gatewright::config::packs::{build, folders};
use gatewright_engine::admission::Definitions;
use gatewright_engine::pack::Packs;
use gatewright_engine::problem::Scope;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::Source;
use gatewright_engine::yaml::{self, Node};

use crate::say;

/// Mistakes in the inputs of other suites that are refused with good reason: their authors' tests have no API server before
/// them.
const NO_SERVER_TAKES: [&str; 1] = ["spec.listeners has 0 items, but must have at least 1"];

/// Names in the conformance tests of the Gateway API, and values to put in their place.
const PLACEHOLDERS: [(&str, &str); 3] = [
    ("{GATEWAY_CONTROLLER_NAME}", "example.com/controller"),
    ("PLACEHOLDER_UNUSABLE_ADDRS", "192.0.2.1"),
    ("PLACEHOLDER_USABLE_ADDRS", "198.51.100.1"),
];

/// Checks all folders, and tells whether every verdict is that of the server. Words limit it to the files in whose names one
/// of them occurs.
pub(super) fn run(folders: &[PathBuf], words: &[String]) -> bool {
    let packs = packs(gatewright_packs::definitions());
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let mut verdicts: BTreeMap<PathBuf, bool> = BTreeMap::new();
    for folder in folders {
        let validation = folder.join("validation");
        let listed = fs::read_to_string(validation.join("VERDICTS.tsv")).unwrap_or_default();
        verdicts.extend(listed.lines().skip(1).filter_map(|line| verdict(&validation, line)));
        verdicts.extend(files(&folder.join("gateway-api")).into_iter().map(|path| (path, false)));
    }
    let wrong = verdicts.iter().filter(|(path, _)| wanted(&format!("validation {}", path.display())));
    let (all, wrong): (Vec<_>, Vec<_>) =
        wrong.map(|(path, refused)| (path, judge(path, *refused, &packs))).partition(|it| it.1.is_none());
    for (path, message) in &wrong {
        say(&format!("{}: {}", path.display(), message.as_deref().unwrap_or_default()));
    }
    if !all.is_empty() || !wrong.is_empty() {
        say(&format!("validation: {} of {} have the verdict of an API server", all.len(), all.len() + wrong.len()));
    }
    wrong.is_empty()
}

/// Finds what definitions refuse of the inputs of other suites, which real systems have taken; tells whether it is nothing.
pub(super) fn raise_no_alarm(inputs: &[PathBuf]) -> bool {
    let (with, without) = (packs(gatewright_packs::definitions()), packs(Definitions::default()));
    let read = inputs.iter().filter_map(|path| Some((path, fs::read_to_string(path).ok()?)));
    let alarms = read.flat_map(|(path, text)| {
        let usual = said(&text, &without);
        let more = said(&text, &with).into_iter().filter(move |line| !usual.contains(line));
        let is_meant = |line: &String| NO_SERVER_TAKES.iter().any(|it| line.ends_with(it));
        more.filter(move |line| !is_meant(line)).map(|line| format!("{}: {line}", path.display()))
    });
    let alarms: Vec<String> = alarms.collect();
    for line in &alarms {
        say(line);
    }
    say(&format!("validation: {} inputs of other suites, {} alarms", inputs.len(), alarms.len()));
    alarms.is_empty()
}

/// All packs, with definitions.
pub(super) fn packs(definitions: Definitions) -> Packs {
    let folders = folders(&gatewright_packs::all().into(), []).expect("there are none");
    build(None, &folders).expect("they load").with_definitions(definitions)
}

/// Reads a line: the file, and whether it is refused.
fn verdict(folder: &Path, line: &str) -> Option<(PathBuf, bool)> {
    let fields: Vec<&str> = line.split('\t').collect();
    let (file, said) = (fields.first()?, fields.get(2)?);
    let drops = fields.get(7).is_some_and(|dropped| dropped.starts_with('['));
    Some((folder.join(file), *said == "REJECT" || drops))
}

/// Returns all files with documents below a folder.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let below = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    entries.flat_map(below).filter(|path| path.extension().is_some_and(|it| it == "yaml")).collect()
}

/// Puts values in the place of names in the conformance tests of the Gateway API.
pub(super) fn with_values(text: &str) -> String {
    PLACEHOLDERS.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
}

/// Returns all that is said of documents, the hints for what is taken left out.
fn said(text: &str, packs: &Packs) -> Vec<String> {
    let text = with_values(text);
    let specs = Source::load(&Tree::from_iter([("it.yaml", text)]), packs, None).specs;
    let problems = specs.problems.iter().filter(|problem| problem.scope != Scope::Warning);
    problems.chain(specs.refused.values().flatten()).map(ToString::to_string).collect()
}

fn warnings(text: &str, packs: &Packs) -> Vec<String> {
    let specs = Source::load(&Tree::from_iter([("it.yaml", text)]), packs, None).specs;
    specs.problems.iter().map(ToString::to_string).collect()
}

/// Returns what is said of an object that takes the place of another one.
fn said_of_change(change: &Node, packs: &Packs) -> Vec<String> {
    let (old, new) = (&change.to_value()["old"], yaml::to_string(&change.to_value()["new"]));
    let specs = Source::load(&Tree::from_iter([("it.yaml", new)]), packs, None).specs;
    let documents =
        specs.documents.values().filter_map(|it| Some((it, packs.definitions().of(&it.id.group, &it.id.kind)?)));
    documents.flat_map(|(it, definition)| definition.check(it, Some(old))).map(|mistake| mistake.message).collect()
}

/// Returns what differs from the verdict of the server.
fn judge(path: &Path, is_refused: bool, packs: &Packs) -> Option<String> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => return Some(error.to_string()),
    };
    let mut said = match yaml::parse(&text).unwrap_or_default().as_slice() {
        [change] if change.get("old").is_some() => said_of_change(change, packs),
        _ => said(&text, packs),
    };
    // A kind that newer releases do not have is a warning: the cluster may have an older one.
    if is_refused && said.is_empty() {
        said = warnings(&text, packs);
    }
    match (is_refused, said.is_empty()) {
        (true, true) => Some("an API server refuses it, and nothing is said".to_owned()),
        (false, false) => Some(format!("an API server takes it, and here is said: {}", said.join("; "))),
        _ => None,
    }
}
