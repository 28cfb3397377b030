//! Where a kind lives on an API server: discovery, addresses, and what a request is called in messages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use futures::future::try_join_all;
use gatewright_engine::object::{Gvk, ObjectId};
use serde_json::Value;

use super::failure::Failure;
use super::transport::Transport;
use crate::cluster::KindScope;

/// What is attempted, for errors.
#[derive(Clone, Debug, Default)]
pub(super) struct Attempt {
    /// `apply Service infra/edge`.
    pub(super) action: String,
    /// Whether the server's words may quote a secret.
    pub(super) secret: bool,
}

impl Attempt {
    /// Describes a request for one object.
    pub(super) fn on(id: &ObjectId, verb: &str) -> Self {
        Self { action: format!("{verb} {id}"), secret: is_secret(&id.group, &id.kind) }
    }

    /// Describes a request for all objects of a kind.
    pub(super) fn on_all(kind: &Gvk, verb: &str) -> Self {
        let action = format!("{verb} the objects of kind {}", kind.kind);
        Self { action, secret: is_secret(&kind.group, &kind.kind) }
    }

    /// Describes a request that has nothing to do with secrets.
    pub(super) fn to(action: impl Into<String>) -> Self {
        Self { action: action.into(), secret: false }
    }
}

fn is_secret(group: &str, kind: &str) -> bool {
    group.is_empty() && kind == "Secret"
}

/// A kind as the server has it.
#[derive(Clone, Debug)]
pub(super) struct Resource {
    api_version: String,
    plural: String,
    pub(super) scope: KindScope,
}

impl Resource {
    /// Returns the address of all objects of the kind, in all namespaces.
    pub(super) fn everywhere(&self) -> String {
        format!("{}/{}", root(&self.api_version), self.plural)
    }

    /// Returns the address of those objects of the kind that are where `id` is.
    pub(super) fn beside(&self, id: &ObjectId) -> Result<String, Failure> {
        path_segment("name", &id.name)?;
        match self.scope {
            KindScope::Cluster => Ok(self.everywhere()),
            KindScope::Namespaced => {
                path_segment("namespace", &id.namespace)?;
                Ok(format!("{}/namespaces/{}/{}", root(&self.api_version), id.namespace, self.plural))
            }
        }
    }
}

fn root(api_version: &str) -> String {
    let prefix = if api_version.contains('/') { "/apis" } else { "/api" };
    format!("{prefix}/{api_version}")
}

/// Refuses what would change the address that it is put into: names come from specs.
pub(super) fn path_segment(what: &str, text: &str) -> Result<(), Failure> {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-._:~@".contains(character);
    if text.is_empty() || text == "." || text == ".." || !text.chars().all(plain) {
        return Err(Failure::Impossible(format!("the {what} {text:?} cannot stand in the address of an object")));
    }
    Ok(())
}

/// Refuses to send an empty condition, which the server would take for none at all.
pub(super) fn known(what: &str, text: &str) -> Result<(), Failure> {
    if text.is_empty() {
        return Err(Failure::Impossible(format!("the {what} of what is to be changed is not known")));
    }
    Ok(())
}

/// What the server has, as far as somebody has asked. A kind that is missing is looked for again each time.
#[derive(Default)]
pub(super) struct Discovery {
    known: Mutex<BTreeMap<String, BTreeMap<String, Resource>>>,
}

impl Discovery {
    /// Returns which of the kinds the server has.
    pub(super) async fn find_all(
        &self,
        transport: &Transport,
        kinds: &BTreeSet<Gvk>,
    ) -> Result<BTreeMap<Gvk, KindScope>, Failure> {
        let unknown = kinds.iter().filter(|kind| self.known(kind).is_none()).map(Gvk::api_version);
        let versions: BTreeSet<String> = unknown.collect();
        try_join_all(versions.iter().map(|version| self.refresh(transport, version))).await?;
        Ok(kinds.iter().filter_map(|kind| Some((kind.clone(), self.known(kind)?.scope))).collect())
    }

    /// Returns where a kind lives.
    pub(super) async fn find(&self, transport: &Transport, kind: &Gvk) -> Result<Resource, Failure> {
        if let Some(resource) = self.known(kind) {
            return Ok(resource);
        }
        self.refresh(transport, &kind.api_version()).await?;
        self.known(kind).ok_or_else(|| Failure::NoKind(kind.to_string()))
    }

    /// Asks again the next time: the server no longer has what it had.
    pub(super) fn forget(&self, kind: &Gvk) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(&kind.api_version());
    }

    fn known(&self, kind: &Gvk) -> Option<Resource> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&kind.api_version())?.get(&kind.kind).cloned()
    }

    async fn refresh(&self, transport: &Transport, api_version: &str) -> Result<(), Failure> {
        for segment in api_version.split('/') {
            path_segment("apiVersion", segment)?;
        }
        let request = http::Request::get(root(api_version)).body(Vec::new());
        let request = request.map_err(|error| Failure::Impossible(error.to_string()))?;
        let resources = match transport.ask(request).await {
            Ok(answer) => resources(api_version, &answer),
            // Any other failure says nothing about what exists.
            Err(failure) if failure.refusal(404).is_some() => BTreeMap::new(),
            Err(failure) => return Err(failure),
        };
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(api_version.to_owned(), resources);
        Ok(())
    }
}

/// Reads an `APIResourceList`, subresources left out.
fn resources(api_version: &str, answer: &Value) -> BTreeMap<String, Resource> {
    let mut found = BTreeMap::new();
    for resource in answer["resources"].as_array().into_iter().flatten() {
        let (Some(plural), Some(kind)) = (resource["name"].as_str(), resource["kind"].as_str()) else { continue };
        if path_segment("resource", plural).is_err() {
            continue;
        }
        let scope = if resource["namespaced"] == true { KindScope::Namespaced } else { KindScope::Cluster };
        let resource = Resource { api_version: api_version.to_owned(), plural: plural.to_owned(), scope };
        found.insert(kind.to_owned(), resource);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn discovery_leaves_subresources_out() {
        let list = json!({"resources": [
            {"name": "deployments", "kind": "Deployment", "namespaced": true},
            {"name": "deployments/scale", "kind": "Scale", "namespaced": true},
            {"name": 5},
        ]});
        let found = resources("apps/v1", &list);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["Deployment"]);
        let deployment = &found["Deployment"];
        assert_eq!(deployment.everywhere(), "/apis/apps/v1/deployments");
        let id = ObjectId::new("apps", "Deployment", "infra", "edge");
        assert_eq!(deployment.beside(&id).ok().as_deref(), Some("/apis/apps/v1/namespaces/infra/deployments"));
    }

    #[test]
    fn names_cannot_change_the_address() {
        for name in ["edge", "system:auth", "v1.example.com"] {
            assert!(path_segment("name", name).is_ok(), "{name}");
        }
        for name in ["", ".", "..", "a/b", "a?force=true", "a#b", "a b", "%2e", "ä"] {
            assert!(path_segment("name", name).is_err(), "{name}");
        }
    }
}
