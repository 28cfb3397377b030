//! Runs the rounds of one sync when its timer says so.
//!
//! What a round does is the caller's: a function from the cause to an outcome. A nudge changes when a round starts and
//! carries nothing into it; one of a person counts at any time, others where rounds have an interval.

use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt as _;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::basics::clock::Clock;
use crate::process::service::Pulse;
use crate::schedule::timer::{Cause, Next, Outcome, Timer};

/// Starts rounds when they are due, until it is told to stop; a round that is running then is waited for.
///
/// The pulse is touched while waiting and while a round is running, as long as the round lets other tasks run:
/// what the watchdog sees is that this loop moves, whatever the length of a round.
pub(crate) async fn drive<R, F>(
    mut timer: Timer,
    clock: &dyn Clock,
    (nudges, is_asked): (&Notify, &AtomicBool),
    pulse: &Pulse,
    stop: &CancellationToken,
    mut round: R,
) where
    R: FnMut(Cause) -> F,
    F: Future<Output = Outcome>,
{
    while !stop.is_cancelled() {
        pulse.touch();
        // Any number of nudges is one.
        if nudges.notified().now_or_never().is_some() {
            nudge(&mut timer, is_asked);
        }
        let now = clock.now();
        match timer.poll(now) {
            Next::Start(cause) => {
                timer.start(now, cause);
                let outcome = pulse.during(round(cause)).await;
                timer.finish(clock.now(), outcome);
            }
            Next::Wait(time) => tokio::select! {
                () = stop.cancelled() => {}
                () = sleep(time) => {}
                () = nudges.notified() => nudge(&mut timer, is_asked),
            },
        }
    }
}

fn nudge(timer: &mut Timer, is_asked: &AtomicBool) {
    if is_asked.swap(false, Ordering::SeqCst) {
        timer.demand();
    } else {
        timer.nudge();
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
    async fn check(expected: &[(u64, &str)], script: impl Fn(usize, &Notify, &CancellationToken)) {
        let clock: Arc<dyn Clock> = Arc::new(Paused(Instant::now()));
        let progress = Progress::new(Arc::clone(&clock));
        let settings: Settings =
            serde_json::from_value(serde_json::json!({"interval": "10m", "jitter": "0%"})).expect("these are settings");
        let schedule = Schedule::parse(&settings).expect("this is a schedule");
        let nudges = Notify::new();
        let stop = CancellationToken::new();
        let rounds = RefCell::new(Vec::new());
        let round = async |cause: Cause| {
            rounds.borrow_mut().push((clock.elapsed().as_secs() / 60, cause.to_string()));
            script(rounds.borrow().len(), &nudges, &stop);
            sleep(Duration::from_mins(2)).await;
            assert!(progress.stuck(STUCK_AFTER).is_empty(), "a long round is no standstill");
            Outcome::Done
        };
        let pulse = progress.watch("sync gateways");
        let timer = Timer::new(schedule, "gateways", clock.now(), None);
        let hour = sleep(Duration::from_hours(1));
        let is_asked = AtomicBool::default();
        tokio::select! {
            () = drive(timer, &*clock, (&nudges, &is_asked), &pulse, &stop, round) => {}
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
            [(0, "start"), (2, "revision"), (14, "schedule"), (26, "schedule"), (38, "schedule"), (50, "schedule")];
        check(&expected, |round, nudges, _| {
            for _ in 0..1000 {
                if round == 1 {
                    nudges.notify_one();
                }
            }
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_order_to_stop_waits_for_the_round_and_starts_no_other() {
        check(&[(0, "start"), (12, "schedule")], |round, nudges, stop| {
            if round == 2 {
                nudges.notify_one();
                stop.cancel();
            }
        })
        .await;
    }
}
