//! What the files of a workspace hold and mention: which files a change may touch, and where names lead.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gatewright_engine::object::Gvk;
use gatewright_engine::yaml::{self, Content, Node, Position};

/// The longest text that may be a name.
const LONGEST: usize = 253;

/// A document that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its group.
    pub(super) group: String,
    /// Its kind.
    pub(super) kind: String,
    /// Its namespace, if it says one.
    pub(super) namespace: Option<String>,
    /// Its name.
    pub(super) name: Arc<str>,
    /// The place of its name.
    pub(super) position: Position,
}

/// The content of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct File {
    entries: Vec<Entry>,
    /// Texts that may be names of other documents.
    mentions: BTreeSet<Arc<str>>,
    /// Whether what it says is for all documents, as an overlay does, or nobody knows.
    is_for_all: bool,
}

/// The files of a workspace.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    files: BTreeMap<Arc<str>, File>,
    /// The files that hold a document of a name.
    named: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// The files that mention a text.
    mentioned: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
}

impl Index {
    /// Reads a file, again if it was there. Of one that cannot be parsed, what was read before stays.
    pub(super) fn read(&mut self, path: &str, text: &str) {
        let path = self.files.get_key_value(path).map_or_else(|| Arc::from(path), |(path, _)| Arc::clone(path));
        let Ok(documents) = yaml::parse(text) else {
            self.files.entry(path).or_default();
            return;
        };
        self.remove(&path);
        let file = file(&documents);
        for entry in &file.entries {
            self.named.entry(Arc::clone(&entry.name)).or_default().insert(Arc::clone(&path));
        }
        for text in &file.mentions {
            self.mentioned.entry(Arc::clone(text)).or_default().insert(Arc::clone(&path));
        }
        self.files.insert(path, file);
    }

    /// Forgets a file.
    pub(super) fn remove(&mut self, path: &str) {
        let Some(file) = self.files.remove(path) else { return };
        let forget = |all: &mut BTreeMap<Arc<str>, BTreeSet<Arc<str>>>, text: &Arc<str>| {
            if let Some(paths) = all.get_mut(text) {
                paths.remove(path);
                if paths.is_empty() {
                    all.remove(text);
                }
            }
        };
        file.entries.iter().for_each(|entry| forget(&mut self.named, &entry.name));
        file.mentions.iter().for_each(|text| forget(&mut self.mentioned, text));
    }

    /// Returns the files that a file has to do with: those that name a document of it, all that these and it name in turn,
    /// and those that are for all. `None` if there are more than so many.
    pub(super) fn around(&self, path: &str, most: usize) -> Option<BTreeSet<Arc<str>>> {
        let mut found: BTreeSet<Arc<str>> =
            self.files.iter().filter(|(_, file)| file.is_for_all).map(|(path, _)| Arc::clone(path)).collect();
        let (own, file) = self.files.get_key_value(path)?;
        let naming = file.entries.iter().filter_map(|entry| self.mentioned.get(&entry.name)).flatten();
        let mut open: Vec<&Arc<str>> = naming.chain([own]).collect();
        open.extend(found.iter().filter_map(|path| self.files.get_key_value(path)).map(|(path, _)| path));
        let mut seen = BTreeSet::new();
        while let Some(path) = open.pop() {
            if !seen.insert(path) {
                continue;
            }
            if seen.len() > most {
                return None;
            }
            found.insert(Arc::clone(path));
            let mentions = self.files.get(path).into_iter().flat_map(|file| &file.mentions);
            open.extend(mentions.filter_map(|text| self.named.get(text)).flatten());
        }
        Some(found)
    }

    /// Returns the documents of a name, each with its file.
    pub(super) fn called<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, &'a Entry)> {
        let files = self.named.get(name).into_iter().flatten();
        let entries = |path: &'a Arc<str>| {
            let entries = self.files.get(path).into_iter().flat_map(|file| &file.entries);
            entries.map(move |entry| (path.as_ref(), entry))
        };
        files.flat_map(entries).filter(move |(_, entry)| entry.name.as_ref() == name)
    }

    /// Returns all documents.
    pub(super) fn all(&self) -> impl Iterator<Item = &Entry> {
        self.files.values().flat_map(|file| &file.entries)
    }
}

