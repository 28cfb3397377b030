//! From a source to units: the whole way of a snapshot through the engine.
//!
//! A unit is all objects that are rendered from one spec, or one document that no pack claims: what is held, awaited,
//! counted and released together.

pub mod addresses;
mod checks;
mod collisions;
pub(crate) mod duplicates;
pub mod generated;
pub mod marked;
pub mod pairs;
pub mod released;
pub(crate) mod single;
mod specs;
pub mod trace;
mod unclaimed;
mod written;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::enforce::{self, Facts};
use crate::interrupt;
use crate::inventory::Entry;
use crate::kinds;
use crate::live::Live;
use crate::merge::{merge_over, origin::Merged};
use crate::object::{Gvk, Object, ObjectId};
use crate::overlay::idle::Idle;
use crate::overlay::object::Touched;
use crate::overlay::{self, Assignment, Overlays};
use crate::pack::manifest::SettingSource;
use crate::pack::{Packs, Provision, Subject};
use crate::problem::{Place, Problem};
use crate::reading::Reading;
use crate::resolve::{Resolution, Resolved, resolve};
use crate::rules::objects::{self, Finding};
use crate::rules::open::Open;
use crate::selector::{ClusterFacts, Fleet};
use crate::spec::overlay::OverlayFolders;
use crate::spec::{self, Document, Specs};
use crate::tree::Tree;
use generated::Generated;
use released::{Released, is_released};
use single::{Made, Way, rendered};
use specs::{Specifications, Writer};
use trace::{Trace, traces};

/// The options of a sync: what it says about all that it renders, and where to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting by itself")]
pub struct Options {
    /// The namespace that all specs count as written for.
    pub target_namespace: Option<String>,
    /// Labels for every object.
    pub common_labels: BTreeMap<String, String>,
    /// Annotations for every object.
    pub common_annotations: BTreeMap<String, String>,
    /// Whether documents that no pack claims are applied as they are.
    pub apply_unclaimed: bool,
    /// Whether the specs themselves are written to the cluster.
    pub apply_specs: bool,
    /// Whether the copies of Gateways that are written have the addresses of their Services.
    pub copy_addresses: bool,
    /// The cluster; without one, only overlays for all clusters are in force.
    pub cluster: Option<ClusterFacts>,
    /// All clusters that there are; `None` where nobody knows.
    pub fleet: Option<Arc<Fleet>>,
    /// Whether all is only to be checked: of each object that was, no more is held than who it is.
    pub is_check: bool,
    /// The time at which certificates of the source are looked at, in seconds since 1970; without it none has expired.
    pub now: Option<i64>,
}

/// Somebody else who provisions a Gateway, if its control plane is not told to leave that to us.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deployer {
    /// Its field manager.
    pub manager: String,
    /// The pack that renders what it would.
    #[serde(default)]
    pub pack: String,
    /// The parameters that tell it; absent if it cannot be told.
    pub told_by: Option<Declaration>,
    /// The objects of a Gateway that it deletes once it is told.
    #[serde(default)]
    pub deletes: Option<Deletes>,
    /// The settings of the pack that show in what it makes.
    #[serde(default)]
    pub settings: Vec<SettingSource>,
}

/// Objects that a control plane deletes of a Gateway that it does not provision, whoever has made them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deletes {
    /// The label by which it finds them.
    pub label: String,
    /// Their kinds, by group and kind.
    pub kinds: BTreeSet<(String, String)>,
}

/// Parameters that tell a control plane that somebody else provisions a Gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declaration {
    /// Their kind.
    pub gvk: Gvk,
    /// The content of their `spec`.
    pub spec: Value,
}

/// All objects of one spec.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unit {
    /// The spec.
    pub id: ObjectId,
    /// Its place in the source.
    pub place: Place,
    /// The files that had a say in it.
    pub files: BTreeSet<Arc<str>>,
    /// The overlays that had a say in it, by name, each with the digest of its selection of clusters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overlays: BTreeMap<String, String>,
    /// Specs that are written to the cluster: before the objects, and deleted after them.
    pub specs: Vec<Object>,
    /// The objects, in the order of the templates.
    pub objects: Vec<Object>,
    /// Objects with a generated value, one on each cluster.
    pub generated: Vec<Generated>,
    /// Notes on some of them.
    #[serde(with = "pairs")]
    pub notes: BTreeMap<ObjectId, String>,
    /// Somebody else who would provision it.
    pub deployer: Option<Deployer>,
    /// For a document of a kind that no pack knows: where it goes if its kind has namespaces.
    pub home: Option<String>,
}

