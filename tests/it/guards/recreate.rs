//! Fields that cannot be changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use gatewright::basics::clock::SystemClock;
use gatewright::cluster::kube::KubeCluster;
use gatewright::cluster::kubeconfig::{Settings, StandardLookup};
use gatewright::cluster::{Cluster, ClusterError, Kinds, Mode, Precondition, Record};
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, Object, ObjectId};
use serde_json::{Value, json};

use super::document;
use crate::ownership::site::{Site, server};
use crate::rounds::installation::{Installation, Specs};

const ALLOWED: &str = "unclaimed: apply, recreate: {kinds: [Deployment, Secret, StatefulSet, Service]}";

fn workload(site: &Site, kind: &str, app: &str, image: &str) -> String {
    let labels = json!({"app": app});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": image}]}});
    let spec = json!({"spec": {"selector": {"matchLabels": labels}, "template": template, "serviceName": "edge"}});
    let text = document(site, "apps/v1", kind, "edge", &spec);
    if kind == "StatefulSet" { text } else { text.replace("\"serviceName\":\"edge\",", "") }
}

#[test]
fn a_field_that_cannot_be_changed_is_named_and_only_with_consent_the_object_is_replaced() {
    let site = Site::new("unclaimed: apply");
    site.spec("edge", &workload(&site, "Deployment", "one", "image"));
    site.sync().exits(0).says("1 object created");
    let before = site.versions();
    site.spec("edge", &workload(&site, "Deployment", "two", "image"));
    let refusal = "immutable: spec.selector cannot be changed; to have it deleted and created again, add Deployment to \
                   recreate.kinds of the sync, or annotate it with gatewright.dev/recreate=allowed";
    site.run(&["plan"]).exits(1).says(refusal);
    site.sync().exits(1).says(refusal);
    assert_eq!(site.versions(), before);

    // Consent for this object alone.
    site.kubectl(&["annotate", "deployment", "edge", "gatewright.dev/recreate=allowed"]);
    let plan = site.run(&["plan"]).exits(0).says("± recreate Deployment").says("spec.selector.matchLabels.app");
    plan.says("deleted and created again, because spec.selector cannot be changed");
    let uid = site.get("deployment/edge")["metadata"]["uid"].clone();
    site.sync().exits(0).says("1 object recreated");
    let after = site.get("deployment/edge");
    assert_eq!(after["spec"]["selector"]["matchLabels"]["app"], "two");
    assert_ne!(after["metadata"]["uid"], uid);
    assert_eq!(
        site.inventory().entries.values().next().map(|entry| entry.uid.as_deref()),
        Some(after["metadata"]["uid"].as_str())
    );
    site.sync().exits(0).says("no changes");

    // The new one has no such consent; by kind it is given.
    site.spec("edge", &workload(&site, "Deployment", "three", "image"));
    site.sync().exits(1).says("immutable: spec.selector");
    site.configure(&site.name, ALLOWED);
    site.sync().exits(0).says("1 object recreated");
}

#[test]
fn what_is_wrong_with_an_object_is_never_a_reason_to_delete_it() {
    let site = Site::new(ALLOWED);
    site.spec("edge", &workload(&site, "Deployment", "one", "image"));
    site.sync().exits(0);
    let before = site.versions();
    // An immutable field, and a mistake beside it.
    let broken = workload(&site, "Deployment", "two", "image")
        .replace("\"spec\":{\"selector\"", "\"spec\":{\"replicas\":-1,\"selector\"");
    assert!(broken.contains("-1"), "{broken}");
    site.spec("edge", &broken);
    site.run(&["plan"]).exits(1).says("the cluster does not take it").says("replicas");
    site.sync().exits(1);
    // The new one would not be taken: its name for a volume is none.
    let volume = "\"volumes\":[{\"name\":\"NO NAME\",\"emptyDir\":{}}],\"containers\"";
    site.spec("edge", &workload(&site, "Deployment", "two", "image").replace("\"containers\"", volume));
    site.sync().exits(1);
    assert_eq!(site.versions(), before);

    // What asks to be kept is not deleted for that either.
    site.spec("edge", &workload(&site, "Deployment", "two", "image"));
    site.kubectl(&["annotate", "deployment", "edge", "helm.sh/resource-policy=keep"]);
    let before = site.versions();
    site.sync().exits(1).says("it carries helm.sh/resource-policy, so it is not deleted");
    assert_eq!(site.versions(), before);
}

#[test]
fn what_holds_data_is_never_replaced() {
    let site = Site::new(ALLOWED);
    site.spec("edge", &workload(&site, "StatefulSet", "one", "image"));
    let secret =
        |kind: &str| document(&site, "v1", "Secret", "key", &json!({"type": kind, "stringData": {"key": "word"}}));
    site.spec("key", &secret("example.com/one"));
    site.sync().exits(0).says("2 objects created");
    let uids = ["statefulset/edge", "secret/key"].map(|object| site.get(object)["metadata"]["uid"].clone());
    site.spec("edge", &workload(&site, "StatefulSet", "two", "image"));
    site.spec("key", &secret("example.com/two"));
    let run = site.sync().exits(1);
    assert!(!run.out.contains("word") && !run.err.contains("word"), "{}", run.out);
    run.says("2 objects refused");
    assert_eq!(["statefulset/edge", "secret/key"].map(|object| site.get(object)["metadata"]["uid"].clone()), uids);
}

