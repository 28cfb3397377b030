use gatewright_engine::plan::guard::{Guard, Hold};
use gatewright_engine::spec::GATEWAY_API;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::report::withheld::HoldReport;
use crate::report::{Failure, UnitReport, UnitState};

/// Clusters `a`, `b`, … that have health, and one that has none.
struct Fleet {
    rollout: Arc<Rollout>,
    folder: TempDir,
}

fn fleet(number: u8, is_waiting: bool) -> Fleet {
    let folder = TempDir::new().expect("a folder for tests can be made");
    let state = State::open(folder.path());
    let candidates: Vec<String> = (0..number).map(|index| char::from(b'a' + index).to_string()).collect();
    let all = candidates.iter().cloned().chain(["folder".to_owned()]);
    let rollout = Rollout::new(("gateways", &state), all, candidates.clone(), is_waiting).expect("there are several");
    Fleet { rollout, folder }
}

fn edge() -> ObjectId {
    ObjectId::new(GATEWAY_API, "Gateway", "infra", "edge")
}

fn report(state: ClusterState, unit: UnitState) -> ClusterReport {
    ClusterReport { state, units: vec![UnitReport::new(edge(), unit)], ..ClusterReport::default() }
}

/// A round that a guard holds.
fn held(guard: Guard) -> ClusterReport {
    let (message, hint) = (String::new(), String::new());
    let hold = Hold { guard, unit: None, message, hint, token: None, fleet_token: None, steps: Vec::new() };
    ClusterReport { holds: vec![HoldReport::from(hold)], ..report(ClusterState::Held, UnitState::Current) }
}

impl Fleet {
    fn turn(&self, cluster: &str, target: &str) -> Turn {
        let target = (target.to_owned(), target.to_owned());
        Turn::new(&self.rollout, cluster, target, (Mode::Apply, Timestamp::UNIX_EPOCH))
    }

    /// Asks, and says whose turn it is where it is not that of the cluster.
    fn asks(&self, cluster: &str, target: &str) -> (Turn, Option<String>) {
        let turn = self.turn(cluster, target);
        let verdict = turn.ask(&[edge()].into());
        let on = if let Verdict::Wait { on, .. } = verdict { Some(on) } else { None };
        (turn, on)
    }

    /// Runs a round that replaces pods where it may, and ends so; tells whether it did.
    fn rolls(&self, cluster: &str, target: &str, unit: UnitState) -> bool {
        let (turn, on) = self.asks(cluster, target);
        turn.end(&if on.is_some() { held(Guard::Rollout) } else { report(ClusterState::Done, unit) });
        on.is_none()
    }
}

#[test]
fn others_follow_when_the_first_is_healthy() {
    let fleet = fleet(3, false);
    assert_eq!(fleet.asks("b", "v2").1.as_deref(), Some("a"), "it is the first by name");
    assert_eq!(fleet.asks("folder", "v2").1.as_deref(), Some("a"));
    let (first, on) = fleet.asks("a", "v2");
    assert_eq!((on, fleet.asks("b", "v2").1.as_deref()), (None, Some("a")));
    first.end(&report(ClusterState::Done, UnitState::Changed));
    assert!(["b", "c", "folder"].iter().all(|name| fleet.rolls(name, "v2", UnitState::Changed)));
}

#[test]
fn what_is_not_healthy_goes_nowhere_else_and_its_correction_goes_there_first() {
    let fleet = fleet(3, false);
    assert!(fleet.rolls("a", "v2", UnitState::Unhealthy));
    for target in ["v2", "v3"] {
        assert!(!fleet.rolls("b", target, UnitState::Changed), "{target}");
    }
    // A revision that changes nothing there makes nothing of it healthy.
    fleet.turn("a", "v3").end(&report(ClusterState::Done, UnitState::Unhealthy));
    assert!(!fleet.rolls("b", "v3", UnitState::Changed));
    // Nor does silence.
    fleet.turn("a", "v3").end(&ClusterReport::failed(ClusterState::Unreachable, "no answer".to_owned(), None));
    assert!(!fleet.rolls("b", "v3", UnitState::Changed));

    assert!(fleet.rolls("a", "v4", UnitState::Changed));
    assert!(fleet.rolls("b", "v4", UnitState::Changed));
}

#[test]
fn the_first_becomes_healthy_by_itself() {
    let fleet = fleet(2, false);
    assert!(fleet.rolls("a", "v2", UnitState::Unhealthy) && !fleet.rolls("b", "v2", UnitState::Changed));
    fleet.turn("a", "v2").end(&report(ClusterState::Done, UnitState::Current));
    assert!(fleet.rolls("b", "v2", UnitState::Changed));
}

#[test]
fn who_cannot_be_the_first_is_not_waited_for() {
    let fleet = fleet(3, false);
    let away = |name: &str, state| {
        let report = ClusterReport {
            error: Some(Failure { message: "no".to_owned(), hint: None }),
            ..report(state, UnitState::Current)
        };
        fleet.turn(name, "v2").end(&report);
    };
    away("a", ClusterState::Unreachable);
    // A round that ends in a bug.
    drop(fleet.turn("b", "v2"));
    assert!(fleet.rolls("c", "v2", UnitState::Changed) && fleet.rolls("folder", "v2", UnitState::Changed));
    // What comes back is the first of the next, and follows in this one.
    assert!(fleet.rolls("a", "v2", UnitState::Changed));
}

