//! The unit is one that systemd accepts, and it leaves the daemon nothing that it does not need.

use std::path::Path;
use std::process::{Command, Output};

const UNIT: &str = include_str!("../../systemd/gatewright.service");

/// Where packages and the README put the program.
const INSTALLED: &str = "/usr/local/bin/gatewright";

/// The exposure that the unit may have at most, on systemd's scale from 0 to 10.
const MOST_EXPOSED: f64 = 1.5;

/// Returns what `systemd-analyze` says about the unit with the program that was built.
fn check(arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let unit = folder.path().join("gatewright.service");
    assert!(UNIT.contains(&format!("ExecStart={INSTALLED} run ")), "the unit starts the installed program");
    let text = UNIT.replace(INSTALLED, env!("CARGO_BIN_EXE_gatewright"));
    std::fs::write(&unit, text).expect("there is room for a file");
    analyze(arguments, &unit)
}

#[expect(clippy::disallowed_methods, reason = "systemd-analyze is the judge of units")]
fn analyze(arguments: &[&str], unit: &Path) -> Output {
    let mut command = Command::new("systemd-analyze");
    command.args(arguments).arg(unit).env("LC_ALL", "C.UTF-8");
    command.output().expect("systemd-analyze is installed: the unit cannot be checked without it")
}

#[test]
fn systemd_accepts_the_unit_without_a_word() {
    let output = check(&["verify", "--man=no"]);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaints}");
    assert!(!complaints.contains("gatewright"), "{complaints}");
}

#[test]
fn the_unit_is_hardened() {
    let output = check(&["security", "--offline=true", "--no-pager"]);
    let report = String::from_utf8_lossy(&output.stdout);
    let verdict = report.lines().find_map(|line| line.split_once("exposure level for gatewright.service: "));
    let exposure = verdict.and_then(|(_, rest)| rest.split(' ').next()).and_then(|number| number.parse::<f64>().ok());
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(exposure.is_some_and(|exposure| exposure <= MOST_EXPOSED), "{report}{complaints}");
}
