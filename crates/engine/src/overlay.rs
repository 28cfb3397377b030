//! The effects of `ClusterOverlay`s: who is governed by which, and in which order.
//!
//! An overlay belongs to the platform and wins over what a Gateway and its class say. Of two overlays the one with the
//! higher priority wins, then the one with the more specific target; two of one rank that contradict each other are a
//! problem, and what they both govern is held. Targets are compared with Gateways as they stand in the source, so that
//! no overlay depends on what another has patched.

mod expression;
pub(crate) mod filled;
pub mod idle;
mod names;
mod nodes;
pub(crate) mod object;
mod patch;
mod read;
pub(crate) mod specs;
mod table;
pub(crate) mod ties;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::check::check_layer;
use crate::enforce::Rule;
use crate::enforce::words::Vocabulary;
use crate::merge::origin::{Layer, LayerName};
use crate::object::ObjectId;
use crate::pack::{Pack, Packs};
use crate::problem::{Place, Problem};
use crate::schema::Schema;
use crate::selector::{Capabilities, ClusterFacts, ClusterSelector, labels_match};
use crate::spec::overlay::{GROUP, GatewayName, KIND, OverlaySpec, SpecName, Target};
use crate::spec::{Document, GATEWAY_API, Specs};
use crate::yaml::{Content, Field, Node};
pub use expression::fill;
use filled::{Filled, Hole, Unfilled};
use table::Table;

/// An overlay that can be used.
#[derive(Clone, Debug)]
pub struct Overlay {
    /// As it was written.
    pub document: Document,
    /// The spec of the overlay.
    pub spec: OverlaySpec,
    /// The rules that it enforces, ready to be checked.
    pub(crate) rules: Vec<Rule>,
    /// The texts in which values of a cluster go.
    holes: Vec<Hole>,
    /// Its table of such values.
    pub(crate) table: Option<Table>,
    /// The values that were put there.
    pub(crate) filled: Vec<Filled>,
    /// Warnings for Gateways and classes that it names and that are not in the source.
    lost: Vec<Problem>,
}

/// The rank of an overlay; of two, the one of the greater rank wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    /// Its priority.
    pub priority: i32,
    /// The specificity of its target.
    pub specificity: Specificity,
}

/// The way in which a target is given; of several ways the most specific counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Specificity {
    /// Not at all: everything.
    All,
    /// By kind.
    Kind,
    /// By class.
    Class,
    /// By label.
    Labels,
    /// By name.
    Name,
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = match self.specificity {
            Specificity::All => "all Gateways",
            Specificity::Kind => "specs by kind",
            Specificity::Class => "Gateways by class",
            Specificity::Labels => "specs by label",
            Specificity::Name => "specs by name",
        };
        write!(f, "have priority {} and select {target}", self.priority)
    }
}

/// A document that should be an overlay and is not: it holds what it may be about.
#[derive(Clone, Debug)]
struct Broken {
    place: Place,
    /// As far as they can be read; `None`: any.
    clusters: Option<ClusterSelector>,
    target: Target,
}

/// The overlays of a source, whatever cluster they are for.
#[derive(Clone, Debug, Default)]
pub struct Overlays {
    /// The lowest first.
    usable: Vec<Arc<Overlay>>,
    broken: Vec<Broken>,
    /// The clusters for which packs have settings of their own.
    settings: Vec<ClusterSelector>,
    /// Whether a rule for all clusters looks at the cluster.
    reads_cluster: bool,
    /// Whether what is rendered may depend on what the cluster can do.
    pub asks_clusters: bool,
    /// Problems with them, beyond their form.
    pub problems: Vec<Problem>,
}

/// The facts that distinguish the rendering of a source for one cluster from that for another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Variant {
    overlays: BTreeSet<Place>,
    /// The settings of packs that are for it alone, by their numbers.
    settings: BTreeSet<usize>,
    /// The values of the cluster that overlays take, or lack.
    values: Vec<Result<String, String>>,
    /// The cluster itself, where that makes a difference.
    cluster: Option<ClusterFacts>,
    /// Its capabilities, where that makes a difference.
    capabilities: Option<Capabilities>,
}

impl Variant {
    /// Returns what it has in common with clusters on which the same overlays are in force with other values: fields come
    /// from the same lines there.
    #[must_use]
    pub fn without_values(self) -> Self {
        Self { values: Vec::new(), ..self }
    }
}

