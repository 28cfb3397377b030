//! A source as a value: paths and the text behind them.

pub mod files;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest file that is read as a spec. A megabyte is some ten thousand lines; a file above this limit is no
/// spec, and reading it would only cost memory.
pub const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;

/// The most folders and files of a source that are looked at.
pub(crate) const MAX_ENTRIES: usize = 1_000_000;

/// The deepest folder.
pub(crate) const MAX_DEPTH: usize = 100;

/// The most bytes that the files of a source may have together.
pub(crate) const MAX_BYTES: usize = 64 << 20;

/// The name of the file that excludes paths, with gitignore's syntax; it may stand in any folder.
pub const IGNORE_FILE: &str = ".gatewrightignore";

/// The reason why a symbolic link is not entered.
pub const LINK: &str = "it is a symbolic link, and links are not followed";

/// The files of a source at one revision that may hold specs, and what of it could not be read.
///
/// Paths are relative to the root of the source, with `/` between parts, whatever the platform. Of what can be read only
/// YAML and JSON files and [`IGNORE_FILE`] are kept; the rest of a repository is none of our business. What cannot be
/// read, or is not entered, is kept whatever its name is: the absence of what stood there says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    files: BTreeMap<String, Entry>,
}

/// The entry behind a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Readable text.
    Text(Arc<str>),
    /// Something that should be a spec but cannot be read: the reason, lower case.
    Unreadable(String),
    /// Something that is not entered, whatever its name ends in, such as a link or a submodule: the reason, lower case.
    /// Nobody knows what stands there, or below it.
    NotEntered(String),
}

/// Reading a folder failed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file system refused.
    #[error("cannot read {path:?}")]
    Refused {
        /// The folder or file that was to be read.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// It holds more than a source may.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
}

/// A source holds more than is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// Too many files and folders.
    #[error("there are more than {MAX_ENTRIES} files and folders")]
    Entries,
    /// Too many folders inside each other.
    #[error("there are more than {MAX_DEPTH} folders inside each other")]
    Depth,
    /// Too much text.
    #[error("there are more than {} MiB of YAML and JSON", MAX_BYTES >> 20)]
    Bytes,
}

/// The extent to which a source was read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    entries: usize,
    bytes: usize,
}

impl Extent {
    /// Counts a file or a folder.
    pub fn entry(&mut self) -> Result<(), TooLarge> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES { Err(TooLarge::Entries) } else { Ok(()) }
    }

    /// Counts what a file holds.
    pub fn file(&mut self, bytes: usize) -> Result<(), TooLarge> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_BYTES { Err(TooLarge::Bytes) } else { Ok(()) }
    }

    /// Tells whether a folder so deep is read.
    pub fn folder(depth: usize) -> Result<(), TooLarge> {
        if depth > MAX_DEPTH { Err(TooLarge::Depth) } else { Ok(()) }
    }
}

/// Says what a file is whose bytes are UTF-8 up to a place.
fn not_text(bytes: &[u8], valid: usize) -> String {
    let before = String::from_utf8_lossy(bytes.get(..valid).unwrap_or_default());
    let line = before.matches('\n').count() + 1;
    match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "the file is UTF-16 text (save it as UTF-8)".to_owned(),
        _ if bytes.contains(&0) => "the file is not text".to_owned(),
        _ => format!("the file is not UTF-8 text: see line {line} (save it as UTF-8)"),
    }
}

impl Tree {
    /// Tells whether a path may hold specs, so that a source need not load anything else.
    ///
    /// Nothing below a hidden folder (`.git`, `.github`) does.
    pub fn wants(path: &str) -> bool {
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        if Self::is_hidden(folders) {
            return false;
        }
        let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
        name == IGNORE_FILE || matches!(extension.as_deref(), Some("yaml" | "yml" | "json"))
    }

    /// Adds a file, if it may hold specs.
    pub fn insert(&mut self, path: impl Into<String>, bytes: Vec<u8>) {
        let path = path.into();
        if !Self::wants(&path) {
            return;
        }
        let entry = match String::from_utf8(bytes) {
            Ok(text) => Entry::Text(text.into()),
            Err(error) => Entry::Unreadable(not_text(error.as_bytes(), error.utf8_error().valid_up_to())),
        };
        self.files.insert(path, entry);
    }

    /// Adds a file or a folder that cannot be read, with the reason.
    pub fn insert_unreadable(&mut self, path: impl Into<String>, reason: impl Into<String>) {
        self.files.insert(path.into(), Entry::Unreadable(reason.into()));
    }

    /// Adds a path that is not entered, with the reason. One that is named like a spec should be one.
    pub fn insert_not_entered(&mut self, path: impl Into<String>, reason: impl Into<String>) {
        let (path, reason) = (path.into(), reason.into());
        if Self::is_hidden(&path) && !Self::wants(&path) {
            return;
        }
        let entry = if Self::wants(&path) { Entry::Unreadable(reason) } else { Entry::NotEntered(reason) };
        self.files.insert(path, entry);
    }

