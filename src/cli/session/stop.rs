//! The end of a command by a signal.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Session;
use crate::cli::{EXIT_FAILED, Failure, complain};
use crate::process::service::Signals;

impl Session<'_> {
    /// Returns what is told when a signal asks for the end.
    pub(in crate::cli) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Waits; fails as soon as a signal asks for the end.
    pub(in crate::cli) fn pause(&self, time: Duration) -> Result<(), Failure> {
        self.block_on(async {
            tokio::select! {
                () = tokio::time::sleep(time) => {}
                () = self.stop.cancelled() => {}
            }
        });
        if self.is_stopped() { Err(stopped()) } else { Ok(()) }
    }

    /// Tells whether a signal has asked for the end.
    pub(in crate::cli) fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }
}

/// Finishes the step that is under way, so that the inventory is kept true. Who asks twice does not get that: then
/// the inventory still holds everything that exists, because it is written ahead.
pub(super) async fn stop_on_signal(mut signals: Signals, stop: CancellationToken) {
    signals.next().await;
    stop.cancel();
    complain("gatewright: stopping after the step that is under way\n");
    signals.next().await;
    std::process::exit(EXIT_FAILED.into());
}

pub(in crate::cli) fn stopped() -> Failure {
    let message = "stopped by a signal, nothing was changed".to_owned();
    Failure { code: EXIT_FAILED, message, hint: None }
}
