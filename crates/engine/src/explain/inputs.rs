//! The inputs that the objects of one unit are made of, and who says them where.

use serde_json::{Value, json};

use super::reads::{Reads, is_used};
use super::spots::{Spot, leaves};
use super::{By, ClusterValue, Inputs, Said};
use crate::merge::merge_over;
use crate::merge::origin::{Layer, LayerName, Merged, Origin};
use crate::overlay::filled::ValueOrigin;
use crate::pack::Provision;
use crate::problem::Place;
use crate::resolve::Resolved;
use crate::spec::Document;
use crate::unit;

/// One unit, and all that goes into it.
pub(super) struct Case<'a> {
    pub(super) resolved: &'a Resolved<'a>,
    pub(super) inputs: &'a Inputs<'a>,
    /// Documents that the pack looks up.
    pub(super) reads: Reads<'a>,
    defaults: Merged,
    settings: Value,
}

/// One of the things that go in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The spec itself, such as the Gateway.
    Spec,
    /// A `ListenerSet`.
    Set(usize),
    /// The lowest layer.
    Defaults,
    /// A layer above it.
    Layer(usize),
    /// The part of a `ClusterOverlay` about objects; its parameters are a layer.
    Overlay(usize),
    /// A document of the source that the pack looks up.
    Read(usize),
    /// A document that is built into the pack.
    Builtin(usize),
    /// The settings of the pack, beside the parameters in it.
    Settings,
    /// The options of a sync for all that it renders.
    Sync,
}

/// One input: all that it says.
pub(super) struct Input {
    pub(super) kind: Kind,
    pub(super) root: Value,
    /// The leaves that may have a say.
    pub(super) leaves: Vec<Spot>,
    /// Leaves that repeat a name which another input says, and can only change with it.
    pub(super) followers: Vec<Spot>,
}

impl<'a> Case<'a> {
    /// Looks at a unit.
    pub(super) fn new(resolved: &'a Resolved<'a>, inputs: &'a Inputs<'a>) -> Self {
        let generator = &resolved.kind.generator;
        let defaults = generator.defaults(&unit::subject(resolved, inputs.options));
        let read = resolved.pack.manifest.reads.iter().map(|claim| (claim.group.as_str(), claim.kind.as_str()));
        let reads = Reads::of(resolved.specs, &**generator, &read.collect::<Vec<_>>());
        Self { resolved, inputs, reads, defaults, settings: generator.settings() }
    }

    /// Returns the merged parameters.
    pub(super) fn parameters(&self) -> Merged {
        merge_over(self.defaults.clone(), &self.resolved.layers, &self.resolved.kind.table)
    }

    /// Returns the values that the templates get.
    pub(super) fn values(&self) -> Option<Value> {
        match unit::values(self.resolved, &unit::subject(self.resolved, self.inputs.options)).ok()? {
            Provision::Values(values) => Some(values),
            Provision::SelfManaged | Provision::PassThrough(_) => None,
        }
    }

    /// Returns everything that goes in, and has something to say.
    pub(super) fn inputs(&self) -> Vec<Input> {
        let sets = (0..self.resolved.listener_set_documents.len()).map(Kind::Set);
        let layers = (0..self.resolved.layers.len()).map(Kind::Layer);
        let overlays = (0..self.resolved.overlays.len()).map(Kind::Overlay);
        let kinds = [Kind::Spec].into_iter().chain(sets).chain([Kind::Defaults, Kind::Settings]).chain(layers);
        kinds.chain(overlays).chain([Kind::Sync]).map(|kind| self.input(kind)).collect()
    }

    /// Returns the documents that the pack looks up for it, as inputs. To find them costs a rendering for each.
    pub(super) fn read(&self) -> Vec<Input> {
        let inputs = self.reads.kinds().map(|kind| self.input(kind));
        inputs.filter(|input| is_used(self, input)).collect()
    }

    fn input(&self, kind: Kind) -> Input {
        let root = self.root(kind);
        let mut leaves = leaves(&root);
        leaves.retain(|spot| !spot.value.is_null() && !is_directive(spot));
        let mut followers = Vec::new();
        if matches!(kind, Kind::Overlay(_)) {
            followers = leaves.iter().filter(|spot| is_target(spot)).cloned().collect();
            leaves.retain(is_in_patch);
        }
        if matches!(kind, Kind::Read(_) | Kind::Builtin(_)) {
            leaves.retain(|spot| spot.steps().next() == Some("spec"));
        }
        if kind == Kind::Defaults && !self.settings.is_null() {
            // What settings say about parameters is varied as a setting.
            let is_builtin = |origin: &Merged| origin.origin.layer == LayerName::Builtin;
            leaves.retain(|spot| self.defaults.part(spot.steps()).is_some_and(is_builtin));
        }
        Input { kind, root, leaves, followers }
    }

