//! The packs of an installation: those that are built in, and those in folders that add one or replace files of one.
//!
//! Folders count as a part of the config file: they are read with it, and read again when that is (SIGHUP), so that
//! nothing but sources and clusters changes what a round does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gatewright_engine::admission::Definitions;
use gatewright_engine::enforce;
use gatewright_engine::error::Chain;
use gatewright_engine::pack::builtin::{Builtin, with_files};
use gatewright_engine::pack::overrides::Override;
use gatewright_engine::pack::{MANIFEST, Pack, PackError, Packs};
use gatewright_engine::tree::files::{self, FilesError};
use gatewright_engine::yaml::{self, Node};
use serde_json::Value;

use super::environment::Environment;
use super::pack_overrides::{Entry, lost_packs, with_authorities};
use super::settings::Settings;
use crate::basics::paths::Paths;

/// The packs that the program is built with, in the order in which they are asked whether a spec is theirs.
pub type Builtins = Arc<[Builtin]>;

/// The packs that are at hand.
#[derive(Clone, Debug)]
pub struct Folders {
    /// Those that the program is built with.
    pub builtin: Builtins,
    /// The files of those in folders, by the names of the packs.
    pub own: BTreeMap<String, Folder>,
}

/// The files of one pack, by their names.
pub type Folder = BTreeMap<String, String>;

/// A pack cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use pack {name:?}")]
pub struct UnusablePack {
    pub(super) name: String,
    #[source]
    pub(super) source: PackError,
}

/// A folder cannot be read as packs.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Its files are no pack's, or cannot be read.
    #[error(transparent)]
    Files(FilesError),
    /// It holds no pack.
    #[error("{0:?} holds no pack: there is no {MANIFEST} in it, nor in a folder below it")]
    Empty(PathBuf),
    /// `pack.yaml` does not say its name.
    #[error("{0:?} does not say the name of the pack")]
    Nameless(PathBuf),
    /// Two folders hold one pack.
    #[error("{0:?} and another folder are both the pack {1:?}")]
    Twice(PathBuf, String),
}

impl Folders {
    /// Returns the names of all packs: those that the program is built with, then others.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let is_other = |name: &&str| self.builtin.iter().all(|pack| pack.name != *name);
        let others = self.own.keys().map(String::as_str).filter(is_other);
        self.builtin.iter().map(|pack| pack.name).chain(others)
    }
}

/// Reads folders, each a pack or a folder of packs.
pub fn folders<'a>(builtin: &Builtins, paths: impl IntoIterator<Item = &'a Path>) -> Result<Folders, FolderError> {
    let mut own = BTreeMap::new();
    for path in paths {
        for (name, folder) in below(builtin, path)? {
            if own.insert(name.clone(), folder).is_some() {
                return Err(FolderError::Twice(path.to_owned(), name));
            }
        }
    }
    Ok(Folders { builtin: Arc::clone(builtin), own })
}

fn below(builtin: &Builtins, path: &Path) -> Result<Vec<(String, Folder)>, FolderError> {
    if let Some(pack) = pack_in(builtin, path)? {
        return Ok(vec![pack]);
    }
    let mut packs = Vec::new();
    for path in files::entries(path).map_err(FolderError::Files)?.into_iter().filter(|path| path.is_dir()) {
        packs.extend(pack_in(builtin, &path)?);
    }
    if packs.is_empty() { Err(FolderError::Empty(path.to_owned())) } else { Ok(packs) }
}

/// Reads a folder as a pack: one with a `pack.yaml`, or one that bears the name of a built-in pack.
pub fn pack_in(builtin: &Builtins, path: &Path) -> Result<Option<(String, Folder)>, FolderError> {
    let own_name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_pack = path.join(MANIFEST).is_file();
    if !is_pack && builtin.iter().all(|pack| pack.name != own_name) {
        return Ok(None);
    }
    let files = files::read(path).map_err(FolderError::Files)?;
    let name = match files.get(MANIFEST) {
        None => own_name.to_owned(),
        Some(text) => {
            let manifest = yaml::parse_values(text).ok().and_then(|mut documents| documents.pop());
            let name = manifest.as_ref().and_then(|manifest| manifest["name"].as_str());
            // What is wrong with the file shows when it is used.
            name.unwrap_or(own_name).to_owned()
        }
    };
    if name.is_empty() { Err(FolderError::Nameless(path.join(MANIFEST))) } else { Ok(Some((name, files))) }
}

