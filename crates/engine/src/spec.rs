//! The documents of a source, as users write them: checked and sorted.
//!
//! A file that cannot be parsed, a document that breaks its schema and an object that stands in two places are
//! problems with a place; everything else goes on. Documents of kinds that nobody here knows are kept apart as
//! *unclaimed*: they are somebody's, and a person should see that they are not applied.

pub mod config_map;
pub mod gateway;
mod ignored;
pub(crate) mod known;
pub mod list;
pub mod listener_set;
pub(crate) mod metadata;
pub(crate) mod namespaces;
mod others;
pub mod overlay;
mod room;
pub(crate) mod tables;
mod unclaimed;
mod version;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::admission::Definitions;
use crate::check;
use crate::kinds;
use crate::object::{Gvk, ObjectId};
use crate::pack::Packs;
use crate::patch::without_nulls;
use crate::problem::{Place, Problem};
use crate::reading::{Flaw, Reading, Suspect};
use crate::rules::known::Known;
use crate::rules::policies::Policies;
use crate::schema::{Schema, SchemaError};
use crate::spec::overlay::OverlayFolders;
use crate::tree::{Entry, IGNORE_FILE, Tree};
use crate::yaml::{Content, Node, Position};
use ignored::Ignored;

/// The API group of the Gateway API.
pub const GATEWAY_API: &str = "gateway.networking.k8s.io";

/// One object that somebody wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The identity of the object.
    pub id: ObjectId,
    /// With which version.
    pub gvk: Gvk,
    /// In which file.
    pub file: Arc<str>,
    /// The whole document.
    pub root: Node,
    /// The places of the parts that patches have put there: a position in line 0 counts them, from 1.
    pub patched: Vec<Place>,
}

impl Document {
    /// Returns the place of a position in this document.
    pub fn at(&self, position: Position) -> Place {
        let index = usize::try_from(position.column).unwrap_or_default().wrapping_sub(1);
        if let Some(place) = self.patched.get(index).filter(|_| position.line == 0) {
            return place.clone();
        }
        Place::at(&self.file, position)
    }

    /// Returns the place where the document begins.
    pub fn place(&self) -> Place {
        self.at(self.root.position)
    }

    /// Returns the place of a field, or of the nearest thing around it that exists.
    pub fn place_of(&self, path: &[&str]) -> Place {
        let deepest = (0..=path.len()).rev().find_map(|end| self.root.at(path[..end].iter().copied()));
        self.at(deepest.unwrap_or(&self.root).position)
    }

    /// Returns all that it says. A field that is null is not there, as API servers have it (structural schemas: nulls are
    /// pruned before defaults are set).
    pub fn value(&self) -> Value {
        without_nulls(self.root.to_value())
    }

    /// Reads the document as a type whose schema it has passed.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Box<Problem>> {
        self.read_from(self.value())
    }

    /// The same for a type to which a null says something.
    pub fn read_with_nulls<T: DeserializeOwned>(&self) -> Result<T, Box<Problem>> {
        self.read_from(self.root.to_value())
    }

    fn read_from<T: DeserializeOwned>(&self, value: Value) -> Result<T, Box<Problem>> {
        serde_json::from_value(value).map_err(|error| self.problem(&[], error.to_string()).into())
    }

    /// Returns a problem with a field, or with all of it.
    pub(crate) fn problem(&self, path: &[&str], message: impl Into<String>) -> Problem {
        Problem::document(self.place_of(path), message).about(self.id.clone())
    }

    /// Returns mistakes in it as problems.
    pub(crate) fn problems(&self, mistakes: Vec<check::Mistake>) -> Vec<Problem> {
        let problem = |mistake: check::Mistake| {
            let place = self.at(mistake.position);
            mistake.at(place).about(self.id.clone())
        };
        mistakes.into_iter().map(problem).collect()
    }
}

/// `metadata` of an object, as far as it matters here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// Name.
    pub name: String,
    /// Namespace, if it says one.
    pub namespace: Option<String>,
    /// Annotations, if it has any.
    pub annotations: Option<BTreeMap<String, String>>,
}

