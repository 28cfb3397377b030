//! Assumptions of [`KubeCluster`] about API servers, and its treatment of those that do not answer.

mod credentials;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use gatewright::basics::clock::SystemClock;
use gatewright::basics::duration::Period;
use gatewright::cluster::exec::allow::Exec;
use gatewright::cluster::kube::KubeCluster;
use gatewright::cluster::kubeconfig::{Settings, StandardLookup};
use gatewright::cluster::{Cluster, ClusterError, KindScope, Mode, Precondition, Reason, SYSTEM_NAMESPACE};
use gatewright_engine::error::Chain;
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, Object, ObjectId};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::cluster::etcd::Etcd;
use crate::cluster::process::command;
use crate::cluster::{ApiServer, Options, shared, unique};

const LIMIT: Duration = Duration::from_secs(3);

/// Arguments of openssl.
const NEW_KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";

pub(crate) fn cluster(kubeconfig: PathBuf) -> KubeCluster {
    connect(Settings { path: Some(kubeconfig), ..Settings::default() })
}

fn connect(settings: Settings) -> KubeCluster {
    KubeCluster::new("test", settings, StandardLookup::default(), Arc::new(SystemClock::new()))
}

/// The shared server as `admin`, and a new namespace on it.
fn admin(stem: &str) -> (KubeCluster, String) {
    let namespace = unique(stem);
    shared().kubectl_ok(&["create", "namespace", &namespace]);
    (cluster(shared().kubeconfig("admin")), namespace)
}

fn config_map(namespace: &str, name: &str, data: &Value) -> Object {
    let labels = json!({"test": namespace});
    let metadata = json!({"name": name, "namespace": namespace, "labels": labels});
    object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}))
}

fn object(body: Value) -> Object {
    Object::new(body).expect("it has all that it needs")
}

fn unchanged(live: &Live) -> Precondition {
    Precondition::Unchanged { uid: live.uid.clone(), resource_version: live.resource_version.clone() }
}

async fn create(cluster: &KubeCluster, object: &Object) -> Live {
    cluster.apply(object, &Precondition::Absent, Mode::Real).await.expect("nothing of that name is there")
}

async fn get(cluster: &KubeCluster, object: &Object) -> Option<Live> {
    cluster.get(&object.gvk(), object.id()).await.expect("it can be read")
}

/// Waits no longer than a request may take.
async fn in_time<T>(work: impl Future<Output = T>) -> T {
    timeout(LIMIT + Duration::from_secs(1), work).await.expect("requests end at their deadline")
}

fn fails<T: std::fmt::Debug>(result: Result<T, ClusterError>, reason: Reason, says: &str) -> ClusterError {
    let error = result.expect_err(says);
    let text = Chain(&error).to_string();
    assert_eq!(error.reason, reason, "{text}");
    assert!(text.contains(says), "{text:?} does not say {says:?}");
    error
}

#[tokio::test]
async fn the_identity_is_the_uid_of_kube_system() {
    let uid = shared().kubectl_ok(&["get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}"]);
    assert_eq!(cluster(shared().kubeconfig("viewer")).identity().await.ok(), Some(uid));
}

#[tokio::test]
async fn kinds_that_the_cluster_has_not_are_left_out() {
    let has = [("apps/v1", "Deployment"), ("v1", "Service"), ("v1", "Namespace")];
    let has_not = [("apps/v1", "Gadget"), ("apps/v7", "Deployment"), ("example.invalid/v1", "Gadget")];
    let kinds: BTreeSet<Gvk> = has.iter().chain(&has_not).map(|(version, kind)| Gvk::new(version, kind)).collect();
    let found = cluster(shared().kubeconfig("viewer")).kinds(&kinds).await.expect("the viewer may read what there is");
    let expected = [
        (Gvk::new("apps/v1", "Deployment"), KindScope::Namespaced),
        (Gvk::new("v1", "Namespace"), KindScope::Cluster),
        (Gvk::new("v1", "Service"), KindScope::Namespaced),
    ];
    assert_eq!(found.served, BTreeMap::from(expected));
    assert!(found.unanswered.is_empty());
}

