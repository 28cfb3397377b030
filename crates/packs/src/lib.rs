//! The packs that gatewright is built with: a folder of `templates/` each, and a generator in Rust where values must be
//! computed.
//!
//! The engine knows nothing of all that is said here of kgateway, agentgateway, KServe and Dynamo.

pub mod agentgateway;
pub mod dynamo;
pub mod gateway;
mod json;
pub mod kgateway;
pub mod kserve;
mod problems;

use std::path::Path;

use gatewright_engine::pack::builtin::{Build, Builtin, Files, declared, with_files};
use gatewright_engine::pack::{Pack, PackError};
use include_dir::{Dir, include_dir};
use serde_json::Value;

/// The folders of all packs.
static TEMPLATES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../templates");

/// The packs, in the order in which they are asked whether a spec is theirs.
const PACKS: [(&str, Build); 6] = [
    ("kgateway", kgateway::pack),
    ("agentgateway", agentgateway::pack),
    ("endpoint-picker", declared),
    ("kserve", kserve::pack),
    ("dynamo", dynamo::pack),
    ("body-based-router", declared),
];

/// Returns all packs, in the order in which they are asked whether a spec is theirs.
pub fn all() -> Vec<Builtin> {
    let pack = |(name, build)| Builtin { name, files: embedded(name), build };
    PACKS.into_iter().map(pack).collect()
}

/// Returns one of them with settings (`packs.<name>` of the config file; `null` for none).
pub fn pack(name: &str, settings: &Value) -> Result<Pack, PackError> {
    with_files(&all(), name, &Files::new(), settings)
}

/// Returns the files of one of them.
fn embedded(name: &str) -> Files<'static> {
    TEMPLATES.get_dir(name).map(files).unwrap_or_default()
}

/// Returns the texts of an embedded folder, by their paths in it.
pub fn files(folder: &Dir<'static>) -> Files<'static> {
    let mut all = Files::new();
    collect(folder, folder.path(), &mut all);
    all
}

fn collect(folder: &Dir<'static>, root: &Path, all: &mut Files<'static>) {
    for file in folder.files() {
        let path = file.path().strip_prefix(root).unwrap_or(file.path());
        all.extend(path.to_str().zip(file.contents_utf8()));
    }
    folder.dirs().for_each(|folder| collect(folder, root, all));
}

#[cfg(test)]
mod tests;
