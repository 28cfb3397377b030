//! Files that nobody else may read or follow: keys, tokens, and what lies in the state folder.

use std::fs::{File, Permissions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path};

use nix::fcntl::OFlag;

/// The readers of a user's key or token: that user.
const FOR_OTHERS: u32 = 0o077;

/// The readers of a key or token of root's: one group, to which it was given. So it is with the Secrets that Kubernetes
/// mounts, with systemd's credentials, and with files below `/etc`.
const FOR_OTHERS_OF_ROOT: u32 = 0o027;

/// Others can read a file that holds a secret.
#[derive(Debug, thiserror::Error)]
#[error("it can be read by other users (its mode is {0:o})")]
pub(crate) struct TooOpen(u32);

impl TooOpen {
    /// Advice on what to do about it.
    pub(crate) const HINT: &str =
        "Make it readable for its owner alone (chmod 600), or let root own it and one group read it.";

    /// Tells whether that is why a file was not read.
    pub(crate) fn is(error: &io::Error) -> bool {
        error.get_ref().and_then(|inner| inner.downcast_ref::<Self>()).is_some()
    }
}

/// A name in a folder of ours is a symbolic link.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is a symbolic link, and links in the state directory are not followed")]
pub(crate) struct IsLink(std::path::PathBuf);

/// Opens a file with a key or a token, and refuses one that others can read, as ssh does.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let others = if metadata.uid() == 0 { FOR_OTHERS_OF_ROOT } else { FOR_OTHERS };
    let mode = metadata.mode() & 0o777;
    if mode & others != 0 {
        return Err(io::Error::other(TooOpen(mode)));
    }
    Ok(file)
}

/// Reads a file with a key or a token.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file with a key or a token that is text.
pub(crate) fn read_to_string(path: &Path) -> io::Result<String> {
    io::read_to_string(open(path)?)
}

/// Refuses a path on which anything below a folder is a symbolic link, or neither a file nor a folder: whoever reads a pipe
/// may wait for ever.
pub(crate) fn no_link(folder: &Path, path: &Path) -> io::Result<()> {
    let Ok(below) = path.strip_prefix(folder) else { return Ok(()) };
    let mut so_far = folder.to_owned();
    for part in below.components() {
        let Component::Normal(name) = part else { return Err(io::ErrorKind::InvalidInput.into()) };
        so_far.push(name);
        match so_far.symlink_metadata() {
            Ok(found) if found.is_symlink() => return Err(io::Error::other(IsLink(so_far))),
            Ok(found) if !found.is_file() && !found.is_dir() => return Err(io::Error::other("it is no file")),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Opens a file that is there to be locked, or makes it; whoever can open it could hold the lock for ever.
fn lock_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    let file = options.mode(0o600).custom_flags(OFlag::O_NOFOLLOW.bits()).open(path)?;
    if file.metadata()?.mode() & FOR_OTHERS != 0 {
        // It was made by an earlier version. Whoever may not change it does not own it.
        drop(file.set_permissions(Permissions::from_mode(0o600)));
    }
    Ok(file)
}

/// Opens such a file and locks it; `None` if somebody else has. The lock ends with the returned file.
pub(crate) fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = lock_file(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Writes a file into a folder that is there, whole or not at all; when this returns it is on the disk.
pub(crate) fn write_whole(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let folder = above(path);
    let mut file = tempfile::Builder::new().prefix(".gatewright-").tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().set_permissions(Permissions::from_mode(mode))?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    // A name is on the disk only when its folder is.
    File::open(folder)?.sync_all()
}

/// The folder that a path is in.
pub(crate) fn above(path: &Path) -> &Path {
    path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Opens a file to add to it, or makes it.
pub(crate) fn append_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).append(true).mode(0o600).custom_flags(OFlag::O_NOFOLLOW.bits()).open(path)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    /// Writes a file as people should who have a secret.
    pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
        fs::write(path, text)?;
        fs::set_permissions(path, Permissions::from_mode(0o600))
    }

    #[test]
    fn a_secret_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("token");
        fs::write(&path, "sesame").expect("a test may");
        let is_root = path.metadata().expect("it is there").uid() == 0;
        let check = |mode: u32, expected: bool| {
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("a test may");
            let result = read_to_string(&path);
            assert_eq!(result.is_ok(), expected, "{mode:o}: {result:?}");
            assert!(result.map_or_else(|error| TooOpen::is(&error), |text| text == "sesame"), "{mode:o}");
        };
        for mode in [0o600, 0o400, 0o700] {
            check(mode, true);
        }
        for mode in [0o604, 0o644, 0o666, 0o602, 0o620] {
            check(mode, false);
        }
        check(0o640, is_root);
        check(0o440, is_root);
    }

    #[test]
    fn no_name_below_a_folder_is_followed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let folder = folder.path();
        fs::create_dir(folder.join("there")).expect("a test may");
        fs::write(folder.join("there/file"), "of somebody").expect("a test may");
        symlink("there", folder.join("link")).expect("a test may");
        symlink("there/file", folder.join("lock")).expect("a test may");
        for (path, expected) in [("there/file", true), ("new/file", true), ("link/file", false), ("lock", false)] {
            assert_eq!(no_link(folder, &folder.join(path)).is_ok(), expected, "{path}");
        }
        assert!(no_link(folder, &folder.join("there/../there")).is_err());
        assert!(
            no_link(&folder.join("link"), &folder.join("link/file")).is_ok(),
            "the folder itself is as it is named"
        );
        assert!(lock_file(&folder.join("lock")).is_err() && append_file(&folder.join("lock")).is_err());
        assert_eq!(fs::read_to_string(folder.join("there/file")).ok().as_deref(), Some("of somebody"));
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("status.json");
        let _socket = UnixListener::bind(&path).expect("a test may");
        let refused = no_link(folder.path(), &path).expect_err("it is a socket");
        assert_eq!(refused.to_string(), "it is no file");
    }

    #[test]
    fn a_lock_is_for_nobody_else() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("lock");
        fs::write(&path, "").expect("a test may");
        fs::set_permissions(&path, Permissions::from_mode(0o666)).expect("a test may");
        for path in [path, folder.path().join("new")] {
            let mode = lock_file(&path).expect("it is made").metadata().expect("it is open").mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}
