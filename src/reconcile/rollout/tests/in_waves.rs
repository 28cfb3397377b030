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
fn whoever_is_healthy_is_so_at_once_by_whatever_clock() {
    let fleet = three_waves(|_| {});
    let rolls = |cluster, second| fleet.rolls_at(cluster, ("v2", &edge(), "v2"), UnitState::Changed, second);
    assert!(rolls("a", 100) && rolls("b", 90) && rolls("c", 80));
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

/// Asks where a person has let everything go, and tells whether it goes.
fn is_let_go(turn: &Turn, target: &str) -> bool {
    let asked = of(&[(&edge(), target)]);
    let is_of_wave = |wait: &Wait| wait.guard == Guard::RolloutApproval;
    let lift = |waits: &BTreeMap<ObjectId, Wait>| {
        waits.iter().filter(|(_, it)| is_of_wave(it)).map(|(unit, _)| unit.clone()).collect()
    };
    turn.ask(&asked, lift).waits.values().all(is_of_wave)
}

#[test]
fn what_a_person_lets_go_is_waited_for_like_any_other() {
    let fleet = three_waves(|wave| {
        (wave.needs_approval, wave.at_once) = (wave.clusters[0] == "c", if wave.clusters[0] == "c" { 1 } else { 2 });
    });
    assert!(fleet.rolls("a", "v2", UnitState::Changed) && fleet.rolls("b", "v2", UnitState::Changed));
    let (c, d) = (fleet.turn("c", "v2"), fleet.turn("d", "v2"));
    assert!(is_let_go(&c, "v2"));
    assert!(!is_let_go(&d, "v2"), "one at once");
    assert!(!fleet.rolls("e", "v2", UnitState::Changed), "it is on its way to the wave before");
    c.end(&done(&edge(), UnitState::Changed));
    assert!(is_let_go(&d, "v2") && !fleet.rolls("e", "v2", UnitState::Changed));
    d.end(&done(&edge(), UnitState::Unhealthy));
    assert!(!fleet.rolls("e", "v2", UnitState::Changed));
    fleet.passes("d", "v2", UnitState::Current);
    assert!(fleet.rolls("e", "v2", UnitState::Changed));
}

#[test]
fn whoever_is_on_the_way_to_a_change_waits_for_the_turn_of_its_wave_with_the_next() {
    let fleet = three_waves(|_| {});
    assert!(fleet.rolls("a", "v2", UnitState::Changed) && fleet.rolls("b", "v2", UnitState::Changed));
    // The process ends.
    let (c, d) = (fleet.asks("c", "v2"), fleet.asks("d", "v2"));
    assert_eq!((c.1, d.1), (None, None));
    let fleet = fleet.again();
    assert!(!fleet.rolls("c", "v3", UnitState::Changed) && !fleet.rolls("d", "v3", UnitState::Changed));
    assert!(fleet.rolls("a", "v3", UnitState::Changed) && fleet.rolls("b", "v3", UnitState::Changed));
    assert!(fleet.rolls("c", "v3", UnitState::Changed));
}

#[test]
fn a_wave_on_which_a_unit_is_withheld_has_not_tried_it() {
    let fleet = three_waves(|_| {});
    for name in ["a", "b"] {
        let turn = fleet.turn(name, "v2");
        let withheld = [edge()].into();
        assert!(asks(&turn, &Asked { withheld, ..Asked::default() }).waits.is_empty());
        assert!(!fleet.rolls("c", "v2", UnitState::Changed));
        turn.end(&report(ClusterState::Done, UnitState::Held));
    }
    let (_, wait) = fleet.asks("c", "v2");
    assert!(wait.is_some_and(|wait| wait.message == "nothing could be done on the clusters of wave 1"));
    assert!(fleet.rolls("b", "v2", UnitState::Changed) && fleet.rolls("c", "v2", UnitState::Changed));
}

#[tokio::test(start_paused = true)]
async fn the_time_that_a_cluster_stays_healthy_begins_when_it_is() {
    let fleet = three_waves(|wave| wave.soak = Duration::from_mins(10));
    let nudge = Arc::new(Notify::new());
    fleet.rollout.nudge("c", Arc::clone(&nudge));
    let turns = ["a", "b"].map(|name| fleet.asks(name, "v2").0);
    tokio::time::sleep(Duration::from_mins(9)).await;
    for turn in turns {
        turn.end(&done(&edge(), UnitState::Changed));
    }
    let rolls = |second| fleet.rolls_at("c", ("v2", &edge(), "v2"), UnitState::Changed, second);
    assert!(!rolls(660) && !rolls(1139));
    // Whoever waits is told of it, also in a process that did not see it begin.
    let fleet = fleet.again();
    fleet.rollout.nudge("c", Arc::clone(&nudge));
    assert!(!fleet.rolls_at("c", ("v2", &edge(), "v2"), UnitState::Changed, 1000));
    futures::FutureExt::now_or_never(nudge.notified());
    tokio::time::timeout(Duration::from_secs(141), nudge.notified()).await.expect("it is nudged");
    assert!(fleet.rolls_at("c", ("v2", &edge(), "v2"), UnitState::Changed, 1140));
}

#[test]
fn a_command_for_one_cluster_keeps_to_the_waves() {
    let fleet = three_waves(|_| {});
    let alone = fleet.waited_for(&["c".to_owned()]);
    assert!(!alone.rolls("c", "v2", UnitState::Changed));
    assert!(fleet.rolls("a", "v2", UnitState::Changed) && fleet.rolls("b", "v2", UnitState::Changed));
    assert!(alone.rolls("c", "v2", UnitState::Changed));
}

proptest! {
    /// Whatever happens, and in whatever order: a cluster gets a target when it is healthy on those of the waves before that
    /// can be asked, and on one of each; or at once, if it is not healthy with what it has.
    #[test]
    fn no_target_reaches_a_wave_before_it_is_healthy_on_those_before(
        events in prop::collection::vec((0_usize..6, 0_u8..6, 0_u8..9), 1..80),
    ) {
        let mut fleet = three_waves(|_| {});
        let mut healthy: BTreeMap<usize, String> = BTreeMap::new();
        let mut has: BTreeMap<usize, String> = BTreeMap::new();
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
            let away = absent.clone();
            let (is_dropped, is_withheld) = (how == 6 || how == 7, how == 8);
            let rolls = if is_dropped {
                fleet.asks(&name, &target).1.is_none()
            } else if is_withheld {
                let turn = fleet.turn(&name, &target);
                asks(&turn, &Asked { withheld: [edge()].into(), ..Asked::default() });
                turn.end(&waiting_by(Guard::Adopt, &edge()));
                absent.insert(cluster);
                false
            } else {
                fleet.rolls(&name, &target, state)
            };
            if how == 6 {
                absent.insert(cluster);
            }
            if how == 7 {
                // The process ends.
                fleet = fleet.again();
                absent.clear();
            }
            if !rolls {
                continue;
            }
            let is_well = |other: &usize| healthy.get(other) == Some(&target);
            let is_through = |wave: usize| {
                let clusters = [2 * wave, 2 * wave + 1];
                clusters.iter().any(is_well) && clusters.iter().all(|it| is_well(it) || away.contains(it))
            };
            let may_go = sick.contains(&cluster) || has.get(&cluster) == Some(&target) || is_well(&cluster) || (0..cluster / 2).all(is_through);
            prop_assert!(may_go, "{name} got {target}: healthy {healthy:?}, sick {sick:?}, away {away:?}");
            has.insert(cluster, target.clone());
            if is_dropped {
                healthy.remove(&cluster);
            } else if how == 1 {
                sick.insert(cluster);
                healthy.remove(&cluster);
            } else {
                sick.remove(&cluster);
                healthy.insert(cluster, target);
            }
        }
    }
}
