//! A daemon among several: it takes the syncs that are its share or whose host has died, and gives away what is another's.
//!
//! A sync is only given away once its rounds here have ended; where the Lease of this host has run out, they end because no
//! request of theirs that changes something is let through any more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gatewright_engine::error::Chain;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, info, warn};

use super::exchange::Exchange;
use super::fence::{Fence, Held};
use super::membership::{Membership, Renewal};
use super::view::preferred;
use super::{Former, IDENTITY};
use crate::cluster::ClusterError;
use crate::shared::Shared;
use crate::state::State;

/// The syncs that a daemon looks after, for those who run their rounds.
#[derive(Clone)]
pub(crate) struct Share {
    held: Arc<Held>,
    shared: Arc<Shared>,
    wanted: watch::Receiver<BTreeSet<String>>,
    running: Arc<watch::Sender<BTreeSet<String>>>,
    configured: Arc<watch::Sender<BTreeSet<String>>>,
}

/// Keeps the Leases of a daemon.
pub(crate) struct Keeper {
    membership: Membership,
    state: State,
    exchange: Arc<Exchange>,
    /// The syncs that were taken, and which exchange with the store has to be over before their rounds begin.
    taken: BTreeMap<String, u64>,
    wanted: watch::Sender<BTreeSet<String>>,
    running: watch::Receiver<BTreeSet<String>>,
    configured: watch::Receiver<BTreeSet<String>>,
    /// The identity that the next process with this state directory knows.
    noted: String,
    is_time_known: Option<bool>,
}

impl Share {
    /// Returns the syncs whose rounds should run here.
    pub(crate) fn wanted(&self) -> BTreeSet<String> {
        self.wanted.borrow().clone()
    }

    /// Waits until other syncs should run here than those that do.
    pub(crate) async fn changed(&mut self) {
        let (running, configured) = (self.running.borrow().clone(), self.configured.borrow().clone());
        let is_other = |wanted: &BTreeSet<String>| !wanted.intersection(&configured).eq(&running);
        if self.wanted.wait_for(is_other).await.is_err() {
            // Nobody keeps the Leases any more, because the process is about to end.
            std::future::pending::<()>().await;
        }
    }

    /// Says of which syncs rounds run here.
    pub(crate) fn runs(&self, syncs: BTreeSet<String>) {
        self.running.send_replace(syncs);
    }

    /// Says which syncs there are.
    pub(crate) fn configure(&self, syncs: BTreeSet<String>) {
        self.configured.send_replace(syncs);
    }

    /// Returns the right to change something for a sync.
    pub(crate) fn fence(&self, sync: &str) -> Fence {
        Fence::new(&self.held, &self.shared, sync)
    }

    /// Tells whether this host may change something for a sync.
    pub(crate) fn holds(&self, sync: &str) -> bool {
        self.held.holds(sync)
    }

    /// Has others know what this host has written.
    pub(crate) async fn flush(&self) {
        if let Err(error) = self.shared.flush(|sync| self.held.holds(sync)).await {
            warn!(error = %Chain(&error), hint = error.hint(), "other hosts do not know yet what this one has written");
        }
    }
}

impl Keeper {
    /// Begins with nothing.
    pub(super) fn new(membership: Membership, state: &State, shared: &Arc<Shared>) -> (Self, Share) {
        let (wanted, wanted_there) = watch::channel(BTreeSet::new());
        let (running_there, running) = watch::channel(BTreeSet::new());
        let (configured_there, configured) = watch::channel(BTreeSet::new());
        let share = Share {
            held: Arc::clone(&membership.held),
            shared: Arc::clone(shared),
            wanted: wanted_there,
            running: Arc::new(running_there),
            configured: Arc::new(configured_there),
        };
        let exchange = Exchange::new(shared, &membership.held, &membership.terms.clock);
        let (state, taken) = (state.clone(), BTreeMap::new());
        (
            Self {
                membership,
                state,
                exchange,
                taken,
                wanted,
                running,
                configured,
                noted: String::new(),
                is_time_known: None,
            },
            share,
        )
    }

