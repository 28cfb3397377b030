//! Folders and files of the cases of real systems.

use std::fs;
use std::path::{Path, PathBuf};

use gatewright_engine::yaml;
use serde_json::Value;

/// The folders with cases, beside this repository, that are read where `GATEWRIGHT_CASES` names none.
const FOLDERS: [&str; 2] = ["../shared/goldens", "../shared/fresh"];

/// Returns the folders that hold the cases, those only that are there: what `GATEWRIGHT_CASES` names, divided by colons.
#[expect(clippy::disallowed_methods, reason = "the one switch of these tests, for the person who runs them")]
pub(crate) fn folders() -> Vec<PathBuf> {
    let named = std::env::var_os("GATEWRIGHT_CASES").filter(|paths| !paths.is_empty());
    let folders = match named {
        Some(paths) => std::env::split_paths(&paths).collect(),
        None => FOLDERS.map(in_repository).to_vec(),
    };
    folders.into_iter().filter(|folder| folder.is_dir()).collect()
}

pub(super) fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns a folder that belongs to a suite: beside its cases, or in the folder `goldens` beside theirs.
pub(super) fn in_suite(root: &Path, suite: &str, folder: &str) -> PathBuf {
    let own = root.join(folder);
    let other = root.join("../../goldens").join(suite).join(folder);
    if own.is_dir() { own } else { other }
}

/// Collects the folders below this one that hold one of these files, each with its path.
pub(super) fn find(folder: &Path, name: &str, files: &[&str], found: &mut Vec<(String, PathBuf)>) {
    if files.iter().any(|file| folder.join(file).exists()) {
        return found.push((name.to_owned(), folder.to_owned()));
    }
    for below in sorted(folder).iter().filter(|path| path.is_dir()) {
        let part = below.file_name().map(|part| part.to_string_lossy().into_owned()).unwrap_or_default();
        let name = if name.is_empty() { part } else { format!("{name}/{part}") };
        find(below, &name, files, found);
    }
}

/// Returns what a folder holds, in the order of names.
pub(super) fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| die(&folder.display().to_string(), &error.to_string()));
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

pub(super) fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| die(&file.display().to_string(), &error.to_string()))
}

/// Returns the documents of a file that say something.
pub(super) fn read_values(file: &Path) -> Vec<Value> {
    let documents = yaml::parse_values(&read(file));
    let documents = documents.unwrap_or_else(|error| die(&file.display().to_string(), &error.to_string()));
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

#[expect(clippy::panic, reason = "what cannot be read at all fails with its name")]
pub(super) fn die(what: &str, message: &str) -> ! {
    panic!("{what}: {message}")
}

/// Puts settings over others: field by field, where a null says nothing.
pub(super) fn put_over(settings: &mut Value, above: &Value) {
    match (settings, above) {
        (Value::Object(fields), Value::Object(above)) => {
            above.iter().for_each(|(key, value)| put_over(fields.entry(key.as_str()).or_insert(Value::Null), value));
        }
        (_, Value::Null) => {}
        (settings, above) => *settings = above.clone(),
    }
}
