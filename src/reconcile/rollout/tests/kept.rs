//! A host that has lost its state folder, or has an old copy of it, goes by what is kept on the clusters.

use std::fs;

use gatewright_engine::inventory::{Entry, Inventory};
use gatewright_engine::kinds;
use gatewright_engine::object::Gvk;

use super::*;
use crate::basics::clock::{Clock, SimulatedClock};
use crate::cluster::simulated::link::{Fault, Latency};
use crate::cluster::simulated::{SimulatedCluster, World};
use crate::inventory::store::{self, Store};
use crate::reconcile::rollout::recall::{Beside, Keep};

/// Clusters `a`, `b` and `c` in memory, of which some do not answer.
fn clusters(lost: &[&str]) -> Clusters {
    clusters_with(lost, 0.0)
}

/// The same, which answer a share of all requests with an error.
fn clusters_with(lost: &[&str], errors: f64) -> Clusters {
    let quick = Latency { median: Duration::from_millis(1), p99: Duration::from_millis(1) };
    let world = World { seed: 1, latency: quick, ready: quick, errors, bodies: Arc::default() };
    let clock: Arc<dyn Clock> = Arc::new(SimulatedClock::starting_at(Timestamp::UNIX_EPOCH));
    let make = |name: String| {
        let fault = if lost.contains(&name.as_str()) { Fault::Unreachable } else { Fault::None };
        let cluster =
            SimulatedCluster::new(&name, (&world, fault, Duration::from_secs(1)), &kinds::Table::default(), &clock);
        (name, Arc::new(cluster) as Arc<dyn crate::cluster::Cluster>)
    };
    names(3).into_iter().map(make).collect()
}

/// A host with a state folder of its own, which has rounds on these of the clusters.
fn host(on: &Clusters, rounds: &[&str]) -> Fleet {
    on_host(&fleet(3, false), on, rounds)
}

/// Another process on a host.
fn on_host(host: &Fleet, on: &Clusters, rounds: &[&str]) -> Fleet {
    let rounds: Vec<String> = rounds.iter().map(|name| (*name).to_owned()).collect();
    let Fleet { rollout, folder } = host.waited_for(&rounds);
    let rollout = Arc::into_inner(rollout).expect("nobody else has it");
    let heads = Some(recall::Heads::new(on.clone(), "here", None));
    Fleet { rollout: Arc::new(Rollout { heads, ..rollout }), folder }
}

fn inventory() -> Inventory {
    let entry = Entry {
        gvk: Gvk::new("v1", "Service"),
        uid: None,
        unit: edge(),
        adopted: false,
        files: BTreeSet::new(),
        overlays: BTreeMap::new(),
    };
    let entries = [(ObjectId::new("", "Service", "infra", "edge"), entry)].into();
    Inventory { installation: "here".to_owned(), entries, ..Inventory::default() }
}

async fn read(on: &Clusters, name: &str) -> Store {
    store::load(on[name].as_ref(), "gateways").await.expect("it answers")
}

async fn write(on: &Clusters, name: &str, words: Option<&str>, inventory: &Inventory) {
    let mut store = read(on, name).await;
    store.tell_of_rollouts(words.map(str::to_owned));
    store.save(on[name].as_ref(), "gateways", inventory).await.expect("it answers");
}

impl Fleet {
    /// Runs a round as `round.rs` does; returns why the change has to wait there.
    async fn round(&self, on: &Clusters, name: &str, target: &str, state: UnitState) -> Option<Wait> {
        let (turn, inventory) = (self.turn(name, target), inventory());
        let beside = Beside { inventory: &inventory, audit: None };
        if turn.sees_kept(read(on, name).await.rollouts(), beside) {
            turn.recall().await;
        }
        turn.recall().await;
        let wait = ask(&turn, &edge(), target);
        let end = wait.as_ref().map_or_else(|| done(&edge(), state), |wait| waiting_by(wait.guard, &edge()));
        for has_ended in [false, true] {
            if has_ended {
                turn.end(&end);
            }
            if let Keep::Words(words) = turn.keep(beside) {
                write(on, name, words.as_deref(), &inventory).await;
                turn.sees_kept(words.as_deref(), beside);
            }
        }
        wait
    }
}

