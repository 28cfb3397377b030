mod back;
mod deletions;
mod finish;
mod in_waves;
mod journal;
mod kept;
mod merged;
mod news;

use std::rc::Rc;

use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::guard::{Guard, Hold};
use gatewright_engine::spec::GATEWAY_API;
use proptest::prelude::*;
use tempfile::TempDir;

use super::journal::Journal;
use super::record::{Ledger, Pause, Stage};
use super::*;
use crate::report::withheld::HoldReport;
use crate::report::{ClusterReport, ClusterState, Failure, Mode, UnitReport, UnitState};
use tokio_util::sync::CancellationToken;

/// Clusters `a`, `b`, … that have health, and one that has none.
struct Fleet {
    rollout: Arc<Rollout>,
    folder: Rc<TempDir>,
}

fn names(number: u8) -> Vec<String> {
    (0..number).map(|index| char::from(b'a' + index).to_string()).collect()
}

fn fleet(number: u8, is_waiting: bool) -> Fleet {
    let candidates = names(number);
    let all = candidates.iter().cloned().chain(["folder".to_owned()]).collect();
    in_waves(vec![Wave::canary(candidates), Wave::rest(all)], is_waiting)
}

fn in_waves(waves: Vec<Wave>, is_waiting: bool) -> Fleet {
    let folder = TempDir::new().expect("a folder for tests can be made");
    let state = State::open(folder.path());
    let all: Vec<String> = waves.iter().flat_map(|wave| wave.clusters.clone()).collect();
    let rollout =
        Rollout::new(("gateways", Some(state.clone()), 5), all.iter().cloned(), (waves, all.iter()), is_waiting);
    Fleet { rollout: Arc::new(rollout), folder: Rc::new(folder) }
}

fn gateway(name: &str) -> ObjectId {
    ObjectId::new(GATEWAY_API, "Gateway", "infra", name)
}

fn edge() -> ObjectId {
    gateway("edge")
}

fn report(state: ClusterState, unit: UnitState) -> ClusterReport {
    ClusterReport { state, units: vec![UnitReport::new(edge(), unit)], ..ClusterReport::default() }
}

fn hold(guard: Guard, units: Vec<ObjectId>) -> HoldReport {
    let (message, hint) = (String::new(), String::new());
    HoldReport::from(Hold {
        guard,
        unit: None,
        units,
        message,
        hint,
        token: None,
        fleet_token: None,
        steps: Vec::new(),
    })
}

/// A round that a guard holds.
fn held(guard: Guard) -> ClusterReport {
    ClusterReport { holds: vec![hold(guard, Vec::new())], ..report(ClusterState::Held, UnitState::Current) }
}

/// A round in which a unit waits for its turn.
fn waiting(unit: &ObjectId) -> ClusterReport {
    waiting_by(Guard::Rollout, unit)
}

fn waiting_by(guard: Guard, unit: &ObjectId) -> ClusterReport {
    let units = vec![UnitReport::new(unit.clone(), UnitState::Held)];
    ClusterReport {
        state: ClusterState::Done,
        units,
        holds: vec![hold(guard, vec![unit.clone()])],
        ..ClusterReport::default()
    }
}

fn done(unit: &ObjectId, state: UnitState) -> ClusterReport {
    let units = vec![UnitReport::new(unit.clone(), state)];
    ClusterReport { state: ClusterState::Done, units, ..ClusterReport::default() }
}

impl Fleet {
    /// The same in another process.
    fn again(&self) -> Self {
        self.waited_for(&lock(&self.rollout.known).parts().keys().cloned().collect::<Vec<_>>())
    }

    /// The same in a process that looks after these clusters.
    fn waited_for(&self, clusters: &[String]) -> Self {
        let (waves, all) = (self.rollout.waves.clone(), self.rollout.all.iter().cloned());
        let kept = Some(State::open(self.folder.path()));
        let is_waiting = self.rollout.is_waiting;
        let rollout = Rollout::new(("gateways", kept, 5), all, (waves, clusters.iter()), is_waiting);
        Self { rollout: Arc::new(rollout), folder: Rc::clone(&self.folder) }
    }