#[tokio::test]
async fn a_kind_may_come_and_go() {
    let (cluster, namespace) = admin("kinds");
    let group = format!("{namespace}.example.com");
    let gadget = Gvk { group: group.clone(), version: "v1".to_owned(), kind: "Gadget".to_owned() };
    let id = ObjectId::new(&group, "Gadget", &namespace, "a");
    let has_it =
        async || cluster.kinds(&BTreeSet::from([gadget.clone()])).await.is_ok_and(|found| found.served.len() == 1);
    assert!(!has_it().await);
    fails(cluster.get(&gadget, &id).await, Reason::NotFound, "the cluster has no kind");

    let name = format!("gadgets.{group}");
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": "gadgets", "kind": "Gadget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    shared().kubectl_stdin(&["create", "-f", "-"], &crd.to_string());
    shared().await_kind(&name);
    assert!(has_it().await);
    assert_eq!(cluster.get(&gadget, &id).await.ok(), Some(None), "the kind is there, the object is not");

    shared().kubectl_ok(&["delete", "crd", &name]);
    // An object of a kind that is gone is not the same as an object that is gone.
    fails(cluster.get(&gadget, &id).await, Reason::NotFound, "the cluster has no kind");
    fails(cluster.list(&gadget, ("a", "b")).await, Reason::NotFound, "the cluster has no kind");
    fails(cluster.delete(&gadget, &id, "a", "1").await, Reason::NotFound, "the cluster has no kind");
}

#[tokio::test]
async fn an_identical_apply_changes_nothing() {
    let (cluster, namespace) = admin("identical");
    let wanted = config_map(&namespace, "a", &json!({"x": "1"}));
    let created = create(&cluster, &wanted).await;
    let applied = cluster.apply(&wanted, &unchanged(&created), Mode::Real).await.expect("it is unchanged");
    assert_eq!(applied, created, "not even the time in managedFields moves");
}

#[tokio::test]
async fn what_was_just_made_is_known_as_it_is() {
    let (cluster, namespace) = admin("made");
    let wanted = config_map(&namespace, "a", &json!({"x": "1"}));
    let created = create(&cluster, &wanted).await;
    assert!(created.object.body()["metadata"]["managedFields"].is_array());
    assert_eq!(Some(created), get(&cluster, &wanted).await);

    let metadata = json!({"name": "a", "namespace": namespace});
    let spec = json!({"ports": [{"port": 80}]});
    let service = object(json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata.clone(), "spec": spec}));
    let created = create(&cluster, &service).await;
    assert!(created.object.body()["spec"]["clusterIP"].is_string(), "the address is what people want to know");
    assert_eq!(Some(created), get(&cluster, &service).await);

    let labels = json!({"app": "a"});
    let template =
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "example.com/a"}]}});
    let spec = json!({"selector": {"matchLabels": labels}, "template": template});
    let workload = object(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}));
    let created = create(&cluster, &workload).await;
    let there = get(&cluster, &workload).await.expect("it is there");
    assert_eq!(created.uid, there.uid);
    assert_eq!(created.object.body()["metadata"]["generation"], 1);
    assert_eq!(created.object.body()["spec"], workload.body()["spec"]);
}

#[tokio::test]
async fn control_characters_arrive_as_they_are() {
    let (cluster, namespace) = admin("controls");
    let text = "del \u{7f}, padding \u{80}, next line \u{85}, separator \u{2028} \u{2029} \u{feff} \u{ffff}, tab \t, escape \u{1b}, \u{1f310}";
    let wanted = config_map(&namespace, "a", &json!({ "x": text }));
    create(&cluster, &wanted).await;
    let there = get(&cluster, &wanted).await.expect("it is there");
    assert_eq!(there.object.body()["data"]["x"], text);
}

#[tokio::test]
async fn fields_that_are_no_longer_wanted_go() {
    let (cluster, namespace) = admin("fields");
    let created = create(&cluster, &config_map(&namespace, "a", &json!({"x": "1", "y": "2"}))).await;
    let wanted = config_map(&namespace, "a", &json!({"x": "1"}));
    let applied = cluster.apply(&wanted, &unchanged(&created), Mode::Real).await.expect("it is unchanged");
    assert_eq!(applied.object.body()["data"], json!({"x": "1"}));
    assert_eq!(applied.uid, created.uid);
}

