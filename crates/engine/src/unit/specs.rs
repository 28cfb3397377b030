//! `specs: apply`: what of the specs themselves goes to a cluster, where a control plane reads them.
//!
//! The control plane's own deployer would render a Gateway too, under the same names. Where we render it, the copy in
//! the cluster is therefore *self-managed*: it names parameters that say so, whatever the source names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::released::Released;
use super::written::written;
use super::{Declaration, Deletes, Deployer, Options, Rendering, Unit, finish};
use crate::marks::{GATEWAY_LABEL, MANAGED_ANNOTATION};
use crate::object::{Gvk, Object, ObjectId};
use crate::pack::manifest::Traces;
use crate::pack::{Pack, Packs};
use crate::problem::Problem;
use crate::resolve::{Resolved, listener_sets};
use crate::spec::gateway::GatewayClass;
use crate::spec::listener_set::ListenerSet;
use crate::spec::overlay::GROUP as OWN_GROUP;
use crate::spec::{Document, GATEWAY_API, Specs};
use crate::text::safe_name;

/// Says in words, to whoever finds an object in the cluster, what it is for.
const DESCRIPTION: &str = "kubernetes.io/description";

/// The data that all units share when specs are applied.
pub(super) struct Writer<'a> {
    specs: &'a Specs,
    options: &'a Options,
    sets: BTreeMap<ObjectId, Vec<(&'a Document, ListenerSet)>>,
    /// Parameters that go along, with the units that refer to them.
    parameters: BTreeMap<ObjectId, BTreeSet<ObjectId>>,
}

/// The specs of a unit, and what is to be said about them.
#[derive(Default)]
pub(super) struct Specifications {
    pub(super) objects: Vec<Object>,
    pub(super) notes: BTreeMap<ObjectId, String>,
}

impl Deployer {
    /// Returns who else would provision the Gateways of a pack, under which name.
    pub(super) fn of(pack: &Pack) -> Option<Self> {
        let manifest = &pack.manifest;
        let named = manifest.self_managed.as_ref().map(|self_managed| &self_managed.deployer);
        let manager = named.or(manifest.controllers.first())?.clone();
        let (pack_name, self_managed) = (manifest.name.clone(), manifest.self_managed.as_ref());
        let deletes = self_managed.and_then(|self_managed| self_managed.deletes.as_ref()).map(Deletes::of);
        let settings = self_managed.map(|self_managed| self_managed.settings.clone()).unwrap_or_default();
        Some(Self { manager, pack: pack_name, told_by: Declaration::of(pack), deletes, settings })
    }
}

impl Deletes {
    fn of(Traces { label, kinds }: &Traces) -> Self {
        let kinds = kinds.iter().map(|kind| Gvk::new(&kind.api_version, &kind.kind)).map(|gvk| (gvk.group, gvk.kind));
        Self { label: label.clone(), kinds: kinds.collect() }
    }

    /// Tells whether an object is of a kind that is deleted.
    pub(super) fn is_about(&self, id: &ObjectId) -> bool {
        self.kinds.contains(&(id.group.clone(), id.kind.clone()))
    }

    /// Has an object bear our own label in place of the one by which it would be found.
    pub(super) fn hide(&self, object: Object) -> Object {
        if !self.is_about(object.id()) {
            return object;
        }
        let gateway = object.label(&self.label).map(|name| (GATEWAY_LABEL.to_owned(), name.to_owned()));
        let shown = object.edited(|body| {
            if let Some(labels) = body["metadata"]["labels"].as_object_mut() {
                labels.remove(&self.label);
            }
        });
        shown.with_metadata("labels", gateway)
    }
}

impl Declaration {
    fn of(pack: &Pack) -> Option<Self> {
        let (kind, self_managed) = (&pack.manifest.parameters, pack.manifest.self_managed.as_ref()?);
        let (group, version) = (kind.group.clone(), kind.versions.first()?.clone());
        Some(Self { gvk: Gvk { group, version, kind: kind.kind.clone() }, spec: self_managed.spec.clone() })
    }
}

/// Returns the kinds that may be written with `specs: apply`: those of Gateways, and of what they refer to.
pub(super) fn kinds(packs: &Packs) -> BTreeSet<(String, String)> {
    let standard = packs.kinds().keys().filter(|(group, _)| group == GATEWAY_API || group == OWN_GROUP).cloned();
    let of_gateways = packs.all().iter().filter(|pack| !pack.manifest.controllers.is_empty());
    let parameters = of_gateways.flat_map(Pack::kinds).map(|known| (known.kind.group.clone(), known.kind.kind.clone()));
    standard.chain(parameters).collect()
}

