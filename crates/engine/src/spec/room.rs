//! The files of a source as trees, within the memory that one source may take.
//!
//! Where there is not enough for all files, those that take most are refused, by name, and not those that happen to be
//! read last: a file that takes as much as all others together is no reason to refuse one of the others.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::interrupt;
use crate::problem::{Place, Problem};
use crate::tree::Entry;
use crate::yaml::{self, Node};

/// The most memory that all trees of a source take together, about.
const MOST: usize = 192 << 20;

/// A file may take so much, whatever the others do: as long as it is read it may be too much.
const OF_ONE: usize = MOST / 4;

/// A file, and what it says, or what is wrong with it.
pub(super) type ReadFile = (Arc<str>, Result<Vec<Node>, Box<Problem>>);

/// Reads files, in their order.
pub(super) fn read<'a>(files: impl Iterator<Item = (&'a str, &'a Entry)>) -> Vec<ReadFile> {
    read_within(files, MOST)
}

fn read_within<'a>(files: impl Iterator<Item = (&'a str, &'a Entry)>, most: usize) -> Vec<ReadFile> {
    let mut read: Vec<ReadFile> = Vec::new();
    // What is kept, by what it takes: the greediest is last.
    let (mut kept, mut taken) = (BTreeSet::<(usize, usize)>::new(), 0);
    for (path, entry) in files.take_while(|_| !interrupt::is_given()) {
        let file: Arc<str> = path.into();
        let room = (most - taken).max(OF_ONE.min(most));
        let result = match entry {
            Entry::Unreadable(reason) | Entry::NotEntered(reason) => {
                Err(Problem::file(Place::file(Arc::clone(&file)), reason.clone()))
            }
            Entry::Text(text) => yaml::parse_within(text, room)
                .map_err(|error| Problem::file(Place::at(&file, error.position), error.message))
                .inspect(|parsed| {
                    taken += parsed.bytes;
                    kept.insert((parsed.bytes, read.len()));
                }),
        };
        read.push((file, result.map(|parsed| parsed.documents).map_err(Box::new)));
        while taken > most
            && let Some((bytes, index)) = kept.pop_last()
        {
            taken -= bytes;
            let (file, result) = &mut read[index];
            *result = Err(Box::new(too_much(file, bytes)));
        }
    }
    read
}

fn too_much(file: &Arc<str>, bytes: usize) -> Problem {
    let message = format!("the file takes {} MiB, and there is not enough memory for all files", (bytes >> 20).max(1));
    Problem::file(Place::file(Arc::clone(file)), message)
        .hint("split the source, or take out what repeats itself; the other files are used")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    /// The files that are refused when all of them may take so much.
    fn refused(files: &[(&str, String)], most: usize) -> Vec<String> {
        let tree = files.iter().map(|(path, text)| (*path, text.as_bytes())).collect::<Tree>();
        let read = read_within(tree.files(), most);
        assert_eq!(read.len(), files.len());
        read.into_iter().filter(|(_, result)| result.is_err()).map(|(file, _)| file.to_string()).collect()
    }

    #[test]
    fn the_greediest_file_is_refused_and_its_neighbors_are_read() {
        let modest = || "a: {b: c}\n".to_owned();
        let greedy = || format!("a: &a {{b: c}}\nd: [{}]\n", "*a,".repeat(90));
        for name in ["0.yaml", "m.yaml", "z.yaml"] {
            let files = [("a.yaml", modest()), ("b.yaml", modest()), (name, greedy()), ("y.yaml", modest())];
            assert_eq!(refused(&files, 20_000), [name], "wherever it stands");
            assert_eq!(refused(&files, 2_000_000), [""; 0]);
        }
        let both = [("a.yaml", modest()), ("b.yaml", greedy()), ("c.yaml", greedy()), ("d.yaml", modest())];
        assert_eq!(refused(&both, 20_000), ["b.yaml", "c.yaml"]);
    }
}
