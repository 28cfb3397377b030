//! The way back of waves on which a change has failed.

use proptest::strategy::Strategy;

use super::*;
use crate::reconcile::rollout::record::Failure;

/// Two waves of two that go back, of which so many may fail.
fn two_waves(tolerated: usize, soak: Duration) -> Fleet {
    let wave = |names: [&str; 2]| Wave { tolerated, soak, ..Wave::of(names.map(str::to_owned).to_vec()) };
    returning(in_waves([["a", "b"], ["c", "d"]].map(wave).into(), false))
}

fn returning(Fleet { rollout, folder }: Fleet) -> Fleet {
    let rollout = Arc::into_inner(rollout).expect("nobody else has it");
    Fleet { rollout: Arc::new(Rollout { goes_back: Some(Duration::ZERO), ..rollout }), folder }
}

impl Fleet {
    /// The clusters that are to go back.
    fn back(&self) -> Vec<String> {
        let ledger = self.ledger();
        ledger.units.into_iter().flat_map(|record| record.back.into_keys()).collect()
    }

    /// Has a cluster go back, as at the end of its round.
    fn goes_back(&self, cluster: &str, target: &str) {
        let turn = self.turn(cluster, target);
        turn.went_back(&[edge()].into(), &BTreeSet::new());
        turn.end(&done(&edge(), UnitState::Held));
    }

    fn approved(&self, cluster: &str, target: &str, state: UnitState) {
        let turn = self.turn(cluster, target);
        turn.ask(&of(&[(&edge(), target)]), |waits| waits.keys().cloned().collect());
        turn.end(&done(&edge(), state));
    }
}

#[test]
fn a_wave_goes_back_as_a_whole_when_too_many_of_it_fail() {
    let fleet = two_waves(1, Duration::ZERO);
    assert!(fleet.rolls("a", "v2", UnitState::Unhealthy));
    assert_eq!(fleet.back(), ["a"], "one may fail, and does not keep what failed");
    fleet.goes_back("a", "v2");
    assert!(fleet.rolls("b", "v2", UnitState::Changed) && fleet.rolls("c", "v2", UnitState::Changed));
    assert_eq!(fleet.back(), [""; 0]);
    let failure =
        |on: &str| Stage::Returned(Failure { on: on.to_owned(), revision: "v2".to_owned(), why: edge().to_string() });
    let stage = |cluster: &str| fleet.ledger().units[0].members.get(cluster).map(|it| it.stage.clone());
    assert_eq!(stage("a"), Some(failure("a")));

    let fleet = two_waves(0, Duration::ZERO);
    assert!(fleet.rolls("a", "v2", UnitState::Changed) && fleet.rolls("b", "v2", UnitState::Unhealthy));
    assert_eq!(fleet.back(), ["a", "b"]);
    assert!(!fleet.rolls("c", "v2", UnitState::Changed));
    fleet.goes_back("a", "v2");
    fleet.goes_back("b", "v2");
    for name in ["a", "b", "c", "d"] {
        let wait = fleet.asks(name, "v2").1.expect(name);
        assert_eq!(wait.message, "v2 went to cluster b, was not healthy there, and was taken back");
    }
    // What was there before is no trial, and the same again is tried again.
    fleet.passes("a", "v3", UnitState::Current);
    fleet.passes("b", "v3", UnitState::Current);
    assert!(fleet.rolls("a", "v2", UnitState::Changed) && !fleet.rolls("c", "v2", UnitState::Changed));
}

#[tokio::test]
async fn the_correction_waits_for_the_cluster_that_has_given_back() {
    let fleet = returning(fleet(2, true));
    assert!(fleet.rolls("a", "v2", UnitState::Unhealthy));
    fleet.goes_back("a", "v2");
    // Nobody knows yet whether it is the same change there.
    let (b, wait) = fleet.asks("b", "v3");
    assert!(wait.is_some_and(|wait| wait.message.starts_with("v2 went to cluster a, ")));
    b.rests(&waiting_by(Guard::RolloutHalted, &edge()));
    let (a, wait) = fleet.asks("a", "v3");
    assert_eq!(wait, None);
    let end = async { a.end(&report(ClusterState::Done, UnitState::Changed)) };
    let stop = CancellationToken::new();
    assert!(tokio::join!(b.comes(&stop), end).0 && fleet.rolls("b", "v3", UnitState::Changed));
}

#[test]
fn only_what_is_on_trial_goes_back() {
    let fleet = two_waves(0, Duration::from_mins(10));
    let rolls = |cluster, second| fleet.rolls_at(cluster, ("v2", &edge(), "v2"), UnitState::Changed, second);
    let falls_ill = |cluster, second| {
        let turn = fleet.turn_at(cluster, "v2", second);
        assert!(asks(&turn, &Asked::default()).waits.is_empty());
        turn.end(&report(ClusterState::Done, UnitState::Unhealthy));
    };
    assert!(rolls("a", 0) && rolls("b", 0));
    // Long after it was healthy something else is wrong.
    falls_ill("a", 601);
    assert_eq!(fleet.back(), [""; 0]);
    falls_ill("b", 599);
    assert_eq!(fleet.back(), ["a", "b"]);
    // The correction is for them, and nothing goes back to what was before both.
    assert!(fleet.rolls("a", "v3", UnitState::Changed) && fleet.rolls("b", "v3", UnitState::Changed));
    assert_eq!(fleet.back(), [""; 0]);
}

