//! Reasons to look again, and rounds that ended otherwise than well.

use super::*;

/// Else the daemon would have rounds without a pause.
#[test]
fn what_is_held_for_the_reason_that_was_told_is_not_looked_at_again() {
    let fleet = fleet(2, false);
    let nudges = ["a", "b"].map(|name| {
        let nudge = Arc::new(Notify::new());
        fleet.rollout.nudge(name, Arc::clone(&nudge));
        nudge
    });
    let is_quiet = |what: &str| {
        for nudge in &nudges {
            futures::FutureExt::now_or_never(nudge.notified());
        }
        fleet.rollout.news(Timestamp::UNIX_EPOCH);
        fleet.passes("folder", what, UnitState::Current);
        assert!(nudges.iter().all(|it| futures::FutureExt::now_or_never(it.notified()).is_none()), "{what}");
    };
    // Too much is deleted.
    fleet.passes("folder", "v1", UnitState::Current);
    for name in ["a", "b", "a", "b"] {
        let turn = fleet.turn(name, "v1");
        let answer = asks(&turn, &Asked { deletes: 4, ..Asked::default() });
        let holds = answer.deletions.map(|wait| hold(wait.guard, Vec::new())).into_iter().collect();
        turn.end(&ClusterReport { holds, ..done(&edge(), UnitState::Current) });
    }
    is_quiet("v1");
    // The first is not healthy.
    assert!(fleet.rolls("a", "v2", UnitState::Unhealthy) && !fleet.rolls("b", "v2", UnitState::Changed));
    is_quiet("v2");
    // Rollouts are paused.
    let pause = Pause { reason: "holidays".to_owned(), by: None, since: Timestamp::UNIX_EPOCH };
    let ledger = Ledger { paused: Some(pause), ..fleet.ledger() };
    fleet.write(&ledger);
    assert!(!fleet.rolls("a", "v3", UnitState::Changed) && !fleet.rolls("b", "v3", UnitState::Changed));
    is_quiet("v3");
    // Nobody knows how far they are.
    let file = fleet.folder.path().join("rollouts/gateways.json");
    std::fs::write(&file, "{").expect("it can be written");
    assert!(!fleet.rolls("a", "v4", UnitState::Changed) && !fleet.rolls("b", "v4", UnitState::Changed));
    is_quiet("v4");
    // Nobody can note what is deleted.
    std::fs::remove_file(&file).expect("it is there");
    let lock = fleet.folder.path().join("rollouts/gateways.lock");
    std::fs::remove_file(&lock).expect("it is there");
    std::fs::create_dir(&lock).expect("a folder can be made");
    for name in ["a", "b"] {
        let turn = fleet.turn(name, "v5");
        let answer = asks(&turn, &Asked { deletes: 1, ..Asked::default() });
        assert_eq!(answer.deletions.as_ref().map(|wait| wait.guard), Some(Guard::MaxDeleteFleet));
        let holds = answer.deletions.map(|wait| hold(wait.guard, Vec::new())).into_iter().collect();
        turn.end(&ClusterReport { holds, ..done(&edge(), UnitState::Current) });
    }
    is_quiet("v5");
}

#[test]
fn more_than_one_cluster_that_is_lost_with_a_change_is_not_bad_luck() {
    let fleet = fleet(4, false);
    let lose = |name: &str| {
        let (turn, wait) = fleet.asks(name, "v2");
        assert_eq!(wait, None, "{name}");
        turn.end(&ClusterReport::failed(ClusterState::Unreachable, "no answer".to_owned(), None));
    };
    lose("a");
    lose("b");
    let (_, wait) = fleet.asks("c", "v2");
    let message = "v2 went to clusters a, b, and none of them has answered since";
    assert!(wait.is_some_and(|wait| wait.guard == Guard::RolloutHalted && wait.message == message));
    // One that is back and healthy is enough.
    assert!(fleet.rolls("b", "v2", UnitState::Changed));
    fleet.passes("b", "v2", UnitState::Current);
    assert!(fleet.rolls("c", "v2", UnitState::Changed));
}

#[test]
fn a_round_that_is_stopped_says_nothing_of_health() {
    let fleet = fleet(2, false);
    let (turn, _) = fleet.asks("a", "v2");
    turn.end(&report(ClusterState::Stopped, UnitState::Unhealthy));
    let (_, wait) = fleet.asks("b", "v2");
    assert!(wait.is_some_and(|wait| wait.guard == Guard::Rollout));
    fleet.passes("a", "v2", UnitState::Current);
    assert!(fleet.rolls("b", "v2", UnitState::Changed));
}

#[test]
fn a_unit_that_is_well_is_healthy_also_where_another_one_failed() {
    let (fleet, other) = (fleet(2, false), gateway("other"));
    let waits = fleet.rolls_both(&other, report(ClusterState::Failed, UnitState::Failed));
    assert!(waits[&edge()].guard == Guard::RolloutHalted && waits.len() == 1, "{waits:?}");
}