/// The outcome of rendering a snapshot.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Rendering {
    /// The units that are wanted on a cluster.
    pub units: Vec<Unit>,
    /// Specs that are there but could not be rendered: what exists of them stays as it is.
    pub broken: BTreeSet<ObjectId>,
    /// Specs that somebody else provisions.
    pub self_managed: BTreeSet<ObjectId>,
    /// Those of them that the source leaves to the deployer of their control plane.
    #[serde(default, with = "pairs")]
    pub released: BTreeMap<ObjectId, Released>,
    /// Specs that an operator in the cluster provisions: they go there as they are.
    #[serde(default)]
    pub passed_on: BTreeSet<ObjectId>,
    /// Documents that no pack claims and that are not applied, with their place.
    pub unclaimed: Vec<(ObjectId, Place)>,
    /// Specs that stand in the source and of which no pack renders anything, each with the place that is the reason, and why.
    #[serde(skip)]
    pub unrendered: BTreeMap<ObjectId, (Place, String)>,
    /// Everything that stands in the source, in whatever state: it is not deleted for want of a setting.
    pub documents: BTreeSet<ObjectId>,
    /// Whether the specs are among what is wanted.
    pub applies_specs: bool,
    /// Whether the copy of a Gateway is to have the addresses of its Service.
    #[serde(default)]
    pub copies_addresses: bool,
    /// The kinds of specs, by group and kind.
    pub spec_kinds: BTreeSet<(String, String)>,
    /// By what objects are known that were made for such specs, whoever has made them.
    #[serde(default)]
    pub traces: BTreeSet<Trace>,
    /// Overlays that have no say, or name what is not there, by name.
    #[serde(default)]
    pub idle_overlays: BTreeMap<String, Idle>,
    /// The problems.
    pub problems: Vec<Problem>,
    /// Documents of all kinds that are there and cannot be used, with their place.
    #[serde(default, with = "pairs")]
    pub flawed: BTreeMap<ObjectId, Place>,
    /// The evidence of the reading about specs that are not there.
    #[serde(default)]
    pub reading: Reading,
    /// References of which only a cluster can tell whether they lead anywhere.
    #[serde(skip)]
    pub open: Open,
}

/// The specs of a source, read once for any number of clusters.
#[derive(Clone, Debug)]
pub struct Source {
    /// The documents.
    pub specs: Specs,
    /// The overlays among them.
    pub overlays: Overlays,
}

impl Source {
    /// Reads a snapshot.
    pub fn load(tree: &Tree, packs: &Packs, target_namespace: Option<&str>) -> Self {
        Self::load_from(tree, packs, target_namespace, OverlayFolders::All)
    }

    /// Reads a snapshot in which overlays count only where they stand in some folders.
    pub fn load_from(
        tree: &Tree,
        packs: &Packs,
        target_namespace: Option<&str>,
        overlay_folders: OverlayFolders,
    ) -> Self {
        let specs = spec::load(tree, packs, target_namespace, overlay_folders);
        Self { overlays: Overlays::read(&specs, packs), specs }
    }