fn file(documents: &[Node]) -> File {
    let mut file = File::default();
    let mut open: Vec<&Node> = documents.iter().collect();
    while let Some(root) = open.pop() {
        let text = |path: &[&str]| root.at(path.iter().copied()).and_then(Node::as_str);
        if let (Some("List"), Some(items)) = (text(&["kind"]), root.get("items")) {
            open.extend(items.items());
            continue;
        }
        mentions(root, &mut file.mentions);
        let Some(name) = root.at(["metadata", "name"]) else {
            // Tables of values have none.
            file.is_for_all = true;
            continue;
        };
        let Gvk { group, kind, .. } =
            Gvk::new(text(&["apiVersion"]).unwrap_or_default(), text(&["kind"]).unwrap_or_default());
        file.is_for_all |= group == "gatewright.dev";
        let namespace = text(&["metadata", "namespace"]).map(str::to_owned);
        let (name, position) = (name.as_str().unwrap_or_default().into(), name.position);
        file.entries.push(Entry { group, kind, namespace, name, position });
    }
    file
}

fn mentions(node: &Node, found: &mut BTreeSet<Arc<str>>) {
    match &node.content {
        Content::String(text) if text.len() <= LONGEST && !text.contains(char::is_whitespace) => {
            if !found.contains(text.as_str()) {
                found.insert(text.as_str().into());
            }
        }
        Content::List(items) => items.iter().for_each(|item| mentions(item, found)),
        Content::Map(fields) => {
            // Where it is, is no document that it needs.
            let of_interest = fields.iter().filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind" | "group"));
            of_interest.for_each(|(_, field)| mentions(&field.node, found));
        }
        Content::Null | Content::Bool(_) | Content::Number(_) | Content::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(files: &[(&str, &str)]) -> Index {
        let mut index = Index::default();
        for (path, text) in files {
            index.read(path, text);
        }
        index
    }

    #[track_caller]
    fn check(index: &Index, path: &str, expected: &str) {
        let around = index.around(path, 10).map(|it| it.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" "));
        assert_eq!(around.as_deref(), Some(expected));
    }

    #[test]
    fn a_file_has_to_do_with_what_it_names_and_with_what_names_it() {
        let mut index = index(&[
            ("a.yaml", "{kind: Gateway, metadata: {name: a}, spec: {gatewayClassName: class}}"),
            ("b.yaml", "{kind: Gateway, metadata: {name: b}, spec: {gatewayClassName: class}}"),
            ("class.yaml", "{kind: GatewayClass, metadata: {name: class}, spec: {parametersRef: {name: params}}}"),
            ("params.yaml", "{kind: Parameters, metadata: {name: params}}"),
            (
                "route.yaml",
                "{kind: Route, metadata: {name: r}, spec: {parentRefs: [{name: a}], to: [{name: service}]}}",
            ),
            ("service.yaml", "{kind: List, items: [{kind: Service, metadata: {name: service}}]}"),
            ("all.yaml", "{apiVersion: gatewright.dev/v1alpha1, kind: ClusterOverlay, metadata: {name: all}}"),
        ]);
        check(&index, "a.yaml", "a.yaml all.yaml class.yaml params.yaml route.yaml service.yaml");
        check(&index, "b.yaml", "all.yaml b.yaml class.yaml params.yaml");
        assert_eq!(index.around("class.yaml", 2), None);
        index.read("a.yaml", "{kind: Gateway, metadata: {name: other}}");
        check(&index, "a.yaml", "a.yaml all.yaml");
        index.read("a.yaml", "{kind: [");
        assert_eq!(index.called("other").count(), 1, "what was there before a mistake in the syntax stays");
        index.remove("a.yaml");
        assert_eq!(index.called("other").count(), 0);
    }
}
