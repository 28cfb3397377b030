//! Nothing goes that was not certainly withdrawn: sources that are spoiled in every way that an editor, a disk or a typo
//! can spoil them.

mod classes;
mod edits;
mod slips;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use gatewright::desired::cases::Case;
use gatewright_engine::inventory::{Entry, Inventory};
use gatewright_engine::live::Live;
use gatewright_engine::marks::Marker;
use gatewright_engine::object::{Object, ObjectId};
use gatewright_engine::plan::policies::{MaxDelete, Policies};
use gatewright_engine::plan::{NamespaceState, Observed, Plan, plan};
use gatewright_engine::tree::{Entry as File, IGNORE_FILE, Tree};
use gatewright_engine::unit::marked::Marked;
use gatewright_engine::unit::{Options, Rendering, Unit, render};
use gatewright_engine::yaml;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::Value;
use tempfile::TempDir;

use crate::golden;
use crate::program::asked;
use edits::Edit;

/// The number of edits that are tried where `GATEWRIGHT_EDITS` asks for no other.
const EDITS: usize = 2_000;

/// The seed that they begin with where `GATEWRIGHT_SEED` asks for no other.
const SEED: usize = 0x0067_6174;

/// The folder of the source that holds all of it, so that it can be spoiled, too.
const FOLDER: &str = "team";

/// The identity of a document, in one line.
type Identity = String;

/// A source that was applied.
struct World {
    name: String,
    root: TempDir,
    case: &'static Case,
    options: Options,
    marker: Marker,
    owned: Inventory,
    live: BTreeMap<ObjectId, Live>,
    /// What stood in each file of the source.
    files: BTreeMap<String, Vec<Option<Identity>>>,
    /// The documents that stood in the source.
    documents: BTreeSet<Identity>,
    kinds: BTreeSet<String>,
}

impl World {
    fn new(case: &'static Case) -> Self {
        let root = tempfile::tempdir().expect("temporary folders can be made");
        for (path, entry) in case.tree.files() {
            let File::Text(text) = entry else { continue };
            let file = root.path().join(FOLDER).join(path);
            fs::create_dir_all(file.parent().expect("it is in a folder")).expect("a temporary folder can be written");
            fs::write(file, text.as_bytes()).expect("a temporary folder can be written");
        }
        let marker = Marker::new("0123456789abcdef", "edge");
        let options = Options { apply_unclaimed: true, ..case.options.clone() };
        let mut world = Self {
            name: case.name.clone(),
            root,
            case,
            options,
            marker,
            owned: Inventory::default(),
            live: BTreeMap::new(),
            files: BTreeMap::new(),
            documents: BTreeSet::new(),
            kinds: BTreeSet::new(),
        };
        world.apply();
        world
    }

    fn read(&self) -> Tree {
        Tree::read_dir(self.root.path()).expect("the folder can be listed")
    }

    fn rendering(&self) -> Marked {
        render(&self.read(), &self.case.packs, &self.options).marked(&self.marker)
    }

    fn apply(&mut self) {
        for unit in &self.rendering().units {
            for (number, object) in unit.all().enumerate() {
                let uid = format!("{}-{number}", unit.id);
                let files = unit.files.iter().map(ToString::to_string).collect();
                let (gvk, unit) = (object.gvk(), unit.id.clone());
                let entry = Entry { gvk, uid: Some(uid.clone()), unit, adopted: false, files, overlays: [].into() };
                self.owned.entries.insert(object.id().clone(), entry);
                self.live.insert(object.id().clone(), live(object, &uid));
            }
        }
        self.files = read_documents(&self.read());
        self.documents = self.files.values().flatten().flatten().cloned().collect();
        self.kinds = self.documents.iter().map(|identity| kind(identity).to_owned()).collect();
    }

