//! Hosts in simulated time, with Leases in memory that are slow, cut off or frozen.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::basics::clock::{Boot, Clock, SimulatedClock};
use crate::basics::lock::lock;
use crate::cluster::leases::{Lease, Leases};
use crate::cluster::{ClusterError, Reason};
use crate::hosts::Former;
use crate::hosts::keeper::{Keeper, Share};
use crate::hosts::membership::{Membership, Terms};
use crate::hosts::view::Kind;
use crate::shared::{Shared, StoreSettings};
use crate::state::State;

pub(super) const LEASE: Duration = Duration::from_secs(6);

/// A clock of a machine that was started once.
pub(super) struct Booted(SimulatedClock);

impl Clock for Booted {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn boot(&self) -> Option<Boot> {
        Some(Boot { id: "once".to_owned(), up: SignedDuration::try_from(self.0.elapsed()).ok()? })
    }
}

/// Leases in memory.
#[derive(Default)]
pub(super) struct Server {
    leases: Mutex<(u64, BTreeMap<String, Lease>)>,
    secret: Mutex<Option<BTreeMap<String, String>>>,
}

/// The way of one host to them.
pub(super) struct Link {
    server: Arc<Server>,
    is_cut: Arc<AtomicBool>,
    random: Mutex<StdRng>,
}

pub(super) fn refused(reason: Reason) -> ClusterError {
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
    async fn list(&self, _label: (&str, &str)) -> Result<(Vec<Lease>, Option<Timestamp>), ClusterError> {
        self.pass().await?;
        let listed = lock(&self.server.leases).1.values().cloned().collect();
        self.pass().await?;
        Ok((listed, None))
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
pub(super) struct Freezable<F> {
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
pub(super) struct Host {
    pub(super) name: String,
    pub(super) share: Option<Share>,
    pub(super) task: Option<JoinHandle<()>>,
    pub(super) is_cut: Arc<AtomicBool>,
    pub(super) is_frozen: Arc<AtomicBool>,
    pub(super) state: State,
}

pub(super) struct World {
    pub(super) server: Arc<Server>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) folder: tempfile::TempDir,
    pub(super) syncs: BTreeSet<String>,
    pub(super) hosts: Vec<Host>,
    pub(super) random: StdRng,
}

impl World {
    pub(super) fn new(seed: u64, hosts: usize) -> Self {
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
            clock: Arc::new(Booted(SimulatedClock::starting_at(Timestamp::UNIX_EPOCH))),
            syncs: (0..4).map(|index| format!("sync-{index}")).collect(),
            hosts: (0..hosts).map(host).collect(),
            random: StdRng::seed_from_u64(seed),
            folder,
        }
    }

    pub(super) fn terms(&mut self, host: &str, is_cut: &Arc<AtomicBool>) -> Terms {
        let random = Mutex::new(StdRng::seed_from_u64(self.random.random()));
        let (server, is_cut) = (Arc::clone(&self.server), Arc::clone(is_cut));
        Terms {
            leases: Arc::new(Link { server, is_cut, random }),
            group: "test".to_owned(),
            host: host.to_owned(),
            duration: LEASE,
            clock: Arc::clone(&self.clock),
            is_founder: false,
        }
    }

    pub(super) fn store(&self, state: &State) -> Arc<Shared> {
        let path = self.folder.path().join("store");
        std::fs::create_dir_all(&path).expect("a test may");
        let url = format!("file://{}", path.display());
        let settings = StoreSettings { url, options: BTreeMap::new(), secrets: None };
        Arc::new(Shared::open(&settings, state, &state.path("reports"), "test", true).expect("it is a folder"))
    }

    /// Puts a Lease there, as its holder would, and returns the names of all.
    pub(super) fn puts(&self, lease: Lease) -> BTreeSet<String> {
        let (count, leases) = &mut *lock(&self.server.leases);
        *count += 1;
        leases.insert(lease.name.clone(), Lease { version: count.to_string(), ..lease });
        leases.keys().cloned().collect()
    }

    /// Starts a daemon: its Leases are kept, and what it should run it runs a moment later.
    pub(super) fn start(&mut self, index: usize) {
        let (name, is_cut) = (self.hosts[index].name.clone(), Arc::clone(&self.hosts[index].is_cut));
        let (terms, state) = (self.terms(&name, &is_cut), self.hosts[index].state.clone());
        let _lock = state.lock().expect("nobody has it");
        let membership = Membership::new(terms, Kind::Host, Former::ended(&state, self.clock.as_ref()));
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
    pub(super) fn kill(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        host.is_frozen.store(false, Ordering::Relaxed);
        if let Some(task) = host.task.take() {
            task.abort();
        }
        host.share = None;
    }

    pub(super) fn holders(&self, sync: &str) -> Vec<&str> {
        let holds = |host: &&Host| host.share.as_ref().is_some_and(|share| share.holds(sync));
        self.hosts.iter().filter(holds).map(|host| host.name.as_str()).collect()
    }

    /// Lets time pass and makes sure that nothing is ever looked after by two.
    pub(super) async fn pass(&self, time: Duration) {
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
    pub(super) fn happen(&mut self) {
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
    pub(super) fn heal(&mut self) {
        for index in 0..self.hosts.len() {
            self.hosts[index].is_cut.store(false, Ordering::Relaxed);
            self.hosts[index].is_frozen.store(false, Ordering::Relaxed);
            if self.hosts[index].task.is_none() {
                self.start(index);
            }
        }
    }

    pub(super) fn unowned(&self) -> Vec<&String> {
        self.syncs.iter().filter(|sync| self.holders(sync).is_empty()).collect()
    }
}
