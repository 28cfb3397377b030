//! `gatewright pack test`.

use std::fs;
use std::path::{Path, PathBuf};

use gatewright_engine::error::Chain;
use gatewright_engine::text::count;

use super::super::{Context, EXIT_FAILED, Failure, complain, print};
use super::read;
use crate::config::packs::Folders;
use crate::desired::cases::{Case, SPECS};
use crate::desired::differences::differences;
use gatewright_engine::tree::files::CASES;

/// Render the cases of a pack, and compare what comes out with what is expected.
///
/// A case is a folder below cases/ of the pack: in/ holds specs, settings.yaml, if there, what a config file would say.
/// Expected are objects.yaml, problems.txt and units.txt. --packs adds other packs that the cases need.
///
/// Exit codes: 0 all is as expected, 1 something is not, 64 usage.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder of the pack.
    #[arg(value_name = "DIR")]
    pack: PathBuf,
    /// Cases; all of them by default.
    #[arg(value_name = "CASE")]
    cases: Vec<String>,
    /// Write what is expected again, to be reviewed.
    #[arg(long)]
    update: bool,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let (name, files) = read(context, &args.pack)?;
    let mut all = context.packs()?;
    all.own.insert(name, files);
    let cases = cases(&args.pack, &args.cases)?;
    if args.update {
        return cases.iter().try_fold(0, |_, folder| update(folder, &all));
    }
    let mut wrong = 0;
    for folder in &cases {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let lines = test(folder, &all);
        wrong += usize::from(!lines.is_empty());
        let verdict = if lines.is_empty() { "ok" } else { "DIFFERENT" };
        print(&format!("{name}: {verdict}\n"));
        for line in lines {
            complain(&format!("{name}/{line}\n"));
        }
    }
    print(&format!("{}, {wrong} different\n", count(cases.len(), "case")));
    if wrong > 0 {
        complain("--update writes what is expected again; review the change\n");
    }
    Ok(if wrong > 0 { EXIT_FAILED } else { 0 })
}

/// Finds the folders of cases.
fn cases(pack: &Path, wanted: &[String]) -> Result<Vec<PathBuf>, Failure> {
    let folder = pack.join(CASES);
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    found.sort();
    for name in wanted {
        if !found.iter().any(|path| path.ends_with(name)) {
            return Err(Failure::usage(format!("there is no case {name:?} in {}", folder.display())));
        }
    }
    found.retain(|path| wanted.is_empty() || wanted.iter().any(|name| path.ends_with(name)));
    if found.is_empty() {
        let message = format!("there are no cases in {}", folder.display());
        return Err(Failure::usage(message).hint(format!("a case is a folder with specs in {SPECS}/")));
    }
    Ok(found)
}

/// Renders a case, and says what is not as expected.
fn test(folder: &Path, packs: &Folders) -> Vec<String> {
    let case = match Case::read(folder, &folder.join(SPECS), packs) {
        Ok(case) => case,
        Err(error) => return vec![Chain(&error).to_string()],
    };
    let [objects, problems, units] = case.outcome();
    let mut wrong = Vec::new();
    // Problems first: they say why objects are not there.
    for (name, actual) in [problems, objects, units] {
        // What is not there is empty: most cases have no problems.
        let expected = fs::read_to_string(folder.join(name)).unwrap_or_default();
        wrong.extend(differences(&expected, &actual).into_iter().map(|found| format!("{name}: {found}")));
    }
    wrong
}

/// Renders a case, and writes what comes out.
fn update(folder: &Path, packs: &Folders) -> Result<u8, Failure> {
    let case = Case::read(folder, &folder.join(SPECS), packs).map_err(|error| Failure::of(&error))?;
    for (name, actual) in case.outcome() {
        fs::write(folder.join(name), &actual).map_err(|error| Failure::of(&error))?;
    }
    let objects = case.rendering.units.iter().map(|unit| unit.all().count()).sum();
    let problems = match case.rendering.problems.len() {
        0 => String::new(),
        number => format!(", and {}", count(number, "problem")),
    };
    print(&format!("{}: written, {}{problems}\n", case.name, count(objects, "object")));
    Ok(0)
}
