//! The Secrets that the listeners of a Gateway name.
//!
//! kgateway's control plane reads them and sends the certificates to the proxy. A file of them is for what stands
//! beside Envoy, or for an Envoy that is configured by hand.

use std::collections::BTreeSet;

use gatewright_engine::pack::Subject;
use gatewright_engine::problem::Problem;
use gatewright_engine::spec::Document;
use gatewright_engine::yaml::{Node, Position};
use serde::Deserialize;

const HINT: &str = "nothing is mounted for it; the control plane sends the certificate to the proxy in any case";

/// A reference as it stands in a listener.
#[derive(Debug, Deserialize)]
struct Reference {
    group: Option<String>,
    kind: Option<String>,
    name: String,
    namespace: Option<String>,
}

/// Returns the names of the Secrets that pods of the Gateway can mount, and a warning about every other reference.
pub(super) fn secrets(subject: &Subject<'_>) -> (BTreeSet<String>, Vec<Problem>) {
    let (mut names, mut warnings) = (BTreeSet::new(), Vec::new());
    for document in std::iter::once(&subject.document).chain(subject.listener_set_documents) {
        for (reference, position) in references(document) {
            match mountable(subject, document, reference) {
                Ok(name) => drop(names.insert(name)),
                Err(message) => {
                    let problem = Problem::warning(document.at(position), message);
                    warnings.push(problem.about(document.id.clone()).hint(HINT));
                }
            }
        }
    }
    (names, warnings)
}

/// Returns all references, each with its position. A listener that passes TLS on needs none.
fn references(document: &Document) -> impl Iterator<Item = (Reference, Position)> {
    let listeners = document.root.at(["spec", "listeners"]).map(Node::items).unwrap_or_default();
    let is_ended = |tls: &&Node| tls.get("mode").and_then(Node::as_str) != Some("Passthrough");
    let tls = listeners.iter().filter_map(|listener| listener.get("tls")).filter(is_ended);
    let listed = tls.filter_map(|tls| tls.get("certificateRefs")).flat_map(Node::items);
    // What is no reference names no Secret.
    listed.filter_map(|node| Some((serde_json::from_value(node.to_value()).ok()?, node.position)))
}

/// Returns the name of the Secret, or why no pod of the Gateway can mount it.
fn mountable(subject: &Subject<'_>, document: &Document, reference: Reference) -> Result<String, String> {
    let (group, kind) = (reference.group.unwrap_or_default(), reference.kind.unwrap_or_else(|| "Secret".to_owned()));
    if !group.is_empty() || kind != "Secret" {
        return Err(format!("the certificate {:?} is no Secret, and only Secrets are mounted", reference.name));
    }
    let namespace = home(document, reference.namespace.as_deref());
    if namespace != subject.namespace {
        let secret = format!("{namespace}/{}", reference.name);
        return Err(format!("the Secret {secret} is in another namespace than the pods, which cannot mount it"));
    }
    Ok(reference.name)
}

/// The namespace that a reference means. Where all specs count as written for another namespace, so do references.
fn home<'a>(document: &'a Document, said: Option<&'a str>) -> &'a str {
    let written = document.root.at(["metadata", "namespace"]).and_then(|node| node.as_str()).unwrap_or("default");
    match said {
        Some(said) if document.id.namespace == written => said,
        _ => &document.id.namespace,
    }
}
