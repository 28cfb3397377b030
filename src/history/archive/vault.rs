//! Encrypted files below the state directory.
//!
//! A file is compressed (zstd), then encrypted with AES-256-GCM under a random nonce. Where it lies is authenticated too,
//! so that a file that was changed, cut or put in the place of another one is an error and never an answer.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gatewright_engine::mask::Masker;
use gatewright_engine::text::hex;
use rand::TryRngCore as _;
use rand::rngs::OsRng;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest::{SHA256, digest};
use ring::hmac;
use serde::Serialize;
use serde::de::DeserializeOwned;
use zstd::bulk::Compressor;

use crate::basics::private::{self, TooOpen};
use crate::state::{State, StateError};

/// The beginning of every file; the number is the version of the format.
const MAGIC: &[u8] = b"gatewright sealed 1\n";
/// The bytes of a key.
const KEY_LEN: usize = 32;
/// The number of bytes of the digest of a key that tell it from others.
const ID_LEN: usize = 8;
/// Objects are text that repeats itself; more than this gains little.
const LEVEL: i32 = 3;

/// The reader and writer of encrypted files.
pub struct Vault {
    pub(super) state: State,
    key: LessSafeKey,
    id: [u8; ID_LEN],
    masker: Masker,
    plans: hmac::Key,
}

/// A file or the key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The key cannot be read.
    #[error("cannot read the key file {0:?}")]
    ReadKey(PathBuf, #[source] io::Error),
    /// The file holds something else.
    #[error("the key file {0:?} does not hold 32 bytes, raw or in base64")]
    NoKey(PathBuf),
    /// Others can read the key.
    #[error("the key file {0:?} can be read by all users; it takes chmod 600")]
    OpenToAll(PathBuf),
    /// The system has no random numbers, or no memory.
    #[error("nothing can be encrypted, because the system yields no random numbers or no memory")]
    Encrypt,
    /// A file cannot be read or written.
    #[error(transparent)]
    State(#[from] StateError),
    /// A file is not what was written there.
    #[error("{0:?} is damaged: it was changed, cut or moved since it was written")]
    Damaged(PathBuf),
    /// A file was written with another key.
    #[error("{file:?} was encrypted with another key: its id is {theirs}, and that of the key here is {ours}")]
    OtherKey {
        /// The file.
        file: PathBuf,
        /// The id of the key that it was written with.
        theirs: String,
        /// The id of the key that is in use.
        ours: String,
    },
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("key", &hex(&self.id)).finish_non_exhaustive()
    }
}

impl Vault {
    /// Returns where the key is if no setting says so.
    pub fn own_key(state: &State) -> PathBuf {
        state.path("key")
    }

    /// Opens the vault with the key of a file.
    pub fn with_key(state: &State, file: &Path) -> Result<Self, VaultError> {
        let read = |error| VaultError::ReadKey(file.to_owned(), error);
        let bytes = private::no_link(&state.path(""), file)
            .and_then(|()| private::read(file))
            .map_err(|error| if TooOpen::is(&error) { VaultError::OpenToAll(file.to_owned()) } else { read(error) })?;
        let text = || STANDARD.decode(std::str::from_utf8(&bytes).ok()?.trim()).ok();
        let key = if bytes.len() == KEY_LEN { Some(bytes.clone()) } else { text() };
        let key = key.filter(|key| key.len() == KEY_LEN).ok_or_else(|| VaultError::NoKey(file.to_owned()))?;
        let unbound = UnboundKey::new(&AES_256_GCM, &key).map_err(|_| VaultError::NoKey(file.to_owned()))?;
        let mut id = [0; ID_LEN];
        id.copy_from_slice(&digest(&SHA256, &key).as_ref()[..ID_LEN]);
        let masker = Masker::new(derived(&key, b"gatewright: fingerprints of secrets"));
        let plans = hmac::Key::new(hmac::HMAC_SHA256, &derived(&key, b"gatewright: plans"));
        Ok(Self { state: state.clone(), key: LessSafeKey::new(unbound), id, masker, plans })
    }

    /// Opens the vault with a key of its own in the state directory, made when there is none.
    pub fn making_key(state: &State) -> Result<Self, VaultError> {
        let file = Self::own_key(state);
        if !file.exists() {
            let key = STANDARD.encode(random::<KEY_LEN>()?);
            state.write(&file, format!("{key}\n").as_bytes())?;
        }
        Self::with_key(state, &file)
    }

    /// Returns what masks secrets in reports, with a key that is made from this one.
    pub fn masker(&self) -> &Masker {
        &self.masker
    }