    fn root(&self, kind: Kind) -> Value {
        match kind {
            Kind::Spec => self.with_namespace(document(self.resolved.document)),
            Kind::Set(index) => document(self.resolved.listener_set_documents[index]),
            Kind::Defaults => self.defaults.to_value(),
            Kind::Layer(index) => self.resolved.layers[index].node.to_value(),
            Kind::Overlay(index) => document(&self.resolved.overlays[index].document),
            Kind::Read(_) | Kind::Builtin(_) => self.reads.document(kind).map(document).unwrap_or_default(),
            Kind::Settings => self.settings.clone(),
            Kind::Sync => {
                let options = self.inputs.options;
                json!({
                    "targetNamespace": options.target_namespace,
                    "commonLabels": options.common_labels,
                    "commonAnnotations": options.common_annotations,
                })
            }
        }
    }

    /// A Gateway that names no namespace is in one all the same, and might name another.
    fn with_namespace(&self, mut root: Value) -> Value {
        let is_free = self.inputs.options.target_namespace.is_none();
        if let Some(metadata) = root["metadata"].as_object_mut().filter(|_| is_free) {
            let namespace = self.resolved.document.id.namespace.as_str();
            metadata.entry("namespace").or_insert_with(|| namespace.into());
        }
        root
    }

    /// Returns the other values that a parameter may have, if there are only some.
    pub(super) fn choices(&self, input: &Input, spot: &Spot) -> Vec<Value> {
        if !matches!(input.kind, Kind::Defaults | Kind::Layer(_)) {
            return Vec::new();
        }
        let known = self.inputs.packs.kinds().get(&self.resolved.kind.kind.name());
        let values = known.map(|kind| kind.schema.values_at(["spec"].into_iter().chain(spot.steps())));
        values.unwrap_or_default().iter().filter(|value| **value != spot.value).cloned().collect()
    }

    /// Says what an input says at a spot.
    pub(super) fn said(&self, input: &Input, spot: &Spot) -> Said {
        let (by, place) = self.place(input.kind, &spot.steps);
        self.saying(by, place, self.path(input, &spot.text()), spot.value.clone())
    }

    /// Says what is said at a place, with the values of the cluster that an overlay has put there.
    pub(super) fn saying(&self, by: By, place: Option<Place>, path: String, value: Value) -> Said {
        let filled = self.resolved.overlays.iter().flat_map(|overlay| &overlay.filled);
        let found = filled.filter(|filled| Some(&filled.at) == place.as_ref()).map(|filled| ClusterValue {
            expression: filled.expression.clone(),
            place: match &filled.from {
                ValueOrigin::Table(place) => Some(place.clone()),
                ValueOrigin::Config(path) => self.setting(path.iter().map(String::as_str)).1,
            },
        });
        Said { values: found.collect(), by, place, path, value }
    }

    /// Returns a path of an input as people write it: settings have those that stand in the config file.
    pub(super) fn path(&self, input: &Input, path: &str) -> String {
        match input.kind {
            Kind::Settings => format!("packs.{}.{path}", self.resolved.pack.manifest.name),
            Kind::Sync => format!("syncs.{}.{path}", self.sync()),
            Kind::Spec
            | Kind::Set(_)
            | Kind::Defaults
            | Kind::Layer(_)
            | Kind::Overlay(_)
            | Kind::Read(_)
            | Kind::Builtin(_) => path.to_owned(),
        }
    }

    /// Says who says what at a way of fields and indexes, and where.
    fn place(&self, kind: Kind, steps: &[String]) -> (By, Option<Place>) {
        let ways = || steps.iter().map(String::as_str);
        let in_document = |document: &Document| {
            let place = document.place_of(&ways().collect::<Vec<_>>());
            // What an overlay has patched stands with the overlay.
            let is_patched = document.patched.contains(&place);
            let by = if is_patched { By::Layer(LayerName::Overlay) } else { By::Spec(document.id.clone()) };
            (by, Some(place))
        };
        let pack = self.resolved.pack.manifest.name.as_str();
        match kind {
            Kind::Spec => in_document(self.resolved.document),
            Kind::Set(index) => in_document(self.resolved.listener_set_documents[index]),
            Kind::Defaults => self.origin(self.defaults.part(ways()).unwrap_or(&self.defaults), steps),
            Kind::Layer(index) => {
                let layer = &self.resolved.layers[index];
                (By::Layer(layer.name), Some(layer.place_of(layer.node.at(ways()).unwrap_or(layer.node))))
            }
            Kind::Overlay(index) => {
                (By::Layer(LayerName::Overlay), in_document(&self.resolved.overlays[index].document).1)
            }
            Kind::Read(index) => in_document(self.reads.source[index]),
            Kind::Builtin(index) => (By::Layer(LayerName::Builtin), in_document(&self.reads.builtin[index]).1),
            Kind::Settings => self.setting(["packs", pack].into_iter().chain(ways())),
            Kind::Sync => self.setting(["syncs", self.sync()].into_iter().chain(ways())),
        }
    }

