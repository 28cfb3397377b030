//! The state machine of one sync's rounds: when the next one starts, and why.
//!
//! It waits for nothing and starts nothing. Between two rounds its owner asks [`Timer::poll`], and tells it when a
//! round starts and how it ended; nudges may come at any time. All times are computed from timestamps, so that a host
//! that slept and a clock that was set are noticed at the next question, at most [`LONGEST_WAIT`] later.
//!
//! The rules, which users see:
//! - The interval counts from the end of a round. A round that takes longer than the interval delays the next one;
//!   rounds never pile up, and any number of missed rounds is one round.
//! - The first round of an interval comes within [`SPLAY`] of the start; a cron pattern has no round at the start.
//! - A failed round is tried again after 30 s, then 60 s and so on, up to 15 min, but never later than the regular
//!   round. With a cron pattern also never after the window: what did not work by then waits for the next one.
//! - A nudge starts a round at once, also one that waits for another attempt. Any number of nudges before a round starts
//!   is one round, any number while it runs is one more.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::process::service::LONGEST_WAIT;
use crate::schedule::{Calendar, Rule, Schedule};

/// The time over which the first rounds of a fleet are spread after a start.
pub(crate) const SPLAY: Duration = Duration::from_secs(10);

/// The wait after the first failure; it doubles with each further one.
pub(crate) const FIRST_RETRY: Duration = Duration::from_secs(30);

/// The longest wait after a failure.
pub(crate) const LONGEST_RETRY: Duration = Duration::from_mins(15);

/// The most that a clock may be set back without a second round for times that already had theirs.
const CLOCK_TOLERANCE: Duration = Duration::from_mins(1);

/// The outcome of a round, as far as the next one depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It did what could be done. What a guard holds is done too: trying again would hold it again.
    Done,
    /// Something did not work that may work next time: a cluster or source did not answer, a write failed.
    Failed,
}

/// The reason why a round starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The daemon started.
    Start,
    /// It is time.
    Schedule,
    /// The last round failed.
    Retry,
    /// The source has a new revision.
    Revision,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::Schedule => "schedule",
            Self::Retry => "retry",
            Self::Revision => "revision",
        })
    }
}

/// The action to take now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Next {
    /// Start a round.
    Start(Cause),
    /// Ask again after this time, or after a nudge.
    Wait(Duration),
}

/// Decides when the rounds of one sync start.
#[derive(Clone, Debug)]
pub(crate) struct Timer {
    schedule: Schedule,
    /// The name of the sync, from which all spreading is drawn.
    name: String,
    /// The number of rounds that have ended; each draws another jitter.
    rounds: u64,
    /// The number of rounds that failed in a row.
    failures: u32,
    /// Whether there was a nudge since the last round started.
    is_nudged: bool,
    /// Times of a cron pattern up to this one have had their round.
    due_since: Timestamp,
    /// When the last round ended, or the timer was made.
    ended: Timestamp,
    /// The end of the window in which a cron round may be tried again.
    closing: Timestamp,
}

impl Timer {
    /// Makes the timer of a sync that is not running.
    ///
    /// `last` is when a round last started before the daemon did, if that is known: with it a cron round whose time
    /// passed while the daemon was down is made up for within the window.
    pub(crate) fn new(schedule: Schedule, name: &str, now: Timestamp, last: Option<Timestamp>) -> Self {
        let due_since = last.map_or(now, |last| last.min(now));
        Self {
            schedule,
            name: name.to_owned(),
            rounds: 0,
            failures: 0,
            is_nudged: false,
            due_since,
            ended: now,
            closing: now,
        }
    }

    /// Makes a round due at once, because the source has a new revision; while one is running, when it ends. It means
    /// nothing to a cron pattern, whose times are the only ones.
    ///
    /// What failed so far is forgotten: whoever nudges has changed something.
    pub(crate) fn nudge(&mut self) {
        if matches!(self.schedule.0, Rule::Interval { .. }) {
            self.demand();
        }
    }

    /// Has a round start as soon as the last one is over, because a person asks for it.
    pub(crate) fn demand(&mut self) {
        self.is_nudged = true;
        self.failures = 0;
    }

    /// Tells what to do now. To be asked between rounds only.
    pub(crate) fn poll(&mut self, now: Timestamp) -> Next {
        self.heed_clock(now);
        let (due, cause) = self.next(now);
        match Duration::try_from(now.duration_until(due)) {
            Ok(wait) if !wait.is_zero() => Next::Wait(wait.min(LONGEST_WAIT)),
            Ok(_) | Err(_) => Next::Start(cause),
        }
    }