impl<'a> Writer<'a> {
    /// Prepares for a source.
    pub(super) fn new(specs: &'a Specs, options: &'a Options) -> Self {
        Self { specs, options, sets: listener_sets(specs), parameters: BTreeMap::new() }
    }

    /// Returns the specs of a Gateway that we render: its copy is self-managed.
    pub(super) fn rendered(&self, resolved: &Resolved<'_>) -> Result<Specifications, Box<Problem>> {
        let (document, pack) = (resolved.document, resolved.pack);
        // Of what is no Gateway, the pack says itself what of it goes to a cluster.
        if !self.options.apply_specs || pack.claims(&document.id.group, &document.id.kind) {
            return Ok(Specifications::default());
        }
        let deployer = Deployer::of(pack);
        let told_by = deployer.as_ref().and_then(|deployer| deployer.told_by.as_ref());
        let parameters = told_by.and_then(|declaration| self_managed(document, declaration)).ok_or_else(|| {
            let message = format!(
                "with specs: apply the control plane would provision it too, and that of pack {:?} cannot be told not to",
                pack.manifest.name
            );
            document.problem(&[], message).hint("set specs: render for the sync")
        })?;
        let mut gateway = self.write(document)?.into_body();
        let id = parameters.id();
        gateway["spec"]["infrastructure"]["parametersRef"] =
            json!({"group": id.group, "kind": id.kind, "name": id.name});
        let gateway = object(document, gateway)?;
        let deployer = deployer.map(|deployer| deployer.manager).unwrap_or_default();
        let note =
            format!("its copy here is self-managed: {} tells {deployer} to make nothing for it", parameters.id());
        let notes = BTreeMap::from([(gateway.id().clone(), note)]);
        let parameters = finish(parameters, &document.id.namespace, &self.specs.kinds, self.options);
        let objects = [parameters, gateway].into_iter().chain(self.sets_of(document)?).collect();
        Ok(Specifications { objects, notes })
    }

    /// Returns what is known of a Gateway that the source leaves to its deployer.
    pub(super) fn released(&self, resolved: &Resolved<'_>) -> Result<Released, Box<Problem>> {
        let document = resolved.document;
        let deployer = Deployer::of(resolved.pack).ok_or_else(|| {
            let message = format!("pack {:?} knows no deployer that it could be left to", resolved.pack.manifest.name);
            document.problem(&["metadata", "annotations"], message).hint("take the annotation away")
        })?;
        let told = deployer.told_by.as_ref().and_then(|declaration| self_managed(document, declaration));
        Ok(Released {
            place: document.place_of(&["metadata", "annotations", MANAGED_ANNOTATION]),
            gateway: self.write(document)?,
            attached: self.sets_of(document)?,
            told: told.map(|parameters| parameters.id().clone()),
            deployer,
        })
    }

    /// Returns the specs of a Gateway that somebody else provisions, as they are written.
    pub(super) fn self_managed(&mut self, resolved: &Resolved<'_>) -> Result<Specifications, Box<Problem>> {
        if !self.options.apply_specs {
            return Ok(Specifications::default());
        }
        let document = resolved.document;
        let infrastructure = resolved.gateway.spec.infrastructure.as_ref();
        if let Some(reference) = infrastructure.and_then(|it| it.parameters_ref.as_ref()) {
            let id = ObjectId::new(&reference.group, &reference.kind, &document.id.namespace, &reference.name);
            self.parameters.entry(id).or_default().insert(document.id.clone());
        }
        let objects = [self.write(document)?].into_iter().chain(self.sets_of(document)?).collect();
        Ok(Specifications { objects, notes: BTreeMap::new() })
    }

    /// Files the classes, each a unit of its own, and then the parameters that specs refer to.
    pub(super) fn finish(mut self, rendering: &mut Rendering, packs: &Packs) {
        if !self.options.apply_specs {
            return;
        }
        rendering.broken.extend(self.specs.broken.keys().cloned());
        for document in self.specs.of_kind(GATEWAY_API, "GatewayClass") {
            match self.class(document, packs) {
                Ok(Some(unit)) => rendering.units.push(unit),
                Ok(None) => {}
                Err(problem) => {
                    if problem.scope != crate::problem::Scope::Warning {
                        rendering.broken.insert(document.id.clone());
                    }
                    rendering.problems.push(*problem);
                }
            }
        }
        self.place_parameters(rendering);
    }

