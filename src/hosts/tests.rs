//! Hosts in simulated time, with Leases in memory that are slow, cut off or frozen.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::fence::Held;
use super::keeper::{Keeper, Share};
use super::membership::{Membership, Terms};
use super::view::{Kind, View, preferred};
use super::{Command, IDENTITY};
use crate::basics::clock::{Clock, SimulatedClock};
use crate::basics::lock::lock;
use crate::cluster::leases::{Lease, Leases};
use crate::cluster::{ClusterError, Reason};
use crate::shared::{Shared, StoreSettings};
use crate::state::State;

const LEASE: Duration = Duration::from_secs(6);

/// Leases in memory.
#[derive(Default)]
struct Server {
    leases: Mutex<(u64, BTreeMap<String, Lease>)>,
    secret: Mutex<Option<BTreeMap<String, String>>>,
}

/// The way of one host to them.
struct Link {
    server: Arc<Server>,
    is_cut: Arc<AtomicBool>,
    random: Mutex<StdRng>,
}

fn refused(reason: Reason) -> ClusterError {
    ClusterError { action: "ask".to_owned(), reason, hint: None, source: "as the test says".into() }
}

impl Link {
    /// Takes some time, mostly little; a link that is cut loses what is under way.
    async fn pass(&self) -> Result<(), ClusterError> {
        let time = {
            let mut random = lock(&self.random);
            if random.random_bool(0.05) { random.random_range(0..1_800) } else { random.random_range(1..40) }
        };
        sleep(Duration::from_millis(time)).await;
        if self.is_cut.load(Ordering::Relaxed) {
            sleep(Duration::from_secs(1)).await;
            return Err(refused(Reason::Unreachable));
        }
        Ok(())
    }
}

#[async_trait]
impl Leases for Link {
    async fn list(&self, _label: (&str, &str)) -> Result<Vec<Lease>, ClusterError> {
        self.pass().await?;
        let listed = lock(&self.server.leases).1.values().cloned().collect();
        self.pass().await?;
        Ok(listed)
    }

    async fn write(&self, lease: &Lease) -> Result<Lease, ClusterError> {
        self.pass().await?;
        let written = {
            let (count, leases) = &mut *lock(&self.server.leases);
            let known = leases.get(&lease.name).map(|known| known.version.clone()).unwrap_or_default();
            if known == lease.version {
                *count += 1;
                let lease = Lease { version: count.to_string(), ..lease.clone() };
                leases.insert(lease.name.clone(), lease.clone());
                Ok(lease)
            } else {
                Err(refused(Reason::Conflict))
            }
        };
        self.pass().await?;
        written
    }

    async fn delete(&self, lease: &Lease) -> Result<(), ClusterError> {
        self.pass().await?;
        let leases = &mut lock(&self.server.leases).1;
        if leases.get(&lease.name).is_some_and(|known| known.version == lease.version) {
            leases.remove(&lease.name);
        }
        Ok(())
    }

    async fn read_secret(&self, _name: &str) -> Result<Option<BTreeMap<String, String>>, ClusterError> {
        Ok(lock(&self.server.secret).clone())
    }

    async fn create_secret(&self, _name: &str, values: &BTreeMap<String, String>) -> Result<(), ClusterError> {
        *lock(&self.server.secret) = Some(values.clone());
        Ok(())
    }
}

/// A future that does not go on while it is frozen.
struct Freezable<F> {
    inner: Pin<Box<F>>,
    is_frozen: Arc<AtomicBool>,
}

impl<F: Future> Future for Freezable<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        if self.is_frozen.load(Ordering::Relaxed) {
            let waker = context.waker().clone();
            tokio::spawn(async move {
                sleep(Duration::from_millis(50)).await;
                waker.wake();
            });
            return Poll::Pending;
        }
        self.inner.as_mut().poll(context)
    }
}

/// A host of the world.
struct Host {
    name: String,
    share: Option<Share>,
    task: Option<JoinHandle<()>>,
    is_cut: Arc<AtomicBool>,
    is_frozen: Arc<AtomicBool>,
    state: State,
}

struct World {
    server: Arc<Server>,
    clock: Arc<dyn Clock>,
    folder: tempfile::TempDir,
    syncs: BTreeSet<String>,
    hosts: Vec<Host>,
    random: StdRng,
}

