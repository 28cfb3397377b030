//! The Secrets that the listeners of a Gateway name.
//!
//! kgateway's control plane reads them and sends the certificates to the proxy. A file of them is for what stands
//! beside Envoy, or for an Envoy that is configured by hand.

use std::collections::BTreeSet;

use gatewright_engine::pack::Subject;
use gatewright_engine::problem::Problem;
use gatewright_engine::spec::Document;
use gatewright_engine::spec::gateway::Listener;
use serde::Deserialize;
use serde_json::Value;

const HINT: &str = "nothing is mounted for it; the control plane sends the certificate to the proxy in any case";

/// A reference as it stands in a listener.
#[derive(Debug, Deserialize)]
struct Reference {
    #[serde(default)]
    group: Option<String>,
    #[serde(default)]
    kind: Option<String>,
    name: String,
    #[serde(default)]
    namespace: Option<String>,
}

/// Returns the names of the Secrets that pods of the Gateway can mount, and a warning about every other reference.
pub(super) fn secrets(subject: &Subject<'_>) -> (BTreeSet<String>, Vec<Problem>) {
    let sets = subject.listener_set_documents.iter().zip(subject.listener_sets);
    let sets = sets.map(|(document, set)| (*document, set.spec.listeners.as_slice()));
    let own = (subject.document, subject.gateway.spec.listeners.as_slice());
    let (mut names, mut warnings) = (BTreeSet::new(), Vec::new());
    for (document, listeners) in std::iter::once(own).chain(sets) {
        for (reference, path) in references(listeners) {
            match mountable(subject, document, reference) {
                Ok(name) => drop(names.insert(name)),
                Err(message) => {
                    let path: Vec<&str> = path.iter().map(String::as_str).collect();
                    let problem = Problem::warning(document.place_of(&path), message);
                    warnings.push(problem.about(document.id.clone()).hint(HINT));
                }
            }
        }
    }
    (names, warnings)
}

/// Returns all references, each with the path at which it stands. A listener that passes TLS on needs none.
fn references(listeners: &[Listener]) -> Vec<(Reference, [String; 6])> {
    let mut found = Vec::new();
    for (index, listener) in listeners.iter().enumerate() {
        let Some(tls) = listener.tls.as_ref().filter(|tls| tls["mode"] != "Passthrough") else { continue };
        let listed = tls["certificateRefs"].as_array().into_iter().flatten().cloned();
        for (number, reference) in listed.enumerate() {
            let path = ["spec", "listeners", &index.to_string(), "tls", "certificateRefs", &number.to_string()];
            found.extend(read(reference).map(|reference| (reference, path.map(str::to_owned))));
        }
    }
    found
}

/// Reads a reference; what is no reference names no Secret.
fn read(reference: Value) -> Option<Reference> {
    serde_json::from_value(reference).ok()
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