/// A resource whose `spec` is an `S`: a Gateway, or parameters of any kind, with the schema of the whole document.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resource<S> {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name and namespace.
    #[schemars(with = "ObjectMeta")]
    pub metadata: Metadata,
    /// Its spec.
    pub spec: S,
    /// Written by controllers; ignored.
    pub status: Option<Value>,
}

/// A kind of documents that can be used.
#[derive(Debug)]
pub struct Kind {
    /// Versions that are read.
    pub versions: Vec<String>,
    /// Whether its objects live in a namespace.
    pub namespaced: bool,
    /// The schema that a document must obey.
    pub schema: Schema,
    /// The check for mistakes that its schema cannot express.
    pub sense: Option<Sense>,
    /// Whether they are parameters of a pack: what rules about parameters can name.
    pub is_parameters: bool,
    /// Whether its schema, or the pack that renders it, looks at the names of all fields.
    pub are_names_checked: bool,
}

impl Kind {
    pub(crate) fn new(versions: Vec<String>, namespaced: bool, schema: Schema) -> Self {
        Self { versions, namespaced, schema, sense: None, is_parameters: false, are_names_checked: true }
    }
}

/// Says what is wrong with a document that obeys its schema, such as a field that rules another out.
pub type Sense = fn(&Node) -> Vec<check::Mistake>;

/// The kinds that can be used, by group and kind.
pub type Kinds = BTreeMap<(String, String), Kind>;

/// Returns the kinds that every gateway pack starts from: those of the Gateway API, and overlays.
pub(crate) fn base_kinds() -> Result<Kinds, SchemaError> {
    let versions = |versions: &[&str]| versions.iter().map(|&version| version.to_owned()).collect();
    let kind = |group: &str, kind: &str, known: &[&str], namespaced, schema| {
        ((group.to_owned(), kind.to_owned()), Kind::new(versions(known), namespaced, schema))
    };
    Ok(BTreeMap::from([
        kind(GATEWAY_API, "GatewayClass", &["v1", "v1beta1"], false, Schema::of::<gateway::GatewayClass>()?),
        kind(GATEWAY_API, "Gateway", &["v1", "v1beta1"], true, Schema::of::<gateway::Gateway>()?),
        kind(GATEWAY_API, "ListenerSet", &["v1"], true, Schema::of::<listener_set::ListenerSet>()?),
        kind(overlay::GROUP, overlay::KIND, &overlay::VERSIONS, false, Schema::of::<overlay::ClusterOverlay>()?),
    ]))
}

/// All documents of a source.
#[derive(Clone, Debug, Default)]
pub struct Specs {
    /// Those of a known kind that passed their schema.
    pub documents: BTreeMap<ObjectId, Document>,
    /// Those of a known kind that did not: their identity, so that what depends on them can be held.
    pub broken: BTreeMap<ObjectId, Place>,
    /// The same as far as they can be read: what they refer to is not free for others.
    pub broken_documents: Vec<Document>,
    /// Documents that are meant to be overlays and are not: nobody refers to overlays, so what they say of themselves
    /// tells what is to be held.
    pub broken_overlays: Vec<Document>,
    /// Gateways of which listener sets are broken, with their namespaces and places: nobody knows all of their ports.
    pub broken_sets: BTreeMap<ObjectId, Vec<(String, Place)>>,
    /// Those of other kinds.
    pub unclaimed: Vec<Document>,
    /// Those of other kinds that an API server would refuse, and why.
    pub refused: BTreeMap<ObjectId, Vec<Problem>>,
    /// The problems.
    pub problems: Vec<Problem>,
    /// The evidence of the reading about documents that are not here.
    pub reading: Reading,
    /// The namespace that every namespaced document counts as written for, whatever it says.
    pub target_namespace: Option<String>,
    /// The folders in which overlays count.
    pub overlay_folders: OverlayFolders,
    /// The tables of values that overlays name, by file.
    pub(crate) tables: BTreeMap<Arc<str>, Arc<Node>>,
    /// The table of kinds, those that are not used included.
    pub kinds: kinds::Table,
    /// The definitions by which documents are checked.
    pub definitions: Definitions,
    /// The policies for what is rendered of them.
    pub policies: Arc<Policies>,
    /// What rules know of documents that are not kept whole.
    pub(crate) known: Known,
}

