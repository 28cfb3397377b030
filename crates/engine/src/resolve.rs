//! The pack that renders a spec, and the parameters that govern it.
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
use crate::problem::{Place, Problem};
use crate::reading::is_slip;
use crate::rules;
use crate::spec::gateway::{Gateway, GatewayClass};
use crate::spec::listener_set::{ListenerSet, allows};
use crate::spec::{Document, GATEWAY_API, Kind, Specs};
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

impl<'a> Resolved<'a> {
    /// Begins with a spec that the settings of its pack alone govern.
    pub(crate) fn new(document: &'a Document, specs: &'a Specs, gateway: Gateway, pack: &'a Pack) -> Self {
        Self {
            document,
            specs,
            gateway,
            pack,
            kind: &pack.own,
            listener_sets: Vec::new(),
            listener_set_documents: Vec::new(),
            layers: pack.settings_layer().into_iter().collect(),
            overlays: Vec::new(),
            files: BTreeSet::from([Arc::clone(&document.file)]),
        }
    }
}

/// The outcome of resolving one spec.
pub enum Resolution<'a> {
    /// It can be rendered.
    Ready(Box<Resolved<'a>>),
    /// Its class belongs to a controller that no pack renders for.
    NotOurs {
        /// The controller.
        controller: String,
        /// The place where it is named.
        place: Place,
    },
    /// Something that it needs is missing or broken.
    Broken(Vec<Problem>),
}

/// Resolves all specs of a source under the overlays of a cluster: Gateways, and then what packs claim, each in the
/// order of their identities.
pub fn resolve<'a>(
    specs: &'a Specs,
    packs: &'a Packs,
    overlays: &'a Assignment,
) -> Vec<(&'a Document, Resolution<'a>)> {
    let sets = listener_sets(specs);
    let gateways = specs.of_kind(GATEWAY_API, "Gateway").take_while(|_| !interrupt::is_given());
    let gateways = gateways.map(|document| {
        let attached = sets.get(&document.id).map(Vec::as_slice).unwrap_or_default();
        let resolution = Context { specs, packs, document }.resolve(attached, overlays);
        (document, resolution.unwrap_or_else(|problem| Resolution::Broken(vec![*problem])))
    });
    gateways.chain(claimed::resolve(specs, packs, overlays)).collect()
}

