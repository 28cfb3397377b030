//! Objects on an API server: list, get, apply, delete.

use gatewright_engine::fingerprint::Metadata;
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, Object, ObjectId};
use http::Request;
use http::header::CONTENT_TYPE;
use kube::api::{
    DeleteParams, GetParams, ListParams, Patch, PatchParams, Preconditions, PropagationPolicy, ValidationDirective,
};
use kube::core::Request as Address;
use kube::core::request::Error as BuildError;
use serde::Deserialize;
use serde_json::{Value, json};

use super::discovery::Discovery;
use super::failure::Failure;
use super::resource::{Attempt, known};
use super::transport::Transport;
use crate::cluster::{ClusterError, Glance, Mode, Precondition, Range};

/// The name under which the fields that we set are ours.
pub(super) const FIELD_MANAGER: &str = "gatewright";

/// How many objects an answer has at most.
const PAGE: u32 = 500;

/// How often a list begins again because it changed so much that the server lost its place.
const MAX_RESTARTS: usize = 3;

/// What carries requests, and what knows where they go.
#[derive(Clone, Copy)]
pub(super) struct Server<'a> {
    pub(super) transport: &'a Transport,
    pub(super) discovery: &'a Discovery,
}

impl Server<'_> {
    /// Lists all objects of a kind that have the label.
    pub(super) async fn list(&self, kind: &Gvk, label: (&str, &str)) -> Result<Vec<Live>, ClusterError> {
        let attempt = Attempt::on_all(kind, "list");
        self.try_list(kind, label).await.map_err(|failure| self.without_kind(kind, failure).into_error(&attempt))
    }

    /// Looks at the metadata of objects of a kind.
    pub(super) async fn glance(&self, kind: &Gvk, range: Range<'_>) -> Result<Glance, ClusterError> {
        let attempt = Attempt::on_all(kind, "list");
        self.try_glance(kind, range).await.map_err(|failure| self.without_kind(kind, failure).into_error(&attempt))
    }

    /// Reads one object.
    pub(super) async fn get(&self, kind: &Gvk, id: &ObjectId) -> Result<Option<Live>, ClusterError> {
        let attempt = Attempt::on(id, "read");
        self.try_get(kind, id).await.map_err(|failure| self.without_kind(kind, failure).into_error(&attempt))
    }

    /// Applies an object, or rehearses it.
    pub(super) async fn apply(
        &self,
        object: &Object,
        only_if: &Precondition,
        mode: Mode,
    ) -> Result<Live, ClusterError> {
        let verb = match mode {
            Mode::DryRun => "rehearse the apply of",
            Mode::Real => "apply",
        };
        let (kind, attempt) = (object.gvk(), Attempt::on(object.id(), verb));
        let applied = self.try_apply(object, only_if, mode).await;
        applied.map_err(|failure| self.without_kind(&kind, failure).into_error(&attempt))
    }

    /// Patches the object that was read, or rehearses it.
    pub(super) async fn patch(
        &self,
        kind: &Gvk,
        id: &ObjectId,
        over: (&str, &str),
        operations: &[Value],
        mode: Mode,
    ) -> Result<Live, ClusterError> {
        let verb = match mode {
            Mode::DryRun => "rehearse the patch of",
            Mode::Real => "patch",
        };
        let attempt = Attempt::on(id, verb);
        let patched = self.try_patch(kind, id, over, operations, mode).await;
        patched.map_err(|failure| self.without_kind(kind, failure).into_error(&attempt))
    }

    /// Deletes the object that was read, and leaves what hangs on it to the garbage collector.
    pub(super) async fn delete(
        &self,
        kind: &Gvk,
        id: &ObjectId,
        uid: &str,
        resource_version: &str,
    ) -> Result<(), ClusterError> {
        let attempt = Attempt::on(id, "delete");
        let deleted = self.try_delete(kind, id, uid, resource_version).await;
        deleted.map_err(|failure| self.without_kind(kind, failure).into_error(&attempt))
    }

    async fn try_list(&self, kind: &Gvk, label: (&str, &str)) -> Result<Vec<Live>, Failure> {
        let selector = ListParams::default().labels(&format!("{}={}", label.0, label.1)).limit(PAGE);
        let address = Address::new(self.discovery.find(self.transport, kind).await?.everywhere());
        let (mut found, mut params, mut restarts) = (Vec::new(), selector.clone(), 0);
        loop {
            let mut page = match self.ask(address.list(&params)).await {
                Ok(page) => page,
                // The place in the list is kept for some minutes only.
                Err(failure) if failure.refusal(410).is_some() && restarts < MAX_RESTARTS => {
                    (found, params) = (Vec::new(), selector.clone());
                    restarts += 1;
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) else {
                return Err(no_object("a list without items"));
            };
            for item in items {
                found.push(live_item(kind, item)?);
            }
            match page["metadata"]["continue"].as_str() {
                Some(next) if !next.is_empty() => params = selector.clone().continue_token(next),
                _ => return Ok(found),
            }
        }
    }

    /// Pages are read one after the other, and of each only what a [`Glance`] holds is kept.
    async fn try_glance(&self, kind: &Gvk, range: Range<'_>) -> Result<Glance, Failure> {
        let resource = self.discovery.find(self.transport, kind).await?;
        let address = range.namespace.map_or_else(|| Ok(resource.everywhere()), |namespace| resource.within(namespace));
        let address = Address::new(address?);
        let mut first = ListParams::default().limit(PAGE);
        if let Some((key, value)) = range.label {
            first = first.labels(&format!("{key}={value}"));
        }
        let (mut glance, mut params, mut restarts) = (Glance::default(), first.clone(), 0);
        loop {
            let answer = match self.transport.answer(built(address.list_metadata(&params))?).await {
                Ok(answer) => answer,
                Err(failure) if failure.refusal(410).is_some() && restarts < MAX_RESTARTS => {
                    (glance, params) = (Glance::default(), first.clone());
                    restarts += 1;
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            let page: Page = answer.json()?;
            if page.items.is_none() && page.kind != "PartialObjectMetadataList" {
                return Err(no_object("a list without items"));
            }
            // The first page says when it began; later ones are of the same state, and may be sent much later.
            glance.date = glance.date.or_else(|| answer.date());
            glance.version = page.metadata.resource_version.parse().unwrap_or_default();
            glance.objects.extend(page.items.into_iter().flatten().map(|item| item.metadata));
            if page.metadata.next.is_empty() {
                return Ok(glance);
            }
            params = first.clone().continue_token(&page.metadata.next);
        }
    }

    async fn try_get(&self, kind: &Gvk, id: &ObjectId) -> Result<Option<Live>, Failure> {
        let address = self.address(kind, id).await?;
        match self.ask(address.get(&id.name, &GetParams::default())).await {
            Ok(body) => live(body).map(Some),
            Err(failure) if failure.misses(&id.name) || misses_namespace(&failure, id) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    async fn try_apply(&self, object: &Object, only_if: &Precondition, mode: Mode) -> Result<Live, Failure> {
        let id = object.id();
        let address = self.address(&object.gvk(), id).await?;
        let params = PatchParams {
            dry_run: mode == Mode::DryRun,
            force: true,
            field_manager: Some(FIELD_MANAGER.to_owned()),
            field_validation: Some(ValidationDirective::Strict),
        };
        let body = conditional(object, only_if)?;
        match self.ask(address.patch(&id.name, &params, &Patch::Apply(&body)).map(printable)).await {
            Ok(body) => live(body),
            // The server's way to say that the object of this name is another one by now.
            Err(failure) if failure.refusal(422).is_some_and(|refusal| refusal.objects_to("metadata.uid")) => {
                Err(failure.into_conflict())
            }
            Err(failure) => Err(failure),
        }
    }

    async fn try_patch(
        &self,
        kind: &Gvk,
        id: &ObjectId,
        (uid, resource_version): (&str, &str),
        operations: &[Value],
        mode: Mode,
    ) -> Result<Live, Failure> {
        known("uid", uid)?;
        known("version", resource_version)?;
        let place = self.discovery.find(self.transport, kind).await?.beside(id)?;
        let dry_run = if mode == Mode::DryRun { "&dryRun=All" } else { "" };
        let address = format!("{place}/{}?fieldManager={FIELD_MANAGER}&fieldValidation=Strict{dry_run}", id.name);
        // The server takes these for what the object was when it was read, and refuses if it is not any more.
        let guards = [("uid", uid), ("resourceVersion", resource_version)]
            .map(|(field, value)| json!({"op": "replace", "path": format!("/metadata/{field}"), "value": value}));
        let body = Value::from([&guards, operations].concat()).to_string();
        let request = Request::patch(address).header(CONTENT_TYPE, "application/json-patch+json");
        let request = request.body(body.into_bytes()).map_err(|error| Failure::Impossible(error.to_string()))?;
        match self.transport.ask(request).await {
            Ok(body) => live(body),
            Err(failure) if failure.refusal(422).is_some_and(|refusal| refusal.objects_to("metadata.uid")) => {
                Err(failure.into_conflict())
            }
            // Whoever patches an object has seen it.
            Err(failure) if failure.misses(&id.name) => Err(failure.into_conflict()),
            Err(failure) => Err(failure),
        }
    }

    async fn try_delete(&self, kind: &Gvk, id: &ObjectId, uid: &str, resource_version: &str) -> Result<(), Failure> {
        known("uid", uid)?;
        known("version", resource_version)?;
        let address = self.address(kind, id).await?;
        let preconditions =
            Preconditions { uid: Some(uid.to_owned()), resource_version: Some(resource_version.to_owned()) };
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        match self.ask(address.delete(&id.name, &params)).await {
            Ok(_) => Ok(()),
            Err(failure) if failure.misses(&id.name) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    async fn address(&self, kind: &Gvk, id: &ObjectId) -> Result<Address, Failure> {
        self.discovery.find(self.transport, kind).await?.beside(id).map(Address::new)
    }

    async fn ask(&self, request: Result<Request<Vec<u8>>, BuildError>) -> Result<Value, Failure> {
        self.transport.ask(built(request)?).await
    }

    /// A 404 that names nothing means that the address itself is gone: the kind was there and no longer is.
    fn without_kind(&self, kind: &Gvk, failure: Failure) -> Failure {
        match failure.refusal(404) {
            Some(refusal) if refusal.status.details.as_ref().is_none_or(|details| details.name.is_empty()) => {
                self.discovery.forget(kind);
                Failure::NoKind(kind.to_string())
            }
            _ => failure,
        }
    }
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

/// Escapes what JSON may hold as it is and YAML may not, or takes for the end of a line: the server reads an apply as
/// YAML.
fn printable(request: Request<Vec<u8>>) -> Request<Vec<u8>> {
    let is_special =
        |c: char| matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    request.map(|body| match String::from_utf8(body) {
        Ok(text) if text.contains(is_special) => {
            let escape = |c: char| if is_special(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
            text.chars().map(escape).collect::<String>().into_bytes()
        }
        Ok(text) => text.into_bytes(),
        Err(error) => error.into_bytes(),
    })
}

/// A namespace that is asked for itself is absent; one that an object should be in says nothing of the object.
fn misses_namespace(failure: &Failure, id: &ObjectId) -> bool {
    let missing = failure.refusal(404).and_then(|refusal| refusal.missing_namespace());
    id.group.is_empty() && id.kind == "Namespace" && missing == Some(id.name.as_str())
}

/// Puts the condition into the body, where the server looks for it.
fn conditional(object: &Object, only_if: &Precondition) -> Result<Value, Failure> {
    let mut body = object.body().clone();
    match only_if {
        // No object ever has this version, so it agrees only with none.
        Precondition::Absent => body["metadata"]["resourceVersion"] = "1".into(),
        Precondition::Unchanged { uid, resource_version } => {
            known("uid", uid)?;
            known("version", resource_version)?;
            body["metadata"]["uid"] = uid.as_str().into();
            body["metadata"]["resourceVersion"] = resource_version.as_str().into();
        }
    }
    Ok(body)
}

fn built(request: Result<Request<Vec<u8>>, BuildError>) -> Result<Request<Vec<u8>>, Failure> {
    request.map_err(|error| Failure::Impossible(format!("the request cannot be put together ({error})")))
}

fn live(body: Value) -> Result<Live, Failure> {
    Live::new(body).map_err(|error| no_object(&error.to_string()))
}

/// Items of a list leave out what is the same for all of them.
fn live_item(kind: &Gvk, mut item: Value) -> Result<Live, Failure> {
    if let Some(fields) = item.as_object_mut() {
        fields.entry("apiVersion").or_insert_with(|| kind.api_version().into());
        fields.entry("kind").or_insert_with(|| kind.kind.clone().into());
    }
    live(item)
}

fn no_object(what: &str) -> Failure {
    Failure::Stranger { what: format!("it sends JSON that is no object ({what})"), code: None }
}
