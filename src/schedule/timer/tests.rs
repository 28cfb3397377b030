use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::basics::duration::Period;
use crate::schedule::Settings;

const PARIS_NIGHT: &str = "30 2 * * *";

fn at(text: &str) -> Timestamp {
    text.parse().expect("a test writes times in RFC 3339")
}

fn timer(settings: Value, now: &str) -> Timer {
    restarted(settings, now, None)
}

fn restarted(settings: Value, now: &str, last: Option<&str>) -> Timer {
    let settings: Settings = serde_json::from_value(settings).expect("settings of a test have the right shape");
    let schedule = Schedule::parse(&settings).expect("the schedule of a test is right");
    Timer::new(schedule, "gateways", at(now), last.map(at))
}

/// Lets the time pass, asks as often as the timer wants to be asked, and returns which rounds start.
fn pass(timer: &mut Timer, from: &str, to: &str, length: Duration, outcome: Outcome) -> Vec<(Timestamp, Cause)> {
    let (mut now, end) = (at(from), at(to));
    let mut rounds = Vec::new();
    while now < end {
        match timer.poll(now) {
            Next::Wait(time) => {
                assert!(!time.is_zero() && time <= LONGEST_WAIT, "{time:?}");
                now = later(now, time);
            }
            Next::Start(cause) => {
                rounds.push((now, cause));
                timer.start(now, cause);
                now = later(now, length);
                timer.finish(now, outcome);
            }
        }
    }
    rounds
}

/// Compares the rounds of quick, successful runs with what is expected, each as `time cause`.
fn check(timer: &mut Timer, from: &str, to: &str, expected: &[&str]) {
    let rounds = pass(timer, from, to, Duration::ZERO, Outcome::Done);
    let rounds: Vec<String> = rounds.iter().map(|(time, cause)| format!("{time} {cause}")).collect();
    assert_eq!(rounds, expected);
}

/// The waits between the end of one round and the start of the next, in seconds.
fn gaps(rounds: &[(Timestamp, Cause)]) -> Vec<i64> {
    rounds.windows(2).map(|pair| pair[0].0.duration_until(pair[1].0).as_secs()).collect()
}

#[test]
fn the_first_round_of_an_interval_comes_soon_and_always_at_the_same_time() {
    let mut first = timer(json!({"interval": "1h"}), "2026-06-01T12:00:00Z");
    let rounds = pass(&mut first, "2026-06-01T12:00:00Z", "2026-06-01T12:30:00Z", Duration::ZERO, Outcome::Done);
    let [(start, Cause::Start)] = rounds[..] else { unreachable!("one round at the start: {rounds:?}") };
    assert!(start < later(at("2026-06-01T12:00:00Z"), SPLAY));
    let mut second = timer(json!({"interval": "1h"}), "2026-06-01T12:00:00Z");
    assert_eq!(
        pass(&mut second, "2026-06-01T12:00:00Z", "2026-06-01T12:30:00Z", Duration::ZERO, Outcome::Done),
        rounds
    );
}

#[test]
fn an_interval_counts_from_the_end_of_a_round() {
    let mut timer = timer(json!({"interval": "5m", "jitter": "0%"}), "2026-06-01T12:00:00Z");
    let length = Duration::from_mins(7);
    let rounds = pass(&mut timer, "2026-06-01T12:00:00Z", "2026-06-01T13:00:00Z", length, Outcome::Done);
    assert_eq!(gaps(&rounds), [12 * 60; 4]);
}

#[test]
fn a_host_that_slept_runs_one_round_and_goes_on_as_before() {
    let mut timer = timer(json!({"interval": "5m", "jitter": "0%"}), "2026-06-01T12:00:00Z");
    let before = pass(&mut timer, "2026-06-01T12:00:00Z", "2026-06-01T12:01:00Z", Duration::ZERO, Outcome::Done);
    assert_eq!(before.len(), 1);
    check(
        &mut timer,
        "2026-06-04T12:00:00Z",
        "2026-06-04T12:06:00Z",
        &["2026-06-04T12:00:00Z schedule", "2026-06-04T12:05:00Z schedule"],
    );
}

#[test]
fn a_cron_pattern_has_no_round_at_the_start() {
    let mut timer = timer(json!({"cron": "0 2 * * *"}), "2026-06-01T12:00:00Z");
    check(
        &mut timer,
        "2026-06-01T12:00:00Z",
        "2026-06-03T12:00:00Z",
        &["2026-06-02T02:00:00Z schedule", "2026-06-03T02:00:00Z schedule"],
    );
}

