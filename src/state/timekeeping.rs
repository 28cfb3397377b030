//! The time that is believed where something ends by itself: suspensions, and what is kept for a while.
//!
//! A clock that jumps ahead, because of a server that tells the wrong time or a battery that is empty, would end all of
//! that at once. So the state folder says what time it was when somebody last looked, and how long the machine had been
//! up. While it stays up the time that has passed is known; over a restart it may have been off for some days. A time
//! that is later than that can explain is believed when it has stood for a day. Until then time goes on as if the clock
//! had not jumped. An earlier time ends nothing, and is believed at once.

use gatewright_engine::error::Chain;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tracing::warn;

use crate::basics::clock::{Boot, Clock};
use crate::state::State;
use crate::state::store::Store;

const CLOCK: Store<Believed> = Store::new("clock");

/// The largest correction of a clock while the machine is up.
const CORRECTION: SignedDuration = SignedDuration::from_hours(1);

/// The longest time that a machine may have been off.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The time that a clock must stand to be believed in spite of all that.
const PROOF: SignedDuration = SignedDuration::from_hours(24);

/// The time after which it is believed again.
const PRECISION: SignedDuration = SignedDuration::from_secs(60);

/// The state of our knowledge of the time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Believed {
    /// The time that is believed.
    time: Timestamp,
    /// The uptime of the machine at that time.
    #[serde(default)]
    boot: Option<Boot>,
    /// The clock says another one.
    #[serde(rename = "doubted", default, skip_serializing_if = "Option::is_none")]
    suspect: Option<Suspect>,
}

/// A time that is not believed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Suspect {
    /// The first that the clock said after its jump.
    first: Timestamp,
    /// The last.
    last: Timestamp,
}

/// Returns the time that is believed, and notes it.
pub(crate) fn record(state: &State, clock: &dyn Clock) -> Timestamp {
    let (before, now) = looked(state, clock);
    let is_suspicion_new = before.as_ref().map(|before| before.suspect.is_some()) != Some(now.suspect.is_some());
    if let Some(suspect) = now.suspect.as_ref().filter(|_| is_suspicion_new) {
        let (clock, believed) = (suspect.last, now.time);
        warn!(%clock, %believed, "the clock has jumped ahead; nothing expires by it until it has stood so for a day");
    }
    let is_later = before.is_none_or(|before| now.time.duration_since(before.time).abs() >= PRECISION);
    if (is_later || is_suspicion_new)
        && let Err(error) = CLOCK.write(state, &[], &now)
    {
        warn!(error = %Chain(&error), "cannot note the time");
    }
    now.time
}

pub(crate) fn believed(state: &State, clock: &dyn Clock) -> Timestamp {
    looked(state, clock).1.time
}

/// Returns the time that was believed when it was believed last, or a time that is earlier.
pub(crate) fn last_believed(state: &State, now: Timestamp) -> Timestamp {
    CLOCK.read(state, &[]).map_or(now, |believed| believed.time.min(now))
}

fn looked(state: &State, clock: &dyn Clock) -> (Option<Believed>, Believed) {
    let before = CLOCK.read(state, &[]);
    let now = judge(before.as_ref(), clock.now(), clock.boot());
    (before, now)
}

/// Decides what to believe of a time.
fn judge(before: Option<&Believed>, now: Timestamp, boot: Option<Boot>) -> Believed {
    let believed = |boot| Believed { time: now, boot, suspect: None };
    let Some(before) = before else { return believed(boot) };
    let passed = before.boot.as_ref().zip(boot.as_ref()).and_then(|(before, now)| now.since(before));
    let latest = before.time.saturating_add(passed.map_or(LONGEST_PAUSE, |passed| passed + CORRECTION));
    if latest.is_ok_and(|latest| now <= latest) {
        return believed(boot);
    }
    let goes_on = |suspect: &&Suspect| match passed {
        Some(passed) => (now.duration_since(suspect.last) - passed).abs() <= CORRECTION,
        None => now >= suspect.last,
    };
    let first = before.suspect.as_ref().filter(goes_on).map_or(now, |suspect| suspect.first);
    if now.duration_since(first) >= PROOF {
        return believed(boot);
    }
    let time = before.time.saturating_add(passed.unwrap_or_default()).unwrap_or(before.time);
    Believed { time, boot, suspect: Some(Suspect { first, last: now }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn up(boot: &str, hours: i64) -> Boot {
        Boot { id: boot.to_owned(), up: SignedDuration::from_hours(hours) }
    }

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + hours * 3600).expect("it is a time")
    }

    /// Looks at the clock again and again: what it says, and the machine; and what is believed then.
    #[track_caller]
    fn check(looks: &[(i64, Boot, i64)]) {
        let mut believed = Believed { time: at(0), boot: Some(up("a", 0)), suspect: None };
        for (clock, boot, expected) in looks {
            believed = judge(Some(&believed), at(*clock), Some(boot.clone()));
            assert_eq!(believed.time, at(*expected), "{clock} {boot:?}");
        }
    }

    const YEAR: i64 = 365 * 24;

    #[test]
    fn a_clock_that_goes_as_the_machine_does_is_believed() {
        check(&[(5, up("a", 5), 5), (YEAR, up("a", YEAR), YEAR), (YEAR + 1, up("a", YEAR), YEAR + 1)]);
        assert_eq!(judge(None, at(3), None).time, at(3), "nothing says anything else");
    }

    #[test]
    fn a_jump_ahead_is_believed_when_it_has_stood_for_a_day() {
        check(&[
            (YEAR, up("a", 1), 1),
            (YEAR + 22, up("a", 23), 23),
            // And back again.
            (24, up("a", 24), 24),
            (YEAR, up("a", 25), 25),
            (YEAR + 23, up("a", 48), 48),
            (YEAR + 25, up("a", 50), YEAR + 25),
        ]);
        // Another jump begins again.
        check(&[(YEAR, up("a", 1), 1), (2 * YEAR, up("a", 2), 2), (2 * YEAR + 23, up("a", 25), 25)]);
    }

    #[test]
    fn a_machine_may_have_been_off_for_some_days() {
        check(&[(6 * 24, up("b", 0), 6 * 24)]);
        check(&[(60 * 24, up("b", 0), 0), (60 * 24 + 5, up("b", 5), 5), (61 * 24, up("b", 24), 61 * 24)]);
        // Also if it is on for a moment only, now and then.
        check(&[(30 * 24, up("b", 0), 0), (37 * 24, up("c", 0), 37 * 24)]);
        // Where nobody knows how long it has been on.
        let believed = judge(Some(&Believed { time: at(0), boot: None, suspect: None }), at(30 * 24), None);
        assert_eq!(believed.time, at(0));
        assert_eq!(judge(Some(&believed), at(31 * 24), None).time, at(31 * 24));
    }

    #[test]
    fn an_earlier_time_is_believed() {
        check(&[(5, up("a", 5), 5), (-YEAR, up("a", 6), -YEAR)]);
    }
}
