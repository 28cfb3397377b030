//! The documents of a workspace, by names and mentions: those that a change may touch, and those that a name leads to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gatewright_engine::object::Gvk;
use gatewright_engine::spec::list::items_of;
use gatewright_engine::yaml::{self, Content, Node, Position};

use super::split::{Same, height, split};

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
    /// The place of its name in its part of a file.
    position: Position,
}

/// The content of one document, or of what stands where one may.
#[derive(Clone, Debug, Default)]
struct Document {
    path: Arc<str>,
    /// The number of lines of its file above it.
    above: u32,
    entries: Vec<Entry>,
    /// Texts that may be names of other documents.
    mentions: BTreeSet<Arc<str>>,
    /// Whether what it says is for all documents, as an overlay does, or nobody knows.
    is_for_all: bool,
}

/// The documents of one file.
#[derive(Clone, Debug, Default)]
struct File {
    text: Arc<str>,
    /// One for each part of the text.
    documents: Vec<Id>,
}

/// The number of a document.
type Id = u64;

/// Some parts of some files.
pub(super) type Parts = BTreeMap<Arc<str>, BTreeSet<usize>>;

/// The documents of a workspace.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    files: BTreeMap<Arc<str>, File>,
    documents: BTreeMap<Id, Document>,
    /// The number that was given last.
    last: Id,
    /// The documents of a name.
    named: BTreeMap<Arc<str>, BTreeSet<Id>>,
    /// The documents that mention a text.
    mentioned: BTreeMap<Arc<str>, BTreeSet<Id>>,
    for_all: BTreeSet<Id>,
}

impl Index {
    /// Reads a file, again if it was there: then only what has changed. Of a document that cannot be parsed, what was read
    /// before stays.
    pub(super) fn read(&mut self, path: &str, text: &str) {
        let (path, old) = self.files.remove_entry(path).unwrap_or_else(|| (Arc::from(path), File::default()));
        let (parts, before) = (split(text), split(&old.text));
        let (same, number) = (Same::of(&before, &parts), (before.len(), parts.len()));
        let mut gone: BTreeSet<Id> = old.documents.iter().copied().collect();
        let (mut documents, mut above) = (Vec::new(), 0);
        for (index, part) in parts.iter().enumerate() {
            let known = same.before(index, number).and_then(|it| old.documents.get(it).copied());
            let in_place = old.documents.get(index).copied().filter(|_| number.0 == number.1);
            let id =
                known.or_else(|| self.add(&path, part)).or(in_place).unwrap_or_else(|| self.put(Document::default()));
            gone.remove(&id);
            if let Some(document) = self.documents.get_mut(&id) {
                document.path.clone_from(&path);
                document.above = above;
            }
            documents.push(id);
            above += height(part);
        }
        for id in gone {
            self.forget(id);
        }
        self.files.insert(path, File { text: text.into(), documents });
    }

    /// Adds a document, if it can be parsed.
    fn add(&mut self, path: &Arc<str>, part: &str) -> Option<Id> {
        let roots = yaml::parse(part).ok()?;
        Some(self.put(Document { path: Arc::clone(path), ..document(&roots) }))
    }

    fn put(&mut self, document: Document) -> Id {
        self.last += 1;
        let id = self.last;
        for name in document.names() {
            self.named.entry(name).or_default().insert(id);
        }
        for text in &document.mentions {
            self.mentioned.entry(Arc::clone(text)).or_default().insert(id);
        }
        if document.is_for_all {
            self.for_all.insert(id);
        }
        self.documents.insert(id, document);
        id
    }

    /// Forgets a file.
    pub(super) fn remove(&mut self, path: &str) {
        let file = self.files.remove(path).unwrap_or_default();
        for id in file.documents {
            self.forget(id);
        }
    }

    fn forget(&mut self, id: Id) {
        let Some(document) = self.documents.remove(&id) else { return };
        let forget = |all: &mut BTreeMap<Arc<str>, BTreeSet<Id>>, text: &Arc<str>| {
            if let Some(of) = all.get_mut(text) {
                of.remove(&id);
                if of.is_empty() {
                    all.remove(text);
                }
            }
        };
        for name in document.names() {
            forget(&mut self.named, &name);
        }
        for text in &document.mentions {
            forget(&mut self.mentioned, text);
        }
        self.for_all.remove(&id);
    }