    fn class(&mut self, document: &Document, packs: &Packs) -> Result<Option<Unit>, Box<Problem>> {
        let spec = document.read::<GatewayClass>()?.spec;
        let Some(pack) = packs.of_controller(&spec.controller_name) else { return Ok(None) };
        if pack.manifest.classes.contains_key(&document.id.name) {
            let message = format!("{} makes this class itself, so the document is not applied", spec.controller_name);
            return Err(Problem::warning(document.place(), message).about(document.id.clone()).into());
        }
        let mut body = self.write(document)?.into_body();
        if let Some(reference) = &spec.parameters_ref {
            let namespace = self.specs.namespace(reference.namespace.as_deref().unwrap_or_default());
            let id = ObjectId::new(&reference.group, &reference.kind, namespace, &reference.name);
            if !self.specs.documents.contains_key(&id) {
                let message = format!("there is no usable {id} in the source");
                return Err(document.problem(&["spec", "parametersRef"], message).into());
            }
            body["spec"]["parametersRef"]["namespace"] = namespace.into();
            self.parameters.entry(id).or_default().insert(document.id.clone());
        }
        let specs = vec![object(document, body)?];
        Ok(Some(Unit { specs, ..Unit::of(document) }))
    }

    /// Parameters go with what refers to them; where two do, they are a unit of their own.
    fn place_parameters(&self, rendering: &mut Rendering) {
        for (id, referrers) in &self.parameters {
            let Some(document) = self.specs.documents.get(id) else { continue };
            let parameters = match self.write(document) {
                Ok(parameters) => parameters,
                Err(problem) => {
                    rendering.broken.extend(referrers.iter().cloned());
                    rendering.units.retain(|unit| !referrers.contains(&unit.id));
                    rendering.problems.push(*problem);
                    continue;
                }
            };
            let mut units = rendering.units.iter_mut().filter(|unit| referrers.contains(&unit.id));
            match (units.next(), units.next()) {
                (Some(unit), None) => {
                    unit.files.insert(Arc::clone(&document.file));
                    unit.specs.insert(0, parameters);
                }
                (Some(_), Some(_)) => {
                    rendering.units.push(Unit { specs: vec![parameters], ..Unit::of(document) });
                }
                (None, _) => {}
            }
        }
    }

    fn sets_of(&self, gateway: &Document) -> Result<Vec<Object>, Box<Problem>> {
        let sets = self.sets.get(&gateway.id).into_iter().flatten();
        sets.map(|(document, _)| {
            let mut body = self.write(document)?.into_body();
            if let Some(namespace) = body.pointer_mut("/spec/parentRef/namespace") {
                *namespace = Value::from(gateway.id.namespace.as_str());
            }
            object(document, body)
        })
        .collect()
    }

    /// Returns a document as it is written, where it belongs, with what the sync adds to all.
    fn write(&self, document: &Document) -> Result<Object, Box<Problem>> {
        // What is set to nothing is not set, as in what is rendered of it; a CRD without `nullable` takes no null.
        written(document)
            .map(|object| object.edited(drop_nulls))
            .map(|object| finish(object, &document.id.namespace, &self.specs.kinds, self.options))
    }
}

/// Returns the parameters that tell a control plane to leave a Gateway to us.
fn self_managed(gateway: &Document, Declaration { gvk, spec }: &Declaration) -> Option<Object> {
    let name = safe_name(&format!("{}-self-managed", gateway.id.name));
    let description = format!("Gateway {} is provisioned from outside the cluster.", gateway.id.name);
    let metadata = json!({"name": name, "namespace": gateway.id.namespace, "annotations": {DESCRIPTION: description}});
    let body = json!({"apiVersion": gvk.api_version(), "kind": gvk.kind, "metadata": metadata, "spec": spec});
    Object::new(body).ok()
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn object(document: &Document, body: Value) -> Result<Object, Box<Problem>> {
    Object::new(body).map_err(|error| document.problem(&[], error.to_string()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;
    use crate::unit::render;

    #[test]
    fn a_control_plane_that_cannot_be_told_is_a_problem_of_each_gateway() {
        let manifest = "{name: acme, controllers: [acme.example.com/acme], classes: {acme: acme.example.com/acme}, \
                        parameters: {group: acme.example.com, kind: Acme, versions: [v1]}, templates: []}";
        let pack = Pack::declared(&BTreeMap::from([("pack.yaml", manifest)]), &Value::Null).expect("the pack is sound");
        let packs = Packs::new(vec![pack]).expect("the pack is sound");
        let gateway = "{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: edge}, \
                       spec: {gatewayClassName: acme, listeners: [{name: http, port: 80, protocol: HTTP}]}}";
        let tree = Tree::from_iter([("edge.yaml", gateway)]);
        let rendering = render(&tree, &packs, &Options { apply_specs: true, ..Options::default() });
        assert_eq!((rendering.units.len(), rendering.broken.len()), (0, 1));
        let problem = rendering.problems[0].to_string();
        assert!(problem.contains("that of pack \"acme\" cannot be told not to"), "{problem}");
        assert_eq!(render(&tree, &packs, &Options::default()).problems, []);
    }
}
