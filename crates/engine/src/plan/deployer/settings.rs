//! With which settings of a pack we would have made what a deployer has made.
//!
//! Releases differ in what they write into pods: their version, their image, their own name. Whoever takes a data plane
//! over sets the same, and nothing restarts.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};

use crate::kinds::has_pods;
use crate::live::Live;
use crate::object::{Object, ObjectId};
use crate::pack::manifest::SettingSource;
use crate::plan::conflicts::{is_applied_by, managed_fields};
use crate::text::listed;
use crate::unit::{Deployer, Unit};

/// Settings of a pack with which it would render what a deployer has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The field manager of the deployer.
    pub manager: String,
    /// The name of the pack.
    pub pack: String,
    /// The settings that differ, as they stand below `packs.NAME` in a config file.
    pub settings: Value,
    /// The workloads that were made with them.
    pub made: Vec<ObjectId>,
}

impl fmt::Display for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { manager, pack, settings, made } = self;
        let (made, settings) = (listed(made, 1), in_config(pack, settings));
        write!(f, "{manager} made {made} with other settings; in the config file {settings} renders the same")
    }
}

/// Says with which other settings packs would render what the live deployers have made.
pub fn proposals<'a>(units: impl IntoIterator<Item = &'a Unit>, live: &BTreeMap<ObjectId, Live>) -> Vec<Proposal> {
    let mut found: BTreeMap<(String, String), Proposal> = BTreeMap::new();
    for unit in units {
        let Some(deployer) = &unit.deployer else { continue };
        for wanted in unit.all() {
            let Some(live) = live.get(wanted.id()) else { continue };
            let is_theirs = managed_fields(live).iter().any(|entry| is_applied_by(entry, &deployer.manager));
            if !is_theirs || !has_pods(&wanted.id().kind) {
                continue;
            }
            if let Some(settings) = differing(deployer, &live.object, wanted) {
                let (manager, pack) = (deployer.manager.clone(), deployer.pack.clone());
                let key = (manager.clone(), in_config(&pack, &settings));
                let new = || Proposal { manager, pack, settings, made: Vec::new() };
                found.entry(key).or_insert_with(new).made.push(wanted.id().clone());
            }
        }
    }
    found.into_values().collect()
}

/// Returns the settings by which a live workload differs from what is wanted, as they stand in a config file:
/// `packs: {acme: {"version":"v2"}}`.
pub(in crate::plan) fn found_settings(deployer: &Deployer, live: &Object, wanted: &Object) -> Option<String> {
    differing(deployer, live, wanted).map(|settings| in_config(&deployer.pack, &settings))
}

fn in_config(pack: &str, settings: &Value) -> String {
    format!("packs: {{{pack}: {settings}}}")
}

fn differing(deployer: &Deployer, live: &Object, wanted: &Object) -> Option<Value> {
    let read = |object: &Object| -> BTreeMap<String, String> {
        deployer.settings.iter().flat_map(|source| source.read(object.body())).collect()
    };
    let (found, ours) = (read(live), read(wanted));
    let mut settings = json!({});
    for (path, value) in found.iter().filter(|(path, value)| ours.get(*path) != Some(value)) {
        let place = path.split('.').fold(&mut settings, |place, field| &mut place[field]);
        *place = Value::from(value.as_str());
    }
    (settings != json!({})).then_some(settings)
}

impl SettingSource {
    /// Reads settings off a workload, each with its path. A label that is not there is the empty text.
    fn read(&self, body: &Value) -> Vec<(String, String)> {
        match self {
            Self::Label { setting, label } => {
                let value = body["metadata"]["labels"][label.as_str()].as_str().unwrap_or_default();
                vec![(setting.clone(), value.to_owned())]
            }
            Self::Image { setting, container } => {
                let containers = body.pointer("/spec/template/spec/containers").and_then(Value::as_array);
                let image = containers.into_iter().flatten().find(|it| it["name"] == container.as_str());
                let image = image.and_then(|container| container["image"].as_str()).unwrap_or_default();
                let Some((registry, name)) = image.rsplit_once('/').filter(|_| !image.contains('@')) else {
                    return Vec::new();
                };
                let tag = name.split_once(':').map_or("latest", |(_, tag)| tag);
                vec![(format!("{setting}.registry"), registry.to_owned()), (format!("{setting}.tag"), tag.to_owned())]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(version: &str, image: &str) -> Object {
        let containers = json!([{"name": "sds", "image": "other:1"}, {"name": "proxy", "image": image}]);
        let labels = if version.is_empty() { json!({}) } else { json!({"version": version}) };
        let body = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "edge", "labels": labels},
            "spec": {"template": {"spec": {"containers": containers}}},
        });
        Object::new(body).expect("it has all that it needs")
    }

    #[test]
    fn settings_are_read_off_what_is_there() {
        let settings = vec![
            SettingSource::Label { setting: "version".into(), label: "version".into() },
            SettingSource::Image { setting: "image".into(), container: "proxy".into() },
        ];
        let deployer = Deployer { manager: "d".into(), pack: "acme".into(), told_by: None, deletes: None, settings };
        let found = |live: &Object| found_settings(&deployer, live, &deployment("v2", "r.example.com:5000/a/proxy:v2"));
        let ours = deployment("v2", "r.example.com:5000/a/proxy:v2");
        assert_eq!(found(&ours), None);
        let older = found(&deployment("v1", "r.example.com:5000/a/proxy:v1"));
        assert_eq!(older.as_deref(), Some(r#"packs: {acme: {"image":{"tag":"v1"},"version":"v1"}}"#));
        let bare = found(&deployment("", "mirror/proxy@sha256:00"));
        assert_eq!(bare.as_deref(), Some(r#"packs: {acme: {"version":""}}"#), "a digest is no tag");
    }
}