/// Reads all documents of a source in which overlays count only where they stand in some folders, by the kinds that packs
/// use and know.
///
/// With a `target_namespace` every namespaced document counts as if it were written for that namespace.
pub(crate) fn load(
    tree: &Tree,
    packs: &Packs,
    target_namespace: Option<&str>,
    overlay_folders: OverlayFolders,
) -> Specs {
    let target_namespace = target_namespace.map(str::to_owned);
    let (kinds, definitions) = (packs.kinds(), packs.definitions().clone());
    let known = packs.table().clone();
    let policies = Arc::new(packs.policies().clone());
    let mut specs =
        Specs { target_namespace, overlay_folders, kinds: known, definitions, policies, ..Specs::default() };
    let ignored = Ignored::of(tree, &mut specs);
    let entries: Vec<(&str, &Entry)> =
        tree.files().filter(|(path, entry)| specs.opens(path, entry, &ignored)).collect();
    let read = room::read(entries.into_iter());
    for (file, read) in specs.take_tables(read) {
        match read {
            Err(problem) => specs.spoil(*problem),
            Ok(roots) if roots.is_empty() => specs.read_nothing(&file, tree),
            Ok(roots) if specs.passes_over(&file, &roots) => {}
            Ok(roots) => {
                specs.reading.files.insert(Arc::clone(&file), 0);
                for root in roots {
                    specs.add(&file, root, kinds);
                }
            }
        }
    }
    specs.read_config_maps(kinds);
    specs.known = Known::of(&specs);
    specs
}

impl Specs {
    /// Forgets what documents say that no pack claims; who they are stays known. `ConfigMap`s stay whole, because packs
    /// may look into them.
    pub fn forget_unclaimed(&mut self) {
        for document in self.unclaimed.iter_mut().filter(|document| document.id.kind != "ConfigMap") {
            document.root = Node { position: document.root.position, content: Content::Null };
        }
    }

