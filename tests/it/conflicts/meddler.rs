//! Somebody who changes an object between the two requests of one step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use gatewright::apply::Outcome;
use gatewright::clock::SystemClock;
use gatewright::cluster::kube::KubeCluster;
use gatewright::cluster::kubeconfig::{Settings, StandardLookup};
use gatewright::cluster::{Cluster, ClusterError, Kinds, Mode, Precondition, Record};
use gatewright::report::ClusterState;
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, Object, ObjectId};
use serde_json::{Value, json};

use super::{deployment, live, managers};
use crate::ownership::site::{Site, server};
use crate::rounds::installation::{Installation, Specs};

/// A cluster on which something happens after the first patch.
struct Meddled {
    inner: KubeCluster,
    meddle: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    writes: Mutex<Vec<&'static str>>,
}

impl Meddled {
    fn note(&self, write: &'static str) {
        self.writes.lock().expect("nobody panics with it").push(write);
    }
}

#[async_trait]
impl Cluster for Meddled {
    async fn identity(&self) -> Result<String, ClusterError> {
        self.inner.identity().await
    }

    async fn kinds(&self, kinds: &BTreeSet<Gvk>) -> Result<Kinds, ClusterError> {
        self.inner.kinds(kinds).await
    }

    async fn list(&self, kind: &Gvk, label: (&str, &str)) -> Result<Vec<Live>, ClusterError> {
        self.inner.list(kind, label).await
    }

    async fn get(&self, kind: &Gvk, id: &ObjectId) -> Result<Option<Live>, ClusterError> {
        self.inner.get(kind, id).await
    }

    async fn apply(&self, object: &Object, only_if: &Precondition, mode: Mode) -> Result<Live, ClusterError> {
        let result = self.inner.apply(object, only_if, mode).await;
        if mode == Mode::Real {
            self.note(if result.is_ok() { "apply" } else { "refused" });
        }
        result
    }

    async fn patch(
        &self,
        kind: &Gvk,
        id: &ObjectId,
        uid: &str,
        resource_version: &str,
        operations: &[Value],
        mode: Mode,
    ) -> Result<Live, ClusterError> {
        let result = self.inner.patch(kind, id, uid, resource_version, operations, mode).await;
        if mode == Mode::Real {
            self.note("patch");
            if let Some(meddle) = self.meddle.lock().expect("nobody panics with it").take() {
                meddle();
            }
        }
        result
    }

    async fn delete(&self, kind: &Gvk, id: &ObjectId, uid: &str, resource_version: &str) -> Result<(), ClusterError> {
        self.inner.delete(kind, id, uid, resource_version).await
    }

    async fn read_record(&self, name: &str) -> Result<Option<Record>, ClusterError> {
        self.inner.read_record(name).await
    }

    async fn write_record(
        &self,
        name: &str,
        data: &BTreeMap<String, String>,
        over: Option<&str>,
    ) -> Result<String, ClusterError> {
        self.inner.write_record(name, data, over).await
    }

    async fn delete_record(&self, name: &str) -> Result<(), ClusterError> {
        self.inner.delete_record(name).await
    }

    fn has_health(&self) -> bool {
        self.inner.has_health()
    }

    fn carries_marks(&self) -> bool {
        self.inner.carries_marks()
    }
}

#[test]
fn a_step_that_is_overtaken_between_its_requests_is_planned_again() {
    let site = Site::new("");
    let settings = Settings { path: Some(server().kubeconfig("admin")), ..Settings::default() };
    let kube = KubeCluster::new("c", settings, StandardLookup::default(), Arc::new(SystemClock::new()));
    let meddled = Arc::new(Meddled { inner: kube, meddle: Mutex::default(), writes: Mutex::default() });
    let cluster: Arc<dyn Cluster> = meddled.clone();
    let installation = Installation::new(&site.name, &json!({"unclaimed": "apply"}));
    let mut object = deployment(Some(2), "1");
    object["metadata"]["namespace"] = site.name.clone().into();
    let specs: Specs = [("edge.json".to_owned(), object.to_string())].into();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    assert_eq!(runtime.block_on(installation.round(&specs, &cluster)).state, ClusterState::Done);

    let patch = json!({"spec": {"template": {"spec": {"hostNetwork": true}}}}).to_string();
    site.kubectl(&["patch", "deployment", "edge", "--type=merge", "-p", &patch]);
    let namespace = site.name.clone();
    let meddle = move || {
        let arguments = ["annotate", "deployment", "edge", "meddled=1", "--field-manager=some-controller"];
        server().kubectl_ok(&[&["-n", namespace.as_str()], arguments.as_slice()].concat());
    };
    *meddled.meddle.lock().expect("nobody panics with it") = Some(Box::new(meddle));
    meddled.writes.lock().expect("nobody panics with it").clear();
    let report = runtime.block_on(installation.round(&specs, &cluster));
    let step = &report.steps[0];
    assert_eq!((report.state, step.action.as_str()), (ClusterState::Done, "update"), "{report:?}");
    assert_eq!(step.outcome, Some(Outcome::Done));
    let writes = meddled.writes.lock().expect("nobody panics with it").clone();
    assert_eq!(writes, ["patch", "refused", "apply"], "what was said of owners the first time holds");

    let now = live(&site);
    assert_eq!(now["spec"]["template"]["spec"].get("hostNetwork"), None);
    assert_eq!(now["metadata"]["annotations"]["meddled"], "1");
    assert_eq!(managers(&now), ["gatewright Apply", "some-controller Update"]);
    let plan = runtime.block_on(installation.plan(&specs, &cluster));
    assert!(plan.steps.iter().all(|step| step.action == "keep"), "{plan:?}");
}
