//! The marks that say whose an object is: ours, and those of other tools.
//!
//! Our annotation holds the identity of the object that it was made for, so that a copy of the metadata (by an
//! operator, or by a person with `kubectl get -o yaml`) claims nothing. On a Deployment an annotation counts as a new
//! generation, which is the number by which people and tools see that something was rolled out; there a label with a
//! digest says the same.

use std::fmt;

use serde_json::Value;

use crate::diff::Difference;
use crate::object::{Object, metadata};
use crate::text::digest;

/// Our field manager; fixed for ever, because it is how an API server knows which fields are ours.
pub const FIELD_MANAGER: &str = "gatewright";

/// The prefix of our own labels and annotations.
pub const OWN_PREFIX: &str = "gatewright.dev/";

/// The label to list our objects by: `<sync>.<8 hex digits of the installation>`.
pub const SYNC_LABEL: &str = "gatewright.dev/sync";
/// The annotation that proves ownership: `<installation>/<sync>#<group>/<Kind>/<namespace>/<name>`.
pub const OWNER_ANNOTATION: &str = "gatewright.dev/owner";

/// The label that names the Gateway of an object that must not bear the usual one.
pub(crate) const GATEWAY_LABEL: &str = "gatewright.dev/gateway-name";

/// The label that proves ownership where an annotation would count as a change: the first 40 digits of the
/// digest of what the annotation would say.
pub const OWNER_LABEL: &str = "gatewright.dev/owner";

/// The annotation by which the source says that a Gateway is left to the deployer of its control plane: `"false"`.
pub const MANAGED_ANNOTATION: &str = "gatewright.dev/managed";

/// Our own labels and annotations on live objects. Others with [`OWN_PREFIX`] are written by people, into specs.
pub const MARKS: [(&str, &str); 4] =
    [("labels", SYNC_LABEL), ("labels", OWNER_LABEL), ("labels", GATEWAY_LABEL), ("annotations", OWNER_ANNOTATION)];

/// The value of a label has at most 63 characters.
const DIGITS: usize = 40;

/// The writer of marks on objects: one sync of one installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Random, generated once, kept in the state of the installation.
    pub installation: String,
    /// Name of the sync.
    pub sync: String,
}

/// The owner of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Ours: this installation, this sync, this very object.
    Us,
    /// Nobody has put a mark on it.
    Nobody,
    /// Another sync of this installation.
    OtherSync(String),
    /// Another installation of gatewright.
    OtherInstallation(String),
    /// Another tool or controller, in words.
    Other(String),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Us => f.write_str("this sync"),
            Self::Nobody => f.write_str("nobody"),
            Self::OtherSync(sync) => write!(f, "sync {sync:?} of this installation"),
            Self::OtherInstallation(installation) => write!(f, "another installation of gatewright ({installation})"),
            Self::Other(name) => f.write_str(name),
        }
    }
}

/// Marks by which other tools know their objects: where, key, name of the tool.
const TOOLS: [(&str, &str, &str); 16] = [
    ("labels", "kustomize.toolkit.fluxcd.io/name", "Flux"),
    ("labels", "helm.toolkit.fluxcd.io/name", "Flux"),
    ("annotations", "argocd.argoproj.io/tracking-id", "Argo CD"),
    ("labels", "argocd.argoproj.io/instance", "Argo CD"),
    ("annotations", "config.k8s.io/owning-inventory", "a cli-utils inventory"),
    ("labels", "kapp.k14s.io/app", "kapp"),
    ("annotations", "meta.helm.sh/release-name", "Helm"),
    ("labels", "kluctl.io/discriminator", "kluctl"),
    ("labels", "fleet.cattle.io/bundle-name", "Fleet"),
    ("annotations", "objectset.rio.cattle.io/id", "Fleet"),
    ("labels", "applyset.kubernetes.io/part-of", "an ApplySet"),
    ("annotations", "kapp.k14s.io/identity", "kapp"),
    ("annotations", "meta.helm.sh/release-namespace", "Helm"),
    ("labels", "fleet.cattle.io/repo-name", "Fleet"),
    ("labels", "objectset.rio.cattle.io/hash", "Fleet"),
    ("labels", "olm.owner", "OLM"),
];

/// The annotation by which an object may be deleted and created again where a field of it cannot be changed.
pub(crate) const RECREATE_ANNOTATION: &str = "gatewright.dev/recreate";

