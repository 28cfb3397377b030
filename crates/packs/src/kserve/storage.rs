//! The ways in which a model gets into a pod.

use serde_json::{Value, json};

use super::lora;
use super::pods::{MAIN, add_args, add_env, add_mount, add_named, container, list};
use super::settings::StorageSettings;
use super::types::Adapter;
use crate::json::{said, without_nulls};

/// The path at which presets expect the model.
pub(super) const MODEL_PATH: &str = "/mnt/models";

const SHARED_VOLUME: &str = "kserve-provision-location";

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
pub(super) fn attach(pod: &mut Value, path: &str, model: &Model<'_>) -> Result<(), String> {
    let (scheme, rest) =
        model.uri.split_once("://").ok_or_else(|| format!("{:?} is no address of a model", model.uri))?;
    let downloads = lora::downloads(model.adapters);
    match scheme {
        "pvc" => {
            mount_claim(pod, "kserve-pvc-source", rest, path);
            if !downloads.is_empty() {
                download(pod, path, model, downloads, "/mnt/lora");
            }
        }
        "hf" | "s3" => {
            let mount = if downloads.is_empty() { MODEL_PATH } else { "/mnt" };
            let own = [model.uri.to_owned(), MODEL_PATH.to_owned()];
            download(pod, path, model, own.into_iter().chain(downloads).collect(), mount);
        }
        "oci" => modelcar(pod, path, rest),
        "oci+native" => image_volume(pod, path, rest),
        _ => {
            let known = "hf://, s3://, pvc://, oci:// and oci+native://";
            return Err(format!("{:?} is no address of a model; there are {known}", model.uri));
        }
    }
    Ok(())
}

/// Mounts a claim, written `name/path`, read-only.
pub(super) fn mount_claim(pod: &mut Value, volume: &str, address: &str, path: &str) {
    let (claim, below) = address.split_once('/').unwrap_or((address, ""));
    add_named(pod, "volumes", json!({"name": volume, "persistentVolumeClaim": {"claimName": claim}}));
    let mount = json!({"name": volume, "mountPath": path, "readOnly": true, "subPath": said(below)});
    add_mount(pod, without_nulls(mount));
}

/// Adds the container that downloads before the others start, into a volume that it shares with them.
fn download(pod: &mut Value, path: &str, model: &Model<'_>, args: Vec<String>, mount: &str) {
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
    add_named(pod, "volumes", json!({"name": SHARED_VOLUME, "emptyDir": {}}));
    let path = if mount == MODEL_PATH { path } else { mount };
    add_mount(pod, json!({"name": SHARED_VOLUME, "mountPath": path, "readOnly": true}));
}

/// A container that has the model in its image, and lends its files to its neighbor.
fn modelcar(pod: &mut Value, path: &str, image: &str) {
    let parent = path.rsplit_once('/').map_or("/", |(parent, _)| parent);
    let resources = json!({"limits": {"cpu": "10m", "memory": "15Mi"}, "requests": {"cpu": "10m", "memory": "15Mi"}});
    let mount = json!({"name": SHARED_VOLUME, "mountPath": parent});
    pod["shareProcessNamespace"] = true.into();
    add_named(pod, "volumes", json!({"name": SHARED_VOLUME, "emptyDir": {}}));
    add_mount(pod, mount.clone());
    if let Some(main) = container(pod, MAIN) {
        add_env(main, [json!({"name": "MODEL_INIT_MODE", "value": "async"})]);
    }
    let link = format!("ln -sf /proc/$$$$/root/models {path} && sleep infinity");
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
fn image_volume(pod: &mut Value, path: &str, image: &str) {
    let image = json!({"reference": image, "pullPolicy": "IfNotPresent"});
    add_named(pod, "volumes", json!({"name": "kserve-oci-model", "image": image}));
    add_mount(pod, json!({"name": "kserve-oci-model", "mountPath": path, "subPath": "models", "readOnly": true}));
}
