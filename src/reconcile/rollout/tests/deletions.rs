//! Deletions on all clusters together.

use super::*;

/// Asks to delete something of a number of units, and returns the guard that holds it.
fn deletes(turn: &Turn, number: usize) -> Option<Guard> {
    turn.ask(&BTreeMap::new(), number).deletions.map(|wait| wait.guard)
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
    assert_eq!((deletes(&a, 0), deletes(&b, 40)), (None, None));
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
