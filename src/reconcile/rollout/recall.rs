//! A host that has lost how far rollouts are, or has an old copy of it, reads that back from the clusters.
//!
//! Before anybody goes who would not have to wait, the heads of all inventories of the sync are read: also those of clusters
//! that this process has no rounds on. One that cannot be asked is passed over, as rollouts do; one that says something
//! which cannot be understood has everybody wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::stream;
use futures::{FutureExt, StreamExt};
use gatewright_engine::error::Chain;
use gatewright_engine::inventory::Inventory;
use gatewright_engine::plan::guard::Guard;
use gatewright_engine::plan::guard::rollout::Wait;
use tokio::time::{Instant, sleep};
use tracing::{error, info, warn};

use super::kept::{self, Share, Shares, Unreadable};
use super::known::Known;
use super::record::Record;
use super::{Rollout, Turn};
use crate::basics::lock::lock;
use crate::cluster::{Cluster, ClusterError, Reason};
use crate::inventory::audit::Audit;
use crate::inventory::hmac::Key;
use crate::inventory::store::{self, Head};
use crate::reconcile::model::Clusters;
use crate::report::{ClusterReport, ClusterState, Mode};
use crate::state::State;

/// The most heads that are read at once.
const AT_ONCE: usize = 32;

/// The least time after which the clusters are asked again where one was not understood.
const PAUSE: Duration = Duration::from_secs(10);

/// The time after which a cluster is asked once more that has answered with an error.
const SECOND_TRY: Duration = Duration::from_secs(3);

/// All clusters of a sync, with what says whether a text is ours.
pub struct Heads {
    clusters: Clusters,
    installation: String,
    key: Option<Arc<Key>>,
}

/// The text of the cluster of a turn, as it was last seen.
#[derive(Debug)]
pub(super) struct Standing {
    text: Option<String>,
    /// The parts that it names; `None`: nobody can say.
    shares: Option<Shares>,
}

/// The next text of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The one that is there.
    AsItIs,
    /// Another one, or none.
    Words(Option<String>),
}

/// An inventory that a text goes with, and what this host keeps of it.
#[derive(Clone, Copy)]
pub(crate) struct Beside<'a> {
    pub inventory: &'a Inventory,
    pub audit: Option<&'a Audit>,
}

/// The reason why it is not known what is kept on a cluster.
enum Unknown {
    /// Nothing can be asked there.
    Lost(ClusterError),
    /// It answers, with an error.
    Failed(ClusterError),
    /// It is not understood.
    Text(Unreadable),
}

impl Beside<'_> {
    fn decode(&self, text: &str) -> Result<Shares, Unreadable> {
        kept::decode(text, |words, signature| {
            self.audit.is_none_or(|audit| audit.are_signed(self.inventory, words, signature))
        })
    }

    fn sign(&self, words: &str) -> Option<String> {
        self.audit?.sign_words(self.inventory, words)
    }
}

impl Heads {
    /// Names all clusters of a sync, the id of this installation, and the key that signs inventories.
    pub(crate) fn new(clusters: Clusters, installation: &str, key: Option<Arc<Key>>) -> Self {
        Self { clusters, installation: installation.to_owned(), key }
    }

    /// Reads what is kept on each cluster on which something may be. Whoever answers with an error is asked once more.
    async fn read(
        &self,
        silent: &BTreeSet<String>,
        (state, sync): (&State, &str),
    ) -> BTreeMap<String, Result<Shares, Unknown>> {
        let may_answer = |name: &String| !silent.contains(name);
        let all = self.clusters.iter().filter(|(name, cluster)| cluster.has_health() && may_answer(name));
        let mut read = self.read_some(all.map(|(name, _)| name.clone()).collect(), (state, sync)).await;
        let failed = read.iter().filter(|(_, it)| matches!(it, Err(Unknown::Failed(_)))).map(|(name, _)| name.clone());
        let failed: Vec<String> = failed.collect();
        if !failed.is_empty() {
            sleep(SECOND_TRY).await;
            read.extend(self.read_some(failed, (state, sync)).await);
        }
        read
    }

    async fn read_some(
        &self,
        names: Vec<String>,
        (state, sync): (&State, &str),
    ) -> BTreeMap<String, Result<Shares, Unknown>> {
        let read = |name: String| {
            let audit = Audit::new(state, sync, &name, self.key.clone());
            let (cluster, installation) = (Arc::clone(&self.clusters[&name]), self.installation.clone());
            let sync = sync.to_owned();
            async move { (name, Self::read_one(cluster.as_ref(), &audit, (&sync, &installation)).await) }.boxed()
        };
        let reads: Vec<_> = names.into_iter().map(read).collect();
        stream::iter(reads).buffer_unordered(AT_ONCE).collect().await
    }

