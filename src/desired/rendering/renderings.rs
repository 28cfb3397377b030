//! The renderings of a sync, shared by its clusters and kept from round to round.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use gatewright_engine::explain::{Inputs, Origins, Questions, origins};
use gatewright_engine::marks::Marker;
use gatewright_engine::overlay::Variant;
use gatewright_engine::pack::Packs;
use gatewright_engine::pack::manifest::Manifest;
use gatewright_engine::selector::{ClusterFacts, Fleet};
use gatewright_engine::text::{digest, hex};
use gatewright_engine::tree::Entry;
use gatewright_engine::unit::marked::Marked;
use sha2::{Digest, Sha256};

use crate::config::settings::SyncSettings;
use crate::desired::rendering::Reading;
use crate::desired::rendering::work::{Pending, RenderingError, Terms, is_due_again};
use crate::process::service::Progress;
use crate::source::Snapshot;

/// The most renderings of one snapshot that are kept: that of a large source takes tens of megabytes. Where there are
/// more, those that were not needed for the longest time are made again.
const MOST_RENDERINGS: usize = 16;

/// The renderings of a sync, shared by its clusters: a source that has not changed is not rendered again, and not once
/// for each of two clusters on which it is the same.
pub struct Renderings {
    settings: SyncSettings,
    packs: Arc<Packs>,
    /// Names the packs and their settings.
    packs_key: String,
    marker: Marker,
    /// All clusters that there are, if anybody knows.
    fleet: Option<Arc<Fleet>>,
    /// The same, in a few bytes.
    fleet_key: String,
    progress: Option<Progress>,
    last: Mutex<Edition>,
    /// The part of a key that all clusters share, of the snapshot that was last asked about.
    key: Mutex<(Weak<Snapshot>, String)>,
}

/// The results that were made of one revision.
#[derive(Default)]
struct Edition {
    revision: String,
    reading: Pending<Reading>,
    /// The packs that want to know what a cluster can do.
    asking: Option<Vec<Arc<Manifest>>>,
    /// Those needed last stand last.
    renderings: Vec<(Variant, Pending<Marked>)>,
}

impl Renderings {
    /// Prepares renderings for one sync, whose mark is put on them: last, after everything that may change an object.
    ///
    /// `packs_key` names the packs and their settings: other packs have another one.
    pub fn new(settings: SyncSettings, packs: Arc<Packs>, packs_key: &str, marker: Marker) -> Self {
        let (packs_key, last, key) = (packs_key.to_owned(), Mutex::default(), Mutex::default());
        Self { settings, packs, packs_key, marker, fleet: None, fleet_key: String::new(), progress: None, last, key }
    }

    /// Shows where work does not come to an end.
    #[must_use]
    pub fn watched(self, progress: &Progress) -> Self {
        Self { progress: Some(progress.clone()), ..self }
    }

    /// Adds all clusters that there are, for overlays that name others.
    #[must_use]
    pub fn among(self, fleet: &Arc<Fleet>) -> Self {
        Self { fleet: Some(Arc::clone(fleet)), fleet_key: digest(format!("{fleet:?}").as_bytes()), ..self }
    }

    /// Forgets what was read and rendered: it is made again when somebody asks.
    pub(crate) fn forget(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Edition::default();
    }

    fn terms(&self) -> Terms {
        let (limit, title) = (self.settings.render_timeout, self.marker.sync.clone());
        Terms { limit, title, progress: self.progress.clone() }
    }

    /// Returns the rendering of a snapshot for a cluster; clusters that ask at the same time wait for the first.
    pub(super) async fn of(
        self: &Arc<Self>,
        snapshot: &Arc<Snapshot>,
        cluster: &ClusterFacts,
    ) -> Result<Arc<Marked>, RenderingError> {
        let reading = self.read(snapshot).await?;
        let rendering = self.rendering(&snapshot.revision, reading.variant(cluster));
        let (renderings, cluster) = (Arc::clone(self), cluster.clone());
        let render = move || reading.render(&renderings.packs, &cluster).marked(&renderings.marker);
        self.terms().once(rendering, render).await
    }

    /// Says where fields of objects come from; nothing if that cannot be found out in time.
    pub(super) async fn origins(
        self: &Arc<Self>,
        snapshot: &Arc<Snapshot>,
        cluster: &ClusterFacts,
        questions: Questions,
    ) -> Origins {
        let Ok(reading) = self.read(snapshot).await else { return Origins::new() };
        let (renderings, cluster) = (Arc::clone(self), cluster.clone());
        let look = move || {
            let options = reading.options(Some(&cluster));
            let inputs = Inputs { source: reading.source(), packs: &renderings.packs, options: &options, config: None };
            origins(&inputs, &questions)
        };
        let origins = self.terms().once(Pending::default(), look).await;
        origins.map(Arc::unwrap_or_clone).unwrap_or_default()
    }

