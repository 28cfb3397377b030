//! Ignore files: which files of a source hold no specs.
//!
//! One that cannot be understood leaves out its whole folder, because nobody knows what else it meant to leave out.

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::Specs;
use crate::problem::{Place, Problem};
use crate::tree::{Entry, IGNORE_FILE, Tree};

/// The ignore files of a source, each speaking for the folder that it stands in.
pub(super) struct Ignored {
    files: Vec<(String, Gitignore)>,
}

impl Ignored {
    /// Reads them. What one leaves out is not known if it cannot be read, or if a line of it is no pattern: then nothing
    /// below its folder is read.
    pub(super) fn of(tree: &Tree, specs: &mut Specs) -> Self {
        let mut files = Vec::new();
        for (path, entry) in tree.files() {
            let Some(folder) = path.strip_suffix(IGNORE_FILE).filter(|folder| is_folder(folder)) else { continue };
            match patterns(path, entry) {
                Ok(patterns) => files.push((folder.to_owned(), patterns)),
                Err(problem) => {
                    let reason = format!("the patterns in {} are not known: {}", problem.place, problem.message);
                    specs.reading.skip(folder.trim_end_matches('/'), &reason, true);
                    specs.problems.push(*problem);
                }
            }
        }
        Self { files }
    }

    /// The deepest ignore file that has an opinion decides, as in git.
    pub(super) fn matches(&self, path: &str, entry: &Entry) -> bool {
        // Behind a link may be a folder.
        let kinds: &[bool] = if matches!(entry, Entry::Text(_)) { &[false] } else { &[false, true] };
        let opinions = self.files.iter().rev().filter_map(|(folder, patterns)| {
            let path = path.strip_prefix(folder.as_str())?;
            let matched = kinds.iter().map(|is_folder| patterns.matched_path_or_any_parents(path, *is_folder));
            matched.into_iter().find(|opinion| !opinion.is_none()).map(|opinion| opinion.is_ignore())
        });
        opinions.into_iter().next().unwrap_or(false)
    }
}

/// Tells whether what stands before the name of a file is a folder, and not the beginning of another name.
fn is_folder(path: &str) -> bool {
    path.is_empty() || path.ends_with('/')
}

fn patterns(path: &str, entry: &Entry) -> Result<Gitignore, Box<Problem>> {
    let text = match entry {
        Entry::Text(text) => text,
        Entry::Unreadable(reason) | Entry::NotEntered(reason) => {
            return Err(Box::new(Problem::file(Place::file(path), reason.clone())));
        }
    };
    let mut builder = GitignoreBuilder::new("");
    for (line, number) in text.lines().zip(1..) {
        builder.add_line(None, line).map_err(|error| {
            let place = Place { line: number, ..Place::file(path) };
            Box::new(Problem::file(place, format!("the line is no pattern: {error}")))
        })?;
    }
    builder.build().map_err(|error| Box::new(Problem::file(Place::file(path), error.to_string())))
}
