//! A snapshot to what a sync wants on each of its clusters.
//!
//! A snapshot is read once, and rendered once for all clusters on which it comes to the same: that is a matter of the
//! overlays that are in force there.

pub mod renderings;
pub mod work;

use std::collections::BTreeMap;
use std::sync::Arc;

use gatewright_engine::explain::{Origins, Questions};
use gatewright_engine::kinds;
use gatewright_engine::marks::Marker;
use gatewright_engine::object::{Object, ObjectId};
use gatewright_engine::overlay::Variant;
use gatewright_engine::pack::Packs;
use gatewright_engine::pack::manifest::Manifest;
use gatewright_engine::problem::{Place, Problem};
use gatewright_engine::selector::{Capabilities, ClusterFacts, Fleet};
use gatewright_engine::unit::marked::Marked;
use gatewright_engine::unit::{Options, Rendering, Source, Unit};
use jiff::Timestamp;

use crate::config::Config;
use crate::config::settings::{SpecsMode, SyncSettings, Unclaimed};
use crate::report::ProblemReport;
use crate::source::Snapshot;
use renderings::Renderings;
use work::RenderingError;

/// The renderings, by cluster.
pub type Rendered = BTreeMap<String, Arc<Rendering>>;

/// The objects that are wanted, by cluster.
pub type Wanted = BTreeMap<String, Want>;

/// The objects that are wanted on a cluster, marks included: rendered, or to be rendered when somebody needs them.
#[derive(Clone)]
pub enum Want {
    /// It is there.
    Ready(Arc<Marked>),
    /// It can be made.
    Later {
        /// Of all clusters of the sync.
        renderings: Arc<Renderings>,
        /// The snapshot to render.
        snapshot: Arc<Snapshot>,
        /// For which cluster.
        cluster: ClusterFacts,
    },
}

impl Want {
    /// Takes what was rendered already, and marks it.
    pub fn ready(rendering: Rendering, marker: &Marker) -> Self {
        Self::Ready(Arc::new(rendering.marked(marker)))
    }

    /// Leaves rendering for later.
    pub fn later(renderings: &Arc<Renderings>, snapshot: &Arc<Snapshot>, cluster: &ClusterFacts) -> Self {
        let (renderings, snapshot) = (Arc::clone(renderings), Arc::clone(snapshot));
        Self::Later { renderings, snapshot, cluster: cluster.clone() }
    }

    /// Names everything that it depends on; `None` if that is not known.
    pub fn key(&self) -> Option<String> {
        let Self::Later { renderings, snapshot, cluster } = self else { return None };
        Some(renderings.key(snapshot, cluster))
    }

    /// Names what is wanted, whatever the cluster, and the revision; `None` of what no source says.
    pub fn target(&self) -> Option<(String, String)> {
        let Self::Later { renderings, snapshot, .. } = self else { return None };
        Some((renderings.target(&snapshot.revision), snapshot.revision.clone()))
    }

    /// Returns what those packs say of themselves that want to know what the cluster can do.
    pub fn asking(&self) -> Vec<Arc<Manifest>> {
        let Self::Later { renderings, snapshot, .. } = self else { return Vec::new() };
        renderings.asking(snapshot)
    }

    /// Adds what the cluster can do.
    pub fn know(&mut self, capabilities: &Capabilities) {
        if let Self::Later { cluster, .. } = self {
            cluster.capabilities = Some(capabilities.clone());
        }
    }

    /// Returns it, rendered.
    pub async fn rendering(&self) -> Result<Arc<Marked>, RenderingError> {
        match self {
            Self::Ready(rendering) => Ok(Arc::clone(rendering)),
            Self::Later { renderings, snapshot, cluster } => renderings.of(snapshot, cluster).await,
        }
    }

    /// Returns what it has in common with clusters on which the same is wanted; `None` of what was rendered before its
    /// source was known, or if its source cannot be read.
    pub async fn variant(&self) -> Option<Variant> {
        let Self::Later { renderings, snapshot, cluster } = self else { return None };
        renderings.read(snapshot).await.ok().map(|reading| reading.variant(cluster))
    }

    /// Says where in the source fields of objects come from; nothing of what was rendered before its source was known.
    pub async fn origins(&self, questions: Questions) -> Origins {
        let Self::Later { renderings, snapshot, cluster } = self else { return Origins::new() };
        renderings.origins(snapshot, cluster, questions).await
    }
}

/// A snapshot as a sync reads it, for any number of clusters.
#[derive(Debug)]
pub struct Reading {
    source: Source,
    options: Options,
    unclaimed: Unclaimed,
    /// The problem with the sync's part of the snapshot as a whole.
    problem: Option<Problem>,
}

