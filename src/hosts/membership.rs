//! The Leases of one process: its own, which says that it lives, and those of the syncs that it looks after.
//!
//! Its own is renewed; a Lease of a sync only names who looks after it, and counts as long as that one lives. So a host
//! sends one renewal whatever the number of its syncs. Who has not renewed in time begins again under another identity:
//! what it held under the old one may be somebody else's by now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use gatewright_engine::error::Chain;
use gatewright_engine::text::hex;
use jiff::SignedDuration;
use tracing::{debug, info, warn};

use super::fence::Held;
use super::view::{GROUP, HOST, Kind, SYNCS, View, WANTED_BY};
use crate::basics::clock::Clock;
use crate::cluster::leases::{Lease, Leases};
use crate::cluster::{ClusterError, Reason};

/// The clock of a host that is further off deletes nothing that is too old by it.
const MOST_APART: SignedDuration = SignedDuration::from_mins(10);

/// The time after which the Lease of a host or command without a sign of life is deleted.
const DEAD_FOR: Duration = Duration::from_hours(24);

/// The terms of a group of hosts, as one process has them.
#[derive(Clone)]
pub(super) struct Terms {
    /// The place for Leases.
    pub leases: Arc<dyn Leases>,
    /// The name of the group.
    pub group: String,
    /// The name of this host.
    pub host: String,
    /// For how long a Lease counts.
    pub duration: Duration,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Nobody can have held anything before this process.
    pub is_founder: bool,
}

/// A process among the hosts of a group.
pub(super) struct Membership {
    pub(super) terms: Terms,
    kind: Kind,
    /// The name in that of its Lease.
    name: String,
    identity: String,
    /// Identities of this host that are certainly not in use any more.
    former: BTreeSet<String>,
    own: Option<Lease>,
    /// The time of its last renewal.
    renewed: Option<Duration>,
    /// The syncs that can be given to it.
    syncs: BTreeSet<String>,
    pub(super) view: View,
    pub(super) held: Arc<Held>,
    /// The clock of this host agrees with that of the management cluster.
    pub(super) is_time_known: bool,
}

/// The result of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Renewal {
    /// It counts.
    Counts,
    /// It is too late: what was held under this identity may be somebody else's.
    Lapsed,
}

/// Another host has the name of this one.
#[derive(Debug, thiserror::Error)]
#[error("another host calls itself {0:?}, too: its Lease is held by {1:?}, and is being renewed")]
struct SameName(String, String);

impl Membership {
    /// Begins; nothing is asked yet. `former` is the identity of the last process with the same state directory, which has
    /// ended.
    pub(super) fn new(terms: Terms, kind: Kind, former: Option<String>) -> Self {
        let held = Held::new(&terms.clock);
        let mut new = Self {
            kind,
            name: String::new(),
            identity: String::new(),
            former: former.into_iter().collect(),
            own: None,
            renewed: None,
            syncs: BTreeSet::new(),
            view: View::default(),
            held,
            is_time_known: false,
            terms,
        };
        new.begin_again();
        new
    }

    /// Takes another identity; nothing is held under it.
    pub(super) fn begin_again(&mut self) {
        let random = hex(&rand::random::<[u8; 8]>());
        let identity = format!("{}_{random}", self.terms.host);
        let before = std::mem::replace(&mut self.identity, identity);
        if !before.is_empty() {
            self.former.insert(before);
        }
        self.name = if self.kind == Kind::Host { self.terms.host.clone() } else { random };
        (self.own, self.renewed) = (None, None);
        // What was seen before is of no use to whoever may have slept since.
        self.view = View::default();
        self.held.clear();
    }

    /// Tells whether it has a Lease to renew.
    pub(super) fn has_lease(&self) -> bool {
        self.own.is_some()
    }

    /// Returns who this process is.
    pub(super) fn identity(&self) -> &str {
        &self.identity
    }

    /// Has others know which syncs can be given to it.
    pub(super) fn offers(&mut self, syncs: BTreeSet<String>) {
        if self.syncs != syncs {
            self.syncs = syncs;
            // The next renewal is due at once.
            self.renewed = None;
        }
    }