impl World {
    fn new(seed: u64, hosts: usize) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let state = |name: &str| {
            let state = State::open(folder.path().join(name)).noting();
            state.write("installation", b"00000000000000000000000000000000").expect("it can be written");
            state
        };
        let host = |index: usize| {
            let name = format!("host-{index}");
            let state = state(&name);
            let (is_cut, is_frozen) = (Arc::default(), Arc::default());
            Host { name, share: None, task: None, is_cut, is_frozen, state }
        };
        Self {
            server: Arc::default(),
            clock: Arc::new(SimulatedClock::starting_at(Timestamp::UNIX_EPOCH)),
            syncs: (0..4).map(|index| format!("sync-{index}")).collect(),
            hosts: (0..hosts).map(host).collect(),
            random: StdRng::seed_from_u64(seed),
            folder,
        }
    }

    fn terms(&mut self, host: &str, is_cut: &Arc<AtomicBool>) -> Terms {
        let random = Mutex::new(StdRng::seed_from_u64(self.random.random()));
        let (server, is_cut) = (Arc::clone(&self.server), Arc::clone(is_cut));
        Terms {
            leases: Arc::new(Link { server, is_cut, random }),
            group: "test".to_owned(),
            host: host.to_owned(),
            duration: LEASE,
            clock: Arc::clone(&self.clock),
        }
    }

    fn store(&self, state: &State) -> Arc<Shared> {
        let path = self.folder.path().join("store");
        std::fs::create_dir_all(&path).expect("a test may");
        let url = format!("file://{}", path.display());
        let settings = StoreSettings { url, options: BTreeMap::new(), secrets: None };
        Arc::new(Shared::open(&settings, state, &state.path("reports")).expect("it is a folder"))
    }

    /// Starts a daemon: its Leases are kept, and what it should run it runs a moment later.
    fn start(&mut self, index: usize) {
        let (name, is_cut) = (self.hosts[index].name.clone(), Arc::clone(&self.hosts[index].is_cut));
        let (terms, state) = (self.terms(&name, &is_cut), self.hosts[index].state.clone());
        let membership = Membership::new(terms, Kind::Host, IDENTITY.read(&state, &[]));
        let (mut keeper, share) = Keeper::new(membership, &state, &self.store(&state));
        share.configure(self.syncs.clone());
        let mut runner = share.clone();
        let pause = Duration::from_millis(self.random.random_range(0..1_000));
        let work = async move {
            tokio::join!(keeper.keep(), async move {
                loop {
                    runner.changed().await;
                    sleep(pause).await;
                    runner.runs(runner.wanted());
                }
            });
        };
        let host = &mut self.hosts[index];
        let work = Freezable { inner: Box::pin(work), is_frozen: Arc::clone(&host.is_frozen) };
        (host.share, host.task) = (Some(share), Some(tokio::spawn(work)));
    }

    /// Ends a daemon at once.
    fn kill(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        host.is_frozen.store(false, Ordering::Relaxed);
        if let Some(task) = host.task.take() {
            task.abort();
        }
        host.share = None;
    }

    fn holders(&self, sync: &str) -> Vec<&str> {
        let holds = |host: &&Host| host.share.as_ref().is_some_and(|share| share.holds(sync));
        self.hosts.iter().filter(holds).map(|host| host.name.as_str()).collect()
    }

    /// Lets time pass and makes sure that nothing is ever looked after by two.
    async fn pass(&self, time: Duration) {
        let end = self.clock.elapsed() + time;
        while self.clock.elapsed() < end {
            sleep(Duration::from_millis(100)).await;
            for sync in &self.syncs {
                let holders = self.holders(sync);
                assert!(holders.len() < 2, "{sync} is held by {holders:?} at {:?}", self.clock.elapsed());
            }
        }
    }

    fn flip(&mut self, flag: fn(&Host) -> &Arc<AtomicBool>) {
        let index = self.random.random_range(0..self.hosts.len());
        flag(&self.hosts[index]).fetch_xor(true, Ordering::Relaxed);
    }

    /// Something happens to one of the hosts.
    fn happen(&mut self) {
        match self.random.random_range(0..10) {
            0..3 => self.flip(|host| &host.is_frozen),
            3..6 => self.flip(|host| &host.is_cut),
            6 => {
                let index = self.random.random_range(0..self.hosts.len());
                self.kill(index);
            }
            7..9 => {
                let index = self.random.random_range(0..self.hosts.len());
                if self.hosts[index].task.is_none() {
                    self.start(index);
                }
            }
            // Somebody tidies up.
            _ => {
                let leases = &mut lock(&self.server.leases).1;
                let name = leases.keys().nth(self.random.random_range(0..leases.len().max(1))).cloned();
                if let Some(name) = name {
                    leases.remove(&name);
                }
            }
        }
    }

    /// Makes all well again.
    fn heal(&mut self) {
        for index in 0..self.hosts.len() {
            self.hosts[index].is_cut.store(false, Ordering::Relaxed);
            self.hosts[index].is_frozen.store(false, Ordering::Relaxed);
            if self.hosts[index].task.is_none() {
                self.start(index);
            }
        }
    }

    fn unowned(&self) -> Vec<&String> {
        self.syncs.iter().filter(|sync| self.holders(sync).is_empty()).collect()
    }
}

fn simulate(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(test);
}

#[test]
fn no_sync_is_ever_looked_after_by_two_hosts_and_none_stays_alone() {
    for seed in 0..25 {
        simulate(async {
            let mut world = World::new(seed, 3);
            (0..3).for_each(|index| world.start(index));
            for _ in 0..40 {
                let time = Duration::from_millis(world.random.random_range(100..9_000));
                world.pass(time).await;
                world.happen();
            }
            world.heal();
            world.pass(LEASE * 4).await;
            // Slow answers may cost a Lease now and then, but not for long.
            for _ in 0..30 {
                if !world.unowned().is_empty() {
                    world.pass(Duration::from_secs(1)).await;
                }
            }
            assert_eq!(world.unowned(), Vec::<&String>::new(), "seed {seed}");
        });
    }
}