    /// Signs a plan, with a key that is made from this one.
    pub fn sign_plan(&self, plan: &str) -> String {
        STANDARD.encode(hmac::sign(&self.plans, plan.as_bytes()))
    }

    /// Tells whether a plan was signed with this key.
    pub fn verifies_plan(&self, plan: &str, signature: &str) -> bool {
        let tag = STANDARD.decode(signature).unwrap_or_default();
        hmac::verify(&self.plans, plan.as_bytes(), &tag).is_ok()
    }

    /// Encrypts bytes that belong to a place. The compressor is made by the caller: for a small piece that takes longer
    /// than to compress it.
    pub(super) fn encrypt(
        &self,
        packer: &mut Compressor<'_>,
        place: &str,
        bytes: &[u8],
    ) -> Result<Vec<u8>, VaultError> {
        self.seal(place, packer.compress(bytes).map_err(|_| VaultError::Encrypt)?)
    }

    /// Encrypts what is compressed already.
    fn seal(&self, place: &str, mut encrypted: Vec<u8>) -> Result<Vec<u8>, VaultError> {
        let nonce = random::<NONCE_LEN>()?;
        let tag = self.key.seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(place.as_bytes()),
            &mut encrypted,
        );
        let tag = tag.map_err(|_| VaultError::Encrypt)?;
        Ok([MAGIC, &self.id, &nonce, &encrypted, tag.as_ref()].concat())
    }

    /// Decrypts what belongs to a place; `file` is for the error.
    pub fn decrypt(&self, place: &str, bytes: &[u8], file: &Path) -> Result<Vec<u8>, VaultError> {
        let damaged = || VaultError::Damaged(file.to_owned());
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(damaged)?;
        let (id, rest) = rest.split_at_checked(ID_LEN).ok_or_else(damaged)?;
        let (nonce, encrypted) = rest.split_first_chunk::<NONCE_LEN>().ok_or_else(damaged)?;
        if id != self.id {
            let (theirs, ours) = (hex(id), hex(&self.id));
            return Err(VaultError::OtherKey { file: file.to_owned(), theirs, ours });
        }
        let mut encrypted = encrypted.to_vec();
        let (nonce, place) = (Nonce::assume_unique_for_key(*nonce), Aad::from(place.as_bytes()));
        let opened = self.key.open_in_place(nonce, place, &mut encrypted).map_err(|_| damaged())?;
        zstd::stream::decode_all(&*opened).map_err(|_| damaged())
    }

    /// Has a file lie in another place, too, for which it is encrypted again; tells whether there is one.
    pub(super) fn copy(&self, from: &str, to: &str) -> Result<bool, VaultError> {
        let Some(bytes) = self.state.read(from)? else { return Ok(false) };
        let open = self.decrypt(from, &bytes, &self.state.path(from))?;
        self.state.write(to, &self.encrypt(&mut packer()?, to, &open)?)?;
        Ok(true)
    }

    /// Writes a value to a file below the state directory; when this returns it is on the disk.
    pub fn write(&self, path: &str, value: &impl Serialize) -> Result<(), VaultError> {
        self.write_packed(path, self.packed(path, value)?)
    }

    /// Returns a value as it is before it is encrypted; the path is for the error.
    pub(super) fn packed(&self, path: &str, value: &impl Serialize) -> Result<Vec<u8>, VaultError> {
        let json = serde_json::to_vec(value).map_err(|error| StateError::Write(self.state.path(path), error.into()))?;
        packer()?.compress(&json).map_err(|_| VaultError::Encrypt)
    }

    /// Writes a value that is packed.
    pub(super) fn write_packed(&self, path: &str, packed: Vec<u8>) -> Result<(), VaultError> {
        Ok(self.state.write(path, &self.seal(path, packed)?)?)
    }

    /// Reads a value from a file below the state directory; `None` if there is no such file.
    pub fn read<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, VaultError> {
        let Some(bytes) = self.state.read(path)? else { return Ok(None) };
        let file = self.state.path(path);
        let json = self.decrypt(path, &bytes, &file)?;
        serde_json::from_slice(&json).map(Some).map_err(|_| VaultError::Damaged(file))
    }
}

/// Returns a compressor of what is to be encrypted.
pub(super) fn packer() -> Result<Compressor<'static>, VaultError> {
    Compressor::new(LEVEL).map_err(|_| VaultError::Encrypt)
}

/// Makes a key for another purpose from that of the files, which does not follow from it: HMAC with SHA-256.
fn derived(key: &[u8], purpose: &[u8]) -> [u8; 32] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), purpose);
    let mut derived = [0; 32];
    derived.copy_from_slice(tag.as_ref());
    derived
}

