//! The objects that we own on a cluster: the set, and its written form.
//!
//! An inventory is a small head and content-addressed shards. Shards are written first and the head last, by
//! compare-and-swap, so that a reader sees either the old set or the new one, and never half of one.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

use crate::live::Live;
use crate::object::{Gvk, ObjectId};
use crate::text::digest;

/// The version of the format; a head with a higher one was written by a newer gatewright.
pub const SCHEMA: u32 = 1;

/// Entries of one shard. At some 100 bytes each, compressed, a shard stays far below the 1 MiB of a `ConfigMap`.
const SHARD_ENTRIES: usize = 4000;

/// The largest shard that is unpacked: a record that was tampered with must not fill the memory.
const MAX_SHARD_BYTES: u64 = 64 << 20;

/// One object that we own, or are about to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The kind, with the version that it was last applied with.
    pub gvk: Gvk,
    /// Its uid; `None` while the entry is *pending*: written ahead of a create whose outcome is not known yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The spec that it was rendered from.
    pub unit: ObjectId,
    /// It existed before it was ours.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
    /// The files that had a say in it.
    #[serde(default)]
    pub files: BTreeSet<String>,
    /// The overlays that had a say in it, by name, each with the digest of its selection of clusters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overlays: BTreeMap<String, String>,
}

/// All that one sync owns on one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// The installation that it belongs to.
    pub installation: String,
    /// The source that it was last rendered from.
    pub source: String,
    /// The identity of the cluster when it was written; empty if not known yet.
    pub cluster: String,
    /// The revision that was applied last, and its source.
    pub applied: Applied,
    /// Grows with every write.
    pub epoch: u64,
    /// The objects.
    pub entries: BTreeMap<ObjectId, Entry>,
    /// Signatures of entries, where whoever writes it has a key; what they are worth is for the reader to say.
    pub signatures: BTreeMap<ObjectId, String>,
}

/// A revision of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Applied {
    /// The address of the source and the path in it, without credentials; empty if that is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// A digest of where the address leads from, for one that says something else in each place; empty for others.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// The revision, as the source names it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// The time when it was committed, in seconds since 1970, where the source knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub committed: Option<i64>,
}

/// An inventory as records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Encoded {
    /// The head.
    pub head: BTreeMap<String, String>,
    /// The shards, by the digest in their name.
    pub shards: BTreeMap<String, BTreeMap<String, String>>,
}

/// An entry, as JSON.
#[derive(Serialize, Deserialize)]
struct SignedEntry {
    #[serde(flatten)]
    entry: Entry,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hmac: Option<String>,
}

/// The head, as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    schema: u32,
    installation: String,
    source: String,
    cluster: String,
    epoch: u64,
    shards: Vec<String>,
    #[serde(default)]
    applied: Applied,
}

/// An inventory that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    /// The head is no head.
    #[error("the head of the inventory cannot be read")]
    Head(#[source] serde_json::Error),
    /// It was written by a newer version.
    #[error("the inventory has format {0}, and this version knows {SCHEMA}: use a newer gatewright")]
    Newer(u32),
    /// A shard that the head names is not there.
    #[error("shard {0} of the inventory is missing")]
    Missing(String),
    /// A shard is not what the head says.
    #[error("shard {0} of the inventory is damaged")]
    Damaged(String),
}

impl Inventory {
    /// Returns the units that own something.
    pub fn units(&self) -> BTreeSet<&ObjectId> {
        self.entries.values().map(|entry| &entry.unit).collect()
    }

