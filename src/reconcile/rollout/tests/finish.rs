//! Revisions that come while another one is rolled out.

use gatewright_engine::tree::Tree;

use super::*;
use crate::source::Snapshot;

impl Fleet {
    fn that_finishes(self) -> Self {
        let rollout = Arc::into_inner(self.rollout).expect("nobody has it yet");
        Self { rollout: Arc::new(Rollout { finishes: true, ..rollout }), ..self }
    }

    /// The revision of a round that begins when this one is the newest.
    fn round_at(&self, newest: &str) -> String {
        self.rollout.goes_on_with(&Arc::new(Snapshot::new(newest.to_owned(), Tree::default()))).revision.clone()
    }

    fn all_roll(&self, clusters: &[&str], target: &str) -> bool {
        clusters.iter().all(|name| self.rolls(name, target, UnitState::Changed))
    }
}

#[test]
fn what_goes_well_is_finished_before_the_next() {
    let fleet = fleet(3, false).that_finishes();
    assert_eq!(fleet.round_at("v1"), "v1");
    assert_eq!(fleet.round_at("v2"), "v2", "nothing has begun");
    assert!(!fleet.rolls("b", "v2", UnitState::Changed));
    assert_eq!(fleet.round_at("v3"), "v2", "b waits for it");
    assert!(fleet.rolls("a", "v2", UnitState::Changed));
    assert_eq!(fleet.round_at("v3"), "v2", "b waits for it, and c has not looked at it");
    assert!(fleet.all_roll(&["b", "folder"], "v2"));
    assert_eq!(fleet.round_at("v3"), "v2", "c has not looked at it");
    assert!(fleet.all_roll(&["c"], "v2"));
    assert_eq!(fleet.round_at("v3"), "v3");
    assert_eq!(fleet.round_at("v2"), "v2", "a source may go back");
}

#[test]
fn a_correction_waits_for_nothing() {
    let fleet = fleet(3, false).that_finishes();
    assert_eq!(fleet.round_at("v1"), "v1");
    assert!(!fleet.rolls("b", "v1", UnitState::Changed) && fleet.rolls("a", "v1", UnitState::Unhealthy));
    assert_eq!(fleet.round_at("v2"), "v2");
}

#[test]
fn clusters_that_do_not_answer_are_not_waited_for() {
    let fleet = fleet(3, false).that_finishes();
    assert_eq!(fleet.round_at("v1"), "v1");
    assert!(!fleet.rolls("b", "v1", UnitState::Changed));
    assert!(fleet.all_roll(&["a", "c", "folder"], "v1"));
    assert_eq!(fleet.round_at("v2"), "v1", "b waits for it");
    fleet.turn("b", "v1").end(&ClusterReport::failed(ClusterState::Unreachable, "no answer".to_owned(), None));
    assert_eq!(fleet.round_at("v2"), "v2");
}

#[test]
fn rounds_begin_again_when_it_is_over() {
    let fleet = fleet(2, false).that_finishes();
    let nudge = Arc::new(Notify::new());
    fleet.rollout.nudge("b", Arc::clone(&nudge));
    let is_nudged = || futures::FutureExt::now_or_never(nudge.notified()).is_some();
    let goes_on = || fleet.rollout.goes_on_after(&Snapshot::new("v2".to_owned(), Tree::default()));
    assert_eq!(fleet.round_at("v1"), "v1");
    assert!(fleet.all_roll(&["a", "b"], "v1"));
    is_nudged();
    goes_on();
    assert!(!is_nudged(), "the folder has not looked at it");
    assert!(fleet.all_roll(&["folder"], "v1"));
    goes_on();
    assert!(is_nudged());
    assert_eq!(fleet.round_at("v2"), "v2");
    is_nudged();
    goes_on();
    assert!(!is_nudged(), "it is the newest");
}

#[test]
fn without_the_setting_the_newest_is_begun() {
    let fleet = fleet(3, false);
    assert_eq!(fleet.round_at("v1"), "v1");
    assert!(!fleet.rolls("b", "v1", UnitState::Changed));
    assert_eq!(fleet.round_at("v2"), "v2");
}
