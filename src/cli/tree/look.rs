//! The state of the objects of units on a cluster, with the pods of workloads.

use std::collections::BTreeSet;

use futures::stream::{self, StreamExt, TryStreamExt};
use gatewright_engine::health::{Readiness, health, pods};
use gatewright_engine::kinds;
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, Object, ObjectId};
use gatewright_engine::references::images;
use gatewright_engine::relations::{Part, is_made_for, parts, pod_labels};
use gatewright_engine::unit::Unit;
use serde_json::Value;

use crate::cluster::{Cluster, ClusterError, Search};
use crate::reconcile::requests::only_local;

/// The number of objects that are looked at beside each other.
const AT_ONCE: usize = 8;

/// An object, and how it is.
#[derive(Clone)]
pub(super) struct Node {
    /// Its identity.
    pub(super) id: ObjectId,
    /// As it is wanted.
    pub(super) body: Value,
    /// In words.
    pub(super) state: String,
    /// The images that git asks for.
    pub(super) images: BTreeSet<String>,
    /// Its parts, as its operator tells of them, each in words.
    pub(super) parts: Vec<String>,
    /// Its pods, each in words.
    pub(super) pods: Vec<String>,
}

impl Node {
    /// Says what it is and how it is.
    pub(super) fn line(&self) -> String {
        let images: Vec<&str> = self.images.iter().map(String::as_str).collect();
        let parts = [self.id.to_string(), self.state.clone(), images.join(", ")];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("  ")
    }
}

/// Looks at units, and returns the objects of each.
pub(super) async fn look<'a>(
    cluster: &dyn Cluster,
    units: impl Iterator<Item = &'a Unit>,
    kinds: &kinds::Table,
) -> Result<Vec<(ObjectId, Vec<Node>)>, ClusterError> {
    let mut found = Vec::new();
    for unit in units {
        let looks = stream::iter(unit.all()).map(|object| look_at(cluster, object, kinds)).buffered(AT_ONCE);
        let nodes: Vec<Vec<Node>> = looks.try_collect().await?;
        found.push((unit.id.clone(), nodes.concat()));
    }
    Ok(found)
}

/// Looks at an object, and at what an operator has made of it. What cannot be looked at says why.
async fn look_at(cluster: &dyn Cluster, object: &Object, kinds: &kinds::Table) -> Result<Vec<Node>, ClusterError> {
    let images = images(object.body(), kinds).into_iter().map(str::to_owned).collect();
    let (id, body) = (object.id().clone(), object.body().clone());
    let mut node = Node { id, body, state: String::new(), images, parts: Vec::new(), pods: Vec::new() };
    let live = match cluster.get(&object.gvk(), object.id()).await {
        Ok(live) => live,
        Err(error) => return only_local(error).map(|state| vec![Node { state, ..node }]),
    };
    match live {
        None => "it is not there".clone_into(&mut node.state),
        Some(_) if !cluster.has_health() => {}
        Some(live) => {
            node.state = health(live.object.body(), Readiness::default(), kinds).to_string();
            node.parts = parts(live.object.body(), kinds).iter().map(part).collect();
        }
    }
    if !node.images.is_empty() || kinds.of(object.id()).pod_label.is_some() {
        node.pods =
            pods_of(cluster, object, &node.images, kinds).await.or_else(|error| Ok(vec![only_local(error)?]))?;
    }
    let made = made(cluster, object, kinds).await.or_else(|error| only_local(error).map(|_| Vec::new()))?;
    Ok([node].into_iter().chain(made).collect())
}

/// Says of a part of an object how many of it are ready.
fn part(Part { name, ready, wanted }: &Part) -> String {
    let wanted = wanted.map_or_else(String::new, |wanted| format!(" of {wanted}"));
    format!("part {name}  {ready}{wanted} ready")
}

fn containers(template: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["initContainers", "containers"].into_iter();
    lists.filter_map(|field| template["spec"][field].as_array()).flatten()
}

/// Says how the pods of a workload are, and which other images they run.
async fn pods_of(
    cluster: &dyn Cluster,
    object: &Object,
    images: &BTreeSet<String>,
    kinds: &kinds::Table,
) -> Result<Vec<String>, ClusterError> {
    let labels = match (pod_labels(object.body()), &kinds.of(object.id()).pod_label) {
        (Some(labels), _) => {
            labels.iter().filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?))).collect::<Vec<_>>()
        }
        // What makes pods in groups marks them by its name.
        (None, Some(label)) => vec![format!("{label}={}", object.id().name)],
        (None, None) => return Ok(Vec::new()),
    };
    let (labels, namespace) = (labels.join(","), object.id().namespace.as_str());
    let search = Search { namespace, labels: &labels, fields: "" };
    let pods = cluster.search(&Gvk::new("v1", "Pod"), search).await?;
    let label = kinds.of(object.id()).pod_part.as_deref();
    let parted = |live: &Live| label.and_then(|label| live.object.label(label)).map(str::to_owned);
    let mut pods: Vec<(Option<String>, &Object)> = pods.iter().map(|live| (parted(live), &live.object)).collect();
    pods.sort_by(|(part, pod), (other, next)| (part, pod.id()).cmp(&(other, next.id())));
    Ok(pods.into_iter().map(|(part, it)| pod(it.body(), (&it.id().name, part.as_deref()), images)).collect())
}

fn pod(body: &Value, (name, part): (&str, Option<&str>), images: &BTreeSet<String>) -> String {
    let part = part.map(|part| format!("  {part}")).unwrap_or_default();
    let state = pods::trouble(body).map_or_else(|| "ready".to_owned(), |trouble| trouble.what);
    let running = containers(body).filter_map(|container| container["image"].as_str());
    let others: BTreeSet<&str> = running.filter(|image| !images.contains(*image)).collect();
    let others = others.into_iter().collect::<Vec<_>>().join(", ");
    let others = if others.is_empty() { others } else { format!("  runs {others}") };
    format!("Pod {name}{part}  {state}{others}")
}

/// Returns what an operator has made of an object.
async fn made(cluster: &dyn Cluster, object: &Object, kinds: &kinds::Table) -> Result<Vec<Node>, ClusterError> {
    let Some(makes) = &kinds.of(object.id()).makes else { return Ok(Vec::new()) };
    let kind = Gvk { kind: makes.kind.clone(), ..object.gvk() };
    let search = Search { namespace: &object.id().namespace, labels: "", fields: "" };
    let made = cluster.search(&kind, search).await?;
    let made = made.into_iter().filter(|live| is_made_for(object.id(), makes, live.object.body()));
    Ok(made
        .map(|live| Node {
            id: live.object.id().clone(),
            state: format!("{}, made by the operator", health(live.object.body(), Readiness::default(), kinds)),
            body: live.object.into_body(),
            images: BTreeSet::new(),
            parts: Vec::new(),
            pods: Vec::new(),
        })
        .collect())
}
