//! Kinds of others that are called as ours are, or almost: they are what they are.

use crate::errors::{desk, folder, gateway};

fn document(api_version: &str, kind: &str) -> String {
    format!("apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: mine, namespace: shop}}\nspec: {{}}\n")
}

#[test]
fn real_kinds_of_neighbors_are_not_called_slips() {
    let desk = desk("gateways", &[("fine", folder())]);
    desk.write("specs/edge.yaml", &gateway("shop", "edge", 8080));
    let kinds = [
        ("serving.kserve.io/v1beta1", "InferenceService"),
        ("inference.networking.x-k8s.io/v1alpha2", "InferenceModel"),
        ("inference.networking.x-k8s.io/v1alpha2", "InferenceModelRewrite"),
        ("gateway.kgateway.dev/v1alpha1", "GatewayExtension"),
        ("nvidia.com/v1alpha1", "DynamoCheckpoint"),
        ("gateway.networking.k8s.io/v1", "HTTPRoute"),
    ];
    for (api_version, kind) in kinds {
        desk.write(&format!("specs/{kind}.yaml"), &document(api_version, kind));
    }
    let run = desk.run(&["sync"]).exits(0).says("created");
    assert!(!run.out.contains("did you mean") && !run.err.contains("did you mean"), "{}{}", run.out, run.err);
    desk.run(&["check", "specs"]).exits(0).says("6 documents that no pack claims");

    // A slip is one all the same.
    desk.write("specs/slip.yaml", &document("serving.kserve.io/v1alpha1", "LLMInferenceServise"));
    desk.run(&["check", "specs"]).exits(1).complains("did you mean \"LLMInferenceService\"?");
}
