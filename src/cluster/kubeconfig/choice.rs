//! From a whole kubeconfig to one context, its cluster and its user.

use gatewright_engine::check::suggest;
use kube::config::{AuthInfo, Cluster, Kubeconfig};

use super::{KubeconfigError, Place};

/// The cluster and the user that a context stands for.
pub(super) struct Choice<'a> {
    pub(super) place: Place,
    pub(super) cluster: &'a Cluster,
    /// `None` if the context names no user.
    pub(super) user: Option<&'a AuthInfo>,
}

/// Finds the context, and the cluster and user that it names.
pub(super) fn choose<'a>(
    kubeconfig: &'a Kubeconfig,
    wanted: Option<&str>,
    mut place: Place,
) -> Result<Choice<'a>, KubeconfigError> {
    let contexts: Vec<&str> = kubeconfig.contexts.iter().map(|context| context.name.as_str()).collect();
    let current = kubeconfig.current_context.as_deref().filter(|name| !name.is_empty());
    let Some(name) = wanted.or(current) else {
        let hint = format!("set kubeconfig.context to one of: {}", list(&contexts));
        return Err(place.error("it has no current context", hint));
    };
    let context =
        kubeconfig.contexts.iter().find(|context| context.name == name).and_then(|named| named.context.as_ref());
    let Some(context) = context else {
        return Err(place.error(format!("it has no context {name:?}"), suggestion(name, &contexts)));
    };
    place.context = Some(name.to_owned());

    let clusters: Vec<&str> = kubeconfig.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
    let cluster = kubeconfig.clusters.iter().find(|cluster| cluster.name == context.cluster);
    let Some(cluster) = cluster.and_then(|named| named.cluster.as_ref()) else {
        return Err(place.error(
            format!("its cluster {:?} is not in the file", context.cluster),
            suggestion(&context.cluster, &clusters),
        ));
    };
    let users: Vec<&str> = kubeconfig.auth_infos.iter().map(|user| user.name.as_str()).collect();
    let user = match context.user.as_deref().filter(|name| !name.is_empty()) {
        None => None,
        Some(name) => {
            let user = kubeconfig.auth_infos.iter().find(|user| user.name == name);
            let user = user.and_then(|named| named.auth_info.as_ref());
            Some(user.ok_or_else(|| {
                place.error(format!("its user {name:?} is not in the file"), suggestion(name, &users))
            })?)
        }
    };
    Ok(Choice { place, cluster, user })
}

/// Says which names there are, the one that was probably meant first.
fn suggestion(name: &str, known: &[&str]) -> String {
    match suggest(name, known.iter().copied()) {
        _ if known.is_empty() => "the file has none at all".to_owned(),
        Some(near) => format!("did you mean {near:?}? there are: {}", list(known)),
        None => format!("there are: {}", list(known)),
    }
}

fn list(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    names.join(", ")
}