#[tokio::test]
async fn a_create_never_merges_into_what_is_there() {
    let (cluster, namespace) = admin("create");
    shared().kubectl_ok(&["create", "configmap", "a", "-n", &namespace, "--from-literal=x=theirs"]);
    let wanted = config_map(&namespace, "a", &json!({"y": "ours"}));
    for mode in [Mode::DryRun, Mode::Real] {
        fails(cluster.apply(&wanted, &Precondition::Absent, mode).await, Reason::Conflict, "ConfigMap create");
    }
    let theirs = get(&cluster, &wanted).await.expect("it is there");
    assert_eq!(theirs.object.body()["data"], json!({"x": "theirs"}));
    assert_eq!(theirs.object.label("test"), None);
}

#[tokio::test]
async fn an_update_needs_the_object_that_was_read() {
    let (cluster, namespace) = admin("update");
    let first = create(&cluster, &config_map(&namespace, "a", &json!({"x": "1"}))).await;
    let wanted = config_map(&namespace, "a", &json!({"x": "2"}));
    shared().kubectl_ok(&["annotate", "configmap", "a", "-n", &namespace, "somebody=else"]);
    let apply = async |only_if: &Precondition| cluster.apply(&wanted, only_if, Mode::Real).await;
    fails(apply(&unchanged(&first)).await, Reason::Conflict, "the object has been modified");

    let current = get(&cluster, &wanted).await.expect("it is there");
    let other = Live { uid: "11111111-1111-1111-1111-111111111111".to_owned(), ..current.clone() };
    // 422 "field is immutable", which must never be taken for a reason to recreate.
    fails(apply(&unchanged(&other)).await, Reason::Conflict, "metadata.uid");
    assert!(apply(&unchanged(&current)).await.is_ok());

    shared().kubectl_ok(&["delete", "configmap", "a", "-n", &namespace]);
    fails(apply(&unchanged(&current)).await, Reason::Conflict, "");
    assert_eq!(get(&cluster, &wanted).await, None, "an update creates nothing");
}

#[tokio::test]
async fn a_dry_run_changes_nothing() {
    let (cluster, namespace) = admin("dry");
    let wanted = config_map(&namespace, "a", &json!({"x": "1"}));
    let dry_run = cluster.apply(&wanted, &Precondition::Absent, Mode::DryRun).await.expect("nothing is there");
    assert_eq!(dry_run.object.body()["data"], json!({"x": "1"}));
    assert_eq!(get(&cluster, &wanted).await, None);

    let created = create(&cluster, &wanted).await;
    let wanted = config_map(&namespace, "a", &json!({"x": "2"}));
    let dry_run = cluster.apply(&wanted, &unchanged(&created), Mode::DryRun).await.expect("it is unchanged");
    assert_eq!(dry_run.object.body()["data"], json!({"x": "2"}));
    assert_eq!(dry_run.uid, created.uid);
    assert_eq!(get(&cluster, &wanted).await, Some(created.clone()));

    let stale = Precondition::Unchanged { uid: created.uid.clone(), resource_version: "2".to_owned() };
    fails(cluster.apply(&wanted, &stale, Mode::DryRun).await, Reason::Conflict, "modified");
}

#[tokio::test]
async fn a_missing_namespace_is_named() {
    let cluster = cluster(shared().kubeconfig("admin"));
    let wanted = config_map("nowhere", "a", &json!({}));
    assert_eq!(get(&cluster, &wanted).await, None, "what is in no namespace does not exist");
    for mode in [Mode::DryRun, Mode::Real] {
        let result = cluster.apply(&wanted, &Precondition::Absent, mode).await;
        let error = fails(result, Reason::NotFound, "namespaces \"nowhere\" not found");
        assert_eq!(error.hint.as_deref(), Some("make the namespace \"nowhere\", or set createNamespaces: true"));
    }
}

