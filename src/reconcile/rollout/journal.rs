//! The file in which it is noted how far the rollouts of a sync are: all of them as they were at one time, and after that a
//! line for each change. In a large fleet each step is a thousandth of the whole.
//!
//! Whoever writes holds the lock of the rollouts. A last line that does not end is one that was never written: nobody has
//! acted on it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use gatewright_engine::object::ObjectId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::record::{Back, Deletions, Ledger, Member, Record};
use crate::state::append::Stamp;
use crate::state::store::Store;
use crate::state::{State, StateError};

/// The rollouts of each sync.
pub(super) const LEDGERS: Store<Ledger> = Store::new("rollouts");

/// The bytes of changes that a file has more than the rest of it at most, before it is written whole.
const MOST_CHANGES: u64 = 1 << 18;

/// The knowledge of the file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Journal {
    seen: Option<Seen>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    stamp: Stamp,
    /// The length of the part that was written whole, in bytes.
    whole: u64,
    /// The end of the last line.
    end: u64,
}

/// The changes of one step.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Delta {
    /// The rollouts that have begun.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    begun: Vec<Record>,
    /// The units of which no rollout is known any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ended: Vec<ObjectId>,
    /// The rollouts that have gone on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    changed: Vec<Change>,
    /// The deletions on clusters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    deletions: BTreeMap<String, Deletions>,
}

/// A rollout that has gone on, on some clusters.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    unit: ObjectId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<String>,
    clusters: BTreeMap<String, Entry>,
}

/// All that is noted of a cluster with the rollout of a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<Member>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wants: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<Back>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub good: Option<String>,
}

/// All that was noted of one cluster before a step.
#[derive(Debug)]
pub(super) struct Column {
    cluster: String,
    units: BTreeMap<ObjectId, Cell>,
    deletions: Option<Deletions>,
}

#[derive(Debug, PartialEq, Eq)]
struct Cell {
    /// Another one of these is another rollout.
    rollout: (String, String, Timestamp),
    first: Option<String>,
    entry: Entry,
}

impl Journal {
    /// Reads the file if it is not as it was when it was last read or written; `None` if it is. Where there is none, nobody
    /// has read yet what is kept on the clusters.
    pub(super) fn news(&mut self, state: &State, sync: &str) -> Result<Option<Ledger>, StateError> {
        let path = LEDGERS.path(&[sync]);
        let stamp = state.stamp(&path);
        if let (Ok(Some(stamp)), Some(seen)) = (&stamp, &self.seen)
            && seen.stamp == *stamp
        {
            return Ok(None);
        }
        self.seen = None;
        let Some((bytes, stamp)) = state.read_stamped(&path)? else { return Ok(Some(Ledger::unread())) };
        let unreadable = |error: Unreadable| StateError::Read(state.path(&path), io::Error::other(error));
        let (ledger, whole, end) = parse(&bytes).map_err(unreadable)?;
        self.seen = Some(Seen { stamp, whole, end });
        Ok(Some(ledger))
    }

    /// Notes the changes of a step, after which the rollouts are like this. Where that fails the file is to be read again.
    pub(super) fn add(
        &mut self,
        (state, sync): (&State, &str),
        ledger: &Ledger,
        delta: &Delta,
    ) -> Result<(), StateError> {
        let path = LEDGERS.path(&[sync]);
        let write = |error: serde_json::Error| StateError::Write(state.path(&path), error.into());
        let mut line = serde_json::to_vec(delta).map_err(write)?;
        line.push(b'\n');
        let room = |seen: &Seen| seen.end + length(&line) <= 2 * seen.whole + MOST_CHANGES;
        let Some(seen) = self.seen.take().filter(room) else { return self.write((state, sync), ledger) };
        let stamp = state.append(&path, seen.end, &line)?;
        self.seen = Some(Seen { stamp, end: stamp.length, ..seen });
        Ok(())
    }

    /// Writes the file whole.
    pub(super) fn write(&mut self, (state, sync): (&State, &str), ledger: &Ledger) -> Result<(), StateError> {
        self.seen = None;
        let path = LEDGERS.path(&[sync]);
        let json = serde_json::to_vec(ledger).map_err(|error| StateError::Write(state.path(&path), error.into()));
        let mut bytes = json?;
        bytes.push(b'\n');
        state.write(&path, &bytes)?;
        let is_it = |stamp: &Stamp| stamp.length == length(&bytes);
        let seen = state.stamp(&path)?.filter(is_it);
        self.seen = seen.map(|stamp| Seen { stamp, whole: stamp.length, end: stamp.length });
        Ok(())
    }
}

