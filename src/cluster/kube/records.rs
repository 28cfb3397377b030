//! Records on an API server: each a `ConfigMap` in a namespace of our own.
//!
//! Every write is a compare-and-swap by the server: a creation that fails if the record exists, or a replacement that
//! fails if its `resourceVersion` is no longer the one that was read.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::live::Live;
use gatewright_engine::marks::FIELD_MANAGER;
use http::Request;
use kube::api::{DeleteParams, GetParams, ListParams, PostParams, Preconditions};
use kube::core::Request as Address;
use kube::core::request::Error as BuildError;
use serde_json::{Value, json};

use super::failure::Failure;
use super::resource::{Attempt, known, path_segment};
use super::transport::Transport;
use crate::cluster::{ClusterError, RECORD_PREFIX, Record, SYSTEM_NAMESPACE};

/// The most names in an answer.
const PAGE: u32 = 500;

pub(super) async fn read(transport: &Transport, name: &str) -> Result<Option<Record>, ClusterError> {
    let attempt = attempt("read", name);
    match ask(transport, name, address().get(name, &GetParams::default())).await {
        Ok(body) => record(&body).map(Some).map_err(|failure| failure.into_error(&attempt)),
        Err(failure) if failure.misses(name) => Ok(None),
        Err(failure) => Err(failure.into_error(&attempt)),
    }
}

pub(super) async fn names(transport: &Transport) -> Result<BTreeSet<String>, ClusterError> {
    let attempt = Attempt::to("list our records");
    let mut names = BTreeSet::new();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let request = address().list_metadata(&params);
        let page = ask(transport, SYSTEM_NAMESPACE, request).await.map_err(|failure| failure.into_error(&attempt))?;
        let items = page["items"].as_array().into_iter().flatten();
        let of_ours = items.filter_map(|item| item["metadata"]["name"].as_str());
        names.extend(of_ours.filter(|name| name.starts_with(RECORD_PREFIX)).map(str::to_owned));
        match page["metadata"]["continue"].as_str() {
            Some(next) if !next.is_empty() => params = ListParams::default().limit(PAGE).continue_token(next),
            _ => return Ok(names),
        }
    }
}

/// Writes a record over the version that was read, or as a new one.
pub(super) async fn write(
    transport: &Transport,
    name: &str,
    data: &BTreeMap<String, String>,
    over: Option<&str>,
) -> Result<String, ClusterError> {
    let attempt = attempt("write", name);
    let written = match over {
        None => create(transport, name, data).await,
        Some(version) => replace(transport, name, data, version).await,
    };
    match written {
        Ok(body) => record(&body).map(|record| record.version).map_err(|failure| failure.into_error(&attempt)),
        // What was to be replaced is gone.
        Err(failure) if over.is_some() && failure.misses(name) => Err(failure.into_conflict().into_error(&attempt)),
        // Perhaps what is in the way is our own first try.
        Err(failure) if failure.refusal(409).is_some_and(|refusal| refusal.is_repeated) => {
            match read(transport, name).await? {
                Some(record) if record.data == *data => Ok(record.version),
                _ => Err(failure.into_error(&attempt)),
            }
        }
        Err(failure) => Err(failure.into_error(&attempt)),
    }
}

/// Deletes a record, of this version if that matters.
pub(super) async fn delete(transport: &Transport, name: &str, over: Option<&str>) -> Result<(), ClusterError> {
    let preconditions = over.map(|over| Preconditions { uid: None, resource_version: Some(over.to_owned()) });
    let params = DeleteParams { preconditions, ..DeleteParams::default() };
    match ask(transport, name, address().delete(name, &params)).await {
        Ok(_) => Ok(()),
        Err(failure) if failure.misses(name) => Ok(()),
        Err(failure) => Err(failure.into_error(&attempt("delete", name))),
    }
}

/// Creates the record, and the namespace for it if that is what is missing.
async fn create(transport: &Transport, name: &str, data: &BTreeMap<String, String>) -> Result<Value, Failure> {
    let body = config_map(name, data, None);
    match ask(transport, name, address().create(&params(), body.clone())).await {
        Err(Failure::Refused(refusal)) if refusal.missing_namespace().is_some() => {}
        other => return other,
    }
    create_namespace(transport).await?;
    ask(transport, name, address().create(&params(), body)).await
}

pub(super) async fn create_namespace(transport: &Transport) -> Result<(), Failure> {
    let labels = json!({"app.kubernetes.io/managed-by": "gatewright"});
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE, "labels": labels}});
    let body = namespace.to_string().into_bytes();
    match ask(transport, SYSTEM_NAMESPACE, Address::new("/api/v1/namespaces").create(&params(), body)).await {
        Ok(_) => Ok(()),
        // Somebody else has made it in the meantime.
        Err(failure) if failure.refusal(409).is_some() => Ok(()),
        Err(failure) => Err(failure),
    }
}

async fn replace(
    transport: &Transport,
    name: &str,
    data: &BTreeMap<String, String>,
    version: &str,
) -> Result<Value, Failure> {
    known("version", version)?;
    ask(transport, name, address().replace(name, &params(), config_map(name, data, Some(version)))).await
}

fn config_map(name: &str, data: &BTreeMap<String, String>, version: Option<&str>) -> Vec<u8> {
    let mut body = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {
            "name": name, "namespace": SYSTEM_NAMESPACE, "labels": {"app.kubernetes.io/managed-by": "gatewright"},
        },
    });
    if let Some(version) = version {
        body["metadata"]["resourceVersion"] = version.into();
    }
    body.to_string().into_bytes()
}

fn record(body: &Value) -> Result<Record, Failure> {
    let live = Live::new(body.clone());
    let no_record = |what: String| Failure::NotKubernetes { what, code: None };
    let live = live.map_err(|error| no_record(format!("it sends no ConfigMap ({error})")))?;
    if live.resource_version.is_empty() {
        return Err(no_record("it sends a ConfigMap without a version".to_owned()));
    }
    let data = body["data"].as_object().into_iter().flatten();
    let data = data.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
    Ok(Record { data, version: live.resource_version })
}

fn attempt(verb: &str, name: &str) -> Attempt {
    Attempt::to(format!("{verb} the record {name:?}"))
}

fn address() -> Address {
    Address::new(format!("/api/v1/namespaces/{SYSTEM_NAMESPACE}/configmaps"))
}

pub(super) fn params() -> PostParams {
    PostParams { dry_run: false, field_manager: Some(FIELD_MANAGER.to_owned()) }
}

async fn ask(
    transport: &Transport,
    name: &str,
    request: Result<Request<Vec<u8>>, BuildError>,
) -> Result<Value, Failure> {
    path_segment("name", name)?;
    transport.ask(request?).await
}