/// What is not healthy on `a`, as one host has left it.
async fn halted() -> (Clusters, Fleet) {
    let on = clusters(&[]);
    let host = host(&on, &["a", "b", "c"]);
    assert_eq!(host.round(&on, "a", "v2", UnitState::Unhealthy).await, None);
    (on, host)
}

fn is_halted(wait: Option<&Wait>) -> bool {
    is_for(wait, "a") && wait.is_some_and(|wait| wait.guard == Guard::RolloutHalted)
}

#[tokio::test(start_paused = true)]
async fn what_was_halted_goes_nowhere_else_when_its_host_has_lost_everything() {
    let (on, before) = halted().await;
    for rounds in [vec!["b"], vec!["a", "b", "c"]] {
        let host = host(&on, &rounds);
        assert!(is_halted(host.round(&on, "b", "v2", UnitState::Changed).await.as_ref()), "{rounds:?}");
        let members = |fleet: &Fleet| fleet.ledger().units[0].members.clone();
        assert_eq!((members(&host), host.ledger().is_unread), (members(&before), false), "{rounds:?}");
    }
    // Its correction goes there first, and then everywhere.
    let host = host(&on, &["a", "b", "c"]);
    assert!(is_for(host.round(&on, "b", "v3", UnitState::Changed).await.as_ref(), "a"));
    assert_eq!(host.round(&on, "a", "v3", UnitState::Changed).await, None);
    assert_eq!(host.round(&on, "b", "v3", UnitState::Changed).await, None);
}

/// Plans note nothing, and say the same.
#[tokio::test(start_paused = true)]
async fn a_plan_reads_it_too_and_a_pause_hides_nothing() {
    let (on, _) = halted().await;
    let host = host(&on, &["b"]);
    let pause = |ledger: &mut Ledger| {
        ledger.paused = Some(Pause { reason: String::new(), by: None, since: Timestamp::UNIX_EPOCH });
    };
    record::update(&State::open(host.folder.path()), "gateways", pause).expect("it can be written");
    record::update(&State::open(host.folder.path()), "gateways", |ledger| ledger.paused = None).expect("it can be");
    let target = ("v2".to_owned(), "v2".to_owned());
    let turn = Turn::new(&host.rollout, "b", target, (Mode::Plan, true, Timestamp::UNIX_EPOCH));
    turn.recall().await;
    assert!(is_halted(ask(&turn, &edge(), "v2").as_ref()));
    assert!(host.ledger().is_unread && host.ledger().units.is_empty());
    assert!(is_halted(host.round(&on, "b", "v2", UnitState::Changed).await.as_ref()));
    assert!(!host.ledger().is_unread && !host.ledger().units.is_empty());
}

