//! Volumes for the second tiers of the cache of keys and values.

use serde_json::{Value, json};

use super::pods::{MAIN, add_mount, add_named, container};
use super::types::{FileSystem, KvCacheOffloading};
use crate::json::without_nulls;

/// Adds a volume for each tier that is on a file system.
pub(super) fn attach(pod: &mut Value, offloading: &KvCacheOffloading) {
    for (index, tier) in offloading.secondary.iter().enumerate() {
        let name = format!("kv-cache-secondary-{index}");
        let Some(system) = &tier.file_system else { continue };
        let Some((mut source, below)) = source(system) else { continue };
        let mount = json!({"name": name, "mountPath": format!("/mnt/kv-cache-{index}"), "subPath": below});
        source["name"] = name.into();
        add_named(pod, "volumes", source);
        add_mount(pod, without_nulls(mount));
        let Some(main) = container(pod, MAIN) else { continue };
        // So that the pod is placed where there is room.
        let room = &mut main["resources"]["requests"]["ephemeral-storage"];
        if let Some(folder) = system.empty_dir.as_ref().filter(|_| room.is_null()) {
            *room = folder.size.clone();
        }
    }
}

fn source(system: &FileSystem) -> Option<(Value, Option<&str>)> {
    if let Some(folder) = &system.empty_dir {
        return Some((json!({"emptyDir": {"sizeLimit": folder.size}}), None));
    }
    let claim = system.pvc.as_ref()?;
    if let Some(spec) = &claim.spec {
        let mut spec = spec.clone();
        spec.entry("accessModes").or_insert_with(|| json!(["ReadWriteOnce"]));
        return Some((json!({"ephemeral": {"volumeClaimTemplate": {"spec": spec}}}), None));
    }
    let reference = claim.reference.as_ref()?;
    Some((json!({"persistentVolumeClaim": {"claimName": reference.name.as_ref()?}}), reference.path.as_deref()))
}
