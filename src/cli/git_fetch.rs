//! `gatewright git-fetch`: what this program starts itself as, to talk to a git server.

use std::io::{self, BufRead as _, Read};
use std::thread;

use super::Failure;
use crate::source::git::worker;

/// Fetch a commit into a mirror; the daemon and the other commands start this themselves.
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(super) struct Args {}

/// Runs the command.
pub(super) fn run(_: &Args) -> Result<u8, Failure> {
    let mut line = Vec::new();
    let mut input = io::stdin();
    input.lock().read_until(b'\n', &mut line).map_err(|error| Failure::of(&error))?;
    // Nothing more comes: the end of the input is the end of the one who waits for the answer.
    thread::spawn(move || {
        drop(input.read(&mut [0]));
        std::process::exit(1)
    });
    worker::serve(&mut line.as_slice(), &mut io::stdout()).map_err(|error| Failure::of(&error))?;
    Ok(0)
}
