//! Warnings about what is allowed in the parameters of any pack, and yet hardly what somebody meant.

use gatewright_engine::merge::origin::{Merged, MergedContent};
use gatewright_engine::problem::Problem;

/// Notices a repository that begins with a host name, although a registry goes before it: no such image exists
/// anywhere.
pub(crate) fn host_in_repository(parameters: &Merged, path: &str) -> Option<Problem> {
    let said = parameters.at(path)?;
    let registry = said.get("registry").and_then(text).filter(|registry| !registry.is_empty())?;
    let said = said.get("repository")?;
    let repository = text(said)?;
    // How container tools tell a host from the first part of a path.
    let (host, path) = repository.split_once('/')?;
    if !host.contains(['.', ':']) && host != "localhost" {
        return None;
    }
    let image = format!("{registry}/{repository}");
    let message = format!("the image is {image:?}, because its registry goes before the host");
    let hint = format!("put the host into the registry: {{registry: {host:?}, repository: {path:?}}}");
    Some(Problem::warning(said.origin.place.clone(), message).hint(hint))
}

/// Returns a value that is text.
pub(crate) fn text(merged: &Merged) -> Option<&str> {
    match &merged.content {
        MergedContent::Leaf(value) => value.as_str(),
        MergedContent::List(_) | MergedContent::Map(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewright_engine::merge::origin::LayerName;
    use serde_json::json;

    fn check(registry: &str, repository: &str, warning: bool) {
        let image = json!({"a": {"image": {"registry": registry, "repository": repository}}});
        let parameters = Merged::of_value(LayerName::Gateway, "p.yaml", &image);
        assert_eq!(host_in_repository(&parameters, "a.image").is_some(), warning, "{registry:?}, {repository:?}");
    }

    #[test]
    fn a_host_belongs_into_the_registry() {
        check("cr.example.com", "ghcr.io/org/envoy", true);
        check("cr.example.com", "mirror:5000/envoy", true);
        check("cr.example.com", "localhost/envoy", true);
        check("", "ghcr.io/org/envoy", false);
        check("cr.example.com", "org/envoy", false);
        check("cr.example.com", "envoy.wrapper", false);
    }
}
