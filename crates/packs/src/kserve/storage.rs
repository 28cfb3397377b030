//! The ways in which a model gets into a pod.

use serde_json::{Value, json};

use super::lora::{self, Adapter};
use super::pods::{add_args, add_env, add_mount, add_volume, container, list};
use super::settings::StorageSettings;

/// The path at which presets expect the model.
pub(super) const MODEL_PATH: &str = "/mnt/models";

const SHARED_VOLUME: &str = "kserve-provision-location";

/// The container that a model is for, and where it expects it.
pub(super) struct Target<'a> {
    pub(super) container: &'a str,
    pub(super) path: &'a str,
}

/// The model that goes into a pod.
pub(super) struct Model<'a> {
    /// `spec.model.uri`.
    pub(super) uri: &'a str,
    /// Adapters that are loaded with it.
    pub(super) adapters: &'a [Adapter],
    /// The container that downloads it.
    pub(super) initializer: &'a StorageSettings,
}

/// Puts a model and its adapters into a pod, or returns why its address cannot be used.
pub(super) fn attach(pod: &mut Value, target: &Target<'_>, model: &Model<'_>) -> Result<(), String> {
    let (scheme, rest) =
        model.uri.split_once("://").ok_or_else(|| format!("{:?} is no address of a model", model.uri))?;
    let downloads = lora::downloads(model.adapters);
    match scheme {
        "pvc" => {
            mount_claim(pod, target.container, "kserve-pvc-source", rest, target.path);
            if !downloads.is_empty() {
                download(pod, target, model, downloads, "/mnt/lora");
            }
        }
        "hf" | "s3" => {
            let mount = if downloads.is_empty() { MODEL_PATH } else { "/mnt" };
            let own = [model.uri.to_owned(), MODEL_PATH.to_owned()];
            download(pod, target, model, own.into_iter().chain(downloads).collect(), mount);
        }
        "oci" => modelcar(pod, target, rest),
        "oci+native" => image_volume(pod, target, rest),
        _ => {
            let known = "hf://, s3://, pvc://, oci:// and oci+native://";
            return Err(format!("{:?} is no address of a model; there are {known}", model.uri));
        }
    }
    Ok(())
}

/// Mounts a claim, written `name/path`, read-only.
pub(super) fn mount_claim(pod: &mut Value, name: &str, volume: &str, address: &str, path: &str) {
    let (claim, below) = address.split_once('/').unwrap_or((address, ""));
    add_volume(pod, json!({"name": volume, "persistentVolumeClaim": {"claimName": claim}}));
    let mut mount = json!({"name": volume, "mountPath": path, "readOnly": true});
    if !below.is_empty() {
        mount["subPath"] = below.into();
    }
    if let Some(container) = container(pod, name) {
        add_mount(container, mount);
    }
}

/// Adds the container that downloads before the others start, into a volume that it shares with them.
fn download(pod: &mut Value, target: &Target<'_>, model: &Model<'_>, args: Vec<String>, mount: &str) {
    let mut initializer = json!({
        "name": "storage-initializer",
        "image": model.initializer.image,
        "resources": model.initializer.resources,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": SHARED_VOLUME, "mountPath": mount}],
    });
    let hugging_face = args.iter().any(|arg| arg.starts_with("hf://"));
    add_args(&mut initializer, args);
    if hugging_face {
        let variables = [
            ("HF_HUB_ENABLE_HF_TRANSFER", "1"),
            ("HF_XET_HIGH_PERFORMANCE", "1"),
            ("HF_XET_NUM_CONCURRENT_RANGE_GETS", "8"),
        ];
        add_env(&mut initializer, variables.map(|(name, value)| json!({"name": name, "value": value})));
    }
    list(pod, "initContainers").push(initializer);
    add_volume(pod, json!({"name": SHARED_VOLUME, "emptyDir": {}}));
    let path = if mount == MODEL_PATH { target.path } else { mount };
    if let Some(container) = container(pod, target.container) {
        add_mount(container, json!({"name": SHARED_VOLUME, "mountPath": path, "readOnly": true}));
    }
}

/// A container that has the model in its image, and lends its files to its neighbor.
fn modelcar(pod: &mut Value, target: &Target<'_>, image: &str) {
    let parent = target.path.rsplit_once('/').map_or("/", |(parent, _)| parent);
    let resources = json!({"limits": {"cpu": "10m", "memory": "15Mi"}, "requests": {"cpu": "10m", "memory": "15Mi"}});
    let mount = json!({"name": SHARED_VOLUME, "mountPath": parent});
    pod["shareProcessNamespace"] = true.into();
    add_volume(pod, json!({"name": SHARED_VOLUME, "emptyDir": {}}));
    if let Some(container) = container(pod, target.container) {
        add_mount(container, mount.clone());
        add_env(container, [json!({"name": "MODEL_INIT_MODE", "value": "async"})]);
    }
    let link = format!("ln -sf /proc/$$$$/root/models {} && sleep infinity", target.path);
    list(pod, "containers").push(json!({
        "name": "modelcar",
        "image": image,
        "args": ["sh", "-c", link],
        "resources": resources,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [mount],
    }));
    // It makes the kubelet pull the image before the server starts, and says what is wrong with it.
    let check = format!(
        "echo 'Pre-fetching modelcar {image}: ' && [ -d /models ] && [ \"$$(ls -A /models)\" ] && echo 'OK ... Prefetched and valid \
         (/models exists)' || (echo 'NOK ... Prefetched but modelcar is invalid (/models does not exist or is empty)' && exit 1)"
    );
    list(pod, "initContainers").push(json!({
        "name": "modelcar-init",
        "image": image,
        "args": ["sh", "-c", check],
        "resources": resources,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }));
}

/// The image itself is a volume.
fn image_volume(pod: &mut Value, target: &Target<'_>, image: &str) {
    add_volume(pod, json!({"name": "kserve-oci-model", "image": {"reference": image, "pullPolicy": "IfNotPresent"}}));
    if let Some(container) = container(pod, target.container) {
        let mount =
            json!({"name": "kserve-oci-model", "mountPath": target.path, "subPath": "models", "readOnly": true});
        add_mount(container, mount);
    }
}