    /// Renews the Lease of this process where that is due, or makes it.
    pub(super) async fn renew(&mut self) -> Result<Renewal, ClusterError> {
        let now = self.terms.clock.uptime();
        if self.own.is_some() && !self.held.is_valid() {
            return Ok(Renewal::Lapsed);
        }
        if self.renewed.is_some_and(|last| now < last + self.terms.duration / 3) {
            return Ok(Renewal::Counts);
        }
        let lease = if let Some(own) = &self.own {
            self.own_lease(Some(own))
        } else {
            let found = self.found().await?;
            self.own_lease(found.as_ref())
        };
        let sent = self.terms.clock.uptime();
        match self.terms.leases.write(&lease).await {
            Ok(written) => {
                (self.own, self.renewed) = (Some(written), Some(sent));
                self.held.renewed(sent, self.terms.duration);
                Ok(Renewal::Counts)
            }
            // Perhaps it was our own first try whose answer was lost; or somebody has deleted it.
            Err(error) if error.reason == Reason::Conflict && self.own.is_some() => self.recovered().await,
            Err(error) => Err(error),
        }
    }

    /// Finds out what has become of the Lease of this process, which is not as it has left it.
    async fn recovered(&mut self) -> Result<Renewal, ClusterError> {
        let found = self.found().await?;
        match found {
            Some(lease) if lease.holder == self.identity => {
                // It counts from the last renewal that is known; the next one follows at once.
                (self.own, self.renewed) = (Some(lease), None);
                Ok(Renewal::Counts)
            }
            // It is another's, or somebody has deleted it: the others have not seen this host renew it since.
            _ => Ok(Renewal::Lapsed),
        }
    }

    /// Looks for the Lease with the name of this process; it is an error if somebody else lives under it.
    async fn found(&mut self) -> Result<Option<Lease>, ClusterError> {
        self.look().await?;
        let name = self.kind.lease(&self.terms.group, &self.name);
        let found = self.view.members.get(&name).cloned();
        let now = self.terms.clock.uptime();
        if let Some(lease) = &found
            && lease.holder != self.identity
            && !self.former.contains(&lease.holder)
            && self.view.is_live(&lease.holder, now)
        {
            return Err(ClusterError {
                action: format!("join the hosts of group {:?}", self.terms.group),
                reason: Reason::Other,
                hint: Some("wait until its Lease has run out, or give this host another hosts.name".to_owned()),
                source: Box::new(SameName(self.terms.host.clone(), lease.holder.clone())),
            });
        }
        Ok(found)
    }

    fn own_lease(&self, over: Option<&Lease>) -> Lease {
        let now = self.terms.clock.now();
        let syncs = self.syncs.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
        let is_ours = over.is_some_and(|over| over.holder == self.identity);
        Lease {
            name: self.kind.lease(&self.terms.group, &self.name),
            labels: self.labels(),
            annotations: [(HOST.to_owned(), self.terms.host.clone()), (SYNCS.to_owned(), syncs)].into(),
            holder: self.identity.clone(),
            acquired: over.filter(|_| is_ours).map_or(Some(now), |over| over.acquired),
            renewed: Some(now),
            seconds: i32::try_from(self.terms.duration.as_secs()).unwrap_or(i32::MAX),
            transitions: over.map_or(0, |over| over.transitions + i32::from(!is_ours)),
            version: over.map(|over| over.version.clone()).unwrap_or_default(),
        }
    }

    fn labels(&self) -> BTreeMap<String, String> {
        let ours = [("app.kubernetes.io/managed-by", "gatewright"), (GROUP, self.terms.group.as_str())];
        ours.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
    }

    /// Looks at all Leases of the group, and lets go of what is not this process's any more.
    pub(super) async fn look(&mut self) -> Result<(), ClusterError> {
        let asked = self.terms.clock.uptime();
        let (listed, date) = self.terms.leases.list((GROUP, &self.terms.group)).await?;
        self.is_time_known = date.is_some_and(|date| self.terms.clock.now().duration_since(date).abs() < MOST_APART);
        self.view.look(&self.terms.group, listed, self.terms.clock.uptime());
        if self.own.is_some() && !self.view.members.values().any(|lease| lease.holder == self.identity) {
            warn!("somebody has deleted the Lease of this host; it begins again");
            self.held.clear();
            return Ok(());
        }
        for sync in self.held.syncs() {
            // Somebody has deleted it: it is made again before anybody else can believe that the sync is free.
            let is_kept = match self.view.syncs.get(&sync) {
                Some(lease) => lease.holder == self.identity,
                None => self.hand(&sync, &self.identity.clone()).await?,
            };
            if !is_kept {
                warn!(sync, holder = self.view.holder(&sync), "another host has taken the sync over");
                self.held.remove(&sync);
            }
        }
        // Not before: whoever could not make one again is not to believe for long that it still has the sync.
        self.held.looked(asked);
        Ok(())
    }

