//! The place of the cursor in a document that may be half written: which field it is in, and what stands beside it.
//!
//! A parser of YAML gives up at the first mistake, and while somebody writes there is always one. So this reads lines by
//! their indentation, and lists and mappings within a line by their brackets, and never fails.

use std::ops::Range;

use super::text::end_of;

/// A step on the way to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A field.
    Field(String),
    /// An item of a list.
    Item(usize),
}

/// The role of what is at the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The name of a field, of the mapping that the path leads to.
    Name,
    /// The value that the path leads to.
    Value,
    /// The value that the path leads to, or the first name in it.
    Either,
}

/// A mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Mapping {
    path: Vec<Step>,
    fields: Vec<(String, String)>,
}

/// What is at the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The way to it.
    pub(super) path: Vec<Step>,
    /// Its role.
    pub(super) role: Role,
    /// The word there, in bytes of the text; empty between words.
    pub(super) word: Range<usize>,
    /// The number of the mapping around it.
    around: Option<usize>,
    mappings: Vec<Mapping>,
}

impl Cursor {
    /// Finds out what is at a byte of a text; nothing is in comments and in texts of several lines.
    pub(super) fn at(text: &str, offset: usize) -> Option<Self> {
        let (start, end) = document(text, offset);
        let mut scan =
            Scan { text: &text[..end], cursor: offset, frames: Vec::new(), mappings: Vec::new(), found: None };
        scan.run(start);
        let (path, role, word, around) = scan.found?;
        Some(Self { path, role, word, around, mappings: scan.mappings })
    }

    /// Returns the text of a field beside the cursor; an empty one if it is not there.
    pub(super) fn beside(&self, name: &str) -> &str {
        self.around.map(|at| text_of(&self.mappings[at], name)).unwrap_or_default()
    }

    /// Returns the names of all fields beside the cursor.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let fields = self.around.map(|at| self.mappings[at].fields.as_slice()).unwrap_or_default();
        fields.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the text of a field of a mapping that stands at a path of fields; an empty one if it is not there.
    pub(super) fn text_at(&self, path: &[&str], name: &str) -> &str {
        let leads = |mapping: &&Mapping| {
            mapping.path.len() == path.len()
                && mapping.path.iter().zip(path).all(|(step, name)| matches!(step, Step::Field(it) if it == name))
        };
        self.mappings.iter().find(leads).map(|mapping| text_of(mapping, name)).unwrap_or_default()
    }

    /// Returns the fields of a path, and the name at the cursor if it is one.
    pub(super) fn full_path(&self, text: &str) -> Vec<Step> {
        let name = (self.role == Role::Name).then(|| Step::Field(plain(&text[self.word.clone()]).to_owned()));
        self.path.iter().cloned().chain(name).collect()
    }
}

fn text_of<'a>(mapping: &'a Mapping, name: &str) -> &'a str {
    mapping.fields.iter().find(|(it, _)| it == name).map(|(_, text)| text.as_str()).unwrap_or_default()
}

/// Returns where the document around a byte of a text begins and ends.
pub(super) fn document(text: &str, offset: usize) -> (usize, usize) {
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        if line.starts_with("---") {
            if at >= offset && at > 0 {
                return (start, at);
            }
            start = at + line.len();
        }
        at += line.len();
    }
    (start, text.len())
}

/// Takes quotes off.
pub(super) fn plain(text: &str) -> &str {
    let text = text.trim();
    let inside = |quote: char| text.strip_prefix(quote).map(|text| text.strip_suffix(quote).unwrap_or(text));
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}

/// A list or mapping that is not over.
#[derive(Clone, Debug)]
struct Frame {
    /// The column of its items or names.
    column: usize,
    /// The number of a mapping, and the name whose value is read.
    mapping: Option<(usize, String)>,
    /// The number of the item that is read.
    item: usize,
    /// Whether the value of the name is there.
    has_value: bool,
}