    /// Reads what is noted.
    fn ledger(&self) -> Ledger {
        self.try_ledger().expect("it can be read")
    }

    fn try_ledger(&self) -> Option<Ledger> {
        record::read(&State::open(self.folder.path()), "gateways").ok()
    }

    fn write(&self, ledger: &Ledger) {
        let state = State::open(self.folder.path());
        Journal::default().write((&state, "gateways"), ledger).expect("it can be written");
    }

    fn turn(&self, cluster: &str, target: &str) -> Turn {
        self.turn_at(cluster, target, 0)
    }

    fn turn_at(&self, cluster: &str, target: &str, second: i64) -> Turn {
        let target = (target.to_owned(), target.to_owned());
        let now = Timestamp::from_second(second).expect("it is in range");
        // What a report says nothing of was not looked at.
        Turn::new(&self.rollout, cluster, target, (Mode::Apply, true, now))
    }

    /// Asks to change a unit into something, and says why it has to wait.
    fn asks(&self, cluster: &str, target: &str) -> (Turn, Option<Wait>) {
        let turn = self.turn(cluster, target);
        let wait = ask(&turn, &edge(), target);
        (turn, wait)
    }

    /// Runs a round that replaces pods where it may, and ends so; tells whether it did.
    fn rolls(&self, cluster: &str, target: &str, state: UnitState) -> bool {
        self.rolls_unit(cluster, (target, &edge(), target), state)
    }

    fn rolls_unit(&self, cluster: &str, change: (&str, &ObjectId, &str), state: UnitState) -> bool {
        self.rolls_at(cluster, change, state, 0)
    }

    fn rolls_at(
        &self,
        cluster: &str,
        (target, unit, digest): (&str, &ObjectId, &str),
        state: UnitState,
        second: i64,
    ) -> bool {
        let turn = self.turn_at(cluster, target, second);
        let wait = ask(&turn, unit, digest);
        turn.end(&wait.as_ref().map_or_else(|| done(unit, state), |wait| waiting_by(wait.guard, unit)));
        assert_eq!(self.rollout.look(None, |known| known.ledger.clone()).ok(), self.try_ledger(), "as it is noted");
        wait.is_none()
    }

    /// Runs a round on the first cluster that changes two units, of which one ends so and the other one is well; returns
    /// what waits on the next one.
    fn rolls_both(&self, other: &ObjectId, mut end: ClusterReport) -> BTreeMap<ObjectId, Wait> {
        let (turn, both) = (self.turn("a", "v2"), of(&[(&edge(), "e"), (other, "o")]));
        assert!(asks(&turn, &both).waits.is_empty());
        end.units.push(UnitReport::new(other.clone(), UnitState::Changed));
        turn.end(&end);
        asks(&self.turn("b", "v2"), &both).waits
    }

    /// Runs a round that replaces nothing.
    fn passes(&self, cluster: &str, target: &str, state: UnitState) {
        let turn = self.turn(cluster, target);
        assert!(asks(&turn, &Asked::default()).waits.is_empty());
        turn.end(&report(ClusterState::Done, state));
    }
}

/// Asks where nobody has let anything go.
fn asks(turn: &Turn, asked: &Asked) -> Answer {
    turn.ask(asked, |_| BTreeSet::new())
}

fn of(units: &[(&ObjectId, &str)]) -> Asked {
    let units = units.iter().map(|(unit, digest)| ((*unit).clone(), (*digest).to_owned()));
    Asked { units: units.collect(), ..Asked::default() }
}

fn ask(turn: &Turn, unit: &ObjectId, digest: &str) -> Option<Wait> {
    asks(turn, &of(&[(unit, digest)])).waits.remove(unit)
}

