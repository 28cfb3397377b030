//! The files of a workspace: as they are on disk, and as they are in the editor.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use gatewright_engine::tree::{Entry, IGNORE_FILE, Tree};
use tower_lsp_server::ls_types::{Diagnostic, TextDocumentContentChangeEvent, Uri};

use super::index::Index;
use super::setup::Setup;
use super::split::{Same, height, only, split};
use super::text::Encoding;

/// The most documents that are checked at once when one is changed. What has to do with more is checked when all is.
const MOST_AROUND: usize = 200;

/// A text in the editor.
#[derive(Clone, Debug)]
struct Open {
    uri: Uri,
    version: i32,
    text: Arc<str>,
}

/// The files of a workspace. A file is known by its path below the folder, and one that is not in it by its address.
#[derive(Default)]
pub(super) struct Workspace {
    /// The folder that the editor has open.
    pub(super) root: Option<PathBuf>,
    /// The folders and files in it that hold specs; all of it if there are none.
    pub(super) paths: Vec<PathBuf>,
    /// The units of positions.
    pub(super) encoding: Encoding,
    /// The config file, if there is one.
    pub(super) config: Option<PathBuf>,
    /// What documents are checked by, once that was read.
    pub(super) setup: Option<Arc<Setup>>,
    /// Whether the config file, or something that it names, may have changed since.
    pub(super) is_setup_stale: bool,
    /// Documents that are there.
    pub(super) index: Index,
    /// The number of changes so far.
    pub(super) generation: u64,
    /// The diagnostics that the editor has.
    pub(super) published: BTreeMap<String, Vec<Diagnostic>>,
    /// The texts in the editor that they are about.
    pub(super) checked: BTreeMap<String, Arc<str>>,
    tree: Tree,
    open: BTreeMap<String, Open>,
    changed: BTreeSet<String>,
}

/// Some files that are to be checked.
pub(super) struct Job {
    /// What they are checked by.
    pub(super) setup: Arc<Setup>,
    /// The files.
    pub(super) tree: Tree,
    /// The file whose findings count; all of them if there is none.
    pub(super) of: Option<Subject>,
    /// Which change it is about.
    pub(super) generation: u64,
}

/// A file whose findings count.
#[derive(Clone, Debug, Default)]
pub(super) struct Subject {
    /// The key that it is known by.
    pub(super) key: String,
    /// Its name among the files that are checked.
    pub(super) name: String,
    /// Its version in the editor.
    pub(super) version: Option<i32>,
    /// Its text.
    pub(super) text: Arc<str>,
    /// The parts of it whose findings count: they have changed. All if there are none.
    pub(super) parts: Option<BTreeSet<usize>>,
}

impl Subject {
    /// Returns the lines whose findings count, from 0. `None` if all do.
    pub(super) fn lines(&self) -> Option<Vec<Range<u32>>> {
        let tops = tops(&split(&self.text));
        let lines = |part: &usize| Some(*tops.get(*part)?..*tops.get(part + 1)?);
        Some(self.parts.as_ref()?.iter().filter_map(lines).collect())
    }
}

impl Workspace {
    /// Begins with nothing but the paths that hold specs.
    pub(super) fn of(paths: Vec<PathBuf>) -> Self {
        Self { paths, ..Self::default() }
    }

    /// Reads what is on disk, below the texts that the editor has.
    pub(super) fn load(&mut self) {
        let Some(root) = self.root.clone() else { return };
        self.tree = Tree::default();
        for path in self.folders(&root) {
            let Ok(part) = Tree::read_dir(&root.join(&path)) else { continue };
            let folder = if root.join(&path).is_file() { path.parent().unwrap_or(Path::new("")) } else { &path };
            self.tree.absorb(&folder.to_string_lossy(), part);
        }
        let others: Vec<String> =
            self.tree.files().map(|(path, _)| path.to_owned()).filter(|path| !self.holds_specs(path)).collect();
        for path in &others {
            self.tree.remove(path);
        }
        let open = self.open.iter().filter(|(key, _)| self.holds_specs(key));
        let open: Vec<(String, Arc<str>)> = open.map(|(key, open)| (key.clone(), Arc::clone(&open.text))).collect();
        for (key, text) in open {
            self.tree.insert(key, text.as_bytes().to_vec());
        }
        self.index = Index::default();
        for (path, entry) in self.tree.files() {
            if let Entry::Text(text) = entry {
                self.index.read(path, text);
            }
        }
    }

