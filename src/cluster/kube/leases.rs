//! Leases on an API server, and the Secret with what hosts share, in the namespace of our records.

use std::collections::BTreeMap;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use jiff::Timestamp;
use kube::api::{DeleteParams, GetParams, ListParams, Preconditions};
use kube::core::Request as Address;
use kube::core::request::Error as BuildError;
use serde_json::{Value, json};

use super::KubeCluster;
use super::failure::Failure;
use super::lists::{PAGE, pages};
use super::objects::no_object;
use super::records::{create_namespace, params};
use super::resource::{Attempt, path_segment};
use super::transport::Answer;
use crate::cluster::leases::{Lease, Leases};
use crate::cluster::{ClusterError, SYSTEM_NAMESPACE};

/// The form of times in a Lease: with microseconds, all six of them.
const MICRO_TIME: &str = "%Y-%m-%dT%H:%M:%S.%6fZ";

#[async_trait]
impl Leases for KubeCluster {
    async fn list(&self, (key, value): (&str, &str)) -> Result<(Vec<Lease>, Option<Timestamp>), ClusterError> {
        let attempt = Attempt::to(format!("list the Leases of hosts in {SYSTEM_NAMESPACE}"));
        let first = ListParams::default().limit(PAGE).labels(&format!("{key}={value}"));
        let take = |(found, date): &mut (Vec<Lease>, Option<Timestamp>), answer: &Answer| {
            *date = answer.date();
            let page: Value = answer.json()?;
            let items = page["items"].as_array().ok_or_else(|| no_object("a list without items"))?;
            found.extend(items.iter().map(lease));
            Ok(page["metadata"]["continue"].as_str().unwrap_or_default().to_owned())
        };
        let address = leases();
        let listed = pages(&self.own, |params| address.list(params), &first, take).await;
        listed.map_err(|failure| failure.into_error(&attempt))
    }

    async fn write(&self, lease: &Lease) -> Result<Lease, ClusterError> {
        let attempt = attempt("write", &lease.name);
        let written = if lease.version.is_empty() {
            self.create(&leases(), &lease.name, body(lease)).await
        } else {
            self.once_named(&lease.name, leases().replace(&lease.name, &params(), body(lease))).await
        };
        match written {
            Ok(body) => Ok(self::lease(&body)),
            Err(failure) if !lease.version.is_empty() && failure.misses(&lease.name) => {
                Err(failure.into_conflict().into_error(&attempt))
            }
            Err(failure) => Err(failure.into_error(&attempt)),
        }
    }

    async fn delete(&self, lease: &Lease) -> Result<(), ClusterError> {
        let preconditions = Preconditions { uid: None, resource_version: Some(lease.version.clone()) };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match self.once_named(&lease.name, leases().delete(&lease.name, &params)).await {
            Ok(_) => Ok(()),
            Err(failure) if failure.misses(&lease.name) => Ok(()),
            Err(failure) => Err(failure.into_error(&attempt("delete", &lease.name))),
        }
    }

    async fn read_secret(&self, name: &str) -> Result<Option<BTreeMap<String, String>>, ClusterError> {
        let attempt = Attempt::to(format!("read Secret {SYSTEM_NAMESPACE}/{name}"));
        match self.once_named(name, secrets().get(name, &GetParams::default())).await {
            Ok(body) => Ok(Some(values(&body))),
            Err(failure) if failure.misses(name) || failure.misses(SYSTEM_NAMESPACE) => Ok(None),
            Err(failure) => Err(failure.into_error(&attempt)),
        }
    }

    async fn create_secret(&self, name: &str, values: &BTreeMap<String, String>) -> Result<(), ClusterError> {
        let attempt = Attempt::to(format!("make Secret {SYSTEM_NAMESPACE}/{name}"));
        let body = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "stringData": values,
            "metadata": {
                "name": name, "namespace": SYSTEM_NAMESPACE, "labels": {"app.kubernetes.io/managed-by": "gatewright"},
            },
        });
        let created = self.create(&secrets(), name, body.to_string().into_bytes()).await;
        created.map(drop).map_err(|failure| failure.into_error(&attempt))
    }
}

impl KubeCluster {
    /// Creates an object, and the namespace for it if that is what is missing.
    async fn create(&self, address: &Address, name: &str, body: Vec<u8>) -> Result<Value, Failure> {
        match self.once_named(name, address.create(&params(), body.clone())).await {
            Err(Failure::Refused(refusal)) if refusal.missing_namespace().is_some() => {}
            other => return other,
        }
        create_namespace(&self.own).await?;
        self.once_named(name, address.create(&params(), body)).await
    }

    async fn once_named(&self, name: &str, request: Result<Request<Vec<u8>>, BuildError>) -> Result<Value, Failure> {
        path_segment("name", name)?;
        self.own.ask_afresh(request?).await
    }
}

fn leases() -> Address {
    Address::new(format!("/apis/coordination.k8s.io/v1/namespaces/{SYSTEM_NAMESPACE}/leases"))
}

fn secrets() -> Address {
    Address::new(format!("/api/v1/namespaces/{SYSTEM_NAMESPACE}/secrets"))
}

fn attempt(verb: &str, name: &str) -> Attempt {
    Attempt::to(format!("{verb} Lease {SYSTEM_NAMESPACE}/{name}"))
}

fn body(lease: &Lease) -> Vec<u8> {
    let time = |time: Option<Timestamp>| time.map(|time| time.strftime(MICRO_TIME).to_string());
    let holder = Some(&lease.holder).filter(|holder| !holder.is_empty());
    let mut body = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {
            "name": lease.name, "namespace": SYSTEM_NAMESPACE,
            "labels": lease.labels, "annotations": lease.annotations,
        },
        "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": lease.seconds, "leaseTransitions": lease.transitions,
            "acquireTime": time(lease.acquired), "renewTime": time(lease.renewed),
        },
    });
    if !lease.version.is_empty() {
        body["metadata"]["resourceVersion"] = lease.version.as_str().into();
    }
    body.to_string().into_bytes()
}

/// Reads what is there; what is missing or strange counts as not said, because anybody may write Leases.
fn lease(body: &Value) -> Lease {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| -> BTreeMap<String, String> {
        value.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), text(value))).collect()
    };
    let number = |value: &Value| value.as_i64().and_then(|number| i32::try_from(number).ok()).unwrap_or_default();
    let time = |value: &Value| value.as_str().and_then(|time| time.parse().ok());
    let (metadata, spec) = (&body["metadata"], &body["spec"]);
    Lease {
        name: text(&metadata["name"]),
        labels: texts(&metadata["labels"]),
        annotations: texts(&metadata["annotations"]),
        holder: text(&spec["holderIdentity"]),
        acquired: time(&spec["acquireTime"]),
        renewed: time(&spec["renewTime"]),
        seconds: number(&spec["leaseDurationSeconds"]),
        transitions: number(&spec["leaseTransitions"]),
        version: text(&metadata["resourceVersion"]),
    }
}

fn values(body: &Value) -> BTreeMap<String, String> {
    let decoded = |value: &Value| String::from_utf8(STANDARD.decode(value.as_str()?).ok()?).ok();
    let data = body["data"].as_object().into_iter().flatten();
    data.filter_map(|(key, value)| Some((key.clone(), decoded(value)?))).collect()
}
