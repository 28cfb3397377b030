//! The side of this host: the shared files, and beside them what is known of each since it was last alike in the store.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use gatewright_engine::text::digest;
use object_store::{ObjectMeta, UpdateVersion};
use serde::{Deserialize, Serialize};

use crate::basics::clock::{Clock as _, SystemClock};
use crate::basics::private::{above, no_link};
use crate::shared::error::SharedError;
use crate::shared::groups::{Form, GROUPS, Name, REPORTS, is_part};
use crate::shared::remote::{MOST_BYTES, too_large};
use crate::state::{State, StateError};

/// The folder of what is known of the files, below the state folder.
const KNOWN: &str = "shared/files";

/// The folder of what has lost against the other side.
const CONFLICTS: &str = "shared/conflicts";

/// The time for which what has lost is kept, in seconds: that of records for undo, unless the settings say otherwise.
const CONFLICTS_KEPT: i64 = 30 * 24 * 60 * 60;

/// A file that was changed within this many seconds may change again and look the same: clocks of file systems are coarse.
const RECENT: i64 = 2;

/// The files of this host.
#[derive(Clone, Debug)]
pub(super) struct Local {
    pub(super) state: State,
    /// The folder of the history of reports, which may lie elsewhere.
    reports: PathBuf,
}

/// The traits by which a file is known without reading it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stat {
    modified: (i64, i64),
    size: u64,
    inode: u64,
}

/// A file when it was last alike here and in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Alike {
    /// The digest of its content.
    pub(super) digest: String,
    /// Its traits here; absent where they may not tell it from a later one.
    pub(super) stat: Option<Stat>,
    /// The tag of the object.
    pub(super) e_tag: Option<String>,
    /// The version of the object, where the store has versions.
    pub(super) version: Option<String>,
    /// The tag of the object may not tell it from a later one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_recent: bool,
}

/// A file as it is here now.
#[derive(Debug, Default)]
pub(super) struct Here {
    pub(super) known: Option<Alike>,
    /// The digest of its content; `None` if there is no file.
    pub(super) digest: Option<String>,
    /// Its traits before it was read.
    pub(super) stat: Option<Stat>,
    /// The content, unless the traits have told all.
    pub(super) bytes: Option<Vec<u8>>,
}

impl Stat {
    fn of(metadata: &Metadata) -> Self {
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        Self { modified, size: metadata.size(), inode: metadata.ino() }
    }

    /// Tells whether a file that is changed from now on is certain to look different.
    fn is_settled(&self) -> bool {
        is_settled(self.modified.0)
    }
}

fn is_settled(second: i64) -> bool {
    second < SystemClock::new().now().as_second() - RECENT
}

impl Alike {
    /// Describes a file that was just found or made alike.
    pub(super) fn new(digest: String, stat: Option<Stat>, version: UpdateVersion, is_recent: bool) -> Self {
        let stat = stat.filter(Stat::is_settled);
        Self { digest, stat, e_tag: version.e_tag, version: version.version, is_recent }
    }

    /// Tells whether the store says that its object is the same.
    pub(super) fn is(&self, meta: &ObjectMeta) -> bool {
        !self.is_recent && self.e_tag.is_some() && self.e_tag == meta.e_tag
    }

    /// Tells whether a file here looks the same.
    pub(super) fn looks_like(&self, stat: Option<&Stat>) -> bool {
        self.stat.is_some() && self.stat.as_ref() == stat
    }

    /// Returns the version of the object.
    pub(super) fn version(&self) -> UpdateVersion {
        UpdateVersion { e_tag: self.e_tag.clone(), version: self.version.clone() }
    }
}

/// Tells whether an object of a folder that was changed in some second may change again under the same tag.
pub(super) fn is_recent(second: i64) -> bool {
    !is_settled(second)
}

impl Local {
    /// Names the folders.
    pub(super) fn new(state: &State, reports: &Path) -> Self {
        Self { state: state.clone(), reports: state.path(reports) }
    }

    /// Returns where a file lies.
    pub(super) fn path(&self, name: &Name) -> PathBuf {
        match name.as_str().strip_prefix(REPORTS).and_then(|rest| rest.strip_prefix('/')) {
            Some(report) => self.reports.join(report),
            None => self.state.path(name.as_str()),
        }
    }