    /// Returns what a file is known by.
    pub(super) fn key(&self, uri: &Uri) -> String {
        let path = uri.to_file_path();
        let below = path.as_deref().zip(self.root.as_deref()).and_then(|(path, root)| path.strip_prefix(root).ok());
        below.and_then(Path::to_str).map_or_else(|| uri.as_str().to_owned(), str::to_owned)
    }

    /// Returns the address of a file.
    pub(super) fn uri(&self, key: &str) -> Option<Uri> {
        if let Some(open) = self.open.get(key) {
            return Some(open.uri.clone());
        }
        match &self.root {
            Some(root) if !key.contains("://") => Uri::from_file_path(root.join(key)),
            _ => Uri::from_str(key).ok(),
        }
    }

    /// Returns the folders and files that hold specs, by their paths below the folder that is open: those that were named,
    /// else those that are sources by the config file, else all of it.
    fn folders(&self, root: &Path) -> Vec<PathBuf> {
        let sources = self.setup.iter().filter_map(|it| it.config.as_ref()).flat_map(|it| it.settings.sources.values());
        let paths = sources.filter_map(|source| source.directory.as_ref()).map(|it| it.path.as_path());
        let below = paths.filter_map(|path| path.strip_prefix(root).ok()).map(Path::to_owned);
        match &self.paths {
            named if !named.is_empty() => named.clone(),
            _ => Some(below.collect::<Vec<_>>()).filter(|it| !it.is_empty()).unwrap_or_else(|| vec![PathBuf::new()]),
        }
    }

    /// Tells whether a file is one of those that are checked.
    fn holds_specs(&self, key: &str) -> bool {
        let Some(root) = &self.root else { return false };
        let path = root.join(key);
        let is_named = self.folders(root).iter().any(|it| path.starts_with(root.join(it)));
        let others = self.setup.iter().flat_map(|setup| setup.others()).chain(self.config.clone());
        is_named && !key.contains("://") && Tree::wants(key) && others.into_iter().all(|it| !path.starts_with(it))
    }

    /// Tells whether a file is the config file.
    pub(super) fn is_config(&self, key: &str) -> bool {
        self.root.as_ref().zip(self.config.as_ref()).is_some_and(|(root, config)| root.join(key) == *config)
    }

    /// Returns what a file is called as the config file, if it is that.
    pub(super) fn config_key(&self) -> Option<String> {
        let (config, root) = (self.config.as_ref()?, self.root.as_ref()?);
        let below = config.strip_prefix(root).ok().and_then(Path::to_str).map(str::to_owned);
        below.or_else(|| Uri::from_file_path(config).map(|uri| uri.as_str().to_owned()))
    }

    /// Takes a text that was opened in the editor.
    pub(super) fn open(&mut self, uri: Uri, version: i32, text: String) {
        let key = self.key(&uri);
        self.open.insert(key.clone(), Open { uri, version, text: text.into() });
        self.touch(&key);
    }

    /// Changes a text in the editor.
    pub(super) fn change(&mut self, uri: &Uri, version: i32, changes: &[TextDocumentContentChangeEvent]) {
        let (key, encoding) = (self.key(uri), self.encoding);
        let Some(open) = self.open.get_mut(&key) else { return };
        let mut text = open.text.to_string();
        for change in changes {
            encoding.change(&mut text, change);
        }
        (open.version, open.text) = (version, text.into());
        self.touch(&key);
    }