#[test]
fn what_a_person_has_let_go_stays() {
    let fleet = two_waves(0, Duration::ZERO);
    assert!(fleet.rolls("a", "v2", UnitState::Unhealthy));
    fleet.goes_back("a", "v2");
    fleet.approved("a", "v2", UnitState::Unhealthy);
    fleet.approved("c", "v2", UnitState::Unhealthy);
    assert_eq!(fleet.back(), [""; 0]);
    assert!(!fleet.rolls("b", "v2", UnitState::Changed));
    assert_eq!(fleet.back(), [""; 0]);
}

#[test]
fn those_that_go_back_have_rounds_of_their_own() {
    let fleet = two_waves(0, Duration::ZERO);
    let nudge = Arc::new(Notify::new());
    fleet.rollout.nudge("a", Arc::clone(&nudge));
    let is_nudged = || futures::FutureExt::now_or_never(nudge.notified()).is_some();
    assert!(fleet.rolls("a", "v2", UnitState::Changed) && !is_nudged());
    assert!(fleet.rolls("b", "v2", UnitState::Unhealthy) && is_nudged());
    let turn = fleet.turn("a", "v2");
    let stop = CancellationToken::new();
    let back =
        |tried: BTreeSet<ObjectId>| futures::executor::block_on(turn.goes_back(|unit| !tried.contains(unit), &stop));
    assert_eq!(back(BTreeSet::new()), BTreeMap::from([(edge(), format!("on cluster b: {}", edge()))]));
    assert!(back([edge()].into()).is_empty(), "once in a round");
    turn.end(&report(ClusterState::Done, UnitState::Changed));
    assert!(!is_nudged(), "what could not go back waits for the next round");
}

#[derive(Clone, Debug)]
enum Event {
    Round { cluster: u8, is_well: bool },
    Back,
    Commit,
    Restart,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let round = (0_u8..4, any::<bool>()).prop_map(|(cluster, is_well)| Event::Round { cluster, is_well });
    prop::collection::vec(
        prop_oneof![6 => round, 3 => Just(Event::Back), 1 => Just(Event::Commit), 1 => Just(Event::Restart)],
        1..60,
    )
}

proptest! {
    /// Whatever happens, and in whatever order: what was taken back on a cluster comes there again by another revision only,
    /// whatever else is committed; only what has the change goes back; and the second wave gets it once it is healthy on
    /// so many of the first as it takes.
    #[test]
    fn what_was_taken_back_does_not_come_again(events in events(), tolerated in 0_usize..2) {
        let mut fleet = two_waves(tolerated, Duration::ZERO);
        // The digest of what is to be had, and the revision, which moves also with other commits.
        let (mut digest, mut revision) = (2, 2);
        let (mut has, mut is_back, mut ill) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        for event in events {
            match event {
                Event::Commit => {
                    revision += 1;
                    if revision % 2 == 0 {
                        digest = revision;
                        is_back.clear();
                    }
                }
                Event::Restart => {
                    fleet = returning(fleet.again());
                }
                Event::Back => {
                    for cluster in fleet.back() {
                        fleet.goes_back(&cluster, &format!("v{revision}"));
                        let had = has.remove(&cluster);
                        ill.remove(&cluster);
                        prop_assert!(had.is_some(), "{cluster} goes back, and does not have it");
                        if had == Some(digest) {
                            is_back.insert(cluster);
                        }
                    }
                    prop_assert!(fleet.back().is_empty());
                }
                Event::Round { cluster, is_well } => {
                    let cluster = char::from(b'a' + cluster).to_string();
                    let (target, state) = (format!("v{revision}"), if is_well { UnitState::Changed } else { UnitState::Unhealthy });
                    if has.get(&cluster) == Some(&digest) {
                        fleet.passes(&cluster, &target, if is_well { UnitState::Current } else { state });
                    } else if fleet.rolls_unit(&cluster, (&target, &edge(), &format!("d{digest}")), state) {
                        prop_assert!(!is_back.contains(&cluster), "{} gets again what was taken back", cluster);
                        let first = ["a", "b"].iter().filter(|name| is_back.contains(**name)).count();
                        // What was ill before gets the correction at once.
                        let is_in_turn = cluster.as_str() < "c" || ill.contains(&cluster) || first <= tolerated;
                        prop_assert!(is_in_turn, "{cluster} after {is_back:?}");
                        has.insert(cluster.clone(), digest);
                    } else {
                        continue;
                    }
                    if is_well {
                        ill.remove(&cluster);
                    } else {
                        ill.insert(cluster);
                    }
                }
            }
        }
    }
}