    /// Returns when the next round starts if nothing happens until then, and why; for reports.
    pub(crate) fn next(&self, now: Timestamp) -> (Timestamp, Cause) {
        if self.is_nudged {
            return (now, Cause::Revision);
        }
        let (regular, cause) = self.regular(now);
        match self.retry(now) {
            Some(retry) if retry < regular => (retry, Cause::Retry),
            _ => (regular, cause),
        }
    }

    /// Records that a round starts: nudges from now on ask for another one.
    pub(crate) fn start(&mut self, now: Timestamp, cause: Cause) {
        if let Rule::Cron(calendar) = &self.schedule.0 {
            match cause {
                Cause::Retry => {}
                Cause::Schedule => {
                    let time = calendar.after(self.horizon(calendar, now)).unwrap_or(now);
                    self.closing = later(time, calendar.window);
                    self.failures = 0;
                }
                Cause::Start | Cause::Revision => self.closing = later(now, calendar.window),
            }
        }
        self.due_since = now;
        self.is_nudged = false;
    }

    /// Records how the round ended that was started last.
    pub(crate) fn finish(&mut self, now: Timestamp, outcome: Outcome) {
        self.ended = now;
        self.rounds += 1;
        self.failures = match outcome {
            Outcome::Done => 0,
            Outcome::Failed => self.failures.saturating_add(1),
        };
    }

    /// Starts counting again from a clock that was set back: what lies in its future cannot have happened.
    fn heed_clock(&mut self, now: Timestamp) {
        let limit = later(now, CLOCK_TOLERANCE);
        if self.due_since > limit || self.ended > limit {
            self.due_since = now;
            self.ended = now;
        }
    }

    fn regular(&self, now: Timestamp) -> (Timestamp, Cause) {
        match &self.schedule.0 {
            Rule::Interval { .. } if self.rounds == 0 => {
                (later(self.ended, share(SPLAY, draw(&self.name, "start"))), Cause::Start)
            }
            Rule::Interval { every, jitter } => {
                (later(self.ended, spread(*every, *jitter, &self.name, self.rounds)), Cause::Schedule)
            }
            Rule::Cron(calendar) => {
                let Some(time) = calendar.after(self.horizon(calendar, now)) else {
                    return (Timestamp::MAX, Cause::Schedule);
                };
                let spread = share(calendar.jitter, draw(&self.name, time.as_second()));
                (later(time, spread), Cause::Schedule)
            }
        }
    }

    /// Returns the moment up to which times of a cron pattern have no round any more: they had theirs, or it is too
    /// late for it.
    fn horizon(&self, calendar: &Calendar, now: Timestamp) -> Timestamp {
        self.due_since.max(now.checked_sub(calendar.window).unwrap_or(Timestamp::MIN))
    }

    fn retry(&self, now: Timestamp) -> Option<Timestamp> {
        let doublings = self.failures.checked_sub(1)?;
        let wait = FIRST_RETRY.saturating_mul(2_u32.saturating_pow(doublings)).min(LONGEST_RETRY);
        let retry = later(self.ended, wait);
        let allowed = match &self.schedule.0 {
            Rule::Interval { .. } => true,
            Rule::Cron(_) => retry.max(now) <= self.closing,
        };
        allowed.then_some(retry)
    }
}

/// Adds a span to a moment; beyond the end of time is the end of time.
pub(crate) fn later(moment: Timestamp, span: Duration) -> Timestamp {
    moment.checked_add(span).unwrap_or(Timestamp::MAX)
}

/// Returns a span that is longer or shorter by at most `jitter`: always the same one for the same name and occasion.
pub(crate) fn spread(span: Duration, jitter: Duration, name: &str, occasion: impl fmt::Display) -> Duration {
    span.saturating_sub(jitter).saturating_add(share(jitter.saturating_mul(2), draw(name, occasion)))
}

/// Draws a number from all that there are: always the same one for the same sync and occasion.
pub(crate) fn draw(name: &str, occasion: impl fmt::Display) -> u64 {
    let digest = Sha256::digest(format!("{name}/{occasion}"));
    digest.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// Returns the share of a span that a drawn number stands for, from nothing to just below the whole.
pub(crate) fn share(span: Duration, drawn: u64) -> Duration {
    // The product of a number below 2^64 and another one has at most 128 bits, so nothing is lost.
    let nanoseconds = (span.as_nanos().min(u128::from(u64::MAX)) * u128::from(drawn)) >> 64;
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