/// As rollouts do with any that cannot be asked: one of them must not keep all others.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_does_not_answer_is_passed_over() {
    for (on, case) in [(clusters(&["a"]), "silent"), (clusters_with(&[], 1.0), "all errors")] {
        let turn = host(&on, &["b"]).turn("b", "v2");
        turn.recall().await;
        assert_eq!(ask(&turn, &edge(), "v2"), None, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_lets_nobody_through_until_it_is_gone() {
    let (on, _) = halted().await;
    let good = read(&on, "a").await.rollouts().expect("something is kept").to_owned();
    let newer = good.replace(r#""version":1"#, r#""version":2"#);
    let cut = good.replace(r#""rollouts":""#, r#""rollouts":"A"#);
    let texts = ["", "{", r#"{"version":1}"#, &newer, &cut, &" ".repeat(300 << 10)];
    let foreign = Inventory { installation: "elsewhere".to_owned(), ..inventory() };
    let cases = texts.iter().map(|text| (*text, inventory())).chain([(good.as_str(), foreign)]);
    for (text, inventory) in cases {
        write(&on, "a", Some(text), &inventory).await;
        let host = host(&on, &["a", "b", "c"]);
        for name in ["b", "a", "c"] {
            let wait = host.round(&on, name, "v2", UnitState::Changed).await.expect("nobody knows how far it is");
            assert!(wait.guard == Guard::RolloutPaused && is_for(Some(&wait), "a"), "{text:.40}: {wait:?}");
        }
        assert_eq!(read(&on, "a").await.rollouts(), Some(text), "nobody else knows what was meant");
        assert!(host.ledger().units.is_empty());
        write(&on, "a", None, &super::kept::inventory()).await;
        let host = on_host(&host, &on, &["a", "b", "c"]);
        assert_eq!(host.round(&on, "a", "v2", UnitState::Unhealthy).await, None, "it is tried again");
        assert!(is_halted(host.round(&on, "b", "v2", UnitState::Changed).await.as_ref()));
    }
}

#[tokio::test(start_paused = true)]
async fn an_old_copy_of_the_folder_learns_what_is_newer() {
    let on = clusters(&[]);
    let host = host(&on, &["a", "b", "c"]);
    for name in ["a", "b", "c"] {
        assert_eq!(host.round(&on, name, "v1", UnitState::Changed).await, None);
    }
    let path = host.folder.path().join("rollouts/gateways.json");
    let copy = fs::read(&path).expect("it is there");
    let later = Timestamp::from_second(9).expect("it is in range");
    let turn = Turn::new(&host.rollout, "a", ("v2".to_owned(), "v2".to_owned()), (Mode::Apply, true, later));
    let inventory = inventory();
    let beside = Beside { inventory: &inventory, audit: None };
    turn.sees_kept(read(&on, "a").await.rollouts(), beside);
    assert_eq!(ask(&turn, &edge(), "v2"), None);
    turn.end(&done(&edge(), UnitState::Unhealthy));
    let Keep::Words(words) = turn.keep(beside) else { unreachable!("it is another rollout") };
    write(&on, "a", words.as_deref(), &inventory).await;
    let noted = host.ledger();

    fs::write(&path, copy).expect("a test may");
    let again = on_host(&host, &on, &["a", "b", "c"]);
    again.passes("b", "v2", UnitState::Current);
    assert_ne!(again.ledger(), noted);
    let turn = again.turn("a", "v2");
    assert!(!turn.sees_kept(words.as_deref(), beside), "something is noted");
    turn.end(&done(&edge(), UnitState::Unhealthy));
    assert_eq!(again.ledger().units[0].members["a"], noted.units[0].members["a"]);
    assert!(is_halted(again.round(&on, "b", "v2", UnitState::Changed).await.as_ref()));
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_taken_away_is_read_back_too() {
    let (on, host) = halted().await;
    fs::remove_file(host.folder.path().join("rollouts/gateways.json")).expect("it is there");
    assert!(is_halted(host.round(&on, "b", "v2", UnitState::Changed).await.as_ref()));
}

#[tokio::test(start_paused = true)]
async fn what_stands_there_is_written_again_for_what_the_cluster_has_alone() {
    let (on, host) = halted().await;
    let version = async |name: &str| read(&on, name).await.version().map(str::to_owned);
    let before = version("a").await;
    host.round(&on, "b", "v2", UnitState::Changed).await;
    assert_eq!(version("b").await, None, "that it waits is worth no request");
    host.passes("a", "v2", UnitState::Unhealthy);
    let turn = host.turn("a", "v2");
    let inventory = inventory();
    let beside = Beside { inventory: &inventory, audit: None };
    turn.sees_kept(read(&on, "a").await.rollouts(), beside);
    assert_eq!(turn.keep(beside), Keep::AsItIs);
    assert_eq!(version("a").await, before);
    // Without waves nothing is kept.
    let alone =
        Arc::new(Rollout { waves: Vec::new(), ..Arc::into_inner(on_host(&host, &on, &["a"]).rollout).expect("one") });
    let turn = Turn::new(&alone, "a", ("v3".to_owned(), "v3".to_owned()), (Mode::Apply, true, Timestamp::UNIX_EPOCH));
    assert!(!turn.sees_kept(None, beside));
    assert_eq!(turn.keep(beside), Keep::AsItIs);
}
