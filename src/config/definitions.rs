//! Folders with definitions of kinds (CRDs), by which documents are checked in place of the built-in ones.
//!
//! They count as a part of the config file: they are read with it, and read again when that is.

use std::fs;
use std::path::{Path, PathBuf};

use gatewright_engine::admission::{Definition, Definitions};
use gatewright_engine::error::Chain;
use gatewright_engine::text::digest;
use gatewright_engine::tree::files::{FilesError, entries};
use gatewright_engine::yaml;
use serde_json::Value;

use super::settings::Settings;
use crate::basics::paths::Paths;

/// The longest file, in bytes: all definitions of a release together are much shorter.
const MAX_FILE: u64 = 32 << 20;

/// A folder cannot be used.
#[derive(Debug, thiserror::Error)]
enum FolderError {
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error("cannot read {0:?}")]
    Read(PathBuf, #[source] std::io::Error),
    #[error("{0:?} is longer than {MAX_FILE} bytes")]
    Long(PathBuf),
    #[error("{0:?} cannot be read as YAML")]
    Yaml(PathBuf, #[source] yaml::YamlError),
    #[error("{0:?}: the definition of {1} cannot be used")]
    Definition(PathBuf, String, #[source] gatewright_engine::admission::DefinitionError),
    #[error("there is no CustomResourceDefinition in {0:?}")]
    Empty(PathBuf),
}

/// The definitions of an installation.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// Those that are built in, and those of folders in their place.
    pub(super) all: Definitions,
    /// A name for the content of the folders.
    pub(super) key: String,
}

/// Reads the folders that settings name, and makes their paths absolute.
pub(super) fn read_all(settings: &mut Settings, paths: &Paths, mut wrong: impl FnMut(&[&str], String)) -> Found {
    let mut found = Found { all: gatewright_packs::definitions(), key: String::new() };
    for (index, path) in settings.crd_folders.iter_mut().enumerate() {
        let place = ["crdFolders", &index.to_string()];
        match paths.resolve(path) {
            Ok(resolved) => *path = resolved,
            Err(error) => wrong(&place, error.to_string()),
        }
        if let Err(error) = add(path, &mut found) {
            wrong(&place, Chain(&error).to_string());
        }
    }
    found
}

/// Adds the definitions of a folder.
fn add(folder: &Path, found: &mut Found) -> Result<(), FolderError> {
    let mut number = 0;
    for path in files(folder)? {
        let length = fs::metadata(&path).map_err(|source| FolderError::Read(path.clone(), source))?.len();
        if length > MAX_FILE {
            return Err(FolderError::Long(path));
        }
        let text = fs::read_to_string(&path).map_err(|source| FolderError::Read(path.clone(), source))?;
        let documents = yaml::parse_values(&text).map_err(|source| FolderError::Yaml(path.clone(), source))?;
        for document in documents.iter().flat_map(listed).filter(|it| it["kind"] == "CustomResourceDefinition") {
            let name = document["metadata"]["name"].as_str().unwrap_or_default();
            let fail = |source| FolderError::Definition(path.clone(), name.to_owned(), source);
            let definition = Definition::new(document).map_err(fail)?;
            definition.try_all().map_err(fail)?;
            found.all.add(definition);
            number += 1;
        }
        found.key = digest(format!("{}{text}", found.key).as_bytes());
    }
    if number == 0 { Err(FolderError::Empty(folder.to_owned())) } else { Ok(()) }
}

/// Returns the files with YAML or JSON in a folder, not those in folders below it: links may lead around in a circle.
fn files(folder: &Path) -> Result<Vec<PathBuf>, FilesError> {
    let is_meant = |path: &PathBuf| {
        let is_hidden = path.file_name().and_then(|name| name.to_str()).is_none_or(|name| name.starts_with('.'));
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        // To read a pipe would wait for whoever writes into it; a link that leads nowhere is told when it is read.
        let is_file = path.is_file() || !path.exists();
        !is_hidden && is_file && ["yaml", "yml", "json"].contains(&ending)
    };
    Ok(entries(folder)?.into_iter().filter(is_meant).collect())
}

/// Returns the documents of a list, as kubectl writes it, or the document itself.
fn listed(document: &Value) -> Vec<&Value> {
    match document["items"].as_array() {
        Some(items) if document["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) => items.iter().collect(),
        _ => vec![document],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUSE: &str = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, \
        metadata: {name: houses.example.com}, spec: {group: example.com, names: {kind: House}, versions: \
        [{name: v1, served: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, \
        properties: {rooms: {type: integer}}}}}}}]}}";

    fn read(files: &[(&str, &str)]) -> (Found, Vec<String>) {
        let root = tempfile::tempdir().expect("there is room");
        fs::create_dir(root.path().join("crds")).expect("there is room");
        for (name, text) in files {
            fs::write(root.path().join("crds").join(name), text).expect("there is room");
        }
        let mut settings = Settings { crd_folders: vec!["crds".into()], ..Settings::default() };
        let paths = Paths { base: root.path().to_owned(), credentials: None };
        let mut said = Vec::new();
        let found =
            read_all(&mut settings, &paths, |path, message| said.push(format!("{}: {message}", path.join("."))));
        (found, said.into_iter().map(|line| line.replace(&root.path().display().to_string(), "")).collect())
    }

    #[test]
    fn definitions_of_a_folder_are_beside_the_built_in_ones() {
        let list = format!("{{apiVersion: v1, kind: List, items: [{HOUSE}]}}");
        for text in [HOUSE.to_owned(), format!("{{kind: Other}}\n---\n{HOUSE}"), list] {
            let (found, said) = read(&[("a.yaml", &text), ("README.md", "[")]);
            assert_eq!(said, [""; 0]);
            assert!(found.all.of("example.com", "House").is_some());
            assert!(found.all.of("gateway.networking.k8s.io", "Gateway").is_some());
            assert_ne!(found.key, "");
        }
    }

    #[test]
    fn links_in_a_circle_and_folders_are_passed_over() {
        let root = tempfile::tempdir().expect("there is room");
        std::os::unix::fs::symlink(root.path(), root.path().join("again.yaml")).expect("there is room");
        std::os::unix::fs::symlink("nowhere", root.path().join("lost.yaml")).expect("there is room");
        fs::write(root.path().join("a.yaml"), HOUSE).expect("there is room");
        let found = files(root.path()).expect("it can be listed");
        assert_eq!(found, [root.path().join("a.yaml"), root.path().join("lost.yaml")]);
    }

    #[test]
    fn what_cannot_be_used_is_said() {
        let broken = HOUSE.replace("type: integer", "type: integer, x-kubernetes-validations: [{rule: 'self.('}]");
        for (files, expected) in [
            (&[][..], "crdFolders.0: there is no CustomResourceDefinition in \"/crds\""),
            (&[("a.yaml", "[")], "crdFolders.0: \"/crds/a.yaml\" cannot be read as YAML"),
            (&[("a.yaml", "{kind: CustomResourceDefinition}")], "crdFolders.0: \"/crds/a.yaml\": the definition of "),
            (
                &[("a.yaml", &broken)],
                "crdFolders.0: \"/crds/a.yaml\": the definition of houses.example.com cannot be used",
            ),
        ] {
            let (_, said) = read(files);
            assert!(said.len() == 1 && said[0].starts_with(expected), "{said:?}");
        }
    }
}
