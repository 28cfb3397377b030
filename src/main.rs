//! The `gatewright` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(gatewright::cli::main())
}
