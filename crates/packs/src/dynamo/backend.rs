//! Backends: what runs a model. Each is data: a file of `backends/` of the pack, or of a folder that adds to it.
//!
//! A backend says by which module of Dynamo it is known, and how it is launched on several nodes: what is put into the
//! command of the leader and of the others, which probes they lose, and what they need beside.
//! Every text in it may hold expressions of the templates' language; [`super::pod`] lists what they see.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::check::suggest;
use gatewright_engine::pack::{PackError, value};
use serde::Deserialize;
use serde_json::Value;

use super::command::Command;
use super::fill;
use super::model::{Component, Graph};
use super::nodes::Role;

/// A backend, which runs a model.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Backend {
    /// The module that a command of it runs: `python3 -m MODULE`.
    pub(super) module: String,
    /// Numbers that are read off the flags of the command, for expressions: `numbers.NAME`.
    pub(super) numbers: BTreeMap<String, Number>,
    /// Texts that are read off the flags of the command, for expressions: `texts.NAME`.
    pub(super) texts: BTreeMap<String, Vec<String>>,
    /// Whether flags stand in the command, for expressions: `switches.NAME`.
    pub(super) switches: BTreeMap<String, Vec<String>>,
    /// Environment of every worker behind all other; what is empty is left out.
    pub(super) env: Vec<Value>,
    /// The ways to launch it on several nodes; the first whose condition holds.
    pub(super) multinode: Vec<Launch>,
}

/// A number that flags say.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Number {
    /// The spellings of the flag.
    pub(super) flags: Vec<String>,
    /// The value that counts without the flag.
    pub(super) default: u64,
}

/// One way to launch a model on several nodes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Launch {
    /// Its name in messages.
    pub(super) name: String,
    /// An expression; empty for always.
    pub(super) when: String,
    /// Settings of the pack that must not be empty, as `mpi.sshSecretName`.
    pub(super) requires: Vec<String>,
    /// The reason why it cannot be done here; empty if it can.
    pub(super) refused: String,
    /// Whether the leader starts only after the others; under Grove.
    pub(super) leader_last: bool,
    /// `ConfigMaps` of the graph that it needs, by the end of their name.
    pub(super) files: BTreeMap<String, BTreeMap<String, String>>,
    /// The first node.
    pub(super) leader: Node,
    /// The others.
    pub(super) worker: Node,
}

/// The special settings of a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Node {
    /// Flags behind the module.
    pub(super) flags: String,
    /// A script in place of the command, which it finds in `command`.
    pub(super) script: String,
    /// Probes that it has in place of those of workers; null for none.
    pub(super) probes: BTreeMap<String, Value>,
    /// Further environment, behind all other.
    pub(super) env: Vec<Value>,
    /// Names of variables that its script is told of beside those of its own environment.
    pub(super) variables: BTreeSet<String>,
    /// Further volumes.
    pub(super) volumes: Vec<Value>,
    /// Further volumes that stand behind the shared memory.
    pub(super) later_volumes: Vec<Value>,
    /// Further mounts of the main container.
    pub(super) volume_mounts: Vec<Value>,
    /// Further init containers.
    pub(super) init_containers: Vec<Value>,
}

/// Backends by name.
pub(super) type Backends = BTreeMap<String, Backend>;

/// Reads the backends of the pack: every file of its folder `backends` is one.
pub(super) fn all(files: &BTreeMap<&str, &str>) -> Result<Backends, PackError> {
    let name = |file: &str| Some(file.strip_prefix("backends/")?.strip_suffix(".yaml")?.to_owned());
    let named = files.keys().filter_map(|file| Some((name(file)?, *file)));
    let read = |(name, file): (String, &str)| {
        Ok((name, serde_json::from_value(value(files, file)?).map_err(PackError::Manifest)?))
    };
    named.map(read).collect()
}

/// The reason why a component cannot be expanded.
#[derive(Debug, Default)]
pub(super) struct Obstacle {
    pub(super) message: String,
    pub(super) hint: Option<String>,
    /// Whether the graph says so, and not the component.
    pub(super) of_graph: bool,
}

impl From<String> for Obstacle {
    fn from(message: String) -> Self {
        Self { message, ..Self::default() }
    }
}

/// Finds the backend of a component: what its command runs, which must be what its graph says.
pub(super) fn of<'a>(
    backends: &'a Backends,
    graph: &Graph,
    component: &Component,
) -> Result<Option<&'a Backend>, Obstacle> {
    if let Some(name) = graph.backend.as_deref().filter(|name| !backends.contains_key(*name)) {
        let names: Vec<&str> = backends.keys().map(String::as_str).collect();
        let hint = match suggest(name, names.iter().copied()) {
            Some(meant) => format!("did you mean {meant:?}?"),
            None => format!("there are {}; a folder with backends/{name}.yaml adds it", names.join(", ")),
        };
        return Err(Obstacle { message: format!("there is no backend {name:?}"), hint: Some(hint), of_graph: true });
    }
    if !component.kind.is_worker() {
        return Ok(None);
    }
    let module = Command::of(&component.main).module().map(|module| format!("dynamo.{module}"));
    let run = module.and_then(|module| backends.iter().find(|(_, backend)| backend.module == module));
    match (&graph.backend, run) {
        (Some(said), Some((run, _))) if said != run => {
            Err(format!("the command runs {run}, and backendFramework says {said:?}").into())
        }
        (_, Some((_, backend))) => Ok(Some(backend)),
        // A command of its own may run it all the same.
        (Some(said), None) => Ok(backends.get(said)),
        (None, None) => Ok(None),
    }
}

impl Launch {
    /// Returns what is special about a node.
    pub(super) fn node(&self, role: Role) -> &Node {
        if role == Role::Leader { &self.leader } else { &self.worker }
    }
}

impl Backend {
    /// Returns how it is launched on several nodes, if anything is special about that.
    pub(super) fn launch(&self, scope: &Value) -> Result<Option<&Launch>, String> {
        for launch in &self.multinode {
            if launch.when.is_empty() || fill::holds(&launch.when, scope)? {
                return Ok(Some(launch));
            }
        }
        Ok(None)
    }

    /// Returns the texts that a command says.
    pub(super) fn texts(&self, command: &Command) -> BTreeMap<&str, String> {
        let text = |flags: &Vec<String>| command.value(flags).unwrap_or_default();
        self.texts.iter().map(|(name, flags)| (name.as_str(), text(flags))).collect()
    }

    /// Returns which flags stand in a command.
    pub(super) fn switches(&self, command: &Command) -> BTreeMap<&str, bool> {
        self.switches.iter().map(|(name, flags)| (name.as_str(), command.has(flags))).collect()
    }

    /// Returns the numbers that a command says.
    pub(super) fn numbers(&self, command: &Command) -> BTreeMap<&str, u64> {
        let number = |number: &Number| command.number(&number.flags).unwrap_or(number.default);
        self.numbers.iter().map(|(name, it)| (name.as_str(), number(it))).collect()
    }
}