    /// Returns the name of a path as it would stand in the store, if it can be that of a shared file or of a folder with some.
    pub(super) fn name(&self, path: &Path) -> Option<String> {
        let report = path.strip_prefix(&self.reports).ok().and_then(Path::to_str);
        let below = path.strip_prefix(self.state.path("")).ok().and_then(Path::to_str);
        let name = match report {
            Some("") => REPORTS.to_owned(),
            Some(report) => format!("{REPORTS}/{report}"),
            None => below?.to_owned(),
        };
        let is_shared = GROUPS.iter().any(|group| name.split('/').next() == Some(group.folder));
        is_shared.then_some(name)
    }

    /// Returns all shared files that are here, with their traits.
    pub(super) fn files(&self) -> Result<BTreeMap<Name, Stat>, SharedError> {
        let mut found = BTreeMap::new();
        for group in &GROUPS {
            let folder = if group.folder == REPORTS { self.reports.clone() } else { self.state.path(group.folder) };
            self.walk(&folder, group.folder, group.form.depth(), &mut found)?;
        }
        Ok(found)
    }

    fn walk(
        &self,
        folder: &Path,
        prefix: &str,
        depth: usize,
        found: &mut BTreeMap<Name, Stat>,
    ) -> Result<(), SharedError> {
        self.readable(folder)?;
        for part in self.state.names(folder).iter().filter(|part| is_part(part)) {
            let name = format!("{prefix}/{part}");
            if depth > 1 {
                let below = folder.join(part);
                if below.symlink_metadata().is_ok_and(|found| !found.is_file()) {
                    self.walk(&below, &name, depth - 1, found)?;
                }
            } else if let Some(name) = Name::parse(&name)
                && let Some(stat) = self.stat(&name)?
            {
                found.insert(name, stat);
            }
        }
        Ok(())
    }

    /// Makes sure that what a folder holds can be known: one that cannot be read looks like one that is empty.
    fn readable(&self, folder: &Path) -> Result<(), SharedError> {
        match no_link(&self.state.path(""), folder).and_then(|()| fs::read_dir(folder)) {
            Err(error) if !is_missing(&error) => Err(StateError::Read(folder.to_owned(), error).into()),
            _ => Ok(()),
        }
    }

