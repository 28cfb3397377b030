//! `gatewright history`.

use gatewright_engine::problem::counted;

use super::format::ListFormat;
use super::report::chosen::unreadable;
use super::watch::Watch;
use super::{Context, Failure, check_names, complain};
use crate::basics::sanitize;
use crate::config::Config;
use crate::history::journal;
use crate::report::Report;
use crate::report::folded::Printed;

/// List the rounds that changed something or said something new, the newest first.
///
/// Each line ends with the file of the whole report, as JSON. Beside it, with the same name, it has the forms that
/// `reports.formats` says, .txt for people if nothing else. -o name prints the names of the runs, as `undo` takes them. Exit codes: 0, or 64 usage or configuration.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The sync; all of them if absent.
    #[arg(value_name = "SYNC")]
    sync: Option<String>,
    /// The most rounds that are listed.
    #[arg(long, short = 'n', value_name = "NUMBER", default_value_t = 20,
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    limit: usize,
    /// The output format; as JSON or YAML these are whole reports.
    #[arg(long = "output", short = 'o', visible_alias = "format", value_name = "FORMAT", default_value = "text")]
    format: ListFormat,
    #[command(flatten)]
    watch: Watch,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let config = context.load_with_state()?;
    args.watch.print(context, &config, |_| shown(args, &config))
}

/// Returns what there is to be seen now.
fn shown(args: &Args, config: &Config) -> Result<String, Failure> {
    let mut out = String::new();
    let mut history = journal::history(&config.reports_dir, args.sync.as_deref()).take(args.limit).peekable();
    if history.peek().is_none() {
        // A sync that is configured no more may still have a past.
        check_names("sync", &args.sync, &config.settings.syncs)?;
        complain("gatewright: there are no reports of rounds yet\n");
    }
    for (path, report) in history {
        let Some(report) = report else {
            args.watch.tell_once(&format!("gatewright: {}", unreadable(&path)));
            continue;
        };
        let shown = match (args.format, args.format.data()) {
            (_, Some(data)) => data.text(&Printed::of(&report)),
            (ListFormat::Name, None) => sanitize::row(&report.run),
            (_, None) => sanitize::row(&format!("{}  {}", line(&report), path.display())),
        };
        out += &shown;
    }
    Ok(out)
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