#[test]
fn what_a_host_had_that_dies_or_is_frozen_or_cut_off_is_anothers_within_two_lease_durations() {
    let ends: [fn(&mut World, usize); 3] = [
        World::kill,
        |world, index| world.hosts[index].is_frozen.store(true, Ordering::Relaxed),
        |world, index| world.hosts[index].is_cut.store(true, Ordering::Relaxed),
    ];
    for (seed, end) in (100..).zip(ends) {
        simulate(async {
            let mut world = World::new(seed, 3);
            (0..3).for_each(|index| world.start(index));
            world.pass(LEASE * 4).await;
            let had: Vec<String> = world.syncs.iter().filter(|it| world.holders(it) == ["host-0"]).cloned().collect();
            assert!(!had.is_empty() && world.unowned().is_empty(), "each host has its share: {had:?}");
            end(&mut world, 0);
            world.pass(LEASE * 2).await;
            assert!(had.iter().all(|sync| world.holders(sync).iter().any(|host| *host != "host-0")), "{end:?}");
        });
    }
}

#[test]
fn a_host_that_comes_gets_its_share_and_one_that_is_started_again_does_not_wait() {
    simulate(async {
        let mut world = World::new(7, 2);
        world.start(0);
        world.pass(LEASE).await;
        assert!(world.syncs.iter().all(|sync| world.holders(sync) == ["host-0"]), "there is no other");
        world.start(1);
        world.pass(LEASE * 4).await;
        let moved = world.syncs.iter().filter(|sync| world.holders(sync) == ["host-1"]).count();
        assert!(moved > 0 && world.unowned().is_empty(), "{moved}");
        world.kill(1);
        world.start(1);
        world.pass(LEASE * 5 / 6).await;
        assert!(world.unowned().is_empty(), "the state directory says that the last one has ended");
    });
}

#[test]
fn a_command_gets_what_it_asks_for_and_gives_it_back() {
    simulate(async {
        let mut world = World::new(9, 2);
        (0..2).for_each(|index| world.start(index));
        world.pass(LEASE * 4).await;
        let state = State::open(world.folder.path().join("by-hand")).noting();
        state.write("installation", b"00000000000000000000000000000000").expect("it can be written");
        let terms = world.terms("laptop", &Arc::default());
        let command = Command::new(Membership::new(terms, Kind::Command, None), world.store(&state));
        let mut told = String::new();
        let held = command.hold("sync-1", |host| host.clone_into(&mut told)).await;
        held.expect("it is given");
        assert!(told.starts_with("host-"), "{told}");
        assert_eq!(world.holders("sync-1"), Vec::<&str>::new());
        command.fence("sync-1").pass("change something").await.expect("it holds the sync");
        command.fence("sync-2").pass("change something").await.expect_err("it does not hold this one");
        command.leave().await;
        command.fence("sync-1").pass("change something").await.expect_err("it has given it back");
        world.pass(LEASE).await;
        assert_eq!(world.holders("sync-1").len(), 1);
    });
}

#[test]
fn only_the_syncs_move_of_a_host_that_goes() {
    let names: Vec<String> = (0..5).map(|index| format!("host-{index}")).collect();
    let syncs: Vec<String> = (0..200).map(|index| format!("sync-{index}")).collect();
    let lease = |name: &String| Lease {
        name: Kind::Host.lease("test", name),
        holder: format!("{name}_1"),
        seconds: 6,
        annotations: [(super::view::SYNCS.to_owned(), syncs.join(" "))].into(),
        ..Lease::default()
    };
    let chosen = |names: &[String]| -> Vec<String> {
        let mut view = View::default();
        view.look("test", names.iter().map(lease).collect(), Duration::ZERO);
        let hosts = view.hosts("test", Duration::ZERO);
        syncs.iter().map(|sync| preferred(sync, &hosts).expect("there is one").to_owned()).collect()
    };
    let (all, without) = (chosen(&names), chosen(&names[1..]));
    for name in &names {
        let share = all.iter().filter(|it| it.starts_with(name.as_str())).count();
        assert!((20..60).contains(&share), "{name} has {share} of 200");
    }
    let moved = all.iter().zip(&without).filter(|(before, after)| before != after);
    assert!(moved.clone().all(|(before, _)| before.starts_with("host-0_")) && moved.count() > 0);
}

#[test]
fn a_right_ends_before_others_believe_that_its_host_is_dead() {
    simulate(async {
        let clock: Arc<dyn Clock> = Arc::new(SimulatedClock::starting_at(Timestamp::UNIX_EPOCH));
        let held = Held::new(&clock);
        held.add("edge");
        assert!(!held.holds("edge"), "its Lease was never renewed");
        held.renewed(clock.uptime(), LEASE);
        assert!(held.holds("edge") && !held.holds("shop"));
        sleep(LEASE * 3 / 5).await;
        assert!(held.holds("edge"));
        sleep(LEASE / 12).await;
        assert!(!held.holds("edge"));
    });
}