    /// Plans a round of the source as it stands now, with every guard off that only counts.
    fn plan(&self) -> (Marked, Plan) {
        let policies = Policies {
            max_delete: MaxDelete { units: usize::MAX, percent: 100, fleet: usize::MAX },
            allow_empty: true,
            ..Policies::new(self.marker.clone())
        };
        let rendering = self.rendering();
        let observed = Observed { namespaces: self.namespaces(&rendering), ..self.observed() };
        let plan = plan(&rendering, &observed, &self.owned, &policies);
        (rendering, plan)
    }

    /// The objects that are there, for a plan of its own.
    fn observed(&self) -> Observed {
        Observed::from_objects("c", self.live.values().cloned())
    }

    /// The namespaces that were there before, and those that a slip has invented.
    fn namespaces(&self, rendering: &Rendering) -> BTreeMap<String, NamespaceState> {
        let wanted = rendering.units.iter().flat_map(Unit::all).map(|object| object.id().namespace.clone());
        let known: BTreeSet<&str> = self.live.keys().map(|id| id.namespace.as_str()).collect();
        let state = |is_known| if is_known { NamespaceState::Present } else { NamespaceState::Absent };
        wanted.map(|name| (name.clone(), state(known.contains(name.as_str())))).collect()
    }

    /// Returns what a plan deletes although nobody has said so.
    fn violation(&self, (rendering, plan): &(Marked, Plan)) -> Option<String> {
        let mut deleted = plan.steps.iter().filter(|step| step.action.deletes()).peekable();
        deleted.peek()?;
        let tree = self.read();
        let after = read_documents(&tree);
        let wanted: BTreeSet<&ObjectId> = rendering.units.iter().map(|unit| &unit.id).collect();
        deleted.find_map(|step| {
            let files = &self.owned.entries[&step.id].files;
            let why = files.iter().find_map(|file| self.unclear(file, &after)).or_else(|| {
                let is_there = wanted.contains(&step.unit);
                if is_there { None } else { self.lost(&step.unit, &after, rendering, plan) }
            });
            why.map(|why| format!("{} is deleted, and {why}", step.id))
        })
    }

    /// Says why a file that fed something does not tell what became of that. It looks at the disk by itself.
    fn unclear(&self, file: &str, after: &BTreeMap<String, Vec<Option<Identity>>>) -> Option<String> {
        let mut path = self.root.path().to_owned();
        for part in Path::new(file).parent().into_iter().flatten() {
            path.push(part);
            match fs::symlink_metadata(&path) {
                Err(_) => return None,
                Ok(found) if !found.is_dir() => return Some(format!("{} is no folder", path.display())),
                Ok(_) => {}
            }
        }
        match fs::symlink_metadata(self.root.path().join(file)) {
            Err(_) => None,
            Ok(found) if !found.is_file() => Some(format!("{file} is no file")),
            Ok(_) => match after.get(file) {
                None => Some(format!("{file} was not read")),
                Some(documents) if documents.is_empty() => Some(format!("{file} holds nothing")),
                // A table of an overlay never had a document that anybody knows.
                Some(documents) if self.files.get(file) == Some(documents) => None,
                Some(documents) => documents
                    .iter()
                    .any(|document| document.as_ref().is_none_or(|it| !self.kinds.contains(kind(it))))
                    .then(|| format!("{file} has a document that nobody knows")),
            },
        }
    }

    /// Says why a unit that is gone may have been meant to stay: another document is almost it, or what took its place
    /// is not there.
    fn lost(
        &self,
        unit: &ObjectId,
        after: &BTreeMap<String, Vec<Option<Identity>>>,
        rendering: &Rendering,
        plan: &Plan,
    ) -> Option<String> {
        let lost = identity(unit);
        if after.values().flatten().flatten().any(|identity| *identity == lost) {
            return Some("it still stands in the source".to_owned());
        }
        let new = after.values().flatten().flatten().filter(|identity| !self.documents.contains(*identity));
        for identity in new {
            let is_close = strsim(identity, &lost) <= 2;
            if is_close && !self.kinds.contains(kind(identity)) {
                return Some(format!("{identity} is almost {lost}"));
            }
        }
        let refused = plan.refusals.iter().map(|refusal| &refusal.unit).chain(rendering.broken.iter());
        let mut refused = refused.filter(|other| *other != unit && !self.owned.units().contains(other));
        refused.find(|other| other.name == unit.name).map(|other| format!("{other} is not in its place"))
    }
}