#[test]
fn an_object_whose_successor_fails_is_put_back() {
    let site = Site::new(ALLOWED);
    let service = |spec: &Value| document(&site, "v1", "Service", "edge", &json!({"spec": spec}));
    site.spec("edge", &service(&json!({"ports": [{"port": 80}]})));
    site.sync().exits(0);
    let before = site.get("service/edge");
    // Under another name, without its address, it would do.
    site.spec("edge", &service(&json!({"clusterIP": "192.0.2.1", "ports": [{"port": 80}]})));
    site.run(&["plan"]).exits(0).says("± recreate Service");
    site.sync().exits(1).says("the former Service").says("was put back");
    let after = site.get("service/edge");
    assert_eq!(after["spec"], before["spec"]);
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
    site.spec("edge", &service(&json!({"ports": [{"port": 80}]})));
    site.sync().exits(0);
    assert_eq!(site.get("service/edge")["metadata"]["uid"], after["metadata"]["uid"]);
}

/// A cluster on which somebody deletes an object and makes it again right before it is written to.
struct Swapped {
    inner: KubeCluster,
    id: ObjectId,
    swap: Box<dyn Fn() + Send + Sync>,
    deleted: std::sync::Mutex<Vec<ObjectId>>,
}

#[async_trait]
impl Cluster for Swapped {
    async fn identity(&self) -> Result<String, ClusterError> {
        self.inner.identity().await
    }

    async fn kinds(&self, kinds: &BTreeSet<Gvk>) -> Result<Kinds, ClusterError> {
        self.inner.kinds(kinds).await
    }

    async fn list(&self, kind: &Gvk, label: (&str, &str)) -> Result<Vec<Live>, ClusterError> {
        self.inner.list(kind, label).await
    }

    async fn list_bearing(&self, kind: &Gvk, label: &str) -> Result<Vec<Live>, ClusterError> {
        self.inner.list_bearing(kind, label).await
    }

    async fn record_names(&self) -> Result<BTreeSet<String>, ClusterError> {
        self.inner.record_names().await
    }

    async fn get(&self, kind: &Gvk, id: &ObjectId) -> Result<Option<Live>, ClusterError> {
        self.inner.get(kind, id).await
    }

    async fn contents(&self, container: &Object) -> Result<Vec<Live>, ClusterError> {
        self.inner.contents(container).await
    }

    async fn apply(&self, object: &Object, only_if: &Precondition, mode: Mode) -> Result<Live, ClusterError> {
        if *object.id() == self.id {
            (self.swap)();
        }
        self.inner.apply(object, only_if, mode).await
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
        self.inner.patch(kind, id, uid, resource_version, operations, mode).await
    }

    async fn delete(&self, kind: &Gvk, id: &ObjectId, uid: &str, resource_version: &str) -> Result<(), ClusterError> {
        self.deleted.lock().expect("no test panics in here").push(id.clone());
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

    async fn delete_record(&self, name: &str, over: Option<&str>) -> Result<(), ClusterError> {
        self.inner.delete_record(name, over).await
    }

    fn has_health(&self) -> bool {
        true
    }

    fn carries_marks(&self) -> bool {
        true
    }
}

/// The server calls a uid that has changed an immutable field.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_another_one_by_now_is_no_reason_to_delete_it() {
    let site = Site::new("");
    let settings = json!({"unclaimed": "apply", "recreate": {"kinds": ["Deployment"]}});
    let installation = Installation::new(&site.name, &settings);
    let specs = |image: &str| Specs::from([("edge.json".to_owned(), workload(&site, "Deployment", "one", image))]);
    let lookup = StandardLookup { files: vec![server().kubeconfig("admin")], ..StandardLookup::default() };
    let connect = || KubeCluster::new("c", Settings::default(), lookup.clone(), Arc::new(SystemClock::new()));
    let plain: Arc<dyn Cluster> = Arc::new(connect());
    installation.round(&specs("image"), &plain).await;

    let name = site.name.clone();
    let swap = move || {
        let read = server().kubectl_ok(&["-n", &name, "get", "deployment", "edge", "-o", "json"]);
        let mut object: Value = serde_json::from_str(&read).expect("kubectl prints JSON");
        for field in ["uid", "resourceVersion"] {
            object["metadata"].as_object_mut().expect("it has metadata").remove(field);
        }
        server().kubectl_ok(&["-n", &name, "delete", "deployment", "edge", "--cascade=background"]);
        server().kubectl_stdin(&["create", "--validate=false", "-f", "-"], &object.to_string());
    };
    let swapped = Arc::new(Swapped {
        inner: connect(),
        id: ObjectId::new("apps", "Deployment", &site.name, "edge"),
        swap: Box::new(swap),
        deleted: std::sync::Mutex::default(),
    });
    let cluster: Arc<dyn Cluster> = Arc::clone(&swapped) as Arc<dyn Cluster>;
    let report = installation.round(&specs("other"), &cluster).await;
    assert_eq!(*swapped.deleted.lock().expect("no test panics in there"), [], "{report:?}");
    assert!(report.steps.iter().all(|step| step.action.word() != "recreate"), "{report:?}");
}