    /// Adds a regular file that holds no specs. One that is called as a folder may stand where a folder was.
    pub fn insert_other(&mut self, path: impl Into<String>) {
        let path = path.into();
        let name = path.rsplit_once('/').map_or(path.as_str(), |(_, name)| name);
        let is_version = |end: &str| end.chars().all(|c| c.is_ascii_digit());
        if name.rsplit_once('.').is_none_or(|(_, end)| is_version(end)) {
            self.insert_not_entered(path, "it is a file, and no folder");
        }
    }

    /// Tells whether nothing below a folder is ever read, because it is hidden.
    pub fn is_hidden(folder: &str) -> bool {
        folder.split('/').any(|part| part.starts_with('.'))
    }

    /// Adds the files of another tree, below a folder.
    pub fn absorb(&mut self, folder: &str, other: Self) {
        let folder = folder.trim_end_matches('/');
        let path = |path: String| if folder.is_empty() { path } else { format!("{folder}/{path}") };
        self.files.extend(other.files.into_iter().map(|(name, entry)| (path(name), entry)));
    }

    /// Forgets a path.
    pub fn remove(&mut self, path: &str) {
        self.files.remove(path);
    }

    /// Returns some of it, its paths as they are.
    #[must_use]
    pub fn only(&self, keep: impl Fn(&str, &Entry) -> bool) -> Self {
        let files = self.files.iter().filter(|(path, entry)| keep(path, entry));
        Self { files: files.map(|(path, entry)| (path.clone(), entry.clone())).collect() }
    }

    /// Returns the files in the order of their paths.
    pub fn files(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.files.iter().map(|(path, entry)| (path.as_str(), entry))
    }

    /// Returns the text of a file.
    pub fn text(&self, path: &str) -> Option<&str> {
        match self.files.get(path)? {
            Entry::Text(text) => Some(text),
            Entry::Unreadable(_) | Entry::NotEntered(_) => None,
        }
    }

    /// Puts another text in the place of one that is there.
    pub fn replace(&mut self, path: &str, text: &str) {
        if let Some(entry) = self.files.get_mut(path) {
            *entry = Entry::Text(text.into());
        }
    }

    /// Tells whether there is nothing in it that may hold specs.
    pub fn is_empty(&self) -> bool {
        self.files.values().all(|entry| matches!(entry, Entry::NotEntered(_)))
    }

    /// Returns the part below a folder, its paths still relative to the root of the source; `.` is the whole.
    #[must_use]
    pub fn below(&self, folder: &str) -> Self {
        let folder = folder.trim_start_matches("./").trim_matches('/');
        if folder.is_empty() || folder == "." {
            return self.clone();
        }
        let within = |path: &str| is_within(path, folder);
        // A folder above it that was not read speaks for all below it.
        let is_unread_above = |path: &str, entry: &Entry| !matches!(entry, Entry::Text(_)) && is_within(folder, path);
        let keep = |path: &str, entry: &Entry| {
            within(path) || is_ignore_file_above(path, folder) || is_unread_above(path, entry)
        };
        self.only(keep)
    }

    /// Reads a folder, or a single file, from disk. The one effect in this package.
    ///
    /// Symbolic links are not followed, and hidden folders (`.git`) are left out, so that nothing outside of the
    /// folder can get in. What is not read, for whatever reason, is an entry that says so, and not an error.
    pub fn read_dir(root: &Path) -> Result<Self, ReadError> {
        let mut tree = Self::default();
        let fail = |source| ReadError::Refused { path: root.to_owned(), source };
        let metadata = fs::metadata(root).map_err(fail)?;
        if metadata.is_file() {
            let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            tree.read_file(root, name, &mut Extent::default())?;
        } else {
            tree.read_folder(root, ("", 0), &mut Extent::default())?;
        }
        Ok(tree)
    }

