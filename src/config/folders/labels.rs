//! `NAME.labels.yaml`: the labels of a cluster, as `clusters.NAME.labels` has them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gatewright_engine::check::check;
use gatewright_engine::error::Chain;
use gatewright_engine::problem::{Place, Problem};
use gatewright_engine::schema::Schema;
use gatewright_engine::yaml::{self, Position};

type Labels = BTreeMap<String, String>;

/// Reads it. An empty file is not taken for a cluster without labels: it may be about to be written.
pub(super) fn read(file: &Path) -> Result<Labels, Vec<Problem>> {
    let name = file.to_string_lossy();
    let at = |position: Position| Place { file: name.as_ref().into(), line: position.line, column: position.column };
    let whole = |message: String| vec![Problem::file(Place::file(name.as_ref()), message)];
    if fs::metadata(file).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(whole("it is named as labels, and is no file".to_owned()));
    }
    let text = fs::read_to_string(file).map_err(|error| whole(format!("cannot read the labels: {}", Chain(&error))))?;
    let mut documents =
        yaml::parse(&text).map_err(|error| vec![Problem::file(at(error.position), error.message.clone())])?;
    let root = match (documents.pop(), documents.is_empty()) {
        (Some(root), true) => root,
        (Some(_), false) => return Err(whole("it holds more than one document".to_owned())),
        (None, _) => return Err(vec![whole("it is empty".to_owned()).remove(0).hint("write {} for no labels")]),
    };
    let schema = Schema::of::<Labels>().expect("a map of texts has a schema; a test holds this");
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
