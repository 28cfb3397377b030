//! `gatewright schema`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use gatewright_engine::editor::{self, KindVersion};
use gatewright_engine::error::Chain;
use gatewright_engine::pack::Packs;
use gatewright_engine::text::count;
use serde_json::Value;

use super::render::{config, packs};
use super::{Context, EXIT_FAILED, Failure, emit, print};
use crate::config::{did_you_mean, schema::json_schema};

/// The word that stands for the config file, which is no kind.
const CONFIG: &str = "config";

/// The file with the schema of the config file.
const CONFIG_FILE: &str = "gatewright.json";

/// The file with the schema that picks one of the others.
const ALL_FILE: &str = "all.json";

/// Print JSON Schemas for editors: of the config file, or of a kind that `check` knows. Without a name, list the kinds.
///
/// Kinds are those of the built-in definitions, of `crdFolders` of the config file, and of packs. docs/editors.md says how
/// editors find them.
///
/// Exit codes: 0 printed, 1 a file cannot be written, 64 usage, or there is no such kind.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// `config`, KIND, GROUP/KIND or GROUP/VERSION/KIND; without a version, the newest.
    #[arg(value_name = "NAME", conflicts_with = "all")]
    name: Option<String>,
    /// Write all of them: `GROUP/KIND_VERSION.json` for each, all.json that picks one by apiVersion and kind, and
    /// gatewright.json of the config file.
    #[arg(long, requires = "output_dir")]
    all: bool,
    /// The folder that they are written to.
    #[arg(long, value_name = "DIR", requires = "all")]
    output_dir: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    if args.name.as_deref() == Some(CONFIG) {
        emit(&text(&json_schema()));
        return Ok(0);
    }
    let packs = packs(context, config(context, false)?.as_ref())?;
    let kinds = editor::kinds(&packs);
    match (&args.name, &args.output_dir) {
        (Some(name), _) => emit(&text(&of_kind(find(name, &kinds)?, &packs)?)),
        (None, Some(folder)) => write_all(folder, &kinds, &packs)?,
        (None, None) => list(&kinds),
    }
    Ok(0)
}

fn list(kinds: &[KindVersion]) {
    print(&format!("{CONFIG}\n"));
    for of in kinds {
        print(&format!("{}/{}\n", of.api_version(), of.kind));
    }
}

fn of_kind(of: &KindVersion, packs: &Packs) -> Result<Value, Failure> {
    let lost = || Failure::usage(format!("the definition of {}/{} cannot be used", of.api_version(), of.kind));
    editor::schema(packs, of).ok_or_else(lost)
}

/// Finds what was named: the newest version of a kind, if none was.
fn find<'a>(name: &str, kinds: &'a [KindVersion]) -> Result<&'a KindVersion, Failure> {
    let parts: Vec<&str> = name.split('/').collect();
    let is_meant = |of: &&KindVersion| match parts.as_slice() {
        [kind] => of.kind.eq_ignore_ascii_case(kind),
        [group, kind] => of.group == *group && of.kind.eq_ignore_ascii_case(kind),
        [group, version, kind] => of.group == *group && of.version == *version && of.kind.eq_ignore_ascii_case(kind),
        _ => false,
    };
    let found: Vec<&KindVersion> = kinds.iter().filter(is_meant).collect();
    let Some(first) = found.first() else { return Err(unknown(name, kinds)) };
    match found.iter().find(|other| other.group != first.group) {
        None => Ok(first),
        Some(other) => Err(Failure::usage(format!("there is more than one kind {name:?}"))
            .hint(format!("write {}/{} or {}/{}", first.group, first.kind, other.group, other.kind))),
    }
}

fn unknown(name: &str, kinds: &[KindVersion]) -> Failure {
    let kind = name.rsplit('/').next().unwrap_or(name);
    let hint = did_you_mean(kind, kinds.iter().map(|of| of.kind.as_str()).chain([CONFIG]));
    Failure::usage(format!("there is no kind {name:?}"))
        .hint(format!("{hint}; `gatewright schema` lists all, and crdFolders of the config file adds more"))
}

fn write_all(folder: &Path, kinds: &[KindVersion], packs: &Packs) -> Result<(), Failure> {
    for of in kinds {
        write(&folder.join(of.path()), &of_kind(of, packs)?)?;
    }
    write(&folder.join(ALL_FILE), &editor::choice(kinds))?;
    write(&folder.join(CONFIG_FILE), &json_schema())?;
    print(&format!("{} written to {}\n", count(kinds.len() + 2, "schema"), folder.display()));
    Ok(())
}

fn write(path: &Path, schema: &Value) -> Result<(), Failure> {
    let fail = |error: io::Error| Failure {
        code: EXIT_FAILED,
        message: format!("cannot write {}: {}", path.display(), Chain(&error)),
        hint: None,
    };
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(fail)?;
    fs::write(path, text(schema)).map_err(fail)
}

fn text(schema: &Value) -> String {
    format!("{schema:#}\n")
}