    /// Records the uids of objects that were written.
    pub fn record_uids<'a>(&mut self, written: impl IntoIterator<Item = &'a Live>) {
        for live in written {
            if let Some(entry) = self.entries.get_mut(live.object.id()) {
                entry.uid = Some(live.uid.clone());
            }
        }
    }

    /// Tells whether another inventory says the same about what is owned, and from where, whatever revision that was.
    pub fn agrees_with(&self, other: &Self) -> bool {
        let applied = Applied { address: self.applied.address.clone(), ..other.applied.clone() };
        Self { applied, ..self.clone() } == *other
    }

    /// Writes it as records.
    ///
    /// # Panics
    /// Never: an inventory is plain data.
    pub fn encode(&self) -> Encoded {
        let signed = |(id, entry): (&ObjectId, &Entry)| {
            (id.key(), SignedEntry { entry: entry.clone(), hmac: self.signatures.get(id).cloned() })
        };
        let entries: Vec<_> = self.entries.iter().map(signed).collect();
        let shards: Vec<_> = entries.chunks(SHARD_ENTRIES).map(encode_shard).collect();
        let order: Vec<String> = shards.iter().map(|(digest, _)| digest.clone()).collect();
        let head = Head {
            schema: SCHEMA,
            installation: self.installation.clone(),
            source: self.source.clone(),
            cluster: self.cluster.clone(),
            epoch: self.epoch,
            shards: order,
            applied: self.applied.clone(),
        };
        let head = serde_json::to_string(&head).expect("a head is plain data");
        Encoded { head: BTreeMap::from([("head".to_owned(), head)]), shards: shards.into_iter().collect() }
    }

    /// Returns the digests of the shards that a head names.
    pub fn shards_of(head: &BTreeMap<String, String>) -> Result<Vec<String>, InventoryError> {
        Ok(read_head(head)?.shards)
    }

    /// Returns what identifies the cluster that a head was written for.
    pub fn cluster_of(head: &BTreeMap<String, String>) -> Result<String, InventoryError> {
        Ok(read_head(head)?.cluster)
    }

    /// Reads it back.
    pub fn decode(encoded: &Encoded) -> Result<Self, InventoryError> {
        match Self::salvage(encoded) {
            (inventory, None) => Ok(inventory),
            (_, Some(error)) => Err(error),
        }
    }

    /// Reads back what can be read, and returns the first thing that cannot.
    pub fn salvage(encoded: &Encoded) -> (Self, Option<InventoryError>) {
        let head = match read_head(&encoded.head) {
            Ok(head) => head,
            Err(error) => return (Self::default(), Some(error)),
        };
        let Head { installation, source, cluster, epoch, applied, .. } = head;
        let mut inventory = Self { installation, source, cluster, applied, epoch, ..Self::default() };
        let mut damage = None;
        for name in head.shards {
            let signed = match encoded.shards.get(&name) {
                None => Err(InventoryError::Missing(name)),
                Some(shard) => decode_shard(&name, shard).ok_or(InventoryError::Damaged(name)),
            };
            match signed {
                Ok(signed) => inventory.extend(signed),
                Err(error) => damage = damage.or(Some(error)),
            }
        }
        (inventory, damage)
    }

    fn extend(&mut self, signed: BTreeMap<ObjectId, SignedEntry>) {
        for (id, SignedEntry { entry, hmac }) in signed {
            self.signatures.extend(hmac.map(|hmac| (id.clone(), hmac)));
            self.entries.insert(id, entry);
        }
    }
}

fn read_head(head: &BTreeMap<String, String>) -> Result<Head, InventoryError> {
    let text = head.get("head").map(String::as_str).unwrap_or_default();
    let head: Head = serde_json::from_str(text).map_err(InventoryError::Head)?;
    if head.schema > SCHEMA { Err(InventoryError::Newer(head.schema)) } else { Ok(head) }
}

fn encode_shard(entries: &[(String, SignedEntry)]) -> (String, BTreeMap<String, String>) {
    let map: BTreeMap<&str, &SignedEntry> = entries.iter().map(|(key, entry)| (key.as_str(), entry)).collect();
    let json = serde_json::to_vec(&map).expect("entries are plain data");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&json).expect("writing to memory does not fail");
    let bytes = encoder.finish().expect("writing to memory does not fail");
    (digest(&json)[..16].to_owned(), BTreeMap::from([("entries".to_owned(), STANDARD.encode(bytes))]))
}

