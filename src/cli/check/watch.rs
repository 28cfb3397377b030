//! Checking again whenever specs change.

use std::io::{self, IsTerminal as _};
use std::path;
use std::sync::mpsc;

use gatewright_engine::problem::counted;

use super::{Args, once};
use crate::cli::watch::CLEAR;
use crate::cli::{Context, Failure, emit, print};
use crate::source::watch::watch;

/// Checks now and after each change, until somebody ends it.
///
/// What cannot be read says so and is waited for: a folder may be gone for a moment.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let (sender, changes) = mpsc::channel();
    let mut watchers = Vec::new();
    for path in &args.paths {
        let sender = sender.clone();
        // The paths of events are absolute.
        let path = path::absolute(path).map_err(|error| Failure::of(&error))?;
        let tell = move || {
            // While this command ends nobody listens any more.
            sender.send(()).unwrap_or_default();
        };
        watchers.push(watch(&path, tell).map_err(|error| Failure::of(&error))?);
    }
    for number in 1_u64.. {
        if io::stdout().is_terminal() {
            emit(CLEAR);
        }
        let said = match once(context, args) {
            Ok(checked) => counted(checked.findings.iter().map(|finding| &finding.problem)),
            Err(failure) => {
                failure.tell();
                "nothing could be checked".to_owned()
            }
        };
        let time = context.clock.now().strftime("%H:%M:%S UTC");
        print(&format!("{time}: run {number}: {said}; waiting for changes\n"));
        if changes.recv().is_err() {
            break;
        }
        // Several paths may have changed at once.
        changes.try_iter().for_each(drop);
    }
    drop(watchers);
    Ok(0)
}