    /// Returns what those packs say of themselves that want to know of a cluster whether an operator is at work, because
    /// one of their specs may be in the snapshot. The text is enough to tell that: mostly there is none.
    pub(super) fn asking(&self, snapshot: &Snapshot) -> Vec<Arc<Manifest>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = last.asking.as_ref().filter(|_| last.revision == snapshot.revision) {
            return known.clone();
        }
        let tree = snapshot.tree.below(&self.settings.path);
        let occurs = |kind: &str| {
            tree.files().any(|(_, entry)| match entry {
                Entry::Text(text) => text.contains(kind),
                Entry::Unreadable(_) | Entry::NotEntered(_) => false,
            })
        };
        let manifests =
            self.packs.all().iter().map(|pack| &pack.manifest).filter(|manifest| manifest.operator.is_some());
        let asking = manifests.filter(|manifest| manifest.claims.iter().any(|claim| occurs(&claim.kind)));
        let asking: Vec<Arc<Manifest>> = asking.map(|manifest| Arc::new(manifest.clone())).collect();
        if last.revision == snapshot.revision {
            last.asking = Some(asking.clone());
        }
        asking
    }

    /// Returns a snapshot as it is read for all clusters.
    pub(super) async fn read(self: &Arc<Self>, snapshot: &Arc<Snapshot>) -> Result<Arc<Reading>, RenderingError> {
        let (renderings, source) = (Arc::clone(self), Arc::clone(snapshot));
        let fleet = self.fleet.clone();
        let read = move || Reading::new(&source, &renderings.settings, &renderings.packs).among(fleet);
        self.terms().once(self.reading(&snapshot.revision), read).await
    }

    /// Names everything that the rendering of a snapshot for a cluster depends on, and all that the sync may do: where it
    /// is the same, the plan is, if the cluster is.
    pub(super) fn key(&self, snapshot: &Arc<Snapshot>, cluster: &ClusterFacts) -> String {
        digest(format!("{} {cluster:?}", self.key_of_all(snapshot)).as_bytes())
    }

    /// Names all of it that has nothing to do with the cluster: made once, because many clusters ask for it.
    fn key_of_all(&self, snapshot: &Arc<Snapshot>) -> String {
        let mut last = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        // As long as somebody remembers where it is, nothing else is there.
        if Weak::as_ptr(&last.0) != Arc::as_ptr(snapshot) {
            *last = (Arc::downgrade(snapshot), self.made_key(snapshot));
        }
        last.1.clone()
    }

    fn made_key(&self, snapshot: &Snapshot) -> String {
        let mut hasher = Sha256::new();
        let mut add = |text: &str| {
            hasher.update((text.len() as u64).to_le_bytes());
            hasher.update(text);
        };
        add(&program());
        add(&self.packs_key);
        add(&serde_json::to_string(&self.settings).unwrap_or_default());
        add(&format!("{:?} {:?}", self.marker, self.fleet_key));
        for (path, entry) in snapshot.tree.below(&self.settings.path).files() {
            add(path);
            match entry {
                Entry::Text(text) => add(text),
                Entry::Unreadable(reason) | Entry::NotEntered(reason) => add(reason),
            }
        }
        hex(&hasher.finalize())
    }

    /// Names everything that renderings of a revision depend on, but for the cluster.
    pub(super) fn target(&self, revision: &str) -> String {
        let settings = serde_json::to_string(&self.settings).unwrap_or_default();
        digest(
            format!("{:?}", (program(), &self.packs_key, settings, &self.marker, &self.fleet_key, revision)).as_bytes(),
        )
    }

    fn reading(&self, revision: &str) -> Pending<Reading> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.revision != revision || is_due_again(&last.reading) {
            *last = Edition { revision: revision.to_owned(), ..Edition::default() };
        }
        Arc::clone(&last.reading)
    }

    fn rendering(&self, revision: &str, variant: Variant) -> Pending<Marked> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.revision != revision {
            // The source has moved on meanwhile, and nobody else will ask for this.
            return Pending::default();
        }
        last.renderings.retain(|(_, pending)| !is_due_again(pending));
        let known = last.renderings.iter().position(|(known, _)| *known == variant);
        let entry = known.map_or_else(|| (variant, Pending::default()), |index| last.renderings.remove(index));
        let rendering = Arc::clone(&entry.1);
        last.renderings.push(entry);
        let surplus = last.renderings.len().saturating_sub(MOST_RENDERINGS);
        last.renderings.drain(..surplus);
        rendering
    }
}