#[tokio::test]
async fn a_namespace_in_deletion_takes_nothing() {
    let (cluster, namespace) = admin("ending");
    let pinned = json!({"metadata": {"finalizers": ["example.com/test"]}}).to_string();
    shared().kubectl_ok(&["create", "configmap", "pinned", "-n", &namespace]);
    shared().kubectl_ok(&["patch", "configmap", "pinned", "-n", &namespace, "-p", &pinned]);
    shared().kubectl_ok(&["delete", "namespace", &namespace, "--wait=false"]);
    let wanted = config_map(&namespace, "a", &json!({}));
    let result = cluster.apply(&wanted, &Precondition::Absent, Mode::Real).await;
    let error = fails(result, Reason::Other, "because it is being terminated");
    assert!(error.hint.is_some_and(|hint| hint.starts_with("wait until the namespace is gone")));
    let free = json!({"metadata": {"finalizers": null}}).to_string();
    shared().kubectl_ok(&["patch", "configmap", "pinned", "-n", &namespace, "-p", &free]);
}

#[tokio::test]
async fn unknown_fields_are_refused() {
    let (cluster, namespace) = admin("strict");
    let mut body = config_map(&namespace, "a", &json!({})).into_body();
    body["daat"] = json!({});
    let result = cluster.apply(&object(body), &Precondition::Absent, Mode::Real).await;
    // The server says 500, as if it were its own fault.
    fails(result, Reason::Invalid, ".daat: field not declared in schema");
}

#[tokio::test]
async fn an_error_about_a_secret_quotes_no_value() {
    let (cluster, namespace) = admin("secret");
    let metadata = json!({"name": "a", "namespace": namespace});
    let secret =
        |data: Value| object(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}));
    for (data, because) in [
        (json!({"a": "sesame!"}), ""),
        (json!({"a": ["sesame"]}), ", because of .data.a"),
        (json!({"a b": "c2VzYW1l"}), ", because of data[a b]"),
    ] {
        let result = cluster.apply(&secret(data), &Precondition::Absent, Mode::Real).await;
        let error = fails(result, Reason::Invalid, because);
        let text = format!("{} {error:?}", Chain(&error));
        assert!(!text.contains("sesame") && !text.contains("c2VzYW1l"), "{text}");
    }
}

#[tokio::test]
async fn a_delete_needs_the_object_that_was_read() {
    let (cluster, namespace) = admin("delete");
    let wanted = config_map(&namespace, "a", &json!({"x": "1"}));
    let live = create(&cluster, &wanted).await;
    let delete = async |uid: &str, version: &str| cluster.delete(&wanted.gvk(), wanted.id(), uid, version).await;
    fails(delete("11111111-1111-1111-1111-111111111111", &live.resource_version).await, Reason::Conflict, "UID");
    fails(delete(&live.uid, "2").await, Reason::Conflict, "ResourceVersion");
    assert_eq!(get(&cluster, &wanted).await, Some(live.clone()));
    assert!(delete(&live.uid, &live.resource_version).await.is_ok());
    assert_eq!(get(&cluster, &wanted).await, None);
    assert!(delete(&live.uid, &live.resource_version).await.is_ok(), "gone is gone");
}

#[tokio::test]
async fn what_hangs_on_a_deleted_object_goes_after_it() {
    let (cluster, namespace) = admin("garbage");
    let pod = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
    let deployment = object(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": pod},
    }));
    create(&cluster, &deployment).await;
    shared().kubectl_ok(&["rollout", "status", "-n", &namespace, "--timeout=60s", "deployment/a"]);
    let live = get(&cluster, &deployment).await.expect("it is there");
    let (kind, id) = (deployment.gvk(), deployment.id());
    cluster.delete(&kind, id, &live.uid, &live.resource_version).await.expect("it is the one that was read");
    assert_eq!(get(&cluster, &deployment).await, None, "it does not wait for its ReplicaSet");
    shared().kubectl_ok(&["wait", "--for=delete", "-n", &namespace, "--timeout=60s", "replicaset", "-l", "app=a"]);
}

