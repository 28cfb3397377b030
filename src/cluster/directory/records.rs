//! The knowledge of the directory about itself: its identity, and our records.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::Problem;
use super::file::{self, digest};
use super::store::names_in;
use crate::cluster::{RECORD_PREFIX, Record};

const FOLDER: &str = ".gatewright";

/// Returns the identity; empty if nothing was ever written.
pub(super) fn identity(root: &Path) -> Result<String, Problem> {
    Ok(file::read(root, &identity_path())?.unwrap_or_default().trim().to_owned())
}

/// Keeps other writers away until the result is dropped, and gives the directory its identity if it has none.
pub(super) fn lock(root: &Path) -> Result<File, Problem> {
    let folder = root.join(FOLDER);
    let locked = || {
        fs::create_dir_all(&folder)?;
        let file = File::open(&folder)?;
        file.lock()?;
        Ok(file)
    };
    let lock = locked().map_err(|error| Problem::Io(folder.clone(), error))?;
    if identity(root)?.is_empty() {
        file::write(root, &identity_path(), &format!("{:032x}\n", rand::random::<u128>()), file::FOR_ALL)?;
    }
    Ok(lock)
}

pub(super) fn read(root: &Path, name: &str) -> Result<Option<Record>, Problem> {
    let Some(text) = file::read(root, &path_of(name)?)? else { return Ok(None) };
    let data = serde_json::from_str(&text);
    let data = data.map_err(|error| Problem::Unusable(format!("its file is no JSON of texts ({error})")))?;
    Ok(Some(Record { data, version: digest(text.as_bytes()) }))
}

pub(super) fn names(root: &Path) -> Result<BTreeSet<String>, Problem> {
    let names = names_in(&root.join(FOLDER))?;
    let names = names.iter().filter_map(|name| name.strip_suffix(".json"));
    Ok(names.filter(|name| name.starts_with(RECORD_PREFIX)).map(str::to_owned).collect())
}

/// Writes a record over the version that was read, or as a new one.
pub(super) fn write(
    root: &Path,
    name: &str,
    data: &BTreeMap<String, String>,
    over: Option<&str>,
) -> Result<String, Problem> {
    let path = path_of(name)?;
    let _lock = lock(root)?;
    let version = file::read(root, &path)?.map(|text| digest(text.as_bytes()));
    if version.as_deref() != over {
        return Err(Problem::Changed("its file is not the one that was read".to_owned()));
    }
    let text = serde_json::to_string_pretty(data).map_err(|error| Problem::Unusable(error.to_string()))? + "\n";
    file::write(root, &path, &text, file::FOR_ALL)?;
    Ok(digest(text.as_bytes()))
}

/// Deletes a record, of this version if that matters.
pub(super) fn delete(root: &Path, name: &str, over: Option<&str>) -> Result<(), Problem> {
    let path = path_of(name)?;
    if file::read(root, &path)?.is_none() {
        return Ok(());
    }
    let _lock = lock(root)?;
    let version = file::read(root, &path)?.map(|text| digest(text.as_bytes()));
    if over.is_some() && version.is_some() && version.as_deref() != over {
        return Err(Problem::Changed("its file is not the one that was read".to_owned()));
    }
    file::delete(root, &path)
}

fn path_of(name: &str) -> Result<PathBuf, Problem> {
    Ok(Path::new(FOLDER).join(file::file_name(name, "json")?))
}

fn identity_path() -> PathBuf {
    Path::new(FOLDER).join("identity")
}
