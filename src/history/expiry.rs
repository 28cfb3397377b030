//! The look for what is too old: at most once in a minute, because after each round of a large fleet it would be a look at
//! the rounds of all clusters.

use std::sync::Mutex;

use jiff::{SignedDuration, Timestamp};

use crate::basics::lock::lock;

/// The least time between two looks.
const INTERVAL: SignedDuration = SignedDuration::from_mins(1);

/// The time of the last look.
#[derive(Debug, Default)]
pub(crate) struct Expiry(Mutex<Option<Timestamp>>);

impl Expiry {
    /// Tells whether it is time to look, and notes that somebody does. A clock that was set back is no reason to wait.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        let mut last = lock(&self.0);
        let is_recent = last.is_some_and(|last| last <= now && now.duration_since(last) < INTERVAL);
        if !is_recent {
            *last = Some(now);
        }
        !is_recent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_due_once_in_a_minute_and_when_the_clock_was_set_back() {
        let expiry = Expiry::default();
        let at = |second| Timestamp::from_second(second).expect("it is a time");
        let due = [100, 130, 160, 219, 220, 90, 91].map(|second| expiry.is_due(at(second)));
        assert_eq!(due, [true, false, true, false, true, true, false]);
    }
}
