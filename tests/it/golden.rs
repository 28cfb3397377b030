//! Cases: a folder of specs, and what becomes of it.
//!
//! A case is a folder below `tests/golden` whose name is a sentence.
//! `in/` holds the specs, or `in.path` names a folder of the repository that does.
//! `settings.yaml`, if there, says what a config file would. All built-in packs are there, as in the program.
//! Expected are `objects.yaml` (all objects, in the order in which they are applied), `problems.txt` (one a line) and
//! `units.txt` (what became of every spec).
//!
//! `GATEWRIGHT_BLESS=1 cargo test --test it golden` writes what is expected anew; the change is to be reviewed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gatewright_engine::enforce;
use gatewright_engine::error::Chain;
use gatewright_engine::object::{Object, ObjectId};
use gatewright_engine::pack::{Pack, Packs};
use gatewright_engine::plan::order::{rank, wave};
use gatewright_engine::selector::ClusterFacts;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{self, Options, Rendering};
use gatewright_engine::yaml::{self, Node};
use serde_json::Value;

use crate::cluster::binaries::in_repository;

/// One case.
pub(crate) struct Case {
    folder: PathBuf,
    /// The name of its folder.
    pub(crate) name: String,
    /// Its specs.
    pub(crate) tree: Tree,
    /// What renders them.
    pub(crate) packs: Packs,
    /// What its settings say about all objects.
    pub(crate) options: Options,
    /// What became of its specs.
    pub(crate) rendering: Rendering,
}

/// Renders all cases, in the order of their names.
pub(crate) fn cases() -> Vec<Case> {
    let folder = in_repository("tests/golden");
    let entries = fs::read_dir(&folder).expect("the cases can be listed");
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.expect("the cases can be listed").path()).collect();
    folders.sort();
    folders.into_iter().map(Case::read).collect()
}

impl Case {
    fn read(folder: PathBuf) -> Self {
        let name = folder.file_name().expect("a case has a name").to_string_lossy().into_owned();
        let specs = specs(&folder);
        let tree = Tree::read_dir(&specs).unwrap_or_else(|error| panic_about(&name, &Chain(&error).to_string()));
        assert!(!tree.is_empty(), "{name}: there are no specs in {}", specs.display());
        let settings = Settings::read(&folder.join("settings.yaml"));
        let (packs, options) = (settings.packs(&name), settings.options());
        let rendering = unit::render(&tree, &packs, &options);
        Self { folder, name, tree, packs, options, rendering }
    }

    /// The files that are expected, and what they ought to hold.
    fn outcome(&self) -> [(&'static str, String); 3] {
        let problems = lines(&self.rendering.problems);
        [("objects.yaml", self.objects()), ("problems.txt", problems), ("units.txt", self.units())]
    }

    fn objects(&self) -> String {
        let mut documents = Vec::new();
        let mut units: Vec<_> = self.rendering.units.iter().collect();
        units.sort_by_key(|unit| (wave(&unit.id), &unit.id));
        for unit in units {
            let mut objects: Vec<&Object> = unit.all().collect();
            objects.sort_by_key(|object| (rank(&object.id().kind), object.id()));
            documents.extend(objects.into_iter().map(|object| yaml::to_string(object.body())));
        }
        documents.join("---\n")
    }

    fn units(&self) -> String {
        let mut outcomes: BTreeMap<&ObjectId, String> = BTreeMap::new();
        for unit in &self.rendering.units {
            let files: Vec<&str> = unit.files.iter().map(|file| &**file).collect();
            outcomes.insert(&unit.id, format!("{} objects from {}", unit.all().count(), files.join(", ")));
        }
        outcomes.extend(self.rendering.broken.iter().map(|id| (id, "broken".to_owned())));
        outcomes.extend(self.rendering.self_managed.iter().map(|id| (id, "self-managed".to_owned())));
        outcomes.extend(self.rendering.unclaimed.iter().map(|(id, place)| (id, format!("unclaimed, {place}"))));
        lines(outcomes.iter().map(|(id, outcome)| format!("{id}: {outcome}")))
    }
}

/// Writes each item on a line.
fn lines(items: impl IntoIterator<Item: ToString>) -> String {
    items.into_iter().flat_map(|item| [item.to_string(), "\n".to_owned()]).collect()
}

/// What a case's `settings.yaml` says: `packs` as in the config, `pack` for `packs.kgateway`, what a sync says, and the
/// cluster with its name and labels.
struct Settings(Option<Node>);

impl Settings {
    const FIELDS: [&str; 8] =
        ["pack", "packs", "targetNamespace", "commonLabels", "commonAnnotations", "unclaimed", "specs", "cluster"];

    fn read(file: &Path) -> Self {
        let Ok(text) = fs::read_to_string(file) else { return Self(None) };
        let node = yaml::parse(&text).expect("the settings of a case are YAML").remove(0);
        let unknown: Vec<&str> = node.fields().map(|(name, _)| name).filter(|n| !Self::FIELDS.contains(n)).collect();
        assert!(unknown.is_empty(), "{}: unknown: {}", file.display(), unknown.join(", "));
        Self(Some(node))
    }

    fn get(&self, field: &str) -> Option<&Node> {
        self.0.as_ref().and_then(|node| node.get(field))
    }

