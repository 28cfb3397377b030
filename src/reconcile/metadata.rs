//! A look at the metadata of what bears our label: who is there, and who has been touched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::FutureExt;
use gatewright_engine::fingerprint::Metadata;
use gatewright_engine::live::Live;
use gatewright_engine::marks::{Marker, SYNC_LABEL};
use gatewright_engine::object::{Gvk, Object, ObjectId, is_secret};
use jiff::Timestamp;
use serde_json::json;

use crate::cluster::{Cluster, ClusterError, MetadataList, Range};
use crate::reconcile::requests::{join_bounded, only_local};

/// The metadata that a cluster shows.
#[derive(Clone, Debug, Default)]
pub struct MetadataView {
    /// The objects that bear our label; shared, because each look keeps those of the looks before it.
    pub objects: BTreeMap<ObjectId, Arc<Metadata>>,
    /// The kinds that were looked at.
    pub kinds: BTreeMap<Gvk, Look>,
}

/// When and at what a kind was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// The state of the cluster.
    pub version: u64,
    /// Its clock.
    pub date: Option<Timestamp>,
}

impl MetadataView {
    /// Looks at the kinds of some objects, where that was not done yet; `None` if this sort of cluster shows no metadata.
    ///
    /// A kind that cannot be looked at is left out. Secrets are only looked at in the namespaces of these objects.
    pub async fn widened(
        mut self,
        cluster: &dyn Cluster,
        objects: &BTreeMap<ObjectId, Gvk>,
        marker: &Marker,
    ) -> Result<Option<Self>, ClusterError> {
        let mut places: BTreeMap<&Gvk, BTreeSet<Option<&str>>> = BTreeMap::new();
        for (id, gvk) in objects.iter().filter(|(_, gvk)| !self.kinds.contains_key(*gvk)) {
            // Whoever may ask for Secrets in all namespaces may read those of everybody.
            let is_secret = is_secret(&gvk.group, &gvk.kind);
            places.entry(gvk).or_default().insert(is_secret.then_some(id.namespace.as_str()));
        }
        let label = marker.label();
        let mut looks = Vec::new();
        for (gvk, namespaces) in places {
            for namespace in namespaces {
                let range = Range { label: Some((SYNC_LABEL, &label)), namespace };
                looks.push(cluster.list_metadata(gvk, range).map(move |listed| (gvk, listed)).boxed());
            }
        }
        let mut failed = BTreeSet::new();
        for (gvk, listed) in join_bounded(looks).await {
            match listed {
                Ok(None) => return Ok(None),
                Ok(Some(listed)) => self.add(gvk, listed),
                Err(error) => {
                    drop(only_local(error)?);
                    failed.insert(gvk.clone());
                }
            }
        }
        self.kinds.retain(|gvk, _| !failed.contains(gvk));
        Ok(Some(self))
    }

    fn add(&mut self, gvk: &Gvk, listed: MetadataList) {
        let look = self.kinds.entry(gvk.clone()).or_insert(Look { version: listed.version, date: listed.date });
        // Of several looks at a kind the earliest counts.
        look.version = look.version.min(listed.version);
        look.date = look.date.min(listed.date);
        self.objects.extend(listed.objects.into_iter().map(|metadata| (metadata.id(gvk), Arc::new(metadata))));
    }

    /// Returns what is seen of an object, and the cluster's time at which it was.
    pub fn of(&self, id: &ObjectId, gvk: &Gvk) -> Option<(&Metadata, Option<Timestamp>)> {
        Some((self.objects.get(id)?, self.kinds.get(gvk)?.date))
    }

    /// Returns the newest state of the cluster that was seen, by kind.
    pub fn versions(&self) -> BTreeMap<String, u64> {
        self.kinds.iter().map(|(gvk, look)| (gvk.to_string(), look.version)).collect()
    }

    /// Tells whether the cluster was set back to a state before one that was seen earlier: its versions then begin to
    /// repeat themselves.
    pub fn is_older_than(&self, versions: &BTreeMap<String, u64>) -> bool {
        let is_older =
            |(gvk, look): (&Gvk, &Look)| versions.get(&gvk.to_string()).is_some_and(|seen| look.version < *seen);
        self.kinds.iter().any(is_older)
    }
}

/// Returns an object of which nothing is known but that it is there, unchanged, and how old it is.
pub(super) fn outline(id: &ObjectId, gvk: &Gvk, metadata: &Metadata) -> Option<Live> {
    let body = json!({
        "apiVersion": gvk.api_version(), "kind": gvk.kind,
        "metadata": {
            "name": id.name, "namespace": id.namespace, "uid": metadata.uid,
            "creationTimestamp": metadata.creation_timestamp,
        },
    });
    let object = Object::new(body).ok()?;
    Some(Live { object, uid: metadata.uid.clone(), resource_version: metadata.resource_version.clone() })
}
