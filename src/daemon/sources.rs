//! Polling the sources of a generation.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gatewright_engine::error::Chain;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet, spawn_blocking};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::measure::seconds;
use super::{Shared, Slot};
use crate::basics::lock::lock;
use crate::config::Config;
use crate::desired::assemble::{self, SourceSetupError};
use crate::schedule::timer::spread;
use crate::source::SourceError;
use crate::source::cache::{SourceCache, TROUBLES, Trouble};
use crate::source::watch::{Watcher, watch};
use crate::state::State;

/// The interval at which a source is asked when its settings say nothing.
const POLL: Duration = Duration::from_secs(30);

/// The longest pause after failures.
const LONGEST_PAUSE: Duration = Duration::from_mins(15);

/// The part of a pause by which it is longer or shorter at most.
const JITTER: u32 = 10;

/// The sources of a generation.
pub(super) struct SourceCaches {
    caches: BTreeMap<String, Polled>,
}

struct Polled {
    cache: SourceCache,
    identity: String,
    slot: Slot,
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
            let slot = Slot::default();
            slot.put(&cache);
            let poll = settings.poll.map_or(POLL, |period| period.0);
            let folder = settings.directory.as_ref().map(|directory| directory.path.clone());
            caches.insert(name.clone(), Polled { cache, identity, slot, poll, folder });
        }
        Ok(Self { caches })
    }

    /// Returns where the syncs of a source find what it has found.
    pub(super) fn slot(&self, source: &str) -> Slot {
        self.caches.get(source).map(|polled| polled.slot.clone()).unwrap_or_default()
    }

    pub(super) fn start(
        self,
        nudges: &BTreeMap<String, Vec<Arc<Notify>>>,
        shared: &Arc<Shared>,
        stop: &CancellationToken,
        tasks: &mut JoinSet<()>,
    ) {
        shared.troubles.keep_only(|name| self.caches.contains_key(name), &shared.state);
        for (name, polled) in self.caches {
            let nudges = nudges.get(&name).cloned().unwrap_or_default();
            let (shared, stop) = (Arc::clone(shared), stop.clone());
            tasks.spawn(async move { polled.run(&name, &nudges, &shared, &stop).await });
        }
    }
}

impl Polled {
    async fn run(mut self, name: &str, nudges: &[Arc<Notify>], shared: &Shared, stop: &CancellationToken) {
        let pulse = shared.progress.watch(&format!("source {name}"));
        let changed = Arc::new(Notify::new());
        // It is dropped with the watch in it. A file system that hangs keeps nobody else waiting.
        let folder = self.folder.clone().filter(|_| shared.is_watching);
        let _watching = folder.map(|folder| watching(name.to_owned(), folder, Arc::clone(&changed)));
        // An outage that outlives a restart goes on.
        let since = self.cache.trouble().map_or_else(|| shared.clock.now(), |trouble| trouble.since);
        shared.metrics.source_watched(name, seconds(since));
        let (mut failures, mut polls): (u32, u64) = (0, 0);
        while !stop.is_cancelled() {
            pulse.touch();
            let result = tokio::select! {
                // A repository that takes minutes to fetch is no standstill: the source itself has a deadline.
                result = pulse.during(self.cache.poll(shared.clock.now(), &self.identity, &shared.state)) => result,
                () = stop.cancelled() => return,
            };
            failures = if result.is_ok() { 0 } else { failures.saturating_add(1) };
            self.tell(name, result, nudges, shared);
            let pause = pause(self.poll, failures, (name, polls));
            polls += 1;
            tokio::select! {
                _ = pulse.during(timeout(pause, changed.notified())) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    fn tell(&self, name: &str, result: Result<bool, SourceError>, nudges: &[Arc<Notify>], shared: &Shared) {
        self.slot.put(&self.cache);
        match result {
            Ok(is_new) => {
                // Rounds of several hosts may have waited for it, whether it is new here or not.
                let is_first = !self.slot.is_read.swap(true, Ordering::Relaxed) && shared.hosts.is_one_of_several();
                shared.metrics.polled(name, if is_new { "new" } else { "unchanged" });
                shared.metrics.source_succeeded(name, seconds(shared.clock.now()));
                shared.troubles.record(name, None, &shared.state);
                if is_new {
                    let revision = self.cache.snapshot().map(|snapshot| snapshot.revision.clone()).unwrap_or_default();
                    info!(source = name, revision, "new revision");
                }
                if is_new || is_first {
                    // Every sync of the source is told.
                    for sync in nudges {
                        sync.notify_one();
                    }
                }
            }
            Err(error) => {
                shared.metrics.polled(name, "failed");
                shared.troubles.record(name, self.cache.trouble(), &shared.state);
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
fn watching(name: String, folder: PathBuf, changed: Arc<Notify>) -> JoinHandle<Option<Watcher>> {
    spawn_blocking(move || {
        let watcher = watch(&folder, move || changed.notify_one());
        watcher
            .map_err(|error| warn!(source = name, error = %Chain(&error), "cannot watch the directory; it is polled"))
            .ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