    /// Returns the documents of one kind, in the order of their names.
    pub fn of_kind<'a>(&'a self, group: &'a str, kind: &'a str) -> impl Iterator<Item = &'a Document> {
        self.documents.values().filter(move |document| document.id.group == group && document.id.kind == kind)
    }

    /// Returns the namespace that a reference means: the one that it says, unless all are written for another.
    pub fn namespace<'a>(&'a self, said: &'a str) -> &'a str {
        self.target_namespace.as_deref().unwrap_or(said)
    }

    /// Tells whether a path is read, and notes what follows from it where it is not.
    fn opens(&mut self, path: &str, entry: &Entry, ignored: &Ignored) -> bool {
        if path.ends_with(IGNORE_FILE) || self.reading.unread_above(path).is_some() {
            return false;
        }
        if ignored.matches(path, entry) {
            self.reading.ignored.insert(path.into());
            return false;
        }
        if let Entry::NotEntered(reason) = entry {
            self.reading.skip(path, reason, false);
            return false;
        }
        true
    }

    /// A file in which somebody has switched everything off on purpose has comments; an empty one is being written, or
    /// was emptied by accident.
    fn read_nothing(&mut self, file: &Arc<str>, tree: &Tree) {
        let is_comment = |line: &str| line.trim_start().starts_with('#');
        if tree.text(file).is_some_and(|text| text.lines().any(is_comment)) {
            self.reading.files.insert(Arc::clone(file), 0);
            self.problems.push(Problem::warning(Place::file(Arc::clone(file)), "the file holds nothing but comments"));
        } else {
            let problem = Problem::file(Place::file(Arc::clone(file)), "the file is empty");
            self.spoil(problem.hint("remove it, or write into it what it is for"));
        }
    }

    /// Nobody knows what a file holds.
    fn spoil(&mut self, problem: Problem) {
        self.reading.skip(&problem.place.file, &problem.message, true);
        self.problems.push(problem);
    }

    fn add(&mut self, file: &Arc<str>, root: Node, kinds: &Kinds) {
        if list::items_of(&root).is_some() {
            return self.add_list(file, &root, kinds);
        }
        let mut document = match identify(file, root) {
            Ok(document) => document,
            Err(unidentified) => {
                let (document, problem) = *unidentified;
                self.reading.suspects.push(suspect(&document, Flaw::Unidentified(problem.message.clone()), self));
                self.problems.push(problem);
                return self.keep_overlay(document);
            }
        };
        *self.reading.files.entry(Arc::clone(file)).or_default() += 1;
        if let Some(problem) = self.overlay_folders.problem_with(&document) {
            self.reading.uncounted.insert(Arc::clone(file));
            return self.problems.push(problem);
        }
        let key = (document.id.group.clone(), document.id.kind.clone());
        let Some(kind) = kinds.get(&key).filter(|_| !config_map::is_shared(&key.0, &key.1)) else {
            return self.add_unclaimed(document, kinds);
        };
        if kind.namespaced {
            self.note_unplaced(&document);
        }
        let namespace = match (kind.namespaced, document.id.namespace.as_str()) {
            (false, _) => "",
            (true, "") => self.namespace("default"),
            (true, said) => self.namespace(said),
        };
        document.id = document.id.within(namespace);
        let problems = validate(&document, kind, &self.definitions);
        let is_broken = !problems.is_empty();
        self.problems.extend(problems);
        if !is_broken {
            self.problems.extend(self.definitions.doubts(&document, kind.are_names_checked));
        }
        self.place(document, is_broken);
    }

    /// Notes a document that says no namespace: it may have lost it.
    fn note_unplaced(&mut self, document: &Document) {
        if document.id.namespace.is_empty() && self.target_namespace.is_none() {
            let suspect = suspect(document, Flaw::Unplaced, self);
            self.reading.suspects.push(suspect);
        }
    }

    /// Keeps a document that is not used, if it should have been an overlay.
    fn keep_overlay(&mut self, document: Document) {
        if document.id.group == overlay::GROUP && self.overlay_folders.hold(&document.file) {
            self.broken_overlays.push(document);
        }
    }

    /// Tells whether a document stands in the source, usable or not.
    pub(crate) fn has(&self, id: &ObjectId) -> bool {
        self.documents.contains_key(id) || self.broken.contains_key(id)
    }

    /// A listener set that cannot be used concerns its Gateway, which can often still be read off it.
    fn record_parent(&mut self, document: &Document, is_broken: bool) {
        if !is_broken || !document.id.is_a(GATEWAY_API, "ListenerSet") {
            return;
        }
        let text = |field: &str| document.root.at(["spec", "parentRef", field]).and_then(Node::as_str);
        let namespace = self.namespace(text("namespace").unwrap_or(&document.id.namespace)).to_owned();
        let (group, kind) = (text("group").unwrap_or(GATEWAY_API), text("kind").unwrap_or("Gateway"));
        if let Some(name) = text("name") {
            let gateway = ObjectId::new(group, kind, &namespace, name);
            let set = (self.namespace(&document.id.namespace).to_owned(), document.place());
            self.broken_sets.entry(gateway).or_default().push(set);
        }
    }

    /// Files a document; of two with one identity neither is used, because either might be the wrong one.
    fn place(&mut self, document: Document, is_broken: bool) {
        let place = document.place();
        self.record_parent(&document, is_broken || self.has(&document.id));
        let first = self.documents.get(&document.id).map(Document::place);
        if let Some(first) = first.or_else(|| self.broken.get(&document.id).cloned()) {
            let id = document.id.clone();
            for document in self.documents.remove(&id).into_iter().chain([document]) {
                self.broken_documents.push(document.clone());
                self.keep_overlay(document);
            }
            let message = format!("the same object stands at {first} too");
            let problem = Problem::document(place, message).about(id.clone());
            self.problems.push(problem.hint("remove one of the two; until then neither is used"));
            self.broken.insert(id, first);
        } else if is_broken {
            self.broken.insert(document.id.clone(), place);
            self.broken_documents.push(document.clone());
            self.keep_overlay(document);
        } else {
            self.documents.insert(document.id.clone(), document);
        }
    }
}

