//! The file of an object: its name, and how it is read and written without leaving the directory.
//!
//! Kinds of Kubernetes itself go by their kind alone (`infra/service-edge.yaml`), others by kind and group
//! (`infra/gateway.gateway.networking.k8s.io-edge.yaml`), so that equal kinds of two groups do not meet in one file.

use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use gatewright_engine::object::{ObjectId, is_secret};
use gatewright_engine::text;

use super::Problem;
use crate::basics::private::write_whole;

/// Holds what is in no namespace; no namespace can have this name.
const NO_NAMESPACE: &str = "_cluster";

/// Returns the path of an object's file below the root.
pub(super) fn path_of(id: &ObjectId) -> Result<PathBuf, Problem> {
    let name = file_name(&format!("{}-{}", stem(&id.group, &id.kind), id.name), "yaml")?;
    Ok(Path::new(folder_of(&id.namespace)?).join(name))
}

/// Returns the folder of a namespace, or of what is in none.
pub(crate) fn folder_of(namespace: &str) -> Result<&str, Problem> {
    match namespace {
        "" => Ok(NO_NAMESPACE),
        name if name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') => Ok(name),
        other => Err(Problem::Unusable(format!("{other:?} is not the name of a namespace"))),
    }
}

/// Returns what the files of a kind begin with, without the hyphen before the name.
pub(super) fn stem(group: &str, kind: &str) -> String {
    let kind = kind.to_lowercase();
    let short = !group.contains('.') || ["rbac.authorization.k8s.io", "networking.k8s.io"].contains(&group);
    if short { kind } else { format!("{kind}.{group}") }
}

/// Makes a file name of a name that comes from a spec or a cluster, or refuses to.
pub(crate) fn file_name(name: &str, extension: &str) -> Result<String, Problem> {
    let harmless = |character: char| !character.is_control() && !"/\\".contains(character);
    // 255 bytes are what file systems take.
    let fits = !name.is_empty() && name.len() + extension.len() < 255 && !name.starts_with('.');
    if fits && name.chars().all(harmless) {
        Ok(format!("{name}.{extension}"))
    } else {
        Err(Problem::Unusable(format!("{name:?} cannot be the name of a file")))
    }
}

/// Reads a file below the root; `None` if it does not exist.
pub(super) fn read(root: &Path, path: &Path) -> Result<Option<String>, Problem> {
    if !is_inside(root, path)? {
        return Ok(None);
    }
    let path = root.join(path);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            Err(Problem::Unusable(format!("{} is not text", path.display())))
        }
        Err(error) => Err(Problem::Io(path, error)),
    }
}

/// Temporary files are for their owner only; what is written is for whoever deploys it.
pub(crate) const FOR_ALL: u32 = 0o644;

/// Those who deploy a Secret are its owner, or root.
const FOR_OWNER: u32 = 0o600;

/// Returns who may read the file of an object.
pub(super) fn mode_of(id: &ObjectId) -> u32 {
    if is_secret(&id.group, &id.kind) { FOR_OWNER } else { FOR_ALL }
}

/// Writes a file below the root as a whole or not at all, and makes the folders for it.
pub(crate) fn write(root: &Path, path: &Path, text: &str, mode: u32) -> Result<(), Problem> {
    is_inside(root, path)?;
    let path = root.join(path);
    let folder = path.parent().unwrap_or(root);
    let written = fs::create_dir_all(folder).and_then(|()| write_whole(&path, text.as_bytes(), mode));
    written.map_err(|error| Problem::Io(path, error))
}

/// Deletes a file below the root, and its folder if that is then empty.
pub(super) fn delete(root: &Path, path: &Path) -> Result<(), Problem> {
    if !is_inside(root, path)? {
        return Ok(());
    }
    let path = root.join(path);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(Problem::Io(path, error)),
        _ => {}
    }
    if let Some(folder) = path.parent() {
        // It fails if something else is in it, and that is right.
        drop(fs::remove_dir(folder));
    }
    Ok(())
}

/// Tells whether the file can exist; refuses a path with a symbolic link below the root, which may lead anywhere.
fn is_inside(root: &Path, path: &Path) -> Result<bool, Problem> {
    let mut so_far = root.to_owned();
    for component in path.components() {
        let Component::Normal(name) = component else {
            return Err(Problem::Unusable(format!("{} leads out of the directory", path.display())));
        };
        so_far.push(name);
        match fs::symlink_metadata(&so_far) {
            Ok(found) if found.is_symlink() => {
                return Err(Problem::Unusable(format!("{} is a symbolic link", so_far.display())));
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(Problem::Io(so_far, error)),
        }
    }
    Ok(true)
}

/// Returns the first 16 digits of the digest: enough to notice a change, and short enough to be read.
pub(crate) fn digest(bytes: &[u8]) -> String {
    text::digest(bytes).chars().take(16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(key: &str, expected: &str) {
        let id: ObjectId = key.parse().expect("it is a key");
        assert_eq!(path_of(&id).ok().as_deref(), Some(Path::new(expected)), "{key}");
    }

    #[test]
    fn every_object_has_a_file_of_its_own() {
        check("/Service/infra/edge", "infra/service-edge.yaml");
        check("apps/Deployment/infra/edge", "infra/deployment-edge.yaml");
        check("rbac.authorization.k8s.io/Role/infra/edge", "infra/role-edge.yaml");
        check("/Namespace//infra", "_cluster/namespace-infra.yaml");
        check("serving.knative.dev/Service/infra/edge", "infra/service.serving.knative.dev-edge.yaml");
        check("rbac.authorization.k8s.io/ClusterRole//a:b", "_cluster/clusterrole-a:b.yaml");
    }

    #[test]
    fn names_cannot_lead_out_of_the_directory() {
        for (namespace, name) in [
            ("..", "a"),
            ("a/b", "a"),
            ("_cluster", "a"),
            (".gatewright", "a"),
            ("a", "b/../../c"),
            ("a", "b\0"),
            ("a", "b\n"),
        ] {
            assert!(path_of(&ObjectId::new("", "Service", namespace, name)).is_err(), "{namespace:?} {name:?}");
        }
        assert!(path_of(&ObjectId::new("", "../../etc/x", "a", "b")).is_err());
        assert!(path_of(&ObjectId::new("", "Service", "a", &"b".repeat(250))).is_err());
    }
}
