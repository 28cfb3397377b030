//! The `gatewright` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    gatewright::main_with(gatewright_packs::all())
}
