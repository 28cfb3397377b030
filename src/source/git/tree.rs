//! Reading the files of a commit straight from the object database.
//!
//! There is no work tree, so nothing in a repository can write outside of one, and neither filters, attributes nor
//! hooks ever run.
//! Links are not followed and submodules not entered: both would read what the commit does not hold.

use std::path::Path;

use gatewright_engine::tree::{Extent, IGNORE_FILE, LINK, MAX_FILE_BYTES, TooLarge, Tree};
use git2::{ErrorCode, ObjectType, Oid, Repository, TreeEntry};

use super::failure::Failure;
use crate::source::Reason;

/// The beginning of a file that Git LFS keeps elsewhere.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// The kinds of entry, by their mode. The lowest bits only say who may read a file.
const KIND: i32 = 0o170_000;
const REGULAR: i32 = 0o100_000;
const SYMLINK: i32 = 0o120_000;
const SUBMODULE: i32 = 0o160_000;

/// Reads what may hold specs of a commit, at and below a path.
pub(super) fn read(repository: &Repository, commit: Oid, path: &str) -> Result<Tree, Failure> {
    let object = repository.find_object(commit, None).map_err(|error| match error.code() {
        ErrorCode::NotFound => no_commit(commit),
        _ => Failure::of_mirror(&error),
    })?;
    let root = object.peel_to_tree().map_err(|_| no_commit(commit))?;
    if !path.is_empty() && !holds(&root, path) {
        let hint = "Correct `path`, or `ref` if the folder is on another branch.";
        return Err(Failure::new(Reason::NotFound, format!("the commit has no {path:?}")).hint(hint));
    }
    let mut reader = Reader { repository, path, tree: Tree::default(), extent: Extent::default() };
    // A list and not recursion, so that no repository can exhaust the stack.
    let mut folders = vec![(String::new(), root.id(), 0)];
    while let Some((prefix, id, depth)) = folders.pop() {
        Extent::folder(depth).map_err(too_large)?;
        let inner = reader.read_folder(&prefix, id)?;
        folders.extend(inner.into_iter().map(|(prefix, id)| (prefix, id, depth + 1)));
    }
    Ok(reader.tree.below(path))
}

fn no_commit(commit: Oid) -> Failure {
    Failure::new(Reason::NotFound, format!("there is no commit {commit}")).hint("Correct `ref`.")
}

fn too_large(error: TooLarge) -> Failure {
    Failure::new(Reason::Invalid, error).hint("Point `path` at the folder that holds the specs.")
}

/// Tells whether there is a folder or a regular file of that path.
fn holds(root: &git2::Tree<'_>, path: &str) -> bool {
    root.get_path(Path::new(path))
        .is_ok_and(|entry| entry.kind() == Some(ObjectType::Tree) || entry.filemode() & KIND == REGULAR)
}

struct Reader<'a> {
    repository: &'a Repository,
    path: &'a str,
    tree: Tree,
    extent: Extent,
}

impl Reader<'_> {
    /// Reads the files of one folder, and returns the folders in it that matter.
    fn read_folder(&mut self, prefix: &str, id: Oid) -> Result<Vec<(String, Oid)>, Failure> {
        let folder = self.repository.find_tree(id).map_err(|error| Failure::of_mirror(&error))?;
        let mut inner = Vec::new();
        for entry in &folder {
            self.extent.entry().map_err(too_large)?;
            let name = String::from_utf8_lossy(entry.name_bytes());
            let path = if prefix.is_empty() { name.to_string() } else { format!("{prefix}/{name}") };
            let matters = is_within(&path, self.path) || is_within(self.path, &path);
            if std::str::from_utf8(entry.name_bytes()).is_err() {
                // Two such names may look the same, so that neither can be told by it.
                self.tree.insert_not_entered(path, "its name is not UTF-8");
            } else if entry.kind() == Some(ObjectType::Tree) {
                if !name.starts_with('.') && matters {
                    inner.push((path, entry.id()));
                }
            } else if matters || name == IGNORE_FILE {
                self.read_entry(path, &entry)?;
            }
        }
        Ok(inner)
    }

    fn read_entry(&mut self, path: String, entry: &TreeEntry<'_>) -> Result<(), Failure> {
        match entry.filemode() & KIND {
            REGULAR if Tree::wants(&path) => self.read_file(path, entry)?,
            REGULAR => self.tree.insert_other(path),
            SYMLINK => self.tree.insert_not_entered(path, LINK),
            SUBMODULE => self.tree.insert_not_entered(path, "it is a submodule, and submodules are not entered"),
            mode => self.tree.insert_not_entered(path, format!("it is of an unknown kind (mode {mode:o})")),
        }
        Ok(())
    }

    fn read_file(&mut self, path: String, entry: &TreeEntry<'_>) -> Result<(), Failure> {
        let damaged = |error| Failure::of_mirror(&error);
        let (size, _) = self.repository.odb().and_then(|odb| odb.read_header(entry.id())).map_err(damaged)?;
        if u64::try_from(size).unwrap_or(u64::MAX) > MAX_FILE_BYTES {
            self.tree.insert_unreadable(path, format!("the file is larger than {} MiB", MAX_FILE_BYTES >> 20));
            return Ok(());
        }
        let file = self.repository.find_blob(entry.id()).map_err(damaged)?;
        if file.content().starts_with(LFS_POINTER) {
            self.tree.insert_unreadable(path, "the file is kept by Git LFS, which is not supported");
            return Ok(());
        }
        self.extent.file(file.content().len()).map_err(too_large)?;
        self.tree.insert(path, file.content().to_vec());
        Ok(())
    }
}

/// Tells whether a path is a folder or stands below it; everything is below the empty one.
fn is_within(path: &str, folder: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
