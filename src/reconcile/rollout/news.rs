//! News: who waits in this process learns of them, and the daemon has rounds begun again for which they are a reason.

use std::sync::Arc;
use std::time::Duration;

use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::guard::Guard;
use jiff::Timestamp;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::known::{Asks, Known, Part};
use super::waves::{self, Verdict};
use super::{Rollout, Turn};
use crate::basics::lock::lock;

/// The least time between two looks at whose turn has come: in a large fleet there are hundreds of news in it, and each look
/// is at all clusters that wait.
const PAUSE: Duration = Duration::from_millis(250);

/// The looks at whose turn has come.
#[derive(Debug, Default)]
pub(super) struct Looks {
    last: Option<Instant>,
    is_planned: bool,
}

impl Looks {
    /// Returns the time until the next look, if nobody else will have that one.
    fn next(&mut self, now: Instant) -> Option<Duration> {
        let left = self.last.map(|last| PAUSE.saturating_sub(now.duration_since(last))).unwrap_or_default();
        if left.is_zero() {
            self.last = Some(now);
            return Some(left);
        }
        (!std::mem::replace(&mut self.is_planned, true)).then_some(left)
    }

    /// Begins with a look that was planned.
    fn begins(&mut self, now: Instant) {
        *self = Self { last: Some(now), is_planned: false };
    }
}

impl Rollout {
    /// Tells those that wait in this process, and has rounds begun again where something waits for another reason than was
    /// told, or for none any more.
    pub(super) fn news(self: &Arc<Self>, now: Timestamp) {
        self.changed.notify_waiters();
        if lock(&self.nudges).is_empty() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return self.nudge_those_due(now) };
        let Some(left) = lock(&self.looks).next(Instant::now()) else { return };
        if left.is_zero() {
            return self.nudge_those_due(now);
        }
        let rollout = Arc::clone(self);
        runtime.spawn(async move {
            tokio::time::sleep(left).await;
            lock(&rollout.looks).begins(Instant::now());
            rollout.nudge_those_due(now.checked_add(left).unwrap_or(now));
        });
    }

    /// Has rounds begun again where it is their turn, or they would say something else. What cannot be read was told, and
    /// the next round looks again.
    fn nudge_those_due(&self, now: Timestamp) {
        let due = |known: &mut Known| {
            let parts = known.parts().iter().filter_map(|(cluster, part)| Some((cluster, part.as_ref()?)));
            let waiting = parts.filter(|(_, part)| part.has_been_told_to_wait());
            let due = waiting.filter(|(cluster, part)| self.is_due(known, (cluster, part), now));
            due.map(|(cluster, _)| cluster.clone()).collect::<Vec<_>>()
        };
        let due = self.look(None, due).unwrap_or_default();
        let nudges = lock(&self.nudges);
        for nudge in due.iter().filter_map(|cluster| nudges.get(cluster)) {
            nudge.notify_one();
        }
    }

    /// Tells whether a round on a cluster would say something else than the last one. What a person has stopped waits for
    /// the next round.
    fn is_due(&self, known: &Known, (cluster, part): (&str, &Part), now: Timestamp) -> bool {
        let Part::Looked { target, rolls, deletes, told, .. } = part else { return false };
        let asks = Asks { cluster, target, now };
        let goes_on = |(unit, told): (&ObjectId, &Option<Guard>)| {
            let is_stopped = known.ledger.paused.is_some() || *told == Some(Guard::RolloutPaused);
            !is_stopped
                && match known.expected(&self.waves, unit, asks) {
                    Verdict::First | Verdict::Go => true,
                    Verdict::Wait(_, wait) => Some(wait.guard) != *told,
                }
        };
        let deletion = || self.deletion(known, asks, *deletes).map(|wait| wait.guard);
        rolls.iter().any(goes_on) || (told.is_some() && deletion() != *told)
    }

    /// Tells the news once more later on.
    pub(super) fn news_after(self: &Arc<Self>, pause: Duration, now: Timestamp) {
        let (Ok(runtime), Ok(end)) = (Handle::try_current(), now.checked_add(pause)) else { return };
        if !lock(&self.alarms).insert(end) {
            return;
        }
        let rollout = Arc::clone(self);
        runtime.spawn(async move {
            tokio::time::sleep(pause).await;
            lock(&rollout.alarms).remove(&end);
            rollout.news(end);
        });
    }
}

impl Turn {
    /// Tells the news once more when this cluster has been healthy for long enough; where others have noted something, when
    /// any cluster has.
    pub(super) fn news_after_soaks(&self, known: &mut Known) {
        let (waves, now) = (&self.rollout.waves, self.now());
        if !waves::have_soaks(waves) {
            return;
        }
        let cluster = Some(self.cluster.as_str()).filter(|_| !known.has_been_read());
        for end in known.ledger.units.iter().flat_map(|record| waves::soaks(waves, record, cluster)) {
            if end > now {
                self.rollout.news_after(Duration::try_from(now.duration_until(end)).unwrap_or_default(), now);
            }
        }
    }
}
