//! `gatewright rollout explain`: why each cluster waits, from what its last round has found.

use std::collections::BTreeMap;

use gatewright_engine::text::{count, listed};

use super::MOST;
use crate::basics::sanitize;
use crate::cli::print;
use crate::config::Config;
use crate::history::journal;
use crate::reconcile::rollout::record::Ledger;
use crate::state::State;

/// The reason of a hold, and what to do: the units and clusters for which both are the same.
type Reasons = BTreeMap<(String, String), (Vec<String>, Vec<String>)>;

/// Prints it.
pub(super) fn run(config: &Config, state: &State, (sync, ledger): (&str, &Ledger)) {
    let Some(settings) = config.settings.syncs.get(sync) else { return };
    let (mut reasons, mut unknown) = (Reasons::new(), Vec::new());
    for cluster in config.clusters_of(settings).into_keys() {
        let Some(mut report) = journal::last(state, sync, cluster) else {
            unknown.push(cluster);
            continue;
        };
        let holds = report.clusters.remove(cluster).map(|report| report.holds).unwrap_or_default();
        for hold in holds.into_iter().filter(|hold| hold.guard.is_of_rollout()) {
            let told = (format!("{}: {}", hold.guard, hold.message), hold.hint.clone());
            let (units, clusters) = reasons.entry(told).or_default();
            for unit in hold.unit.iter().chain(&hold.units).map(ToString::to_string) {
                if !units.contains(&unit) {
                    units.push(unit);
                }
            }
            if !clusters.iter().any(|name| name == cluster) {
                clusters.push(cluster.to_owned());
            }
        }
    }
    let paused = ledger.paused.as_ref().map(|pause| format!(", {}", pause.words())).unwrap_or_default();
    let open = ledger.units.iter().filter(|record| record.is_open()).count();
    let open = if open == 0 { "nothing is under way".to_owned() } else { format!("{} under way", count(open, "unit")) };
    let mut lines = vec![format!("sync {sync}: {open}{paused}")];
    for ((reason, hint), (units, clusters)) in &reasons {
        let (on, of) = (count(clusters.len(), "cluster"), count(units.len(), "unit"));
        lines.push(format!("  on {on} ({}), {of} ({}):", listed(clusters, MOST), listed(units, MOST)));
        lines.push(format!("    {reason}"));
        lines.push(format!("    {hint}"));
    }
    if reasons.is_empty() {
        lines.push("  no cluster waits for another one".to_owned());
    }
    if !unknown.is_empty() {
        lines.push(format!("  never looked at: {}", listed(&unknown, MOST)));
    }
    print(&lines.iter().map(|line| sanitize::row(line)).collect::<String>());
}