#[tokio::test]
async fn a_list_has_all_pages_and_only_the_label() {
    let (cluster, namespace) = admin("list");
    let names: Vec<String> = (0..520).map(|number| format!("a{number:03}")).collect();
    let objects: Vec<Object> = names.iter().map(|name| config_map(&namespace, name, &json!({}))).collect();
    join_all(objects.iter().map(|object| create(&cluster, object))).await;
    shared().kubectl_ok(&["create", "configmap", "other", "-n", &namespace]);
    let listed = cluster.list(&Gvk::new("v1", "ConfigMap"), ("test", &namespace)).await.expect("it can be listed");
    assert_eq!(listed.iter().map(|live| live.object.id().name.clone()).collect::<Vec<_>>(), names);
    assert_eq!(Some(&listed[7]), get(&cluster, &objects[7]).await.as_ref(), "items are whole objects");
    let none = cluster.list(&Gvk::new("apps/v1", "Deployment"), ("test", &namespace)).await;
    assert_eq!(none.expect("it can be listed"), []);
}

#[tokio::test]
async fn records_are_compared_and_swapped() {
    let server = ApiServer::start();
    let cluster = cluster(server.kubeconfig("admin"));
    let data = |text: &str| BTreeMap::from([("a".to_owned(), text.to_owned())]);
    assert_eq!(cluster.read_record("r").await.ok(), Some(None), "not even the namespace is there");
    assert!(cluster.delete_record("r", None).await.is_ok());

    let first = cluster.write_record("r", &data("1"), None).await.expect("nobody was here before");
    fails(cluster.write_record("r", &data("2"), None).await, Reason::Conflict, "already exists");
    let second = cluster.write_record("r", &data("2"), Some(&first)).await.expect("it is the one that was written");
    fails(cluster.write_record("r", &data("3"), Some(&first)).await, Reason::Conflict, "modified");
    let read = cluster.read_record("r").await.expect("it can be read").expect("it exists");
    assert_eq!((read.data, read.version), (data("2"), second.clone()));
    let label =
        ["get", "configmap", "-n", SYSTEM_NAMESPACE, "-l", "app.kubernetes.io/managed-by=gatewright", "-o", "name"];
    assert_eq!(server.kubectl_ok(&label), "configmap/r\n");

    fails(cluster.delete_record("r", Some(&first)).await, Reason::Conflict, "");
    assert!(cluster.read_record("r").await.is_ok_and(|found| found.is_some()), "somebody has written it since");
    assert!(cluster.delete_record("r", Some(&second)).await.is_ok());
    assert!(cluster.delete_record("r", Some(&second)).await.is_ok());
    fails(cluster.write_record("r", &data("4"), Some(&second)).await, Reason::Conflict, "");
    assert_eq!(cluster.read_record("r").await.ok(), Some(None), "an update creates nothing");
    // Of many who create it at once, one does.
    let all = join_all((0..8).map(|_| async { cluster.write_record("r", &data("5"), None).await })).await;
    assert_eq!(all.iter().filter(|result| result.is_ok()).count(), 1);
}

#[tokio::test]
async fn a_missing_right_is_named() {
    let (admin, namespace) = admin("rights");
    let viewer = cluster(shared().kubeconfig("viewer"));
    let wanted = config_map(&namespace, "a", &json!({"x": "1"}));
    let place = format!("kubeconfig {:?}, context \"test\"", shared().kubeconfig("viewer"));
    let error =
        fails(viewer.apply(&wanted, &Precondition::Absent, Mode::DryRun).await, Reason::Forbidden, "cannot patch");
    let expected = format!("grant the right to patch configmaps in namespace {namespace:?} to the user of {place}");
    assert_eq!(error.hint, Some(expected));
    let live = create(&admin, &wanted).await;
    assert_eq!(get(&viewer, &wanted).await, Some(live.clone()), "reading is allowed");
    let deleted = viewer.delete(&wanted.gvk(), wanted.id(), &live.uid, &live.resource_version).await;
    fails(deleted, Reason::Forbidden, "cannot delete");
    let error = fails(viewer.write_record("x", &BTreeMap::new(), None).await, Reason::Forbidden, "cannot create");
    let expected =
        format!("grant the right to create configmaps in namespace {SYSTEM_NAMESPACE:?} to the user of {place}");
    assert_eq!(error.hint, Some(expected));

    let nobody = cluster(shared().kubeconfig("nobody"));
    let error = fails(nobody.identity().await, Reason::Forbidden, "cannot get");
    assert!(
        error
            .hint
            .is_some_and(|hint| hint.starts_with("grant the right to get namespaces in namespace \"kube-system\""))
    );
    let error = fails(nobody.list(&wanted.gvk(), ("a", "b")).await, Reason::Forbidden, "cannot list");
    assert!(
        error.hint.is_some_and(|hint| hint.starts_with("grant the right to list configmaps everywhere to the user"))
    );
}