/// Tells this program from every other build of it.
fn program() -> String {
    let file = std::fs::metadata("/proc/self/exe").ok();
    let built = file.and_then(|file| Some((file.len(), file.modified().ok()?)));
    format!("{} {built:?}", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const SPECS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra}
spec: {gatewayClassName: kgateway, listeners: [{name: http, port: 8080, protocol: HTTP}]}
---
apiVersion: gatewright.dev/v1alpha1
kind: ClusterOverlay
metadata: {name: eu}
spec: {priority: 1, clusters: {matchLabels: {region: eu}}, parameters: {kube: {deployment: {replicas: 3}}}}
---
apiVersion: gatewright.dev/v1alpha1
kind: ClusterOverlay
metadata: {name: for-all}
spec: {parameters: {kube: {deployment: {replicas: 2}}}}
";

    fn renderings() -> Arc<Renderings> {
        let pack = gatewright_packs::pack("kgateway", &Value::Null).expect("it is sound");
        let settings = serde_json::from_value(json!({"source": "specs", "clusters": {}})).expect("a test knows them");
        let packs = Arc::new(Packs::new(vec![pack]).expect("it is sound"));
        let marker = Marker::new("i", "gateways");
        Arc::new(Renderings::new(settings, packs, "packs", marker))
    }

    fn snapshot(revision: &str) -> Arc<Snapshot> {
        let tree = [("specs.yaml", SPECS)].into_iter().collect();
        Arc::new(Snapshot::new(revision.to_owned(), tree))
    }

    async fn of(renderings: &Arc<Renderings>, snapshot: &Arc<Snapshot>, name: &str, region: &str) -> Arc<Marked> {
        let labels = [("region".to_owned(), region.to_owned())].into();
        let cluster = ClusterFacts { name: name.to_owned(), labels, ..ClusterFacts::default() };
        renderings.of(snapshot, &cluster).await.expect("rendering ends in no bug")
    }

    #[tokio::test]
    async fn clusters_with_the_same_overlays_share_a_rendering() {
        let (renderings, snapshot) = (renderings(), snapshot("one"));
        let eu = of(&renderings, &snapshot, "eu-1", "eu").await;
        let us = of(&renderings, &snapshot, "us-1", "us").await;
        assert!(Arc::ptr_eq(&eu, &of(&renderings, &snapshot, "eu-2", "eu").await));
        assert!(Arc::ptr_eq(&us, &of(&renderings, &snapshot, "lab", "here").await));
        let replicas = |rendering: &Marked| {
            let mut objects = rendering.units[0].objects.iter();
            objects.find_map(|object| object.body()["spec"]["replicas"].as_u64())
        };
        assert_eq!((replicas(&eu), replicas(&us)), (Some(3), Some(2)));
    }

    #[tokio::test]
    async fn another_revision_is_rendered_again() {
        let renderings = renderings();
        let old = of(&renderings, &snapshot("one"), "eu-1", "eu").await;
        let new = of(&renderings, &snapshot("two"), "eu-1", "eu").await;
        assert!(!Arc::ptr_eq(&old, &new) && old.units == new.units);
        assert!(Arc::ptr_eq(&new, &of(&renderings, &snapshot("two"), "eu-2", "eu").await));
    }

    #[test]
    fn no_more_renderings_are_kept_than_fit() {
        let renderings = renderings();
        let reading = Reading::new(&snapshot("one"), &renderings.settings, &renderings.packs);
        let variant = |region: &str| {
            let labels = [("region".to_owned(), region.to_owned())].into();
            reading.variant(&ClusterFacts { labels, ..ClusterFacts::default() })
        };
        drop(renderings.reading("one"));
        let kept = renderings.rendering("one", variant("eu"));
        assert!(Arc::ptr_eq(&kept, &renderings.rendering("one", variant("eu"))));
        assert!(!Arc::ptr_eq(&kept, &renderings.rendering("one", variant("us"))));
        assert!(!Arc::ptr_eq(&kept, &renderings.rendering("gone", variant("eu"))));
    }

    #[test]
    fn whatever_a_rendering_depends_on_changes_its_key() {
        let cluster = ClusterFacts { name: "eu-1".to_owned(), ..ClusterFacts::default() };
        let key = |renderings: &Renderings| renderings.key(&snapshot("one"), &cluster);
        let first = renderings();
        let same = key(&first);
        assert_eq!(first.key(&snapshot("two"), &cluster), same, "another commit with the same files is the same");
        let other = ClusterFacts { name: "eu-2".to_owned(), ..ClusterFacts::default() };
        let annotated = ClusterFacts { annotations: [("ip".to_owned(), "a".to_owned())].into(), ..cluster.clone() };
        let (packs, settings) = (Arc::clone(&first.packs), first.settings.clone());
        let pruning = serde_json::from_value(json!({"source": "specs", "clusters": {}, "prune": {"enabled": false}}));
        let keys = [
            first.key(&snapshot("one"), &other),
            first.key(&snapshot("one"), &annotated),
            first.key(
                &Arc::new(Snapshot { tree: [("a.yaml", SPECS)].into_iter().collect(), ..(*snapshot("one")).clone() }),
                &cluster,
            ),
            key(&Renderings::new(settings.clone(), Arc::clone(&packs), "others", first.marker.clone())),
            key(&Renderings::new(
                pruning.expect("a test knows them"),
                Arc::clone(&packs),
                "packs",
                first.marker.clone(),
            )),
            key(&Renderings::new(
                settings,
                packs,
                "packs",
                Marker { installation: "j".to_owned(), ..first.marker.clone() },
            )),
        ];
        for other in keys {
            assert_ne!(other, same);
        }
    }
}