    /// Renders it for one cluster.
    pub fn render(&self, packs: &Packs, options: &Options) -> Rendering {
        let assignment = self.overlays.on(options.cluster.as_ref(), &self.specs);
        let specs = overlay::specs::patch(&self.specs, &assignment, packs.kinds());
        let is_spec = |id: &&ObjectId| packs.is_spec(&id.group, &id.kind);
        let fleet = options.fleet.as_deref();
        let mut rendering = Rendering {
            broken: specs.broken.keys().filter(is_spec).cloned().collect(),
            documents: specs.documents.keys().chain(specs.broken.keys()).cloned().collect(),
            problems: [&specs.problems[..], &assignment.problems, &self.overlays.problems_in(fleet)].concat(),
            flawed: specs.broken.clone(),
            reading: specs.reading.clone(),
            applies_specs: options.apply_specs,
            copies_addresses: options.copy_addresses,
            spec_kinds: specs::kinds(packs),
            idle_overlays: self.overlays.idle(options.cluster.as_ref(), fleet),
            ..Rendering::default()
        };
        let mut writer = Writer::new(&specs, options);
        let mut unclaimed: Vec<&Document> = specs.unclaimed.iter().collect();
        let mut foreign = BTreeSet::new();
        let (mut touched, mut findings) = (Touched::new(), Vec::new());
        for (document, resolution) in resolve(&specs, packs, &assignment) {
            if interrupt::is_given() {
                return rendering;
            }
            match resolution {
                Resolution::Ready(resolved) => {
                    rendering.add_alone(&resolved, &mut writer, (options, &mut touched, &mut findings));
                }
                Resolution::NotOurs { controller, place } => {
                    let why =
                        format!("the controller {controller:?} of its class is one for which no pack renders anything");
                    rendering.unrendered.insert(document.id.clone(), (place, why));
                    foreign.insert(&document.id);
                    unclaimed.push(document);
                }
                Resolution::Broken(problems) => rendering.add_broken(document, problems),
            }
        }
        unclaimed.extend(unclaimed::foreign(&specs, packs, &foreign));
        rendering.add_unclaimed(unclaimed, (packs, &specs, &assignment), (options, &mut touched, &mut findings));
        writer.finish(&mut rendering, packs);
        rendering.check_object_patches(&assignment, &touched);
        rendering.check_rules(&specs, (packs, options), findings);
        rendering.traces = traces(packs, &rendering.units);
        rendering.refuse_collisions();
        rendering.units.sort_by(|a, b| a.id.cmp(&b.id));
        rendering.problems.sort();
        // What is wrong with one line is said once, however many Gateways depend on it.
        rendering.problems.dedup();
        rendering.unclaimed.sort();
        rendering
    }
}

/// The order to render a spec, and what is noted on the way: the patches that were used, and what was found in pods.
type Asked<'a> = (&'a Options, &'a mut Touched, &'a mut Vec<Finding>);

/// Renders a snapshot. Same inputs, same bytes.
pub fn render(tree: &Tree, packs: &Packs, options: &Options) -> Rendering {
    Source::load(tree, packs, options.target_namespace.as_deref()).render(packs, options)
}

impl Rendering {
    /// Adds a spec. A bug that it has come upon is the trouble of that spec, and takes no other one with it.
    fn add_alone(&mut self, resolved: &Resolved<'_>, writer: &mut Writer<'_>, asked: Asked<'_>) {
        // What `add` has noted so far is no part of the spec: its unit comes last.
        if catch_unwind(AssertUnwindSafe(|| self.add(resolved, writer, asked))).is_err() {
            let problem = resolved.document.problem(&[], "internal error: rendering it ended in a bug");
            self.add_broken(resolved.document, vec![problem.hint("see the log, and please report it")]);
        }
    }

