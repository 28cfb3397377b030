//! Volumes for the second tiers of the cache of keys and values.

use serde_json::{Value, json};

use super::pods::{add_mount, add_volume, container};

/// Adds a volume for each tier that is on a file system.
pub(super) fn attach(pod: &mut Value, offloading: &Value) {
    let tiers = offloading["secondary"].as_array().into_iter().flatten().enumerate();
    for (index, tier) in tiers.filter(|(_, tier)| tier["fileSystem"].is_object()) {
        let name = format!("kv-cache-secondary-{index}");
        let system = &tier["fileSystem"];
        let Some((source, below)) = source(system) else { continue };
        let mut volume = source;
        volume["name"] = name.clone().into();
        add_volume(pod, volume);
        let Some(main) = container(pod, "main") else { continue };
        let mut mount = json!({"name": name, "mountPath": format!("/mnt/kv-cache-{index}")});
        if let Some(below) = below {
            mount["subPath"] = below.into();
        }
        add_mount(main, mount);
        if main["resources"]["requests"]["ephemeral-storage"].is_null() && system["emptyDir"].is_object() {
            // So that the pod is placed where there is room.
            main["resources"]["requests"]["ephemeral-storage"] = system["emptyDir"]["size"].clone();
        }
    }
}

fn source(system: &Value) -> Option<(Value, Option<&str>)> {
    if system["emptyDir"].is_object() {
        return Some((json!({"emptyDir": {"sizeLimit": system["emptyDir"]["size"]}}), None));
    }
    let claim = &system["pvc"];
    if claim["spec"].is_object() {
        let mut spec = claim["spec"].clone();
        if spec["accessModes"].is_null() {
            spec["accessModes"] = json!(["ReadWriteOnce"]);
        }
        return Some((json!({"ephemeral": {"volumeClaimTemplate": {"spec": spec}}}), None));
    }
    let name = claim["ref"]["name"].as_str()?;
    Some((json!({"persistentVolumeClaim": {"claimName": name}}), claim["ref"]["path"].as_str()))
}
