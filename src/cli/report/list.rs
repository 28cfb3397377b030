//! `gatewright report list`.

use gatewright_engine::problem::counted;
use serde_json::{Value, json};

use super::chosen::{name, unreadable};
use crate::cli::format::Format;
use crate::cli::others;
use crate::cli::table::table;
use crate::cli::{Context, EXIT_FAILED, Failure, check_names, complain, complain_line, print};
use crate::history::journal;
use crate::report::status::json_word;
use crate::report::trend::{Gone, Summary};
use crate::report::{ClusterState, Report, named};

/// List the reports that are kept, the newest first: those of rounds that changed something or said something new.
///
/// Exit codes: 0, 1 a file among them is no report, or 64 usage or configuration.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The sync; all of them if absent.
    #[arg(value_name = "SYNC")]
    sync: Option<String>,
    /// The output format.
    #[arg(long = "output", short = 'o', visible_alias = "format", value_name = "FORMAT", default_value = "text")]
    format: Format,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let config = context.load_with_state()?;
    others::looking(context, &config)?;
    let mut rows = Vec::new();
    let mut all = Vec::new();
    let mut code = 0;
    for (path, report) in journal::history(&config.reports_dir, args.sync.as_deref()) {
        let Some(report) = report else {
            complain_line(&format!("gatewright: {}", unreadable(&path)));
            code = EXIT_FAILED;
            continue;
        };
        match args.format.data() {
            None => rows.push(row(&name(&path), &report)),
            Some(_) => all.push(entry(&name(&path), &report)),
        }
    }
    if rows.is_empty() && all.is_empty() && code == 0 {
        // A sync that is configured no more may still have a past.
        check_names("sync", &args.sync, &config.settings.syncs)?;
        complain("gatewright: no reports are kept yet\n");
    }
    match args.format.data() {
        Some(data) => data.print(&json!({"schema": "gatewright.dev/report-list/v1alpha1", "reports": all})),
        None if rows.is_empty() => {}
        None => {
            let header = ["NAME", "SYNC", "CLUSTERS", "MODE", "REVISION", "FINISHED", "SAYS"];
            print(&table(header, &rows));
        }
    }
    Ok(code)
}

fn row(name: &str, report: &Report) -> [String; 7] {
    let clusters: Vec<String> = report.clusters.keys().cloned().collect();
    let clusters = named(&clusters);
    let clusters = clusters.split_once(' ').map_or("", |(_, names)| names);
    let finished = report.finished.strftime("%F %T UTC").to_string();
    let texts = [name, &report.sync, clusters, &json_word(&report.mode), &report.revision, &finished, &says(report)];
    texts.map(|text| crate::basics::sanitize::line(text).into_owned())
}

/// Returns what a report says, in short: what was done, what is wrong, what has come and gone.
fn says(report: &Report) -> String {
    let mut parts = vec![report.did()];
    let is = |state: ClusterState| report.clusters.values().filter(|cluster| cluster.state == state).count();
    for state in [ClusterState::Unreachable, ClusterState::Failed, ClusterState::Held, ClusterState::Stopped] {
        match (is(state), report.clusters.len()) {
            (0, _) => {}
            (_, 1) => parts.push(state.word().to_owned()),
            (number, _) => parts.push(format!("{number} {}", state.word())),
        }
    }
    if report.stale_source.is_some() {
        parts.push("stale source".to_owned());
    }
    if !report.problems.is_empty() {
        parts.push(counted(report.problems.iter().map(|it| &it.problem)));
    }
    let summary = Summary::of(std::slice::from_ref(report));
    for (number, word) in
        [(summary.new, "new"), (summary.still, "still there"), (Gone::number(&summary.resolved), "resolved")]
    {
        if number > 0 && summary.against.is_some() {
            parts.push(format!("{number} {word}"));
        }
    }
    parts.join(", ")
}

fn entry(name: &str, report: &Report) -> Value {
    let summary = Summary::of(std::slice::from_ref(report));
    json!({
        "name": name,
        "sync": report.sync,
        "clusters": report.clusters.keys().collect::<Vec<_>>(),
        "mode": report.mode,
        "revision": report.revision,
        "started": report.started,
        "finished": report.finished,
        "says": says(report),
        "exitCode": report.exit_code(),
        "new": summary.new,
        "still": summary.still,
        "resolved": Gone::number(&summary.resolved),
        "unseen": Gone::number(&summary.unseen),
    })
}
