//! Syncs that somebody has suspended: no rounds, until they are resumed or the time is over.
//!
//! One small file for each, written whole, so that it can be set beside a running daemon: rounds look before they begin.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::basics::sanitize;
use crate::state::store::Store;
use crate::state::{State, StateError};

/// The suspensions, by sync.
pub(crate) const SUSPENDED: Store<Suspension> = Store::new("suspended");

/// The reason why a sync has no rounds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Suspension {
    /// The reason, in the words of whoever did it.
    pub reason: String,
    /// The name of whoever did it, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Since when.
    pub since: Timestamp,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl Suspension {
    /// Begins one; `time` is how long it lasts, for ever if absent.
    pub fn new(reason: &str, by: Option<&str>, now: Timestamp, time: Option<Duration>) -> Self {
        let end = |time| SignedDuration::try_from(time).ok().and_then(|time| now.checked_add(time).ok());
        let until = time.map(|time| end(time).unwrap_or(Timestamp::MAX));
        Self { reason: reason.to_owned(), by: by.map(str::to_owned), since: now, until }
    }

    /// Says since when, until when and why, in one line whatever somebody gave as the reason.
    pub fn words(&self) -> String {
        let at = |time: &Timestamp| time.strftime("%F %T UTC");
        let until =
            self.until.as_ref().map_or("until it is resumed".to_owned(), |until| format!("until {}", at(until)));
        let by = self.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        let words = format!("suspended{by} since {}, {until}: {}", at(&self.since), self.reason);
        sanitize::line(&words).into_owned()
    }
}

/// Tells whether a sync is suspended at a time. What cannot be read suspends it too, and is an error.
pub(crate) fn of(state: &State, sync: &str, now: Timestamp) -> Result<Option<Suspension>, StateError> {
    let suspension = SUSPENDED.load(state, &[sync])?;
    Ok(suspension.filter(|suspension| suspension.until.is_none_or(|until| now < until)))
}

/// Somebody who waits and shall not any longer once a sync is suspended.
pub struct Watch {
    state: State,
    sync: String,
    is_over: AtomicBool,
    /// The suspension that was there before, whether it was over or not: whoever began all the same is not disturbed.
    before: Option<Suspension>,
}

impl Watch {
    /// Begins to watch.
    pub(crate) fn new(state: &State, sync: &str) -> Self {
        let before = SUSPENDED.read(state, &[sync]);
        Self { state: state.clone(), sync: sync.to_owned(), is_over: AtomicBool::new(false), before }
    }

    /// Looks whether it was suspended since.
    pub(crate) fn look(&self) -> bool {
        let now = SUSPENDED.read(&self.state, &[&self.sync]);
        if now.is_some() && now != self.before {
            self.is_over.store(true, Ordering::Relaxed);
        }
        self.is_over()
    }

    /// Tells whether that was so when somebody looked.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use gatewright_engine::error::Chain;

    use super::*;

    #[test]
    fn a_suspension_ends_by_itself_or_when_it_is_ended() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let state = State::open(folder.path().join("state"));
        let at = |text: &str| text.parse::<Timestamp>().expect("it is a time");
        let (now, later) = (at("2026-11-20T12:00:00Z"), at("2026-11-20T14:00:00Z"));
        assert_eq!(of(&state, "edge", now).ok(), Some(None));
        SUSPENDED.remove(&state, &["edge"]).expect("there is nothing to end");

        let two_hours = Suspension::new("freeze", Some("ada"), now, Some(Duration::from_hours(2)));
        SUSPENDED.write(&state, &["edge"], &two_hours).expect("it is written");
        assert_eq!(of(&state, "edge", now).ok(), Some(Some(two_hours.clone())));
        assert_eq!(of(&state, "other", now).ok(), Some(None));
        assert_eq!(of(&state, "edge", later).ok(), Some(None));
        let words = "suspended by ada since 2026-11-20 12:00:00 UTC, until 2026-11-20 14:00:00 UTC: freeze";
        assert_eq!(two_hours.words(), words);

        let forever = Suspension::new("freeze", None, now, None);
        SUSPENDED.write(&state, &["edge"], &forever).expect("it is written");
        assert_eq!(of(&state, "edge", Timestamp::MAX).ok(), Some(Some(forever)));
        SUSPENDED.remove(&state, &["edge"]).expect("it is ended");
        assert_eq!(of(&state, "edge", now).ok(), Some(None));
    }

    #[test]
    fn whoever_waits_is_told_of_a_suspension_that_was_not_there_before() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let state = State::open(folder.path());
        let before = Watch::new(&state, "edge");
        assert!(!before.look());
        let suspension = Suspension::new("freeze", None, Timestamp::UNIX_EPOCH, None);
        SUSPENDED.write(&state, &["edge"], &suspension).expect("it is written");
        assert!(!before.is_over(), "nobody has looked yet");
        assert!(before.look() && before.is_over());
        // One that was there before, also if it is over, disturbs nobody, and hides no other.
        let later = Watch::new(&state, "edge");
        assert!(!later.look());
        let again = Suspension { since: Timestamp::from_second(60).expect("it is a time"), ..suspension };
        SUSPENDED.write(&state, &["edge"], &again).expect("it is written");
        assert!(later.look());
        SUSPENDED.remove(&state, &["edge"]).expect("it is ended");
        assert!(before.look(), "it was so once");
    }

    #[test]
    fn what_cannot_be_read_is_no_leave_to_go_on() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let state = State::open(folder.path());
        state.write("suspended/edge.json", b"{").expect("it is written");
        let error = of(&state, "edge", Timestamp::UNIX_EPOCH).expect_err("it is no JSON");
        assert!(Chain(&error).to_string().contains("suspended/edge.json"), "{error}");
    }
}