/// Tells whether a cluster waits for this one.
fn is_for(wait: Option<&Wait>, cluster: &str) -> bool {
    wait.is_some_and(|wait| wait.message.contains(&format!("cluster {cluster} ")))
}

#[test]
fn others_follow_when_the_first_is_healthy() {
    let fleet = fleet(3, false);
    assert!(is_for(fleet.asks("b", "v2").1.as_ref(), "a"), "it is the first by name");
    assert!(is_for(fleet.asks("folder", "v2").1.as_ref(), "a"));
    let (first, wait) = fleet.asks("a", "v2");
    assert_eq!(wait, None);
    assert!(is_for(fleet.asks("b", "v2").1.as_ref(), "a"));
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
    fleet.passes("a", "v3", UnitState::Unhealthy);
    assert!(!fleet.rolls("b", "v3", UnitState::Changed));
    // Nor does silence.
    fleet.turn("a", "v3").end(&ClusterReport::failed(ClusterState::Unreachable, "no answer".to_owned(), None));
    assert!(!fleet.rolls("b", "v3", UnitState::Changed));

    assert!(fleet.rolls("a", "v4", UnitState::Changed));
    assert!(fleet.rolls("b", "v4", UnitState::Changed));
}

#[test]
fn a_unit_that_is_not_healthy_holds_back_no_other() {
    let (fleet, other) = (fleet(3, false), gateway("other"));
    let waits = fleet.rolls_both(&other, report(ClusterState::Done, UnitState::Unhealthy));
    assert!(waits[&edge()].guard == Guard::RolloutHalted && waits.len() == 1, "{waits:?}");
    assert!(fleet.rolls_unit("a", ("v3", &other, "o3"), UnitState::Changed));
    assert!(fleet.rolls_unit("b", ("v3", &other, "o3"), UnitState::Changed));
}

#[test]
fn what_a_later_revision_leaves_alone_goes_on_as_it_was() {
    let fleet = fleet(3, false);
    let change = |target| (target, edge(), "same");
    let rolls = |cluster: &str, (target, unit, digest): (&'static str, ObjectId, &str), state| {
        fleet.rolls_unit(cluster, (target, &unit, digest), state)
    };
    assert!(!rolls("c", change("v2"), UnitState::Changed));
    assert!(rolls("a", change("v2"), UnitState::Changed));
    // Nothing of it differs in the next one, and nobody knows yet how the first cluster is with that.
    assert!(rolls("c", change("v3"), UnitState::Changed));
    // Somewhere else it does: that is another change.
    assert!(!rolls("b", ("v3", edge(), "other"), UnitState::Changed));
}

#[test]
fn the_first_becomes_healthy_by_itself() {
    let fleet = fleet(2, false);
    assert!(fleet.rolls("a", "v2", UnitState::Unhealthy) && !fleet.rolls("b", "v2", UnitState::Changed));
    fleet.passes("a", "v2", UnitState::Current);
    assert!(fleet.rolls("b", "v2", UnitState::Changed));
}

/// Rounds of two revisions may be under way at once: to be healthy with the older one says nothing of the newer.
#[test]
fn what_is_healthy_with_the_last_change_is_no_trial_of_the_next() {
    let fleet = fleet(3, false);
    let (old, wait) = fleet.asks("a", "v2");
    assert_eq!(wait, None);
    assert!(!fleet.rolls("b", "v3", UnitState::Changed));
    old.end(&done(&edge(), UnitState::Changed));
    assert!(!fleet.rolls("b", "v3", UnitState::Changed) && !fleet.rolls("c", "v3", UnitState::Changed));
    assert!(fleet.rolls("a", "v3", UnitState::Unhealthy) && !fleet.rolls("b", "v3", UnitState::Changed));
    // Nor where the first has fallen ill, and the next revision leaves it alone.
    fleet.passes("a", "v4", UnitState::Current);
    assert!(!fleet.rolls_unit("c", ("v4", &edge(), "v4"), UnitState::Changed), "b is the next");
    assert!(fleet.rolls("b", "v4", UnitState::Changed) && fleet.rolls("c", "v4", UnitState::Changed));
}

