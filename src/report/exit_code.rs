//! Exit codes: what a report means for the script that asked for it.

use gatewright_engine::plan::refusal::{Reason, Severity};
use gatewright_engine::problem::Scope;

use super::{ClusterReport, ClusterState, Mode, Report};

impl Report {
    /// Returns the exit code: 1 failed, 3 held, 4 a cluster unreachable, else 0; the first in this order.
    pub fn exit_code(&self) -> u8 {
        let is_broken = self.problems.iter().any(|report| report.problem.scope != Scope::Warning);
        let codes: Vec<u8> =
            self.clusters.values().map(ClusterReport::exit_code).chain(is_broken.then_some(1)).collect();
        [1, 3, 4].into_iter().find(|code| codes.contains(code)).unwrap_or(0)
    }

    /// Returns the exit code of a diff: 2 something cannot be compared, 3 somebody else has it, 4 a cluster unreachable, 1
    /// something differs, else 0; the first in this order. What only waits for a person is compared all the same.
    pub fn diff_exit_code(&self, differs: bool) -> u8 {
        let is_broken = self.problems.iter().any(|report| report.problem.scope != Scope::Warning);
        let codes = self.clusters.values().flat_map(ClusterReport::diff_codes).chain(is_broken.then_some(2));
        let codes: Vec<u8> = codes.chain(differs.then_some(1)).collect();
        [2, 3, 4, 1].into_iter().find(|code| codes.contains(code)).unwrap_or(0)
    }

    /// Returns the exit code with more detail: 3 also if the sync is suspended, and 2 if something differs or would be
    /// changed; of several the first of 1, 3, 4, 2, 0.
    pub fn detailed_exit_code(&self) -> u8 {
        match self.exit_code() {
            0 | 4 if self.suspended.is_some() => 3,
            0 if self.mode != Mode::Apply && self.has_changes() => 2,
            code => code,
        }
    }
}

impl ClusterReport {
    fn diff_codes(&self) -> Vec<u8> {
        let reasons = self.refusals.iter().map(|refusal| &refusal.reason);
        let reasons = reasons.filter(|reason| !matches!(reason, Reason::Held(_)));
        let weights = reasons.map(|reason| if weight(reason) == 1 { 2 } else { weight(reason) });
        let of_state = match self.state {
            ClusterState::Unreachable => 4,
            ClusterState::Failed | ClusterState::Stopped | ClusterState::Unknown => 2,
            ClusterState::Done
            | ClusterState::Planned
            | ClusterState::Compared
            | ClusterState::Held
            | ClusterState::Suspended => 0,
        };
        weights.chain([of_state]).collect()
    }

    /// Returns the exit code of what a report says of a cluster.
    pub(crate) fn exit_code(&self) -> u8 {
        let is_unhealthy = !self.is_well();
        let codes: Vec<u8> = self.refusals.iter().map(|refusal| weight(&refusal.reason)).collect();
        match self.state {
            ClusterState::Unreachable => 4,
            ClusterState::Failed | ClusterState::Stopped | ClusterState::Unknown => 1,
            _ if is_unhealthy || codes.contains(&1) => 1,
            ClusterState::Held | ClusterState::Suspended => 3,
            _ if codes.contains(&3) || !self.holds.is_empty() => 3,
            ClusterState::Done | ClusterState::Planned | ClusterState::Compared => 0,
        }
    }
}

/// Returns what a refusal means for the exit code: something is wrong (1), we were careful (3), or all is well (0).
fn weight(reason: &Reason) -> u8 {
    match (reason, reason.severity()) {
        (Reason::DeletedAgain(_), _) | (_, Severity::Failed) => 1,
        (Reason::Unmarked | Reason::Held(_), _) | (_, Severity::Refused) => 3,
        (_, Severity::Kept | Severity::Held) => 0,
    }
}