    fn packs(&self, case: &str) -> Packs {
        let named = |name| self.get("packs").and_then(|packs| packs.get(name));
        let kgateway = Self::pack("kgateway", self.get("pack").or(named("kgateway")), case);
        let packs = vec![kgateway, Self::pack("agentgateway", named("agentgateway"), case)];
        Packs::new(packs).expect("the schemas of the built-in packs are sound")
    }

    fn pack(name: &str, settings: Option<&Node>, case: &str) -> Pack {
        let pack = Pack::builtin(name, &settings.map_or(Value::Null, Node::to_value));
        let mut pack = pack.unwrap_or_else(|error| panic_about(case, &Chain(&error).to_string()));
        if let Some(parameters) = settings.and_then(|settings| settings.get("parameters")) {
            pack = pack.with_settings("settings.yaml", parameters.clone());
        }
        if let Some(bounds) = settings.and_then(|settings| settings.get("enforce")) {
            pack = pack.with_enforce(enforce::bounds("settings.yaml", bounds));
        }
        pack
    }

    fn options(&self) -> Options {
        let pairs = |field: &str| self.get(field).map(pairs).unwrap_or_default();
        let facts = |node: &Node| ClusterFacts {
            name: node.get("name").and_then(Node::as_str).unwrap_or_default().to_owned(),
            labels: node.get("labels").map(self::pairs).unwrap_or_default(),
            capabilities: None,
        };
        Options {
            target_namespace: self.get("targetNamespace").and_then(Node::as_str).map(str::to_owned),
            common_labels: pairs("commonLabels"),
            common_annotations: pairs("commonAnnotations"),
            apply_unclaimed: self.get("unclaimed").and_then(Node::as_str) == Some("apply"),
            apply_specs: self.get("specs").and_then(Node::as_str) == Some("apply"),
            cluster: self.get("cluster").map(facts),
        }
    }
}

fn pairs(node: &Node) -> BTreeMap<String, String> {
    let text = |node: &Node| node.as_str().unwrap_or_default().to_owned();
    node.fields().map(|(key, field)| (key.to_owned(), text(&field.node))).collect()
}

/// Returns the folder with the specs of a case.
fn specs(case: &Path) -> PathBuf {
    match fs::read_to_string(case.join("in.path")) {
        Ok(path) => in_repository(path.trim()),
        Err(_) => case.join("in"),
    }
}

#[expect(clippy::panic, reason = "a case that cannot be read at all fails with its name")]
fn panic_about(case: &str, message: &str) -> ! {
    panic!("{case}: {message}")
}

/// Tells whether what is expected is to be written anew.
#[expect(clippy::disallowed_methods, reason = "the one switch of the cases, for the person who runs them")]
pub(crate) fn blesses() -> bool {
    std::env::var_os("GATEWRIGHT_BLESS").is_some()
}

/// Says where two texts part.
fn difference(expected: &str, actual: &str) -> String {
    let line = expected.lines().zip(actual.lines()).take_while(|(expected, actual)| expected == actual).count();
    let show = |text: &str| text.lines().nth(line).unwrap_or("(the end)").to_owned();
    format!("line {}:\n  expected: {}\n  rendered: {}", line + 1, show(expected), show(actual))
}

#[test]
fn golden_cases_render_as_expected() {
    let mut failures = Vec::new();
    for case in cases() {
        for (name, actual) in case.outcome() {
            let file = case.folder.join(name);
            if blesses() {
                fs::write(&file, &actual).expect("the cases can be written");
            }
            match fs::read_to_string(&file) {
                Ok(expected) if expected == actual => {}
                Ok(expected) => failures.push(format!("{}/{name}, {}", case.name, difference(&expected, &actual))),
                Err(error) => failures.push(format!("{}/{name}: {error}", case.name)),
            }
        }
    }
    assert!(failures.is_empty(), "{}\nGATEWRIGHT_BLESS=1 writes them anew; review the change", failures.join("\n"));
}

#[test]
fn golden_cases_hold_nothing_that_is_forgotten() {
    const KNOWN: [&str; 6] = ["in", "in.path", "objects.yaml", "problems.txt", "settings.yaml", "units.txt"];
    for case in cases() {
        for entry in fs::read_dir(&case.folder).expect("the cases can be listed") {
            let name = entry.expect("the cases can be listed").file_name().to_string_lossy().into_owned();
            assert!(KNOWN.contains(&name.as_str()), "{}: nobody reads {name:?}", case.name);
        }
    }
}

#[test]
fn golden_cases_hold_every_example() {
    let covered: Vec<PathBuf> = cases().iter().map(|case| specs(&case.folder)).collect();
    let steps = fs::read_dir(in_repository("examples/tutorial")).expect("the tutorial can be listed");
    let steps = steps.map(|entry| entry.expect("the tutorial can be listed").path()).filter(|path| path.is_dir());
    let others = ["examples/quickstart/specs", "examples/fleet/specs"].map(in_repository);
    for example in steps.chain(others) {
        assert!(covered.contains(&example), "no case renders {}", example.display());
    }
}

#[test]
fn examples_have_no_problems() {
    for case in cases().iter().filter(|case| case.folder.join("in.path").exists()) {
        assert!(case.rendering.problems.is_empty(), "{}: {:?}", case.name, case.rendering.problems);
        assert!(case.rendering.broken.is_empty() && case.rendering.unclaimed.is_empty(), "{}", case.name);
    }
}

#[test]
fn rendering_twice_gives_the_same_bytes() {
    for (first, second) in cases().iter().zip(cases()) {
        assert_eq!(first.outcome(), second.outcome(), "{}", first.name);
    }
}
