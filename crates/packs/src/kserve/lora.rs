//! Adapters of a model: where they come from, and how vLLM is told.

use serde_json::{Value, json};

use super::pods::{MAIN, add_args, container, words};
use super::storage;
use super::types::{Adapter, Spec};
use crate::json::items;

impl Adapter {
    /// Returns what stands behind `pvc://`, if it is in a claim.
    fn claim(&self) -> Option<&str> {
        self.uri.strip_prefix("pvc://")
    }

    fn path(&self) -> String {
        let name: String = self.name.chars().map(|char| if is_plain(char) { char } else { '-' }).collect();
        let name = if matches!(name.as_str(), "" | "." | "..") { "adapter" } else { &name };
        format!("/mnt/lora/{name}")
    }

    fn volume(&self) -> String {
        let name = self.name.to_ascii_lowercase().replace(|char: char| !char.is_ascii_alphanumeric(), "-");
        let name = name.trim_matches('-');
        let name = name[..name.len().min(54)].trim_end_matches('-');
        format!("lora-pvc-{}", if name.is_empty() { "adapter" } else { name })
    }
}

fn is_plain(char: char) -> bool {
    char.is_ascii_alphanumeric() || "._-".contains(char)
}

/// Reads `spec.model.lora.adapters`, in the order of their names, or returns what is wrong with one of them.
pub(super) fn adapters(spec: &Spec) -> Result<Vec<Adapter>, String> {
    let model = spec.model.as_ref().and_then(|model| model.name.as_deref());
    spec.adapters().iter().try_for_each(|adapter| check(adapter, model))?;
    let mut adapters = spec.adapters().to_vec();
    adapters.sort_by(|a, b| a.name.cmp(&b.name));
    match adapters.windows(2).find(|pair| pair[0].name == pair[1].name) {
        Some(pair) => Err(format!("two adapters have the name {:?}", pair[0].name)),
        None => Ok(adapters),
    }
}

fn check(Adapter { name, uri }: &Adapter, model: Option<&str>) -> Result<(), String> {
    if name.is_empty() {
        return Err(format!("the adapter {uri:?} has no name"));
    }
    if model == Some(name) {
        return Err(format!("the adapter {name:?} has the name of the model"));
    }
    match uri.split_once("://") {
        Some(("hf" | "s3" | "pvc", _)) => Ok(()),
        _ => Err(format!("the adapter {name:?} is at {uri:?}; adapters can be at hf://, s3:// and pvc://")),
    }
}

/// Returns addresses and paths of those that are downloaded.
pub(super) fn downloads(adapters: &[Adapter]) -> Vec<String> {
    let downloaded = adapters.iter().filter(|adapter| adapter.claim().is_none());
    downloaded.flat_map(|adapter| [adapter.uri.clone(), adapter.path()]).collect()
}

/// Mounts those that are in claims, and tells the server of all, unless its arguments already do.
///
/// Each has two names: its own, and the one that routes by model name use.
pub(super) fn attach(pod: &mut Value, adapters: &[Adapter], spec: &Spec, namespace: &str) {
    for (adapter, claim) in adapters.iter().filter_map(|adapter| Some((adapter, adapter.claim()?))) {
        storage::mount_claim(pod, &adapter.volume(), claim, &adapter.path());
    }
    let Some(main) = container(pod, MAIN).filter(|_| !adapters.is_empty()) else { return };
    if is_told(main) {
        return;
    }
    let mut args = vec!["--enable-lora".to_owned()];
    if let Some(lora) = spec.model.as_ref().and_then(|model| model.lora.as_ref()) {
        let most = [lora.max_rank, lora.max_adapters, lora.max_cpu_adapters];
        let flags = most.into_iter().zip(["max-lora-rank", "max-loras", "max-cpu-loras"]);
        args.extend(flags.filter_map(|(most, flag)| Some(format!("--{flag}={}", most?))));
    }
    args.push("--lora-modules".to_owned());
    for adapter in adapters {
        for name in [adapter.name.clone(), format!("publishers/{namespace}/models/{}", adapter.name)] {
            // Presets hand their arguments to a shell, which takes these quotes away.
            args.push(format!("'{}'", json!({"name": name, "path": adapter.path()})));
        }
    }
    add_args(main, args);
}

fn is_told(main: &Value) -> bool {
    let variables = items(&main["env"]).filter(|it| it["name"] == "VLLM_ADDITIONAL_ARGS");
    let variables = variables.filter_map(|it| it["value"].as_str());
    words(main, "command").chain(words(main, "args")).chain(variables).any(|text| text.contains("--lora-modules"))
}