#[tokio::test]
async fn wrong_credentials_are_told_from_missing_rights() {
    let folder = TempDir::new().expect("temporary folders can be made");
    let path = edited(&folder, |config| config["users"][0]["user"]["token"] = "wrong".into());
    let error = fails(cluster(path.clone()).identity().await, Reason::Unauthorized, "Unauthorized");
    let hint = error.hint.expect("there is one");
    assert!(hint.starts_with(&format!("renew the credentials of kubeconfig {path:?}")), "{hint}");
}

#[tokio::test]
async fn a_kubeconfig_that_was_rewritten_is_read_again() {
    let folder = TempDir::new().expect("temporary folders can be made");
    let path = edited(&folder, |config| config["users"][0]["user"]["token"] = "wrong".into());
    let cluster = cluster(path);
    let wanted = config_map("default", "a", &json!({}));
    fails(cluster.get(&wanted.gvk(), wanted.id()).await, Reason::Unauthorized, "");
    edited(&folder, |_| {});
    assert!(cluster.get(&wanted.gvk(), wanted.id()).await.is_ok());
}

#[tokio::test]
async fn a_server_that_is_not_the_right_one_is_not_trusted() {
    let folder = TempDir::new().expect("temporary folders can be made");
    openssl(&folder, &format!("req -x509 {NEW_KEY} -keyout other.key -out other.crt -subj /CN=other -days 2"));
    let path = edited(&folder, |config| {
        let server = shared().url();
        config["clusters"][0]["cluster"] = json!({"server": server, "certificate-authority": "other.crt"});
    });
    let error = fails(cluster(path).identity().await, Reason::Unreachable, "invalid peer certificate");
    assert!(error.hint.is_some_and(|hint| hint.contains("certificate-authority")));
}

#[tokio::test]
async fn a_server_that_has_stopped_is_unreachable_until_it_is_back() {
    let mut server = ApiServer::start();
    let settings = Settings { path: Some(server.kubeconfig("admin")), timeout: Period(LIMIT), ..Settings::default() };
    let cluster = connect(settings);
    let identity = cluster.identity().await.expect("it runs");
    server.stop();
    let error = fails(in_time(cluster.identity()).await, Reason::Unreachable, "Connection refused");
    assert!(error.is_unreachable());
    server.restart();
    assert_eq!(cluster.identity().await.ok(), Some(identity));
}

#[tokio::test]
async fn an_address_that_swallows_everything_is_unreachable() {
    let folder = TempDir::new().expect("temporary folders can be made");
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback address has free ports");
    let address = listener.local_addr().expect("it is bound");
    for scheme in ["http", "https"] {
        let path = edited(&folder, |config| {
            config["clusters"][0]["cluster"]["server"] = format!("{scheme}://{address}").into();
        });
        let cluster = connect(Settings { path: Some(path), timeout: Period(LIMIT), ..Settings::default() });
        for result in in_time(join_all((0..8).map(|_| cluster.identity()))).await {
            fails(result, Reason::Unreachable, "");
        }
    }
}

/// Writes the shared server's kubeconfig for `admin`, changed, into the folder.
fn edited(folder: &TempDir, change: impl FnOnce(&mut Value)) -> PathBuf {
    let mut config = read_json(&shared().kubeconfig("admin"));
    change(&mut config);
    let path = folder.path().join("kubeconfig");
    fs::write(&path, config.to_string()).expect("a temporary folder can be written");
    path
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("it exists")).expect("kubeconfigs of the tests are JSON")
}

fn openssl(folder: &TempDir, args: &str) {
    let output = command("openssl").args(args.split(' ')).current_dir(folder.path()).output();
    let output = output.expect("the tests need openssl");
    assert!(output.status.success(), "openssl {args}: {}", String::from_utf8_lossy(&output.stderr));
}
