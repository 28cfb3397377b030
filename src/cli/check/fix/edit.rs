//! A word in a text, and the other one in its place.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use gatewright_engine::mask::lines::{BOM, offset};
use gatewright_engine::problem::{Fix, Place};
use gatewright_engine::tree::Tree;
use gatewright_engine::yaml::{self, Content, Field, Node, Position};

/// A word to be replaced.
#[derive(Clone, Debug)]
pub(super) struct Edit {
    /// Its place.
    pub place: Place,
    /// The word and the other one.
    pub fix: Fix,
    /// The bytes of the text that are the word.
    range: Range<usize>,
}

/// A mending that is not done, and why.
pub(super) type Declined = (Place, Fix, String);

/// A file, and the words in it by their positions.
struct Words<'a> {
    file: &'a str,
    text: &'a str,
    /// The offsets at which its lines begin.
    lines: Vec<usize>,
    by_position: BTreeMap<Position, Vec<Word>>,
}

/// A key or a value that is a word; more than one stand at a position that is repeated, by an alias.
struct Word {
    text: String,
    /// The keys beside it, if it is one.
    beside: Rc<BTreeSet<String>>,
}

/// Finds the words in the texts; what is not there as it should be comes back with the reason.
pub(super) fn located(fixable: BTreeSet<(&Place, &Fix)>, tree: &Tree) -> (Vec<Edit>, Vec<Declined>) {
    let (mut edits, mut declined) = (Vec::new(), Vec::new());
    let mut known: Option<Words<'_>> = None;
    for (place, fix) in fixable {
        if known.as_ref().is_none_or(|words| *words.file != *place.file) {
            known = Some(Words::of(&place.file, tree.text(&place.file).unwrap_or_default()));
        }
        let found = known.as_ref().map_or(Err(ELSEWHERE), |words| words.locate(place, fix));
        match found {
            Ok(range) => edits.push(Edit { place: place.clone(), fix: fix.clone(), range }),
            Err(reason) => declined.push((place.clone(), fix.clone(), reason.to_owned())),
        }
    }
    (edits, declined)
}

/// Returns the texts of the files with edits in them, and the edits of each.
pub(super) fn applied(tree: &Tree, edits: &[Edit]) -> BTreeMap<Arc<str>, (String, Vec<Edit>)> {
    let mut files: BTreeMap<Arc<str>, Vec<Edit>> = BTreeMap::new();
    for edit in edits {
        files.entry(Arc::clone(&edit.place.file)).or_default().push(edit.clone());
    }
    let text = |(file, mut edits): (Arc<str>, Vec<Edit>)| {
        edits.sort_by_key(|edit| edit.range.start);
        let (old, mut new, mut from) = (tree.text(&file).unwrap_or_default(), String::new(), 0);
        for edit in &edits {
            new += &old[from..edit.range.start];
            new += &edit.fix.new;
            from = edit.range.end;
        }
        new += &old[from..];
        (file, (new, edits))
    };
    files.into_iter().map(text).collect()
}

/// Tells whether a new text means the same as the old one, but for the words that were replaced.
pub(super) fn means_the_same(old: &str, new: &str, edits: &[Edit]) -> bool {
    let (Ok(mut old), Ok(new)) = (yaml::parse(old), yaml::parse(new)) else { return false };
    let fixes: BTreeMap<Position, &Fix> = edits.iter().map(|edit| (position(&edit.place), &edit.fix)).collect();
    let renamed: usize = old.iter_mut().map(|node| renamed(node, &fixes)).sum();
    renamed == edits.len() && old.iter().map(Node::to_value).eq(new.iter().map(Node::to_value))
}

/// The reason why a word cannot be replaced that is not in the file.
const ELSEWHERE: &str = "it stands in a text within the document, or comes from another place";

fn position(place: &Place) -> Position {
    Position { line: place.line, column: place.column }
}

impl<'a> Words<'a> {
    fn of(file: &'a str, text: &'a str) -> Self {
        let lines = [0].into_iter().chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let mut words = Self { file, text, lines, by_position: BTreeMap::new() };
        yaml::parse(text).unwrap_or_default().iter().for_each(|document| words.add(document));
        words
    }

    fn add(&mut self, node: &Node) {
        match &node.content {
            Content::String(text) => self.word(node.position, text, &Rc::default()),
            Content::List(items) => items.iter().for_each(|item| self.add(item)),
            Content::Map(fields) => {
                let beside: Rc<BTreeSet<String>> = Rc::new(fields.keys().cloned().collect());
                for (key, field) in fields {
                    self.word(field.key, key, &beside);
                    self.add(&field.node);
                }
            }
            Content::Null | Content::Bool(_) | Content::Number(_) => {}
        }
    }

    fn word(&mut self, at: Position, text: &str, beside: &Rc<BTreeSet<String>>) {
        self.by_position.entry(at).or_default().push(Word { text: text.to_owned(), beside: Rc::clone(beside) });
    }

