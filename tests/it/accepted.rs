//! API servers and Envoy take what we render for the cases of the real systems.
//!
//! The cases are those of `tests/conformance`, and our own; where there are none of the former, the latter do.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream;
use gatewright::basics::clock::SystemClock;
use gatewright::cluster::kube::KubeCluster;
use gatewright::cluster::kubeconfig::{Settings, StandardLookup};
use gatewright::cluster::{Cluster, Mode, Precondition};
use gatewright_engine::error::Chain;
use gatewright_engine::object::Object;

use crate::cases;
use crate::cluster::unique;
use crate::golden;
use crate::pickers::server;

/// One object in so many may be one that no API server takes from the real system either: parts of kustomizations
/// without an image, and two variables of one name.
const FEW: usize = 50;

/// An object of a case, and the same object as the real system made it.
struct Pair {
    case: String,
    rendered: Object,
    real: Option<Object>,
}

/// All objects of all cases.
fn pairs() -> Vec<Pair> {
    let mut pairs = Vec::new();
    for suite in cases::suites(&cases::folders()) {
        for (stem, folder) in suite.cases() {
            let case = suite.case(&stem, &folder);
            let name = format!("{}/{stem}", suite.name);
            let bodies = case.expected.iter().flatten();
            let real: Vec<Object> = bodies.filter_map(|body| Object::new(body.clone()).ok()).collect();
            pairs.extend(case.objects().into_iter().map(|rendered| {
                let is_same = |it: &&Object| (it.gvk(), &it.id().name) == (rendered.gvk(), &rendered.id().name);
                Pair { case: name.clone(), real: real.iter().find(is_same).cloned(), rendered }
            }));
        }
    }
    for case in golden::cases() {
        let objects = case.rendering.units.iter().flat_map(|unit| unit.objects.clone());
        pairs.extend(objects.map(|rendered| Pair { case: case.name.clone(), rendered, real: None }));
    }
    pairs
}

/// Moves an object to where the test is.
fn moved(object: &Object, namespace: &str) -> Object {
    let is_cluster_scoped = object.id().namespace.is_empty() && object.id().kind.starts_with("Cluster");
    object.clone().in_namespace(if is_cluster_scoped { "" } else { namespace })
}

/// An object is refused if the server takes the real system's and not ours: some cases are about patches that leave a
/// container without its volumes, and no server takes those.
#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_accepts_every_object() {
    let namespace = unique("accepted");
    server().kubectl_ok(&["create", "namespace", &namespace]);
    let settings = Settings { path: Some(server().kubeconfig("admin")), ..Settings::default() };
    let cluster = &KubeCluster::new("test", settings, StandardLookup::default(), Arc::new(SystemClock::new()));
    let pairs = pairs();
    // Kinds that a cluster has only if somebody has installed them are not judged here.
    let kinds = pairs.iter().map(|pair| pair.rendered.gvk()).collect();
    let kinds = cluster.kinds(&kinds).await.expect("the kinds can be listed").served;
    let is_served = |pair: &&Pair| kinds.contains_key(&pair.rendered.gvk());
    let unknown = pairs.iter().filter(|pair| pair.case.starts_with("endpoint-picker/") && !is_served(pair));
    assert_eq!(unknown.map(|pair| pair.rendered.gvk().to_string()).collect::<Vec<_>>(), [""; 0]);
    let dry_run = async |object: &Object| {
        let object = moved(object, &namespace);
        cluster.apply(&object, &Precondition::Absent, Mode::DryRun).await.err().map(|error| Chain(&error).to_string())
    };
    let dry_run = &dry_run;
    let checks = pairs.iter().filter(is_served).map(|pair| async move {
        let refused = dry_run(&pair.rendered).await?;
        let is_real_refused = match &pair.real {
            Some(real) => dry_run(real).await.is_some(),
            None => false,
        };
        Some((format!("{}: {refused}", pair.case), is_real_refused))
    });
    let results: Vec<_> = stream::iter(checks).buffer_unordered(8).collect().await;
    assert!(results.len() > 150, "only {} objects were found", results.len());
    let all = results.len();
    let refused: Vec<_> = results.into_iter().flatten().collect();
    let ours: Vec<&str> = refused.iter().filter(|(_, real)| !real).map(|(text, _)| text.as_str()).collect();
    assert!(ours.is_empty(), "{}", ours.join("\n"));
    assert!(refused.len() * FEW <= all, "the real system's too, and yet {} of {all}: {refused:?}", refused.len());
}