    fn read_folder(
        &mut self,
        folder: &Path,
        (prefix, depth): (&str, usize),
        extent: &mut Extent,
    ) -> Result<(), ReadError> {
        let fail = |source| ReadError::Refused { path: folder.to_owned(), source };
        Extent::folder(depth)?;
        for entry in fs::read_dir(folder).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            extent.entry()?;
            let file_type = entry.file_type().map_err(fail)?;
            let shown = entry.file_name().to_string_lossy().into_owned();
            let path = if prefix.is_empty() { shown.clone() } else { format!("{prefix}/{shown}") };
            if entry.file_name().to_str().is_none() {
                // Two such names may look the same, so that neither can be told by it.
                self.insert_not_entered(path, "its name is not UTF-8");
            } else if file_type.is_dir() {
                self.read_folder_below(&entry.path(), (path, depth + 1), extent)?;
            } else if file_type.is_file() {
                if Self::wants(&path) {
                    self.read_file(&entry.path(), path, extent)?;
                } else {
                    self.insert_other(path);
                }
            } else if file_type.is_symlink() {
                self.insert_not_entered(path, LINK);
            } else {
                self.insert_not_entered(path, "it is neither a file nor a folder");
            }
        }
        Ok(())
    }

    /// A folder that cannot be listed spoils what is in it, and nothing else.
    fn read_folder_below(
        &mut self,
        folder: &Path,
        (path, depth): (String, usize),
        extent: &mut Extent,
    ) -> Result<(), ReadError> {
        if Self::is_hidden(&path) {
            return Ok(());
        }
        match self.read_folder(folder, (&path, depth), extent) {
            // Nothing in it says that something else stands here now.
            Ok(()) if Self::wants(&path) && !self.holds(&path) => {
                self.insert_unreadable(path, "it is an empty folder, and no file");
                Ok(())
            }
            Err(ReadError::Refused { source, .. }) => {
                self.insert_unreadable(path, format!("the folder cannot be listed: {source}"));
                Ok(())
            }
            other => other,
        }
    }

    /// Tells whether something below a folder is known.
    fn holds(&self, folder: &str) -> bool {
        let below = format!("{folder}/");
        self.files.range(below.clone()..).next().is_some_and(|(path, _)| path.starts_with(&below))
    }

    fn read_file(&mut self, file: &Path, path: String, extent: &mut Extent) -> Result<(), TooLarge> {
        match fs::metadata(file) {
            Ok(metadata) if metadata.len() > MAX_FILE_BYTES => {
                self.insert_unreadable(path, format!("the file is larger than {} MiB", MAX_FILE_BYTES >> 20));
            }
            _ => match fs::read(file) {
                Ok(bytes) => {
                    extent.file(bytes.len())?;
                    self.insert(path, bytes);
                }
                Err(error) => self.insert_unreadable(path, format!("the file cannot be read: {error}")),
            },
        }
        Ok(())
    }
}

/// Tells whether a path is a folder or stands below it.
pub(crate) fn is_within(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Ignore files in the folders above a sub-path go on to speak for it.
fn is_ignore_file_above(path: &str, folder: &str) -> bool {
    match path.strip_suffix(IGNORE_FILE) {
        Some("") => true,
        Some(parent) => folder.starts_with(parent),
        None => false,
    }
}

impl<P: Into<String>, T: Into<Vec<u8>>> FromIterator<(P, T)> for Tree {
    fn from_iter<I: IntoIterator<Item = (P, T)>>(files: I) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            tree.insert(path, text.into());
        }
        tree
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(tree: &Tree) -> Vec<&str> {
        tree.files().map(|(path, _)| path).collect()
    }

    #[test]
    fn only_what_may_be_a_spec_is_kept() {
        let tree = Tree::from_iter([
            ("a.yaml", ""),
            ("b/c.YML", ""),
            ("README.md", ""),
            (".github/x.yaml", ""),
            ("d.json", ""),
            ("Makefile", ""),
        ]);
        assert_eq!(paths(&tree), ["a.yaml", "b/c.YML", "d.json"]);
    }

    #[test]
    fn a_sub_path_keeps_the_ignore_files_above_it() {
        let all = [
            (".gatewrightignore", ""),
            ("a/.gatewrightignore", ""),
            ("a/b/x.yaml", ""),
            ("ab/y.yaml", ""),
            ("c/.gatewrightignore", ""),
        ];
        let tree = Tree::from_iter(all).below("a/b");
        assert_eq!(paths(&tree), [".gatewrightignore", "a/.gatewrightignore", "a/b/x.yaml"]);
    }

    #[test]
    fn a_source_is_read_up_to_its_limits() {
        let mut extent = Extent::default();
        assert_eq!(extent.file(MAX_BYTES), Ok(()));
        assert_eq!(extent.file(1), Err(TooLarge::Bytes));
        let counted = (0..=MAX_ENTRIES).filter(|_| extent.entry().is_ok()).count();
        assert_eq!(counted, MAX_ENTRIES);
        assert_eq!((Extent::folder(MAX_DEPTH), Extent::folder(MAX_DEPTH + 1)), (Ok(()), Err(TooLarge::Depth)));
    }

    #[test]
    fn bytes_that_are_no_text_are_told_with_their_line() {
        let check = |bytes: &[u8], expected: &str| {
            let mut tree = Tree::default();
            tree.insert("a.yaml", bytes.to_vec());
            let entry = tree.files().next().map(|(_, entry)| entry.clone());
            assert!(matches!(&entry, Some(Entry::Unreadable(reason)) if reason == expected), "{entry:?}");
        };
        check(b"a: 1\nb: caf\xe9\n", "the file is not UTF-8 text: see line 2 (save it as UTF-8)");
        check(b"\xff\xfea\0:\0", "the file is UTF-16 text (save it as UTF-8)");
        check(b"\x7fELF\0\xff", "the file is not text");
    }
}
