//! Deletions on all clusters together.

use super::*;

/// Asks to delete something of a number of units, and returns the guard that holds it.
fn deletes(turn: &Turn, number: usize) -> Option<Guard> {
    asks(turn, &Asked { deletes: number, ..Asked::default() }).deletions.map(|wait| wait.guard)
}

#[test]
fn nothing_is_deleted_before_it_is_known_how_much_that_is_on_all_clusters() {
    let fleet = fleet(2, false);
    let a = fleet.turn("a", "v2");
    assert_eq!(deletes(&a, 2), Some(Guard::RolloutDeletion));
    fleet.passes("folder", "v2", UnitState::Current);
    // What it wanted of another revision says nothing.
    let old = fleet.turn("b", "v1");
    assert_eq!(deletes(&old, 4), Some(Guard::RolloutDeletion));
    assert_eq!(deletes(&a, 2), Some(Guard::RolloutDeletion));
    let b = fleet.turn("b", "v2");
    assert_eq!(deletes(&b, 3), None, "five may go");
    assert_eq!(deletes(&a, 2), None);
    assert_eq!((deletes(&b, 4), deletes(&a, 2)), (Some(Guard::MaxDeleteFleet), Some(Guard::MaxDeleteFleet)));
    // On one cluster alone another guard counts.
    let (a, b) = (fleet.turn("a", "v3"), fleet.turn("b", "v3"));
    fleet.passes("folder", "v3", UnitState::Current);
    assert_eq!((deletes(&a, 0), deletes(&b, 40)), (None, None));
}

#[test]
fn what_was_deleted_for_a_revision_counts_on() {
    let fleet = fleet(2, false);
    fleet.passes("folder", "v2", UnitState::Current);
    let lost = ClusterReport::failed(ClusterState::Unreachable, "no answer".to_owned(), None);
    fleet.turn("a", "v2").end(&lost);
    let b = fleet.turn("b", "v2");
    assert_eq!(deletes(&b, 3), None, "a cannot be asked");
    b.end(&done(&edge(), UnitState::Pruned));
    // Back again, after the next round of the other one, and in another process.
    let refused = Some(Guard::MaxDeleteFleet);
    let a = fleet.turn("a", "v2");
    assert_eq!(deletes(&a, 3), refused);
    fleet.passes("b", "v2", UnitState::Current);
    assert_eq!(deletes(&a, 3), refused);
    let again = fleet.again();
    assert_eq!(deletes(&again.turn_at("a", "v2", 1000), 3), Some(Guard::RolloutDeletion), "folder counts, too");
    assert_eq!(deletes(&again.turn_at("a", "v2", 1200), 3), refused);
    // Of another revision it does not.
    fleet.passes("b", "v3", UnitState::Current);
    fleet.passes("folder", "v3", UnitState::Current);
    assert_eq!(deletes(&fleet.turn("a", "v3"), 3), None);
}

#[test]
fn what_nobody_can_count_is_not_deleted() {
    let fleet = fleet(2, false);
    std::fs::create_dir_all(fleet.folder.path().join("rollouts/gateways.json")).expect("a folder can be made");
    assert_eq!(deletes(&fleet.turn("a", "v2"), 1), Some(Guard::MaxDeleteFleet));
}

proptest! {
    /// Whatever happens, and in whatever order: of one revision no more is deleted on all clusters than five units.
    #[test]
    fn no_more_is_deleted_for_a_revision_than_is_allowed(
        events in prop::collection::vec((0_usize..4, 0_u8..9, 0_u8..8, 1_usize..4), 1..80),
    ) {
        let mut fleet = fleet(3, false);
        let (mut revision, mut time) = (0, 0);
        let mut left: BTreeMap<(usize, u32), usize> = BTreeMap::new();
        let mut deleted: BTreeMap<u32, BTreeMap<usize, usize>> = BTreeMap::new();
        for (cluster, news, how, units) in events {
            revision += u32::from(news == 0);
            time += i64::from(how) * 30;
            let name = ["a", "b", "c", "folder"][cluster];
            let target = format!("v{revision}");
            match how {
                0 => fleet.turn_at(name, &target, time).end(&ClusterReport::failed(
                    ClusterState::Unreachable, "no answer".to_owned(), None)),
                1 => drop(fleet.turn_at(name, &target, time)),
                2 => fleet = fleet.again(),
                _ => {
                    let turn = fleet.turn_at(name, &target, time);
                    let number = *left.entry((cluster, revision)).or_insert(units);
                    let guard = deletes(&turn, number);
                    if guard.is_none() && number > 0 {
                        left.insert((cluster, revision), 0);
                        *deleted.entry(revision).or_default().entry(cluster).or_default() += number;
                    }
                    let holds = guard.map(|guard| hold(guard, Vec::new())).into_iter().collect();
                    turn.end(&ClusterReport { holds, ..done(&edge(), UnitState::Current) });
                }
            }
            for on in deleted.values() {
                prop_assert!(on.values().sum::<usize>() <= 5 || on.len() == 1, "{deleted:?}");
            }
        }
    }
}

#[test]
fn deletions_wait_for_clusters_that_nobody_looks_at_for_a_while_only() {
    let fleet = fleet(2, false);
    assert_eq!(deletes(&fleet.turn_at("a", "v2", 0), 1), Some(Guard::RolloutDeletion));
    assert_eq!(deletes(&fleet.turn_at("a", "v2", 119), 1), Some(Guard::RolloutDeletion));
    assert_eq!(deletes(&fleet.turn_at("a", "v2", 120), 1), None);
    assert_eq!(deletes(&fleet.turn_at("a", "v3", 120), 1), Some(Guard::RolloutDeletion));
}

#[tokio::test]
async fn deletions_go_in_the_same_command_once_all_clusters_were_looked_at() {
    let (fleet, stop) = (fleet(2, true), CancellationToken::new());
    let (a, b, folder) = (fleet.turn("a", "v2"), fleet.turn("b", "v2"), fleet.turn("folder", "v2"));
    assert_eq!(deletes(&a, 1), Some(Guard::RolloutDeletion));
    let waits =
        ClusterReport { holds: vec![hold(Guard::RolloutDeletion, Vec::new())], ..done(&edge(), UnitState::Current) };
    a.rests(&waits);
    let others = async {
        assert_eq!(deletes(&b, 1), Some(Guard::RolloutDeletion));
        folder.end(&done(&edge(), UnitState::Current));
    };
    assert!(tokio::join!(a.comes(&stop), others).0);
    assert_eq!((deletes(&a, 1), deletes(&b, 1)), (None, None));
}
