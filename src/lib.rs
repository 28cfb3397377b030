//! gatewright: the daemon and its command line, around the engine.
//!
//! Each folder may use those below it, never those above (`ARCHITECTURE.md` has the list, a test holds it). In reading
//! order: [`config`] says what is wanted where, [`source`] yields snapshots, [`cluster`] is what they are applied to,
//! [`desired`] is what a sync wants on each cluster. [`reconcile`] runs rounds. [`report`] is what came of one, [`history`]
//! keeps it. `daemon` repeats rounds on a `schedule`, [`cli`] runs them on request.

pub mod basics;
pub mod cli;
pub mod cluster;
pub mod config;
mod daemon;
mod dashboard;
pub mod desired;
pub mod history;
mod hosts;
pub mod inventory;
mod process;
pub mod reconcile;
pub mod report;
mod schedule;
pub mod shared;
mod simulation;
pub mod source;
pub mod state;
mod webhooks;

use std::process::ExitCode;

use gatewright_engine::pack::builtin::Builtin;

/// Runs the command line of this process, and with it the daemon, with these packs: those of `gatewright_packs::all`,
/// and others that are written in Rust. Packs that are folders need no program of their own.
pub fn main_with(packs: Vec<Builtin>) -> ExitCode {
    ExitCode::from(cli::main(packs))
}
