//! The ways in which a model gets into a pod.

use serde_json::{Value, json};

use super::parameters::Token;
use super::pods::{MAIN, add_env, add_mount, add_named, container, list, mount_into, set_env};
use super::settings::StorageSettings;
use super::types::{Adapter, Confidential};
use super::{lora, merge};
use crate::json::{said, without_nulls};

/// The path at which presets expect the model.
pub(super) const MODEL_PATH: &str = "/mnt/models";

/// The container that downloads; one of this name in a template says how.
const INITIALIZER: &str = "storage-initializer";

const SHARED_VOLUME: &str = "kserve-provision-location";

/// The model that goes into a pod.
pub(super) struct Model<'a> {
    /// `spec.model.uri`.
    pub(super) uri: &'a str,
    /// Adapters that are loaded with it.
    pub(super) adapters: &'a [Adapter],
    /// The container that downloads it.
    pub(super) initializer: &'a StorageSettings,
    /// How it is decrypted, if it is encrypted.
    pub(super) confidential: Option<&'a Confidential>,
    /// The token with which it is loaded from Hugging Face.
    pub(super) token: Option<&'a Token>,
}

/// Puts a model and its adapters into a pod, or returns why its address cannot be used.
pub(super) fn attach(pod: &mut Value, path: &str, model: &Model<'_>) -> Result<(), String> {
    let (scheme, rest) =
        model.uri.split_once("://").ok_or_else(|| format!("{:?} is no address of a model", model.uri))?;
    if !matches!(scheme, "hf" | "s3") && lora::downloads(model.adapters).is_empty() {
        without_initializer(pod);
    }
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
        "oci" => {
            modelcar(pod, path, rest, model.initializer.uid_modelcar);
            if !downloads.is_empty() {
                download(pod, path, model, downloads, "/mnt/lora");
            }
        }
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

/// Takes away what a template says of a download that does not take place. A whole container of that name stays.
pub(super) fn without_initializer(pod: &mut Value) {
    if pod["initContainers"].is_array() {
        list(pod, "initContainers").retain(|it| it["name"] != INITIALIZER || it["image"].is_string());
        if list(pod, "initContainers").is_empty() {
            pod.as_object_mut().map(|fields| fields.remove("initContainers"));
        }
    }
}

/// Adds the container that downloads before the others start, into a volume that it shares with them.
fn download(pod: &mut Value, path: &str, model: &Model<'_>, args: Vec<String>, mount: &str) {
    let mut initializer = json!({
        "name": INITIALIZER,
        "image": model.initializer.image,
        "resources": model.initializer.resources,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    });
    for own in take_initializers(pod) {
        initializer = merge::container(initializer, &own);
    }
    let hugging_face = args.iter().any(|arg| arg.starts_with("hf://"));
    // The template may say all but what is loaded.
    initializer["args"] = args.into();
    mount_into(&mut initializer, json!({"name": SHARED_VOLUME, "mountPath": mount}));
    if let Some(confidential) = model.confidential {
        set_env(&mut initializer, "CONFIDENTIAL_ENABLED", "true");
        if let Some(id) = confidential.resource_id.as_deref().and_then(said) {
            set_env(&mut initializer, "CONFIDENTIAL_RESOURCE_ID", id);
        }
    }
    if let Some(Token { secret, key }) = model.token.filter(|_| hugging_face) {
        let reference = json!({"secretKeyRef": {"name": secret, "key": key}});
        add_env(&mut initializer, [json!({"name": Token::VARIABLE, "valueFrom": reference})]);
    }
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

/// Takes away what a template says of the container that downloads.
fn take_initializers(pod: &mut Value) -> Vec<Value> {
    let (own, rest) = list(pod, "initContainers").drain(..).partition(|it| it["name"] == INITIALIZER);
    *list(pod, "initContainers") = rest;
    own
}

/// A container that has the model in its image, and lends its files to its neighbor.
fn modelcar(pod: &mut Value, path: &str, image: &str, user: Option<i64>) {
    let parent = path.rsplit_once('/').map_or("/", |(parent, _)| parent);
    let resources = json!({"limits": {"cpu": "10m", "memory": "15Mi"}, "requests": {"cpu": "10m", "memory": "15Mi"}});
    let mount = json!({"name": SHARED_VOLUME, "mountPath": parent});
    pod["shareProcessNamespace"] = true.into();
    add_named(pod, "volumes", json!({"name": SHARED_VOLUME, "emptyDir": {}}));
    add_mount(pod, mount.clone());
    if let Some(main) = container(pod, MAIN) {
        set_env(main, "MODEL_INIT_MODE", "async");
        if let Some(user) = user {
            main["securityContext"]["runAsUser"] = user.into();
        }
    }
    let link = format!("ln -sf /proc/$$$$/root/models {path} && sleep infinity");
    list(pod, "containers").push(without_nulls(json!({
        "name": "modelcar",
        "image": image,
        "args": ["sh", "-c", link],
        "resources": resources,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [mount],
        "securityContext": user.map(|user| json!({ "runAsUser": user })),
    })));
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

/// The image itself is a volume, named after where it is mounted.
fn image_volume(pod: &mut Value, path: &str, image: &str) {
    let image = json!({"reference": image, "pullPolicy": "IfNotPresent"});
    let volume = path.trim_matches('/').replace('/', "-");
    add_named(pod, "volumes", json!({"name": volume, "image": image}));
    add_mount(pod, json!({"name": volume, "mountPath": path, "subPath": "models", "readOnly": true}));
}
