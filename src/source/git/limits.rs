//! The settings that libgit2 keeps once for the whole process: time-outs, where it looks for configuration, whom it
//! trusts.
//!
//! These are global variables of a C library, so setting them is `unsafe`; this is the only place that does.
//! Limits that belong to a single poll are elsewhere: the library has none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::{fs, io};

use git2::{ConfigLevel, opts};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use super::InitError;
use super::address::Transport;
use crate::basics::lock::lock;

/// The longest time for a server to accept a connection, in milliseconds.
const CONNECT_TIMEOUT_MS: i32 = 10_000;

/// The longest time that a server may keep silent, in milliseconds.
const SILENCE_TIMEOUT_MS: i32 = 30_000;

/// The most repositories of one server that are talked to at once, whatever the number of sources: a server that a hundred
/// sources share is not to see them all in the same instant.
const OF_A_SERVER: usize = 4;

/// Returns what limits the conversations with the server of a repository; one on this disk has none. Servers have
/// nothing in common, so that one that keeps all who talk to it waiting keeps nobody else.
pub(super) fn slots(transport: &Transport) -> Option<Arc<Semaphore>> {
    static SLOTS: Mutex<BTreeMap<(String, u16), Arc<Semaphore>>> = Mutex::new(BTreeMap::new());

    let (Transport::Https(host) | Transport::Http(host) | Transport::Ssh(host, _)) = transport else { return None };
    let mut slots = lock(&SLOTS);
    let slots = slots.entry((host.name.clone(), host.port)).or_insert_with(|| Arc::new(Semaphore::new(OF_A_SERVER)));
    Some(Arc::clone(slots))
}

/// Sets libgit2 up, the first time it is called.
pub(super) fn init() -> Result<(), InitError> {
    static DONE: OnceLock<Result<(), InitError>> = OnceLock::new();
    DONE.get_or_init(set_up).clone()
}

fn set_up() -> Result<(), InitError> {
    let version = git2::Version::get();
    if let Some((_, name)) = [(version.https(), "https"), (version.ssh(), "ssh")].into_iter().find(|(there, _)| !there)
    {
        return Err(InitError(format!("libgit2 was built without {name}")));
    }
    set_globals().map_err(|error| InitError(format!("libgit2 refuses its settings: {}", error.message())))
}

/// Bounds every wait, and hides the configuration of the machine and of its users.
#[expect(unsafe_code, reason = "libgit2's settings are global; this runs once, before its first use")]
fn set_globals() -> Result<(), git2::Error> {
    // SAFETY: nothing reads these before `init` has returned, since no `GitSource` comes into being without it.
    unsafe {
        opts::set_server_connect_timeout_in_milliseconds(CONNECT_TIMEOUT_MS)?;
        opts::set_server_timeout_in_milliseconds(SILENCE_TIMEOUT_MS)?;
        for level in [ConfigLevel::System, ConfigLevel::Global, ConfigLevel::XDG, ConfigLevel::ProgramData] {
            opts::set_search_path(level, "")?;
        }
    }
    Ok(())
}

/// Trusts the certificate authorities in a file, from now on and for every https source.
///
/// libgit2 has one list for all and shows its callers too little of a server's certificates to check them themselves.
/// The file is read each time, so that authorities that are added to it count at once; one that is taken out of it is
/// trusted until the process ends.
pub(super) fn trust(file: &Path) -> io::Result<()> {
    static TRUSTED: Mutex<BTreeSet<Vec<u8>>> = Mutex::new(BTreeSet::new());

    let digest = Sha256::digest(fs::read(file)?).to_vec();
    let mut trusted = lock(&TRUSTED);
    if !trusted.contains(&digest) {
        add_authorities(file)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it holds no certificates in PEM form"))?;
        trusted.insert(digest);
    }
    Ok(())
}

#[expect(unsafe_code, reason = "libgit2's list of authorities is global")]
fn add_authorities(file: &Path) -> Result<(), git2::Error> {
    // SAFETY: the list is OpenSSL's, which locks it; callers hold a lock as well, so that only one adds to it.
    unsafe { opts::set_ssl_cert_file(file) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::git::address::Address;

    #[test]
    fn each_server_has_slots_of_its_own_and_this_disk_needs_none() {
        let of = |url: &str| {
            let address = Address::try_from(url.to_owned()).expect(url);
            slots(address.transport())
        };
        let one = of("https://one.example.com/a.git").expect("it is a server");
        assert!(Arc::ptr_eq(&one, &of("https://one.example.com/b.git").expect("it is a server")));
        assert!(!Arc::ptr_eq(&one, &of("https://two.example.com/a.git").expect("it is a server")));
        assert!(of("file:///srv/a.git").is_none());
    }
}