fn live(object: &Object, uid: &str) -> Live {
    let mut body = object.body().clone();
    body["metadata"]["uid"] = uid.into();
    body["metadata"]["resourceVersion"] = "1".into();
    Live::new(body).expect("it is an object")
}

fn identity(id: &ObjectId) -> Identity {
    format!("{}/{} {}/{}", id.group, id.kind, id.namespace, id.name)
}

fn kind(identity: &str) -> &str {
    identity.split_once(' ').map_or(identity, |(kind, _)| kind)
}

/// Returns the identities in each file; `None` for a document that has none.
fn read_documents(tree: &Tree) -> BTreeMap<String, Vec<Option<Identity>>> {
    let mut read = BTreeMap::new();
    for (path, entry) in tree.files().filter(|(path, _)| !path.ends_with(IGNORE_FILE)) {
        let File::Text(text) = entry else { continue };
        let Ok(documents) = yaml::parse(text) else { continue };
        let values = documents.iter().map(yaml::Node::to_value).flat_map(items);
        read.insert(path.to_owned(), values.map(|value| identity_of(&value)).collect());
    }
    read
}

fn items(value: Value) -> Vec<Value> {
    match value["items"].as_array() {
        Some(items) if value["kind"] == "List" => items.clone(),
        _ => vec![value],
    }
}

fn identity_of(value: &Value) -> Option<Identity> {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (version, kind, name) = (text("/apiVersion")?, text("/kind")?, text("/metadata/name")?);
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let namespace = text("/metadata/namespace").unwrap_or("default");
    Some(format!("{group}/{kind} {namespace}/{name}"))
}

/// The edit distance, by the book: this test trusts nothing of what it tests.
fn strsim(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut before = row[0];
        row[0] = line + 1;
        for (column, candidate) in other.iter().enumerate() {
            let change = before + usize::from(letter != *candidate);
            before = row[column + 1];
            row[column + 1] = change.min(before + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

/// Cases of ours, and those of the real systems where they are at hand.
fn worlds() -> Vec<World> {
    let mut worlds: Vec<World> = golden::cases().iter().map(World::new).collect();
    worlds.retain(|world| !world.owned.entries.is_empty());
    worlds
}

#[test]
fn whatever_spoils_a_source_nothing_is_deleted_that_was_not_withdrawn() {
    let worlds = worlds();
    let mut random = StdRng::seed_from_u64(asked("GATEWRIGHT_SEED", SEED) as u64);
    let mut tried: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut violations = Vec::new();
    let mut deletions = 0;
    for number in 0..asked("GATEWRIGHT_EDITS", EDITS) {
        let world = &worlds[number % worlds.len()];
        let Some(edit) = Edit::random(&world.root.path().join(FOLDER), &mut random) else { continue };
        *tried.entry(edit.word()).or_default() += 1;
        let undo = edit.apply();
        let planned = world.plan();
        if let Some(violation) = world.violation(&planned) {
            violations.push(format!("{}: {edit:?}: {violation}", world.name));
        }
        deletions += usize::from(planned.1.steps.iter().any(|step| step.action.deletes()));
        undo.apply();
    }
    assert!(violations.is_empty(), "{} violations\n{}", violations.len(), violations.join("\n"));
    // It would prove little if nothing was ever withdrawn, or a way to spoil files was never tried.
    assert!(deletions > 0 && tried.len() == Edit::WORDS, "{deletions} deletions, {tried:?}");
}
