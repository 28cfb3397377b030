//! What we render for the cases of the real systems is what API servers and Envoy take.
//!
//! The cases are those of `tests/conformance`, and our own; where there are none of the former, the latter do.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream;
use gatewright::clock::SystemClock;
use gatewright::cluster::kube::KubeCluster;
use gatewright::cluster::kubeconfig::{Settings, StandardLookup};
use gatewright::cluster::{Cluster, Mode, Precondition};
use gatewright_engine::error::Chain;
use gatewright_engine::object::Object;

use crate::cases;
use crate::cluster::{shared, unique};
use crate::golden;

/// All objects of all cases, each with the name of its case.
fn objects() -> Vec<(String, Object)> {
    let mut objects = Vec::new();
    for suite in cases::suites(&cases::folder()) {
        for (stem, folder) in suite.cases() {
            let case = suite.case(&stem, &folder);
            let units = case.rendering.units.into_iter();
            let name = format!("{}/{stem}", suite.name);
            objects.extend(units.flat_map(|unit| unit.objects).map(|object| (name.clone(), object)));
        }
    }
    for case in golden::cases() {
        let units = case.rendering.units.iter();
        objects.extend(units.flat_map(|unit| unit.objects.clone()).map(|object| (case.name.clone(), object)));
    }
    objects
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_accepts_every_object() {
    let namespace = unique("accepted");
    shared().kubectl_ok(&["create", "namespace", &namespace]);
    let settings = Settings { path: Some(shared().kubeconfig("admin")), ..Settings::default() };
    let cluster = &KubeCluster::new("test", settings, StandardLookup::default(), Arc::new(SystemClock::new()));
    let objects = objects();
    // Kinds that a cluster has only if somebody has installed them are not judged here.
    let kinds = objects.iter().map(|(_, object)| object.gvk()).collect();
    let kinds = cluster.kinds(&kinds).await.expect("the kinds can be listed");
    let here = objects.into_iter().filter(|(_, object)| kinds.contains_key(&object.gvk())).map(|(case, object)| {
        let mut body = object.body().clone();
        if !object.id().namespace.is_empty() {
            body["metadata"]["namespace"] = namespace.as_str().into();
        }
        (case, Object::new(body).expect("a rendered object has an identity"))
    });
    let checks = here.map(|(case, object)| async move {
        let result = cluster.apply(&object, &Precondition::Absent, Mode::DryRun).await;
        result.err().map(|error| format!("{case}: {}", Chain(&error)))
    });
    let results: Vec<_> = stream::iter(checks).buffer_unordered(8).collect().await;
    assert!(results.len() > 150, "only {} objects were found", results.len());
    let refused: Vec<String> = results.into_iter().flatten().collect();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
