//! Small files beside kubeconfigs: `NAME.labels.yaml`, the labels of a cluster, as `clusters.NAME.labels` has them, and
//! `NAME.directory.yaml`, the settings of one that is a directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gatewright_engine::check::check;
use gatewright_engine::error::Chain;
use gatewright_engine::problem::{Place, Problem};
use gatewright_engine::schema::Schema;
use gatewright_engine::yaml::{self, Position};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::config::plain;
use crate::config::settings::DirectoryTarget;

type Labels = BTreeMap<String, String>;

/// Reads labels. An empty file is not taken for a cluster without labels: it may be about to be written.
pub(super) fn labels(file: &Path) -> Result<Labels, Vec<Problem>> {
    read(file, "labels")
}

/// Reads where a directory is; a relative path is relative to the folder of the file.
pub(super) fn directory(file: &Path) -> Result<DirectoryTarget, Vec<Problem>> {
    let target: DirectoryTarget = read(file, "directory")?;
    let folder = file.parent().unwrap_or_else(|| Path::new("/"));
    Ok(DirectoryTarget { path: plain(&folder.join(target.path)) })
}

fn read<T: DeserializeOwned + JsonSchema>(file: &Path, what: &str) -> Result<T, Vec<Problem>> {
    let name = file.to_string_lossy();
    let at = |position: Position| Place { file: name.as_ref().into(), line: position.line, column: position.column };
    let whole = |message: String| vec![Problem::file(Place::file(name.as_ref()), message)];
    if fs::metadata(file).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(whole(format!("it is named as a file of {what}, and is no file")));
    }
    let text = fs::read_to_string(file).map_err(|error| whole(format!("cannot read it: {}", Chain(&error))))?;
    let mut documents =
        yaml::parse(&text).map_err(|error| vec![Problem::file(at(error.position), error.message.clone())])?;
    let root = match (documents.pop(), documents.is_empty()) {
        (Some(root), true) => root,
        (Some(_), false) => return Err(whole("it holds more than one document".to_owned())),
        (None, _) => {
            return Err(vec![
                whole("it is empty".to_owned()).remove(0).hint(format!("it holds the {what} of the cluster")),
            ]);
        }
    };
    let schema = Schema::of::<T>().expect("these types have a schema; a test holds this");
    let mistakes = check(&root, &schema);
    if !mistakes.is_empty() {
        let problem = |mistake: gatewright_engine::check::Mistake| Problem {
            hint: mistake.hint,
            ..Problem::file(at(mistake.position), mistake.message)
        };
        return Err(mistakes.into_iter().map(problem).collect());
    }
    serde_json::from_value(root.to_value()).map_err(|error| whole(error.to_string()))
}