impl Reading {
    /// Reads a snapshot.
    ///
    /// Blocking: a large source takes seconds.
    pub fn new(snapshot: &Snapshot, settings: &SyncSettings, packs: &Packs) -> Self {
        let options = Options {
            target_namespace: settings.target_namespace.clone(),
            common_labels: settings.common_labels.clone(),
            common_annotations: settings.common_annotations.clone(),
            apply_unclaimed: settings.unclaimed == Unclaimed::Apply,
            apply_specs: settings.specs == SpecsMode::Apply,
            copy_addresses: settings.copy_addresses,
            cluster: None,
            fleet: None,
            is_check: false,
            // The day is no change of a source, and a rendering is kept until there is one.
            now: None,
        };
        let tree = snapshot.tree.below(&settings.path);
        let is_lost = tree.is_empty() && !snapshot.tree.is_empty() && !settings.prune.allow_empty;
        let problem = is_lost.then(|| {
            let place = Place::file(settings.path.as_str());
            let problem = Problem::document(place, "there are no specs below this path of the source");
            problem.hint("correct the path of the sync")
        });
        let folders = settings.overlays.folders(&settings.allow);
        let mut source = Source::load_from(&tree, packs, options.target_namespace.as_deref(), folders);
        if !options.apply_unclaimed {
            source.specs.forget_unclaimed();
        }
        Self { source, options, unclaimed: settings.unclaimed, problem }
    }

    /// Adds all clusters that there are.
    #[must_use]
    pub fn among(mut self, fleet: Option<Arc<Fleet>>) -> Self {
        self.options.fleet = fleet;
        self
    }

    /// Returns what was read.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Returns what the sync says about all that it renders for a cluster.
    pub fn options(&self, cluster: Option<&ClusterFacts>) -> Options {
        Options { cluster: cluster.cloned(), ..self.options.clone() }
    }

    /// Returns what the rendering for a cluster depends on.
    pub fn variant(&self, cluster: &ClusterFacts) -> Variant {
        self.source.overlays.variant(Some(cluster))
    }

    /// Renders it for a cluster, and for all others of the same variant.
    ///
    /// Blocking, as [`Reading::new`].
    pub fn render(&self, packs: &Packs, cluster: &ClusterFacts) -> Rendering {
        let mut rendering = self.source.render(packs, &self.options(Some(cluster)));
        rendering.problems.extend(self.problem.clone());
        if self.unclaimed == Unclaimed::Report {
            rendering.problems.extend(self.source.overlays.unapplied(&self.source.specs));
        }
        if self.unclaimed == Unclaimed::Error {
            let problem = |(id, place): &(ObjectId, _)| {
                Problem::document(Place::clone(place), "no pack claims this document").about(id.clone())
            };
            rendering.problems.extend(rendering.unclaimed.iter().map(problem));
        }
        rendering
    }
}

/// Renders specs for clusters to see whether they can be, once for each variant; without clusters once, under the overlays
/// for all. Of objects no more is held than who they are. Documents that no pack claims are tried as well where a sync is
/// to `apply_unclaimed`. Certificates are to be valid `now`.
pub fn check_all(
    source: &Source,
    (packs, apply_unclaimed): (&Packs, bool),
    now: Timestamp,
    clusters: impl IntoIterator<Item = ClusterFacts>,
) -> Rendered {
    let render = |cluster: Option<&ClusterFacts>| {
        let cluster = cluster.cloned();
        let now = Some(now.as_second());
        Arc::new(source.render(packs, &Options { cluster, apply_unclaimed, is_check: true, now, ..Options::default() }))
    };
    let (mut variants, mut wanted) = (BTreeMap::new(), Rendered::new());
    for cluster in clusters {
        let variant = source.overlays.variant(Some(&cluster));
        let rendering = Arc::clone(variants.entry(variant).or_insert_with(|| render(Some(&cluster))));
        wanted.insert(cluster.name, rendering);
    }
    if wanted.is_empty() { Rendered::from([(String::new(), render(None))]) } else { wanted }
}

/// Returns all objects with their units, in the order in which they are applied.
pub fn in_order<'a>(rendering: &'a Rendering, kinds: &kinds::Table) -> Vec<(&'a Unit, &'a Object)> {
    let mut objects: Vec<(&Unit, &Object)> =
        rendering.units.iter().flat_map(|unit| unit.all().map(move |object| (unit, object))).collect();
    objects.sort_by_key(|(unit, object)| (kinds.wave(&unit.id), &unit.id, kinds.order(object.id()), object.id()));
    objects
}

/// Returns what overlays can know of the clusters that a sync selects.
pub fn facts_of(config: &Config, sync: &SyncSettings) -> Vec<ClusterFacts> {
    config.clusters_of(sync).into_iter().map(|(name, settings)| settings.facts(name)).collect()
}

