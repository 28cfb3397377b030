//! `gatewright version`.

use super::emit;

/// Print the version of this program, as `--version` does.
///
/// Exit codes: 0 printed, 64 usage.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// Runs the command.
pub(super) fn run(_: &Args) -> u8 {
    emit(&format!("gatewright {}\n", env!("CARGO_PKG_VERSION")));
    0
}