/// The overlays that are in force on one cluster, by the specs that they govern.
#[derive(Clone, Debug, Default)]
pub struct Assignment {
    governed: BTreeMap<ObjectId, Vec<Arc<Overlay>>>,
    /// The reasons why nobody knows what governs a spec.
    held: BTreeMap<ObjectId, String>,
    /// The problems with overlays on this cluster alone.
    pub(crate) problems: Vec<Problem>,
    /// The cluster, if it is known.
    pub(crate) cluster: Option<ClusterFacts>,
}

/// The overlays that are in force on a cluster.
#[derive(Default)]
struct InForce<'a> {
    /// With its values in them, the lowest first.
    filled: Vec<Arc<Overlay>>,
    /// Those that lack a value, with the place where they do.
    lacking: Vec<(&'a Overlay, Place)>,
}

impl Overlays {
    /// Reads the overlays of a source.
    pub fn read(specs: &Specs, packs: &Packs) -> Self {
        let words = Vocabulary::of_all(packs.kinds());
        let asks = |document: &Document| {
            let pack = packs.claiming(&document.id.group, &document.id.kind);
            pack.is_some_and(Pack::asks_clusters)
        };
        let mut overlays = Self {
            settings: packs.all().iter().flat_map(Pack::cluster_selectors).cloned().collect(),
            reads_cluster: packs.rules().any(Rule::reads_cluster),
            asks_clusters: specs.documents.values().any(asks),
            ..Self::default()
        };
        for document in specs.of_kind(GROUP, KIND) {
            match Overlay::read(document, &words, specs) {
                Ok(mut overlay) => {
                    overlay.lost = names::lost(&overlay, specs, packs);
                    overlays.problems.extend(overlay.lost.iter().cloned());
                    overlays.usable.push(Arc::new(overlay));
                }
                Err(problems) => {
                    overlays.problems.extend(problems);
                    overlays.broken.push(Broken::of(document));
                }
            }
        }
        overlays.broken.extend(specs.broken_overlays.iter().map(Broken::of));
        // They stand in the order of their names, and a stable sort leaves equal ranks so.
        overlays.usable.sort_by_key(|overlay| overlay.rank());
        overlays
    }

    /// Returns what a rendering for a cluster depends on: where it is the same, the rendering is.
    pub fn variant(&self, cluster: Option<&ClusterFacts>) -> Variant {
        let usable: Vec<&Arc<Overlay>> = self.usable.iter().filter(|overlay| overlay.is_in_force(cluster)).collect();
        let reads_cluster = |overlay: &&Arc<Overlay>| overlay.rules.iter().any(Rule::reads_cluster);
        let is_special = self.reads_cluster || usable.iter().any(reads_cluster);
        let broken =
            self.broken.iter().filter(|broken| ClusterSelector::selects_any(broken.clusters.as_ref(), cluster));
        let places = usable.iter().map(|overlay| overlay.document.place());
        let places = places.chain(broken.map(|broken| broken.place.clone()));
        let capabilities = cluster.filter(|_| self.asks_clusters).and_then(|cluster| cluster.capabilities.clone());
        let selects = |(_, selector): &(usize, &ClusterSelector)| ClusterSelector::selects_any(Some(selector), cluster);
        let settings = self.settings.iter().enumerate().filter(selects).map(|(number, _)| number).collect();
        let taken = |cluster| usable.iter().flat_map(move |overlay| overlay.taken(cluster));
        let values = cluster.into_iter().flat_map(taken).collect();
        Variant {
            overlays: places.collect(),
            settings,
            values,
            cluster: cluster.filter(|_| is_special).cloned(),
            capabilities,
        }
    }

    /// Returns a cluster for each overlay, and for settings of packs, that are in force on none of these: what they say is
    /// to be checked all the same.
    pub fn examples(&self, known: &[ClusterFacts]) -> BTreeSet<ClusterFacts> {
        let is_idle = |selector: Option<&ClusterSelector>| {
            !known.iter().any(|cluster| ClusterSelector::selects_any(selector, Some(cluster)))
        };
        let broken = self.broken.iter().filter_map(|broken| broken.clusters.as_ref());
        let selectors = broken.chain(&self.settings).filter(|selector| is_idle(Some(selector)));
        let usable = self.usable.iter().filter(|overlay| is_idle(overlay.spec.clusters.as_ref()));
        usable.filter_map(|overlay| overlay.example()).chain(selectors.filter_map(ClusterSelector::example)).collect()
    }