    fn sync(&self) -> &str {
        self.inputs.config.as_ref().and_then(|config| config.sync).unwrap_or("*")
    }

    /// A setting that the config file does not have is the pack's own.
    fn setting<'s>(&self, steps: impl Iterator<Item = &'s str>) -> (By, Option<Place>) {
        let found = self.inputs.config.as_ref().and_then(|config| Some((config, config.root.at(steps)?)));
        match found {
            Some((config, node)) => (By::Layer(LayerName::Settings), Some(Place::at(&config.file, node.position))),
            None => (By::Layer(LayerName::Builtin), None),
        }
    }

    /// Says who set a merged parameter, and where.
    pub(super) fn origin(&self, merged: &Merged, steps: &[String]) -> (By, Option<Place>) {
        let Origin { layer, place } = &merged.origin;
        // What a pack takes from its settings beside the parameters has the name of the setting for a place.
        if *layer == LayerName::Settings && place.line == 0 {
            let field = steps.last().map(String::as_str);
            let (by, found) = self.setting(place.file.split('.').chain(field));
            return (by, found.or_else(|| Some(place.clone())));
        }
        (By::Layer(*layer), Some(place.clone()).filter(|place| !place.file.is_empty()))
    }

    /// Says what the layers below a parameter's had said about it, the nearest first.
    pub(super) fn lower(&self, input: &Input, spot: &Spot) -> Vec<Said> {
        if let Kind::Layer(index) = input.kind { self.below(index, spot) } else { Vec::new() }
    }

    /// As [`Self::lower`], for the layer that said a merged parameter.
    pub(super) fn below_origin(&self, origin: &Merged, spot: &Spot) -> Vec<Said> {
        let origin = &origin.origin;
        let is_layer = |layer: &Layer<'_>| layer.name == origin.layer && layer.file == origin.place.file;
        self.resolved.layers.iter().rposition(is_layer).map(|index| self.below(index, spot)).unwrap_or_default()
    }

    fn below(&self, index: usize, spot: &Spot) -> Vec<Said> {
        let steps = match spot.list() {
            // An item behind those of lower layers is over nothing.
            Some(list) if self.resolved.kind.table.appends(list.iter().map(String::as_str)) => return Vec::new(),
            Some(list) => list,
            None => spot.steps.as_slice(),
        };
        let ways = || steps.iter().map(String::as_str);
        let path = || spot.text_up_to(steps.len());
        let layers = self.resolved.layers.iter().take(index).rev();
        let said = layers.filter_map(|layer| {
            let node = layer.node.at(ways()).filter(|node| !node.to_value().is_null())?;
            let place = Some(layer.place_of(node));
            Some(self.saying(By::Layer(layer.name), place, path(), node.to_value()))
        });
        let default = self.defaults.part(ways()).map(|merged| {
            let (by, place) = self.place(Kind::Defaults, steps);
            self.saying(by, place, path(), merged.to_value())
        });
        said.chain(default).collect()
    }
}

/// The words of patches themselves, such as `$patch`, are no values.
fn is_directive(spot: &Spot) -> bool {
    spot.steps.iter().any(|step| step.starts_with('$'))
}

/// Tells whether it is the name of the objects that a patch is for.
fn is_target(spot: &Spot) -> bool {
    matches!(spot.steps().collect::<Vec<_>>().as_slice(), ["spec", "objectPatches", _, "target", "name"])
}

/// Tells whether it is something that a patch of objects puts somewhere.
fn is_in_patch(spot: &Spot) -> bool {
    match spot.steps().collect::<Vec<_>>().as_slice() {
        // Of an operation of a JSON patch that is its value.
        ["spec", "objectPatches", _, "patch", index, field, ..] if index.parse::<usize>().is_ok() => *field == "value",
        ["spec", "objectPatches", _, "patch", ..] => true,
        _ => false,
    }
}

/// Returns the content of a document; what controllers write into it goes in nowhere.
fn document(document: &Document) -> Value {
    let mut root = document.root.to_value();
    if let Some(fields) = root.as_object_mut() {
        fields.retain(|field, _| field != "status");
    }
    root
}
