use std::sync::atomic::AtomicU64;

use super::*;

/// A clock that a test sets, in seconds.
#[derive(Default)]
struct Hand(AtomicU64);

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        later(Timestamp::UNIX_EPOCH, self.elapsed())
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::Relaxed))
    }
}

fn breaker() -> (Arc<Hand>, Arc<Breaker>) {
    let hand = Arc::new(Hand::default());
    let clock: Arc<dyn Clock> = Arc::<Hand>::clone(&hand);
    let breakers = Breaker::all([&"us-1".to_owned()], &clock);
    (hand, Arc::clone(&breakers["us-1"]))
}

fn unreachable(message: &str) -> ClusterReport {
    ClusterReport::failed(ClusterState::Unreachable, message.to_owned(), None)
}

fn ended(state: ClusterState) -> ClusterReport {
    ClusterReport { state, ..ClusterReport::default() }
}

#[test]
fn rounds_end_at_once_until_a_probe_is_due() {
    let (hand, breaker) = breaker();
    assert!(breaker.refuses().is_none());
    let mut report = unreachable("no answer");
    breaker.note(&mut report);
    let refused = breaker.refuses().expect("it is open");
    assert_eq!(refused.state, ClusterState::Unreachable);
    assert_eq!((&refused.error, refused.next_probe), (&report.error, None));
    hand.0.store(10, Ordering::Relaxed);
    assert!(breaker.refuses().is_none(), "the next round is the probe");
    breaker.note(&mut ended(ClusterState::Done));
    hand.0.store(0, Ordering::Relaxed);
    assert!(breaker.refuses().is_none());
}

#[test]
fn waits_double_up_to_a_limit_and_rounds_beside_each_other_count_once() {
    let (hand, breaker) = breaker();
    let mut waits = Vec::new();
    for _ in 0..8 {
        let mut report = unreachable("no answer");
        breaker.note(&mut report);
        breaker.note(&mut unreachable("no answer either"));
        let due = lock(&breaker.state).as_ref().map(|open| open.due).unwrap_or_default();
        waits.push(due.saturating_sub(hand.elapsed()).as_secs_f64());
        hand.0.store(due.as_secs() + 1, Ordering::Relaxed);
    }
    let whole = [10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0];
    let fits = |(wait, whole): (&f64, f64)| *wait <= whole && *wait >= whole * 0.8;
    assert!(waits.iter().zip(whole).all(fits), "{waits:?}");
}

#[test]
fn where_a_task_probes_rounds_wait_for_it_and_say_when_it_does() {
    let (hand, breaker) = breaker();
    breaker.is_probed.store(true, Ordering::Relaxed);
    let mut report = unreachable("no answer");
    breaker.note(&mut report);
    let refused = breaker.refuses().expect("it is open");
    assert_eq!(refused.next_probe, report.next_probe);
    assert!(refused.next_probe.is_some_and(|at| at.as_second() >= 8 && at.as_second() <= 10), "{refused:?}");
    hand.0.store(60, Ordering::Relaxed);
    assert!(breaker.refuses().is_some());
    hand.0.store(71, Ordering::Relaxed);
    assert!(breaker.refuses().is_none(), "nobody has probed it");
}

#[test]
fn only_rounds_that_got_no_answer_open_it() {
    for state in [ClusterState::Failed, ClusterState::Stopped, ClusterState::Suspended, ClusterState::Held] {
        let (_, breaker) = breaker();
        breaker.note(&mut ended(state));
        assert!(breaker.refuses().is_none(), "{state:?}");
    }
    let (_, breaker) = breaker();
    breaker.note(&mut ended(ClusterState::Unreachable));
    assert!(breaker.refuses().is_none(), "a round that lost the cluster on its way had an answer");
    breaker.note(&mut unreachable("no answer"));
    breaker.note(&mut ended(ClusterState::Stopped));
    assert!(breaker.refuses().is_some(), "a round that was stopped has seen nothing");
}

#[test]
fn whoever_waits_for_the_cluster_begins_when_it_answers() {
    use futures::FutureExt as _;

    let (_, breaker) = breaker();
    let round = Arc::new(Notify::new());
    breaker.nudge(&round);
    breaker.note(&mut ended(ClusterState::Done));
    assert!(round.notified().now_or_never().is_none(), "it was never away");
    breaker.note(&mut unreachable("no answer"));
    assert!(round.notified().now_or_never().is_none());
    breaker.note(&mut ended(ClusterState::Failed));
    assert!(round.notified().now_or_never().is_some());
}
