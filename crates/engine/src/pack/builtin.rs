//! The packs that are there without further ado, and the files that they are made of.
//!
//! A folder of somebody else may replace some of the files, or all; the generator in Rust stays, where a pack has one.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{MANIFEST, Pack, PackError, agentgateway, dynamo, folders, kgateway, kserve};

/// A file: its name and its text.
pub(super) type File = (&'static str, &'static str);

/// The built-in packs, in the order in which they are asked whether a spec is theirs.
pub const PACKS: [&str; 6] = ["kgateway", "agentgateway", "endpoint-picker", "kserve", "dynamo", "body-based-router"];

/// Returns the files of a built-in pack.
pub fn files(name: &str) -> Option<BTreeMap<&'static str, &'static str>> {
    let files: &[File] = match name {
        "agentgateway" => &agentgateway::FILES,
        "body-based-router" => &folders::BODY_BASED_ROUTER,
        "dynamo" => &dynamo::FILES,
        "endpoint-picker" => &folders::ENDPOINT_PICKER,
        "kgateway" => &kgateway::FILES,
        "kserve" => &kserve::FILES,
        _ => return None,
    };
    Some(files.iter().copied().collect())
}

impl Pack {
    /// Returns a built-in pack with the settings of the config file (`packs.<name>`; `null` for none).
    pub fn builtin(name: &str, settings: &Value) -> Result<Self, PackError> {
        Self::with_files(name, &BTreeMap::new(), settings)
    }

    /// Returns a pack made of files of a folder: a built-in one with these in place of its own, or another one.
    pub fn with_files(name: &str, own: &BTreeMap<&str, &str>, settings: &Value) -> Result<Self, PackError> {
        let mut files: BTreeMap<&str, &str> = files(name).unwrap_or_default();
        files.extend(own);
        if !files.contains_key(MANIFEST) {
            return Err(PackError::Unknown(name.to_owned()));
        }
        let pack = match name {
            "agentgateway" => agentgateway::pack(&files, settings),
            "dynamo" => dynamo::pack(&files, settings),
            "kgateway" => kgateway::pack(&files, settings),
            "kserve" => kserve::pack(&files, settings),
            _ => Self::declared(&files, &settings["settings"]),
        }?;
        if pack.manifest.name == name { Ok(pack) } else { Err(PackError::Name(pack.manifest.name)) }
    }
}
