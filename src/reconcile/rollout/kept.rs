//! The text that is kept beside the inventory of a sync on a cluster: the part of that cluster in the rollouts, for a host
//! that has lost its state folder.
//!
//! It is packed like the inventory, versioned and bounded, and signed where inventories are. A text that cannot be read says
//! that something was noted which nobody knows any more: whoever needs it has everybody wait.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use gatewright_engine::inventory::InventoryError;
use gatewright_engine::object::ObjectId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::journal::Entry;
use super::record::{Ledger, Member, Record, Stage};

/// The version of the format.
const VERSION: u32 = 1;

/// The longest text: with the head it stays far below the 1 MiB of a `ConfigMap`. Some four thousand units have room in it.
const MOST_BYTES: usize = 256 << 10;

/// The most that is unpacked: whoever may edit the text must not fill the memory.
const MOST_UNPACKED: u64 = 16 << 20;

/// The part of a cluster in the rollout of a unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Share {
    pub unit: ObjectId,
    pub target: String,
    pub revision: String,
    pub since: Timestamp,
    /// It got the change before all others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_first: bool,
    pub entry: Entry,
}

/// The parts of a cluster, by unit.
pub(super) type Shares = BTreeMap<ObjectId, Share>;

/// The text, as JSON.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Text {
    version: u32,
    /// The parts, packed; `None`: they are more than can be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rollouts: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hmac: Option<String>,
}

/// A text that cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("it stands beside a damaged inventory")]
    Head(#[source] InventoryError),
    #[error("it is no JSON of this form")]
    Json(#[source] serde_json::Error),
    #[error("it has format {0}, and this version knows {VERSION}")]
    Newer(u32),
    #[error("it is longer than {MOST_BYTES} bytes")]
    Long,
    #[error("more is open than could be kept there")]
    TooMuch,
    #[error("it cannot be unpacked")]
    Packed,
    #[error("it is not signed with the key of the inventories")]
    Unsigned,
    #[error("it belongs to installation {0}")]
    Foreign(String),
}

/// Writes parts as text; `None` if there are none. What is healthy is the first that finds no room: without it another cluster
/// is tried first, and nothing goes further than it should.
pub(super) fn encode(shares: &Shares, sign: impl Fn(&str) -> Option<String>) -> Option<String> {
    let text = |shares: &mut dyn Iterator<Item = &Share>| text(Some(packed(&shares.collect::<Vec<_>>())), &sign);
    let has_room = |text: &String| text.len() <= MOST_BYTES;
    let open = || text(&mut shares.values().filter(|share| share.is_open()));
    let all = (!shares.is_empty()).then(|| text(&mut shares.values()))?;
    let fitting = Some(all).filter(has_room).or_else(|| Some(open()).filter(has_room));
    Some(fitting.unwrap_or_else(|| self::text(None, &sign)))
}

fn text(rollouts: Option<String>, sign: &impl Fn(&str) -> Option<String>) -> String {
    let hmac = sign(rollouts.as_deref().unwrap_or_default());
    serde_json::to_string(&Text { version: VERSION, rollouts, hmac }).expect("it is plain data")
}

fn packed(shares: &[&Share]) -> String {
    let json = serde_json::to_vec(shares).expect("parts are plain data");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&json).expect("writing to memory does not fail");
    STANDARD.encode(encoder.finish().expect("writing to memory does not fail"))
}

/// Reads parts; `is_signed` says whether a text bears this signature.
pub(super) fn decode(text: &str, is_signed: impl Fn(&str, Option<&str>) -> bool) -> Result<Shares, Unreadable> {
    if text.len() > MOST_BYTES {
        return Err(Unreadable::Long);
    }
    let Text { version, rollouts, hmac } = serde_json::from_str(text).map_err(Unreadable::Json)?;
    if version > VERSION {
        return Err(Unreadable::Newer(version));
    }
    if !is_signed(rollouts.as_deref().unwrap_or_default(), hmac.as_deref()) {
        return Err(Unreadable::Unsigned);
    }
    let json = unpacked(&rollouts.ok_or(Unreadable::TooMuch)?).ok_or(Unreadable::Packed)?;
    let shares: Vec<Share> = serde_json::from_slice(&json).map_err(Unreadable::Json)?;
    Ok(shares.into_iter().map(|share| (share.unit.clone(), share)).collect())
}

fn unpacked(rollouts: &str) -> Option<Vec<u8>> {
    let bytes = STANDARD.decode(rollouts).ok()?;
    let mut json = Vec::new();
    let mut limited = GzDecoder::new(bytes.as_slice()).take(MOST_UNPACKED + 1);
    let read = limited.read_to_end(&mut json).ok()?;
    (u64::try_from(read).is_ok_and(|read| read <= MOST_UNPACKED)).then_some(json)
}

