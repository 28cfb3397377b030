//! The messages between the process and the service manager: readiness, watchdog, signals.
//!
//! Nothing here reads the environment: the notify socket and the watchdog interval are handed in. Without them (a
//! terminal, a container) every message goes nowhere and nothing else changes.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::basics::clock::Clock;
use crate::basics::lock::lock;

/// The longest time for which a loop waits at once: one that waits longer looks stuck.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// The longest silence of a loop before it counts as stuck.
pub(crate) const STUCK_AFTER: Duration = Duration::from_mins(1);

/// Tells the service manager what state the process is in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notifier {
    socket: Option<OsString>,
}

impl Notifier {
    /// Takes the value of `$NOTIFY_SOCKET`: a path, or a name in the abstract namespace with a leading `@`.
    pub(crate) fn new(socket: Option<OsString>) -> Self {
        Self { socket: socket.filter(|name| !name.is_empty()) }
    }

    /// Tells that the process is up, or that a reload has ended, whether it succeeded or not.
    pub(crate) fn ready(&self, status: &str) {
        // Each line of a message is an assignment, so a text from elsewhere must not begin another one.
        let status = status.replace(char::is_control, " ");
        self.tell(&[NotifyState::Ready, NotifyState::Status(&status)]);
    }

    /// Tells that a reload has begun; [`Notifier::ready`] must follow.
    ///
    /// The time is part of the same message, as `Type=notify-reload` requires; `Type=notify` ignores it.
    pub(crate) fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => self.tell(&[NotifyState::Reloading, now]),
            Err(error) => tracing::warn!(%error, "cannot tell the service manager about a reload"),
        }
    }

    pub(crate) fn stopping(&self) {
        self.tell(&[NotifyState::Stopping]);
    }

    /// Sends one message. A service manager that does not listen is not worth stopping for.
    fn tell(&self, states: &[NotifyState<'_>]) {
        let Some(name) = &self.socket else { return };
        let lines: Vec<String> = states.iter().map(ToString::to_string).collect();
        if let Err(error) = send(name, lines.join("\n").as_bytes()) {
            tracing::warn!(%error, "cannot notify the service manager");
        }
    }
}

fn send(name: &OsString, message: &[u8]) -> io::Result<()> {
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(message, &address).map(|_| ())
}

/// The loops of the process that move. Every loop that must not stop holds a [`Pulse`] and touches it as it goes round.
#[derive(Clone)]
pub struct Progress {
    clock: Arc<dyn Clock>,
    loops: Arc<Mutex<BTreeMap<u64, Beat>>>,
}

/// When a loop was last seen to move.
struct Beat {
    name: String,
    touched: Duration,
}

/// The sign by which one loop shows that it makes progress. Dropping it says that the loop has ended on purpose; a loop
/// that panics does not say so, and counts as stuck from then on.
pub struct Pulse {
    progress: Progress,
    id: u64,
}

/// A loop that does not move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The name that it was given.
    pub name: String,
    /// The time for which it has been silent.
    pub silent: Duration,
}

impl Progress {
    /// Watches no loop yet. Time that the host sleeps does not count.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, loops: Arc::default() }
    }

    /// Begins to watch a loop, by a name for people.
    pub fn watch(&self, name: &str) -> Pulse {
        let mut loops = lock(&self.loops);
        let id = loops.last_key_value().map_or(0, |(id, _)| id + 1);
        loops.insert(id, Beat { name: name.to_owned(), touched: self.clock.elapsed() });
        Pulse { progress: self.clone(), id }
    }

    /// Returns the loops that have been silent for longer than this.
    pub fn stuck(&self, limit: Duration) -> Vec<Stuck> {
        let now = self.clock.elapsed();
        let beats = lock(&self.loops);
        let silences = beats.values().map(|beat| (beat, now.saturating_sub(beat.touched)));
        silences
            .filter(|(_, silent)| *silent > limit)
            .map(|(beat, silent)| Stuck { name: beat.name.clone(), silent })
            .collect()
    }
}

impl Pulse {
    /// Shows that the loop moves; to be called more often than every half of [`STUCK_AFTER`].
    pub fn touch(&self) {
        let now = self.progress.clock.elapsed();
        if let Some(beat) = lock(&self.progress.loops).get_mut(&self.id) {
            beat.touched = now;
        }
    }

    /// Waits for work that may take long, and shows meanwhile that the loop moves.
    pub(crate) async fn during<F: Future>(&self, work: F) -> F::Output {
        let mut work = pin!(work);
        self.touch();
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = sleep(LONGEST_WAIT) => self.touch(),
            }
        }
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            lock(&self.progress.loops).remove(&self.id);
        }
    }
}

/// Pings the watchdog of the service manager for as long as every loop moves; never returns.
///
/// `watchdog` is the value of `$WATCHDOG_USEC`: when no ping arrives for that long, the process is killed and started
/// again. Pings go out at half of it.
pub(crate) async fn keep_alive(notifier: &Notifier, progress: &Progress, watchdog: Duration) -> Infallible {
    let mut ticks = interval((watchdog / 2).max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let stuck = progress.stuck(STUCK_AFTER);
        if stuck.is_empty() {
            notifier.tell(&[NotifyState::Watchdog]);
        }
        for Stuck { name, silent } in stuck {
            tracing::error!(name, seconds = silent.as_secs(), "a loop is stuck: the watchdog gets no ping");
        }
    }
}

/// The request that a signal makes of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGTERM or SIGINT: finish what cannot be left half done, and exit.
    Stop,
    /// SIGHUP: read the configuration again.
    Reload,
}

/// The signals sent to the process; while this exists they do nothing by themselves.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Stream,
    interrupt: Stream,
    hang_up: Stream,
}

/// The process cannot listen for signals.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen for signals")]
pub(crate) struct SignalError(#[source] io::Error);

impl Signals {
    /// Begins to listen. Must be called within a runtime.
    pub(crate) fn new() -> Result<Self, SignalError> {
        let listen = |kind| signal(kind).map_err(SignalError);
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal. Nothing is lost when the wait is given up.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => Signal::Stop,
            _ = self.interrupt.recv() => Signal::Stop,
            _ = self.hang_up.recv() => Signal::Reload,
        }
    }
}

#[cfg(test)]
mod tests;
