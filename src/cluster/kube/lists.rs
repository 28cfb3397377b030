//! Lists of objects on an API server, page by page.

use gatewright_engine::fingerprint::Metadata;
use gatewright_engine::live::Live;
use gatewright_engine::object::Gvk;
use http::Request;
use kube::api::ListParams;
use kube::core::Request as Address;
use kube::core::request::Error as BuildError;
use serde::Deserialize;
use serde_json::Value;

use super::KubeCluster;
use super::failure::Failure;
use super::objects::{live, no_object};
use super::transport::{Answer, Transport};
use crate::cluster::{MetadataList, Range, Search};

/// The most objects in an answer.
pub(super) const PAGE: u32 = 500;

/// The most objects in an answer to a question about health.
const FEW: u32 = 100;

/// The most restarts of a list that changed so much that the server lost its place.
const MAX_RESTARTS: usize = 3;

impl KubeCluster {
    /// Reads the first page of what a question about health is about.
    pub(super) async fn try_search(&self, kind: &Gvk, search: Search<'_>) -> Result<Vec<Live>, Failure> {
        let resource = self.discovery.find(&self.own, kind).await?;
        let mut params = ListParams::default().labels(search.labels).fields(search.fields).limit(FEW);
        let address = Address::new(resource.within(search.namespace)?);
        loop {
            match self.transport.answer(address.list(&params)?).await {
                Ok(answer) => return listed(kind, &answer).map(|(found, _)| found),
                Err(failure) => params.limit = Some(fewer(&params, failure)?),
            }
        }
    }

    /// Lists all objects of a kind that have a label; `None`: whatever its value.
    pub(super) async fn try_list(&self, kind: &Gvk, key: &str, value: Option<&str>) -> Result<Vec<Live>, Failure> {
        let selector = value.map_or_else(|| key.to_owned(), |value| format!("{key}={value}"));
        let first = ListParams::default().labels(&selector).limit(PAGE);
        let address = Address::new(self.discovery.find(&self.own, kind).await?.everywhere());
        pages(self.reader(Some(key)), |params| address.list(params), &first, |found, answer| add(kind, found, answer))
            .await
    }

    /// Lists all objects of a kind, in a namespace or in all.
    pub(super) async fn try_list_all(&self, kind: &Gvk, namespace: Option<&str>) -> Result<Vec<Live>, Failure> {
        let resource = self.discovery.find(&self.own, kind).await?;
        let address = namespace.map_or_else(|| Ok(resource.everywhere()), |namespace| resource.within(namespace));
        let (address, first) = (Address::new(address?), ListParams::default().limit(PAGE));
        pages(&self.transport, |params| address.list(params), &first, |found, answer| add(kind, found, answer)).await
    }

    /// Looks at the metadata of objects of a kind. Of each page only what a [`MetadataList`] holds is kept.
    pub(super) async fn try_list_metadata(&self, kind: &Gvk, range: Range<'_>) -> Result<MetadataList, Failure> {
        let resource = self.discovery.find(&self.own, kind).await?;
        let address = range.namespace.map_or_else(|| Ok(resource.everywhere()), |namespace| resource.within(namespace));
        let address = Address::new(address?);
        let mut first = ListParams::default().limit(PAGE);
        if let Some((key, value)) = range.label {
            first = first.labels(&format!("{key}={value}"));
        }
        let take = |listed: &mut MetadataList, answer: &Answer| {
            let page: Page = answer.json()?;
            if page.items.is_none() && page.kind != "PartialObjectMetadataList" {
                return Err(no_object("a list without items"));
            }
            // The first page says when it began; later ones are of the same state, and may be sent much later.
            listed.date = listed.date.or_else(|| answer.date());
            listed.version = page.metadata.resource_version.parse().unwrap_or_default();
            listed.objects.extend(page.items.into_iter().flatten().map(|item| item.metadata));
            Ok(page.metadata.next)
        };
        let reader = self.reader(range.label.map(|(key, _)| key));
        pages(reader, |params| address.list_metadata(params), &first, take).await
    }
}

/// Adds a page of whole objects; returns where the next one begins.
fn add(kind: &Gvk, found: &mut Vec<Live>, answer: &Answer) -> Result<String, Failure> {
    let (page, next) = listed(kind, answer)?;
    found.extend(page);
    Ok(next)
}

/// Reads the pages of a list one after the other; `take` adds a page, and returns where the next one begins, or nothing
/// after the last.
pub(super) async fn pages<T: Default>(
    transport: &Transport,
    request: impl Fn(&ListParams) -> Result<Request<Vec<u8>>, BuildError>,
    first: &ListParams,
    take: impl Fn(&mut T, &Answer) -> Result<String, Failure>,
) -> Result<T, Failure> {
    let (mut found, mut params, mut restarts) = (T::default(), first.clone(), 0);
    let (mut limit, mut listing) = (first.limit.unwrap_or(PAGE), transport.listing());
    loop {
        let answer = match transport.answer(request(&params)?).await {
            Ok(answer) => answer,
            // The place in the list is kept for some minutes only.
            Err(failure) if failure.refusal(410).is_some() && restarts < MAX_RESTARTS => {
                (found, params) = (T::default(), first.clone().limit(limit));
                restarts += 1;
                listing.again();
                continue;
            }
            // What is read already stays, and so does the place.
            Err(failure) => {
                limit = fewer(&params, failure)?;
                params.limit = Some(limit);
                continue;
            }
        };
        listing.add(answer.length())?;
        let next = take(&mut found, &answer)?;
        if next.is_empty() {
            return Ok(found);
        }
        params = first.clone().limit(limit).continue_token(&next);
    }
}

/// Returns half of the length of a page that was too large; of any other failure nothing comes.
fn fewer(params: &ListParams, failure: Failure) -> Result<u32, Failure> {
    match params.limit {
        Some(limit) if limit > 1 && failure.is_too_large() => Ok(limit / 2),
        _ => Err(failure),
    }
}

/// Returns the objects of a page, and where the next one begins, or nothing after the last.
fn listed(kind: &Gvk, answer: &Answer) -> Result<(Vec<Live>, String), Failure> {
    let mut page: Value = answer.json()?;
    let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) else {
        return Err(no_object("a list without items"));
    };
    let items = items.into_iter().map(|item| live_item(kind, item)).collect::<Result<_, _>>()?;
    Ok((items, page["metadata"]["continue"].as_str().unwrap_or_default().to_owned()))
}

/// A page of a list of metadata.
#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: PageMetadata,
    /// `null` where there is nothing.
    items: Option<Vec<Item>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PageMetadata {
    resource_version: String,
    #[serde(rename = "continue")]
    next: String,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
}

/// Items of a list leave out what is the same for all of them.
fn live_item(kind: &Gvk, mut item: Value) -> Result<Live, Failure> {
    if let Some(fields) = item.as_object_mut() {
        fields.entry("apiVersion").or_insert_with(|| kind.api_version().into());
        fields.entry("kind").or_insert_with(|| kind.kind.clone().into());
    }
    live(item)
}
