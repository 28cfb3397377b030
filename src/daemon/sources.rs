//! Polling the sources of a generation.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use gatewright_engine::error::Chain;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, debug_span, error, info, warn};

use super::Shared;
use super::generation::Tasks;
use super::measure::seconds;
use crate::basics::lock::lock;
use crate::config::Config;
use crate::desired::assemble::{self, SourceSetupError};
use crate::schedule::timer::spread;
use crate::source::cache::{SourceCache, TROUBLES, Trouble};
use crate::source::watch::{Watcher, watch};
use crate::source::{Snapshot, SourceError};
use crate::state::State;

/// The interval at which a source is asked when its settings say nothing.
const POLL: Duration = Duration::from_secs(30);

/// The longest pause after failures.
const LONGEST_PAUSE: Duration = Duration::from_mins(15);

/// The part of a pause by which it is longer or shorter at most.
const JITTER: u32 = 10;

/// The snapshot and the trouble of a source, as a sync sees them.
type Seen = (Option<Arc<Snapshot>>, Option<Trouble>);

/// The place where a source leaves what it has found for its syncs.
#[derive(Debug, Default)]
pub(super) struct Slot {
    found: Mutex<Found>,
    /// Told when the source is to be read at once.
    is_due: Notify,
}

#[derive(Debug, Default)]
struct Found {
    seen: Seen,
    /// The number of reads that have begun.
    begun: u64,
    /// The number of the last one that went well; what stands here before the first is from the disk.
    read: u64,
    /// The rounds that begin when there is something new.
    rounds: Vec<Waiting>,
}

/// A round that begins when there is something new, and after the read that it needs.
#[derive(Debug)]
struct Waiting {
    needed: u64,
    round: Weak<Notify>,
    /// Told after that read, where somebody has asked for the round: what begins before may be about what stood there before,
    /// and is not what was asked for.
    is_asked: Option<Arc<AtomicBool>>,
}

impl Slot {
    /// Has the source be read for a sync that comes, and returns the number of that read. One that is under way may have
    /// seen what was there before.
    pub(super) fn ask(&self) -> u64 {
        let begun = lock(&self.found).begun;
        // The first one comes by itself.
        if begun > 0 {
            self.is_due.notify_one();
        }
        begun + 1
    }

    /// Has a round begin when there is something new, and after the read that it needs, if that has something new or not.
    pub(super) fn nudge(&self, round: &Arc<Notify>, needed: u64) {
        self.wait(Waiting { needed, round: Arc::downgrade(round), is_asked: None });
    }

    fn wait(&self, waiting: Waiting) {
        let rounds = &mut lock(&self.found).rounds;
        rounds.retain(|known| known.round.strong_count() > 0 && !known.round.ptr_eq(&waiting.round));
        rounds.push(waiting);
    }

    /// Has the source be read at once, and a round begin after that, whether there is something new or not. Returns the
    /// number of that read.
    pub(super) fn ask_for(&self, round: &Arc<Notify>, is_asked: &Arc<AtomicBool>) -> u64 {
        // One that is under way may have seen what was there before.
        let needed = lock(&self.found).begun + 1;
        self.wait(Waiting { needed, round: Arc::downgrade(round), is_asked: Some(Arc::clone(is_asked)) });
        self.is_due.notify_one();
        needed
    }

    /// Returns the number of the last read that went well.
    pub(super) fn read(&self) -> u64 {
        lock(&self.found).read
    }

    /// Tells whether a read, or a later one, went well.
    pub(super) fn is_read(&self, needed: u64) -> bool {
        lock(&self.found).read >= needed
    }

    /// Returns what was found last.
    pub(super) fn get(&self) -> Seen {
        lock(&self.found).seen.clone()
    }

    /// Begins a read, and returns its number.
    fn begin(&self) -> u64 {
        let found = &mut lock(&self.found);
        found.begun += 1;
        found.begun
    }

    fn put(&self, cache: &SourceCache) {
        lock(&self.found).seen = (cache.snapshot(), cache.trouble().cloned());
    }

    /// Notes that a read went well, and has those rounds begin that it is for.
    fn succeeded(&self, number: u64, is_new: bool) {
        let found = &mut *lock(&self.found);
        let before = std::mem::replace(&mut found.read, number);
        for waiting in &found.rounds {
            let is_needed = before < waiting.needed && waiting.needed <= number;
            if let (true, Some(is_asked)) = (is_needed, &waiting.is_asked) {
                is_asked.store(true, Ordering::SeqCst);
            }
            if let (true, Some(round)) = (is_needed || is_new, waiting.round.upgrade()) {
                round.notify_one();
            }
        }
    }
}