    async fn read_one(
        cluster: &dyn Cluster,
        audit: &Audit,
        (sync, installation): (&str, &str),
    ) -> Result<Shares, Unknown> {
        let head = store::head(cluster, sync).await.map_err(Unknown::of)?;
        let Some(Head { inventory, rollouts: Some(text), damage, .. }) = head else { return Ok(Shares::new()) };
        if let Some(damage) = damage {
            return Err(Unknown::Text(Unreadable::Head(damage)));
        }
        if inventory.installation != installation {
            return Err(Unknown::Text(Unreadable::Foreign(inventory.installation)));
        }
        Beside { inventory: &inventory, audit: Some(audit) }.decode(&text).map_err(Unknown::Text)
    }
}

impl Unknown {
    fn of(error: ClusterError) -> Self {
        match error.reason {
            Reason::Unreachable | Reason::Misconfigured | Reason::Unauthorized | Reason::Forbidden => Self::Lost(error),
            Reason::NotFound | Reason::Conflict | Reason::Invalid | Reason::Overloaded | Reason::Other => {
                Self::Failed(error)
            }
        }
    }
}

impl Rollout {
    /// Reads what is kept on all clusters, where nothing is noted on this host and nobody has done so. Whoever comes
    /// meanwhile waits for it.
    async fn recall(&self) {
        let mut last = self.recalled.lock().await;
        let has_failed = lock(&self.known).unread.is_some();
        if !self.is_unread() || (has_failed && last.is_some_and(|last| last.elapsed() < PAUSE)) {
            return;
        }
        let (Some(heads), Some(state)) = (&self.heads, &self.state) else { return };
        let found = self.found(heads, state).await;
        *last = Some(Instant::now());
        lock(&self.known).recalls(found);
    }

    async fn found(&self, heads: &Heads, state: &State) -> Result<Vec<Record>, Wait> {
        let (mut all, mut unread) = (BTreeMap::new(), None);
        let silent = lock(&self.known).silent.clone();
        for (name, read) in heads.read(&silent, (state, &self.sync)).await {
            match read {
                Ok(shares) => drop(all.insert(name, shares)),
                Err(why) => unread = unread.or(self.unread_on(&name, &why)),
            }
        }
        let records = unread.map_or_else(|| Ok(kept::merged(&all)), Err)?;
        if !records.is_empty() {
            info!(sync = self.sync, units = records.len(), "how far rollouts are was read back from the clusters");
        }
        Ok(records)
    }

    /// Tells why a cluster says nothing of rollouts; returns why others wait for that, if they do.
    fn unread_on(&self, name: &str, why: &Unknown) -> Option<Wait> {
        let sync = &self.sync;
        let error = match why {
            Unknown::Lost(error) | Unknown::Failed(error) => {
                let error = Chain(error).to_string();
                // What else the round says of the cluster tells it.
                info!(sync, cluster = name, error, "passed over: nobody knows how far rollouts are there");
                return None;
            }
            Unknown::Text(error) => Chain(error).to_string(),
        };
        let hint = format!(
            "see how the units are there, then remove `rollouts` from ConfigMap gatewright-system/gatewright.{sync} on {name}: what is kept on the other clusters counts then"
        );
        warn!(sync, cluster = name, error, hint, "cannot read how far rollouts are");
        let message = format!(
            "nothing is noted here of how far the rollout is, and what is kept of it on cluster {name} cannot be read: {error}"
        );
        Some(Wait { guard: Guard::RolloutPaused, message, hint, why: None })
    }

    fn is_unread(&self) -> bool {
        // What cannot be read is told by whoever needs it.
        !self.waves.is_empty() && self.look(None, |known| self.unread(known).is_some()).unwrap_or(false)
    }

    /// Says why everybody waits, where nothing is noted here and it is not known what is kept on the clusters.
    pub(super) fn unread(&self, known: &Known) -> Option<Wait> {
        let is_unread = known.ledger.is_unread && self.heads.is_some();
        is_unread.then(|| {
            known.unread.clone().unwrap_or_else(|| Wait {
                guard: Guard::RolloutPaused,
                message: "nothing is noted here of how far the rollout is, and nobody has asked the clusters yet"
                    .to_owned(),
                hint: "the next round asks them".to_owned(),
                why: None,
            })
        })
    }
}

impl Known {
    /// Takes what is kept on the clusters for what is noted, or remembers why that is not known.
    fn recalls(&mut self, found: Result<Vec<Record>, Wait>) {
        (self.kept, self.unread) = match found {
            Ok(records) => (Some(records), None),
            Err(wait) => (None, Some(wait)),
        };
    }
}