/// Marks by which people ask tools not to delete an object: where, key, value in lower case.
const KEEP: [(&str, &str, &str); 13] = [
    ("annotations", "gatewright.dev/prune", "disabled"),
    ("labels", "gatewright.dev/prune", "disabled"),
    ("annotations", "kustomize.toolkit.fluxcd.io/prune", "disabled"),
    ("labels", "kustomize.toolkit.fluxcd.io/prune", "disabled"),
    ("annotations", "kustomize.toolkit.fluxcd.io/reconcile", "disabled"),
    ("labels", "kustomize.toolkit.fluxcd.io/reconcile", "disabled"),
    ("annotations", "helm.sh/resource-policy", "keep"),
    ("annotations", "cli-utils.sigs.k8s.io/on-remove", "keep"),
    ("annotations", "client.lifecycle.config.k8s.io/deletion", "detach"),
    ("annotations", "kapp.k14s.io/delete-strategy", "orphan"),
    ("annotations", "kapp.k14s.io/exists", ""),
    ("annotations", "kapp.k14s.io/noop", ""),
    ("annotations", "kluctl.io/skip-delete", "true"),
];

/// Marks by which people ask to be asked: where, key, value in lower case.
const CONFIRM: [(&str, &str, &str); 2] =
    [("annotations", "gatewright.dev/prune", "confirm"), ("labels", "gatewright.dev/prune", "confirm")];

impl Marker {
    /// Names a sync of an installation; the installation is a random text, generated once and kept.
    pub fn new(installation: &str, sync: &str) -> Self {
        Self { installation: installation.to_owned(), sync: sync.to_owned() }
    }

    /// Returns the value of [`SYNC_LABEL`].
    pub fn label(&self) -> String {
        format!("{}.{}", self.sync, self.installation.get(..8).unwrap_or(&self.installation))
    }

    /// Puts our marks on an object; nothing else may come after.
    pub fn mark(&self, object: Object) -> Object {
        let owner = self.owner_of(&object);
        let object = object.with_metadata("labels", [(SYNC_LABEL.to_owned(), self.label())]);
        if counts_annotations(&object) {
            object.with_metadata("labels", [(OWNER_LABEL.to_owned(), short(&owner))])
        } else {
            object.with_metadata("annotations", [(OWNER_ANNOTATION.to_owned(), owner)])
        }
    }

    /// Tells whether an object bears exactly our marks, whoever else has marked it.
    pub(crate) fn is_on(&self, object: &Object) -> bool {
        self.mark(object.clone()).body() == object.body()
    }

    /// Reads off a live object whose it is.
    ///
    /// An object that bears our mark and another tool's is the other's too, and so it is not ours to change.
    pub fn owner(&self, object: &Object) -> Owner {
        let mark = match object.annotation(OWNER_ANNOTATION) {
            Some(mark) => self.read(mark, object),
            None => object.label(OWNER_LABEL).and_then(|mark| self.read_short(mark, object)),
        };
        match mark {
            Some(Owner::Us) | None => other_owner(object.body()).map_or(mark.unwrap_or(Owner::Nobody), Owner::Other),
            Some(other) => other,
        }
    }

    /// A digest can only be compared: with ours, and with those of our other syncs. Of another installation it cannot
    /// be known whether it is a copy, and nobody's it is not.
    fn read_short(&self, mark: &str, object: &Object) -> Option<Owner> {
        let (sync, installation) = object.label(SYNC_LABEL)?.rsplit_once('.')?;
        if !self.label().ends_with(&format!(".{installation}")) {
            return Some(Owner::OtherInstallation(installation.to_owned()));
        }
        let them = Self { sync: sync.to_owned(), ..self.clone() };
        let is_theirs = short(&them.owner_of(object)) == mark;
        is_theirs.then(|| if sync == self.sync { Owner::Us } else { Owner::OtherSync(them.sync) })
    }

    /// A mark of another identity is a copy, and says nothing.
    fn read(&self, mark: &str, object: &Object) -> Option<Owner> {
        let (owner, key) = mark.split_once('#')?;
        let (installation, sync) = owner.split_once('/')?;
        if key != object.id().key() {
            return None;
        }
        Some(match (installation == self.installation, sync == self.sync) {
            (true, true) => Owner::Us,
            (true, false) => Owner::OtherSync(sync.to_owned()),
            (false, _) => Owner::OtherInstallation(installation.to_owned()),
        })
    }

    fn owner_of(&self, object: &Object) -> String {
        format!("{}/{}#{}", self.installation, self.sync, object.id().key())
    }
}

/// Tells whether API servers count a new generation when an annotation of an object changes.
fn counts_annotations(object: &Object) -> bool {
    object.id().group == "apps" && object.id().kind == "Deployment"
}

fn short(owner: &str) -> String {
    digest(owner.as_bytes())[..DIGITS].to_owned()
}

/// Returns the mark that asks for an object to be kept, if it carries one.
pub fn keep_mark(body: &Value) -> Option<&'static str> {
    let mark = KEEP.iter().find(|mark| is_set(body, mark)).map(|(_, key, _)| *key);
    mark.or_else(|| has_option(body, &["Prune=false", "Delete=false"]))
}

