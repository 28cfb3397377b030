//! Warnings about what is allowed in the parameters of any pack, and yet hardly what somebody meant.

use gatewright_engine::merge::origin::{Merged, MergedContent};
use gatewright_engine::pack::Subject;
use gatewright_engine::problem::Problem;

use crate::problems::warning;

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

/// Warns about a listener on a port that the proxy itself takes.
pub(crate) fn listener_port(subject: &Subject<'_>, index: usize, what: &str, hint: &str) -> Problem {
    let listener = &subject.gateway.spec.listeners[index];
    let message = format!("port {} of the listener {:?} is {what}", listener.port, listener.name);
    let path = ["spec", "listeners", &index.to_string(), "port"];
    warning(subject.document, &path, message).hint(hint)
}

/// Warns about a field of which the control plane takes a zero for nothing at all.
pub(crate) fn zero(parameters: &Merged, path: &str, message: &str, hint: &str) -> Option<Problem> {
    let said = parameters.at(path).filter(|said| said.is_zero())?;
    Some(Problem::warning(said.origin.place.clone(), message).hint(hint))
}

/// Returns the variables of a list, with their names.
pub(crate) fn variables<'a>(parameters: &'a Merged, path: &str) -> impl Iterator<Item = (&'a Merged, &'a str)> {
    let items = match parameters.at(path).map(|env| &env.content) {
        Some(MergedContent::List(items)) => items.as_slice(),
        _ => &[],
    };
    items.iter().filter_map(|item| Some((item, item.get("name").and_then(text)?)))
}

/// Warns about a variable that stands twice in one layer. Another layer's is meant to be replaced.
pub(crate) fn second_variable(item: &Merged, name: &str) -> Problem {
    let message = format!("the variable {name:?} stands here a second time; the last one counts");
    let hint = "an object that has both is refused by the API server";
    Problem::warning(item.origin.place.clone(), message).hint(hint)
}

/// Returns a value that is text.
fn text(merged: &Merged) -> Option<&str> {
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
