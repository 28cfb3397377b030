//! The helpers that tests of several areas need, beside the test cluster.

pub(crate) mod git_server;
pub(crate) mod kgateway;
pub(crate) mod memory;
pub(crate) mod receiver;
pub(crate) mod tunnel;

pub(crate) use crate::cluster::{binaries, process};

/// Writes a file with a key or a token, for its owner alone.
pub(crate) fn write_secret(path: &std::path::Path, text: &str) {
    std::fs::write(path, text).expect("the folder can be written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(path, mode).expect("it is ours");
}