/// Returns the mark that asks for a person to agree before an object is deleted, if it carries one.
pub(crate) fn confirm_mark(body: &Value) -> Option<&'static str> {
    let mark = CONFIRM.iter().find(|mark| is_set(body, mark)).map(|(_, key, _)| *key);
    mark.or_else(|| has_option(body, &["Prune=confirm", "Delete=confirm"]))
}

/// Tells whether an object carries the mark by which its owner lets it be deleted and created again.
pub(crate) fn may_be_recreated(body: &Value) -> bool {
    is_set(body, &("annotations", RECREATE_ANNOTATION, "allowed"))
}

/// Values are compared as other tools do it, without regard to case.
fn is_set(body: &Value, (field, key, value): &(&str, &str, &str)) -> bool {
    metadata(body, field, key).is_some_and(|text| text.trim().eq_ignore_ascii_case(value))
}

/// Returns the key of Argo CD's options if one of these is among them.
fn has_option(body: &Value, wanted: &[&str]) -> Option<&'static str> {
    const OPTIONS: &str = "argocd.argoproj.io/sync-options";
    let options = metadata(body, "annotations", OPTIONS).unwrap_or_default();
    let is_wanted = |option: &str| wanted.iter().any(|wanted| option.trim().eq_ignore_ascii_case(wanted));
    options.split(',').any(is_wanted).then_some(OPTIONS)
}

/// Tells whether a label or annotation of this name may ask for an object to be kept.
pub(crate) fn is_keep_mark(name: &str) -> bool {
    name == "argocd.argoproj.io/sync-options" || KEEP.iter().any(|(_, key, _)| *key == name)
}

/// Removes our marks, for places that must not show them.
pub(crate) fn strip(body: &mut Value) {
    for field in ["labels", "annotations"] {
        let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) else { return };
        let Some(map) = metadata.get_mut(field).and_then(Value::as_object_mut) else { continue };
        map.retain(|key, _| !key.starts_with(OWN_PREFIX));
        if map.is_empty() {
            metadata.remove(field);
        }
    }
}

/// Tells whether all that differs is our marks.
pub fn are_all_that_differs(differences: &[Difference]) -> bool {
    let is_ours = |value: &Option<Value>| match value {
        None => true,
        Some(value) => value.as_object().is_some_and(|all| all.keys().all(|key| key.starts_with(OWN_PREFIX))),
    };
    differences.iter().all(|Difference { path, before, after, .. }| match path.as_str() {
        "metadata.labels" | "metadata.annotations" => is_ours(before) && is_ours(after),
        path => ["labels", "annotations"].iter().any(|it| path.starts_with(&format!("metadata.{it}[\"{OWN_PREFIX}"))),
    })
}

/// Names another tool or controller that has marked an object.
pub fn other_owner(body: &Value) -> Option<String> {
    let tool = || TOOLS.iter().find(|(field, key, _)| metadata(body, field, key).is_some());
    controller(body).or_else(|| tool().map(|(_, _, name)| (*name).to_owned()))
}

/// Any ownerReference means that a controller made the object, or that it will be collected with its owner.
fn controller(body: &Value) -> Option<String> {
    body.pointer("/metadata/ownerReferences/0").map(named_owner)
}

