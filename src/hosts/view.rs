//! The hosts as one of them sees them: who is alive, and who should look after which sync.
//!
//! Clocks of hosts differ, so no time that another host has written is compared with one of ours. A host is alive as long
//! as its Lease is seen to change, by our own clock, which runs on while this host sleeps.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gatewright_engine::text::digest;

use crate::cluster::leases::Lease;

/// The label of all Leases of one group of hosts, with the name of the group.
pub(super) const GROUP: &str = "gatewright.dev/hosts";

/// The annotation of the Lease of a sync: who is waiting for it.
pub(super) const WANTED_BY: &str = "gatewright.dev/wanted-by";

/// The annotation of the Lease of a host: the syncs of its config file, with spaces between them.
pub(super) const SYNCS: &str = "gatewright.dev/syncs";

/// The annotation of the Lease of a host: its name.
pub(super) const HOST: &str = "gatewright.dev/host";

/// The part of the name of a Lease after that of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A daemon.
    Host,
    /// A command at work, which no sync is given to.
    Command,
    /// A sync.
    Sync,
}

impl Kind {
    const ALL: [(Self, &str); 3] = [(Self::Host, "host"), (Self::Command, "command"), (Self::Sync, "sync")];

    /// Returns the name of a Lease.
    pub(super) fn lease(self, group: &str, name: &str) -> String {
        let word = Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, word)| word);
        format!("{group}.{word}.{name}")
    }

    /// Returns the kind that a Lease is of, and whom it is about.
    fn of<'a>(group: &str, lease: &'a str) -> Option<(Self, &'a str)> {
        let (word, name) = lease.strip_prefix(group)?.strip_prefix('.')?.split_once('.')?;
        Self::ALL.iter().find(|(_, it)| *it == word).map(|(kind, _)| (*kind, name))
    }
}

/// A host or a command that is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// Its name.
    pub name: String,
    /// The syncs that can be given to it; none to a command.
    pub syncs: BTreeSet<String>,
    /// Since when it is seen, by our clock.
    pub since: Duration,
}

/// All that was seen of the Leases of a group.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// The Lease of each sync.
    pub syncs: BTreeMap<String, Lease>,
    /// The Lease of each host and command, by its name.
    pub members: BTreeMap<String, Lease>,
    /// The last change that was seen of each of them, by identity.
    changes: BTreeMap<String, Change>,
    /// The last holder of each sync, whatever has become of its Lease since.
    holders: BTreeMap<String, String>,
    /// Since when Leases are missing that were there.
    vanished: BTreeMap<String, Duration>,
    /// The first look.
    first: Option<Duration>,
}

/// The longest time that the Lease of another host counts, whatever it says.
const LONGEST: Duration = Duration::from_mins(10);

/// The last sign of life of an identity.
#[derive(Clone, Debug)]
struct Change {
    /// The word of its Lease; empty: it has none, and was only named as the holder of a sync.
    said: String,
    at: Duration,
    since: Duration,
    counts: Duration,
}

impl View {
    /// Takes in what was listed; the answer has come at a time by our clock.
    pub(super) fn look(&mut self, group: &str, listed: Vec<Lease>, now: Duration) {
        let before = std::mem::take(&mut self.changes);
        (self.syncs, self.members) = (BTreeMap::new(), BTreeMap::new());
        for lease in listed {
            match Kind::of(group, &lease.name) {
                Some((Kind::Sync, sync)) => {
                    self.syncs.insert(sync.to_owned(), lease);
                }
                Some((Kind::Host | Kind::Command, _)) if !lease.holder.is_empty() => {
                    let said = lease.renewed.map(|time| time.to_string()).unwrap_or_default();
                    self.changes
                        .insert(lease.holder.clone(), Change::seen(before.get(&lease.holder), said, &lease, now));
                    self.members.insert(lease.name.clone(), lease);
                }
                _ => {}
            }
        }
        // Somebody may have deleted the Lease of a host that lives; it would know that only later.
        for lease in self.syncs.values().filter(|lease| !lease.holder.is_empty()) {
            let named = || Change::seen(None, String::new(), lease, now);
            let known = || before.get(&lease.holder).cloned();
            self.changes.entry(lease.holder.clone()).or_insert_with(|| known().unwrap_or_else(named));
        }
        self.first.get_or_insert(now);
        for sync in self.holders.keys().filter(|sync| !self.syncs.contains_key(*sync)) {
            self.vanished.entry(sync.clone()).or_insert(now);
        }
        self.vanished.retain(|sync, _| !self.syncs.contains_key(sync));
        // A Lease of a sync that somebody has deleted says nothing of who works on it at the moment.
        self.holders.extend(self.syncs.iter().map(|(sync, lease)| (sync.clone(), lease.holder.clone())));
        for holder in self.holders.values().filter(|holder| !holder.is_empty()) {
            if let (false, Some(known)) = (self.changes.contains_key(holder), before.get(holder)) {
                self.changes.insert(holder.clone(), known.clone());
            }
        }
    }

