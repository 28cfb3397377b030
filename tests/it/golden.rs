//! Cases: a folder of specs, and what becomes of it.
//!
//! A case is a folder below `tests/golden` whose name is a sentence.
//! `in/` holds the specs, or `in.path` names a folder of the repository that does.
//! `settings.yaml`, if there, says what a config file would. All built-in packs are there, as in the program.
//! Expected are `objects.yaml` (all objects, in the order in which they are applied), `problems.txt` (one a line) and
//! `units.txt` (what became of every spec).
//!
//! `GATEWRIGHT_BLESS=1 cargo test --test it golden` writes what is expected again; the change is to be reviewed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gatewright::config::packs::Folders;
use gatewright::desired::cases::{Case, EXPECTED, SETTINGS, SPECS};
use gatewright::desired::differences::differences;
use gatewright_engine::error::Chain;

use crate::cluster::binaries::in_repository;

/// The file that names the folder of the specs, where that is not in the case.
const SPECS_ELSEWHERE: &str = "in.path";

/// All cases, in the order of their names, rendered once for all tests.
pub(crate) fn cases() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(rendered)
}

/// Renders all cases.
fn rendered() -> Vec<Case> {
    let folder = in_repository("tests/golden");
    let entries = fs::read_dir(&folder).expect("the cases can be listed");
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.expect("the cases can be listed").path()).collect();
    folders.sort();
    folders.iter().map(|folder| read(folder)).collect()
}

#[expect(clippy::panic, reason = "a case that cannot be read at all fails with its name")]
fn read(folder: &Path) -> Case {
    let packs = Folders { builtin: gatewright_packs::all().into(), own: BTreeMap::new() };
    let case = Case::read(folder, &specs(folder), &packs);
    case.unwrap_or_else(|error| panic!("{}: {}", folder.display(), Chain(&error)))
}

/// Returns the folder with the specs of a case.
fn specs(case: &Path) -> PathBuf {
    match fs::read_to_string(case.join(SPECS_ELSEWHERE)) {
        Ok(path) => in_repository(path.trim()),
        Err(_) => case.join(SPECS),
    }
}

/// Tells whether what is expected is to be written again.
#[expect(clippy::disallowed_methods, reason = "the one switch of the cases, for the person who runs them")]
pub(crate) fn blesses() -> bool {
    std::env::var_os("GATEWRIGHT_BLESS").is_some()
}

#[test]
fn golden_cases_render_as_expected() {
    let mut failures = Vec::new();
    for case in cases() {
        for (name, actual) in case.outcome() {
            let file = case.folder.join(name);
            if blesses() {
                fs::write(&file, &actual).expect("the cases can be written");
            }
            let wrong = match fs::read_to_string(&file) {
                Ok(expected) => differences(&expected, &actual),
                Err(error) => vec![error.to_string()],
            };
            failures.extend(wrong.iter().map(|wrong| format!("{}/{name}: {wrong}", case.name)));
        }
    }
    assert!(failures.is_empty(), "{}\nGATEWRIGHT_BLESS=1 writes them again; review the change", failures.join("\n"));
}

#[test]
fn golden_cases_hold_nothing_that_is_forgotten() {
    let known: Vec<&str> = EXPECTED.into_iter().chain([SPECS, SPECS_ELSEWHERE, SETTINGS]).collect();
    for case in cases() {
        for entry in fs::read_dir(&case.folder).expect("the cases can be listed") {
            let name = entry.expect("the cases can be listed").file_name().to_string_lossy().into_owned();
            assert!(known.contains(&name.as_str()), "{}: nobody reads {name:?}", case.name);
        }
    }
}

#[test]
fn golden_cases_hold_every_example() {
    let covered: Vec<PathBuf> = cases().iter().map(|case| specs(&case.folder)).collect();
    let steps = fs::read_dir(in_repository("examples/tutorial")).expect("the tutorial can be listed");
    let steps = steps.map(|entry| entry.expect("the tutorial can be listed").path()).filter(|path| path.is_dir());
    let others = ["quickstart", "fleet", "inference", "dynamo"];
    let others = others.map(|example| in_repository(&format!("examples/{example}/specs")));
    for example in steps.chain(others) {
        assert!(covered.contains(&example), "no case renders {}", example.display());
    }
}

#[test]
fn examples_have_no_problems() {
    for case in cases().iter().filter(|case| case.folder.join(SPECS_ELSEWHERE).exists()) {
        assert!(case.rendering.problems.is_empty(), "{}: {:?}", case.name, case.rendering.problems);
        assert!(case.rendering.broken.is_empty() && case.rendering.unclaimed.is_empty(), "{}", case.name);
    }
}

#[test]
fn rendering_twice_gives_the_same_bytes() {
    for (first, second) in cases().iter().zip(rendered()) {
        assert_eq!(first.outcome(), second.outcome(), "{}", first.name);
    }
}
