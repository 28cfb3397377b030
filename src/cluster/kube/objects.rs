//! Single objects on an API server: get, apply, patch, delete.

use gatewright_engine::live::Live;
use gatewright_engine::marks::FIELD_MANAGER;
use gatewright_engine::object::{Gvk, Object, ObjectId};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, Request};
use kube::api::{DeleteParams, GetParams, Patch, PatchParams, Preconditions, PropagationPolicy, ValidationDirective};
use kube::core::Request as Address;
use kube::core::request::Error as BuildError;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::KubeCluster;
use super::failure::Failure;
use super::resource::known;
use crate::cluster::{Mode, Precondition};

/// No object ever has this version, so it agrees only with none; a dry run answers with it.
const NEVER: &str = "1";

/// An object that was just made is what was sent: nearly half of each answer need not be packed, sent and read.
const METADATA: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json");

impl KubeCluster {
    pub(super) async fn try_get(&self, kind: &Gvk, id: &ObjectId) -> Result<Option<Live>, Failure> {
        let address = self.address(kind, id).await?;
        match self.ask(address.get(&id.name, &GetParams::default())).await {
            Ok(body) => live(body).map(Some),
            Err(failure) if failure.misses(&id.name) || misses_namespace(&failure, id) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Asks for the metadata alone.
    pub(super) async fn try_exists(&self, kind: &Gvk, id: &ObjectId) -> Result<bool, Failure> {
        let address = self.address(kind, id).await?;
        let mut request = address.get(&id.name, &GetParams::default())?;
        request.headers_mut().insert(ACCEPT, METADATA);
        match self.transport.ask(request).await {
            Ok(_) => Ok(true),
            Err(failure) if failure.misses(&id.name) || misses_namespace(&failure, id) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    pub(super) async fn try_apply(&self, object: &Object, only_if: &Precondition, mode: Mode) -> Result<Live, Failure> {
        let id = object.id();
        let address = self.address(&object.gvk(), id).await?;
        let params = PatchParams {
            dry_run: mode == Mode::DryRun,
            force: true,
            field_manager: Some(FIELD_MANAGER.to_owned()),
            field_validation: Some(ValidationDirective::Strict),
        };
        let body = Conditional::new(object, only_if)?;
        self.trusts(mode)?;
        let mut request = address.patch(&id.name, &params, &Patch::Apply(&body)).map(printable)?;
        // To a Service the server itself adds something that is told: its address.
        if *only_if == Precondition::Absent && mode == Mode::Real && !id.is_a("", "Service") {
            request.headers_mut().insert(ACCEPT, METADATA);
        }
        let applied = match self.transport.ask(request).await {
            Ok(body) => live(whole(body, object)),
            // The server's way to say that the object of this name is another one by now.
            Err(failure) if failure.refusal(422).is_some_and(|refusal| refusal.objects_to("metadata.uid")) => {
                Err(failure.into_conflict())
            }
            Err(failure) => Err(failure),
        };
        let sent = match only_if {
            Precondition::Absent => NEVER,
            Precondition::Unchanged { resource_version, .. } => resource_version,
        };
        self.checked(&object.gvk(), applied?, sent, mode).await
    }

    pub(super) async fn try_patch(
        &self,
        kind: &Gvk,
        id: &ObjectId,
        (uid, resource_version): (&str, &str),
        operations: &[Value],
        mode: Mode,
    ) -> Result<Live, Failure> {
        known("uid", uid)?;
        known("version", resource_version)?;
        let place = self.discovery.find(&self.own, kind).await?.collection(id)?;
        let dry_run = if mode == Mode::DryRun { "&dryRun=All" } else { "" };
        let address = format!("{place}/{}?fieldManager={FIELD_MANAGER}&fieldValidation=Strict{dry_run}", id.name);
        // The server takes these for what the object was when it was read, and refuses if it is not any more.
        let guards = [("uid", uid), ("resourceVersion", resource_version)]
            .map(|(field, value)| json!({"op": "replace", "path": format!("/metadata/{field}"), "value": value}));
        let body = Value::from([&guards, operations].concat()).to_string();
        let request = Request::patch(address).header(CONTENT_TYPE, "application/json-patch+json");
        let request = request.body(body.into_bytes())?;
        self.trusts(mode)?;
        let patched = match self.transport.ask(request).await {
            Ok(body) => live(body),
            Err(failure) if failure.refusal(422).is_some_and(|refusal| refusal.objects_to("metadata.uid")) => {
                Err(failure.into_conflict())
            }
            // Whoever patches an object has seen it.
            Err(failure) if failure.misses(&id.name) => Err(failure.into_conflict()),
            Err(failure) => Err(failure),
        };
        self.checked(kind, patched?, resource_version, mode).await
    }

    /// Nothing is dry-run on a server that has once carried out a dry run.
    fn trusts(&self, mode: Mode) -> Result<(), Failure> {
        match self.dry_run_ignored.get() {
            Some(object) if mode == Mode::DryRun => Err(Failure::DryRunIgnored(object.clone())),
            _ => Ok(()),
        }
    }

    /// Makes sure that a dry run was one: it answers with the version that was sent.
    async fn checked(&self, kind: &Gvk, live: Live, sent: &str, mode: Mode) -> Result<Live, Failure> {
        let version = &live.resource_version;
        if mode == Mode::Real || version.is_empty() || version == sent {
            return Ok(live);
        }
        let id = live.object.id();
        let now = self.try_get(kind, id).await?;
        if now.is_none_or(|now| now.resource_version != *version) {
            return Ok(live);
        }
        Err(Failure::DryRunIgnored(self.dry_run_ignored.get_or_init(|| id.to_string()).clone()))
    }

    pub(super) async fn try_delete(
        &self,
        kind: &Gvk,
        id: &ObjectId,
        uid: &str,
        resource_version: &str,
    ) -> Result<(), Failure> {
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
        self.discovery.find(&self.own, kind).await?.collection(id).map(Address::new)
    }

    async fn ask(&self, request: Result<Request<Vec<u8>>, BuildError>) -> Result<Value, Failure> {
        self.transport.ask(request?).await
    }

    /// A 404 that names nothing means that the address itself is gone: the kind was there and no longer is.
    pub(super) fn without_kind(&self, kind: &Gvk, failure: Failure) -> Failure {
        match failure.refusal(404) {
            Some(refusal) if refusal.status.details.as_ref().is_none_or(|details| details.name.is_empty()) => {
                self.discovery.forget(kind);
                Failure::NoKind(kind.to_string())
            }
            _ => failure,
        }
    }
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
    id.is_a("", "Namespace") && missing == Some(id.name.as_str())
}

/// The body that is sent, with the condition where the server looks for it.
struct Conditional<'a> {
    body: &'a Value,
    condition: Vec<(&'static str, &'a str)>,
}

impl<'a> Conditional<'a> {
    fn new(object: &'a Object, only_if: &'a Precondition) -> Result<Self, Failure> {
        let condition = match only_if {
            Precondition::Absent => vec![("resourceVersion", NEVER)],
            Precondition::Unchanged { uid, resource_version } => {
                known("uid", uid)?;
                known("version", resource_version)?;
                vec![("uid", uid.as_str()), ("resourceVersion", resource_version.as_str())]
            }
        };
        Ok(Self { body: object.body(), condition })
    }
}

impl Conditional<'_> {
    fn metadata(&self, metadata: &Map<String, Value>) -> Map<String, Value> {
        let mut metadata = metadata.clone();
        metadata.extend(self.condition.iter().map(|(field, value)| ((*field).to_owned(), Value::from(*value))));
        metadata
    }
}

impl Serialize for Conditional<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(fields) = self.body.as_object() else { return self.body.serialize(serializer) };
        let mut body = serializer.serialize_map(Some(fields.len()))?;
        for (name, value) in fields {
            match value.as_object().filter(|_| name == "metadata") {
                Some(metadata) => body.serialize_entry(name, &self.metadata(metadata))?,
                None => body.serialize_entry(name, value)?,
            }
        }
        body.end()
    }
}

pub(super) fn live(body: Value) -> Result<Live, Failure> {
    Live::new(body).map_err(|error| no_object(&error.to_string()))
}

/// Completes what a server says of an object that it has just made: the rest of it is what was sent, and nobody has
/// reported on it yet.
fn whole(mut answer: Value, sent: &Object) -> Value {
    if answer["kind"] != "PartialObjectMetadata" {
        return answer;
    }
    let mut body = sent.body().clone();
    body["metadata"] = answer["metadata"].take();
    body
}

pub(super) fn no_object(what: &str) -> Failure {
    Failure::NotKubernetes { what: format!("it sends JSON that is no object ({what})"), code: None }
}
