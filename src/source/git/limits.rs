//! What libgit2 keeps once for the whole process: time-outs, where it looks for configuration, whom it trusts.
//!
//! These are global variables of a C library, so setting them is `unsafe`; this is the only place that does.
//! Limits that belong to a single poll are elsewhere: the library has none.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::{fs, io};

use git2::{ConfigLevel, opts};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use super::InitError;

/// How long a server may take to accept a connection, in milliseconds.
const CONNECT_TIMEOUT_MS: i32 = 10_000;

/// How long a server may keep silent, in milliseconds.
const SILENCE_TIMEOUT_MS: i32 = 30_000;

/// How many repositories are talked to at once, whatever the number of sources.
///
/// Each takes a thread, and a server that a hundred sources share is not to see them all in the same instant.
pub(super) static SLOTS: Semaphore = Semaphore::const_new(4);

/// Sets libgit2 up, the first time it is called.
pub(super) fn init() -> Result<(), InitError> {
    static DONE: OnceLock<Result<(), InitError>> = OnceLock::new();
    DONE.get_or_init(set_up).clone()
}

fn set_up() -> Result<(), InitError> {
    let version = git2::Version::get();
    for (there, name) in [(version.https(), "https"), (version.ssh(), "ssh")] {
        if !there {
            return Err(InitError::Incomplete(name));
        }
    }
    set_globals().map_err(|error| InitError::Refused(error.message().to_owned()))
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
    // A set is whole whatever happened to those who held it.
    let mut trusted = TRUSTED.lock().unwrap_or_else(PoisonError::into_inner);
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