    /// Forgets a text that was closed: what is on disk counts again.
    pub(super) fn close(&mut self, uri: &Uri) {
        let key = self.key(uri);
        self.open.remove(&key);
        self.checked.remove(&key);
        self.read_again(&key);
    }

    /// Reads a file again that has changed on disk; not one that is in the editor.
    pub(super) fn read_again(&mut self, key: &str) {
        if self.open.contains_key(key) {
            return;
        }
        let path = self.root.as_ref().map(|root| root.join(key));
        match path.map(fs::read).filter(|_| self.holds_specs(key)) {
            Some(Ok(bytes)) => self.tree.insert(key, bytes),
            _ => self.tree.remove(key),
        }
        self.touch(key);
    }

    /// Notes that a file has changed.
    fn touch(&mut self, key: &str) {
        self.generation += 1;
        if let Some(open) = self.open.get(key).filter(|_| self.holds_specs(key)) {
            self.tree.insert(key, open.text.as_bytes().to_vec());
        }
        match self.tree.text(key) {
            Some(text) => self.index.read(key, text),
            None => self.index.remove(key),
        }
        let path = self.root.as_ref().map(|root| root.join(key));
        let others = self.setup.iter().flat_map(|setup| setup.others());
        self.is_setup_stale |=
            self.is_config(key) || others.into_iter().any(|it| path.as_ref().is_some_and(|path| path.starts_with(it)));
        self.changed.insert(key.to_owned());
    }

    /// Returns the text of a file, as the editor has it or as it is on disk.
    pub(super) fn text(&self, key: &str) -> Option<Arc<str>> {
        let open = self.open.get(key).map(|open| Arc::clone(&open.text));
        open.or_else(|| self.tree.text(key).map(Arc::from))
    }

    /// Returns the version of a text in the editor.
    pub(super) fn version(&self, key: &str) -> Option<i32> {
        self.open.get(key).map(|open| open.version)
    }

    /// Returns the next file in the editor that has changed: the documents of it that have, with all that they have to do
    /// with.
    pub(super) fn next(&mut self) -> Option<Job> {
        let (setup, generation) = (Arc::clone(self.setup.as_ref()?), self.generation);
        while let Some(key) = self.changed.pop_first() {
            let Some(open) = self.open.get(&key) else {
                if self.tree.text(&key).is_none() && self.published.contains_key(&key) {
                    // It is gone, and so is what was wrong with it.
                    let of = Some(Subject { name: key.clone(), key, ..Subject::default() });
                    return Some(Job { setup, tree: Tree::default(), of, generation });
                }
                continue;
            };
            let subject = Subject { version: Some(open.version), text: Arc::clone(&open.text), ..Subject::default() };
            if self.root.is_none() {
                let name = key.rsplit('/').next().unwrap_or(&key);
                let name = if Tree::wants(name) { name.to_owned() } else { format!("{name}.yaml") };
                let tree = Tree::from_iter([(name.clone(), open.text.as_bytes().to_vec())]);
                return Some(Job { setup, tree, of: Some(Subject { key, name, ..subject }), generation });
            }
            let parts = self.changed_parts(&key, &open.text);
            let Some(tree) = self.part(&key, &parts) else { continue };
            let of = Some(Subject { name: key.clone(), key, parts: Some(parts.into_iter().collect()), ..subject });
            return Some(Job { setup, tree, of, generation });
        }
        None
    }

    /// Returns the parts of a text that are not known to be as they were when the file was checked.
    fn changed_parts(&self, key: &str, text: &str) -> Vec<usize> {
        let parts = split(text);
        let Some(before) = self.checked.get(key) else { return (0..parts.len()).collect() };
        let before = split(before);
        let same = Same::of(&before, &parts);
        (same.first..parts.len() - same.last).collect()
    }

