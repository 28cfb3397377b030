//! Which pack renders a spec, and which parameters govern it.
//!
//! A reference that leads nowhere, or to something that cannot be used, is a problem of the Gateway (the standard's
//! `InvalidParameters`): it is held as it is, and the others go on. Rules: Gateway API, GEP-1762 and the
//! `parametersRef` of `GatewayClass` and of `Gateway.spec.infrastructure`.

mod claimed;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::check::suggest;
use crate::interrupt;
use crate::merge::origin::{Layer, LayerName};
use crate::object::ObjectId;
use crate::overlay::{Assignment, Overlay};
use crate::pack::manifest::ParameterKind;
use crate::pack::{Pack, Packs, Parameters};
use crate::problem::Problem;
use crate::spec::gateway::{Gateway, GatewayClass};
use crate::spec::listener_set::ListenerSet;
use crate::spec::{Document, GATEWAY_API, Specs};
use crate::yaml::Node;

/// A spec with everything that decides what becomes of it.
#[derive(Clone)]
pub struct Resolved<'a> {
    /// The spec as it was written.
    pub document: &'a Document,
    /// Everything else that the source holds.
    pub specs: &'a Specs,
    /// The Gateway; of another spec, one that says nothing but its name.
    pub gateway: Gateway,
    /// The pack that renders it.
    pub pack: &'a Pack,
    /// The kind of its parameters: that of the Gateway's reference, else that of the class's, else the pack's own.
    pub kind: &'a Parameters,
    /// The sets that attach to it.
    pub listener_sets: Vec<ListenerSet>,
    /// The same sets as they were written.
    pub listener_set_documents: Vec<&'a Document>,
    /// Its parameters, the lowest layer first, without the built-in one.
    pub layers: Vec<Layer<'a>>,
    /// The overlays that govern it, the lowest first; their parameters are the last layers.
    pub overlays: Vec<&'a Overlay>,
    /// The files that had a say.
    pub files: BTreeSet<Arc<str>>,
}

/// The outcome of resolving one spec.
pub enum Resolution<'a> {
    /// It can be rendered.
    Ready(Box<Resolved<'a>>),
    /// Its class belongs to a controller that no pack renders for.
    NotOurs {
        /// The controller.
        controller: String,
    },
    /// Something that it needs is missing or broken.
    Broken(Vec<Problem>),
}

/// Resolves all specs of a source under the overlays of a cluster: Gateways, and then what packs claim, each in the
/// order of their identities.
pub fn resolve<'a>(
    specs: &'a Specs,
    packs: &'a Packs,
    overlays: &Assignment<'a>,
) -> Vec<(&'a Document, Resolution<'a>)> {
    let sets = listener_sets(specs);
    let gateways = specs.of_kind(GATEWAY_API, "Gateway").take_while(|_| !interrupt::is_given());
    let gateways = gateways.map(|document| {
        let attached = sets.get(&document.id).map(Vec::as_slice).unwrap_or_default();
        (
            document,
            Context { specs, packs, document }
                .resolve(attached, overlays)
                .unwrap_or_else(|problem| Resolution::Broken(vec![*problem])),
        )
    });
    gateways.chain(claimed::resolve(specs, packs, overlays)).collect()
}

/// Returns the sets of each Gateway, in the order of their names.
fn listener_sets(specs: &Specs) -> BTreeMap<ObjectId, Vec<(&Document, ListenerSet)>> {
    let mut sets: BTreeMap<ObjectId, Vec<_>> = BTreeMap::new();
    for document in specs.of_kind(GATEWAY_API, "ListenerSet") {
        let Ok(set) = document.read::<ListenerSet>() else { continue };
        sets.entry(parent(specs, document, &set)).or_default().push((document, set));
    }
    sets
}

/// Returns the Gateway that a set attaches to.
pub(crate) fn parent(specs: &Specs, document: &Document, set: &ListenerSet) -> ObjectId {
    let parent = &set.spec.parent_ref;
    let namespace = specs.namespace(parent.namespace.as_deref().unwrap_or(&document.id.namespace));
    let (group, kind) = (parent.group.as_deref().unwrap_or(GATEWAY_API), parent.kind.as_deref().unwrap_or("Gateway"));
    ObjectId::new(group, kind, namespace, &parent.name)
}

/// Returns the Gateway that a spec is, or one that says nothing but its name; `None` if it cannot be read.
pub(crate) fn gateway_of(document: &Document) -> Option<Gateway> {
    let is_gateway = document.id.group == GATEWAY_API && document.id.kind == "Gateway";
    if is_gateway { document.read().ok() } else { Some(claimed::nameless(document)) }
}

struct Context<'a> {
    specs: &'a Specs,
    packs: &'a Packs,
    document: &'a Document,
}

