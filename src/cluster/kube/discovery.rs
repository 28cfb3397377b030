//! The kinds that an API server has: discovery, kept for as long as it holds.
//!
//! Two requests tell all groups and versions (KEP-3352, aggregated discovery), and with the tag of the last answer they
//! are answered by nothing at all. What was learned is kept in a file, so that a short-lived process asks nothing: a
//! kind that has gone is noticed by its 404, and one that is not known is asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock};

use gatewright_engine::object::Gvk;
use http::Request;
use http::header::{ACCEPT, IF_NONE_MATCH};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracing::debug;

use super::failure::Failure;
use super::resource::{Resource, path_segment, root};
use super::transport::{Answer, Transport};
use crate::basics::lock::lock;
use crate::cluster::{KindScope, Kinds};
use crate::state::write_file;

/// Asks for all groups in one answer; a server that is too old for that sends a list of groups.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// The kinds that the server has, as far as somebody has asked. A kind that is missing is looked for again each time.
#[derive(Default)]
pub(super) struct Discovery {
    file: Option<PathBuf>,
    /// Read from the file when it is asked for the first time.
    known: OnceLock<Mutex<Known>>,
}

/// The facts that were learned about one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    /// The identity of the cluster; empty as long as nobody has asked.
    cluster: String,
    /// By `group/version` and kind.
    versions: BTreeMap<String, BTreeMap<String, Resource>>,
    /// The versions that do not answer.
    unanswered: BTreeSet<String>,
    /// The names of the last answers, by address.
    tags: BTreeMap<String, String>,
}

impl Discovery {
    /// Remembers what is learned in a file.
    pub(super) fn kept_in(file: Option<PathBuf>) -> Self {
        Self { file, known: OnceLock::new() }
    }

    /// Says which cluster it is: what was learned of another one is forgotten.
    pub(super) fn is_of(&self, cluster: &str) {
        let mut known = self.lock();
        if known.cluster.is_empty() {
            cluster.clone_into(&mut known.cluster);
        } else if known.cluster != cluster {
            *known = Known { cluster: cluster.to_owned(), ..Known::default() };
        }
    }

    pub(super) async fn find_all(&self, transport: &Transport, kinds: &BTreeSet<Gvk>) -> Result<Kinds, Failure> {
        let is_open = |kind: &&Gvk| {
            let known = self.lock();
            known.get(kind).is_none() || known.unanswered.contains(&kind.api_version())
        };
        self.learn(transport, kinds.iter().filter(is_open)).await?;
        let known = self.lock();
        let mut found = Kinds::default();
        for kind in kinds {
            if known.unanswered.contains(&kind.api_version()) {
                found.unanswered.insert(kind.clone());
            } else if let Some(resource) = known.get(kind) {
                found.served.insert(kind.clone(), resource.scope);
            }
        }
        Ok(found)
    }

    pub(super) async fn find(&self, transport: &Transport, kind: &Gvk) -> Result<Resource, Failure> {
        if let Some(resource) = self.find_known(kind) {
            return Ok(resource);
        }
        self.learn(transport, [kind]).await?;
        self.find_known(kind).ok_or_else(|| Failure::NoKind(kind.to_string()))
    }

    /// Asks again the next time: the server no longer has what it had.
    pub(super) fn forget(&self, kind: &Gvk) {
        let mut known = self.lock();
        known.versions.remove(&kind.api_version());
        known.tags.clear();
    }

    fn find_known(&self, kind: &Gvk) -> Option<Resource> {
        self.lock().get(kind).cloned()
    }

