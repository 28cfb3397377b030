//! From a whole kubeconfig to one context, its cluster and its user.

use gatewright_engine::check::suggest;
use kube::config::{AuthInfo, Cluster, Kubeconfig};

use super::{KubeconfigError, Origin, Place, Settings};

/// The cluster and the user that a context stands for.
pub(super) struct Choice<'a> {
    pub(super) place: Place,
    pub(super) cluster: &'a Cluster,
    /// `None` if the context names no user.
    pub(super) user: Option<&'a AuthInfo>,
}

pub(super) fn choose<'a>(
    kubeconfig: &'a Kubeconfig,
    settings: &Settings,
    mut place: Place,
) -> Result<Choice<'a>, KubeconfigError> {
    let contexts = kubeconfig.contexts.iter().map(|it| (it.name.as_str(), &it.context));
    let clusters = kubeconfig.clusters.iter().map(|it| (it.name.as_str(), &it.cluster));
    let users = kubeconfig.auth_infos.iter().map(|it| (it.name.as_str(), &it.auth_info));
    let current = kubeconfig.current_context.as_deref().filter(|name| !name.is_empty());
    let Some(name) = settings.context.as_deref().or(current) else {
        let setting = match settings.origin {
            Origin::Cluster | Origin::Management => "set kubeconfig.context to one of",
            Origin::Folder | Origin::Secret(_) => "set current-context in the kubeconfig to one of",
            Origin::Flags => "choose one by --context",
        };
        let hint = match list(contexts.map(|(name, _)| name)) {
            none if none.is_empty() => "the file has no context at all: is it a kubeconfig?".to_owned(),
            names => format!("{setting}: {names}"),
        };
        return Err(place.error("it has no current context", hint));
    };
    let context = find(name, contexts).map_err(|hint| place.error(format!("it has no context {name:?}"), hint))?;
    place.context = Some(name.to_owned());
    let absent = |what, name, hint| place.error(format!("its {what} {name:?} is not in the file"), hint);
    let cluster = find(&context.cluster, clusters).map_err(|hint| absent("cluster", context.cluster.as_str(), hint))?;
    let user = context.user.as_deref().filter(|name| !name.is_empty());
    let user = user.map(|name| find(name, users).map_err(|hint| absent("user", name, hint))).transpose()?;
    Ok(Choice { place, cluster, user })
}

/// Finds what has a name, or says which names there are, the one that was probably meant first.
fn find<'a, T>(name: &str, all: impl Iterator<Item = (&'a str, &'a Option<T>)> + Clone) -> Result<&'a T, String> {
    let found = all.clone().find(|(known, _)| *known == name).and_then(|(_, value)| value.as_ref());
    let known = all.map(|(known, _)| known);
    found.ok_or_else(|| match suggest(name, known.clone()) {
        _ if known.clone().next().is_none() => "the file has none at all".to_owned(),
        Some(near) => format!("did you mean {near:?}? there are: {}", list(known)),
        None => format!("there are: {}", list(known)),
    })
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}