impl<'a> Context<'a> {
    fn resolve(
        &self,
        sets: &[(&'a Document, ListenerSet)],
        overlays: &Assignment<'a>,
    ) -> Result<Resolution<'a>, Box<Problem>> {
        let gateway: Gateway = self.document.read()?;
        self.check_listeners(&gateway)?;
        if let Some(place) = self.specs.broken_sets.get(&self.document.id) {
            let problem = self.problem(&[], format!("a ListenerSet of it is broken, see {place}"));
            return Err(Box::new(problem));
        }
        let (controller, class) = self.class(&gateway)?;
        let Some(pack) = self.packs.of_controller(&controller) else { return Ok(Resolution::NotOurs { controller }) };
        let mut files = BTreeSet::from([Arc::clone(&self.document.file)]);
        let mut layers: Vec<_> = pack.settings_layer().into_iter().collect();
        let mut kind = &pack.own;
        if let Some(class) = class {
            files.insert(Arc::clone(&class.file));
            if let Some((named, layer)) = self.class_layer(class, pack, &mut files)? {
                kind = named;
                layers.push(layer);
            }
        }
        if let Some((named, layer)) = self.gateway_layer(&gateway, pack, &mut files)? {
            kind = named;
            layers.push(layer);
        }
        let overlays = self.overlays(overlays)?.to_vec();
        let mistakes = self.overlay_layers(&overlays, kind, &mut layers);
        if !mistakes.is_empty() {
            return Ok(Resolution::Broken(mistakes));
        }
        files.extend(overlays.iter().map(|overlay| Arc::clone(&overlay.document.file)));
        files.extend(sets.iter().map(|(document, _)| Arc::clone(&document.file)));
        let listener_set_documents = sets.iter().map(|(document, _)| *document).collect();
        let listener_sets = sets.iter().map(|(_, set)| set.clone()).collect();
        Ok(Resolution::Ready(Box::new(Resolved {
            document: self.document,
            specs: self.specs,
            gateway,
            pack,
            kind,
            listener_sets,
            listener_set_documents,
            layers,
            overlays,
            files,
        })))
    }

    /// Returns the overlays that govern the Gateway; a broken one may be about anything that it does not exclude.
    fn overlays<'b>(&self, overlays: &'b Assignment<'a>) -> Result<&'b [&'a Overlay], Box<Problem>> {
        match overlays.broken_for(&self.document.id) {
            Some(place) => Err(Box::new(self.problem(&[], format!("a ClusterOverlay is broken, see {place}")))),
            None => Ok(overlays.of(&self.document.id)),
        }
    }

    /// Adds what overlays say to the layers, or says why it cannot be merged into this kind of parameters.
    fn overlay_layers(&self, overlays: &[&'a Overlay], kind: &Parameters, layers: &mut Vec<Layer<'a>>) -> Vec<Problem> {
        let name = (kind.kind.group.clone(), kind.kind.kind.clone());
        let schema = self.packs.kinds().get(&name).map(|kind| &kind.schema);
        let check = |overlay: &&&Overlay| schema.map(|schema| overlay.check_parameters(schema));
        layers.extend(overlays.iter().filter_map(|overlay| overlay.layer()));
        overlays.iter().filter_map(|overlay| check(&overlay)).flatten().collect()
    }

    /// Finds the class: a document of the source, or one that its control plane makes itself.
    fn class(&self, gateway: &Gateway) -> Result<(String, Option<&'a Document>), Box<Problem>> {
        let name = &gateway.spec.gateway_class_name;
        let id = ObjectId::new(GATEWAY_API, "GatewayClass", "", name);
        if let Some(document) = self.specs.documents.get(&id) {
            return Ok((document.read::<GatewayClass>()?.spec.controller_name, Some(document)));
        }
        if let Some(place) = self.specs.broken.get(&id) {
            let message = format!("its GatewayClass {name:?} is broken, see {place}");
            return Err(Box::new(self.problem(&["spec", "gatewayClassName"], message)));
        }
        if let Some(controller) = self.packs.builtin_class(name) {
            return Ok((controller.to_owned(), None));
        }
        let known = self.specs.of_kind(GATEWAY_API, "GatewayClass").map(|document| document.id.name.as_str());
        let known: BTreeSet<&str> = known.chain(self.packs.builtin_classes()).collect();
        let hint = match suggest(name, known.iter().copied()) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("known classes: {}", known.into_iter().collect::<Vec<_>>().join(", ")),
        };
        let problem =
            self.problem(&["spec", "gatewayClassName"], format!("there is no GatewayClass {name:?} in the source"));
        Err(Box::new(problem.hint(hint)))
    }

    fn class_layer(
        &self,
        class: &'a Document,
        pack: &'a Pack,
        files: &mut BTreeSet<Arc<str>>,
    ) -> Result<Option<(&'a Parameters, Layer<'a>)>, Box<Problem>> {
        let Some(reference) = class.read::<GatewayClass>()?.spec.parameters_ref else { return Ok(None) };
        let at = |message: String| {
            let place = class.place_of(&["spec", "parametersRef"]);
            Box::new(Problem::invalid_parameters(place, message).about(self.document.id.clone()))
        };
        let named = kind_of(pack, &reference.group, &reference.kind).map_err(at)?;
        let Some(namespace) = reference.namespace.filter(|namespace| !namespace.is_empty()) else {
            return Err(at("the parametersRef of the class needs a namespace".to_owned()));
        };
        let ParameterKind { group, kind, .. } = &named.kind;
        let id = ObjectId::new(group, kind, self.specs.namespace(&namespace), &reference.name);
        self.parameters(LayerName::Class, &id, files).map(|layer| Some((named, layer))).map_err(at)
    }

    fn gateway_layer(
        &self,
        gateway: &Gateway,
        pack: &'a Pack,
        files: &mut BTreeSet<Arc<str>>,
    ) -> Result<Option<(&'a Parameters, Layer<'a>)>, Box<Problem>> {
        let infrastructure = gateway.spec.infrastructure.as_ref();
        let Some(reference) = infrastructure.and_then(|it| it.parameters_ref.as_ref()) else { return Ok(None) };
        let at = |message: String| {
            let place = self.document.place_of(&["spec", "infrastructure", "parametersRef"]);
            Box::new(Problem::invalid_parameters(place, message).about(self.document.id.clone()))
        };
        let named = kind_of(pack, &reference.group, &reference.kind).map_err(at)?;
        let ParameterKind { group, kind, .. } = &named.kind;
        let id = ObjectId::new(group, kind, &self.document.id.namespace, &reference.name);
        self.parameters(LayerName::Gateway, &id, files).map(|layer| Some((named, layer))).map_err(at)
    }

    fn parameters(&self, name: LayerName, id: &ObjectId, files: &mut BTreeSet<Arc<str>>) -> Result<Layer<'a>, String> {
        if let Some(place) = self.specs.broken.get(id) {
            return Err(format!("its {id} is broken, see {place}"));
        }
        let document = self.specs.documents.get(id).ok_or_else(|| self.absent(id))?;
        files.insert(Arc::clone(&document.file));
        let spec: &Node = document.root.get("spec").ok_or_else(|| format!("{id} has no spec"))?;
        Ok(Layer::new(name, Arc::clone(&document.file), spec))
    }

