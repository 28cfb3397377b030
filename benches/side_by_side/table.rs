//! The result, as a Markdown table.

use std::fmt::Write as _;
use std::fs;

use crate::cost::Cost;
use crate::peers::{Peer, Step};

/// One measurement.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) gateways: usize,
    pub(crate) peer: Peer,
    pub(crate) step: Step,
    pub(crate) cost: Cost,
}

/// Writes all measurements; those that belong together stand together.
pub(crate) fn write(rows: &[Row]) -> String {
    let mut text = format!("{}\n\n", machine());
    text.push_str(
        "| objects | step | peer | requests | by verb | API server CPU s | own CPU s | peak MB | wall s |\n\
         |---:|---|---|---:|---|---:|---:|---:|---:|\n",
    );
    let mut sorted: Vec<&Row> = rows.iter().collect();
    sorted.sort_by_key(|row| (row.gateways, Step::ALL.iter().position(|step| *step == row.step)));
    for row in sorted {
        line(&mut text, row);
    }
    text
}

fn line(text: &mut String, Row { gateways, peer, step, cost }: &Row) {
    let (peer, step) = (format!("{peer:?}").to_lowercase(), format!("{step:?}").to_lowercase());
    let verbs: Vec<String> = cost.requests.iter().map(|(verb, count)| format!("{verb} {count}")).collect();
    let requests: u64 = cost.requests.values().sum();
    let line = format!(
        "| {} | {step} | {peer} | {requests} | {} | {:.2} | {:.2} | {} | {:.1} |",
        4 * gateways,
        verbs.join(", "),
        cost.server_cpu,
        cost.cpu,
        cost.peak / 1_000_000,
        cost.wall,
    );
    writeln!(text, "{line}").expect("text can be written to");
}

/// Describes the machine as it is now.
pub(crate) fn machine() -> String {
    format!("{} CPUs, load average {}", cpus(), load())
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(0, std::num::NonZero::get)
}

/// The walls of a busy machine say little.
fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}