/// Collects what is wrong: what is wrong everywhere without the names of clusters.
pub fn problems<'a>(wanted: &BTreeMap<&'a str, &'a [Problem]>) -> Vec<ProblemReport> {
    let mut clusters: BTreeMap<&Problem, Vec<String>> = BTreeMap::new();
    for (name, problems) in wanted {
        for problem in *problems {
            let names = clusters.entry(problem).or_default();
            // One cluster may have a problem twice, once for each of two units.
            if names.last().is_none_or(|last| last != name) {
                names.push((*name).to_owned());
            }
        }
    }
    let everywhere = |names: Vec<String>| if names.len() == wanted.len() { Vec::new() } else { names };
    let report = |(problem, names): (&Problem, _)| ProblemReport {
        problem: problem.clone(),
        clusters: everywhere(names),
        since: None,
    };
    clusters.into_iter().map(report).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewright_engine::tree::Tree;
    use serde_json::Value;

    const GATEWAY: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra}
spec: {gatewayClassName: kgateway, listeners: [{name: http, port: 8080, protocol: HTTP}]}
";

    /// Renders for four clusters in two regions, and counts how often.
    #[track_caller]
    fn check(overlay: &str, renderings: usize) {
        let overlay = format!(
            "apiVersion: gatewright.dev/v1alpha1\nkind: ClusterOverlay\nmetadata: {{name: a}}\nspec: {overlay}"
        );
        let pack = gatewright_packs::pack("kgateway", &Value::Null).expect("it is sound");
        let packs = Packs::new(vec![pack]).expect("it is sound");
        let tree = Tree::from_iter([("gateway.yaml", GATEWAY), ("overlay.yaml", &overlay)]);
        let source = Source::load(&tree, &packs, None);
        let cluster = |(name, region): (&str, &str)| ClusterFacts {
            name: name.to_owned(),
            labels: [("region".to_owned(), region.to_owned())].into(),
            ..ClusterFacts::default()
        };
        let clusters = [("a", "eu"), ("b", "eu"), ("c", "us"), ("d", "us")].map(cluster);
        let wanted = check_all(&source, (&packs, false), Timestamp::UNIX_EPOCH, clusters);
        let made: std::collections::BTreeSet<*const Rendering> = wanted.values().map(Arc::as_ptr).collect();
        assert_eq!((wanted.len(), made.len()), (4, renderings), "{overlay}");
    }

    #[test]
    fn documents_that_no_pack_claims_are_kept_whole_only_where_they_are_applied() {
        let unclaimed = |word: &str| {
            let text = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: b}\n";
            let settings = serde_json::json!({"source": "specs", "clusters": {}, "unclaimed": word});
            let settings: SyncSettings = serde_json::from_value(settings).expect("a test knows them");
            let snapshot = Snapshot::new("r".to_owned(), Tree::from_iter([("a.yaml", text)]));
            let packs = Packs::new(Vec::new()).expect("there are none");
            let source = Reading::new(&snapshot, &settings, &packs).source;
            (source.specs.unclaimed[0].id.name.clone(), source.specs.unclaimed[0].root.get("stringData").is_some())
        };
        assert_eq!(unclaimed("report"), ("a".to_owned(), false));
        assert_eq!(unclaimed("apply"), ("a".to_owned(), true));
    }

    #[test]
    fn what_is_the_same_is_rendered_once() {
        check("{parameters: {kube: {deployment: {replicas: 3}}}}", 1);
        check("{clusters: {matchLabels: {region: eu}}, parameters: {kube: {deployment: {replicas: 3}}}}", 2);
        check("{clusters: {names: [a]}, parameters: {kube: {deployment: {replicas: 3}}}}", 2);
        check("{clusters: {names: [x]}, parameters: {kube: {deployment: {replicas: 3}}}}", 1);
        check("{enforce: [{rule: kube.deployment.replicas > 1}]}", 1);
        check("{enforce: [{rule: cluster.labels.region == 'eu'}]}", 4);
        check("{clusters: {matchLabels: {region: eu}}, enforce: [{rule: cluster.name != 'x'}]}", 3);
        check("{clusters: {matchLabels: {region: eu}}, mistake: true}", 2);
        check("{parameters: {kube: {service: {extraLabels: {a: '{{ cluster.labels.region }}'}}}}}", 2);
        check("{parameters: {kube: {service: {extraLabels: {a: '{{ cluster.name }}'}}}}}", 4);
        check("{clusters: {names: [a]}, parameters: {kube: {service: {extraLabels: {a: '{{ cluster.name }}'}}}}}", 2);
    }
}
