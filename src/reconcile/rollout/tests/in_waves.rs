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

#[test]
fn a_command_for_one_cluster_keeps_to_the_waves() {
    let fleet = three_waves(|_| {});
    let (state, waves) = (State::open(fleet.folder.path()), fleet.rollout.waves.clone());
    let one = ["c".to_owned()];
    let rollout = Rollout::new(
        ("gateways", Notes::Kept(state.clone()), 5),
        fleet.rollout.all.iter().cloned(),
        (waves, one.iter()),
        true,
    );
    let alone = Fleet { rollout: rollout.expect("there are several"), folder: TempDir::new().expect("it can be made") };
    assert!(!alone.rolls("c", "v2", UnitState::Changed));
    assert!(fleet.rolls("a", "v2", UnitState::Changed) && fleet.rolls("b", "v2", UnitState::Changed));
    assert!(alone.rolls("c", "v2", UnitState::Changed));
}

proptest! {
    /// Whatever happens, and in whatever order: a cluster gets a target when it is healthy on those of the waves before that
    /// can be asked, and on one of each; or at once, if it is not healthy with what it has.
    #[test]
    fn no_target_reaches_a_wave_before_it_is_healthy_on_those_before(
        events in prop::collection::vec((0_usize..6, 0_u8..6, 0_u8..6), 1..80),
    ) {
        let fleet = three_waves(|_| {});
        let mut healthy: BTreeMap<usize, String> = BTreeMap::new();
        let (mut sick, mut absent) = (BTreeSet::new(), BTreeSet::new());
        let mut revision = 0;
        for (cluster, news, how) in events {
            revision += u32::from(news == 0);
            let (name, target) = (names(6)[cluster].clone(), format!("v{revision}"));
            if how == 0 {
                let lost = ClusterReport::failed(ClusterState::Unreachable, "no answer".to_owned(), None);
                fleet.turn(&name, &target).end(&lost);
                absent.insert(cluster);
                continue;
            }
            absent.remove(&cluster);
            let state = if how == 1 { UnitState::Unhealthy } else { UnitState::Changed };
            if !fleet.rolls(&name, &target, state) {
                continue;
            }
            let is_well = |other: &usize| healthy.get(other) == Some(&target);
            let is_through = |wave: usize| {
                let clusters = [2 * wave, 2 * wave + 1];
                clusters.iter().any(is_well) && clusters.iter().all(|it| is_well(it) || absent.contains(it))
            };
            let may_go = sick.contains(&cluster) || is_well(&cluster) || (0..cluster / 2).all(is_through);
            prop_assert!(may_go, "{name} got {target}: healthy {healthy:?}, sick {sick:?}, absent {absent:?}");
            if how == 1 {
                sick.insert(cluster);
                healthy.remove(&cluster);
            } else {
                sick.remove(&cluster);
                healthy.insert(cluster, target);
            }
        }
    }
}
