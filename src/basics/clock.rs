//! The one place that tells the time, handed to everything that needs it so that tests can decide what time it is.

use std::fs;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Tells the time.
pub trait Clock: Send + Sync {
    /// Returns the time of day, for schedules and reports.
    fn now(&self) -> Timestamp;

    /// Returns the time since some fixed moment; it never goes backwards.
    fn elapsed(&self) -> Duration;

    /// Returns how long the machine has been up, sleep included, where that can be known.
    fn boot(&self) -> Option<Boot> {
        None
    }

    /// Returns the time since some fixed moment, the time included in which the machine has slept, where that can be known.
    fn uptime(&self) -> Duration {
        self.boot().and_then(|boot| Duration::try_from(boot.up).ok()).unwrap_or_else(|| self.elapsed())
    }
}

/// The uptime of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot {
    /// The name of this start of the machine; empty where the sandbox of a service hides it.
    pub id: String,
    /// The time since that start.
    pub up: SignedDuration,
}

impl Boot {
    /// Returns the time since another look at the same machine; `None` if it was started again.
    pub fn since(&self, before: &Self) -> Option<SignedDuration> {
        let may_be_same = self.id == before.id || self.id.is_empty() || before.id.is_empty();
        (may_be_same && self.up >= before.up).then(|| self.up - before.up)
    }
}

/// The clock of the machine.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// Starts counting.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn new() -> Self {
        Self { started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn boot(&self) -> Option<Boot> {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let up = clock_gettime(ClockId::CLOCK_BOOTTIME).ok()?;
        Some(Boot { id: id.trim().to_owned(), up: SignedDuration::try_from(Duration::from(up)).ok()? })
    }

    fn uptime(&self) -> Duration {
        clock_gettime(ClockId::CLOCK_BOOTTIME).map_or_else(|_| self.elapsed(), Duration::from)
    }
}

/// A clock that goes with the time of the runtime, for simulations: where that is paused, it goes on from one timer to the
/// next whenever there is nothing else to do.
#[derive(Debug)]
pub struct SimulatedClock {
    started: tokio::time::Instant,
    day: Timestamp,
}

impl SimulatedClock {
    /// Starts counting, at this time of day. Must be called within a runtime.
    pub fn starting_at(day: Timestamp) -> Self {
        Self { started: tokio::time::Instant::now(), day }
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        self.day.checked_add(self.elapsed()).unwrap_or(Timestamp::MAX)
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

/// Returns the CPU time that this process has used, in all its threads; zero where the system does not say it.
pub(crate) fn process_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}
