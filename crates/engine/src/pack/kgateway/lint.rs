//! What is allowed, and yet hardly what somebody meant.

use super::ports::RESERVED;
use crate::merge::origin::{Merged, MergedContent};
use crate::pack::Subject;
use crate::problem::Problem;

/// Returns a remark for everything of that sort.
pub(super) fn lint(subject: &Subject<'_>, parameters: &Merged) -> Vec<Problem> {
    reserved_ports(subject).chain(host_in_repository(parameters)).collect()
}

/// A listener on a port that the proxy itself takes: it opens nothing.
fn reserved_ports<'a>(subject: &'a Subject<'_>) -> impl Iterator<Item = Problem> + 'a {
    let listeners = subject.gateway.spec.listeners.iter().enumerate();
    listeners.filter(|(_, listener)| RESERVED.contains(&listener.port)).map(|(index, listener)| {
        let message = format!("port {} of the listener {:?} is one of the proxy's own", listener.port, listener.name);
        let place = subject.document.place_of(&["spec", "listeners", &index.to_string(), "port"]);
        let hint = "nothing is opened for this listener; give it another port";
        Problem::notice(place, message).about(subject.document.id.clone()).hint(hint)
    })
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

    fn check(registry: &str, repository: &str, remark: bool) {
        let image = json!({"kube": {"envoyContainer": {"image": {"registry": registry, "repository": repository}}}});
        let parameters = Merged::of_value(LayerName::Gateway, "p.yaml", &image);
        assert_eq!(host_in_repository(&parameters).is_some(), remark, "{registry:?}, {repository:?}");
    }

    #[test]
    fn a_host_belongs_into_the_registry() {
        check("cr.kgateway.dev", "ghcr.io/org/envoy", true);
        check("cr.kgateway.dev", "mirror:5000/envoy", true);
        check("cr.kgateway.dev", "localhost/envoy", true);
        check("", "ghcr.io/org/envoy", false);
        check("cr.kgateway.dev", "org/envoy", false);
        check("cr.kgateway.dev", "envoy.wrapper", false);
    }
}