#[test]
fn an_hour_that_comes_twice_has_one_round() {
    let mut timer = timer(json!({"cron": PARIS_NIGHT, "timezone": "Europe/Paris"}), "2026-10-24T12:00:00Z");
    check(
        &mut timer,
        "2026-10-24T12:00:00Z",
        "2026-10-27T00:00:00Z",
        &["2026-10-25T00:30:00Z schedule", "2026-10-26T01:30:00Z schedule"],
    );
}

#[test]
fn an_hour_that_is_skipped_has_its_round_at_the_next_one() {
    let mut timer = timer(json!({"cron": PARIS_NIGHT, "timezone": "Europe/Paris"}), "2027-03-27T12:00:00Z");
    check(
        &mut timer,
        "2027-03-27T12:00:00Z",
        "2027-03-30T00:00:00Z",
        &["2027-03-28T01:00:00Z schedule", "2027-03-29T00:30:00Z schedule"],
    );
}

#[test]
fn a_pattern_of_every_half_hour_follows_real_time_through_the_change() {
    let mut timer = timer(json!({"cron": "*/30 * * * *", "timezone": "Europe/Paris"}), "2026-10-24T23:45:00Z");
    let rounds = pass(&mut timer, "2026-10-24T23:45:00Z", "2026-10-25T03:15:00Z", Duration::ZERO, Outcome::Done);
    assert_eq!(rounds.len(), 7);
    assert_eq!(gaps(&rounds), [30 * 60; 6]);
}

#[test]
fn a_person_may_ask_for_a_round_between_the_times_of_a_cron_pattern() {
    let mut timer = timer(json!({"cron": "0 2 * * *"}), "2026-06-01T12:00:00Z");
    timer.nudge();
    check(&mut timer, "2026-06-01T12:00:00Z", "2026-06-01T13:00:00Z", &[]);
    timer.demand();
    let expected = ["2026-06-01T13:00:00Z revision", "2026-06-02T02:00:00Z schedule"];
    check(&mut timer, "2026-06-01T13:00:00Z", "2026-06-02T12:00:00Z", &expected);
}

#[test]
fn a_missed_cron_round_is_made_up_for_within_the_window_only() {
    let nightly = json!({"cron": "0 2 * * *"});
    let mut soon = timer(nightly.clone(), "2026-06-01T12:00:00Z");
    check(&mut soon, "2026-06-02T02:40:00Z", "2026-06-03T01:00:00Z", &["2026-06-02T02:40:00Z schedule"]);
    let mut late = timer(nightly, "2026-06-01T12:00:00Z");
    check(&mut late, "2026-06-02T09:00:00Z", "2026-06-03T02:30:00Z", &["2026-06-03T02:00:00Z schedule"]);
    let mut wide = timer(json!({"cron": "0 2 * * *", "window": "12h"}), "2026-06-01T12:00:00Z");
    check(&mut wide, "2026-06-02T09:00:00Z", "2026-06-03T01:00:00Z", &["2026-06-02T09:00:00Z schedule"]);
}

#[test]
fn many_missed_cron_rounds_are_one() {
    let mut timer = timer(json!({"cron": "*/5 * * * *"}), "2026-06-01T12:00:00Z");
    check(
        &mut timer,
        "2026-06-01T19:02:00Z",
        "2026-06-01T19:06:00Z",
        &["2026-06-01T19:02:00Z schedule", "2026-06-01T19:05:00Z schedule"],
    );
    let length = Duration::from_mins(12);
    let rounds = pass(&mut timer, "2026-06-01T19:09:00Z", "2026-06-01T19:50:00Z", length, Outcome::Done);
    assert_eq!(gaps(&rounds), [12 * 60; 3], "a round that takes longer than the pattern is followed by one round");
}

#[test]
fn a_daemon_that_was_down_at_the_time_makes_up_for_the_round_if_it_knows_of_the_last() {
    let nightly = json!({"cron": "0 2 * * *"});
    let (start, end) = ("2026-06-02T02:10:00Z", "2026-06-02T04:00:00Z");
    let mut missed = restarted(nightly.clone(), start, Some("2026-06-01T02:00:00Z"));
    check(&mut missed, start, end, &["2026-06-02T02:10:00Z schedule"]);
    let mut done = restarted(nightly.clone(), start, Some("2026-06-02T02:00:00Z"));
    check(&mut done, start, end, &[]);
    let mut unknown = restarted(nightly, start, None);
    check(&mut unknown, start, end, &[]);
}

#[test]
fn a_failed_round_is_tried_again_less_and_less_often() {
    let mut timer = timer(json!({"interval": "1h", "jitter": "0%"}), "2026-06-01T12:00:00Z");
    let failed = pass(&mut timer, "2026-06-01T12:00:00Z", "2026-06-01T13:05:00Z", Duration::ZERO, Outcome::Failed);
    assert_eq!(gaps(&failed), [30, 60, 120, 240, 480, 900, 900, 900]);
    assert!(failed.iter().skip(1).all(|(_, cause)| *cause == Cause::Retry));
    let fine = pass(&mut timer, "2026-06-01T13:05:00Z", "2026-06-01T15:30:00Z", Duration::ZERO, Outcome::Done);
    assert_eq!(gaps(&fine), [3600; 2], "one success and the interval is back");
}