/// A file of rollouts cannot be understood.
#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error("{0}")]
    Whole(serde_json::Error),
    #[error("line {0}: {1}")]
    Line(usize, serde_json::Error),
    #[error("line {0} is about {1}, of which nothing was noted before")]
    Unknown(usize, ObjectId),
}

/// Reads how the rollouts are; returns also the length of what was written whole, and the end of the last line.
fn parse(bytes: &[u8]) -> Result<(Ledger, u64, u64), Unreadable> {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<Ledger>();
    let first = values.next().unwrap_or_else(|| serde_json::from_slice(bytes));
    let mut ledger = first.map_err(Unreadable::Whole)?;
    ledger.sort();
    let (whole, mut end) = (values.byte_offset(), values.byte_offset());
    let first = bytes[..whole].split(|byte| *byte == b'\n').count();
    for (index, line) in (first..).zip(bytes[whole..].split_inclusive(|byte| *byte == b'\n')) {
        if !line.ends_with(b"\n") {
            break;
        }
        end += line.len();
        if !line.trim_ascii().is_empty() {
            let delta: Delta = serde_json::from_slice(line).map_err(|error| Unreadable::Line(index, error))?;
            ledger.apply(delta).map_err(|unit| Unreadable::Unknown(index, unit))?;
        }
    }
    let of = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    Ok((ledger, of(whole), of(end)))
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

impl Ledger {
    /// Returns all that is noted of a cluster.
    pub(super) fn column(&self, cluster: &str) -> Column {
        let cell = |record: &Record| (record.unit.clone(), record.cell(cluster));
        Column {
            cluster: cluster.to_owned(),
            units: self.units.iter().map(cell).collect(),
            deletions: self.deletions.get(cluster).cloned(),
        }
    }

    /// Returns what has changed since a cluster was noted like this, on it and on some others; nothing has on the rest.
    pub(super) fn changes_since(&self, before: &Column, others: &BTreeSet<String>) -> Delta {
        let mut delta = Delta::default();
        for record in &self.units {
            let was = before.units.get(&record.unit);
            let is_same = |was: &&Cell| was.rollout == record.rollout();
            let Some(was) = was.filter(is_same) else {
                delta.begun.push(record.clone());
                continue;
            };
            let mut clusters: BTreeMap<String, Entry> =
                others.iter().map(|name| (name.clone(), record.entry(name))).collect();
            if !clusters.is_empty() || *was != record.cell(&before.cluster) {
                clusters.insert(before.cluster.clone(), record.entry(&before.cluster));
                delta.changed.push(Change { unit: record.unit.clone(), first: record.first.clone(), clusters });
            }
        }
        delta.ended = before.units.keys().filter(|unit| self.of(unit).is_none()).cloned().collect();
        let deletions = self.deletions.get(&before.cluster).filter(|now| Some(*now) != before.deletions.as_ref());
        delta.deletions.extend(deletions.map(|now| (before.cluster.clone(), now.clone())));
        delta
    }

    /// Carries out the changes of a step; returns a unit that is not known to be rolled out.
    fn apply(&mut self, delta: Delta) -> Result<(), ObjectId> {
        for record in delta.begun {
            self.put(record);
        }
        self.units.retain(|record| !delta.ended.contains(&record.unit));
        for Change { unit, first, clusters } in delta.changed {
            let Some(record) = self.of_mut(&unit) else { return Err(unit) };
            record.first = first;
            for (cluster, entry) in clusters {
                record.set(&cluster, entry);
            }
        }
        self.deletions.extend(delta.deletions);
        Ok(())
    }
}

impl Delta {
    /// Tells whether nothing has changed.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Record {
    fn rollout(&self) -> (String, String, Timestamp) {
        (self.target.clone(), self.revision.clone(), self.since)
    }

    fn cell(&self, cluster: &str) -> Cell {
        Cell { rollout: self.rollout(), first: self.first.clone(), entry: self.entry(cluster) }
    }

    /// Returns all that is noted of a cluster.
    pub(super) fn entry(&self, cluster: &str) -> Entry {
        Entry {
            member: self.members.get(cluster).cloned(),
            wants: self.wants.get(cluster).cloned(),
            back: self.back.get(cluster).cloned(),
            good: self.good.get(cluster).cloned(),
        }
    }

    /// Notes all of a cluster.
    pub(super) fn set(&mut self, cluster: &str, Entry { member, wants, back, good }: Entry) {
        set(&mut self.members, cluster, member);
        set(&mut self.wants, cluster, wants);
        set(&mut self.back, cluster, back);
        set(&mut self.good, cluster, good);
    }
}

fn set<T>(map: &mut BTreeMap<String, T>, name: &str, value: Option<T>) {
    match value {
        Some(value) => drop(map.insert(name.to_owned(), value)),
        None => drop(map.remove(name)),
    }
}
