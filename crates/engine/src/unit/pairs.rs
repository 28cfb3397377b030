//! Maps by object as lists of pairs, because only text can be a key in JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::object::ObjectId;

pub(super) fn serialize<S: Serializer>(map: &BTreeMap<ObjectId, String>, serializer: S) -> Result<S::Ok, S::Error> {
    map.iter().collect::<Vec<_>>().serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<ObjectId, String>, D::Error> {
    Vec::deserialize(deserializer).map(|pairs: Vec<(ObjectId, String)>| pairs.into_iter().collect())
}
