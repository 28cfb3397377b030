//! Parameters that are allowed, and yet hardly what somebody meant.

use crate::merge::origin::{Merged, MergedContent};
use crate::problem::Problem;

/// Returns a remark for every such parameter.
pub(super) fn lint(parameters: &Merged) -> Vec<Problem> {
    host_in_repository(parameters).into_iter().collect()
}

/// A repository that begins with a host name, although a registry goes before it: no such image exists anywhere.
///
/// The remark names no Gateway, so that one line in the parameters of a class is one remark and not a thousand.
fn host_in_repository(parameters: &Merged) -> Option<Problem> {
    let said = parameters.at("kube.envoyContainer.image")?;
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
    Some(Problem::notice(said.origin.place.clone(), message).hint(hint))
}

fn text(merged: &Merged) -> Option<&str> {
    match &merged.content {
        MergedContent::Leaf(value) => value.as_str(),
        MergedContent::List(_) | MergedContent::Map(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::origin::LayerName;
    use serde_json::json;

    fn check(registry: &str, repository: &str, remarks: usize) {
        let image = json!({"kube": {"envoyContainer": {"image": {"registry": registry, "repository": repository}}}});
        let parameters = Merged::of_value(LayerName::Gateway, "p.yaml", &image);
        assert_eq!(lint(&parameters).len(), remarks, "{registry:?}, {repository:?}");
    }

    #[test]
    fn a_host_belongs_into_the_registry() {
        check("cr.kgateway.dev", "ghcr.io/org/envoy", 1);
        check("cr.kgateway.dev", "mirror:5000/envoy", 1);
        check("cr.kgateway.dev", "localhost/envoy", 1);
        check("", "ghcr.io/org/envoy", 0);
        check("cr.kgateway.dev", "org/envoy", 0);
        check("cr.kgateway.dev", "envoy.wrapper", 0);
    }
}
