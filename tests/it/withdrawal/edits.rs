//! Edits that spoil a source: what slips of a hand, crashed editors, half-done copies and file systems do.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rand::Rng;
use rand::rngs::StdRng;

use crate::cluster::process::command;

/// One edit of one file or folder.
#[derive(Debug)]
pub(super) struct Edit {
    path: PathBuf,
    what: What,
}

#[derive(Debug)]
enum What {
    /// The file gets another content: the sort of edit, and the content.
    Content(&'static str, Vec<u8>),
    /// The file or folder becomes a link to where it is now.
    Link,
    /// The file becomes something that is not read.
    Fifo,
    /// The file or folder is called otherwise.
    Rename(PathBuf),
    /// The file or folder is gone.
    Remove,
    /// The folder becomes a file.
    FolderToFile,
    /// The file becomes a folder, empty or not.
    FileToFolder { is_empty: bool },
    /// An ignore file leaves it out.
    Ignore,
}

/// The means to take an edit back.
pub(super) struct Undo {
    path: PathBuf,
    aside: PathBuf,
    made: Vec<PathBuf>,
}

impl Edit {
    /// The number of sorts of edits.
    pub(super) const WORDS: usize = 15;

    /// Makes an edit of a random file below a folder, or of the folder; `None` if there is nothing to edit.
    pub(super) fn random(folder: &Path, random: &mut StdRng) -> Option<Self> {
        let files = files(folder);
        let path = files.get(random.random_range(0..files.len().max(1)))?.clone();
        let bytes = fs::read(&path).ok()?;
        if bytes.is_empty() {
            return None;
        }
        let at = random.random_range(0..bytes.len());
        let sort = random.random_range(0..20);
        let content = |word, bytes| What::Content(word, bytes);
        let what = match sort {
            0 | 1 => content("drop", [&bytes[..at], &bytes[at + 1..]].concat()),
            2 | 3 => content("double", [&bytes[..=at], &bytes[at..]].concat()),
            4 | 5 => content("swap", swapped(&bytes, at)),
            6 | 7 => content("line", without_line(&bytes, at)),
            8 | 9 => content("truncate", bytes[..at].to_vec()),
            10 => content("empty", Vec::new()),
            11 => content("binary", [&bytes[..at], b"\xff\xfe", &bytes[at..]].concat()),
            12 => What::Link,
            13 => What::Fifo,
            14 => What::Rename(renamed(&path, random)),
            15 => What::Remove,
            16 => What::FileToFolder { is_empty: random.random() },
            17 => What::Ignore,
            18 => return Some(Self { path: folder.to_owned(), what: What::Link }),
            _ => return Some(Self { path: folder.to_owned(), what: What::FolderToFile }),
        };
        Some(Self { path, what })
    }

    /// The sort of edit.
    pub(super) fn word(&self) -> &'static str {
        match &self.what {
            What::Content(word, _) => word,
            What::Link if self.path.is_dir() => "folder to link",
            What::Link => "link",
            What::Fifo => "fifo",
            What::Rename(_) => "rename",
            What::Remove => "remove",
            What::FolderToFile => "folder to file",
            What::FileToFolder { .. } => "file to folder",
            What::Ignore => "ignore",
        }
    }

    /// Does it.
    pub(super) fn apply(&self) -> Undo {
        let aside = self.path.ancestors().nth(if self.path.is_dir() { 1 } else { 2 });
        let aside = aside.expect("it is in a folder").join(".aside");
        let mut undo = Undo { path: self.path.clone(), aside, made: Vec::new() };
        if let What::Ignore = self.what {
            let file = self.path.with_file_name(".gatewrightignore");
            if file.exists() {
                return undo;
            }
            fs::write(&file, format!("/{}\n", name(&self.path))).expect("a temporary folder can be written");
            undo.made.push(file);
            return undo;
        }
        fs::rename(&self.path, &undo.aside).expect("a temporary folder can be written");
        undo.made.push(self.path.clone());
        match &self.what {
            What::Content(_, bytes) => fs::write(&self.path, bytes),
            What::Link => symlink(&undo.aside, &self.path),
            What::Fifo => command("mkfifo").arg(&self.path).status().map(drop),
            What::Rename(to) => {
                undo.made = vec![to.clone()];
                if undo.aside.is_dir() { Ok(()) } else { fs::copy(&undo.aside, to).map(drop) }
            }
            What::Remove => {
                undo.made.clear();
                Ok(())
            }
            What::FolderToFile => fs::write(&self.path, "specs: [a, b]\n"),
            What::FileToFolder { is_empty } => {
                let fill = || if *is_empty { Ok(()) } else { fs::write(self.path.join("x.yaml"), "a: b\n") };
                fs::create_dir(&self.path).and_then(|()| fill())
            }
            What::Ignore => Ok(()),
        }
        .expect("a temporary folder can be written");
        undo
    }
}

impl Undo {
    /// Puts everything back.
    pub(super) fn apply(self) {
        for made in &self.made {
            let is_folder = fs::symlink_metadata(made).is_ok_and(|found| found.is_dir());
            if is_folder { fs::remove_dir_all(made) } else { fs::remove_file(made) }.expect("it was just made");
        }
        if fs::symlink_metadata(&self.aside).is_ok() {
            fs::rename(&self.aside, &self.path).expect("a temporary folder can be written");
        }
    }
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn swapped(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let other = if at + 1 < bytes.len() { at + 1 } else { 0 };
    bytes.swap(at, other);
    bytes
}

fn without_line(bytes: &[u8], at: usize) -> Vec<u8> {
    let start = bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let end = bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| at + end + 1);
    [&bytes[..start], &bytes[end.max(start)..]].concat()
}

/// Another name: of another spec, of no spec, of a hidden file, or one that is not even text.
fn renamed(path: &Path, random: &mut StdRng) -> PathBuf {
    let name = match random.random_range(0..4) {
        0 => "elsewhere.yaml".to_owned(),
        1 => format!("{}.bak", name(path)),
        2 => format!(".{}", name(path)),
        _ => return path.with_file_name(OsStr::from_bytes(b"\xff.yaml")),
    };
    path.with_file_name(name)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}
