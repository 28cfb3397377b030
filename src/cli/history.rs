//! `gatewright history`.

use gatewright_engine::text::count;

use super::{Context, Failure, print};
use crate::journal;
use crate::report::Report;

/// Lists the rounds that changed something or said something new, the newest first.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The sync; all of them if absent.
    #[arg(value_name = "SYNC")]
    sync: Option<String>,
    /// How many.
    #[arg(long, short = 'n', value_name = "NUMBER", default_value_t = 20)]
    limit: usize,
    /// Print whole reports as JSON, one a line.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: super::plan::Format,
}

/// Runs the command.
pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let config = context.load()?;
    let history = journal::history(&config.reports_dir, args.sync.as_deref());
    for (path, report) in history.iter().take(args.limit) {
        match args.format {
            super::plan::Format::Text => print(&format!("{}  {}\n", line(report), path.display())),
            super::plan::Format::Json => super::plan::show(context, report, args.format, false),
        }
    }
    Ok(0)
}

fn line(report: &Report) -> String {
    let counts: Vec<String> =
        report.counts().into_iter().map(|(action, number)| format!("{action} {number}")).collect();
    let did = if counts.is_empty() { "no changes".to_owned() } else { counts.join(", ") };
    let problems = match report.problems.len() {
        0 => String::new(),
        number => format!(", {}", count(number, "problem")),
    };
    let time = report.started.strftime("%F %T");
    format!("{time}  {}  {}  {did}{problems}  exit {}", report.sync, report.revision, report.exit_code())
}
