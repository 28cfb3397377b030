//! Decisions of people about rounds: each is written into the audit log first, and then where rounds look for it.

use std::time::Duration;

use jiff::Timestamp;

use super::approvals::{Approval, Asked, GIVEN};
use super::audit_log::{self, Actor, Event};
use crate::basics::clock::Clock;
use crate::state::suspension::{self, SUSPENDED, Suspension};
use crate::state::{State, StateError, timekeeping};

/// Somebody who decides, and when.
#[derive(Clone, Copy)]
pub(crate) struct Decider<'a> {
    pub state: &'a State,
    pub clock: &'a dyn Clock,
    pub actor: &'a Actor,
}

impl Decider<'_> {
    /// Writes down that something was decided; to be called before it counts.
    pub(crate) fn audit(&self, event: Event) -> Result<(), StateError> {
        audit_log::record(self.state, self.clock.now(), self.actor, event)
    }

    /// Lets the steps of a hold go ahead until a time.
    pub(crate) fn approve(&self, asked: &Asked, reason: Option<&str>, until: Timestamp) -> Result<(), StateError> {
        let Asked { token, sync, cluster, hold } = asked.clone();
        let reason = reason.map(str::to_owned);
        self.audit(Event::Approved {
            sync: sync.clone(),
            cluster: cluster.clone(),
            guard: hold.guard.to_string(),
            token: token.clone(),
            steps: hold.steps.len(),
            until,
            reason: reason.clone(),
        })?;
        let (by, given) = (self.actor.user.clone(), self.clock.now());
        GIVEN.write(
            self.state,
            &[&token],
            &Approval { token: token.clone(), sync, cluster, hold, reason, by, given, until },
        )
    }

    /// Suspends a sync, for some time or until it is resumed.
    pub(crate) fn suspend(&self, sync: &str, reason: &str, time: Option<Duration>) -> Result<Suspension, StateError> {
        // It ends by the time that has passed since, and not by a clock that has jumped meanwhile.
        timekeeping::record(self.state, self.clock);
        let suspension = Suspension::new(reason, self.actor.user.as_deref(), self.clock.now(), time);
        let (reason, until) = (suspension.reason.clone(), suspension.until);
        self.audit(Event::Suspended { sync: sync.to_owned(), reason, until })?;
        SUSPENDED.write(self.state, &[sync], &suspension)?;
        Ok(suspension)
    }

    /// Ends the suspension of a sync; returns the one that there was.
    pub(crate) fn resume(&self, sync: &str) -> Result<Option<Suspension>, StateError> {
        let now = timekeeping::believed(self.state, self.clock);
        let was = suspension::of(self.state, sync, now);
        // What cannot be read suspends it, too, and is removed all the same: that is the way out.
        if !matches!(was, Ok(None)) {
            self.audit(Event::Resumed { sync: sync.to_owned() })?;
        }
        SUSPENDED.remove(self.state, &[sync])?;
        Ok(was.unwrap_or_default())
    }
}