#[test]
fn a_unit_that_is_not_on_the_first_cluster_any_more_is_no_reason_to_wait() {
    let (fleet, other) = (fleet(2, false), gateway("other"));
    assert!(fleet.rolls("a", "v2", UnitState::Unhealthy));
    // A round about another unit says nothing of it.
    fleet.turn("a", "v3").end(&done(&other, UnitState::Current));
    assert!(!fleet.rolls("b", "v3", UnitState::Changed));
    let whole = (Mode::Apply, false, Timestamp::UNIX_EPOCH);
    let turn = Turn::new(&fleet.rollout, "a", ("v3".to_owned(), "v3".to_owned()), whole);
    turn.end(&done(&other, UnitState::Current));
    assert!(fleet.rolls("b", "v3", UnitState::Changed));
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

#[test]
fn one_that_was_lost_before_anybody_saw_how_it_is_makes_room_for_the_next() {
    let fleet = fleet(3, false);
    drop(fleet.asks("a", "v2"));
    assert!(fleet.rolls("b", "v2", UnitState::Unhealthy));
    assert!(!fleet.rolls("c", "v2", UnitState::Changed));
}

#[tokio::test]
async fn a_first_cluster_that_is_held_after_all_keeps_nobody_waiting() {
    let fleet = fleet(2, true);
    let (first, _) = fleet.asks("a", "v2");
    let (second, wait) = fleet.asks("b", "v2");
    assert!(is_for(wait.as_ref(), "a"));
    first.end(&held(Guard::Confirm));
    second.rests(&waiting(&edge()));
    assert!(second.comes(&CancellationToken::new()).await);
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
    let waves = vec![Wave::canary(left.to_vec()), Wave::rest(left.to_vec())];
    let rollout = Rollout::new(("gateways", Some(state.clone()), 5), left.iter().cloned(), (waves, left.iter()), false);
    let fleet = Fleet { rollout: Arc::new(rollout), ..fleet };
    assert!(!fleet.rolls("b", "v2", UnitState::Changed) && !fleet.rolls("c", "v2", UnitState::Changed));
    assert!(fleet.rolls("b", "v3", UnitState::Changed) && fleet.rolls("c", "v3", UnitState::Changed));
}

#[test]
fn a_cluster_without_such_a_change_is_no_trial_of_it() {
    let fleet = fleet(3, false);
    fleet.passes("a", "v2", UnitState::Current);
    assert!(is_for(fleet.asks("c", "v2").1.as_ref(), "b"));
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
    fleet.passes("a", "v2", UnitState::Current);
    assert!(is_nudged() && fleet.rolls("b", "v2", UnitState::Changed));
}

#[tokio::test]
async fn rounds_of_one_process_wait_for_each_other() {
    let fleet = fleet(2, true);
    let stop = CancellationToken::new();
    let (first, _) = fleet.asks("a", "v2");
    let (second, _) = fleet.asks("b", "v2");
    second.rests(&waiting(&edge()));
    let end = async { first.end(&report(ClusterState::Done, UnitState::Changed)) };
    assert!(tokio::join!(second.comes(&stop), end).0);

    // Where it is halted it is looked at once more, to say so, and then no more.
    let (first, _) = fleet.asks("a", "v3");
    let (turn, _) = fleet.asks("b", "v3");
    turn.rests(&waiting(&edge()));
    first.end(&report(ClusterState::Done, UnitState::Unhealthy));
    assert!(turn.comes(&stop).await);
    assert!(ask(&turn, &edge(), "v3").is_some_and(|wait| wait.guard == Guard::RolloutHalted));
    turn.rests(&waiting(&edge()));
    assert!(!turn.comes(&stop).await);
}

#[tokio::test]
async fn two_rounds_that_wait_for_each_other_do_not_wait_for_ever() {
    let (fleet, other) = (fleet(2, true), gateway("other"));
    // Each is not healthy with what the other one is to get.
    assert!(fleet.rolls("a", "v1", UnitState::Unhealthy));
    drop(fleet.turn("a", "v1"));
    assert!(fleet.rolls_unit("b", ("v1", &other, "v1"), UnitState::Unhealthy));
    let (a, b) = (fleet.turn("a", "v2"), fleet.turn("b", "v2"));
    assert!(ask(&a, &other, "v2").is_some() && ask(&b, &edge(), "v2").is_some());
    a.rests(&waiting(&other));
    b.rests(&waiting(&edge()));
    let stop = CancellationToken::new();
    assert_eq!(tokio::join!(a.comes(&stop), b.comes(&stop)), (false, false));
}

#[test]
fn nothing_goes_while_rollouts_are_paused() {
    let fleet = fleet(2, false);
    assert!(fleet.rolls("a", "v2", UnitState::Changed));
    let mut ledger = fleet.ledger();
    ledger.paused = Some(Pause { reason: "holidays".to_owned(), by: None, since: Timestamp::UNIX_EPOCH });
    fleet.write(&ledger);
    assert!(!fleet.rolls("b", "v2", UnitState::Changed) && !fleet.rolls("a", "v3", UnitState::Changed));
    let is_halted = |ledger: Ledger| {
        let mut members = ledger.units.into_iter().flat_map(|record| record.members);
        members.any(|(_, member)| matches!(member.stage, Stage::Halted(_)))
    };
    assert!(!is_halted(fleet.ledger()), "to wait is no illness");
}

proptest! {
    /// Whatever happens, and in whatever order: while a unit was seen healthy with a target nowhere, one cluster has it,
    /// and another one only if the first was lost before anybody saw how it is; and each unit is rolled out for itself.
    #[test]
    fn no_target_is_on_two_clusters_before_it_is_healthy_on_one(
        events in prop::collection::vec((0_u8..4, 0_u8..4, 0_u8..5, 0_u8..2), 1..60),
    ) {
        let fleet = fleet(4, false);
        let mut has: BTreeMap<(u8, String), BTreeSet<String>> = BTreeMap::new();
        let mut healthy: BTreeSet<(u8, String)> = BTreeSet::new();
        let mut halted: BTreeMap<u8, String> = BTreeMap::new();
        let mut revision = 0;
        for (cluster, news, how, unit) in events {
            revision += u32::from(news == 0);
            let (cluster, target) = (char::from(b'a' + cluster).to_string(), format!("v{revision}"));
            let (change, id) = ((unit, target.clone()), gateway(&unit.to_string()));
            match how {
                0 => fleet.turn(&cluster, &target).end(&ClusterReport::failed(
                    ClusterState::Unreachable, "no answer".to_owned(), None)),
                1 => drop(fleet.turn(&cluster, &target)),
                sick => {
                    let state = if sick == 2 { UnitState::Unhealthy } else { UnitState::Changed };
                    if fleet.rolls_unit(&cluster, (&target, &id, &target), state) {
                        let on = has.entry(change.clone()).or_default();
                        on.insert(cluster.clone());
                        prop_assert!(healthy.contains(&change) || on.len() == 1, "{change:?} on {on:?}");
                        prop_assert!(halted.get(&unit).is_none_or(|first| *first == cluster), "{halted:?}");
                        let is_first = !healthy.contains(&change) || halted.contains_key(&unit);
                        if state == UnitState::Changed {
                            healthy.insert(change);
                            halted.remove(&unit);
                        } else if is_first {
                            halted.insert(unit, cluster.clone());
                        }
                    }
                }
            }
        }
    }
}
