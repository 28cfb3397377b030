//! The local stores of this installation: values of one type as JSON files below the state folder, each by its names.
//!
//! A file is written whole or not at all, and for nobody else. One that is not there, is damaged, or has a form of
//! another version says nothing to [`Store::read`]; who must not take the one for the other asks [`Store::load`].

use std::fs;
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::MetadataExt as _;

use gatewright_engine::error::Chain;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::state::{State, StateError};

/// A place for values of one type: a folder, or one file if they have no names.
pub(crate) struct Store<T> {
    folder: &'static str,
    values: PhantomData<fn() -> T>,
}

impl<T> Store<T> {
    /// Names the place below the state folder.
    pub(crate) const fn new(folder: &'static str) -> Self {
        Self { folder, values: PhantomData }
    }

    /// Returns the file of a value, below the state folder.
    pub(crate) fn path(&self, names: &[&str]) -> String {
        [&[self.folder], names].concat().join("/") + ".json"
    }

    /// Removes a value, if there is one.
    pub(crate) fn remove(&self, state: &State, names: &[&str]) -> Result<(), StateError> {
        state.remove(self.path(names))
    }

    /// Returns the last names of all values whose names begin so.
    pub(crate) fn names(&self, state: &State, beginning: &[&str]) -> Vec<String> {
        let names = state.names([&[self.folder], beginning].concat().join("/"));
        names.iter().filter_map(|name| name.strip_suffix(".json")).map(str::to_owned).collect()
    }

    /// Returns the names of all values that have two: a sync and a cluster.
    pub(crate) fn targets(&self, state: &State) -> Vec<(String, String)> {
        let of = |sync: String| {
            let clusters = self.names(state, &[&sync]);
            clusters.into_iter().map(move |cluster| (sync.clone(), cluster))
        };
        state.names(self.folder).into_iter().flat_map(of).collect()
    }
}

impl<T> Store<T> {
    /// Tells whether anything is kept of a cluster for some syncs.
    pub(crate) fn knows(&self, state: &State, cluster: &str, is_meant: impl Fn(&str) -> bool) -> bool {
        self.targets(state).iter().any(|(sync, name)| name == cluster && is_meant(sync))
    }

    /// Keeps what is kept of a cluster for some syncs under another name. What is kept under that name already is newer.
    pub(crate) fn rename(
        &self,
        state: &State,
        (old, new): (&str, &str),
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<(), StateError> {
        let of_cluster = self.targets(state).into_iter().filter(|(sync, name)| name == old && is_meant(sync));
        of_cluster
            .into_iter()
            .try_for_each(|(sync, _)| state.rename(self.path(&[&sync, old]), self.path(&[&sync, new])))
    }

    /// Removes what is kept of a cluster, whatever the sync.
    pub(crate) fn forget(&self, state: &State, cluster: &str) -> Result<(), StateError> {
        let of_cluster = self.targets(state).into_iter().filter(|(_, name)| name == cluster);
        of_cluster.into_iter().try_for_each(|(sync, _)| self.remove(state, &[&sync, cluster]))
    }
}

/// Stands for what a file holds: it is another one whenever the file was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    file: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl<T> Store<T> {
    /// Returns the stamp of a value, without reading it; `None` if there is none.
    pub(crate) fn stamp(&self, state: &State, names: &[&str]) -> Option<Stamp> {
        let metadata = fs::symlink_metadata(state.path(self.path(names))).ok()?;
        // What is written is another file each time, so that the clock of the disk need not be fine.
        let changed = (metadata.mtime(), metadata.mtime_nsec());
        Some(Stamp { file: metadata.ino(), bytes: metadata.len(), changed })
    }
}

impl<T: DeserializeOwned> Store<T> {
    /// Reads a value, if there is one.
    pub(crate) fn read(&self, state: &State, names: &[&str]) -> Option<T> {
        self.load(state, names).ok().flatten()
    }

    /// Reads a value; `None` if there is no such file.
    pub(crate) fn load(&self, state: &State, names: &[&str]) -> Result<Option<T>, StateError> {
        let path = self.path(names);
        let Some(bytes) = state.read(&path)? else { return Ok(None) };
        self.parse(state, names, &bytes).map(Some)
    }

    /// Reads a value from what its file holds.
    pub(crate) fn parse(&self, state: &State, names: &[&str], bytes: &[u8]) -> Result<T, StateError> {
        let value = serde_json::from_slice(bytes);
        let unreadable = |error| io::Error::other(Chain(&error).to_string());
        value.map_err(|error| StateError::Read(state.path(self.path(names)), unreadable(error)))
    }
}

impl<T: Serialize> Store<T> {
    /// Writes a value.
    pub(crate) fn write(&self, state: &State, names: &[&str], value: &T) -> Result<(), StateError> {
        let path = self.path(names);
        let json = serde_json::to_vec(value);
        state.write(&path, &json.map_err(|error| StateError::Write(state.path(&path), error.into()))?)
    }
}
