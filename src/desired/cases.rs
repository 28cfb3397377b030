//! Cases: a folder of specs, and what becomes of it.
//!
//! `in/` holds the specs. `settings.yaml`, if there, says what a config file would: `packs`, what a sync says about all
//! objects, and the `cluster` with name, labels, annotations and what it can do. Expected are `objects.yaml` (all objects, in the order
//! in which they are applied), `problems.txt` (one a line) and `units.txt` (what became of every spec).
//! The cases of the packs that are built in have this form, and those of anybody's.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gatewright_engine::object::ObjectId;
use gatewright_engine::pack::Packs;
use gatewright_engine::selector::{Capabilities, ClusterFacts};
use gatewright_engine::tree::{ReadError, Tree};
use gatewright_engine::unit::{self, Options, Rendering};
use gatewright_engine::yaml::{self, Node, YamlError};

use crate::config::packs::{Folders, PackConfig, UnusablePack, build};
use crate::desired::rendering::in_order;

/// The folder with the specs of a case.
pub const SPECS: &str = "in";

/// The file with the settings of a case.
pub const SETTINGS: &str = "settings.yaml";

/// The files that hold what is expected.
pub const EXPECTED: [&str; 3] = ["objects.yaml", "problems.txt", "units.txt"];

/// The fields that a case's settings may have.
const FIELDS: [&str; 7] =
    ["packs", "targetNamespace", "commonLabels", "commonAnnotations", "unclaimed", "specs", "cluster"];

/// One case.
pub struct Case {
    /// The folder of the case.
    pub folder: PathBuf,
    /// The name of its folder.
    pub name: String,
    /// Its specs.
    pub tree: Tree,
    /// The packs that render them.
    pub packs: Packs,
    /// The options that its settings give for all objects.
    pub options: Options,
    /// The outcome of rendering its specs.
    pub rendering: Rendering,
}

/// A case that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// Its specs cannot be read.
    #[error("cannot read the specs of the case")]
    Specs(#[source] ReadError),
    /// There are none.
    #[error("there are no specs in {0:?}")]
    Empty(PathBuf),
    /// Its settings are no YAML.
    #[error("cannot read {SETTINGS} of the case")]
    Settings(#[source] YamlError),
    /// Its settings say something that nobody reads.
    #[error("{SETTINGS} of the case says {0:?}, which nobody reads; known are {known}", known = FIELDS.join(", "))]
    Unknown(String),
    /// A pack cannot be used.
    #[error(transparent)]
    Pack(UnusablePack),
}

impl Case {
    /// Reads a case, whose specs may be anywhere, and renders it; `folders` are packs beside the built-in ones.
    pub fn read(folder: &Path, specs: &Path, folders: &Folders) -> Result<Self, CaseError> {
        let tree = Tree::read_dir(specs).map_err(CaseError::Specs)?;
        if tree.is_empty() {
            return Err(CaseError::Empty(specs.to_owned()));
        }
        let settings = settings(&folder.join(SETTINGS))?;
        let config = settings.as_ref().and_then(|settings| settings.get("packs"));
        let config = config.map(|root| PackConfig {
            file: SETTINGS,
            root,
            authorities: BTreeMap::new(),
            overrides: &[],
            definitions: gatewright_packs::definitions(),
        });
        let packs = build(config.as_ref(), folders).map_err(CaseError::Pack)?;
        let options = settings.as_ref().map(options).unwrap_or_default();
        let rendering = unit::render(&tree, &packs, &options);
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { folder: folder.to_owned(), name, tree, packs, options, rendering })
    }

    /// Returns what ought to be in each file of [`EXPECTED`].
    pub fn outcome(&self) -> [(&'static str, String); 3] {
        let [objects, problems, units] = EXPECTED;
        [(objects, self.objects()), (problems, lines(&self.rendering.problems)), (units, self.units())]
    }

    fn objects(&self) -> String {
        let objects = in_order(&self.rendering, self.packs.table()).into_iter();
        objects.map(|(_, object)| yaml::to_string(object.body())).collect::<Vec<_>>().join("---\n")
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

fn settings(file: &Path) -> Result<Option<Node>, CaseError> {
    let Ok(text) = fs::read_to_string(file) else { return Ok(None) };
    let Some(node) = yaml::parse(&text).map_err(CaseError::Settings)?.pop() else { return Ok(None) };
    let unknown = node.fields().map(|(name, _)| name.to_owned()).find(|name| !FIELDS.contains(&name.as_str()));
    unknown.map_or(Ok(Some(node)), |name| Err(CaseError::Unknown(name)))
}

fn options(settings: &Node) -> Options {
    let text = |field: &str| settings.get(field).and_then(Node::as_str);
    let all = |field: &str| settings.get(field).map(pairs).unwrap_or_default();
    Options {
        target_namespace: text("targetNamespace").map(str::to_owned),
        common_labels: all("commonLabels"),
        common_annotations: all("commonAnnotations"),
        apply_unclaimed: text("unclaimed") == Some("apply"),
        apply_specs: text("specs") == Some("apply"),
        copy_addresses: false,
        is_check: false,
        now: None,
        cluster: settings.get("cluster").map(cluster),
        fleet: None,
    }
}

/// Reads what is known of a cluster: `kinds` are written `Kind.group`, `operators` are the packs that have one at work.
fn cluster(node: &Node) -> ClusterFacts {
    let texts = |field: &str| node.get(field).into_iter().flat_map(Node::items).filter_map(Node::as_str);
    let kind = |text: &str| {
        let (kind, group) = text.split_once('.').unwrap_or((text, ""));
        (group.to_owned(), kind.to_owned())
    };
    let is_asked = node.get("kinds").is_some() || node.get("operators").is_some();
    let capabilities = is_asked.then(|| Capabilities {
        kinds: texts("kinds").map(kind).collect(),
        operators: texts("operators").map(str::to_owned).collect(),
    });
    let name = node.get("name").and_then(Node::as_str).unwrap_or_default().to_owned();
    let all = |field: &str| node.get(field).map(pairs).unwrap_or_default();
    let (labels, annotations) = (all("labels"), all("annotations"));
    ClusterFacts { name, labels, annotations, capabilities, is_example: false }
}

fn pairs(node: &Node) -> BTreeMap<String, String> {
    let text = |node: &Node| node.as_str().unwrap_or_default().to_owned();
    node.fields().map(|(key, field)| (key.to_owned(), text(&field.node))).collect()
}
