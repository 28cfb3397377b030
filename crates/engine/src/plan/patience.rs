//! What takes long to become healthy, because a model has to be loaded first.

use serde_json::Value;

use super::guard::confirm::device;
use crate::object::ObjectId;

/// Kinds whose controllers start model servers.
const MODEL_SERVERS: [(&str, &str); 7] = [
    ("grove.io", "PodCliqueSet"),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
    ("nvidia.com", "DynamoComponentDeployment"),
    ("nvidia.com", "DynamoGraphDeployment"),
    ("nvidia.com", "DynamoGraphDeploymentRequest"),
    ("nvidia.com", "DynamoModel"),
    ("serving.kserve.io", "LLMInferenceService"),
];

/// Tells whether an object is a model server, or makes some: by its kind, or because it asks for a GPU.
pub fn loads_a_model(id: &ObjectId, body: Option<&Value>) -> bool {
    MODEL_SERVERS.contains(&id.group_kind()) || body.is_some_and(|body| device(body).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_model_server_is_known_by_its_kind_or_its_gpu() {
        let id = |group: &str, kind: &str| ObjectId::new(group, kind, "models", "chat");
        assert!(loads_a_model(&id("nvidia.com", "DynamoGraphDeployment"), None));
        assert!(!loads_a_model(&id("example.com", "DynamoGraphDeployment"), None));
        let id = |kind: &str| id("apps", kind);
        assert!(!loads_a_model(&id("Deployment"), None));
        let limits = |name: &str| json!({"spec": {"template": {"spec": {"containers": [{"resources": {"limits": {name: "1"}}}]}}}});
        assert!(loads_a_model(&id("Deployment"), Some(&limits("nvidia.com/gpu"))));
        assert!(!loads_a_model(&id("Deployment"), Some(&limits("cpu"))));
    }
}