    fn add(&mut self, resolved: &Resolved<'_>, writer: &mut Writer<'_>, (options, touched, findings): Asked<'_>) {
        match is_released(resolved.document) {
            Ok(false) => {}
            Ok(true) => return self.release(resolved, writer),
            Err(problem) => return self.add_broken(resolved.document, vec![*problem]),
        }
        let subject = subject(resolved, options);
        let defaults = || resolved.kind.generator.defaults(&subject);
        let ties = overlay::ties::of_parameters(&resolved.overlays, &resolved.layers, &resolved.kind.table, defaults);
        if !ties.is_empty() {
            return self.add_broken(resolved.document, ties);
        }
        let parameters = parameters(resolved, &subject);
        let facts = Facts { parameters: &parameters, spec: resolved.document, cluster: options.cluster.as_ref() };
        let (mut breaches, warnings) = checks::check(resolved, &facts);
        breaches.extend(enforce::check(resolved.rules(), &facts));
        if !breaches.is_empty() {
            return self.add_broken(resolved.document, breaches);
        }
        self.problems.extend(warnings);
        self.problems.extend(resolved.kind.generator.lint(&subject, &parameters));
        let made = match rendered(resolved, &subject, &parameters, (options, touched), &mut self.problems) {
            Ok(made) => made,
            Err(problems) => return self.add_broken(resolved.document, problems),
        };
        let specs = match made.way {
            Way::Rendered => writer.rendered(resolved),
            Way::PassedOn => Ok(Specifications::default()),
            Way::SelfManaged => writer.self_managed(resolved),
        };
        let Specifications { objects: specs, notes } = match specs {
            Ok(specs) => specs,
            Err(problem) => return self.add_broken(resolved.document, vec![*problem]),
        };
        match made.way {
            Way::Rendered => {}
            Way::PassedOn => drop(self.passed_on.insert(resolved.document.id.clone())),
            Way::SelfManaged => drop(self.self_managed.insert(resolved.document.id.clone())),
        }
        findings.extend(objects::find(&made.objects, resolved, &subject.specs.kinds));
        let deployer = Deployer::of(resolved.pack).filter(|_| made.way == Way::Rendered);
        let Made { mut objects, generated, .. } = made;
        if let Some(deletes) = deployer.as_ref().and_then(|it| it.deletes.as_ref()).filter(|_| !specs.is_empty()) {
            objects = objects.into_iter().map(|object| deletes.hide(object)).collect();
        }
        if options.is_check {
            objects = objects.iter().map(Object::outlined).collect();
        }
        if !objects.is_empty() || !specs.is_empty() {
            self.units.push(Unit { specs, objects, generated, notes, deployer, ..Unit::fed(resolved) });
        }
    }

    /// Leaves a spec to its deployer, and says so as long as its source does.
    fn release(&mut self, resolved: &Resolved<'_>, writer: &Writer<'_>) {
        let id = resolved.document.id.clone();
        match writer.released(resolved) {
            Ok(released) => {
                self.problems.push(released.warning(&id));
                self.self_managed.insert(id.clone());
                self.released.insert(id, released);
            }
            Err(problem) => self.add_broken(resolved.document, vec![*problem]),
        }
    }

    fn add_broken(&mut self, document: &Document, problems: Vec<Problem>) {
        self.flawed.insert(document.id.clone(), document.place());
        self.broken.insert(document.id.clone());
        self.problems.extend(problems);
    }

    /// Takes out the units for whose objects an overlay has a patch that has found none of them, and says which patch
    /// was for more objects of a unit than its author may know of.
    fn check_object_patches(&mut self, overlays: &Assignment, touched: &Touched) {
        let objects = |unit: &Unit| unit.objects.iter().map(|object| object.id().clone()).collect();
        let rendered = self.units.iter().map(|unit| (unit.id.clone(), objects(unit))).collect();
        self.problems.extend(overlay::object::broad(overlays, &rendered));
        for (problem, units) in overlay::object::untouched(overlays, &rendered, &self.broken, touched) {
            let of_units = self.units.iter().filter(|unit| units.contains(&unit.id));
            self.flawed.extend(of_units.map(|unit| (unit.id.clone(), unit.place.clone())));
            self.problems.push(problem);
            self.units.retain(|unit| !units.contains(&unit.id));
            self.broken.extend(units);
        }
    }
}

impl Unit {
    /// Begins the unit of a document.
    fn of(document: &Document) -> Self {
        let files = BTreeSet::from([Arc::clone(&document.file)]);
        Self { files, ..Self::empty(document.id.clone(), document.place()) }
    }

    /// Begins the unit of a spec, with all that had a say in it.
    fn fed(resolved: &Resolved<'_>) -> Self {
        let files = resolved.files.clone();
        Self { files, ..Self::of(resolved.document).governed(&resolved.overlays) }
    }