#[test]
fn a_retry_never_comes_later_than_the_regular_round() {
    let mut timer = timer(json!({"interval": "100s", "jitter": "0%"}), "2026-06-01T12:00:00Z");
    let failed = pass(&mut timer, "2026-06-01T12:00:00Z", "2026-06-01T12:08:30Z", Duration::ZERO, Outcome::Failed);
    assert_eq!(gaps(&failed), [30, 60, 100, 100, 100, 100]);
}

#[test]
fn a_failed_cron_round_is_tried_again_within_the_window_only() {
    let mut timer = timer(json!({"cron": "0 2 * * *"}), "2026-06-01T12:00:00Z");
    let failed = pass(&mut timer, "2026-06-02T01:59:00Z", "2026-06-03T02:00:40Z", Duration::ZERO, Outcome::Failed);
    let minutes = 60;
    let next_day = (23 * 60 + 14) * minutes + 30;
    assert_eq!(gaps(&failed), [30, 60, 120, 240, 480, 900, 900, next_day, 30]);
}

#[test]
fn a_retry_that_was_slept_through_is_not_made_up_for_after_the_window() {
    let mut timer = timer(json!({"cron": "0 2 * * *"}), "2026-06-01T12:00:00Z");
    let failed = pass(&mut timer, "2026-06-02T02:00:00Z", "2026-06-02T02:00:10Z", Duration::ZERO, Outcome::Failed);
    assert_eq!(failed.len(), 1);
    check(&mut timer, "2026-06-02T14:00:00Z", "2026-06-03T02:10:00Z", &["2026-06-03T02:00:00Z schedule"]);
}

#[test]
fn nudges_before_a_round_are_one_round_and_nudges_during_it_one_more() {
    let now = at("2026-06-01T12:20:00Z");
    let mut timer = timer(json!({"interval": "1h"}), "2026-06-01T12:00:00Z");
    for _ in 0..1000 {
        timer.nudge();
    }
    assert_eq!(timer.poll(now), Next::Start(Cause::Revision));
    timer.start(now, Cause::Revision);
    for _ in 0..1000 {
        timer.nudge();
    }
    timer.finish(now, Outcome::Done);
    check(&mut timer, "2026-06-01T12:20:00Z", "2026-06-01T13:00:00Z", &["2026-06-01T12:20:00Z revision"]);
}

#[test]
fn a_nudge_does_not_wait_for_another_attempt_and_starts_its_counting_again() {
    let mut timer = timer(json!({"interval": "1h", "jitter": "0%"}), "2026-06-01T12:00:00Z");
    let failed = pass(&mut timer, "2026-06-01T12:00:00Z", "2026-06-01T12:20:00Z", Duration::ZERO, Outcome::Failed);
    assert_eq!(failed.len(), 6);
    timer.nudge();
    let nudged = pass(&mut timer, "2026-06-01T12:20:00Z", "2026-06-01T12:21:00Z", Duration::ZERO, Outcome::Failed);
    assert_eq!(nudged[0], (at("2026-06-01T12:20:00Z"), Cause::Revision));
    assert_eq!(gaps(&nudged), [30]);
}

#[test]
fn a_new_revision_waits_for_the_window() {
    let mut timer = timer(json!({"cron": "0 2 * * *"}), "2026-06-01T12:00:00Z");
    timer.nudge();
    check(&mut timer, "2026-06-01T12:00:00Z", "2026-06-02T03:00:00Z", &["2026-06-02T02:00:00Z schedule"]);
}

#[test]
fn a_clock_that_was_far_ahead_delays_nothing_by_more_than_one_interval() {
    let mut timer = timer(json!({"interval": "5m", "jitter": "0%"}), "2036-01-01T00:00:00Z");
    let ahead = pass(&mut timer, "2036-01-01T00:00:00Z", "2036-01-01T00:01:00Z", Duration::ZERO, Outcome::Done);
    assert_eq!(ahead.len(), 1);
    check(&mut timer, "2026-06-01T12:00:00Z", "2026-06-01T12:06:00Z", &["2026-06-01T12:05:00Z schedule"]);
    let mut nightly = super::tests::timer(json!({"cron": "0 2 * * *"}), "2036-01-01T00:00:00Z");
    check(&mut nightly, "2026-06-01T12:00:00Z", "2026-06-02T12:00:00Z", &["2026-06-02T02:00:00Z schedule"]);
}