    /// Keeps them until it is dropped.
    pub(crate) async fn keep(&mut self) {
        let (mut is_told, pause) = (false, self.membership.terms.duration / 6);
        // Beside it, because what is brought together may be much.
        let exchange = Arc::clone(&self.exchange);
        let _exchange = AbortOnDropHandle::new(tokio::spawn(async move { exchange.run().await }));
        loop {
            // A request that is not answered must not keep this host from seeing that its Lease has run out.
            let limit = self.membership.terms.duration / 3;
            let problem = match timeout(limit, self.turn()).await {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some((Chain(&error).to_string(), error.hint)),
                Err(_) => Some(("the management cluster does not answer in time".to_owned(), None)),
            };
            match problem {
                Some((error, hint)) if !is_told => {
                    warn!(error, hint, "cannot keep the Leases of this host; without them it changes nothing");
                    is_told = true;
                }
                Some((error, _)) => debug!(error, "cannot keep the Leases of this host"),
                None if is_told => {
                    info!("the Leases of this host are kept again");
                    is_told = false;
                }
                None => {}
            }
            self.publish();
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = self.running.changed() => {}
                _ = self.configured.changed() => {}
            }
        }
    }

    /// Gives everything back; nothing runs any more.
    pub(crate) async fn leave(&mut self) {
        self.wanted.send_replace(BTreeSet::new());
        let limit = self.membership.terms.duration;
        self.exchange.flush_all(limit).await;
        if !matches!(timeout(limit, self.membership.leave()).await, Ok(Ok(()))) {
            warn!("the Leases of this host could not be given back; others take its syncs when they have run out");
        }
    }

    async fn turn(&mut self) -> Result<(), ClusterError> {
        if self.membership.held.syncs().is_empty() && !self.membership.held.is_valid() {
            // Rounds from before the Lease had run out come to their end first.
            self.publish();
            if !self.running.borrow_and_update().is_empty() {
                return Ok(());
            }
        }
        let configured = self.configured.borrow_and_update().clone();
        self.membership.offers(self.offers(&configured));
        self.note_identity();
        if self.membership.renew().await? == Renewal::Lapsed {
            warn!("the Lease of this host has run out; another one may look after its syncs by now");
            self.membership.begin_again();
            self.taken.clear();
            return Ok(());
        }
        self.membership.look().await?;
        self.know_time();
        self.begin_rounds();
        self.release(&configured).await?;
        if self.exchange.is_good() {
            for sync in &configured {
                self.take(sync).await?;
            }
        }
        self.begin_rounds();
        self.membership.tidy().await;
        Ok(())
    }

    /// Returns the syncs that can be given to this host. Without the store it keeps for a while those that it has.
    fn offers(&self, configured: &BTreeSet<String>) -> BTreeSet<String> {
        if self.exchange.is_good() {
            configured.clone()
        } else if self.is_store_lost() {
            BTreeSet::new()
        } else {
            self.membership.held.syncs()
        }
    }

    fn is_store_lost(&self) -> bool {
        self.exchange.is_lost_for(self.membership.terms.duration)
    }

    /// Has this host delete what is too old only while its clock agrees with that of the management cluster.
    fn know_time(&mut self) {
        let is_known = self.membership.is_time_known;
        if self.is_time_known != Some(is_known) {
            self.is_time_known = Some(is_known);
            if !is_known {
                warn!(
                    "the clock of this host or of the management cluster is wrong; nothing that is too old is deleted by it"
                );
            }
        }
        if let Some(notes) = self.state.notes() {
            notes.knows_time(is_known);
        }
    }

    /// Has the next process with this state directory know that it need not wait for this one.
    fn note_identity(&mut self) {
        let identity = self.membership.identity();
        if self.noted == identity {
            return;
        }
        let former = Former::this(identity, &self.state, self.membership.terms.clock.as_ref());
        let Some(former) = former else { return };
        match IDENTITY.write(&self.state, &[], &former) {
            Ok(()) => identity.clone_into(&mut self.noted),
            Err(error) => {
                warn!(error = %Chain(&error), "after a restart this host waits until its own Lease has run out");
            }
        }
    }

    /// Gives away what is somebody else's by now, once its rounds have ended.
    async fn release(&mut self, configured: &BTreeSet<String>) -> Result<(), ClusterError> {
        self.taken.retain(|sync, _| self.membership.view.is_held_by(sync, self.membership.identity()));
        let mut leaving = self.leaving(configured);
        // What was given to this host, and is not of its config file; or what is known of it cannot be had.
        let is_ours = |sync: &&String| self.membership.view.holder(sync) == self.membership.identity();
        let is_useless = |sync: &&String| !configured.contains(*sync) || !self.exchange.is_good();
        let held = self.membership.held.syncs();
        let useless = self.membership.view.syncs.keys().filter(is_ours).filter(is_useless);
        leaving.extend(useless.filter(|sync| !held.contains(*sync)).map(|sync| (sync.clone(), String::new())));
        if leaving.is_empty() {
            return Ok(());
        }
        self.publish();
        let running = self.running.borrow_and_update().clone();
        let ended: Vec<_> = leaving.into_iter().filter(|(sync, _)| !running.contains(sync)).collect();
        if ended.is_empty() {
            return Ok(());
        }
        // What was taken and not begun with has nothing that others would have to know.
        let syncs = ended.iter().map(|(sync, _)| sync.clone()).collect();
        let known = self.exchange.flush(&syncs, self.membership.terms.duration / 6).await;
        for (sync, to) in ended {
            if self.taken.remove(&sync).is_some() || known.contains(&sync) || self.is_store_lost() {
                self.membership.give(&sync, &to).await?;
            }
        }
        Ok(())
    }

    /// Returns the syncs that go to somebody else, and to whom; nobody, where this host does not know them any more.
    fn leaving(&self, configured: &BTreeSet<String>) -> Vec<(String, String)> {
        let Membership { view, terms, held, .. } = &self.membership;
        let now = terms.clock.uptime();
        let hosts = view.hosts(&terms.group, now);
        let to = |sync: &String| {
            if !configured.contains(sync) {
                return Some(String::new());
            }
            // Who waits would wait for the store, too; who has lost it keeps nothing back.
            let can_tell = self.exchange.is_good() || self.is_store_lost();
            if let Some(waiting) = view.wanted_by(sync, now).filter(|_| can_tell) {
                return Some(waiting.to_owned());
            }
            let best = preferred(sync, &hosts)?;
            // A host that has just come may be about to go again.
            let is_settled = hosts.get(best).is_some_and(|host| now >= host.since + terms.duration);
            (best != self.membership.identity() && is_settled).then(|| best.to_owned())
        };
        held.syncs().into_iter().filter_map(|sync| Some((to(&sync)?, sync))).map(|(to, sync)| (sync, to)).collect()
    }

    /// Takes a sync that is this host's: it was given to it, or nobody looks after it, and this host is the first in line.
    async fn take(&mut self, sync: &str) -> Result<(), ClusterError> {
        let membership = &mut self.membership;
        // Rounds of an earlier time come to their end first.
        let is_running = self.running.borrow().contains(sync);
        if membership.held.syncs().contains(sync) || self.taken.contains_key(sync) || is_running {
            return Ok(());
        }
        let now = membership.terms.clock.uptime();
        let is_given = membership.view.is_held_by(sync, membership.identity());
        let hosts = membership.view.hosts(&membership.terms.group, now);
        let is_first = preferred(sync, &hosts) == Some(membership.identity());
        let is_asked_for = membership.view.wanted_by(sync, now).is_some_and(|it| it != membership.identity());
        if !is_given && (!is_first || is_asked_for || !membership.is_free(sync)) {
            return Ok(());
        }
        if membership.take(sync).await? {
            self.taken.insert(sync.to_owned(), self.exchange.request());
        }
        Ok(())
    }

    /// Has the rounds of syncs begin of which all is known that the host before has left.
    fn begin_rounds(&mut self) {
        let Self { taken, exchange, membership, .. } = self;
        taken.retain(|sync, number| {
            let is_ready = exchange.is_done(*number);
            if is_ready {
                membership.held.add(sync);
            }
            !is_ready
        });
    }

    /// Says what should run here: what is held, but for what is to go.
    fn publish(&self) {
        let configured = self.configured.borrow().clone();
        let leaving = self.leaving(&configured);
        let mut wanted = self.membership.held.syncs();
        if !self.membership.held.is_valid() {
            wanted.clear();
        }
        wanted.retain(|sync| !leaving.iter().any(|(leaving, _)| leaving == sync));
        self.wanted.send_if_modified(|known| {
            let is_new = *known != wanted;
            *known = wanted;
            is_new
        });
    }
}