    /// Finds out which overlays govern which specs on a cluster.
    pub(crate) fn on(&self, cluster: Option<&ClusterFacts>, specs: &Specs) -> Assignment {
        let mut assignment = Assignment { cluster: cluster.cloned(), ..Assignment::default() };
        let in_force = self.in_force(cluster, &mut assignment.problems);
        let is_spec = |document: &&Document| {
            !matches!(document.id.group_kind(), (GROUP, KIND) | (GATEWAY_API, "GatewayClass" | "ListenerSet"))
        };
        let claimed = specs.documents.values().filter(is_spec).map(|spec| (spec.id.clone(), spec));
        for (id, spec) in claimed.chain(specs.unclaimed_objects()) {
            let governs = |overlay: &Overlay| targets(overlay.spec.target.as_ref(), (&id, &spec.root), specs);
            let governing: Vec<Arc<Overlay>> = in_force.filled.iter().filter(|it| governs(it)).cloned().collect();
            let holds = |broken: &&Broken| {
                ClusterSelector::selects_any(broken.clusters.as_ref(), cluster)
                    && targets(Some(&broken.target), (&id, &spec.root), specs)
            };
            if let Some(broken) = self.broken.iter().find(holds) {
                assignment.held.insert(id.clone(), format!("a ClusterOverlay is broken, see {}", broken.place));
            } else if let Some((_, place)) = in_force.lacking.iter().find(|(it, _)| governs(it)) {
                let reason = format!("a ClusterOverlay lacks a value of the cluster, see {place}");
                assignment.held.insert(id.clone(), reason);
            }
            if !governing.is_empty() {
                assignment.governed.insert(id, governing);
            }
        }
        assignment
    }

    /// Returns the overlays that are in force on a cluster, with its values in them. Without a cluster there is no value,
    /// and what takes one is in force nowhere.
    fn in_force(&self, cluster: Option<&ClusterFacts>, problems: &mut Vec<Problem>) -> InForce<'_> {
        let mut found = InForce::default();
        let nowhere = ClusterFacts::default();
        for overlay in self.usable.iter().filter(|overlay| overlay.is_in_force(cluster)) {
            match overlay.filled(cluster.unwrap_or(&nowhere)) {
                Ok(overlay) => found.filled.push(overlay),
                Err(Unfilled::Untried(warnings)) => problems.extend(warnings),
                Err(Unfilled::Lacking(lacking)) => {
                    found.lacking.extend(lacking.first().map(|problem| (&**overlay, problem.place.clone())));
                    problems.extend(lacking);
                }
            }
        }
        found
    }
}

impl Assignment {
    /// Returns the overlays that govern a Gateway, the lowest first.
    pub fn of(&self, gateway: &ObjectId) -> Vec<&Overlay> {
        self.governed.get(gateway).into_iter().flatten().map(|overlay| &**overlay).collect()
    }

    /// Returns the reason why nobody knows what governs a Gateway, if there is one: an overlay that may be about it is
    /// broken, or lacks a value of the cluster.
    pub(crate) fn held(&self, gateway: &ObjectId) -> Option<&str> {
        self.held.get(gateway).map(String::as_str)
    }
}

impl Overlay {
    /// Returns which of two wins.
    pub(crate) fn rank(&self) -> Rank {
        Rank { priority: self.spec.priority, specificity: specificity(self.spec.target.as_ref()) }
    }

    /// Returns its parameters as a layer.
    pub fn layer(&self) -> Option<Layer<'_>> {
        Some(Layer::new(LayerName::Overlay, Arc::clone(&self.document.file), self.parameters()?))
    }

    /// Returns the files that it is made of.
    pub(crate) fn files(&self) -> impl Iterator<Item = Arc<str>> {
        let table = self.table.as_ref().map(|table| Arc::clone(&table.file));
        [Arc::clone(&self.document.file)].into_iter().chain(table)
    }

    fn parameters(&self) -> Option<&Node> {
        self.document.root.at(["spec", "parameters"]).filter(|node| node.content != Content::Null)
    }

    /// Checks its parameters against the kind that they are merged into.
    pub(crate) fn check_parameters(&self, schema: &Schema) -> Vec<Problem> {
        let Some(node) = self.parameters() else { return Vec::new() };
        self.document.problems(check_layer(node, schema, "spec", &["spec", "parameters"]))
    }

    fn is_in_force(&self, cluster: Option<&ClusterFacts>) -> bool {
        self.selects(cluster) && (cluster.is_some() || !self.takes_values())
    }

    fn selects(&self, cluster: Option<&ClusterFacts>) -> bool {
        ClusterSelector::selects_any(self.spec.clusters.as_ref(), cluster)
    }

    /// Returns a cluster on which it would be in force: of those in its table the first that it selects.
    fn example(&self) -> Option<ClusterFacts> {
        let usual = match &self.spec.clusters {
            Some(selector) => selector.example()?,
            None if self.takes_values() => {
                ClusterFacts { name: "any".to_owned(), is_example: true, ..ClusterFacts::default() }
            }
            None => return None,
        };
        let named = |name: &str| ClusterFacts { name: name.to_owned(), ..usual.clone() };
        let mut listed = self.table.iter().flat_map(Table::clusters).map(named);
        Some(listed.find(|cluster| self.is_in_force(Some(cluster))).unwrap_or(usual))
    }
}