/// Returns the sets of each Gateway, in the order of their names.
pub(crate) fn listener_sets(specs: &Specs) -> BTreeMap<ObjectId, Vec<(&Document, ListenerSet)>> {
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
        overlays: &'a Assignment,
    ) -> Result<Resolution<'a>, Box<Problem>> {
        let gateway: Gateway = self.document.read()?;
        self.check_listeners(&gateway)?;
        if let Some(place) = self.broken_set() {
            return Err(self.document.problem(&[], format!("a ListenerSet of it is broken, see {place}")).into());
        }
        let (controller, class) = self.class(&gateway)?;
        let Some(pack) = self.packs.of_controller(&controller) else { return self.not_ours(controller, class) };
        let pack = pack.on(overlays.cluster.as_ref(), Some(&gateway.spec.gateway_class_name));
        let mut resolved = Resolved::new(self.document, self.specs, gateway, pack);
        if let Some(class) = class {
            self.add_class_layer(class, &mut resolved)?;
        }
        self.add_gateway_layer(&mut resolved)?;
        resolved.files.extend(sets.iter().map(|(document, _)| Arc::clone(&document.file)));
        resolved.listener_set_documents = sets.iter().map(|(document, _)| *document).collect();
        resolved.listener_sets = sets.iter().map(|(_, set)| set.clone()).collect();
        self.governed(resolved, overlays)
    }

    /// Returns the place of a broken listener set that the Gateway lets attach: whoever may not add listeners to it does not
    /// hold it either.
    fn broken_set(&self) -> Option<&Place> {
        let mut sets = self.specs.broken_sets.get(&self.document.id)?.iter();
        sets.find(|(namespace, _)| allows(self.specs, self.document, namespace)).map(|(_, place)| place)
    }

    /// Adds the overlays that govern a spec, or says why what they say cannot be merged into its kind of parameters; a
    /// broken one may be about anything that it does not exclude.
    fn governed(&self, mut resolved: Resolved<'a>, all: &'a Assignment) -> Result<Resolution<'a>, Box<Problem>> {
        if let Some(reason) = all.held(&self.document.id) {
            return Err(self.document.problem(&[], reason).into());
        }
        let overlays = all.of(&self.document.id);
        let kind = self.packs.kinds().get(&resolved.kind.kind.name());
        let check = |kind: &Kind| overlays.iter().flat_map(|overlay| overlay.check_parameters(&kind.schema)).collect();
        let mistakes: Vec<Problem> = kind.map(check).unwrap_or_default();
        if !mistakes.is_empty() {
            return Ok(Resolution::Broken(mistakes));
        }
        resolved.layers.extend(overlays.iter().filter_map(|overlay| overlay.layer()));
        resolved.files.extend(overlays.iter().flat_map(|overlay| overlay.files()));
        resolved.overlays = overlays;
        Ok(Resolution::Ready(Box::new(resolved)))
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
            return Err(self.document.problem(&["spec", "gatewayClassName"], message).into());
        }
        if let Some(controller) = self.packs.builtin_class(name) {
            return Ok((controller.to_owned(), None));
        }
        let known = self.specs.of_kind(GATEWAY_API, "GatewayClass").map(|document| document.id.name.as_str());
        let known: BTreeSet<&str> = known.chain(self.packs.builtin_classes()).collect();
        let hint = match suggest(name, known.iter().copied()) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!(
                "known classes: {}; one of another controller is known by its GatewayClass in the source",
                known.into_iter().collect::<Vec<_>>().join(", ")
            ),
        };
        let message = format!("there is no GatewayClass {name:?} in the source");
        let problem = self.document.problem(&["spec", "gatewayClassName"], message).hint(hint);
        Err(problem.by(rules::CLASS_NOT_FOUND).into())
    }

    /// A Gateway of a class that no pack renders for; a misspelled controller is a mistake, and not somebody else's.
    fn not_ours(&self, controller: String, class: Option<&'a Document>) -> Result<Resolution<'a>, Box<Problem>> {
        let place = class.unwrap_or(self.document).place_of(&["spec", "controllerName"]);
        let near = suggest(&controller, self.packs.controllers()).filter(|near| is_slip(&controller, near));
        let Some(near) = near else { return Ok(Resolution::NotOurs { controller, place }) };
        let message = format!("its class is of the controller {controller:?}, for which no pack renders anything");
        let problem = Problem::document(place, message).about(self.document.id.clone());
        Err(problem.hint(format!("did you mean {near:?}?")).into())
    }

    fn add_class_layer(&self, class: &'a Document, resolved: &mut Resolved<'a>) -> Result<(), Box<Problem>> {
        resolved.files.insert(Arc::clone(&class.file));
        let Some(reference) = class.read::<GatewayClass>()?.spec.parameters_ref else { return Ok(()) };
        let at = |message| Box::new(self.invalid(class.place_of(&["spec", "parametersRef"]), message));
        let named = kind_of(resolved.pack, &reference.group, &reference.kind).map_err(at)?;
        let Some(namespace) = reference.namespace.filter(|namespace| !namespace.is_empty()) else {
            let problem = at("the parametersRef of the class needs a namespace".to_owned());
            return Err(problem.by(rules::CLASS_PARAMETERS_NAMESPACE_MISSING).into());
        };
        let ParameterKind { group, kind, .. } = &named.kind;
        let id = ObjectId::new(group, kind, self.specs.namespace(&namespace), &reference.name);
        resolved.kind = named;
        self.add_layer(LayerName::Class, &id, resolved).map_err(at)
    }

    fn add_gateway_layer(&self, resolved: &mut Resolved<'a>) -> Result<(), Box<Problem>> {
        let infrastructure = resolved.gateway.spec.infrastructure.as_ref();
        let Some(reference) = infrastructure.and_then(|it| it.parameters_ref.as_ref()) else { return Ok(()) };
        let path = ["spec", "infrastructure", "parametersRef"];
        let at = |message| Box::new(self.invalid(self.document.place_of(&path), message));
        let named = kind_of(resolved.pack, &reference.group, &reference.kind).map_err(at)?;
        let ParameterKind { group, kind, .. } = &named.kind;
        let id = ObjectId::new(group, kind, &self.document.id.namespace, &reference.name);
        resolved.kind = named;
        self.add_layer(LayerName::Gateway, &id, resolved).map_err(at)
    }

    fn add_layer(&self, name: LayerName, id: &ObjectId, resolved: &mut Resolved<'a>) -> Result<(), String> {
        if let Some(place) = self.specs.broken.get(id) {
            return Err(format!("its {id} is broken, see {place}"));
        }
        let document = self.specs.documents.get(id).ok_or_else(|| self.absent(id))?;
        resolved.files.insert(Arc::clone(&document.file));
        let spec: &Node = document.root.get("spec").ok_or_else(|| format!("{id} has no spec"))?;
        resolved.layers.push(Layer::new(name, Arc::clone(&document.file), spec));
        Ok(())
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
            return Err(self.document.problem(&path, "a listener of a Gateway needs a port from 1 to 65535").into());
        }
        let mut seen = BTreeSet::new();
        match gateway.spec.listeners.iter().position(|listener| !seen.insert(&listener.name)) {
            None => Ok(()),
            Some(index) => {
                let name = &gateway.spec.listeners[index].name;
                let message = format!("the listener name {name:?} stands here a second time");
                Err(self.document.problem(&["spec", "listeners", &index.to_string(), "name"], message).into())
            }
        }
    }

    fn invalid(&self, place: Place, message: String) -> Problem {
        Problem::invalid_parameters(place, message).about(self.document.id.clone())
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