    /// Returns since when no Lease of a sync is seen, if there is none.
    pub(super) fn absent_since(&self, sync: &str) -> Option<Duration> {
        if self.syncs.contains_key(sync) {
            return None;
        }
        self.vanished.get(sync).copied().or(self.first)
    }

    /// Notes who holds a sync from now on.
    pub(super) fn hands(&mut self, sync: &str, lease: Lease) {
        self.holders.insert(sync.to_owned(), lease.holder.clone());
        self.syncs.insert(sync.to_owned(), lease);
    }

    /// Tells whether an identity is alive: a sign of life of it was seen within the time that its Lease counts.
    pub(super) fn is_live(&self, identity: &str, now: Duration) -> bool {
        self.changes.get(identity).is_some_and(|change| now < change.at + change.counts)
    }

    /// Returns the hosts that are alive, by identity.
    pub(super) fn hosts(&self, group: &str, now: Duration) -> BTreeMap<&str, Member> {
        let of = |(name, lease): (&'_ String, &'_ Lease)| {
            let (kind, name) = Kind::of(group, name)?;
            (kind == Kind::Host && self.is_live(&lease.holder, now)).then(|| {
                let syncs = lease.annotations.get(SYNCS).map(String::as_str).unwrap_or_default();
                let syncs = syncs.split_whitespace().map(str::to_owned).collect();
                let since = self.changes.get(&lease.holder).map_or(now, |change| change.since);
                Member { name: name.to_owned(), syncs, since }
            })
        };
        let of = |(name, lease)| Some((of((name, lease))?, lease));
        self.members.iter().filter_map(of).map(|(member, lease)| (lease.holder.as_str(), member)).collect()
    }

    /// Returns a Lease of a host or command that is certainly dead: for so long no sign of life of it was seen by our clock,
    /// and no sync names it.
    pub(super) fn dead_for(&self, time: Duration, now: Duration) -> Option<&Lease> {
        let is_named = |holder: &str| self.syncs.values().any(|lease| lease.holder == holder);
        let is_silent = |holder: &str| {
            self.changes.get(holder).is_some_and(|change| now >= change.at + time && now >= change.at + change.counts)
        };
        self.members.values().find(|lease| is_silent(&lease.holder) && !is_named(&lease.holder))
    }

    /// Returns who looks after a sync, dead or alive; empty: nobody.
    pub(super) fn holder(&self, sync: &str) -> &str {
        let last = || self.holders.get(sync);
        self.syncs.get(sync).map(|lease| &lease.holder).or_else(last).map(String::as_str).unwrap_or_default()
    }

    /// Tells whether the Lease of a sync is there and names this holder.
    pub(super) fn is_held_by(&self, sync: &str, identity: &str) -> bool {
        self.syncs.get(sync).is_some_and(|lease| lease.holder == identity)
    }

    /// Returns who waits for a sync and is alive.
    pub(super) fn wanted_by(&self, sync: &str, now: Duration) -> Option<&str> {
        let waiting = self.syncs.get(sync)?.annotations.get(WANTED_BY)?;
        self.is_live(waiting, now).then_some(waiting.as_str())
    }
}

impl Change {
    fn seen(before: Option<&Self>, said: String, lease: &Lease, now: Duration) -> Self {
        let counts = Duration::from_secs(u64::try_from(lease.seconds).unwrap_or_default()).min(LONGEST);
        match before {
            Some(known) if known.said == said => Self { counts, ..known.clone() },
            Some(known) => Self { said, at: now, counts, ..*known },
            None => Self { said, at: now, since: now, counts },
        }
    }
}

/// Returns who of some hosts should look after a sync, by rendezvous hashing: each has a number for each sync, and the highest
/// wins. Where one comes or goes, only the syncs move that it gets or had.
pub(super) fn preferred<'a>(sync: &str, hosts: &BTreeMap<&'a str, Member>) -> Option<&'a str> {
    let can = hosts.iter().filter(|(_, member)| member.syncs.contains(sync));
    can.max_by_key(|(identity, member)| (digest(format!("{}\0{sync}", member.name).as_bytes()), **identity))
        .map(|(identity, _)| *identity)
}
