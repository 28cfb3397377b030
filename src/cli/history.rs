//! `gatewright history`.

use gatewright_engine::problem::counted;

use super::format::Format;
use super::plan::show;
use super::view::Extent;
use super::{Context, Failure, check_names, complain, others, print};
use crate::history::journal;
use crate::report::Report;

/// List the rounds that changed something or said something new, the newest first.
///
/// Each line ends with the file of the whole report, as JSON. Beside it, with the same name, it has the forms that
/// `reports.formats` says, .txt for people if nothing else. Exit codes: 0, or 64 usage or configuration.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The sync; all of them if absent.
    #[arg(value_name = "SYNC")]
    sync: Option<String>,
    /// The most rounds that are listed.
    #[arg(long, short = 'n', value_name = "NUMBER", default_value_t = 20)]
    limit: usize,
    /// The output format; as JSON or YAML these are whole reports.
    #[arg(long = "output", short = 'o', visible_alias = "format", value_name = "FORMAT", default_value = "text")]
    format: Format,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let config = context.load()?;
    others::looking(context, &config)?;
    let mut history = journal::history(&config.reports_dir, args.sync.as_deref()).take(args.limit).peekable();
    if history.peek().is_none() {
        // A sync that is configured no more may still have a past.
        check_names("sync", &args.sync, &config.settings.syncs)?;
        complain("gatewright: there are no reports of rounds yet\n");
    }
    for (path, report) in history {
        match args.format {
            Format::Text => print(&format!("{}  {}\n", line(&report), path.display())),
            Format::Json | Format::Yaml => show(context, &report, args.format, Extent::default()),
        }
    }
    Ok(0)
}

fn line(report: &Report) -> String {
    let problems = match report.problems.as_slice() {
        [] => String::new(),
        problems => format!(", {}", counted(problems.iter().map(|it| &it.problem))),
    };
    let time = report.started.strftime("%F %T UTC");
    let clusters: Vec<&str> = report.clusters.keys().map(String::as_str).collect();
    let (sync, clusters) = (&report.sync, clusters.join(","));
    let cause = report.cause.as_ref().map(|cause| format!(" ({cause})")).unwrap_or_default();
    let (revision, did, code) = (&report.revision, report.did(), report.exit_code());
    format!("{time}  {sync}  {clusters}  {revision}{cause}  {did}{problems}  exit {code}")
}