/// The sources of a generation.
pub(super) struct SourceCaches {
    caches: BTreeMap<String, Polled>,
}

struct Polled {
    cache: SourceCache,
    identity: String,
    slot: Arc<Slot>,
    poll: Duration,
    folder: Option<PathBuf>,
}

impl SourceCaches {
    pub(super) fn new(config: &Config, shared: &Shared) -> Result<Self, SourceSetupError> {
        let mut caches = BTreeMap::new();
        for (name, settings) in &config.settings.sources {
            let identity = assemble::source_identity(config, name);
            let cache = SourceCache::new(
                name,
                assemble::source(config, name)?,
                &identity,
                shared.troubles.of(name),
                &shared.state,
            );
            let slot = Arc::<Slot>::default();
            slot.put(&cache);
            let poll = settings.poll.map_or(POLL, |period| period.0);
            let folder = settings.directory.as_ref().map(|directory| directory.path.clone());
            caches.insert(name.clone(), Polled { cache, identity, slot, poll, folder });
        }
        Ok(Self { caches })
    }

    /// Returns where the syncs of a source find what it has found.
    pub(super) fn slot(&self, source: &str) -> Arc<Slot> {
        self.caches.get(source).map(|polled| Arc::clone(&polled.slot)).unwrap_or_default()
    }

    pub(super) fn start(self, shared: &Arc<Shared>, tasks: &mut Tasks) {
        shared.troubles.keep_only(|name| self.caches.contains_key(name), &shared.state);
        for (name, polled) in self.caches {
            let (shared, stop) = (Arc::clone(shared), tasks.stop.clone());
            tasks.running.spawn(async move { polled.run(&name, &shared, &stop).await });
        }
    }
}