/// Reads the folders that settings and the command line name, and makes their paths absolute.
pub(super) fn read_all(
    settings: &mut Settings,
    paths: &Paths,
    environment: &Environment,
    mut wrong: impl FnMut(&[&str], String),
) -> Folders {
    let builtin = &environment.builtin;
    let mut all = Folders { builtin: Arc::clone(builtin), own: BTreeMap::new() };
    for (index, path) in settings.pack_folders.iter_mut().enumerate() {
        let place = ["packFolders", &index.to_string()];
        match paths.resolve(path) {
            Ok(resolved) => *path = resolved,
            Err(error) => wrong(&place, error.to_string()),
        }
        match folders(builtin, [path.as_path()]) {
            Ok(folders) => all.own.extend(folders.own),
            Err(error) => wrong(&place, Chain(&error).to_string()),
        }
    }
    match folders(builtin, environment.packs.iter().map(PathBuf::as_path)) {
        Ok(folders) => all.own.extend(folders.own),
        Err(error) => wrong(&[], Chain(&error).to_string()),
    }
    let known: Vec<&str> = all.names().collect();
    for (name, message) in lost_packs(&settings.packs, &known) {
        wrong(&["packs", &name], message);
    }
    all
}

/// The part of a config file about packs.
pub struct PackConfig<'a> {
    /// The name of the file, for places.
    pub file: &'a str,
    /// The settings, by pack.
    pub root: &'a Node,
    /// The texts of authorities that the settings name, by pack.
    pub authorities: BTreeMap<&'static str, String>,
    /// Settings for some clusters or classes.
    pub overrides: &'a [Entry],
    /// The definitions by which documents are checked.
    pub definitions: Definitions,
}

/// Builds all packs: folders replace built-in packs, or are asked after them.
pub fn build(config: Option<&PackConfig<'_>>, folders: &Folders) -> Result<Packs, UnusablePack> {
    let fail = |name: &str, source| UnusablePack { name: name.to_owned(), source };
    let packs = folders.names().map(|name| pack(name, config, folders).map_err(|error| fail(name, error)));
    let packs = packs.collect::<Result<Vec<_>, _>>()?;
    let packs = Packs::new(packs).map_err(|error| fail(folders.names().next().unwrap_or_default(), error))?;
    Ok(packs.with_definitions(config.map_or_else(gatewright_packs::definitions, |it| it.definitions.clone())))
}

/// Builds one pack.
fn pack(name: &str, config: Option<&PackConfig<'_>>, folders: &Folders) -> Result<Pack, PackError> {
    let files =
        folders.own.get(name).into_iter().flatten().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let Some(PackConfig { file, root, authorities, overrides, .. }) = config else {
        return with_files(&folders.builtin, name, &files, &Value::Null);
    };
    let settings = root.get(name);
    let with = |value: &Value| {
        let mut pack = with_files(&folders.builtin, name, &files, value)?;
        if let Some(parameters) = settings.and_then(|settings| settings.get("parameters")) {
            pack = pack.with_settings(*file, parameters.clone());
        }
        if let Some(bounds) = settings.and_then(|settings| settings.get("enforce")) {
            pack = pack.with_enforce(enforce::bounds(file, bounds));
        }
        Ok(pack)
    };
    let mut value = root.to_value();
    with_authorities(&mut value, authorities);
    let value = value[name].take();
    let mut pack = with(&value)?;
    for Entry { clusters, classes, packs } in *overrides {
        let Some(own) = packs.get(name) else { continue };
        let (clusters, classes) = (clusters.clone(), classes.clone());
        pack = pack.with_override(Override { clusters, classes, pack: with(&merged(&value, own))? });
    }
    Ok(pack)
}

/// Puts settings over others, field by field; null leaves a field out.
fn merged(below: &Value, above: &Value) -> Value {
    let mut merged = below.clone();
    json_patch::merge(&mut merged, above);
    merged
}

/// Takes out the settings that the deployers of control planes do not have.
pub(super) fn forget_own(settings: &mut Value, packs: &Packs) {
    for (name, settings) in settings.as_object_mut().into_iter().flatten() {
        let manifest = packs.all().iter().map(|pack| &pack.manifest).find(|manifest| manifest.name == *name);
        let own = manifest.and_then(|manifest| manifest.self_managed.as_ref());
        let own = own.map(|deployer| deployer.own_settings.as_slice()).unwrap_or_default();
        let is_own = |key: &str| ["enforce", "parameters"].contains(&key) || own.iter().any(|own| own == key);
        if let Some(settings) = settings.as_object_mut() {
            settings.retain(|key, _| !is_own(key));
        }
    }
}
