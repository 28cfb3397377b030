//! What comes of a `DynamoGraphDeploymentRequest`: graphs that the operator applies by itself.

use gatewright_engine::object::{ObjectId, metadata};
use serde_json::Value;

/// Tells whether an object was made for a request: it names it by its labels, and has no ownerReference to it.
///
/// Such an object bears no mark of ours, so that no round changes or deletes it: it outlives its request, as the
/// operator means it to.
pub fn is_made_for(request: &ObjectId, body: &Value) -> bool {
    let label = |key: &str| metadata(body, "labels", key);
    request.kind == "DynamoGraphDeploymentRequest"
        && label("dgdr.nvidia.com/name") == Some(&request.name)
        && label("dgdr.nvidia.com/namespace") == Some(&request.namespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewright_engine::marks::SYNC_LABEL;
    use serde_json::json;

    #[test]
    fn what_a_request_has_made_is_its_own_and_none_of_ours() {
        let request = ObjectId::new("nvidia.com", "DynamoGraphDeploymentRequest", "models", "found");
        let labels = json!({"dgdr.nvidia.com/name": "found", "dgdr.nvidia.com/namespace": "models"});
        let graph = json!({"kind": "DynamoGraphDeployment", "metadata": {"name": "found-dgd", "labels": labels}});
        assert!(is_made_for(&request, &graph));
        assert_eq!(metadata(&graph, "labels", SYNC_LABEL), None);
        let other = ObjectId::new("nvidia.com", "DynamoGraphDeploymentRequest", "other", "found");
        assert!(!is_made_for(&other, &graph));
    }
}
