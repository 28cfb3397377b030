//! Runs the rounds of one sync when its timer says so.
//!
//! What a round does is the caller's: a function from the cause to an outcome. A nudge changes when a round starts and
//! carries nothing into it.

use std::pin::pin;

use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::basics::clock::Clock;
use crate::process::service::Pulse;
use crate::schedule::timer::{Cause, LONGEST_WAIT, Next, Nudge, Outcome, Timer};

/// Makes a channel for the nudges of one sync.
pub(crate) fn nudges() -> (Nudger, Nudges) {
    let (sender, receiver) = watch::channel(Pending::default());
    (Nudger(sender), Nudges { receiver, passed_on: Pending::default() })
}

/// Nudges one sync, from anywhere; a storm of nudges costs no more than one.
#[derive(Clone, Debug)]
pub(crate) struct Nudger(watch::Sender<Pending>);

/// The receiver of the nudges of one sync.
#[derive(Debug)]
pub(crate) struct Nudges {
    receiver: watch::Receiver<Pending>,
    passed_on: Pending,
}

/// The number of nudges of each kind.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    revisions: u64,
    requests: u64,
}

impl Nudger {
    /// Asks for a round.
    pub(crate) fn nudge(&self, nudge: Nudge) {
        self.0.send_modify(|pending| match nudge {
            Nudge::Revision => pending.revisions += 1,
            Nudge::Request => pending.requests += 1,
        });
    }
}

impl Nudges {
    /// Waits for a nudge; for ever when nobody is left who could send one.
    async fn wait(&mut self) {
        if self.receiver.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Tells the timer of the nudges since it was last told.
    fn pass_on(&mut self, timer: &mut Timer) {
        let pending = *self.receiver.borrow_and_update();
        if pending.revisions != self.passed_on.revisions {
            timer.nudge(Nudge::Revision);
        }
        if pending.requests != self.passed_on.requests {
            timer.nudge(Nudge::Request);
        }
        self.passed_on = pending;
    }
}

/// Starts rounds when they are due, until it is told to stop; a round that is running then is waited for.
///
/// The pulse is touched while waiting and while a round is running, as long as the round lets other tasks run:
/// what the watchdog sees is that this loop moves, whatever the length of a round.
pub(crate) async fn drive<R, F>(
    mut timer: Timer,
    clock: &dyn Clock,
    mut nudges: Nudges,
    pulse: &Pulse,
    stop: &CancellationToken,
    mut round: R,
) where
    R: FnMut(Cause) -> F,
    F: Future<Output = Outcome>,
{
    while !stop.is_cancelled() {
        pulse.touch();
        nudges.pass_on(&mut timer);
        let now = clock.now();
        match timer.poll(now) {
            Next::Start(cause) => {
                timer.start(now, cause);
                let outcome = attended(round(cause), pulse).await;
                timer.finish(clock.now(), outcome);
            }
            Next::Wait(time) => tokio::select! {
                () = stop.cancelled() => {}
                () = sleep(time) => {}
                () = nudges.wait() => {}
            },
        }
    }
}

/// Waits for a round and touches the pulse meanwhile.
async fn attended<F: Future<Output = Outcome>>(round: F, pulse: &Pulse) -> Outcome {
    let mut round = pin!(round);
    loop {
        tokio::select! {
            outcome = &mut round => return outcome,
            () = sleep(LONGEST_WAIT) => pulse.touch(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::Arc;
    use std::time::Duration;

    use jiff::Timestamp;
    use tokio::time::Instant;

    use super::*;
    use crate::process::service::{Progress, STUCK_AFTER};
    use crate::schedule::{Schedule, Settings};

    /// A clock that goes with the paused time of the runtime.
    struct Paused(Instant);

    impl Clock for Paused {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH.checked_add(self.elapsed()).unwrap_or(Timestamp::MAX)
        }

        fn elapsed(&self) -> Duration {
            self.0.elapsed()
        }
    }

    /// Drives a sync with an interval of ten minutes whose rounds take two, for an hour; the script is told of each
    /// round, and may nudge and stop.
    async fn check(expected: &[(u64, &str)], script: impl Fn(usize, &Nudger, &CancellationToken)) {
        let clock: Arc<dyn Clock> = Arc::new(Paused(Instant::now()));
        let progress = Progress::new(Arc::clone(&clock));
        let settings: Settings =
            serde_json::from_value(serde_json::json!({"interval": "10m", "jitter": "0%"})).expect("these are settings");
        let schedule = Schedule::parse(&settings).expect("this is a schedule");
        let (nudger, received) = nudges();
        let stop = CancellationToken::new();
        let rounds = RefCell::new(Vec::new());
        let round = async |cause: Cause| {
            rounds.borrow_mut().push((clock.elapsed().as_secs() / 60, cause.to_string()));
            script(rounds.borrow().len(), &nudger, &stop);
            sleep(Duration::from_mins(2)).await;
            assert!(progress.stuck(STUCK_AFTER).is_empty(), "a long round is no standstill");
            Outcome::Done
        };
        let pulse = progress.watch("sync gateways");
        let timer = Timer::new(schedule, "gateways", clock.now(), None);
        let hour = sleep(Duration::from_hours(1));
        tokio::select! {
            () = drive(timer, &*clock, received, &pulse, &stop, round) => {}
            () = hour => {}
        }
        let rounds: Vec<(u64, String)> = rounds.into_inner();
        let rounds: Vec<(u64, &str)> = rounds.iter().map(|(minute, cause)| (*minute, cause.as_str())).collect();
        assert_eq!(rounds, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn rounds_follow_each_other_at_the_interval() {
        let expected = [(0, "start"), (12, "schedule"), (24, "schedule"), (36, "schedule"), (48, "schedule")];
        check(&expected, |_, _, _| {}).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_storm_of_nudges_during_a_round_is_one_more_round() {
        let expected =
            [(0, "start"), (2, "request"), (14, "schedule"), (26, "schedule"), (38, "schedule"), (50, "schedule")];
        check(&expected, |round, nudger, _| {
            for _ in 0..1000 {
                if round == 1 {
                    nudger.nudge(Nudge::Revision);
                    nudger.nudge(Nudge::Request);
                }
            }
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_order_to_stop_waits_for_the_round_and_starts_no_other() {
        check(&[(0, "start"), (12, "schedule")], |round, nudger, stop| {
            if round == 2 {
                nudger.nudge(Nudge::Request);
                stop.cancel();
            }
        })
        .await;
    }
}