impl fmt::Display for GatewayName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "Gateway {namespace}/{}", self.name),
            None => write!(f, "Gateway {}", self.name),
        }
    }
}

impl SpecName {
    /// Tells whether a spec is one of those.
    fn is(&self, id: &ObjectId, specs: &Specs) -> bool {
        self.kind == id.kind
            && self.group.as_ref().is_none_or(|group| *group == id.group)
            && self.namespace.as_ref().is_none_or(|said| specs.namespace(said) == id.namespace)
            && self.name.as_ref().is_none_or(|name| *name == id.name)
    }
}

impl Broken {
    fn of(document: &Document) -> Self {
        let clusters = part::<ClusterSelector>(document, "clusters").filter(|clusters| !clusters.is_empty());
        Self { place: document.place(), clusters, target: part(document, "target").unwrap_or_default() }
    }
}

/// Reads one field of the spec of a document that is broken somewhere.
fn part<T: DeserializeOwned>(document: &Document, field: &str) -> Option<T> {
    let node: &Node = document.root.at(["spec", field])?;
    serde_json::from_value(node.to_value()).ok()
}

/// Tells whether a cluster is selected. Without a cluster, only what is for all of them is.
fn specificity(target: Option<&Target>) -> Specificity {
    let is_named = |specs: &Vec<SpecName>| specs.iter().all(|spec| spec.name.is_some());
    match target {
        Some(Target { gateways: Some(_), .. }) => Specificity::Name,
        Some(Target { specs: Some(specs), .. }) if is_named(specs) => Specificity::Name,
        Some(Target { match_labels: Some(_), .. } | Target { match_expressions: Some(_), .. }) => Specificity::Labels,
        Some(Target { gateway_classes: Some(_), .. }) => Specificity::Class,
        Some(Target { specs: Some(_), .. }) => Specificity::Kind,
        Some(Target {
            gateways: None,
            specs: None,
            match_labels: None,
            match_expressions: None,
            gateway_classes: None,
        })
        | None => Specificity::All,
    }
}

/// Tells whether a spec, as it was written, is what a target says. Who does not say what kind of specs, means Gateways.
fn targets(target: Option<&Target>, (id, root): (&ObjectId, &Node), specs: &Specs) -> bool {
    let is_gateway = id.is_a(GATEWAY_API, "Gateway");
    let Some(target) = target else { return is_gateway };
    let text = |path: [&str; 2]| root.at(path).and_then(Node::as_str);
    let in_namespace = |said: &String| specs.namespace(said) == id.namespace;
    let is_named = |wanted: &GatewayName| {
        is_gateway && wanted.name == id.name && wanted.namespace.as_ref().is_none_or(in_namespace)
    };
    let by_name = target.gateways.as_ref().is_none_or(|names| names.iter().any(is_named));
    let by_kind = target.specs.as_ref().map_or(is_gateway, |names| names.iter().any(|wanted| wanted.is(id, specs)));
    let has_class = |class: &String| is_gateway && text(["spec", "gatewayClassName"]) == Some(class);
    let by_class = target.gateway_classes.as_ref().is_none_or(|classes| classes.iter().any(has_class));
    let pair = |(key, field): (&str, &Field)| Some((key.to_owned(), field.node.as_str()?.to_owned()));
    let labels = root.at(["metadata", "labels"]).into_iter().flat_map(Node::fields).filter_map(pair).collect();
    let by_label = labels_match(&labels, target.match_labels.as_ref(), target.match_expressions.as_deref());
    by_name && by_kind && by_class && by_label
}
