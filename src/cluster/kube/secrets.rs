//! Lists of Secrets that hold the way to other clusters.

use http::Request;
use kube::api::ListParams;
use kube::core::Request as Address;
use serde::Deserialize;

use super::KubeCluster;
use super::failure::Failure;
use super::lists::{PAGE, pages};
use super::objects::no_object;
use super::resource::Attempt;
use super::transport::Answer;
use crate::cluster::secrets::Secret;
use crate::cluster::{ClusterError, Search};

/// A page of a list of them.
#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMetadata,
    items: Option<Vec<Secret>>,
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

    async fn try_secrets(&self, search: Search<'_>) -> Result<Vec<Secret>, Failure> {
        self.own.look_afresh().await?;
        let path = match search.namespace {
            "" => "/api/v1/secrets".to_owned(),
            namespace => format!("/api/v1/namespaces/{namespace}/secrets"),
        };
        let address = Address::new(path);
        let mut first = ListParams::default().limit(PAGE).labels(search.labels);
        if !search.fields.is_empty() {
            first = first.fields(search.fields);
        }
        let request = |params: &ListParams| -> Result<Request<Vec<u8>>, _> { address.list(params) };
        let take = |found: &mut Vec<Secret>, answer: &Answer| {
            let page: Page = answer.json()?;
            found.extend(page.items.ok_or_else(|| no_object("a list without items"))?);
            Ok(page.metadata.next)
        };
        pages(&self.own, request, &first, take).await
    }
}
