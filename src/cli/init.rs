//! `gatewright init`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::access::{Access, neighbor};
use super::first_config::{FILE, FirstConfig, said};
use super::session::question;
use super::{Context, Failure, print};
use crate::cluster::directory::file::{FOR_ALL, write};
use crate::config;
use crate::config::settings::Mode;
use crate::config::validate::{MAX_NAME, is_name};

/// The folder of specs, where nobody says another one.
const SPECS: &str = "specs";

/// The name of the cluster, where its context cannot be one.
const NAME: &str = "local";

/// Write a first config file: where the specs come from, and the cluster that they are for.
///
/// It asks at a terminal for anything that no flag says, and has a default for it; with --yes, and in a script, the defaults
/// count. The config file has one sync that compares and changes nothing, unless --mode says otherwise. No cluster is asked, and nothing
/// that exists is overwritten. `gatewright import` writes the specs of a cluster, too.
///
/// Exit codes: 0 written, 1 it cannot be written, 64 usage or configuration.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The folder of the config file; it is made if it is not there.
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// The folder with the specs, relative to the config file, or the URL of a git repository; ./specs without it.
    #[arg(long, value_name = "PATH|URL")]
    source: Option<String>,
    /// The branch of the git repository; without it the one that the server calls its default.
    #[arg(long = "ref", value_name = "BRANCH")]
    branch: Option<String>,
    #[command(flatten)]
    access: Access,
    /// The name of the cluster in the config file, and of its sync; that of the context without it.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Compare only, or apply what the source says.
    #[arg(long, value_name = "MODE")]
    mode: Option<How>,
    /// Ask nothing.
    #[arg(long, short)]
    yes: bool,
}

/// The mode of the rounds.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum How {
    Report,
    Apply,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let file = args.folder.join(FILE);
    if fs::symlink_metadata(&file).is_ok() {
        let failure = Failure::usage(format!("there is a {} already", file.display()));
        return Err(failure.hint("edit it, or name another folder; `gatewright config check` says what is wrong in it"));
    }
    let settings = args.access.pinned(context, args.name.as_deref().unwrap_or(NAME))?;
    let asks = !args.yes && question::is_attended();
    let ask = |question: &str, default: &str| if asks { answer(question, default) } else { default.to_owned() };

    let source = args
        .source
        .clone()
        .unwrap_or_else(|| ask("Where are the specs? A folder, or the URL of a git repository", &format!("./{SPECS}")));
    let branch = match &args.branch {
        None if is_git(&source) => ask("Which branch? Without an answer the server's default", ""),
        given => given.clone().unwrap_or_default(),
    };
    let known = settings.context.clone().filter(|name| is_name(name)).unwrap_or_else(|| NAME.to_owned());
    let name = args.name.clone().unwrap_or_else(|| ask("What is the cluster called?", &known));
    if !is_name(&name) {
        let failure = Failure::usage(format!("{name:?} cannot be the name of a cluster"));
        return Err(failure.hint(format!("write up to {MAX_NAME} lower-case letters, digits and dashes")));
    }
    let how = args
        .mode
        .map_or_else(|| how(&ask("Only report what differs, or apply the specs? (report/apply)", "report")), Ok)?;
    let mode = if matches!(how, How::Apply) { Mode::Apply } else { Mode::Report };
    let kubeconfig = said(&settings).map_err(|error| Failure::of(&error))?;
    let source_settings = source_of(&source, &branch)?;
    check_folder(&args.folder, &source)?;
    let config = FirstConfig { name, source: source_settings, kubeconfig, packs: BTreeMap::new(), mode };
    create(context, &file, &config)?;
    print(&next(&file, &source, mode));
    Ok(0)
}

/// Writes the file if it is one that can be used, and the folder of the specs if it is ours to make.
fn create(context: &Context, file: &Path, config: &FirstConfig) -> Result<(), Failure> {
    let text = config.text();
    // Before anything is written: a wrong URL is found here.
    config::parse(file, &text, &context.environment).map_err(|error| Failure::of_configuration(&error))?;
    let folder = file.parent().unwrap_or(Path::new("."));
    write(folder, Path::new(FILE), &text, FOR_ALL).map_err(|problem| Failure::of(&problem))?;
    if config.source == source_of(&format!("./{SPECS}"), "")? {
        fs::create_dir_all(folder.join(SPECS)).map_err(|error| Failure::of(&error))?;
    }
    Ok(())
}

/// Puts a question, and returns the answer.
fn answer(question: &str, default: &str) -> String {
    let shown = if default.is_empty() { String::new() } else { format!(" [{default}]") };
    question::put(&format!("{question}{shown}: "));
    let line = question::line();
    let line = line.trim();
    if line.is_empty() { default.to_owned() } else { line.to_owned() }
}

fn how(text: &str) -> Result<How, Failure> {
    match text {
        "report" => Ok(How::Report),
        "apply" => Ok(How::Apply),
        _ => Err(Failure::usage(format!("{text:?} is neither report nor apply"))),
    }
}

/// Tells whether a source is a repository, as git takes it: a URL, `user@host:path`, or a path that is called like one.
fn is_git(source: &str) -> bool {
    let is_remote = source.split_once(':').is_some_and(|(host, _)| host.contains('@') && !host.contains('/'));
    source.contains("://") || is_remote || source.trim_end_matches('/').strip_suffix(".git").is_some()
}

/// Refuses a folder that is not there, because it is misspelled; the usual one is made.
fn check_folder(folder: &Path, source: &str) -> Result<(), Failure> {
    let path = folder.join(source);
    if is_git(source) || source == format!("./{SPECS}") || path.is_dir() {
        return Ok(());
    }
    let failure = Failure::usage(format!("there is no folder {}", path.display()));
    let near = neighbor(&path).map(|near| format!("did you mean {near:?}?"));
    Err(failure.hint(near.unwrap_or_else(|| "make it first, or leave --source out to begin with ./specs".to_owned())))
}

fn source_of(source: &str, branch: &str) -> Result<Value, Failure> {
    match (is_git(source), branch) {
        (true, "") => Ok(json!({"git": {"url": source}})),
        (true, branch) => Ok(json!({"git": {"url": source, "ref": {"branch": branch}}})),
        (false, "") => Ok(json!({"directory": {"path": source}})),
        (false, _) => {
            let failure = Failure::usage(format!("--ref is a branch of a git repository, and {source:?} is a folder"));
            Err(failure.hint("leave it out, or give the URL of the repository"))
        }
    }
}

fn next(file: &Path, source: &str, mode: Mode) -> String {
    let config =
        if file == Path::new("./gatewright.yaml") { String::new() } else { format!(" --config {}", file.display()) };
    let specs = if is_git(source) {
        "commit Gateways to the repository".to_owned()
    } else {
        format!("put Gateways into {source}")
    };
    let last = match mode {
        Mode::Report => format!("gatewright run{config}   reports what differs, again and again"),
        Mode::Apply => format!("gatewright sync{config}  applies them"),
    };
    format!(
        "wrote {}\nNow {specs}, then\n  gatewright plan{config}  shows what would change on the cluster\n  {last}\n",
        file.display()
    )
}