#[tokio::test]
async fn a_first_cluster_that_is_held_after_all_keeps_nobody_waiting() {
    let fleet = fleet(2, true);
    let (first, _) = fleet.asks("a", "v2");
    let (second, on) = fleet.asks("b", "v2");
    assert_eq!(on.as_deref(), Some("a"));
    first.end(&held(Guard::Confirm));
    assert!(second.comes("", &CancellationToken::new()).await);
}

#[test]
fn what_cannot_be_read_or_noted_lets_nobody_through() {
    let fleet = fleet(2, false);
    assert!(fleet.rolls("a", "v2", UnitState::Unhealthy));
    let file = fleet.folder.path().join("rollouts/gateways.json");
    std::fs::write(&file, "{\"target\": ").expect("it can be written");
    assert!(!fleet.rolls("b", "v2", UnitState::Changed) && !fleet.rolls("a", "v3", UnitState::Changed));
    std::fs::remove_file(&file).expect("it is there");
    std::fs::create_dir_all(file.join("in-the-way")).expect("a folder can be made");
    assert!(!fleet.rolls("a", "v3", UnitState::Changed));
}

#[test]
fn to_take_a_cluster_out_makes_nothing_healthy() {
    let fleet = fleet(3, false);
    assert!(fleet.rolls("a", "v2", UnitState::Unhealthy));
    let (state, left) = (State::open(fleet.folder.path()), ["b".to_owned(), "c".to_owned()]);
    let rollout = Rollout::new(("gateways", &state), left.clone().into_iter(), left.to_vec(), false);
    let fleet = Fleet { rollout: rollout.expect("there are two"), ..fleet };
    assert!(!fleet.rolls("b", "v2", UnitState::Changed) && !fleet.rolls("c", "v2", UnitState::Changed));
    assert!(fleet.rolls("b", "v3", UnitState::Changed) && fleet.rolls("c", "v3", UnitState::Changed));
}

#[test]
fn a_cluster_without_such_a_change_is_no_trial_of_it() {
    let fleet = fleet(3, false);
    fleet.turn("a", "v2").pass();
    assert_eq!(fleet.asks("c", "v2").1.as_deref(), Some("b"));
    assert!(fleet.rolls("b", "v2", UnitState::Unhealthy) && !fleet.rolls("c", "v2", UnitState::Changed));
}

#[test]
fn a_round_that_waits_begins_again_when_its_turn_comes() {
    let fleet = fleet(2, false);
    let nudge = Arc::new(Notify::new());
    fleet.rollout.nudge("b", Arc::clone(&nudge));
    assert!(!fleet.rolls("b", "v2", UnitState::Changed));
    let is_nudged = || futures::FutureExt::now_or_never(nudge.notified()).is_some();
    assert!(fleet.rolls("a", "v2", UnitState::Unhealthy));
    is_nudged();
    assert!(!fleet.rolls("b", "v2", UnitState::Changed) && !is_nudged(), "nothing nudges but news");
    fleet.turn("a", "v2").end(&report(ClusterState::Done, UnitState::Current));
    assert!(is_nudged() && fleet.rolls("b", "v2", UnitState::Changed));
}

#[tokio::test]
async fn rounds_of_one_process_wait_for_each_other() {
    let fleet = fleet(2, true);
    let stop = CancellationToken::new();
    let (first, _) = fleet.asks("a", "v2");
    let (second, _) = fleet.asks("b", "v2");
    let told = "something else";
    let end = async { first.end(&report(ClusterState::Done, UnitState::Changed)) };
    assert!(tokio::join!(second.comes(told, &stop), end).0);

    // Where it is halted it is looked at once more, to say so, and then no more.
    assert!(fleet.rolls("a", "v3", UnitState::Unhealthy));
    let (turn, _) = fleet.asks("b", "v3");
    assert!(turn.comes(told, &stop).await);
    let Verdict::Wait { message, is_halted: true, .. } = turn.ask(&[edge()].into()) else { unreachable!("it is") };
    assert!(!turn.comes(&message, &stop).await);
}

proptest! {
    /// Whatever happens, and in whatever order: while nobody was seen healthy with a target, one cluster has it, and
    /// another one only if the first was lost before anybody saw how it is.
    #[test]
    fn no_target_is_on_two_clusters_before_it_is_healthy_on_one(
        events in prop::collection::vec((0_u8..4, 0_u8..4, 0_u8..5), 1..60),
    ) {
        let fleet = fleet(4, false);
        let mut has: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut healthy: BTreeSet<String> = BTreeSet::new();
        let mut halted: Option<String> = None;
        let mut revision = 0;
        for (cluster, news, how) in events {
            revision += u32::from(news == 0);
            let (cluster, target) = (char::from(b'a' + cluster).to_string(), format!("v{revision}"));
            match how {
                0 => fleet.turn(&cluster, &target).end(&ClusterReport::failed(
                    ClusterState::Unreachable, "no answer".to_owned(), None)),
                1 => drop(fleet.turn(&cluster, &target)),
                sick => {
                    let unit = if sick == 2 { UnitState::Unhealthy } else { UnitState::Changed };
                    if fleet.rolls(&cluster, &target, unit) {
                        let on = has.entry(target.clone()).or_default();
                        on.insert(cluster.clone());
                        prop_assert!(healthy.contains(&target) || on.len() == 1, "{target} on {on:?}");
                        prop_assert!(halted.as_ref().is_none_or(|first| *first == cluster), "{halted:?}");
                        let is_first = !healthy.contains(&target) || halted.is_some();
                        if unit == UnitState::Changed {
                            healthy.insert(target.clone());
                            halted = None;
                        } else if is_first {
                            halted = Some(cluster.clone());
                        }
                    }
                }
            }
        }
    }
}
