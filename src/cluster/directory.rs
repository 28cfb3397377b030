//! A cluster that is a directory: one file an object, for a first run without a cluster, and for review in CI.
//!
//! `<namespace>/<kind>-<name>.yaml`, and `_cluster/` for what is in no namespace; see `file` for the exact names.
//! Files of other names are nobody's business here. Our records are in `.gatewright/`, because the inventory has to
//! travel with the files. The files carry no marks: another tool may deploy them.
//!
//! There is no server here that fills in defaults or checks anything: what is applied is what is there. Nothing comes
//! to life, and nothing outside the directory is read or written, also not through symbolic links.

pub(crate) mod file;
mod records;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use async_trait::async_trait;
use gatewright_engine::kinds;
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, Object, ObjectId};
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::cluster::{Cluster, ClusterError, KindScope, Kinds, Mode, Precondition, Reason, Record};

/// A directory as a target of rounds.
#[derive(Clone, Debug)]
pub struct DirectoryCluster {
    root: PathBuf,
    kinds: kinds::Table,
}

/// A problem with files.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    /// The system said no.
    #[error("{0:?}")]
    Io(PathBuf, #[source] std::io::Error),
    /// Something other than what was expected to be there.
    #[error("{0}")]
    Changed(String),
    /// This can be no file, or is none of ours.
    #[error("{0}")]
    Unusable(String),
}

impl DirectoryCluster {
    /// Names the directory; it need not exist before the first write.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { root: path.into(), kinds: kinds::Table::builtin() }
    }

    /// The same, which knows more kinds.
    #[must_use]
    pub fn with_kinds(self, kinds: kinds::Table) -> Self {
        Self { kinds, ..self }
    }

    /// Works on the files beside the threads that wait for networks.
    async fn work<T: Send + 'static>(
        &self,
        action: String,
        work: impl FnOnce(PathBuf) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, ClusterError> {
        let root = self.root.clone();
        match spawn_blocking(move || work(root)).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(problem)) => Err(error(action, problem)),
            Err(panicked) => {
                Err(ClusterError { action, reason: Reason::Other, hint: None, source: Box::new(panicked) })
            }
        }
    }
}

fn error(action: String, problem: Problem) -> ClusterError {
    let (reason, hint) = match &problem {
        Problem::Io(..) => (Reason::Other, Some("see that the service may read and write the directory".to_owned())),
        Problem::Changed(_) => (Reason::Conflict, None),
        Problem::Unusable(_) => (Reason::Invalid, Some("move what is in the way, or correct the name".to_owned())),
    };
    ClusterError { action, reason, hint, source: Box::new(problem) }
}

#[async_trait]
impl Cluster for DirectoryCluster {
    /// Random, and kept in `.gatewright/identity`. Empty until the first write: a directory that does not exist yet has
    /// no identity that could change.
    async fn identity(&self) -> Result<String, ClusterError> {
        self.work("read the identity of the directory".to_owned(), |root| records::identity(&root)).await
    }

    /// A directory takes everything.
    async fn kinds(&self, kinds: &BTreeSet<Gvk>) -> Result<Kinds, ClusterError> {
        let served = kinds.iter().map(|kind| (kind.clone(), KindScope::guessed(kind, &self.kinds))).collect();
        Ok(Kinds { served, ..Kinds::default() })
    }

    /// Returns every object of the kind, because files carry no labels of ours. What is no object is passed over.
    async fn list(&self, kind: &Gvk, _label: (&str, &str)) -> Result<Vec<Live>, ClusterError> {
        let (action, kind) = (format!("list the objects of kind {}", kind.kind), kind.clone());
        self.work(action, move |root| store::list(&root, &kind)).await
    }

    /// A file bears no marks.
    async fn list_bearing(&self, _kind: &Gvk, _label: &str) -> Result<Vec<Live>, ClusterError> {
        Ok(Vec::new())
    }

    async fn get(&self, _kind: &Gvk, id: &ObjectId) -> Result<Option<Live>, ClusterError> {
        let (action, id) = (format!("read {id}"), id.clone());
        self.work(action, move |root| store::get(&root, &id)).await
    }

    async fn apply(&self, object: &Object, only_if: &Precondition, mode: Mode) -> Result<Live, ClusterError> {
        let (action, object, only_if) = (format!("write {}", object.id()), object.clone(), only_if.clone());
        self.work(action, move |root| store::apply(&root, object, &only_if, mode)).await
    }

    /// A file is written as a whole, and nobody else owns parts of it.
    async fn patch(
        &self,
        _kind: &Gvk,
        id: &ObjectId,
        _uid: &str,
        _resource_version: &str,
        _operations: &[Value],
        _mode: Mode,
    ) -> Result<Live, ClusterError> {
        Err(error(format!("patch {id}"), Problem::Unusable("files in a directory are not patched".to_owned())))
    }