impl Polled {
    async fn run(mut self, name: &str, shared: &Shared, stop: &CancellationToken) {
        let pulse = shared.progress.watch(&format!("source {name}"));
        // It is dropped with the watch in it. A file system that hangs keeps nobody else waiting.
        let folder = self.folder.clone().filter(|_| shared.is_watching);
        let _watching = folder.map(|folder| watching(name.to_owned(), folder, Arc::clone(&self.slot)));
        // An outage that outlives a restart goes on.
        let since = self.cache.trouble().map_or_else(|| shared.clock.now(), |trouble| trouble.since);
        shared.metrics.source_watched(name, seconds(since));
        let (mut failures, mut polls): (u32, u64) = (0, 0);
        while !stop.is_cancelled() {
            pulse.touch();
            let number = self.slot.begin();
            let poll = self.cache.poll(shared.clock.now(), &self.identity, &shared.state);
            let poll = poll.instrument(debug_span!("poll", source = name));
            let result = tokio::select! {
                // A repository that takes minutes to fetch is no standstill: the source itself has a deadline.
                result = pulse.during(poll) => result,
                () = stop.cancelled() => return,
            };
            failures = if result.is_ok() { 0 } else { failures.saturating_add(1) };
            self.tell(name, (number, result), shared);
            let pause = pause(self.poll, failures, (name, polls));
            polls += 1;
            tokio::select! {
                _ = pulse.during(timeout(pause, self.slot.is_due.notified())) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    fn tell(&self, name: &str, (number, result): (u64, Result<bool, SourceError>), shared: &Shared) {
        self.slot.put(&self.cache);
        match result {
            Ok(is_new) => {
                shared.metrics.polled(name, if is_new { "new" } else { "unchanged" });
                shared.metrics.source_succeeded(name, seconds(shared.clock.now()));
                shared.troubles.record(name, None, &shared.state);
                if is_new {
                    let revision = self.cache.snapshot().map(|snapshot| snapshot.revision.clone()).unwrap_or_default();
                    info!(source = name, revision, "new revision");
                }
                self.slot.succeeded(number, is_new);
            }
            Err(error) => {
                shared.metrics.polled(name, "failed");
                shared.troubles.record(name, self.cache.trouble(), &shared.state);
                shared.requests.unread((name, number), &Chain(&error).to_string(), &shared.state);
                let hint = error.hint.as_deref().unwrap_or_default();
                warn!(source = name, error = %Chain(&error), hint, "the source cannot be read; its last good revision stays in force");
            }
        }
    }
}

/// Returns the pause before the next poll, longer with each failure in a row. Those of many sources do not stay together.
fn pause(poll: Duration, failures: u32, (name, polls): (&str, u64)) -> Duration {
    let pause = poll.saturating_mul(2_u32.saturating_pow(failures.min(10))).min(LONGEST_PAUSE.max(poll));
    spread(pause, pause / JITTER, name, polls)
}

/// The sources that cannot be read. `status` is another process: it learns it from a file.
pub(super) struct Troubles(Mutex<BTreeMap<String, Trouble>>);

impl Troubles {
    /// Takes up what was noted before a restart: an outage began when it was first seen.
    pub(super) fn load(state: &State) -> Self {
        Self(Mutex::new(TROUBLES.read(state, &[]).unwrap_or_default()))
    }

    fn of(&self, name: &str) -> Option<Trouble> {
        lock(&self.0).get(name).cloned()
    }

    fn record(&self, name: &str, trouble: Option<&Trouble>, state: &State) {
        self.change(state, |troubles| match trouble {
            Some(trouble) => drop(troubles.insert(name.to_owned(), trouble.clone())),
            None => drop(troubles.remove(name)),
        });
    }

    /// Forgets sources that are no longer configured.
    fn keep_only(&self, is_known: impl Fn(&str) -> bool, state: &State) {
        self.change(state, |troubles| troubles.retain(|name, _| is_known(name)));
    }

    /// Writes under the lock, so that the file is never older than what it stands for.
    fn change(&self, state: &State, change: impl FnOnce(&mut BTreeMap<String, Trouble>)) {
        let mut troubles = lock(&self.0);
        let before = troubles.clone();
        change(&mut troubles);
        if *troubles == before {
            return;
        }
        if let Err(error) = TROUBLES.write(state, &[], &troubles) {
            error!(error = %Chain(&error), "cannot note which sources cannot be read");
        }
    }
}

/// A watch only makes things faster: without it the folder is polled all the same.
fn watching(name: String, folder: PathBuf, slot: Arc<Slot>) -> JoinHandle<Option<Watcher>> {
    spawn_blocking(move || {
        let watcher = watch(&folder, move || slot.is_due.notify_one());
        watcher
            .map_err(|error| warn!(source = name, error = %Chain(&error), "cannot watch the directory; it is polled"))
            .ok()
    })
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn a_sync_that_comes_needs_a_read_that_has_begun_since_and_disturbs_nobody() {
        let slot = Slot::default();
        let sync = |needed: u64| {
            let round = Arc::new(Notify::new());
            slot.nudge(&round, needed);
            round
        };
        let is_nudged = |round: &Notify| round.notified().now_or_never().is_some();
        let (alone, first) = (sync(0), slot.ask());
        let there = sync(first);
        assert!(slot.is_read(0) && !slot.is_read(first));
        assert!(!is_nudged(&slot.is_due), "the first read comes by itself");
        let number = slot.begin();
        let second = slot.ask();
        let comes = sync(second);
        slot.succeeded(number, false);
        assert!(slot.is_read(first) && !slot.is_read(second), "it may have seen what was there before");
        assert!(is_nudged(&there) && !is_nudged(&comes) && !is_nudged(&alone));
        assert!(is_nudged(&slot.is_due), "another one follows at once");
        slot.begin();
        // It has failed.
        assert!(!slot.is_read(second));
        slot.succeeded(slot.begin(), false);
        assert!(slot.is_read(second) && is_nudged(&comes) && !is_nudged(&there) && !is_nudged(&alone));
        drop(comes);
        slot.succeeded(slot.begin(), true);
        assert!(is_nudged(&there) && is_nudged(&alone), "what is new is for all");
        let _last = sync(0);
        assert_eq!(lock(&slot.found).rounds.len(), 3, "who has gone is forgotten");
    }

    #[test]
    fn polls_of_many_sources_do_not_stay_together() {
        let pauses = |failures| (0..1_000).map(move |n| pause(POLL, failures, (&format!("source-{n}"), 3)));
        let mut seconds = BTreeMap::<u64, usize>::new();
        for pause in pauses(0) {
            assert!(pause >= POLL * 9 / 10 && pause <= POLL * 11 / 10, "{pause:?}");
            *seconds.entry(pause.as_secs()).or_default() += 1;
        }
        assert!(seconds.values().all(|number| *number <= 250), "{seconds:?}");
        assert!(pauses(99).all(|pause| pause <= LONGEST_PAUSE * 11 / 10));
        let again = |polls| pause(POLL, 0, ("specs", polls));
        assert!(again(1) == again(1) && again(1) != again(2));
    }
}