fn random<const N: usize>() -> Result<[u8; N], VaultError> {
    let mut bytes = [0; N];
    OsRng.try_fill_bytes(&mut bytes).map_err(|_| VaultError::Encrypt)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;

    fn state() -> (tempfile::TempDir, State) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let state = State::open(folder.path().join("state"));
        (folder, state)
    }

    fn error<T: fmt::Debug>(result: Result<T, VaultError>) -> String {
        result.expect_err("this cannot be read").to_string()
    }

    #[test]
    fn what_is_written_reads_back_and_is_not_to_be_seen() {
        let (_folder, state) = state();
        let vault = Vault::making_key(&state).expect("a key is made");
        vault.write("undo/run/c/a", &"a word that nobody may read").expect("it is written");
        let again = Vault::making_key(&state).expect("the key is there");
        assert_eq!(again.read::<String>("undo/run/c/a").ok().flatten().as_deref(), Some("a word that nobody may read"));
        assert_eq!(again.read::<String>("undo/run/c/b").ok(), Some(None));
        for file in ["undo/run/c/a", "key"] {
            let bytes = fs::read(state.path(file)).expect("it is there");
            assert!(!bytes.windows(6).any(|window| window == b"nobody"), "{file}");
            let mode = fs::metadata(state.path(file)).expect("it is there").mode();
            assert_eq!(mode & 0o777, 0o600, "{file}");
        }
    }

    #[test]
    fn what_was_changed_cut_or_moved_is_an_error_with_its_path() {
        let (_folder, state) = state();
        let vault = Vault::making_key(&state).expect("a key is made");
        vault.write("a", &vec!["text"; 100]).expect("it is written");
        let bytes = fs::read(state.path("a")).expect("it is there");
        let read = |bytes: &[u8]| {
            fs::write(state.path("a"), bytes).expect("a test may");
            error(vault.read::<Vec<String>>("a"))
        };
        for end in 0..bytes.len() {
            assert!(read(&bytes[..end]).contains("/state/a\" is damaged"), "{end}");
        }
        for at in (0..bytes.len()).filter(|at| !(MAGIC.len()..MAGIC.len() + ID_LEN).contains(at)) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            assert!(read(&bytes).contains("is damaged"), "{at}");
        }
        fs::write(state.path("b"), &bytes).expect("a test may");
        assert!(error(vault.read::<Vec<String>>("b")).contains("/state/b\" is damaged"));
    }

    #[test]
    fn fingerprints_are_those_of_the_key_and_do_not_tell_it() {
        let (first, second) = (tempfile::tempdir(), tempfile::tempdir());
        let state = |folder: &io::Result<tempfile::TempDir>| State::open(folder.as_ref().expect("a folder").path());
        let vault = |state: &State| Vault::making_key(state).expect("a key is made");
        let shown = |vault: &Vault| vault.masker().value(&"1234".into());
        let (ours, other) = (vault(&state(&first)), vault(&state(&second)));
        assert_eq!(shown(&ours), shown(&vault(&state(&first))));
        assert_ne!(shown(&ours), shown(&other));
        let key = fs::read_to_string(Vault::own_key(&state(&first))).expect("it was written");
        let key: [u8; KEY_LEN] = STANDARD.decode(key.trim()).expect("base64").try_into().expect("its length");
        assert_ne!(shown(&ours), Masker::new(key).value(&"1234".into()), "another key is derived from it");
    }

    #[test]
    fn keys_are_what_they_should_be() {
        let (folder, state) = state();
        let file = folder.path().join("key");
        let with = |bytes: &[u8], mode: u32| {
            fs::write(&file, bytes).expect("a test may");
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("a test may");
            Vault::with_key(&state, &file)
        };
        let raw = [7; KEY_LEN];
        let vault = with(&raw, 0o600).expect("it is a key");
        vault.write("a", &1).expect("it is written");
        let text = with(format!("{}\n", STANDARD.encode(raw)).as_bytes(), 0o400).expect("it is the same key");
        assert_eq!(text.read::<u8>("a").ok(), Some(Some(1)));
        assert!(error(with(&[8; KEY_LEN], 0o400).and_then(|vault| vault.read::<u8>("a"))).contains("another key"));
        assert!(error(with(b"short", 0o600)).contains("does not hold 32 bytes"));
        assert!(error(with(&raw, 0o644)).contains("chmod 600"));
        assert!(error(Vault::with_key(&state, Path::new("nowhere"))).contains("cannot read the key file \"nowhere\""));
    }
}