    async fn delete(&self, _kind: &Gvk, id: &ObjectId, uid: &str, resource_version: &str) -> Result<(), ClusterError> {
        let (action, id) = (format!("delete {id}"), id.clone());
        let only_if = Precondition::Unchanged { uid: uid.to_owned(), resource_version: resource_version.to_owned() };
        self.work(action, move |root| store::delete(&root, &id, &only_if)).await
    }

    async fn read_record(&self, name: &str) -> Result<Option<Record>, ClusterError> {
        let (action, name) = (format!("read the record {name:?}"), name.to_owned());
        self.work(action, move |root| records::read(&root, &name)).await
    }

    async fn record_names(&self) -> Result<BTreeSet<String>, ClusterError> {
        self.work("list our records".to_owned(), |root| records::names(&root)).await
    }

    async fn write_record(
        &self,
        name: &str,
        data: &BTreeMap<String, String>,
        over: Option<&str>,
    ) -> Result<String, ClusterError> {
        let action = format!("write the record {name:?}");
        let (name, data, over) = (name.to_owned(), data.clone(), over.map(str::to_owned));
        self.work(action, move |root| records::write(&root, &name, &data, over.as_deref())).await
    }

    async fn delete_record(&self, name: &str, over: Option<&str>) -> Result<(), ClusterError> {
        let action = format!("delete the record {name:?}");
        let (name, over) = (name.to_owned(), over.map(str::to_owned));
        self.work(action, move |root| records::delete(&root, &name, over.as_deref())).await
    }

    fn has_health(&self) -> bool {
        false
    }

