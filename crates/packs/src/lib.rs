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

use gatewright_engine::pack::builtin::{Build, Builtin, Files, declared, with_files};
use gatewright_engine::pack::{Pack, PackError};
use gatewright_engine::yaml;
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

/// Returns the presets that are built into one of them: their names, and the texts of their documents.
pub fn presets(name: &str) -> Vec<(String, &'static str)> {
    let name_of = |text: &str| {
        let documents = yaml::parse_values(text).unwrap_or_default();
        documents.first().and_then(|document| document["metadata"]["name"].as_str().map(str::to_owned))
    };
    let files = embedded(name).into_iter().filter(|(path, _)| path.starts_with("presets/"));
    files.filter_map(|(_, text)| Some((name_of(text)?, text))).collect()
}

/// Returns the files of one of them, by their paths in its folder.
fn embedded(name: &str) -> Files<'static> {
    let mut files = Files::new();
    let mut folders: Vec<&Dir<'static>> = TEMPLATES.get_dir(name).into_iter().collect();
    while let Some(folder) = folders.pop() {
        for file in folder.files() {
            let path = file.path().strip_prefix(name).unwrap_or(file.path());
            files.extend(path.to_str().zip(file.contents_utf8()));
        }
        folders.extend(folder.dirs());
    }
    files
}

#[cfg(test)]
mod tests;