/// Names who an ownerReference is about.
pub(crate) fn named_owner(reference: &Value) -> String {
    let text = |field: &str| reference[field].as_str().unwrap_or("?");
    format!("{} {:?}, its ownerReference", text("kind"), text("name"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::differences;
    use crate::mask::Masker;
    use serde_json::json;

    fn object(name: &str) -> Object {
        let body = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "infra"}});
        Object::new(body).expect("it has all that it needs")
    }

    #[test]
    fn a_mark_tells_who_put_it_there() {
        let us = Marker::new("0123456789abcdef", "edge");
        let marked = us.mark(object("a"));
        assert_eq!(marked.label(SYNC_LABEL), Some("edge.01234567"));
        assert_eq!(us.owner(&marked), Owner::Us);
        assert_eq!(Marker::new("0123456789abcdef", "other").owner(&marked), Owner::OtherSync("edge".into()));
        assert_eq!(Marker::new("ffff", "edge").owner(&marked), Owner::OtherInstallation("0123456789abcdef".into()));
        assert_eq!(us.owner(&object("a")), Owner::Nobody);
    }

    #[test]
    fn a_copied_mark_claims_nothing() {
        let us = Marker::new("0123456789abcdef", "edge");
        let mut copy = us.mark(object("a")).into_body();
        copy["metadata"]["name"] = json!("b");
        assert_eq!(us.owner(&Object::new(copy).expect("it is an object")), Owner::Nobody);
    }

    #[test]
    fn what_differs_by_more_than_our_marks_is_told_from_what_does_not() {
        let before = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"replicas": 1}});
        let differs = |field: &str, value: Value| {
            let mut after = before.clone();
            *after.pointer_mut(field).expect("it is there") = value;
            are_all_that_differs(&differences(&before, &after, FIELD_MANAGER, &Masker::default()))
        };
        let (none, owner) = (json!({"app": "a"}), json!({OWNER_ANNOTATION: "o"}));
        assert!(differs("/metadata", json!({"labels": {"app": "a", SYNC_LABEL: "s"}, "annotations": owner})));
        assert!(differs("/spec/replicas", 1.into()));
        assert!(!differs("/metadata", json!({"labels": {"app": "b", SYNC_LABEL: "s"}})));
        assert!(!differs("/metadata", json!({"labels": none, "annotations": {OWNER_ANNOTATION: "o", "b": "c"}})));
        assert!(!differs("/metadata", json!({"labels": none, "finalizers": ["gatewright.dev/"]})));
        assert!(!differs("/spec/replicas", 2.into()));
    }

    #[test]
    fn a_deployment_is_marked_without_an_annotation() {
        let deployment = |name: &str| {
            let metadata = json!({"name": name, "namespace": "infra"});
            Object::new(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}))
                .expect("it is whole")
        };
        let us = Marker::new("0123456789abcdef", "edge");
        let marked = us.mark(deployment("a"));
        assert_eq!(marked.body()["metadata"].get("annotations"), None);
        assert_eq!(us.owner(&marked), Owner::Us);
        assert_eq!(Marker::new("0123456789abcdef", "other").owner(&marked), Owner::OtherSync("edge".into()));
        assert_eq!(Marker::new("ffffffff00000000", "edge").owner(&marked), Owner::OtherInstallation("01234567".into()));
        let mut copy = marked.into_body();
        copy["metadata"]["name"] = json!("b");
        assert_eq!(us.owner(&Object::new(copy).expect("it is an object")), Owner::Nobody);
    }

    #[test]
    fn other_owners_are_named() {
        let us = Marker::new("0123456789abcdef", "edge");
        let helm = object("a").with_metadata("annotations", [("meta.helm.sh/release-name".into(), "x".into())]);
        assert_eq!(us.owner(&helm), Owner::Other("Helm".into()));
        let mut owned = object("a").into_body();
        owned["metadata"]["ownerReferences"] = json!([{"kind": "Gateway", "name": "edge"}]);
        let owned = Object::new(owned).expect("it is an object");
        assert_eq!(us.owner(&owned).to_string(), "Gateway \"edge\", its ownerReference");
        let both =
            us.mark(object("a")).with_metadata("annotations", [("meta.helm.sh/release-name".into(), "x".into())]);
        assert_eq!(us.owner(&both), Owner::Other("Helm".into()));
    }

    #[test]
    fn keep_marks_of_every_tool_are_honored() {
        let with = |key: &str, value: &str| object("a").with_metadata("annotations", [(key.into(), value.into())]);
        assert!(keep_mark(with("helm.sh/resource-policy", "Keep").body()).is_some());
        assert!(keep_mark(with("argocd.argoproj.io/sync-options", "Delete=false, Prune=false").body()).is_some());
        assert!(keep_mark(with("kapp.k14s.io/delete-strategy", "ORPHAN").body()).is_some());
        assert!(keep_mark(with("kapp.k14s.io/exists", "").body()).is_some());
        assert!(keep_mark(with("kustomize.toolkit.fluxcd.io/reconcile", "Disabled").body()).is_some());
        assert!(keep_mark(with("helm.sh/resource-policy", "delete").body()).is_none());
        assert!(keep_mark(with("argocd.argoproj.io/sync-options", "Prune=confirm").body()).is_none());
    }

    #[test]
    fn marks_that_ask_for_a_person_are_read() {
        let with = |key: &str, value: &str| object("a").with_metadata("annotations", [(key.into(), value.into())]);
        assert_eq!(confirm_mark(with("gatewright.dev/prune", "Confirm").body()), Some("gatewright.dev/prune"));
        let options = "argocd.argoproj.io/sync-options";
        assert_eq!(confirm_mark(with(options, "Validate=false,prune=Confirm").body()), Some(options));
        assert_eq!(confirm_mark(with("gatewright.dev/prune", "disabled").body()), None);
        assert!(may_be_recreated(with(RECREATE_ANNOTATION, "allowed").body()));
        assert!(!may_be_recreated(with(RECREATE_ANNOTATION, "no").body()));
    }
}
