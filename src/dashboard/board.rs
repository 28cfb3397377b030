//! All that this daemon knows of its fleet: the last report of each sync on each cluster in a few words, kept until
//! its file is another one.
//!
//! Files are the truth here as they are for `gatewright status`, because commands and other hosts write them, too. They are
//! looked at when somebody asks, or while somebody watches, and read only when they have changed.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::cell::Cell;
use crate::basics::clock::Clock;
use crate::basics::lock::lock;
use crate::config::Config;
use crate::history::audit_log::Actor;
use crate::history::decisions::Decider;
use crate::history::{approvals, journal};
use crate::reconcile::renamed;
use crate::schedule::enrolled::Enrolled;
use crate::source::cache::{TROUBLES, Trouble};
use crate::state::State;
use crate::state::store::Stamp;
use crate::state::suspension::{SUSPENDED, Suspension};
use crate::state::timekeeping;

/// Files are looked at no more often than this, however many people ask.
const REST: Duration = Duration::from_millis(500);

/// Files of commands and of other hosts are looked for so often, while somebody watches.
const LOOK_AGAIN: Duration = Duration::from_secs(3);

/// Answers that are made at the same time: each may read files.
const READERS: usize = 2;

/// The most that watch at the same time.
pub(super) const WATCHERS: usize = 32;

/// The board, for one daemon.
pub(crate) struct Board {
    pub(super) state: State,
    pub(super) clock: Arc<dyn Clock>,
    config: Mutex<Option<Arc<Config>>>,
    known: Mutex<Known>,
    /// A round has ended.
    news: Notify,
    /// The rounds that run here.
    pub(super) enrolled: Arc<Enrolled>,
    /// Somebody has decided something, which other hosts are to know.
    decisions: Notify,
    /// The version of what is known, for those who watch.
    pub(super) version: watch::Sender<u64>,
    pub(super) readers: Semaphore,
    pub(super) watchers: Arc<Semaphore>,
    /// Set when the daemon ends.
    pub(super) stop: CancellationToken,
}

/// The knowledge about the fleet at one time.
pub(super) struct Knowledge {
    /// The configuration that is in force.
    pub config: Arc<Config>,
    /// The cells, by cluster and sync.
    pub cells: BTreeMap<String, BTreeMap<String, Arc<Cell>>>,
    /// The syncs that are suspended.
    pub suspended: BTreeMap<String, Suspension>,
    /// The sources that cannot be read.
    pub troubles: BTreeMap<String, Trouble>,
    /// The number of changes until then.
    pub version: u64,
}

#[derive(Default)]
struct Known {
    looked: Option<Duration>,
    targets: Targets,
    knowledge: Option<Arc<Knowledge>>,
}

/// The cell of each sync on each cluster, with the stamps of the files that it was made from.
type Targets = BTreeMap<(String, String), ([Option<Stamp>; 2], Arc<Cell>)>;

impl Board {
    /// Begins with nothing.
    pub(crate) fn new(
        state: State,
        clock: &Arc<dyn Clock>,
        enrolled: &Arc<Enrolled>,
        stop: &CancellationToken,
    ) -> Self {
        Self {
            state,
            clock: Arc::clone(clock),
            config: Mutex::default(),
            known: Mutex::default(),
            news: Notify::new(),
            enrolled: Arc::clone(enrolled),
            decisions: Notify::new(),
            version: watch::Sender::new(0),
            readers: Semaphore::new(READERS),
            watchers: Arc::new(Semaphore::new(WATCHERS)),
            stop: stop.clone(),
        }
    }

    /// Takes the configuration that is in force now.
    pub(crate) fn follow(&self, config: &Arc<Config>) {
        *lock(&self.config) = Some(Arc::clone(config));
        lock(&self.known).looked = None;
        self.news.notify_one();
    }

    /// Has those who watch told that a round has ended.
    pub(crate) fn tell(&self) {
        self.news.notify_one();
    }

    /// Has a round of a sync begin on each of its clusters; returns how many those are.
    pub(super) fn reconcile(&self, sync: &str) -> usize {
        self.enrolled.ask(sync).len()
    }

