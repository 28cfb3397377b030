//! The objects in a namespace, or of a kind: metadata only, of every kind that can be listed.

use futures::future::try_join_all;
use gatewright_engine::live::Live;
use gatewright_engine::object::Object;
use http::Request;
use http::header::ACCEPT;
use serde_json::Value;

use super::failure::Failure;
use super::objects::live;
use super::resource::{path_segment, root};
use super::transport::Transport;

/// So that a namespace with a hundred thousand objects costs no more than their names.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The most objects in an answer.
const PAGE: u32 = 500;

/// Groups whose objects are measured and not stored.
const MEASURED: &str = "metrics.k8s.io";

struct Listed {
    api_version: String,
    kind: String,
    plural: String,
}

/// Lists what a namespace or a kind holds; nothing for any other object.
pub(super) async fn list(transport: &Transport, container: &Object) -> Result<Vec<Live>, Failure> {
    let id = container.id();
    path_segment("name", &id.name)?;
    match (id.group.as_str(), id.kind.as_str()) {
        ("", "Namespace") => in_namespace(transport, &id.name).await,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => of_kind(transport, container.body()).await,
        _ => Ok(Vec::new()),
    }
}

async fn in_namespace(transport: &Transport, namespace: &str) -> Result<Vec<Live>, Failure> {
    let groups = transport.get("/apis").await?;
    let preferred = groups["groups"].as_array().into_iter().flatten();
    let preferred = preferred.filter_map(|group| group["preferredVersion"]["groupVersion"].as_str());
    let versions: Vec<&str> =
        ["v1"].into_iter().chain(preferred.filter(|version| !version.contains(MEASURED))).collect();
    let kinds = try_join_all(versions.iter().map(|version| listed(transport, version))).await?;
    let kinds: Vec<Listed> = kinds.into_iter().flatten().collect();
    let lists = kinds.iter().map(|kind| {
        let place = format!("{}/namespaces/{namespace}/{}", root(&kind.api_version), kind.plural);
        pages(transport, place, kind)
    });
    Ok(try_join_all(lists).await?.into_iter().flatten().collect())
}

async fn of_kind(transport: &Transport, definition: &Value) -> Result<Vec<Live>, Failure> {
    let text = |place: &str| definition.pointer(place).and_then(Value::as_str).unwrap_or_default().to_owned();
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let served = versions.filter(|version| version["served"] == true).find_map(|version| version["name"].as_str());
    let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
    // What is not served cannot be asked for, and may be there all the same.
    let Some(version) = served else { return Err(Failure::NoKind(format!("{plural}.{group}"))) };
    for segment in [group.as_str(), version, plural.as_str()] {
        path_segment("kind", segment)?;
    }
    let kind = Listed { api_version: format!("{group}/{version}"), kind: text("/spec/names/kind"), plural };
    pages(transport, format!("{}/{}", root(&kind.api_version), kind.plural), &kind).await
}

async fn listed(transport: &Transport, api_version: &str) -> Result<Vec<Listed>, Failure> {
    for segment in api_version.split('/') {
        path_segment("apiVersion", segment)?;
    }
    let answer = transport.get(&root(api_version)).await?;
    let mut kinds = Vec::new();
    for resource in answer["resources"].as_array().into_iter().flatten() {
        let can_list = resource["verbs"].as_array().is_some_and(|verbs| verbs.iter().any(|verb| verb == "list"));
        let (Some(plural), Some(kind)) = (resource["name"].as_str(), resource["kind"].as_str()) else { continue };
        if can_list && resource["namespaced"] == true && path_segment("resource", plural).is_ok() {
            let (api_version, kind, plural) = (api_version.to_owned(), kind.to_owned(), plural.to_owned());
            kinds.push(Listed { api_version, kind, plural });
        }
    }
    Ok(kinds)
}

async fn pages(transport: &Transport, place: String, kind: &Listed) -> Result<Vec<Live>, Failure> {
    let mut found = Vec::new();
    let (mut next, mut listing) = (String::new(), transport.listing());
    loop {
        let request = Request::get(format!("{place}?limit={PAGE}{next}")).header(ACCEPT, METADATA);
        let answer = transport.answer(request.body(Vec::new())?).await?;
        listing.add(answer.length())?;
        let mut page: Value = answer.json()?;
        let items = match page.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => items,
            // The server's way to write an empty list of metadata.
            Some(Value::Null) | None if page["kind"] == "PartialObjectMetadataList" => Vec::new(),
            _ => return Err(Failure::NotKubernetes { what: "it sends a list without items".to_owned(), code: None }),
        };
        for mut item in items {
            item["apiVersion"] = kind.api_version.as_str().into();
            item["kind"] = kind.kind.as_str().into();
            found.push(live(item)?);
        }
        match page["metadata"]["continue"].as_str() {
            Some(token) if !token.is_empty() => next = format!("&continue={token}"),
            _ => return Ok(found),
        }
    }
}
