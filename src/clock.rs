//! The one place that tells the time, handed to everything that needs it so that tests can decide what time it is.

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// Returns the time of day, for schedules and reports.
    fn now(&self) -> Timestamp;

    /// Returns the time since some fixed moment; it never goes backwards.
    fn elapsed(&self) -> Duration;
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
}