    /// Begins a unit that holds nothing yet and that no file has fed.
    pub(crate) fn empty(id: ObjectId, place: Place) -> Self {
        Self {
            id,
            place,
            files: BTreeSet::new(),
            overlays: BTreeMap::new(),
            specs: Vec::new(),
            objects: Vec::new(),
            generated: Vec::new(),
            notes: BTreeMap::new(),
            deployer: None,
            home: None,
        }
    }

    /// Returns what an inventory says of one of its objects.
    pub(crate) fn entry(&self, gvk: &Gvk, uid: Option<String>, adopted: bool) -> Entry {
        let (gvk, unit, overlays) = (gvk.clone(), self.id.clone(), self.overlays.clone());
        let files = self.files.iter().map(ToString::to_string).collect();
        Entry { gvk, uid, unit, adopted, files, overlays }
    }

    /// Returns everything of it that is wanted on a cluster; what has a generated value is without it.
    pub fn all(&self) -> impl Iterator<Item = &Object> {
        self.specs.iter().chain(self.generated.iter().map(|generated| &generated.object)).chain(&self.objects)
    }

    /// Returns one of its objects as an object with a generated value, if it is one.
    pub fn generated(&self, id: &ObjectId) -> Option<&Generated> {
        self.generated.iter().find(|generated| generated.object.id() == id)
    }

    /// Returns one of its objects with the value that was made for the live one, if that has one.
    pub fn with_kept<'a>(&self, object: &'a Object, live: &Live) -> Cow<'a, Object> {
        let kept = self.generated(object.id()).and_then(|generated| generated.kept(live));
        kept.map_or(Cow::Borrowed(object), Cow::Owned)
    }

    /// Tells whether its copy in the cluster tells a control plane to leave it to us.
    pub fn is_told(&self) -> bool {
        !self.specs.is_empty() && self.deployer.as_ref().is_some_and(|deployer| deployer.told_by.is_some())
    }

    /// Returns the label that an object must not bear, because its Gateway's control plane would delete it.
    pub fn forbidden_label(&self, id: &ObjectId) -> Option<&str> {
        let deletes = self.deployer.as_ref().filter(|_| self.is_told())?.deletes.as_ref()?;
        deletes.is_about(id).then_some(&deletes.label)
    }

    /// Changes every object.
    pub(crate) fn map(&mut self, change: impl Fn(Object) -> Object) {
        for objects in [&mut self.specs, &mut self.objects] {
            *objects = std::mem::take(objects).into_iter().map(&change).collect();
        }
        for generated in &mut self.generated {
            generated.object = change(generated.object.clone());
        }
    }
}

/// Decides what becomes of a spec.
pub fn values(resolved: &Resolved<'_>, subject: &Subject<'_>) -> Result<Provision, Vec<Problem>> {
    resolved.kind.generator.values(subject, &parameters(resolved, subject))
}

/// Returns the merged parameters of one spec.
pub fn parameters(resolved: &Resolved<'_>, subject: &Subject<'_>) -> Merged {
    let defaults = resolved.kind.generator.defaults(subject);
    merge_over(defaults, &resolved.layers, &resolved.kind.table)
}

/// Returns what generators and post-processors see of a resolved spec.
pub fn subject<'a>(resolved: &'a Resolved<'_>, options: &'a Options) -> Subject<'a> {
    Subject {
        document: resolved.document,
        gateway: &resolved.gateway,
        namespace: &resolved.document.id.namespace,
        class: &resolved.gateway.spec.gateway_class_name,
        listener_sets: &resolved.listener_sets,
        listener_set_documents: &resolved.listener_set_documents,
        layers: &resolved.layers,
        specs: resolved.specs,
        capabilities: options.cluster.as_ref().and_then(|cluster| cluster.capabilities.as_ref()),
    }
}

/// Puts an object where it belongs, and adds what the sync adds to all.
fn finish(object: Object, namespace: &str, kinds: &kinds::Table, options: &Options) -> Object {
    let pairs = |map: &BTreeMap<String, String>| map.clone().into_iter();
    let home = if kinds.is_cluster_scoped(&object.gvk()) { "" } else { namespace };
    object
        .in_namespace(home)
        .with_metadata("labels", pairs(&options.common_labels))
        .with_metadata("annotations", pairs(&options.common_annotations))
}
