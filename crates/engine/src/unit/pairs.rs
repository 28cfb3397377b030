//! Maps by object as lists of pairs, because only text can be a key in JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::object::ObjectId;

/// Writes a map as a list.
pub fn serialize<S: Serializer, T: Serialize>(map: &BTreeMap<ObjectId, T>, serializer: S) -> Result<S::Ok, S::Error> {
    map.iter().collect::<Vec<_>>().serialize(serializer)
}

/// Reads a list as a map.
pub fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<BTreeMap<ObjectId, T>, D::Error> {
    Vec::deserialize(deserializer).map(|pairs: Vec<(ObjectId, T)>| pairs.into_iter().collect())
}