fn decode_shard(name: &str, shard: &BTreeMap<String, String>) -> Option<BTreeMap<ObjectId, SignedEntry>> {
    let bytes = STANDARD.decode(shard.get("entries")?).ok()?;
    let mut json = Vec::new();
    GzDecoder::new(bytes.as_slice()).take(MAX_SHARD_BYTES).read_to_end(&mut json).ok()?;
    if digest(&json).get(..16)? != name {
        return None;
    }
    let entries: BTreeMap<String, SignedEntry> = serde_json::from_slice(&json).ok()?;
    entries.into_iter().map(|(key, entry)| Some((key.parse().ok()?, entry))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inventory(objects: usize) -> Inventory {
        let unit = ObjectId::new("gateway.networking.k8s.io", "Gateway", "infra", "edge");
        let entry = |n: usize| Entry {
            gvk: Gvk::new("v1", "Service"),
            uid: n.is_multiple_of(2).then(|| format!("uid-{n}")),
            unit: unit.clone(),
            adopted: false,
            files: BTreeSet::from(["a.yaml".to_owned()]),
            overlays: BTreeMap::new(),
        };
        let entries = (0..objects).map(|n| (ObjectId::new("", "Service", "infra", &format!("s{n}")), entry(n)));
        Inventory {
            installation: "i".into(),
            source: "s".into(),
            cluster: "c".into(),
            applied: Applied { revision: "main@sha1:0".into(), committed: Some(1), ..Applied::default() },
            epoch: 3,
            entries: entries.collect(),
            signatures: BTreeMap::new(),
        }
    }

    #[test]
    fn an_inventory_reads_back() {
        for size in [0, 1, SHARD_ENTRIES + 1] {
            let inventory = inventory(size);
            let encoded = inventory.encode();
            assert_eq!(encoded.shards.len(), size.div_ceil(SHARD_ENTRIES));
            assert_eq!(Inventory::decode(&encoded).expect("it was just written"), inventory);
        }
    }

    #[test]
    fn a_shard_that_was_changed_is_noticed() {
        let mut encoded = inventory(1).encode();
        let other = inventory(2).encode().shards.into_values().next().expect("there is one");
        encoded.shards.values_mut().for_each(|shard| *shard = other.clone());
        assert!(matches!(Inventory::decode(&encoded), Err(InventoryError::Damaged(_))));
        encoded.shards.clear();
        assert!(matches!(Inventory::decode(&encoded), Err(InventoryError::Missing(_))));
    }

    #[test]
    fn signatures_read_back_too_and_what_is_whole_is_saved_from_what_is_damaged() {
        let mut inventory = inventory(SHARD_ENTRIES + 1);
        let first = inventory.entries.keys().next().expect("there are many").clone();
        inventory.signatures.insert(first, "00ff".to_owned());
        let mut encoded = inventory.encode();
        assert_eq!(Inventory::decode(&encoded).expect("it was just written"), inventory);
        let names = Inventory::shards_of(&encoded.head).expect("it was just written");
        encoded.shards.remove(&names[0]);
        let (rest, damage) = Inventory::salvage(&encoded);
        assert!(matches!(damage, Some(InventoryError::Missing(name)) if name == names[0]));
        assert_eq!((rest.entries.len(), rest.epoch), (1, inventory.epoch));
    }

    #[test]
    fn twenty_thousand_entries_are_shards_that_an_api_server_takes() {
        const MOST_BYTES: usize = 900 << 10;
        let inventory = inventory(20_000);
        let plain: usize =
            inventory.entries.iter().map(|(id, entry)| id.key().len() + format!("{entry:?}").len()).sum();
        assert!(plain > 1 << 20, "it would not fit into one: {plain}");
        let encoded = inventory.encode();
        for record in encoded.shards.values().chain([&encoded.head]) {
            let size: usize = record.values().map(String::len).sum();
            assert!(size < MOST_BYTES, "{size}");
        }
        assert_eq!(Inventory::decode(&encoded).expect("it was just written"), inventory);
    }

    #[test]
    fn a_newer_format_is_not_guessed_at() {
        let head = r#"{"schema":99,"installation":"","source":"","cluster":"","epoch":0,"shards":[]}"#;
        let head = BTreeMap::from([("head".to_owned(), head.to_owned())]);
        assert!(matches!(Inventory::shards_of(&head), Err(InventoryError::Newer(99))));
    }
}