    /// Returns the traits of a file; `None` if there is none. Whatever else has its name is left alone, and is an error.
    pub(super) fn stat(&self, name: &Name) -> Result<Option<Stat>, SharedError> {
        let path = self.path(name);
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_file() => Ok(Some(Stat::of(&metadata))),
            Ok(_) => Err(StateError::Read(path, io::Error::other("it is no file")).into()),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(StateError::Read(path, error).into()),
        }
    }

    /// Reads a file, as far as its traits do not tell that it is as it was.
    pub(super) fn read(&self, name: &Name, is_needed: bool) -> Result<Here, SharedError> {
        let known = self.known(name);
        let Some(stat) = self.stat(name)? else { return Ok(Here { known, ..Here::default() }) };
        if !is_needed
            && let Some(alike) = &known
            && alike.looks_like(Some(&stat))
        {
            return Ok(Here { digest: Some(alike.digest.clone()), stat: Some(stat), known, bytes: None });
        }
        if stat.size > MOST_BYTES {
            return Err(too_large(name.as_str()));
        }
        let Some(bytes) = self.state.read(self.path(name))? else { return Ok(Here { known, ..Here::default() }) };
        Ok(Here { known, digest: Some(digest(&bytes)), stat: Some(stat), bytes: Some(bytes) })
    }

    /// Writes what the store has; whether the file is to be written still is asked with what it looked like. Returns its
    /// traits, or `None` if it looks different by now.
    pub(super) fn take(&self, name: &Name, bytes: &[u8], before: Option<&Stat>) -> Result<Option<Stat>, SharedError> {
        if self.stat(name)?.as_ref() != before {
            return Ok(None);
        }
        self.state.write_unnoted(self.path(name), bytes)?;
        self.stat(name)
    }

    /// Removes what the store has no more; tells whether it did, as [`Local::take`] does.
    pub(super) fn remove(&self, name: &Name, before: Option<&Stat>) -> Result<bool, SharedError> {
        if self.stat(name)?.as_ref() != before {
            return Ok(false);
        }
        let path = self.path(name);
        self.state.remove_unnoted(&path)?;
        if name.group().form == Form::Run {
            // An empty folder would be a run in lists. Nobody begins to write to one that is over.
            let folders = [above(&path), above(above(&path))];
            drop(folders.iter().try_for_each(fs::remove_dir));
        }
        Ok(true)
    }

    /// Keeps what has lost aside; of each file the last.
    pub(super) fn keep_aside(&self, name: &Name, bytes: &[u8]) -> Result<(), SharedError> {
        Ok(self.state.write_unnoted(format!("{CONFLICTS}/{name}"), bytes)?)
    }

    /// Removes what was kept aside for long.
    pub(super) fn expire_conflicts(&self) {
        let oldest = SystemClock::new().now().as_second() - CONFLICTS_KEPT;
        self.expire_below(&self.state.path(CONFLICTS), oldest);
    }

    fn expire_below(&self, folder: &Path, oldest: i64) {
        for path in self.state.names(folder).iter().map(|name| folder.join(name)) {
            match path.symlink_metadata() {
                Ok(found) if found.is_dir() => {
                    self.expire_below(&path, oldest);
                    // One that is not empty stays.
                    drop(fs::remove_dir(&path));
                }
                Ok(found) if found.mtime() < oldest => drop(fs::remove_file(&path)),
                _ => {}
            }
        }
    }

    /// Returns what is known of a file. What cannot be read says nothing.
    pub(super) fn known(&self, name: &Name) -> Option<Alike> {
        serde_json::from_slice(&self.state.read(known_path(name)).ok()??).ok()
    }

    /// Notes that a file is alike.
    pub(super) fn note(&self, name: &Name, alike: &Alike) -> Result<(), SharedError> {
        let path = known_path(name);
        let json = serde_json::to_vec(alike);
        let json = json.map_err(|error| StateError::Write(self.state.path(&path), error.into()))?;
        Ok(self.state.write_unnoted(path, &json)?)
    }

    /// Notes that a file is nowhere any more.
    pub(super) fn forget(&self, name: &Name) -> Result<(), SharedError> {
        let path = self.state.path(known_path(name));
        self.state.remove_unnoted(&path)?;
        if name.group().form == Form::Run {
            drop([above(&path), above(above(&path))].iter().try_for_each(fs::remove_dir));
        }
        Ok(())
    }

    /// Returns all that is known of files.
    pub(super) fn all_known(&self) -> Result<BTreeMap<Name, Alike>, SharedError> {
        let mut names = Vec::new();
        for group in &GROUPS {
            self.known_below(group.folder, group.form.depth(), &mut names)?;
        }
        Ok(names.into_iter().filter_map(|name| self.known(&name).map(|alike| (name, alike))).collect())
    }

    /// Returns the names of files of which something is known, below a folder.
    fn known_below(&self, prefix: &str, depth: usize, found: &mut Vec<Name>) -> Result<(), SharedError> {
        let folder = self.state.path(format!("{KNOWN}/{prefix}"));
        self.readable(&folder)?;
        for part in self.state.names(folder) {
            let name = format!("{prefix}/{part}");
            if depth > 1 {
                self.known_below(&name, depth - 1, found)?;
            } else {
                found.extend(name.strip_suffix(".json").and_then(Name::parse));
            }
        }
        Ok(())
    }

    /// Returns the shared files that a note is about: that file, or those that are or were in that folder.
    pub(super) fn noted(&self, path: &Path) -> Result<Vec<Name>, SharedError> {
        let Some(text) = self.name(path) else { return Ok(Vec::new()) };
        if let Some(name) = Name::parse(&text) {
            return Ok(vec![name]);
        }
        let Some(group) = GROUPS.iter().find(|group| text.split('/').next() == Some(group.folder)) else {
            return Ok(Vec::new());
        };
        let parts: Vec<&str> = text.split('/').skip(1).collect();
        if parts.len() >= group.form.depth() || !parts.iter().all(|part| is_part(part)) {
            return Ok(Vec::new());
        }
        let depth = group.form.depth() - parts.len();
        let (mut found, mut here) = (Vec::new(), BTreeMap::new());
        self.known_below(&text, depth, &mut found)?;
        self.walk(path, &text, depth, &mut here)?;
        Ok(found.into_iter().chain(here.into_keys()).collect())
    }
}

fn known_path(name: &Name) -> String {
    format!("{KNOWN}/{name}.json")
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}
