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
mod typed;

use std::sync::LazyLock;

use gatewright_engine::admission::{Definition, Definitions};
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

/// Kinds that the built-in definitions have no more: group, kind, and what took its place.
const RETIRED: [(&str, &str, &str); 1] =
    [("gateway.networking.x-k8s.io", "XListenerSet", "ListenerSet of gateway.networking.k8s.io/v1 (GEP-1713)")];

/// Releases of products whose definitions are built in, by group. Who has another release may write what these do not take.
pub const RELEASES: [(&str, &str); 3] = [
    ("agentgateway.dev", "kgateway v2.2.0"),
    ("gateway.kgateway.dev", "kgateway v2.2.0"),
    ("serving.kserve.io", "kserve v0.20.0"),
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

/// Returns the definitions of kinds that are built in: those of the Gateway API and of its extension for inference, as their
/// authors publish them, without their descriptions.
pub fn definitions() -> Definitions {
    static DEFINITIONS: LazyLock<Definitions> = LazyLock::new(|| {
        let read = |(file, text): (&str, &'static str)| {
            let (group, kind) = file.strip_suffix(".json")?.split_once('_')?;
            let release = RELEASES.iter().find(|(of, _)| *of == group).map(|(_, release)| *release);
            Some(Definition::builtin(group, kind, text).of_release(release))
        };
        let mut definitions: Definitions = embedded("crds").into_iter().filter_map(read).collect();
        for (group, kind, successor) in RETIRED {
            definitions.retire(group, kind, successor);
        }
        definitions
    });
    DEFINITIONS.clone()
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