/// What is at the cursor: the way to it, its role, the word, and the number of the mapping around it.
type Found = (Vec<Step>, Role, Range<usize>, Option<usize>);

struct Scan<'a> {
    text: &'a str,
    cursor: usize,
    frames: Vec<Frame>,
    mappings: Vec<Mapping>,
    found: Option<Found>,
}

impl Scan<'_> {
    fn run(&mut self, mut at: usize) {
        // The column of the name whose text of several lines is read.
        let mut text_below: Option<usize> = None;
        while at < self.text.len() || (at == self.text.len() && self.cursor == at) {
            let end = self.text[at..].find('\n').map_or(self.text.len(), |end| at + end);
            let line = self.text[at..end].trim_end();
            let column = line.len() - line.trim_start_matches(' ').len();
            let is_empty = line.len() == column;
            if text_below.is_some_and(|above| is_empty && self.cursor > end || !is_empty && column > above) {
                at = end + 1;
                continue;
            }
            text_below = None;
            if is_empty {
                self.empty(at, end);
            } else if !line[column..].starts_with('#') {
                let read = self.line(at + column, at + line.len(), column);
                text_below = read.1;
                if read.0 > end {
                    // A list or mapping in brackets ends in another line.
                    at = self.text[read.0..].find('\n').map_or(self.text.len() + 1, |end| read.0 + end + 1);
                    continue;
                }
            }
            at = end + 1;
        }
    }

    /// An empty line belongs to what the column of the cursor says.
    fn empty(&mut self, at: usize, end: usize) {
        if self.found.is_some() || self.cursor < at || self.cursor > end {
            return;
        }
        let column = self.cursor - at;
        let frames = self.frames.clone();
        self.close(column, false);
        self.find_open(column, self.cursor..self.cursor);
        self.frames = frames;
    }

    /// Finds the cursor where a value or a name may begin.
    fn find_open(&mut self, column: usize, word: Range<usize>) {
        let path = self.path();
        self.found = match self.frames.last() {
            None => Some((path, Role::Name, word, self.mappings.iter().position(|it| it.path.is_empty()))),
            Some(Frame { mapping: Some((number, _)), column: own, .. }) if *own == column => {
                Some((path[..path.len() - 1].to_vec(), Role::Name, word, Some(*number)))
            }
            Some(Frame { mapping: Some(_), has_value: true, .. }) => None,
            Some(_) => Some((path, Role::Either, word, None)),
        };
    }

    /// Closes what a line at a column does not belong to.
    fn close(&mut self, column: usize, is_item: bool) {
        let is_over =
            |frame: &Frame| frame.column > column || (frame.mapping.is_none() && frame.column == column && !is_item);
        while self.frames.last().is_some_and(is_over) {
            self.frames.pop();
        }
    }

    /// Reads a line, and returns where it ends and the column that a text of several lines is below.
    fn line(&mut self, mut at: usize, end: usize, mut column: usize) -> (usize, Option<usize>) {
        let is_item = |text: &str| text == "-" || text.starts_with("- ");
        self.close(column, is_item(&self.text[at..end]));
        while is_item(&self.text[at..end]) {
            match self.frames.last_mut().filter(|frame| frame.mapping.is_none() && frame.column == column) {
                Some(frame) => frame.item += 1,
                None => self.frames.push(Frame { column, mapping: None, item: 0, has_value: false }),
            }
            let next = end - self.text[at + 1..end].trim_start().len();
            if next == end {
                if self.is_behind(at, end) {
                    self.found = Some((self.path(), Role::Either, self.cursor..self.cursor, None));
                }
                return (end, None);
            }
            (column, at) = (column + next - at, next);
        }
        let Some(colon) = colon(&self.text[at..end]).map(|colon| at + colon) else {
            let is_here = self.found.is_none() && (at..=end).contains(&self.cursor);
            if self.text[at..end].starts_with(['{', '[']) {
                return (self.flow(at), None);
            } else if is_here {
                self.find_open(column, at..end);
            }
            return (end, None);
        };
        self.name(at, colon, column);
        let start = end - self.text[colon + 1..end].trim_start().len();
        let rest = &self.text[start..end];
        if let Some(frame) = self.frames.last_mut() {
            frame.has_value = !rest.is_empty() && !rest.starts_with('#');
        }
        if rest.starts_with(['{', '[']) {
            return (self.flow(start), None);
        }
        let text_below = rest.starts_with(['|', '>']).then_some(column);
        self.scalar(colon, start, end);
        (end, text_below)
    }

    /// Tells whether the cursor is behind a byte and before the end of its line, spaces there counted.
    fn is_behind(&self, at: usize, end: usize) -> bool {
        let rest = &self.text[end..];
        let spaces = rest.len() - rest.trim_start_matches([' ', '\t', '\r']).len();
        self.found.is_none() && self.cursor > at && self.cursor <= end + spaces
    }

    /// Reads the name of a field.
    fn name(&mut self, at: usize, colon: usize, column: usize) {
        let number = match self.frames.last().and_then(|it| it.mapping.as_ref().filter(|_| it.column == column)) {
            Some((number, _)) => *number,
            None => self.begin(column),
        };
        self.set_name(number, at, colon);
    }

    /// Begins a mapping.
    fn begin(&mut self, column: usize) -> usize {
        let number = self.mappings.len();
        self.mappings.push(Mapping { path: self.path(), fields: Vec::new() });
        self.frames.push(Frame { column, mapping: Some((number, String::new())), item: 0, has_value: true });
        number
    }

    /// Notes the name of a field of the mapping that is read.
    fn set_name(&mut self, number: usize, at: usize, colon: usize) {
        let name = plain(&self.text[at..colon]).to_owned();
        if self.found.is_none() && (at..=colon).contains(&self.cursor) {
            self.found = Some((self.mappings[number].path.clone(), Role::Name, at..colon, Some(number)));
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.mapping = Some((number, name.clone()));
        }
        self.mappings[number].fields.push((name, String::new()));
    }

    /// Notes the text of a value.
    fn set_text(&mut self, text: &str) {
        if let Some(number) = self.number()
            && let Some(field) = self.mappings[number].fields.last_mut()
        {
            plain(text).clone_into(&mut field.1);
        }
    }

    fn number(&self) -> Option<usize> {
        self.frames.last().and_then(|frame| frame.mapping.as_ref()).map(|(number, _)| *number)
    }

    /// Reads the value behind a colon.
    fn scalar(&mut self, colon: usize, start: usize, end: usize) {
        let rest = &self.text[start..end];
        if rest.is_empty() || rest.starts_with('#') {
            if self.is_behind(colon + 1, start) {
                self.found = Some((self.path(), Role::Value, self.cursor..self.cursor, self.number()));
            }
            return;
        }
        let stop = end_of(self.text, start).min(end);
        let text = &self.text[start..stop];
        self.set_text(text);
        if self.found.is_none() && self.cursor > colon && self.cursor <= stop {
            self.found = Some((self.path(), Role::Value, start..stop, self.number()));
        }
    }

    /// Reads a list or mapping in brackets, and returns where it ends: behind its last bracket, or where lines begin that
    /// cannot belong to it.
    fn flow(&mut self, mut at: usize) -> usize {
        let (depth, text) = (self.frames.len(), self.text);
        let above = self.frames.last().map(|frame| frame.column);
        let mut word = at;
        while at < text.len() {
            let rest = &text[at..];
            let char = rest.chars().next().unwrap_or_default();
            let mut next = at + char.len_utf8();
            match char {
                '{' | '[' => {
                    self.begin_flow(char);
                    word = next;
                }
                ',' => {
                    self.word(word, at);
                    self.next_item();
                    word = next;
                }
                '}' | ']' => {
                    self.word(word, at);
                    self.frames.pop();
                    if self.frames.len() <= depth {
                        return next;
                    }
                    // What is behind a bracket is no word.
                    next = text[next..].find([',', '}', ']', '\n']).map_or(text.len(), |it| next + it);
                    word = next;
                }
                ':' if self.is_name() && text[next..].starts_with([' ', '\n', '\r', '"', '{', '[']) => {
                    let start = at - text[word..at].trim_start().len();
                    self.set_name(self.number().unwrap_or_default(), start, at);
                    word = next;
                }
                '"' | '\'' => {
                    let line = rest[1..].split('\n').next().unwrap_or_default();
                    next = line.find(char).map_or(next, |end| next + end + 1);
                }
                '#' if text[..at].ends_with(' ') => next = rest.find('\n').map_or(text.len(), |end| at + end),
                '\n' if above.is_some_and(|above| ends_flow(&text[next..], above)) => {
                    self.word(word, at);
                    break;
                }
                _ => {}
            }
            at = next;
        }
        if at >= text.len() {
            self.word(word.min(text.len()), text.len());
        }
        self.frames.truncate(depth);
        at
    }

    /// Begins a list or a mapping in brackets.
    fn begin_flow(&mut self, bracket: char) {
        if bracket == '{' {
            self.begin(usize::MAX);
        } else {
            self.frames.push(Frame { column: usize::MAX, mapping: None, item: 0, has_value: false });
        }
    }

    /// Tells whether the name of a field comes next, of a mapping in brackets.
    fn is_name(&self) -> bool {
        self.frames.last().and_then(|frame| frame.mapping.as_ref()).is_some_and(|(_, name)| name.is_empty())
    }

    /// Goes on to the next item of a list, or the next name of a mapping, in brackets.
    fn next_item(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.item += 1;
            if let Some((_, name)) = &mut frame.mapping {
                name.clear();
            }
        }
    }

    /// Reads a word in brackets: a name without a colon, the value of a name, or an item.
    fn word(&mut self, start: usize, end: usize) {
        let Some(text) = self.text.get(start..end) else { return };
        let from = end - text.trim_start().len();
        let range = from..from + text.trim().len();
        let is_name = self.is_name();
        if !is_name {
            let text = &self.text[range.clone()];
            self.set_text(text);
        }
        if self.found.is_some() || !(start..=end).contains(&self.cursor) {
            return;
        }
        let is_in_word = (range.start..=range.end).contains(&self.cursor) && !range.is_empty();
        let word = if is_in_word { range } else { self.cursor..self.cursor };
        let role = match self.number() {
            Some(_) if is_name => Role::Name,
            Some(_) => Role::Value,
            None => Role::Either,
        };
        self.found = Some((self.path(), role, word, self.number()));
    }

    fn path(&self) -> Vec<Step> {
        let step = |frame: &Frame| match &frame.mapping {
            Some((_, name)) if name.is_empty() => None,
            Some((_, name)) => Some(Step::Field(name.clone())),
            None => Some(Step::Item(frame.item)),
        };
        self.frames.iter().filter_map(step).collect()
    }
}

/// Tells whether what follows a line cannot belong to brackets below a column.
fn ends_flow(rest: &str, above: usize) -> bool {
    let line = rest.split('\n').next().unwrap_or_default();
    let column = line.len() - line.trim_start_matches(' ').len();
    !line.trim().is_empty() && column <= above && !line.trim_start().starts_with([']', '}'])
}

/// Returns where the colon behind a name is.
fn colon(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|char| matches!(char, '"' | '\''));
    let from = match quote {
        Some(quote) => text[1..].find(quote)? + 2,
        None if text.starts_with(['{', '[']) => return None,
        None => 0,
    };
    let is_end = |at: &usize| text[at + 1..].is_empty() || text[at + 1..].starts_with([' ', '\t']);
    let comment = text.find(" #").unwrap_or(text.len());
    text.match_indices(':').map(|(at, _)| at).filter(|at| *at >= from).find(is_end).filter(|at| *at < comment)
}

#[cfg(test)]
mod tests;