    /// Returns the document of a file at a line, from 0, with all that it has to do with, if that is not too much.
    pub(super) fn around(&self, uri: &Uri, line: u32) -> Option<Job> {
        let (key, setup) = (self.key(uri), Arc::clone(self.setup.as_ref()?));
        let text = self.text(&key)?;
        let part = part_at(&text, line);
        let (tree, version) = (self.part(&key, &[part])?, self.version(&key));
        let of = Some(Subject { name: key.clone(), key, version, text, parts: Some([part].into()) });
        Some(Job { setup, tree, of, generation: self.generation })
    }

    /// Returns the documents that some parts of a file have to do with, if these are not too many.
    fn part(&self, key: &str, parts: &[usize]) -> Option<Tree> {
        if !self.holds_specs(key) {
            return None;
        }
        let files = self.index.around(key, parts, MOST_AROUND)?;
        let is_needed = |path: &str, entry: &Entry| {
            !matches!(entry, Entry::Text(_)) || files.contains_key(path) || path.ends_with(IGNORE_FILE)
        };
        let mut tree = self.tree.only(is_needed);
        for (path, parts) in &files {
            let all = split(self.tree.text(path).unwrap_or_default());
            if parts.len() < all.len() {
                tree.insert(&**path, only(&all, |part| parts.contains(&part)).into_bytes());
            }
        }
        Some(tree)
    }

    /// Returns what is known of the parts of a file that have not changed.
    pub(super) fn known(&self, subject: &Subject) -> Vec<Diagnostic> {
        let (Some(checked), Some(parts)) = (self.checked.get(&subject.key), &subject.parts) else { return Vec::new() };
        let known = self.published.get(&subject.key).map_or(&[][..], Vec::as_slice);
        kept(known, (&split(checked), &split(&subject.text)), parts)
    }

    /// Notes which texts the diagnostics that are published are about.
    pub(super) fn note(&mut self, of: Option<&Subject>) {
        match of {
            Some(subject) if self.open.contains_key(&subject.key) => {
                self.checked.insert(subject.key.clone(), Arc::clone(&subject.text));
            }
            Some(_) => {}
            None => self.checked = self.open.iter().map(|(key, open)| (key.clone(), Arc::clone(&open.text))).collect(),
        }
    }

    /// Returns all files.
    pub(super) fn all(&self) -> Option<Job> {
        let setup = Arc::clone(self.setup.as_ref()?);
        self.root.as_ref()?;
        Some(Job { setup, tree: self.tree.clone(), of: None, generation: self.generation })
    }
}

/// Returns the diagnostics of an older text that are about parts that the newer one has as well, where they are now, but
/// for those of some parts of the newer one.
fn kept(known: &[Diagnostic], (old, new): (&[&str], &[&str]), but: &BTreeSet<usize>) -> Vec<Diagnostic> {
    let (same, number) = (Same::of(old, new), (old.len(), new.len()));
    let (from, to) = (tops(old), tops(new));
    let parts = (0..new.len()).filter(|part| !but.contains(part));
    let pairs = parts.filter_map(|part| Some((same.before(part, number)?, part)));
    let moved = |(before, now): (usize, usize)| {
        let (lines, top, to) = (from[before]..from[before + 1], from[before], to[now]);
        let here = known.iter().filter(move |it| lines.contains(&it.range.start.line)).cloned();
        here.map(move |mut diagnostic| {
            for position in [&mut diagnostic.range.start, &mut diagnostic.range.end] {
                position.line = position.line - top + to;
            }
            diagnostic
        })
    };
    pairs.flat_map(moved).collect()
}

/// Returns the first line of each part, from 0, and that behind the last one.
fn tops(parts: &[&str]) -> Vec<u32> {
    let mut tops = vec![0];
    for part in parts {
        tops.push(tops.last().copied().unwrap_or_default() + height(part));
    }
    // The last line may have no end.
    if let Some(last) = tops.last_mut() {
        *last = u32::MAX;
    }
    tops
}

/// Returns which part of a text has a line, from 0.
fn part_at(text: &str, line: u32) -> usize {
    tops(&split(text)).iter().skip(1).take_while(|top| **top <= line).count()
}
