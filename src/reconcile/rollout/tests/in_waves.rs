//! The order of waves.

use super::*;

/// Three waves of two.
fn three_waves(change: impl Fn(&mut Wave)) -> Fleet {
    let wave = |names: [&str; 2]| {
        let mut wave = Wave::of(names.map(str::to_owned).to_vec());
        change(&mut wave);
        wave
    };
    in_waves([["a", "b"], ["c", "d"], ["e", "f"]].map(wave).into(), false)
}

#[test]
fn a_wave_goes_when_those_before_are_healthy() {
    let fleet = three_waves(|_| {});
    assert!(!fleet.rolls("c", "v2", UnitState::Changed) && !fleet.rolls("e", "v2", UnitState::Changed));
    assert!(fleet.rolls("b", "v2", UnitState::Changed) && !fleet.rolls("c", "v2", UnitState::Changed));
    assert!(fleet.rolls("a", "v2", UnitState::Changed) && !fleet.rolls("e", "v2", UnitState::Changed));
    assert!(fleet.rolls("c", "v2", UnitState::Unhealthy));
    for name in ["d", "e", "f"] {
        assert!(!fleet.rolls(name, "v2", UnitState::Changed), "{name}");
    }
    // The correction goes where it is bad, and to the first wave.
    assert!(fleet.rolls("c", "v3", UnitState::Changed) && !fleet.rolls("d", "v3", UnitState::Changed));
    assert!(fleet.rolls("a", "v3", UnitState::Changed) && fleet.rolls("b", "v3", UnitState::Changed));
    assert!(["d", "c", "d"].iter().all(|name| fleet.rolls(name, "v3", UnitState::Changed)));
    assert!(fleet.rolls("f", "v3", UnitState::Changed));
}

#[test]
fn a_wave_may_go_one_by_one_and_some_of_it_may_fail() {
    let fleet = three_waves(|wave| (wave.at_once, wave.tolerated) = (1, 1));
    let (first, wait) = fleet.asks("b", "v2");
    assert_eq!(wait, None);
    assert!(is_for(fleet.asks("a", "v2").1.as_ref(), "b"));
    first.end(&report(ClusterState::Done, UnitState::Unhealthy));
    assert!(fleet.rolls("a", "v2", UnitState::Changed), "one may be unhealthy");
    assert!(fleet.rolls("c", "v2", UnitState::Unhealthy) && fleet.rolls("d", "v2", UnitState::Unhealthy));
    assert!(!fleet.rolls("e", "v2", UnitState::Changed), "and not two");
}

#[test]
fn a_wave_waits_until_those_before_were_healthy_for_long_enough() {
    let fleet = three_waves(|wave| wave.soak = Duration::from_mins(10));
    let rolls = |cluster, second| fleet.rolls_at(cluster, ("v2", &edge(), "v2"), UnitState::Changed, second);
    assert!(rolls("a", 0) && rolls("b", 60));
    assert!(!rolls("c", 659) && rolls("c", 660));
    // What falls ill meanwhile is not healthy for that long.
    assert!(rolls("d", 700));
    fleet.passes("c", "v2", UnitState::Unhealthy);
    assert!(!rolls("e", 2000));
}

#[test]
fn a_wave_that_cannot_be_asked_at_all_lets_nobody_through() {
    let fleet = three_waves(|_| {});
    let lose = |name: &str| {
        let lost = ClusterReport::failed(ClusterState::Unreachable, "no answer".to_owned(), None);
        fleet.turn(name, "v2").end(&lost);
    };
    lose("a");
    lose("b");
    assert!(!fleet.rolls("c", "v2", UnitState::Changed));
    assert!(fleet.rolls("b", "v2", UnitState::Changed));
    assert!(
        fleet.rolls("c", "v2", UnitState::Changed),
        "one of it is enough, and the other one follows when it is back"
    );
    assert!(fleet.rolls("a", "v2", UnitState::Changed));
}

#[test]
fn a_wave_may_need_a_person() {
    let fleet = three_waves(|wave| wave.needs_approval = wave.clusters[0] == "c");
    assert!(fleet.rolls("a", "v2", UnitState::Changed) && fleet.rolls("b", "v2", UnitState::Changed));
    let (_, wait) = fleet.asks("c", "v2");
    assert!(wait.is_some_and(|wait| wait.message == "v2 goes to wave 2 when a person has agreed"));
}