    /// Says that an object is not there, and which one may have been meant.
    fn absent(&self, id: &ObjectId) -> String {
        let beside = self.specs.of_kind(&id.group, &id.kind).filter(|other| other.id.namespace == id.namespace);
        let near = suggest(&id.name, beside.map(|other| other.id.name.as_str()));
        let meant = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
        format!("there is no {id} in the source{meant}")
    }

    fn check_listeners(&self, gateway: &Gateway) -> Result<(), Box<Problem>> {
        if let Some(index) = gateway.spec.listeners.iter().position(|listener| listener.port == 0) {
            let path = ["spec", "listeners", &index.to_string(), "port"];
            return Err(Box::new(
                self.problem(&path, "a listener of a Gateway needs a port from 1 to 65535".to_owned()),
            ));
        }
        let mut seen = BTreeSet::new();
        match gateway.spec.listeners.iter().position(|listener| !seen.insert(&listener.name)) {
            None => Ok(()),
            Some(index) => {
                let name = &gateway.spec.listeners[index].name;
                let message = format!("the listener name {name:?} stands here a second time");
                Err(Box::new(self.problem(&["spec", "listeners", &index.to_string(), "name"], message)))
            }
        }
    }

    fn problem(&self, path: &[&str], message: String) -> Problem {
        Problem::document(self.document.place_of(path), message).about(self.document.id.clone())
    }
}

/// Finds the kind of parameters that a reference names.
fn kind_of<'a>(pack: &'a Pack, group: &str, kind: &str) -> Result<&'a Parameters, String> {
    let is_named = |known: &&Parameters| known.kind.group == group && known.kind.kind == kind;
    if let Some(named) = pack.kinds().find(is_named) {
        return Ok(named);
    }
    let or = |names: Vec<String>| names.join(" or ");
    if pack.kinds().all(|known| known.kind.group != group) {
        let groups = pack.kinds().map(|known| format!("{:?}", known.kind.group)).collect();
        return Err(format!("invalid group {group:?} of the parametersRef, {} is needed", or(groups)));
    }
    let beside = pack.kinds().filter(|known| known.kind.group == group);
    let kinds = beside.map(|known| format!("{:?}", known.kind.kind)).collect();
    Err(format!("invalid kind {kind:?} of the parametersRef, {} is needed", or(kinds)))
}
