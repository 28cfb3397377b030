//! With which settings of a pack we would have made what a deployer has made.
//!
//! Releases differ in what they write into pods: their version, their image, their own name. Whoever takes a data plane
//! over sets the same, and nothing restarts.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::kinds::has_pods;
use crate::live::Live;
use crate::object::{Object, ObjectId};
use crate::pack::manifest::SettingSource;
use crate::plan::conflicts::{is_applied_by, managed_fields};
use crate::text::listed;
use crate::unit::{Deployer, Unit};

/// Says with which other settings packs would render what the live deployers have made: one line for each.
pub fn proposals<'a>(units: impl IntoIterator<Item = &'a Unit>, live: &BTreeMap<ObjectId, Live>) -> Vec<String> {
    let mut found: BTreeMap<(&str, String), Vec<&ObjectId>> = BTreeMap::new();
    for unit in units {
        let Some(deployer) = &unit.deployer else { continue };
        for wanted in unit.all() {
            let Some(live) = live.get(wanted.id()) else { continue };
            let is_theirs = managed_fields(live).iter().any(|entry| is_applied_by(entry, &deployer.manager));
            let settings = is_theirs.then(|| found_settings(deployer, &live.object, wanted)).flatten();
            if let Some(settings) = settings.filter(|_| has_pods(&wanted.id().kind)) {
                found.entry((&deployer.manager, settings)).or_default().push(wanted.id());
            }
        }
    }
    let told = |((manager, settings), made): (&(&str, String), &Vec<&ObjectId>)| {
        let made = listed(made, 1);
        format!("{manager} made {made} with other settings; in the config file {settings} renders the same")
    };
    found.iter().map(told).collect()
}

/// Returns the settings by which a live workload differs from what is wanted, as they stand in a config file:
/// `packs: {acme: {"version":"v2"}}`.
pub(in crate::plan) fn found_settings(deployer: &Deployer, live: &Object, wanted: &Object) -> Option<String> {
    let read = |object: &Object| -> BTreeMap<String, String> {
        deployer.settings.iter().flat_map(|source| source.read(object.body())).collect()
    };
    let (found, ours) = (read(live), read(wanted));
    let mut settings = json!({});
    for (path, value) in found.iter().filter(|(path, value)| ours.get(*path) != Some(value)) {
        let place = path.split('.').fold(&mut settings, |place, field| &mut place[field]);
        *place = Value::from(value.as_str());
    }
    (settings != json!({})).then(|| format!("packs: {{{}: {settings}}}", deployer.pack))
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