#[test]
fn a_clock_that_is_corrected_by_seconds_repeats_no_round() {
    let mut timer = timer(json!({"cron": "0 2 * * *"}), "2026-06-01T12:00:00Z");
    check(&mut timer, "2026-06-02T01:59:00Z", "2026-06-02T02:00:05Z", &["2026-06-02T02:00:00Z schedule"]);
    check(&mut timer, "2026-06-02T01:59:50Z", "2026-06-02T12:00:00Z", &[]);
}

proptest! {
    #[test]
    fn an_interval_stays_within_its_jitter(name in "[a-z]{1,12}", seconds in 10_u64..100_000, percent in 0_u8..=50, rounds in 1_u64..50) {
        let every = Duration::from_secs(seconds);
        let settings = Settings {
            interval: Some(Period(every)),
            jitter: Some(format!("{percent}%").parse().expect("a share in bounds")),
            ..Settings::default()
        };
        let start = at("2026-06-01T12:00:00Z");
        let mut timer = Timer::new(Schedule::parse(&settings).expect("in bounds"), &name, start, None);
        for _ in 0..rounds {
            timer.start(start, Cause::Schedule);
            timer.finish(start, Outcome::Done);
        }
        let (next, cause) = timer.next(start);
        let jitter = every / 100 * u32::from(percent);
        prop_assert_eq!(cause, Cause::Schedule);
        prop_assert!(next >= later(start, every.saturating_sub(jitter)));
        prop_assert!(next <= later(start, every + jitter));
    }

    #[test]
    fn a_cron_round_is_never_early_and_at_most_the_jitter_late(name in "[a-z]{1,12}", jitter in 0_u64..3600, day in 0_u64..1000) {
        let settings = Settings {
            cron: Some("0 2 * * *".to_owned()),
            jitter: Some(crate::schedule::jitter::Jitter::Span(Period(Duration::from_secs(jitter)))),
            ..Settings::default()
        };
        let noon = later(at("2026-06-01T12:00:00Z"), Duration::from_hours(24 * day));
        let timer = Timer::new(Schedule::parse(&settings).expect("in bounds"), &name, noon, None);
        let (next, _) = timer.next(noon);
        let time = later(noon, Duration::from_hours(14));
        prop_assert!(next >= time);
        prop_assert!(next <= later(time, Duration::from_secs(jitter)));
    }
}

proptest! {
    // Two days are asked about in steps of seconds: a few cases are enough, and many are slow.
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_cron_round_starts_once_a_day_however_often_the_timer_is_asked(
        start in 0_u64..3600,
        length in 0_u64..7200,
        jitter in 0_u64..3600,
    ) {
        let settings = json!({"cron": PARIS_NIGHT, "timezone": "Europe/Paris", "jitter": format!("{jitter}s")});
        let mut timer = timer(settings, "2026-10-24T18:00:00Z");
        let from = later(at("2026-10-24T18:00:00Z"), Duration::from_secs(start)).to_string();
        let rounds = pass(&mut timer, &from, "2026-10-26T12:00:00Z", Duration::from_secs(length), Outcome::Done);
        prop_assert_eq!(rounds.len(), 2);
    }
}

/// The most of a thousand moments that lie in one second.
fn most_in_a_second(moments: impl Iterator<Item = Timestamp>) -> usize {
    let mut seconds = std::collections::BTreeMap::<i64, usize>::new();
    for moment in moments {
        *seconds.entry(moment.as_second()).or_default() += 1;
    }
    seconds.into_values().max().unwrap_or_default()
}

#[test]
fn rounds_of_a_fleet_do_not_come_together() {
    const NAMES: usize = 1_000;
    let settings: Settings = serde_json::from_value(json!({"interval": "1m"})).expect("it is a schedule");
    let schedule = Schedule::parse(&settings).expect("it is right");
    let (now, ended) = (at("2026-06-01T12:00:00Z"), at("2026-06-01T12:01:00Z"));
    let name = |number: usize| format!("gateways/cluster-{number}");
    let timers = (0..NAMES).map(|number| Timer::new(schedule.clone(), &name(number), now, None));
    let mut timers: Vec<Timer> = timers.collect();
    let first = most_in_a_second(timers.iter().map(|timer| timer.next(now).0));
    assert!(first <= NAMES * 15 / 100, "{first} first rounds in one second");
    // Also where all of them have ended at one moment.
    for timer in &mut timers {
        timer.start(now, Cause::Start);
        timer.finish(ended, Outcome::Done);
    }
    let next = most_in_a_second(timers.iter().map(|timer| timer.next(ended).0));
    assert!(next <= NAMES * 15 / 100, "{next} next rounds in one second");
}
