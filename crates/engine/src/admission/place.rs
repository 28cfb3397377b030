//! Paths of fields, as checks name them, and the places in a document that they lead to.

use crate::yaml::{Node, Position};

/// The path of a field: names and indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Path(pub(super) Vec<String>);

impl Path {
    /// Reads a pointer as JSON schemas have it: `/spec/listeners/0`.
    pub(super) fn of_pointer(pointer: &str) -> Self {
        let part = |part: &str| part.replace("~1", "/").replace("~0", "~");
        Self(pointer.split('/').skip(1).map(part).collect())
    }

    /// Reads a path as rules have it: `spec.listeners[0]`. A dot in a key is taken for its end, so that of such a path what is
    /// around the key is found.
    pub(super) fn of_dotted(dotted: &str) -> Self {
        let parts = dotted.split(['.', '[']).map(|part| part.trim_end_matches(']').to_owned());
        Self(parts.filter(|part| !part.is_empty()).collect())
    }

    /// Writes it as a pointer.
    pub(super) fn pointer(&self) -> String {
        let part = |part: &String| ["/", &part.replace('~', "~0").replace('/', "~1")].concat();
        self.0.iter().map(part).collect()
    }

    /// Returns the path of something in it.
    pub(super) fn below(&self, part: &str) -> Self {
        Self(self.0.iter().cloned().chain([part.to_owned()]).collect())
    }

    /// Returns the place that it leads to, or that of the nearest thing around it that was written.
    pub(super) fn position(&self, root: &Node) -> Position {
        let mut node = root;
        for part in &self.0 {
            let Some(below) = node.at([part.as_str()]) else { break };
            node = below;
        }
        node.position
    }

    /// Writes it as `spec.listeners[0].port`.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for part in &self.0 {
            match part.parse::<usize>() {
                Ok(index) if !text.is_empty() => text.extend(["[", &index.to_string(), "]"]),
                _ if text.is_empty() => text.push_str(part),
                _ => text.extend([".", part]),
            }
        }
        if text.is_empty() { "the document".to_owned() } else { text }
    }
}