    /// Returns the documents that some parts of a file have to do with: those that name them, all that these and they name in
    /// turn, and those that are for all; all documents if they are for all. `None` if there are more than so many.
    pub(super) fn around(&self, path: &str, parts: &[usize], most: usize) -> Option<Parts> {
        let file = self.files.get(path)?;
        let own: Vec<Id> = parts.iter().filter_map(|part| file.documents.get(*part).copied()).collect();
        if own.iter().any(|id| self.for_all.contains(id)) {
            let all = || self.documents.keys().copied().collect();
            return (self.documents.len() <= most).then(|| self.parts(&all()));
        }
        let names = own.iter().filter_map(|id| self.documents.get(id)).flat_map(Document::names);
        let naming = names.filter_map(|name| self.mentioned.get(&name)).flatten().copied();
        let mut open: Vec<Id> = naming.chain(own.iter().copied()).chain(self.for_all.iter().copied()).collect();
        let mut seen = BTreeSet::new();
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            if seen.len() > most.max(own.len()) {
                return None;
            }
            let mentions = self.documents.get(&id).into_iter().flat_map(|it| &it.mentions);
            open.extend(mentions.filter_map(|text| self.named.get(text)).flatten());
        }
        Some(self.parts(&seen))
    }

    fn parts(&self, documents: &BTreeSet<Id>) -> Parts {
        let paths: BTreeSet<&Arc<str>> =
            documents.iter().filter_map(|id| self.documents.get(id)).map(|it| &it.path).collect();
        let files = paths.into_iter().filter_map(|path| self.files.get_key_value(path));
        let parts = |file: &File| {
            let all = file.documents.iter().enumerate();
            all.filter(|(_, id)| documents.contains(id)).map(|(part, _)| part).collect()
        };
        files.map(|(path, file)| (Arc::clone(path), parts(file))).collect()
    }

    /// Returns the documents of a name, each with its file and the place of its name.
    pub(super) fn called<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, Position, &'a Entry)> {
        let documents = self.named.get(name).into_iter().flatten().filter_map(|id| self.documents.get(id));
        let entries = documents.flat_map(|document| document.entries.iter().map(move |entry| (document, entry)));
        let of_name = entries.filter(move |(_, entry)| *entry.name == *name);
        of_name.map(|(document, entry)| {
            let Position { line, column } = entry.position;
            (&*document.path, Position { line: line + document.above, column }, entry)
        })
    }

    /// Returns all documents.
    pub(super) fn all(&self) -> impl Iterator<Item = &Entry> {
        self.documents.values().flat_map(|document| &document.entries)
    }
}

impl Document {
    /// Returns the texts with which it may be meant: its name, and for a grant the namespace that it opens.
    fn names(&self) -> Vec<Arc<str>> {
        let grants = self.entries.iter().filter(|entry| entry.kind == "ReferenceGrant");
        let namespaces = grants.filter_map(|entry| entry.namespace.as_deref()).map(Arc::from);
        self.entries.iter().map(|entry| Arc::clone(&entry.name)).chain(namespaces).collect()
    }
}

fn document(roots: &[Node]) -> Document {
    let mut document = Document::default();
    let mut open: Vec<&Node> = roots.iter().collect();
    while let Some(root) = open.pop() {
        let text = |path: &[&str]| root.at(path.iter().copied()).and_then(Node::as_str);
        if let Some(items) = items_of(root) {
            open.extend(items.items());
            continue;
        }
        mentions(root, &mut document.mentions);
        let Some(name) = root.at(["metadata", "name"]) else {
            // Tables of values have none.
            document.is_for_all = true;
            continue;
        };
        let Gvk { group, kind, .. } =
            Gvk::new(text(&["apiVersion"]).unwrap_or_default(), text(&["kind"]).unwrap_or_default());
        document.is_for_all |= group == "gatewright.dev";
        let namespace = text(&["metadata", "namespace"]).map(str::to_owned);
        let (name, position) = (name.as_str().unwrap_or_default().into(), name.position);
        document.entries.push(Entry { group, kind, namespace, name, position });
    }
    document
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
        let around = index.around(path, &[0], 10).map(|it| it.keys().map(AsRef::as_ref).collect::<Vec<_>>().join(" "));
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
        assert_eq!(index.around("class.yaml", &[0], 2), None);
        index.read("a.yaml", "{kind: Gateway, metadata: {name: other}}");
        check(&index, "a.yaml", "a.yaml all.yaml");
        index.read("a.yaml", "{kind: [");
        assert_eq!(index.called("other").count(), 1, "what was there before a mistake in the syntax stays");
        index.remove("a.yaml");
        assert_eq!(index.called("other").count(), 0);
    }

    #[test]
    fn of_a_file_only_the_documents_count_that_have_to_do_with_one() {
        let gateway =
            |name: &str| format!("---\nkind: Gateway\nmetadata: {{name: {name}}}\nspec: {{class: own-{name}}}\n");
        let class = |name: &str| format!("---\nkind: Class\nmetadata: {{name: own-{name}}}\n");
        let text = [gateway("a"), gateway("b"), class("a"), class("b")].concat();
        let mut index = index(&[("all.yaml", &text)]);
        let parts = |index: &Index, part: usize| -> Option<Vec<usize>> {
            index.around("all.yaml", &[part], 2).map(|parts| parts["all.yaml"].iter().copied().collect())
        };
        assert_eq!(parts(&index, 0), Some(vec![0, 2]));
        assert_eq!(parts(&index, 3), Some(vec![1, 3]));
        let line = |index: &Index| index.called("own-b").map(|(_, at, _)| at.line).collect::<Vec<_>>();
        assert_eq!(line(&index), [14]);

        // Another document above moves it, and has not to be read again with it.
        index.read("all.yaml", &format!("{}{text}", gateway("c")));
        assert_eq!((parts(&index, 0), parts(&index, 2), line(&index)), (Some(vec![0]), Some(vec![2, 4]), vec![18]));
        index.read("all.yaml", &text.replace("own-b}\n---", "own-a}\n---"));
        assert_eq!((parts(&index, 1), parts(&index, 2)), (Some(vec![1, 2]), None));
        // What names nobody can be parsed again is what it was.
        index.read("all.yaml", &text.replace("{name: own-b}", "{name: own-b"));
        assert_eq!(line(&index), [14]);
    }

    #[test]
    fn a_grant_is_for_what_names_its_namespace() {
        let grant = "{kind: ReferenceGrant, metadata: {name: grant, namespace: certificates}}";
        let gateway = "{kind: Gateway, metadata: {name: a}, spec: {tls: [{name: c, namespace: certificates}]}}";
        check(&index(&[("grant.yaml", grant), ("a.yaml", gateway)]), "a.yaml", "a.yaml grant.yaml");
    }
}
