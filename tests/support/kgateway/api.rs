//! The requests of a controller to an API server: single ones without a cache, and watches.

use std::path::Path;

use futures::Stream;
use http::Request;
use kube::core::WatchEvent;
use kube::{Client, Error};
use serde_json::Value;

use crate::cluster::reading::config;

/// The type of a server-side apply.
const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";

/// A connection to a server, with all rights.
#[derive(Clone)]
pub(super) struct Api {
    client: Client,
}

impl Api {
    /// Prepares a connection; to be called within a runtime.
    pub(super) async fn new(kubeconfig: &Path) -> Self {
        Self {
            client: Client::try_from(config(kubeconfig).await).expect("the kubeconfig of the test cluster is sound"),
        }
    }

    /// Reads an object or a list; `None` if there is none, or nothing of its kind.
    pub(super) async fn get(&self, path: &str) -> Result<Option<Value>, Error> {
        match self.client.request(request(Request::get(path), "", Vec::new())).await {
            Err(Error::Api(status)) if status.code == 404 => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// Reads the items of a list; none if the server does not have their kind.
    pub(super) async fn items(&self, path: &str) -> Result<Vec<Value>, Error> {
        let list = self.get(path).await?.unwrap_or_default();
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// Applies an object on the server's side, whoever else has set its fields.
    pub(super) async fn apply(&self, object: &Value, manager: &str) -> Result<Value, Error> {
        let path = format!("{}?force=true&fieldManager={}", path_of(object), manager.replace('/', "%2F"));
        self.client.request(request(Request::patch(path), APPLY, object.to_string().into_bytes())).await
    }

    /// Merges something into an object, or into its status.
    pub(super) async fn merge(&self, path: &str, fields: &Value) -> Result<Value, Error> {
        self.client.request(request(Request::patch(path), MERGE, fields.to_string().into_bytes())).await
    }

    /// Deletes an object, which may be gone already.
    pub(super) async fn delete(&self, path: &str) -> Result<(), Error> {
        match self.client.request::<Value>(request(Request::delete(path), "", Vec::new())).await {
            Err(Error::Api(status)) if status.code == 404 => Ok(()),
            answer => answer.map(drop),
        }
    }

    /// Watches what `path`, which ends in a query, selects, from a version on.
    pub(super) async fn watch(
        &self,
        path: &str,
        version: &str,
    ) -> Result<impl Stream<Item = Result<WatchEvent<Value>, Error>> + Unpin + use<>, Error> {
        let path = format!("{path}&watch=true&resourceVersion={version}");
        Ok(Box::pin(self.client.request_events(request(Request::get(path), "", Vec::new())).await?))
    }
}

fn request(builder: http::request::Builder, kind: &str, body: Vec<u8>) -> Request<Vec<u8>> {
    let builder = if kind.is_empty() { builder } else { builder.header("content-type", kind) };
    builder.body(body).expect("paths of objects are paths")
}

/// Returns where objects of a kind are, in a namespace or everywhere.
pub(super) fn place(api_version: &str, kind: &str, namespace: Option<&str>) -> String {
    let group = if api_version.contains('/') { "/apis" } else { "/api" };
    let namespace = namespace.map(|namespace| format!("/namespaces/{namespace}")).unwrap_or_default();
    let singular = kind.to_lowercase();
    let ending = match &singular {
        name if name.ends_with("ss") => "es",
        name if name.ends_with('s') => "",
        _ => "s",
    };
    format!("{group}/{api_version}{namespace}/{singular}{ending}")
}

/// Returns where an object is.
pub(super) fn path_of(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    let place = place(&text(&object["apiVersion"]), &text(&object["kind"]), metadata["namespace"].as_str());
    format!("{place}/{}", text(&metadata["name"]))
}