    fn carries_marks(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use serde_json::json;
    use tempfile::TempDir;

    use super::*;

    fn setup() -> (TempDir, DirectoryCluster) {
        let folder = TempDir::new().expect("temporary folders can be made");
        let cluster = DirectoryCluster::new(folder.path().join("rendered"));
        (folder, cluster)
    }

    fn service(name: &str, port: u16) -> Object {
        let metadata = json!({"name": name, "namespace": "infra", "annotations": {"a": "b"}});
        let body =
            json!({"kind": "Service", "metadata": metadata, "apiVersion": "v1", "spec": {"ports": [{"port": port}]}});
        Object::new(body).expect("it has all that it needs")
    }

    fn marked(object: Object) -> Object {
        let mut body = object.into_body();
        body["metadata"]["labels"] = json!({"gatewright.dev/sync": "gateways.1"});
        body["metadata"]["annotations"]["gatewright.dev/owner"] = json!("1/gateways#/Service/infra/edge");
        Object::new(body).expect("it has all that it needs")
    }

    fn unchanged(live: &Live) -> Precondition {
        Precondition::Unchanged { uid: live.uid.clone(), resource_version: live.resource_version.clone() }
    }

    fn reason<T: std::fmt::Debug>(result: Result<T, ClusterError>) -> Option<Reason> {
        result.err().map(|error| error.reason)
    }

    async fn create(cluster: &DirectoryCluster, object: &Object) -> Live {
        cluster.apply(object, &Precondition::Absent, Mode::Real).await.expect("nothing is there")
    }

    #[tokio::test]
    async fn a_file_is_written_sorted_and_without_marks() {
        let (_folder, cluster) = setup();
        let created = create(&cluster, &marked(service("edge", 80))).await;
        let text = fs::read_to_string(cluster.root.join("infra/service-edge.yaml")).expect("it was written");
        let sorted = "apiVersion: v1\nkind: Service\nmetadata:\n  annotations:\n    a: b\n  name: edge\n  namespace: infra\nspec:\n  ports:\n";
        assert!(text.starts_with(sorted), "{text}");
        let id = service("edge", 80).id().clone();
        assert_eq!(cluster.get(&Gvk::new("v1", "Service"), &id).await.ok(), Some(Some(created.clone())));
        assert_eq!(created.uid.len(), 16);
        let again = cluster.apply(&marked(service("edge", 80)), &unchanged(&created), Mode::Real).await;
        assert_eq!(again.ok(), Some(created));
    }

    #[tokio::test]
    async fn what_does_not_exist_reads_as_empty() {
        let (_folder, cluster) = setup();
        let kind = Gvk::new("v1", "Service");
        assert_eq!(cluster.identity().await.ok(), Some(String::new()));
        assert_eq!(cluster.list(&kind, ("a", "b")).await.ok(), Some(Vec::new()));
        assert_eq!(cluster.get(&kind, service("edge", 80).id()).await.ok(), Some(None));
        assert_eq!(cluster.read_record("r").await.ok(), Some(None));
        assert!(cluster.delete(&kind, service("edge", 80).id(), "a", "b").await.is_ok());
        assert!(cluster.delete_record("r", None).await.is_ok());
        let dry_run = cluster.apply(&service("edge", 80), &Precondition::Absent, Mode::DryRun).await;
        assert_eq!(dry_run.ok().map(|live| live.object), Some(service("edge", 80)));
        assert!(!cluster.root.exists(), "reading makes nothing");
    }

    #[tokio::test]
    async fn an_identity_lasts_from_the_first_write() {
        let (_folder, cluster) = setup();
        create(&cluster, &service("edge", 80)).await;
        let identity = cluster.identity().await.expect("it can be read");
        assert_eq!(identity.len(), 32);
        create(&cluster, &service("other", 80)).await;
        assert_eq!(cluster.identity().await.ok(), Some(identity));
    }

    #[tokio::test]
    async fn writes_need_the_file_that_was_read() {
        let (_folder, cluster) = setup();
        let created = create(&cluster, &service("edge", 80)).await;
        let apply = async |only_if, mode| cluster.apply(&service("edge", 81), &only_if, mode).await;
        assert_eq!(reason(apply(Precondition::Absent, Mode::Real).await), Some(Reason::Conflict));
        let dry_run = apply(unchanged(&created), Mode::DryRun).await.expect("it is unchanged");
        let applied = apply(unchanged(&created), Mode::Real).await.expect("a dry run has changed nothing");
        assert_eq!(applied, dry_run);
        assert_eq!(reason(apply(unchanged(&created), Mode::DryRun).await), Some(Reason::Conflict));
        assert_eq!(reason(apply(unchanged(&created), Mode::Real).await), Some(Reason::Conflict));

        let (kind, id) = (Gvk::new("v1", "Service"), service("edge", 80).id().clone());
        let delete = async |live: &Live| cluster.delete(&kind, &id, &live.uid, &live.resource_version).await;
        assert_eq!(reason(delete(&created).await), Some(Reason::Conflict));
        assert!(delete(&applied).await.is_ok());
        assert!(!cluster.root.join("infra").exists(), "an empty folder goes too");
        assert_eq!(reason(apply(unchanged(&applied), Mode::Real).await), Some(Reason::Conflict));
    }

    #[tokio::test]
    async fn a_list_has_all_of_a_kind_and_nothing_else() {
        let (_folder, cluster) = setup();
        let other = |api_version: &str, kind: &str| {
            let metadata = json!({"name": "edge", "namespace": "infra"});
            Object::new(json!({"apiVersion": api_version, "kind": kind, "metadata": metadata})).expect("it is whole")
        };
        for object in [
            service("b", 80),
            service("a", 80),
            other("serving.knative.dev/v1", "Service"),
            other("v1", "ServiceAccount"),
        ] {
            create(&cluster, &object).await;
        }
        let write =
            |name: &str, text: &str| fs::write(cluster.root.join("infra").join(name), text).expect("the folder exists");
        write("service-broken.yaml", "a: [");
        write("service-two.yaml", "a: 1\n---\nb: 1\n");
        write("service-notes.txt", "not ours");
        write("notes.yaml", "not: ours");
        let listed = cluster.list(&Gvk::new("v1", "Service"), ("a", "b")).await.expect("it can be listed");
        assert_eq!(listed.iter().map(|live| live.object.id().name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        let broken = ObjectId::new("", "Service", "infra", "broken");
        let read = cluster.get(&Gvk::new("v1", "Service"), &broken).await;
        assert_eq!(reason(read), Some(Reason::Invalid), "its place is taken");
    }

    #[tokio::test]
    async fn nothing_outside_is_touched() {
        let (folder, cluster) = setup();
        let outside = folder.path().join("outside");
        fs::create_dir_all(&cluster.root).expect("a temporary folder can be written");
        fs::create_dir(&outside).expect("a temporary folder can be written");
        symlink(&outside, cluster.root.join("infra")).expect("links can be made");
        let object = service("edge", 80);
        assert_eq!(reason(cluster.apply(&object, &Precondition::Absent, Mode::Real).await), Some(Reason::Invalid));
        assert_eq!(reason(cluster.get(&object.gvk(), object.id()).await), Some(Reason::Invalid));
        assert_eq!(fs::read_dir(&outside).map(Iterator::count).ok(), Some(0));
    }

    #[tokio::test]
    async fn records_are_compared_and_swapped() {
        let (_folder, cluster) = setup();
        let data = |text: &str| BTreeMap::from([("a".to_owned(), text.to_owned())]);
        let write =
            async |text: &str, over: Option<&str>| cluster.write_record("gatewright.x", &data(text), over).await;
        let first = write("1", None).await.expect("nobody was here before");
        assert_eq!(reason(write("2", None).await), Some(Reason::Conflict));
        let second = write("2", Some(&first)).await.expect("it is the one that was written");
        assert_eq!(reason(write("3", Some(&first)).await), Some(Reason::Conflict));
        let read = cluster.read_record("gatewright.x").await.expect("it can be read");
        assert_eq!(read, Some(Record { data: data("2"), version: second.clone() }));
        assert_eq!(reason(cluster.delete_record("gatewright.x", Some(&first)).await), Some(Reason::Conflict));
        for over in [Some(second.as_str()), Some(&second), None] {
            assert!(cluster.delete_record("gatewright.x", over).await.is_ok());
        }
        assert_eq!(reason(write("4", Some(&second)).await), Some(Reason::Conflict));
        assert_eq!(reason(cluster.write_record("../x", &data("1"), None).await), Some(Reason::Invalid));
    }
}
