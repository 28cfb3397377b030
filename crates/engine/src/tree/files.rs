//! The files of a pack, as they stand in a folder.
//!
//! Unlike in a source, links are followed, and what cannot be read is an error: a pack is there as a whole, or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The endings of the files of packs; others in a folder are for people.
const ENDINGS: [&str; 4] = ["yaml", "yml", "json", "tera"];

/// No template is as long as this, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// More files than any pack has.
const MAX_FILES: usize = 500;

/// The folder of a pack with its cases, which are no part of it.
pub const CASES: &str = "cases";

/// Files that cannot be read as those of a pack.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// One of them, or a folder, cannot be read.
    #[error("cannot read {0:?}")]
    Read(PathBuf, #[source] io::Error),
    /// There are more than in any pack.
    #[error("{0:?} has more than {MAX_FILES} files")]
    Many(PathBuf),
    /// One is no file of a pack.
    #[error("{0:?} is longer than {MAX_FILE} bytes")]
    Long(PathBuf),
}

/// Reads the files of a pack, by their paths in its folder.
pub fn read(folder: &Path) -> Result<BTreeMap<String, String>, FilesError> {
    let mut files = BTreeMap::new();
    add(folder, "", &mut files)?;
    Ok(files)
}

fn add(path: &Path, prefix: &str, files: &mut BTreeMap<String, String>) -> Result<(), FilesError> {
    for path in entries(path)? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_file_of_pack =
            path.extension().and_then(|ending| ending.to_str()).is_some_and(|it| ENDINGS.contains(&it));
        if name.starts_with('.') || (prefix.is_empty() && name == CASES) {
            continue;
        }
        let fail = |source| FilesError::Read(path.clone(), source);
        let metadata = fs::metadata(&path).map_err(fail)?;
        if metadata.is_dir() {
            add(&path, &format!("{prefix}{name}/"), files)?;
        } else if is_file_of_pack {
            if metadata.len() > MAX_FILE {
                return Err(FilesError::Long(path));
            }
            files.insert(format!("{prefix}{name}"), fs::read_to_string(&path).map_err(fail)?);
        }
        if files.len() > MAX_FILES {
            return Err(FilesError::Many(path));
        }
    }
    Ok(())
}

/// Returns what is in a folder, in the order of the names.
pub fn entries(path: &Path) -> Result<Vec<PathBuf>, FilesError> {
    let fail = |source| FilesError::Read(path.to_owned(), source);
    let entries = fs::read_dir(path).map_err(fail)?;
    let mut paths = entries.map(|entry| Ok(entry.map_err(fail)?.path())).collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    Ok(paths)
}
