//! Signatures of inventory entries: who may edit our records on a cluster, but has not the key, can add nothing to them that
//! is taken for ours.
//!
//! A signature is bound to installation, sync, cluster and object, so that one that is copied elsewhere proves nothing.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use gatewright_engine::inventory::Inventory;
use gatewright_engine::object::ObjectId;
use gatewright_engine::text::hex;
use ring::hmac;

use crate::basics::private;

/// A shorter key can be guessed.
const SHORTEST_KEY: usize = 32;

/// The key of the signatures: HMAC with SHA-256.
pub struct Key(hmac::Key);

/// A key that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Its file cannot be read.
    #[error("cannot read the key of the inventories, {0:?}")]
    Read(PathBuf, #[source] io::Error),
    /// It is too short.
    #[error("the key of the inventories, {0:?}, has fewer than {SHORTEST_KEY} bytes")]
    Short(PathBuf),
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl Key {
    /// Reads a key from a file: all of its bytes but line ends at its end.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let bytes = private::read(path).map_err(|error| KeyError::Read(path.to_owned(), error))?;
        let end = bytes.iter().rposition(|byte| !b"\r\n".contains(byte)).map_or(0, |last| last + 1);
        if end < SHORTEST_KEY {
            return Err(KeyError::Short(path.to_owned()));
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes[..end])))
    }

    /// Names the key without telling it.
    pub(crate) fn id(&self) -> String {
        hex(hmac::sign(&self.0, b"gatewright: id of this key").as_ref())[..16].to_owned()
    }

    /// Makes the signature of an entry.
    pub(crate) fn sign(&self, sync: &str, inventory: &Inventory, id: &ObjectId) -> String {
        hex(hmac::sign(&self.0, &message(sync, inventory, id)).as_ref())
    }

    /// Tells whether a signature is that of an entry; the comparison takes the same time whatever it says.
    pub(crate) fn verifies(&self, sync: &str, inventory: &Inventory, id: &ObjectId, signature: &str) -> bool {
        self.is(&self.sign(sync, inventory, id), signature)
    }

    /// Makes the signature of words that go with an inventory.
    pub(crate) fn sign_words(&self, sync: &str, inventory: &Inventory, words: &str) -> String {
        let Inventory { installation, cluster, .. } = inventory;
        let message = serde_json::json!(["words", installation, sync, cluster, words]).to_string();
        hex(hmac::sign(&self.0, message.as_bytes()).as_ref())
    }

    /// Tells whether a signature is that of words.
    pub(crate) fn verifies_words(&self, sync: &str, inventory: &Inventory, words: &str, signature: &str) -> bool {
        self.is(&self.sign_words(sync, inventory, words), signature)
    }

    fn is(&self, expected: &str, signature: &str) -> bool {
        let expected = hmac::sign(&self.0, expected.as_bytes());
        hmac::verify(&self.0, signature.as_bytes(), expected.as_ref()).is_ok()
    }
}

/// JSON, so that no part can be mistaken for another.
fn message(sync: &str, inventory: &Inventory, id: &ObjectId) -> Vec<u8> {
    let Inventory { installation, cluster, .. } = inventory;
    serde_json::json!([installation, sync, cluster, id, inventory.entries.get(id)]).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewright_engine::inventory::Entry;
    use gatewright_engine::object::Gvk;

    fn key(secret: &str) -> Result<Key, KeyError> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("key");
        private::tests::write(&path, secret).expect("it can be written");
        Key::read(&path)
    }

    fn inventory(cluster: &str, uid: &str) -> (Inventory, ObjectId) {
        let id = ObjectId::new("", "Service", "infra", "edge");
        let entry = Entry {
            gvk: Gvk::new("v1", "Service"),
            uid: Some(uid.to_owned()),
            unit: id.clone(),
            adopted: false,
            files: ["a".to_owned()].into(),
            overlays: [].into(),
        };
        let entries = [(id.clone(), entry)].into();
        (Inventory { cluster: cluster.to_owned(), entries, ..Inventory::default() }, id)
    }

    #[test]
    fn a_signature_holds_for_one_entry_of_one_sync_on_one_cluster() {
        let ours = key("0123456789abcdef0123456789abcdef\n").expect("it is long enough");
        let other = key("0123456789abcdef0123456789abcdeX").expect("it is long enough");
        let (here, id) = inventory("c", "uid-1");
        let signature = ours.sign("edge", &here, &id);
        assert!(ours.verifies("edge", &here, &id, &signature));
        assert!(!other.verifies("edge", &here, &id, &signature));
        assert!(!ours.verifies("edges", &here, &id, &signature));
        assert!(!ours.verifies("edge", &inventory("d", "uid-1").0, &id, &signature));
        assert!(!ours.verifies("edge", &inventory("c", "uid-2").0, &id, &signature));
        for nonsense in ["", "0", "zz", "éé", &signature[2..]] {
            assert!(!ours.verifies("edge", &here, &id, nonsense), "{nonsense:?}");
        }
    }

    #[test]
    fn words_are_signed_for_one_inventory_and_no_entry_passes_for_them() {
        let (ours, other) = (key(&"a".repeat(40)).expect("long"), key(&"b".repeat(40)).expect("long"));
        let (here, id) = inventory("c", "uid-1");
        let signature = ours.sign_words("edge", &here, "words");
        assert!(ours.verifies_words("edge", &here, "words", &signature));
        assert!(!other.verifies_words("edge", &here, "words", &signature));
        assert!(!ours.verifies_words("edges", &here, "words", &signature));
        assert!(!ours.verifies_words("edge", &here, "word", &signature));
        assert!(!ours.verifies_words("edge", &inventory("d", "uid-1").0, "words", &signature));
        assert!(!ours.verifies_words("edge", &here, "words", &ours.sign("edge", &here, &id)));
    }

    #[test]
    fn a_short_key_is_refused_and_none_is_shown() {
        assert!(matches!(key("too short\n"), Err(KeyError::Short(_))));
        let key = key(&"secret".repeat(9)).expect("it is long enough");
        assert!(!format!("{key:?}").contains("secret"));
    }
}