impl Turn {
    /// Remembers whether the cluster has answered, so that one that does not is not asked again by others.
    pub(super) fn hears(&self, report: &ClusterReport) {
        let silent = &mut lock(&self.rollout.known).silent;
        if report.state == ClusterState::Unreachable {
            silent.insert(self.cluster.clone());
        } else {
            silent.remove(&self.cluster);
        }
    }

    /// Tells whether its cluster keeps something.
    fn keeps(&self) -> bool {
        self.mode == Mode::Apply && self.rollout.keeps_on(&self.cluster)
    }

    /// Asks the clusters how far rollouts are, if nobody knows that here.
    pub(crate) async fn recall(&self) {
        if !self.rollout.is_unread() {
            return;
        }
        self.rollout.recall().await;
        if self.mode != Mode::Apply {
            return;
        }
        if let Err(error) = self.rollout.change((&self.revision, &self.cluster), |_| ((), BTreeSet::new())) {
            error!(sync = self.rollout.sync, error = %Chain(&error), "cannot note how far rollouts are");
        }
    }

    /// Sees the text of the cluster; tells whether it is one, and nothing is noted here.
    pub(crate) fn sees_kept(&self, text: Option<&str>, beside: Beside<'_>) -> bool {
        if !self.keeps() {
            return false;
        }
        let shares = text.map_or(Ok(Shares::new()), |text| beside.decode(text));
        let is_unread = self.rollout.is_unread();
        match &shares {
            Ok(shares) if !is_unread => self.catches_up(shares),
            Ok(_) => {}
            Err(error) => {
                warn!(sync = self.rollout.sync, cluster = self.cluster, error = %Chain(error), "what is kept there of rollouts cannot be read");
            }
        }
        let standing = Standing { text: text.map(str::to_owned), shares: shares.ok() };
        *lock(&self.standing) = Some(standing);
        is_unread && text.is_some()
    }

    /// Takes rollouts over that are newer than all that was noted here when this process began: the state folder is an old
    /// copy.
    fn catches_up(&self, shares: &Shares) {
        let (rollout, cluster) = (&self.rollout, self.cluster.as_str());
        let is_newer = |known: &Known, share: &Share| {
            let record = known.ledger.of(&share.unit);
            known.began_with < Some(share.since) && record.is_none_or(|record| record.since < share.since)
        };
        let has_newer = |known: &mut Known| {
            !known.has_caught_up.contains(cluster) && shares.values().any(|share| is_newer(known, share))
        };
        let take = |known: &mut Known| {
            let newer: Vec<&Share> = shares.values().filter(|share| is_newer(known, share)).collect();
            for share in newer {
                let last = known.ledger.of(&share.unit).cloned();
                if let Some(record) = kept::next(last, &[(cluster, share)]) {
                    known.ledger.put(record);
                }
            }
            ((), BTreeSet::new())
        };
        let taken = rollout
            .look(None, has_newer)
            .and_then(|has_newer| has_newer.then(|| rollout.change((&self.revision, cluster), take)).transpose());
        match taken {
            Ok(Some(_)) => {
                warn!(sync = rollout.sync, cluster, "rollouts were newer there than what is noted on this host");
            }
            Ok(None) => {}
            Err(error) => error!(sync = rollout.sync, error = %Chain(&error), "cannot note how far rollouts are"),
        }
        lock(&rollout.known).has_caught_up.insert(self.cluster.clone());
    }

    /// Says what is to be kept on the cluster.
    pub(crate) fn keep(&self, beside: Beside<'_>) -> Keep {
        let standing = lock(&self.standing);
        let Some(standing) = standing.as_ref().filter(|_| self.keeps()) else { return Keep::AsItIs };
        let words = |known: &mut Known| {
            let noted = known.ledger.shares(&self.cluster);
            let suffices = |there: &Shares| kept::suffices(there, &noted, &known.ledger);
            if self.rollout.unread(known).is_some() || standing.shares.as_ref().is_some_and(suffices) {
                return Keep::AsItIs;
            }
            let text = kept::encode(&noted, |words| beside.sign(words));
            if text == standing.text { Keep::AsItIs } else { Keep::Words(text) }
        };
        self.rollout.look(Some(&self.revision), words).unwrap_or(Keep::AsItIs)
    }
}

impl Rollout {
    /// Tells whether something is kept on a cluster: that of a directory is healthy as soon as it is written.
    fn keeps_on(&self, cluster: &str) -> bool {
        let cluster = self.heads.as_ref().and_then(|heads| heads.clusters.get(cluster));
        !self.waves.is_empty() && self.state.is_some() && cluster.is_some_and(|cluster| cluster.has_health())
    }
}
