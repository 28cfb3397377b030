//! Packs that a program is built with, beside those in folders.
//!
//! A folder of somebody else may replace some of their files, or all; the generator in Rust stays, where a pack has one,
//! and so does what is known of kinds, unless the folder says otherwise: a deletion that had to be approved still has to be.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use super::manifest::Manifest;
use super::{MANIFEST, Pack, PackError};
use crate::kinds;

/// The files of a pack, by their names.
pub type Files<'a> = BTreeMap<&'a str, &'a str>;

/// Puts a pack together from its files and settings (`packs.<name>` of the config file; `null` for none).
pub type Build = fn(&Files<'_>, &Value) -> Result<Pack, PackError>;

/// A pack that a program is built with.
#[derive(Clone)]
pub struct Builtin {
    /// Its name, as in its `pack.yaml`.
    pub name: &'static str,
    /// Its files.
    pub files: Files<'static>,
    /// Makes it ready for use.
    pub build: Build,
}

impl fmt::Debug for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builtin").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Returns a pack made of files of a folder: a built-in one with these in place of its own, or another one.
pub fn with_files(builtin: &[Builtin], name: &str, own: &Files<'_>, settings: &Value) -> Result<Pack, PackError> {
    let found = builtin.iter().find(|pack| pack.name == name);
    let mut files: Files<'_> = found.map(|pack| pack.files.clone()).unwrap_or_default();
    files.extend(own);
    if !files.contains_key(MANIFEST) {
        return Err(PackError::Unknown(name.to_owned()));
    }
    let mut pack = found.map_or(declared as Build, |pack| pack.build)(&files, settings)?;
    if let Some(found) = found.filter(|_| !own.is_empty()) {
        kinds::add_missing(&mut pack.manifest.kinds, Manifest::read(&found.files)?.kinds);
    }
    if pack.manifest.name == name { Ok(pack) } else { Err(PackError::Name(pack.manifest.name)) }
}

/// Puts a declarative pack together: templates see `settings` of its settings.
pub fn declared(files: &Files<'_>, settings: &Value) -> Result<Pack, PackError> {
    Pack::declared(files, &settings["settings"])
}