    /// Learns all that the server has in the part of its API where these kinds are.
    async fn learn(&self, transport: &Transport, kinds: impl IntoIterator<Item = &Gvk>) -> Result<(), Failure> {
        // What can stand in no address is served nowhere, and no reason to know nothing of all else.
        let is_address =
            |version: &String| version.split('/').all(|segment| path_segment("apiVersion", segment).is_ok());
        let versions: BTreeSet<String> = kinds.into_iter().map(Gvk::api_version).filter(is_address).collect();
        let (groups, core): (Vec<&String>, Vec<&String>) = versions.iter().partition(|version| version.contains('/'));
        for (address, versions) in [("/api", core), ("/apis", groups)] {
            if versions.is_empty() {
                continue;
            }
            let answer = match self.ask(transport, address).await {
                Ok(answer) => answer,
                // There is no such part of the API; any other failure says nothing about what exists.
                Err(failure) if failure.refusal(404).is_some() => {
                    self.lock().replace(address, None, &Value::Null);
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            if answer.is_as_before() {
                continue;
            }
            let list: Value = answer.json()?;
            if list["kind"] == "APIGroupDiscoveryList" {
                self.lock().replace(address, answer.tag(), &list);
            } else {
                self.learn_one_by_one(transport, &versions).await?;
            }
        }
        self.save();
        Ok(())
    }

    async fn ask(&self, transport: &Transport, address: &str) -> Result<Answer, Failure> {
        let mut request = Request::get(address).header(ACCEPT, AGGREGATED);
        if let Some(tag) = self.lock().tags.get(address) {
            request = request.header(IF_NONE_MATCH, tag);
        }
        transport.answer(request.body(Vec::new())?).await
    }

    /// The way of servers before 1.26.
    async fn learn_one_by_one(&self, transport: &Transport, versions: &[&String]) -> Result<(), Failure> {
        for version in versions {
            let found = match transport.get(&root(version)).await {
                Ok(list) => Some(of_version(version, &list)),
                Err(failure) if failure.refusal(404).is_some() => Some(BTreeMap::new()),
                // A part of the API that an extension serves, and that extension is down.
                Err(failure) if version.contains('/') && failure.refusal(503).is_some() => None,
                // Any other failure says nothing about what exists.
                Err(failure) => return Err(failure),
            };
            let mut known = self.lock();
            match found {
                Some(found) => {
                    known.unanswered.remove(*version);
                    known.versions.insert((*version).clone(), found);
                }
                None => drop(known.unanswered.insert((*version).clone())),
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        let read = || Mutex::new(self.file.as_deref().and_then(read).unwrap_or_default());
        lock(self.known.get_or_init(read))
    }

    /// Losing it costs two requests.
    fn save(&self) {
        let Some(file) = &self.file else { return };
        let known = self.lock();
        let bytes = serde_json::to_vec(&*known).unwrap_or_default();
        if !known.cluster.is_empty()
            && let Err(error) = write_file(file, &bytes)
        {
            debug!(%error, ?file, "cannot keep what the cluster has");
        }
    }
}

fn read(file: &Path) -> Option<Known> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

impl Known {
    fn get(&self, kind: &Gvk) -> Option<&Resource> {
        self.versions.get(&kind.api_version())?.get(&kind.kind)
    }

    /// Takes over what a whole part of the API says now.
    fn replace(&mut self, address: &str, tag: Option<&str>, list: &Value) {
        let is_of_part = |version: &str| version.contains('/') == (address == "/apis");
        let (versions, unanswered) = aggregated(list);
        self.versions.retain(|version, _| !is_of_part(version));
        self.unanswered.retain(|version| !is_of_part(version));
        self.versions.extend(versions);
        self.unanswered.extend(unanswered);
        match tag {
            Some(tag) => drop(self.tags.insert(address.to_owned(), tag.to_owned())),
            None => drop(self.tags.remove(address)),
        }
    }
}

type Versions = BTreeMap<String, BTreeMap<String, Resource>>;

/// Reads an `APIGroupDiscoveryList`: the kinds of each version, and the versions that do not answer.
fn aggregated(list: &Value) -> (Versions, BTreeSet<String>) {
    let (mut versions, mut unanswered) = (Versions::new(), BTreeSet::new());
    for group in list["items"].as_array().into_iter().flatten() {
        let name = group["metadata"]["name"].as_str().unwrap_or_default();
        for version in group["versions"].as_array().into_iter().flatten() {
            let Some(number) = version["version"].as_str() else { continue };
            let api_version = if name.is_empty() { number.to_owned() } else { format!("{name}/{number}") };
            if version["freshness"] == "Stale" {
                unanswered.insert(api_version);
                continue;
            }
            let resources = version["resources"].as_array().into_iter().flatten();
            let resources = resources.filter_map(|resource| {
                let (plural, kind) = (&resource["resource"], &resource["responseKind"]["kind"]);
                entry(&api_version, plural, kind, resource["scope"] == "Namespaced")
            });
            versions.insert(api_version.clone(), resources.collect());
        }
    }
    (versions, unanswered)
}

/// Reads an `APIResourceList`, subresources left out.
fn of_version(api_version: &str, list: &Value) -> BTreeMap<String, Resource> {
    let resources = list["resources"].as_array().into_iter().flatten();
    let resources = resources.filter_map(|resource| {
        entry(api_version, &resource["name"], &resource["kind"], resource["namespaced"] == true)
    });
    resources.collect()
}

fn entry(api_version: &str, plural: &Value, kind: &Value, namespaced: bool) -> Option<(String, Resource)> {
    let (plural, kind) = (plural.as_str()?, kind.as_str()?);
    path_segment("resource", plural).ok()?;
    let scope = if namespaced { KindScope::Namespaced } else { KindScope::Cluster };
    Some((kind.to_owned(), Resource { api_version: api_version.to_owned(), plural: plural.to_owned(), scope }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewright_engine::object::ObjectId;
    use serde_json::json;

    #[test]
    fn the_list_of_one_version_leaves_subresources_out() {
        let list = json!({"resources": [
            {"name": "deployments", "kind": "Deployment", "namespaced": true},
            {"name": "deployments/scale", "kind": "Scale", "namespaced": true},
            {"name": 5},
        ]});
        let found = of_version("apps/v1", &list);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["Deployment"]);
        let deployment = &found["Deployment"];
        assert_eq!(deployment.everywhere(), "/apis/apps/v1/deployments");
        let id = ObjectId::new("apps", "Deployment", "infra", "edge");
        assert_eq!(deployment.collection(&id).ok().as_deref(), Some("/apis/apps/v1/namespaces/infra/deployments"));
    }

    #[test]
    fn a_version_that_does_not_answer_is_silent_and_not_absent() {
        let list = |freshness: &str, resources: Value| {
            json!({"items": [{
                "metadata": {"name": "metrics.k8s.io"},
                "versions": [{"version": "v1beta1", "freshness": freshness, "resources": resources}],
            }]})
        };
        let pods = json!([{"resource": "pods", "responseKind": {"kind": "PodMetrics"}, "scope": "Namespaced"}]);
        let mut known = Known::default();
        known.replace("/apis", Some("\"1\""), &list("Current", pods));
        let kind = Gvk::new("metrics.k8s.io/v1beta1", "PodMetrics");
        assert_eq!(known.get(&kind).map(|resource| resource.plural.as_str()), Some("pods"));
        known.replace("/apis", None, &list("Stale", json!([])));
        assert!(known.get(&kind).is_none() && known.unanswered.contains("metrics.k8s.io/v1beta1"));
        assert!(known.tags.is_empty());
        known.replace("/apis", None, &json!({"items": []}));
        assert_eq!(known, Known::default());
    }
}