    fn locate(&self, place: &Place, fix: &Fix) -> Result<Range<usize>, &'static str> {
        let word = match self.by_position.get(&position(place)).map(Vec::as_slice) {
            None | Some([]) => return Err(ELSEWHERE),
            Some([word]) => word,
            Some(_) => return Err("it stands in what is repeated elsewhere, by an alias"),
        };
        if word.text != fix.old {
            return Err(ELSEWHERE);
        }
        if word.beside.contains(&fix.new) {
            return Err("the other one is there already");
        }
        let index = usize::try_from(place.line).ok().and_then(|line| line.checked_sub(1)).ok_or(ELSEWHERE)?;
        let above = *self.lines.get(index).ok_or(ELSEWHERE)?;
        let end = self.lines.get(index + 1).copied().unwrap_or(self.text.len());
        let line = self.text[above..end].trim_start_matches(BOM);
        let above = end - line.len();
        let start = offset(line, place.column);
        let start = start + usize::from(line[start..].starts_with(['"', '\'']));
        let rest = line[start..].strip_prefix(fix.old.as_str()).ok_or("it is not written as it reads")?;
        let is_whole = !rest.starts_with(|c: char| c.is_alphanumeric() || "_-./".contains(c));
        is_whole.then(|| above + start..above + start + fix.old.len()).ok_or("it is not written as it reads")
    }
}

/// Replaces words in documents, and returns how many were.
fn renamed(node: &mut Node, fixes: &BTreeMap<Position, &Fix>) -> usize {
    let here = fixes.get(&node.position);
    match &mut node.content {
        Content::String(text) => match here.filter(|fix| fix.old == *text) {
            Some(fix) => {
                text.clone_from(&fix.new);
                1
            }
            None => 0,
        },
        Content::List(items) => items.iter_mut().map(|item| renamed(item, fixes)).sum(),
        Content::Map(fields) => {
            let mut number = 0;
            let rename = |(key, mut field): (String, Field)| {
                number += renamed(&mut field.node, fixes);
                let fix = fixes.get(&field.key).filter(|fix| fix.old == key);
                number += usize::from(fix.is_some());
                (fix.map_or(key, |fix| fix.new.clone()), field)
            };
            *fields = std::mem::take(fields).into_iter().map(rename).collect();
            number
        }
        Content::Null | Content::Bool(_) | Content::Number(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mends one word, and returns the text; or why not.
    fn mended(text: &str, (line, column): (u32, u32), old: &str, new: &str) -> Result<String, String> {
        let tree = Tree::from_iter([("a.yaml", text)]);
        let fix = Fix { old: old.to_owned(), new: new.to_owned() };
        let place = Place::at(&"a.yaml".into(), Position { line, column });
        let (edits, declined) = located(BTreeSet::from([(&place, &fix)]), &tree);
        let Some((mended, edits)) = applied(&tree, &edits).into_values().next() else {
            return Err(declined.into_iter().map(|(.., reason)| reason).collect());
        };
        means_the_same(text, &mended, &edits).then_some(mended).ok_or_else(|| "it means something else".to_owned())
    }

    #[test]
    fn only_the_word_is_replaced() {
        for (text, place, expected) in [
            ("# prot\na: # b\n    prot :  80   # prot\n", (3, 5), "# prot\na: # b\n    port :  80   # prot\n"),
            ("a:\r\n  \"prot\": 80\r\n", (2, 3), "a:\r\n  \"port\": 80\r\n"),
            ("\u{feff}a: {'prot': 80}", (1, 5), "\u{feff}a: {'port': 80}"),
            ("a: [{ä: 1, prot: 80}]\n", (1, 12), "a: [{ä: 1, port: 80}]\n"),
            ("? prot\n: 80\n", (1, 3), "? port\n: 80\n"),
            ("a: 1\n---\nprot: prot\n", (3, 1), "a: 1\n---\nport: prot\n"),
        ] {
            assert_eq!(mended(text, place, "prot", "port").as_deref(), Ok(expected), "{text:?}");
        }
        assert_eq!(mended("kind: &a Gatewya\n", (1, 10), "Gatewya", "Gateway").as_deref(), Ok("kind: &a Gateway\n"));
    }

    #[test]
    fn what_is_not_written_as_it_reads_or_would_change_more_is_left_alone() {
        for (text, place) in [
            ("\"pr\\x6ft\": 80\n", (1, 1)),
            ("prot: 80\nport: 90\n", (1, 1)),
            ("a: &a {prot: 80}\nb: *a\nc: {<<: *a}\n", (1, 8)),
            ("a: |\n  prot: 80\n", (2, 3)),
            ("prots: 80\n", (1, 1)),
            ("prot: 80\n", (7, 7)),
            ("prot: 80\n", (0, 0)),
            ("", (1, 1)),
        ] {
            assert!(mended(text, place, "prot", "port").is_err(), "{text:?}");
        }
        // The same place cannot be two words.
        assert!(!means_the_same("prot: 80\n", "port: 81\n", &[]));
    }
}
