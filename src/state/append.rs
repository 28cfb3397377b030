//! Files of the state folder to which something is added at their end, because they are too large to be written whole each
//! time.

use std::fs::{File, Metadata};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::fcntl::OFlag;

use super::{State, StateError};
use crate::basics::private::no_link;

/// The look of a file at a time: as long as it stays, so does what the file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    modified: (i64, i64),
    /// The length of the file, in bytes.
    pub length: u64,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        Self { inode: metadata.ino(), modified, length: metadata.len() }
    }
}

impl State {
    /// Returns the look of a file below the folder; `None` if there is no such file.
    pub(crate) fn stamp(&self, path: impl AsRef<Path>) -> Result<Option<Stamp>, StateError> {
        let path = self.path(path);
        let metadata = no_link(&self.folder, &path).and_then(|()| path.metadata());
        there(metadata).map(|it| it.as_ref().map(Stamp::of)).map_err(|error| StateError::Read(path, error))
    }

    /// Reads a file below the folder, and says how it looked; `None` if there is no such file. What is added meanwhile is not
    /// read.
    pub(crate) fn read_stamped(&self, path: impl AsRef<Path>) -> Result<Option<(Vec<u8>, Stamp)>, StateError> {
        let path = self.path(path);
        let read = || {
            no_link(&self.folder, &path)?;
            let file = File::open(&path)?;
            let stamp = Stamp::of(&file.metadata()?);
            let mut bytes = Vec::new();
            file.take(stamp.length).read_to_end(&mut bytes)?;
            Ok((bytes, stamp))
        };
        there(read()).map_err(|error| StateError::Read(path, error))
    }

    /// Reads at most so many bytes at the end of a file below the folder, and says how long it is; `None` if there is no such
    /// file.
    pub(crate) fn read_end(&self, path: impl AsRef<Path>, most: u64) -> Result<Option<(Vec<u8>, u64)>, StateError> {
        let path = self.path(path);
        let read = || {
            no_link(&self.folder, &path)?;
            let mut file = File::open(&path)?;
            let length = file.metadata()?.len();
            let mut bytes = Vec::new();
            file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
            file.take(most).read_to_end(&mut bytes)?;
            Ok((bytes, length))
        };
        there(read()).map_err(|error| StateError::Read(path, error))
    }

    /// Writes bytes at a place of a file below the folder, which ends with them; returns how it looks then. When this returns
    /// they are on the disk; where it fails, any part of them may be.
    pub(crate) fn append(&self, path: impl AsRef<Path>, at: u64, bytes: &[u8]) -> Result<Stamp, StateError> {
        let full = self.path(&path);
        let write = || {
            no_link(&self.folder, &full)?;
            let file = File::options().write(true).custom_flags(OFlag::O_NOFOLLOW.bits()).open(&full)?;
            file.set_len(at)?;
            file.write_all_at(bytes, at)?;
            file.sync_data()?;
            Ok(Stamp::of(&file.metadata()?))
        };
        let written = write();
        self.touched(path);
        written.map_err(|error| StateError::Write(full, error))
    }
}

fn there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}
