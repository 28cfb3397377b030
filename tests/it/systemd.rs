//! The units are ones that systemd accepts, and they leave the program nothing that it does not need.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

const UNIT: &str = include_str!("../../systemd/gatewright.service");

const REPORT: &str = include_str!("../../systemd/gatewright-report.service");

const TIMER: &str = include_str!("../../systemd/gatewright-report.timer");

/// The beginning of a command. Without a folder it fits packages, which have the program in `/usr/bin`, and whoever has
/// put it into `/usr/local/bin`.
const STARTED: &str = "ExecStart=gatewright ";

/// The exposure that a unit may have at most, on systemd's scale from 0 to 10.
const MOST_EXPOSED: f64 = 1.5;

/// Returns what `systemd-analyze` says about a unit, beside the others and with the program that was built.
fn check(arguments: &[&str], unit: &str) -> Output {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    for (name, text, does) in
        [("gatewright.service", UNIT, "run "), ("gatewright-report.service", REPORT, "sync --detailed-exitcode ")]
    {
        assert!(text.contains(&format!("{STARTED}{does}")), "the unit starts the installed program");
        let text = text.replace(STARTED, concat!("ExecStart=", env!("CARGO_BIN_EXE_gatewright"), " "));
        std::fs::write(folder.path().join(name), text).expect("there is room for a file");
    }
    std::fs::write(folder.path().join("gatewright-report.timer"), TIMER).expect("there is room for a file");
    analyze(arguments, &folder.path().join(unit))
}

#[expect(clippy::disallowed_methods, reason = "systemd-analyze is the judge of units")]
fn analyze(arguments: &[&str], unit: &Path) -> Output {
    let mut command = Command::new("systemd-analyze");
    command.args(arguments).arg(unit).env("LC_ALL", "C.UTF-8");
    command.output().expect("systemd-analyze is installed: the unit cannot be checked without it")
}

#[test]
fn systemd_accepts_the_units_without_a_word() {
    for unit in ["gatewright.service", "gatewright-report.service", "gatewright-report.timer"] {
        let output = check(&["verify", "--man=no"], unit);
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{complaints}");
        assert!(!complaints.contains("gatewright"), "{complaints}");
    }
}

#[test]
fn the_units_are_hardened() {
    for unit in ["gatewright.service", "gatewright-report.service"] {
        let output = check(&["security", "--offline=true", "--no-pager"], unit);
        let report = String::from_utf8_lossy(&output.stdout);
        let verdict = report.lines().find_map(|line| line.split_once(&format!("exposure level for {unit}: ")));
        let exposure =
            verdict.and_then(|(_, rest)| rest.split(' ').next()).and_then(|number| number.parse::<f64>().ok());
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(exposure.is_some_and(|exposure| exposure <= MOST_EXPOSED), "{report}{complaints}");
    }
}

#[test]
fn the_timer_leaves_no_more_to_a_round_than_the_daemon_has() {
    let hardening = |unit: &'static str| -> BTreeSet<&'static str> {
        let after = unit.split_once("\nAmbientCapabilities=").expect("it is hardened").1;
        let lines = after.split("\n[Install]").next().unwrap_or_default().lines();
        lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
    };
    assert_eq!(hardening(REPORT), hardening(UNIT));
    let is_set = |unit: &str, line: &str| unit.lines().any(|its| its == line);
    for line in ["User=gatewright", "UMask=0077", "StateDirectory=gatewright", "StateDirectoryMode=0700"] {
        assert!(is_set(UNIT, line) && is_set(REPORT, line), "{line}");
    }
    assert!(is_set(REPORT, "SuccessExitStatus=2"), "that something differs is no failure");
    assert!(is_set(TIMER, "Persistent=true"));
}

#[test]
fn the_units_bound_the_memory() {
    for unit in [UNIT, REPORT] {
        for setting in ["MemoryHigh=", "MemoryMax=", "OOMPolicy=continue"] {
            assert!(unit.lines().any(|line| line.starts_with(setting)), "{setting}");
        }
    }
}