/// Tells whether what stands on a cluster need not be written again: it says all that is noted of its members. That they wait
/// may be missing, and what another rollout has made out of date may be there: neither is worth a request on each cluster.
pub(super) fn suffices(standing: &Shares, noted: &Shares, ledger: &Ledger) -> bool {
    let is_old = |share: &Share| ledger.of(&share.unit).is_some_and(|record| record.since > share.since);
    let is_there = |share: &Share| match standing.get(&share.unit) {
        Some(there) if share.has_it() => there.is_but_for_wants(share),
        Some(there) => is_old(there) || (there.is_of(share) && !there.has_it()),
        None => !share.has_it(),
    };
    noted.values().all(is_there) && standing.values().all(|share| noted.contains_key(&share.unit) || is_old(share))
}

/// Puts together what is kept on some clusters. Of each unit the newest rollout counts, and what is not good with an earlier
/// one belongs to it, as if it had begun then.
pub(super) fn merged(kept: &BTreeMap<String, Shares>) -> Vec<Record> {
    type Rollouts<'a> = BTreeMap<(Timestamp, &'a str, &'a str), Vec<(&'a str, &'a Share)>>;
    let mut units: BTreeMap<&ObjectId, Rollouts<'_>> = BTreeMap::new();
    for (cluster, share) in kept.iter().flat_map(|(cluster, shares)| shares.values().map(move |it| (cluster, it))) {
        let rollout = (share.since, share.target.as_str(), share.revision.as_str());
        units.entry(&share.unit).or_default().entry(rollout).or_default().push((cluster, share));
    }
    let newest = |rollouts: Rollouts<'_>| rollouts.into_values().fold(None, |last, shares| next(last, &shares));
    units.into_values().filter_map(newest).collect()
}

/// Returns a rollout after the last one, with the parts of these clusters in it.
pub(super) fn next(last: Option<Record>, shares: &[(&str, &Share)]) -> Option<Record> {
    let Some((cluster, share)) = shares.first() else { return last };
    let Share { unit, target, revision, since, .. } = share;
    let mut record = Record::after(last.as_ref(), (unit, cluster), (target, revision), *since);
    for (cluster, share) in shares {
        record.set(cluster, share.entry.clone());
    }
    let firsts = shares.iter().filter(|(_, share)| share.is_first);
    // The later one knows of no other, and the earlier one may have been lost: the one that is worse off counts.
    let first = firsts.max_by_key(|(_, share)| share.entry.member.as_ref().map(Share::badness));
    let members: BTreeSet<&String> = record.members.keys().collect();
    let carried = record.first.clone().filter(|first| members.contains(first));
    record.first = first.map(|(name, _)| (*name).to_owned()).filter(|name| members.contains(name)).or(carried);
    Some(record)
}

impl Share {
    fn badness(member: &Member) -> u8 {
        match member.stage {
            Stage::Healthy => 0,
            Stage::Going => 1,
            Stage::Returned(_) => 2,
            Stage::Halted(_) => 3,
        }
    }

    /// Tells whether the cluster has the change, or had it.
    fn has_it(&self) -> bool {
        self.entry.member.is_some() || self.entry.back.is_some()
    }

    /// Tells whether it is not known to be good there.
    fn is_open(&self) -> bool {
        self.entry.back.is_some() || self.entry.member.as_ref().is_some_and(|member| member.stage != Stage::Healthy)
    }

    fn is_of(&self, other: &Self) -> bool {
        let of = |it: &Self| (it.target.clone(), it.revision.clone(), it.since);
        of(self) == of(other)
    }

    fn is_but_for_wants(&self, other: &Self) -> bool {
        let without = |it: &Self| Self { entry: Entry { wants: None, ..it.entry.clone() }, ..it.clone() };
        without(self) == without(other)
    }
}

impl Ledger {
    /// Returns the parts of a cluster.
    pub(super) fn shares(&self, cluster: &str) -> Shares {
        let of = |record: &Record| {
            let entry = record.entry(cluster);
            let share = Share {
                unit: record.unit.clone(),
                target: record.target.clone(),
                revision: record.revision.clone(),
                since: record.since,
                is_first: record.first.as_deref() == Some(cluster),
                entry,
            };
            (share.entry != Entry::default()).then(|| (record.unit.clone(), share))
        };
        self.units.iter().filter_map(of).collect()
    }

    /// Returns when the newest rollout began.
    pub(super) fn newest(&self) -> Option<Timestamp> {
        self.units.iter().map(|record| record.since).max()
    }
}
