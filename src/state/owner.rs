//! Root at work in the state folder of another user, which is that user from then on.
//!
//! Whoever owns a folder says what its names mean, and may have made links of them: root that writes there writes
//! wherever the owner wants. With the rights of the owner nothing can be reached that the owner could not. It also
//! leaves no file behind that the daemon, which is that user, cannot read.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::{Gid, Uid, User, geteuid, initgroups, setgid, setgroups, setuid};

/// Root could not become the owner of the state folder.
#[derive(Debug, thiserror::Error)]
#[error("cannot become the owner of {folder:?}, user {user}")]
pub(crate) struct OwnerError {
    folder: PathBuf,
    user: u32,
    source: io::Error,
}

/// Makes this process the user whom a folder belongs to, or the first folder above it that exists, if it is root's.
///
/// That is for good, and for all threads.
pub(crate) fn become_owner(folder: &Path) -> Result<(), OwnerError> {
    let Some(found) = folder.ancestors().find_map(|folder| fs::metadata(folder).ok()) else { return Ok(()) };
    let (user, group) = (Uid::from_raw(found.uid()), Gid::from_raw(found.gid()));
    if !geteuid().is_root() || user.is_root() {
        return Ok(());
    }
    let fail = |source| OwnerError { folder: folder.to_owned(), user: user.as_raw(), source };
    become_user(user, group).map_err(|errno| fail(errno.into()))?;
    // A process that could go back would have gained nothing.
    if setuid(Uid::from_raw(0)).is_ok() || geteuid() != user {
        return Err(fail(io::ErrorKind::PermissionDenied.into()));
    }
    Ok(())
}

/// Groups go first: who is not root any more cannot change them.
fn become_user(user: Uid, group: Gid) -> nix::Result<()> {
    if let Some(known) = User::from_uid(user)? {
        let name = CString::new(known.name).map_err(|_| nix::errno::Errno::EINVAL)?;
        initgroups(&name, known.gid)?;
        setgid(known.gid)?;
    } else {
        setgroups(&[group])?;
        setgid(group)?;
    }
    setuid(user)
}
