//! Images of the built-in presets, for clusters that fetch theirs from somewhere else.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::merge::PODS;
use super::pods::{MAIN, list_items};

/// Images that take the place of those of built-in presets; one that is not there stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Images {
    /// The server of a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The sidecar that has prompts read elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routing_sidecar: Option<String>,
    /// The scheduler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// The tokenizer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<String>,
    /// The server that learns latencies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training_server: Option<String>,
    /// The server that predicts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prediction_server: Option<String>,
}

impl Images {
    /// Puts them into the spec of a preset, where that names an image.
    pub(super) fn apply(&self, spec: &mut Value) {
        for path in PODS {
            let Some(pod) = spec.pointer_mut(&format!("/{}", path.join("/"))) else { continue };
            for list in ["initContainers", "containers"] {
                for container in list_items(pod, list).filter(|container| container["image"].is_string()) {
                    if let Some(image) = self.of(path, container["name"].as_str().unwrap_or_default()) {
                        container["image"] = image.into();
                    }
                }
            }
        }
    }

    /// Returns the image of a container of the pod at a path.
    fn of(&self, path: &[&str], container: &str) -> Option<&str> {
        let image = match (container, path) {
            (MAIN, [.., "tokenizer", _]) => &self.tokenizer,
            (MAIN, ["router", ..]) => &self.scheduler,
            (MAIN, _) => &self.server,
            ("llm-d-routing-sidecar", _) => &self.routing_sidecar,
            ("training-server", _) => &self.training_server,
            ("prediction-server", _) => &self.prediction_server,
            _ => &None,
        };
        image.as_deref().filter(|image| !image.is_empty())
    }
}
