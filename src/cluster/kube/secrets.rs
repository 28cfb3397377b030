//! Lists of Secrets that hold the way to other clusters.

use http::Request;
use kube::api::ListParams;
use kube::core::Request as Address;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::KubeCluster;
use super::failure::Failure;
use super::lists::{PAGE, pages};
use super::objects::no_object;
use super::resource::{Attempt, path_segment};
use super::transport::Answer;
use crate::cluster::secrets::member::Member;
use crate::cluster::secrets::{Format, Secret};
use crate::cluster::{ClusterError, Reason, Search};

/// A page of a list of them.
#[derive(Deserialize)]
struct Page<T> {
    #[serde(default)]
    metadata: PageMetadata,
    items: Option<Vec<T>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PageMetadata {
    #[serde(rename = "continue")]
    next: String,
}

impl KubeCluster {
    /// Lists the Secrets that are selected, in a namespace or, if that is empty, in all. It is a whole list or none.
    ///
    /// Also looks whether the kubeconfig has changed. Nothing else is asked: where Secrets are found every server knows.
    pub async fn secrets(&self, search: Search<'_>) -> Result<Vec<Secret>, ClusterError> {
        let place = match search.namespace {
            "" => "all namespaces".to_owned(),
            namespace => format!("namespace {namespace:?}"),
        };
        let attempt = Attempt::to(format!("list the Secrets of clusters in {place}"));
        self.try_secrets(search).await.map_err(|failure| failure.into_error(&attempt))
    }

    /// Lists the objects of a format that lead to Secrets. It is a whole list or none.
    pub async fn members(&self, format: Format, search: Search<'_>) -> Result<Vec<Member>, ClusterError> {
        let (objects, product) = format.member_names();
        let listed = match format.members(search.namespace) {
            Some(address) => self.try_members(address, search.labels).await,
            None => Ok(Vec::new()),
        };
        listed.map_err(|failure| {
            let error = failure.into_error(&Attempt::to(format!("list the {objects}")));
            let absent = format!("this management cluster has no {product}: correct the format, or the cluster");
            let hint = if error.reason == Reason::NotFound { Some(absent) } else { error.hint };
            ClusterError { hint, ..error }
        })
    }

    /// Reads one of the Secrets of clusters; `None` if it is not there.
    pub async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Secret>, ClusterError> {
        let secret = self.try_secret(namespace, name).await;
        let attempt = || Attempt::to(format!("read Secret {namespace}/{name}"));
        secret.map_err(|failure| failure.into_error(&attempt()))
    }

    async fn try_secret(&self, namespace: &str, name: &str) -> Result<Option<Secret>, Failure> {
        path_segment("namespace", namespace)?;
        path_segment("name", name)?;
        match self
            .own
            .answer(Request::get(format!("/api/v1/namespaces/{namespace}/secrets/{name}")).body(Vec::new())?)
            .await
        {
            Ok(answer) => answer.json().map(Some),
            Err(failure) if failure.misses(name) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    async fn try_members(&self, address: String, labels: &str) -> Result<Vec<Member>, Failure> {
        self.own.look_afresh().await?;
        self.listed(address, ListParams::default().labels(labels)).await
    }

    async fn try_secrets(&self, search: Search<'_>) -> Result<Vec<Secret>, Failure> {
        self.own.look_afresh().await?;
        let path = match search.namespace {
            "" => "/api/v1/secrets".to_owned(),
            namespace => format!("/api/v1/namespaces/{namespace}/secrets"),
        };
        let first = ListParams::default().labels(search.labels);
        self.listed(path, if search.fields.is_empty() { first } else { first.fields(search.fields) }).await
    }

    async fn listed<T: DeserializeOwned>(&self, address: String, params: ListParams) -> Result<Vec<T>, Failure> {
        let (address, first) = (Address::new(address), params.limit(PAGE));
        let request = |params: &ListParams| -> Result<Request<Vec<u8>>, _> { address.list(params) };
        let take = |found: &mut Vec<T>, answer: &Answer| {
            let page: Page<T> = answer.json()?;
            found.extend(page.items.ok_or_else(|| no_object("a list without items"))?);
            Ok(page.metadata.next)
        };
        pages(&self.own, request, &first, take).await
    }
}
