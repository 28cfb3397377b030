//! Kinds of others that are called as ours are, or almost: they are what they are.

use crate::cluster::ApiServer;
use crate::errors::{desk, folder, gateway};
use crate::ownership::site::Site;
use std::sync::OnceLock;

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

/// A server where others have kinds that are called as ours are: apart, because kubectl knows kinds by their names.
fn crowded() -> &'static ApiServer {
    static SERVER: OnceLock<ApiServer> = OnceLock::new();
    SERVER.get_or_init(|| {
        let server = ApiServer::start();
        for kind in [
            ["none", "networking.istio.io", "v1", "gateways", "Gateway", "Namespaced"],
            ["none", "serving.knative.dev", "v1", "services", "Service", "Namespaced"],
            ["none", "batch.volcano.sh", "v1alpha1", "jobs", "Job", "Namespaced"],
        ] {
            server.install_kind(kind);
        }
        server
    })
}

#[test]
fn kinds_of_others_are_not_awaited_as_if_they_were_ours_and_hold_no_deletion() {
    let site = Site::on(crowded(), "unclaimed: apply, wait: {timeout: 5s, loadBalancer: true}");
    let document = |api_version: &str, kind: &str, name: &str| {
        let metadata = format!("metadata: {{name: {name}, namespace: {}}}", site.name);
        format!("apiVersion: {api_version}\nkind: {kind}\n{metadata}\nspec: {{type: LoadBalancer, replicas: 2}}\n")
    };
    site.spec(
        "map",
        &document("v1", "ConfigMap", "old").replace("spec: {type: LoadBalancer, replicas: 2}", "data: {}"),
    );
    site.sync().exits(0).says("1 object created");

    // What goes in the file of what comes would have to wait for it.
    let kinds = [
        ("networking.istio.io/v1", "Gateway"),
        ("serving.knative.dev/v1", "Service"),
        ("batch.volcano.sh/v1alpha1", "Job"),
    ];
    let documents: Vec<String> = kinds.iter().map(|(version, kind)| document(version, kind, "new")).collect();
    site.spec("map", &documents.join("---\n"));
    site.sync().exits(0).says("3 objects created").says("1 object deleted");
    site.sync().exits(0).says("no changes");
}

#[test]
fn a_kind_that_waits_for_a_person_may_be_named_with_its_group() {
    let confirm = |kind: &str| format!("unclaimed: apply, prune: {{confirm: {{kinds: [{kind}]}}}}");
    let site = Site::on(crowded(), &confirm("Service.serving.knative.dev"));
    let metadata = format!("metadata: {{name: edge, namespace: {}}}", site.name);
    site.spec("knative", &format!("apiVersion: serving.knative.dev/v1\nkind: Service\n{metadata}\nspec: {{}}\n"));
    site.spec("core", &format!("apiVersion: v1\nkind: Service\n{metadata}\nspec: {{ports: [{{port: 80}}]}}\n"));
    site.spec("map", &format!("apiVersion: v1\nkind: ConfigMap\n{metadata}\ndata: {{}}\n"));
    site.sync().exits(0).says("3 objects created");
    site.drop(&["knative", "core"]);
    site.sync().exits(3).says("1 object deleted").says("is held by guard confirm");
    assert_eq!(site.get("services.v1.serving.knative.dev/edge")["metadata"]["name"], "edge");
}