    /// Deletes the Lease of a host or command that has been dead for a day, unless somebody writes it at this moment; one at a
    /// time. Whoever has slept for so long begins again under another identity.
    pub(super) async fn tidy(&mut self) {
        let now = self.terms.clock.uptime();
        let Some(dead) = self.view.dead_for(DEAD_FOR, now).filter(|dead| dead.holder != self.identity).cloned() else {
            return;
        };
        match self.terms.leases.delete(&dead).await {
            Ok(()) => info!(
                lease = dead.name,
                holder = dead.holder,
                "a Lease was deleted whose holder has been gone for a day"
            ),
            Err(error) => debug!(lease = dead.name, error = %Chain(&error), "a Lease was not deleted"),
        }
    }

    /// Tells whether nobody who lives looks after a sync.
    pub(super) fn is_free(&self, sync: &str) -> bool {
        let (holder, now) = (self.view.holder(sync), self.terms.clock.uptime());
        // Whoever has held one that is missing makes it again within that time, or knows that it has lost it.
        if let Some(since) = self.view.absent_since(sync) {
            return now >= since + self.terms.duration || (self.terms.is_founder && holder.is_empty());
        }
        holder.is_empty() || self.former.contains(holder) || !self.view.is_live(holder, now)
    }

    /// Takes a sync that is free, or was given to this process; tells whether it was first. It may change nothing before
    /// [`Held::add`].
    pub(super) async fn take(&mut self, sync: &str) -> Result<bool, ClusterError> {
        if self.view.is_held_by(sync, &self.identity) {
            return Ok(true);
        }
        let identity = self.identity.clone();
        let taken = self.hand(sync, &identity).await?;
        if taken {
            info!(sync, "this host looks after the sync from now on");
        }
        Ok(taken)
    }

    /// Gives a sync to somebody, or to nobody; its rounds here have ended.
    pub(super) async fn give(&mut self, sync: &str, to: &str) -> Result<bool, ClusterError> {
        self.held.remove(sync);
        let is_given = self.hand(sync, to).await?;
        info!(sync, to, "this host does not look after the sync any more");
        Ok(is_given)
    }

    /// Writes who looks after a sync; `false` if somebody else has written meanwhile.
    async fn hand(&mut self, sync: &str, to: &str) -> Result<bool, ClusterError> {
        let before = self.view.syncs.get(sync).cloned().unwrap_or_default();
        let now = Some(self.terms.clock.now());
        let lease = Lease {
            annotations: BTreeMap::new(),
            holder: to.to_owned(),
            acquired: now,
            renewed: now,
            transitions: before.transitions + 1,
            ..self.sync_lease(sync, before)
        };
        self.write(sync, lease).await
    }

    /// Has whoever looks after a sync know that this process waits for it.
    pub(super) async fn ask_for(&mut self, sync: &str) -> Result<(), ClusterError> {
        let before = self.view.syncs.get(sync).cloned().unwrap_or_default();
        let now = self.terms.clock.uptime();
        // Whoever has asked before is waited for.
        if self.view.wanted_by(sync, now).is_some() {
            return Ok(());
        }
        let mut lease = self.sync_lease(sync, before);
        lease.annotations.insert(WANTED_BY.to_owned(), self.identity.clone());
        self.write(sync, lease).await.map(drop)
    }

    fn sync_lease(&self, sync: &str, before: Lease) -> Lease {
        let (name, labels) = (Kind::Sync.lease(&self.terms.group, sync), self.labels());
        let seconds = i32::try_from(self.terms.duration.as_secs()).unwrap_or(i32::MAX);
        Lease { name, labels, seconds, ..before }
    }

    async fn write(&mut self, sync: &str, lease: Lease) -> Result<bool, ClusterError> {
        match self.terms.leases.write(&lease).await {
            Ok(written) => {
                self.view.hands(sync, written);
                Ok(true)
            }
            Err(error) if error.reason == Reason::Conflict => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gives everything back, so that nobody has to wait until its Lease has run out.
    pub(super) async fn leave(&mut self) -> Result<(), ClusterError> {
        // Also what was taken and not begun with.
        let identity = self.identity.clone();
        let is_ours = |sync: &&String| self.view.holder(sync) == identity;
        for sync in self.view.syncs.keys().filter(is_ours).cloned().collect::<Vec<_>>() {
            self.give(&sync, "").await?;
        }
        self.held.clear();
        match self.own.take() {
            Some(own) => self.terms.leases.delete(&own).await,
            None => Ok(()),
        }
    }
}