    /// Returns what somebody needs to decide something.
    pub(super) fn decider<'a>(&'a self, actor: &'a Actor) -> Decider<'a> {
        Decider { state: &self.state, clock: self.clock.as_ref(), actor }
    }

    /// Has those who watch and other hosts told that somebody has decided something.
    pub(super) fn decided(&self) {
        lock(&self.known).looked = None;
        self.news.notify_one();
        self.decisions.notify_one();
    }

    /// Waits until somebody has decided something.
    pub(crate) async fn decisions(&self) {
        self.decisions.notified().await;
    }

    /// Looks for news for as long as somebody watches, until the daemon ends.
    pub(crate) async fn watch(self: Arc<Self>) {
        let look = async {
            loop {
                drop(timeout(LOOK_AGAIN, self.news.notified()).await);
                if self.version.receiver_count() > 0 {
                    let board = Arc::clone(&self);
                    drop(tokio::task::spawn_blocking(move || drop(board.look())).await);
                }
                sleep(REST).await;
            }
        };
        self.stop.run_until_cancelled(look).await;
    }

    /// Returns what is known now; nothing before the daemon has begun. It reads files.
    pub(super) fn look(&self) -> Option<Arc<Knowledge>> {
        let config = lock(&self.config).clone()?;
        let mut known = lock(&self.known);
        let now = self.clock.elapsed();
        if let (Some(looked), Some(knowledge)) = (known.looked, &known.knowledge)
            && now.saturating_sub(looked) < REST
        {
            return Some(Arc::clone(knowledge));
        }
        let mut before = mem::take(&mut known.targets);
        let mut is_other = false;
        for (sync, settings) in &config.settings.syncs {
            for cluster in config.clusters_of(settings).into_keys() {
                let names = (sync.clone(), cluster.to_owned());
                let stamps = [journal::stamp(&self.state, sync, cluster), approvals::stamp(&self.state, sync, cluster)];
                let found = match before.remove(&names) {
                    Some(found) if found.0 == stamps => found,
                    _ => {
                        is_other = true;
                        let report = renamed::last_report(&config, &self.state, (sync, cluster));
                        (stamps, Arc::new(Cell::of((sync, cluster), report.as_ref())))
                    }
                };
                known.targets.insert(names, found);
            }
        }
        let suspended = self.suspended(&config);
        let troubles = TROUBLES.read(&self.state, &[]).unwrap_or_default();
        let last = known.knowledge.take();
        is_other |= !before.is_empty()
            || last.as_ref().is_none_or(|last| {
                last.suspended != suspended || last.troubles != troubles || !Arc::ptr_eq(&last.config, &config)
            });
        known.looked = Some(now);
        known.knowledge = last.filter(|_| !is_other);
        if is_other {
            let version = *self.version.borrow() + 1;
            let cells = cells(&config, &known.targets);
            known.knowledge = Some(Arc::new(Knowledge { config, cells, suspended, troubles, version }));
            self.version.send_replace(version);
        }
        known.knowledge.clone()
    }

    /// Returns the syncs that are suspended. A record that cannot be read suspends one, too, and its rounds say so.
    fn suspended(&self, config: &Config) -> BTreeMap<String, Suspension> {
        let now = self.now();
        let syncs = config.settings.syncs.keys();
        let of = |sync: &String| Some((sync.clone(), SUSPENDED.read(&self.state, &[sync])?));
        syncs.filter_map(of).filter(|(_, it)| it.until.is_none_or(|until| now < until)).collect()
    }

    /// Returns the time, as far as this installation believes its clock.
    pub(super) fn now(&self) -> jiff::Timestamp {
        timekeeping::believed(&self.state, self.clock.as_ref())
    }
}

fn cells(config: &Config, targets: &Targets) -> BTreeMap<String, BTreeMap<String, Arc<Cell>>> {
    let clusters = config.settings.clusters.keys();
    let mut cells: BTreeMap<_, BTreeMap<_, _>> = clusters.map(|name| (name.clone(), BTreeMap::new())).collect();
    for ((sync, cluster), (_, cell)) in targets {
        cells.entry(cluster.clone()).or_default().insert(sync.clone(), Arc::clone(cell));
    }
    cells
}
