//! What a source says of things that documents of the Gateway API refer to.
//!
//! It is taken from all documents once, when they are read, because of those that no pack claims little is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::found::text;
use super::x509::Material;
use crate::kinds::row::Scope;
use crate::object::ObjectId;
use crate::spec::namespaces::NAME_LABEL;
use crate::spec::{Document, GATEWAY_API, Specs};
use crate::yaml::Node;

/// Fields by which documents name a Secret that a controller makes of them: requests for certificates, and copies from
/// stores outside the cluster.
const SECRET_FIELDS: [&[&str]; 3] =
    [&["spec", "secretName"], &["spec", "target", "name"], &["spec", "secretRef", "name"]];

/// Ends of annotations by which a controller is asked to make the certificates that listeners name.
const ISSUERS: [&str; 2] = ["/issuer", "/cluster-issuer"];

/// What is known of a source beyond the documents that are kept whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// Secrets that controllers make: namespace and name.
    pub(super) secrets: Arc<BTreeSet<(String, String)>>,
    /// References that are allowed, by the namespace that allows them.
    grants: BTreeMap<String, Vec<Grant>>,
    /// Labels of namespaces.
    namespaces: BTreeMap<String, BTreeMap<String, String>>,
    /// Scopes of kinds that definitions in the source give, by group and kind.
    scopes: BTreeMap<(String, String), Scope>,
    /// Certificates for TLS, by their Secrets.
    pairs: BTreeMap<ObjectId, Material>,
    /// Authorities, by their `ConfigMap`s or Secrets.
    authorities: BTreeMap<ObjectId, Material>,
}

/// One `ReferenceGrant`.
#[derive(Clone, Debug)]
struct Grant {
    /// Group, kind and namespace of what may refer.
    from: BTreeSet<[String; 3]>,
    /// Group, kind and name of what may be referred to; all names where it is empty.
    to: BTreeSet<[String; 3]>,
}

impl Known {
    /// Takes what matters out of the documents of a source.
    pub(crate) fn of(specs: &Specs) -> Self {
        let (mut known, mut secrets) = (Self::default(), BTreeSet::new());
        let home = |document: &Document| specs.home(document).to_owned();
        for document in specs.unclaimed.iter().chain(specs.documents.values()) {
            match document.id.group_kind() {
                (GATEWAY_API, "ReferenceGrant") => {
                    known.grants.entry(home(document)).or_default().push(Grant::of(document));
                }
                ("", "Namespace") => {
                    let labels = document.root.at(["metadata", "labels"]).map(pairs).unwrap_or_default();
                    known.namespaces.insert(document.id.name.clone(), labels);
                }
                ("apiextensions.k8s.io", "CustomResourceDefinition") => known.scopes.extend(scope(document)),
                ("", "Secret" | "ConfigMap") => known.add_certificates(document, specs.home(document)),
                (group, kind) => {
                    let is_copy = !group.is_empty() && kind.ends_with("Secret");
                    let named = SECRET_FIELDS.iter().filter_map(|path| text(&document.root, path));
                    let named = named.chain(is_copy.then_some(document.id.name.as_str()));
                    secrets.extend(named.map(|name| (home(document), name.to_owned())));
                }
            }
        }
        Self { secrets: Arc::new(secrets), ..known }
    }

    fn add_certificates(&mut self, document: &Document, home: &str) {
        let id = || ObjectId::new("", document.id.kind.as_str(), home, document.id.name.as_str());
        let pair = (document.id.kind == "Secret").then(|| Material::pair(document)).flatten();
        self.pairs.extend(pair.map(|pair| (id(), pair)));
        self.authorities.extend(Material::authorities(document).map(|authorities| (id(), authorities)));
    }

    /// Returns what the source holds as a certificate for TLS.
    pub(super) fn pair(&self, secret: &ObjectId) -> Option<&Material> {
        self.pairs.get(secret)
    }

    /// Returns what the source holds as authorities.
    pub(super) fn authorities(&self, id: &ObjectId) -> Option<&Material> {
        self.authorities.get(id)
    }

    /// Tells whether a controller makes a Secret, by what the source says.
    pub(super) fn makes_secret(&self, namespace: &str, name: &str) -> bool {
        self.secrets.contains(&(namespace.to_owned(), name.to_owned()))
    }

    /// Tells whether a reference into another namespace is allowed.
    pub(super) fn grants(&self, from: &ObjectId, to: &ObjectId) -> bool {
        let grants = self.grants.get(&to.namespace).into_iter().flatten();
        let [group, kind, name] = [&to.group, &to.kind, &to.name].map(ToString::to_string);
        let asking = [&from.group, &from.kind, &from.namespace].map(ToString::to_string);
        grants.into_iter().any(|grant| {
            let any = [group.clone(), kind.clone(), String::new()];
            let one = [group.clone(), kind.clone(), name.clone()];
            grant.from.contains(&asking) && (grant.to.contains(&any) || grant.to.contains(&one))
        })
    }

    /// Returns the labels of a namespace that the source holds, with that which every namespace has.
    pub(crate) fn labels(&self, namespace: &str) -> Option<BTreeMap<String, String>> {
        let mut labels = self.namespaces.get(namespace)?.clone();
        labels.insert(NAME_LABEL.to_owned(), namespace.to_owned());
        Some(labels)
    }

    /// Returns the scope that a definition in the source gives to a kind.
    pub(super) fn scope(&self, group: &str, kind: &str) -> Option<Scope> {
        self.scopes.get(&(group.to_owned(), kind.to_owned())).copied()
    }
}

impl Grant {
    fn of(document: &Document) -> Self {
        let all = |list: &str, last: &str| {
            let items = document.root.at(["spec", list]).map(Node::items).unwrap_or_default();
            let field = |item: &Node, name: &str| text(item, &[name]).unwrap_or_default().to_owned();
            items.iter().map(|item| ["group", "kind", last].map(|name| field(item, name))).collect()
        };
        Self { from: all("from", "namespace"), to: all("to", "name") }
    }
}

/// Tells whether a document asks for the certificates of its listeners to be made.
pub(super) fn asks_for_certificates(document: &Document) -> bool {
    let annotations = document.root.at(["metadata", "annotations"]);
    let mut keys = annotations.into_iter().flat_map(Node::fields).map(|(key, _)| key);
    keys.any(|key| ISSUERS.iter().any(|end| key.ends_with(end)))
}

fn scope(document: &Document) -> Option<((String, String), Scope)> {
    let field = |path: &[&str]| text(&document.root, path).map(str::to_owned);
    let scope = if field(&["spec", "scope"])? == "Cluster" { Scope::Cluster } else { Scope::Namespaced };
    Some(((field(&["spec", "group"])?, field(&["spec", "names", "kind"])?), scope))
}

fn pairs(node: &Node) -> BTreeMap<String, String> {
    node.fields().filter_map(|(key, field)| Some((key.to_owned(), field.node.as_str()?.to_owned()))).collect()
}