/// Reads out what a document is; one that does not say it comes back as far as it goes, with what is wrong.
fn identify(file: &Arc<str>, root: Node) -> Result<Document, Box<(Document, Problem)>> {
    let text = |path: &[&str]| root.at(path.iter().copied()).and_then(Node::as_str).unwrap_or_default();
    let (api_version, kind, name) = (text(&["apiVersion"]), text(&["kind"]), text(&["metadata", "name"]));
    let gvk = Gvk::new(api_version, kind);
    let id = ObjectId::new(&gvk.group, kind, text(&["metadata", "namespace"]), name);
    let document = Document { id, gvk, file: Arc::clone(file), root, patched: Vec::new() };
    let Some((path, flaw)) = IDENTITY.iter().find_map(|path| Some((path, missing(&document.root, path)?))) else {
        return Ok(document);
    };
    let problem = Problem::document(document.place_of(path), flaw);
    let hint = format!("a file that holds no Kubernetes objects can be listed in {IGNORE_FILE}");
    Err(Box::new((document, problem.hint(hint))))
}

/// The fields that say which object a document is.
const IDENTITY: [&[&str]; 4] = [&["apiVersion"], &["kind"], &["metadata", "name"], &["metadata", NAMESPACE]];

/// The one of them that may be absent.
const NAMESPACE: &str = "namespace";

/// Says why a field does not tell which object a document is, if so.
fn missing(root: &Node, path: &[&str]) -> Option<String> {
    if !matches!(root.content, Content::Map(_)) {
        return Some(format!("the document is {}, and no object", with_article(root.content.type_name())));
    }
    let (field, node) = (path.join("."), root.at(path.iter().copied()));
    let is_optional = path.last() == Some(&NAMESPACE);
    match node.map(|node| &node.content) {
        None | Some(Content::Null) if is_optional => None,
        Some(Content::String(text)) if !text.is_empty() || is_optional => metadata::of_kind(&field, text),
        None | Some(Content::Null | Content::String(_)) => Some(format!("the document has no {field}")),
        Some(other) => Some(format!("{field} is {}, but must be a string", with_article(other.type_name()))),
    }
}

fn with_article(type_name: &str) -> String {
    match type_name {
        "null" => type_name.to_owned(),
        "integer" | "object" => format!("an {type_name}"),
        other => format!("a {other}"),
    }
}

/// Describes a document that is no spec as it stands.
fn suspect(document: &Document, flaw: Flaw, specs: &Specs) -> Suspect {
    let said = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let id = &document.id;
    let has_version = !document.gvk.version.is_empty();
    let namespace = specs.target_namespace.clone().or_else(|| said(&id.namespace));
    let group = has_version.then(|| id.group.clone());
    Suspect { place: document.place(), flaw, group, kind: said(&id.kind), namespace, name: said(&id.name) }
}

/// Returns what is wrong with the form of a document.
pub(crate) fn validate(document: &Document, kind: &Kind, definitions: &Definitions) -> Vec<Problem> {
    if !kind.versions.contains(&document.gvk.version) {
        let message = format!("version {:?} of {} is not known", document.gvk.version, document.gvk.kind);
        let hint = format!("use {}/{}", document.gvk.group, kind.versions[0]);
        let problem = document.problem(&["apiVersion"], message).hint(hint);
        let newer = version::successor(document, kind);
        return vec![problem.fixed(&document.gvk.api_version(), newer.as_deref())];
    }
    let mut mistakes = check::check(&document.root, &kind.schema);
    if let Some(sense) = kind.sense.filter(|_| mistakes.is_empty()) {
        mistakes = sense(&document.root);
    }
    let is_new = |it: &check::Mistake| mistakes.iter().all(|mistake| mistake.position != it.position);
    let found = metadata::check(&document.id.group, &document.root);
    let found: Vec<check::Mistake> = found.into_iter().filter(is_new).collect();
    mistakes.extend(found);
    if mistakes.is_empty() {
        mistakes = definitions.mistakes(document);
    }
    mistakes.sort_by_key(|mistake| mistake.position);
    document.problems(mistakes)
}
