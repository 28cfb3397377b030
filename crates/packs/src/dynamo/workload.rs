//! The objects that run the pods of a graph: `Deployments` and `LeaderWorkerSets`, or one `PodCliqueSet`.

use serde_json::{Value, json};

use super::model::{Component, GROVE, Graph, LWS};
use super::nodes::{Provider, Role};
use super::pod::{Maker, Part};
use super::settings::WorkloadProvider;
use gatewright_engine::pack::gateway::Map as Texts;
use gatewright_engine::selector::Capabilities;

/// The names of a set of cliques, of a scaling group and of a clique together (Grove's own limit).
const MOST_IN_GROVE: usize = 45;

/// The name of a Service, and the value of a label (RFC 1123).
const MOST: usize = 63;

/// Decides what makes the pods of a graph, or says why nothing can.
///
/// Nothing is known of what a cluster serves where there are no capabilities.
pub(super) fn provider(
    graph: &Graph,
    wanted: WorkloadProvider,
    capabilities: Option<&Capabilities>,
) -> Result<Provider, String> {
    let is_served = |(group, kind): (&str, &str)| capabilities.map(|cluster| cluster.serves(group, kind));
    let provider = match wanted {
        WorkloadProvider::Grove => Provider::Grove,
        WorkloadProvider::Deployment => Provider::Deployment,
        WorkloadProvider::Lws => Provider::Lws,
        WorkloadProvider::Auto => {
            let refused = graph.alone || graph.switch("nvidia.com/enable-grove") == Some("false");
            if !refused && is_served(GROVE) == Some(true) { Provider::Grove } else { Provider::Lws }
        }
    };
    let several = graph.components.iter().find(|component| component.is_multinode());
    match (provider, several) {
        (Provider::Grove, _) if graph.alone => {
            Err("a component that stands alone is no graph, and Grove runs graphs".to_owned())
        }
        (Provider::Grove, _) if is_served(GROVE) == Some(false) => Err("the cluster does not serve Grove".to_owned()),
        (Provider::Deployment, Some(it)) => {
            Err(format!("component {:?} is on {} nodes, and workloadProvider is deployment", it.name, it.nodes))
        }
        (Provider::Lws, Some(it)) if is_served(LWS) == Some(false) => Err(format!(
            "component {:?} is on {} nodes, and the cluster serves neither Grove nor LeaderWorkerSets",
            it.name, it.nodes
        )),
        _ => Ok(provider),
    }
}

/// Says which component makes a name too long, and by how much.
pub(super) fn too_long<'a>(graph: &'a Graph, provider: Provider) -> Option<(&'a Component, String)> {
    let over = |component: &'a Component| {
        let (length, most, what) = match provider {
            Provider::Grove => (in_grove(component), MOST_IN_GROVE, "scaling group and clique"),
            _ => (graph.child(component).len(), MOST, "name and component"),
        };
        let message = format!(
            "{:?} and component {:?} are too long together: {what} have {length} characters, {most} are possible",
            graph.name, component.name
        );
        (length > most).then_some((component, message))
    };
    graph.components.iter().find_map(over)
}

/// The characters that the names of a scaling group and of a clique of a component have together.
fn in_grove(component: &Component) -> usize {
    let name = component.lower().len();
    if component.is_multinode() { 2 * name + "-ldr".len() } else { name }
}

/// The characters at the end of a name that was cut: a hyphen and four digits.
const CUT: usize = 5;

/// The characters at its beginning that the operator keeps in any case, even if that is one more than Grove allows.
const KEPT: usize = 3;

/// Returns the name of the set of cliques of a graph: its own, or the beginning of it and a hash of the whole where names
/// of pods would become too long. The hash is the operator's: the lower half of 32-bit FNV-1a.
fn clique_set_name(graph: &Graph) -> String {
    let longest = graph.components.iter().map(in_grove).max().unwrap_or_default();
    let free = MOST_IN_GROVE.saturating_sub(longest).max(CUT + KEPT);
    if graph.name.len() <= free {
        return graph.name.clone();
    }
    let hash =
        graph.name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let beginning: String = graph.name.chars().take(free - CUT).collect();
    format!("{beginning}-{:04x}", hash & 0xffff)
}

pub(super) fn deployment(maker: &Maker<'_>, part: Part<'_>) -> Result<Value, String> {
    let component = part.component;
    let name = maker.graph.child(component);
    let annotations = maker.pod_annotations(component);
    Ok(json!({
        "name": name,
        "labels": maker.labels(component),
        "annotations": maker.annotations(component),
        "replicas": component.replicas,
        "selector": {"nvidia.com/selector": name},
        "strategy": strategy(&annotations),
        "template": {
            "metadata": {"labels": maker.pod_labels(component), "annotations": annotations},
            "spec": maker.pod(part, Role::Single)?,
        },
    }))
}

fn strategy(annotations: &Texts) -> Value {
    let said = |key: &str| annotations.get(&format!("nvidia.com/deployment-{key}")).map(String::as_str);
    if said("strategy") == Some("Recreate") {
        return json!({"type": "Recreate"});
    }
    // A share is text, a number is none.
    let amount = |key: &str| {
        let text = said(key).unwrap_or("25%");
        text.parse::<u64>().map_or_else(|_| json!(text), |number| json!(number))
    };
    let (surge, unavailable) = (amount("rolling-update-max-surge"), amount("rolling-update-max-unavailable"));
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}})
}

pub(super) fn leader_worker_set(maker: &Maker<'_>, part: Part<'_>) -> Result<Value, String> {
    let component = part.component;
    let annotations = maker.pod_annotations(component);
    let template = |role: Role, name: &str| -> Result<Value, String> {
        let mut labels = maker.pod_labels(component);
        // Its pods are selected by what the controller adds; that of a Deployment would be in the way.
        labels.remove("nvidia.com/selector");
        labels.insert("role".to_owned(), name.to_owned());
        Ok(json!({"metadata": {"labels": labels, "annotations": annotations}, "spec": maker.pod(part, role)?}))
    };
    Ok(json!({
        "name": format!("{}-0", maker.graph.child(component)),
        "labels": maker.labels(component),
        "annotations": maker.graph.annotations,
        "replicas": component.replicas(),
        "size": component.nodes,
        "leader": template(Role::Leader, "leader")?,
        "worker": template(Role::Worker, "worker")?,
    }))
}

pub(super) fn clique_set(maker: &Maker<'_>, parts: &[Part<'_>]) -> Result<Value, String> {
    let graph = maker.graph;
    let (mut cliques, mut groups) = (Vec::new(), Vec::new());
    let is_ordered = |part: &Part<'_>| part.launch.is_some_and(|launch| launch.leader_last);
    for part in parts {
        let component = part.component;
        let name = component.lower();
        if !component.is_multinode() {
            let least = component.min_available.unwrap_or(1);
            cliques.push(clique(maker, *part, Role::Single, (&name, component.replicas(), least))?);
            continue;
        }
        let (leader, worker) = (format!("{name}-ldr"), format!("{name}-wkr"));
        let others = component.nodes - 1;
        let mut first = clique(maker, *part, Role::Leader, (&leader, 1, 1))?;
        if is_ordered(part) {
            first["spec"]["startsAfter"] = json!([worker]);
        }
        cliques.push(first);
        cliques.push(clique(maker, *part, Role::Worker, (&worker, others, others))?);
        groups.push(json!({
            "name": name,
            "cliqueNames": [leader, worker],
            "replicas": component.replicas(),
            "minAvailable": component.min_available.unwrap_or(1),
        }));
    }
    let mut labels = graph.labels.clone();
    labels.insert("nvidia.com/dynamo-graph-deployment-name".to_owned(), graph.name.clone());
    Ok(json!({
        "name": clique_set_name(graph),
        "labels": labels,
        "annotations": graph.annotations,
        "startup": if parts.iter().any(is_ordered) { "CliqueStartupTypeExplicit" } else { "CliqueStartupTypeAnyOrder" },
        "terminationDelay": maker.settings.orchestrators.grove.termination_delay,
        "priorityClassName": graph.priority_class,
        "cliques": cliques,
        "groups": groups,
    }))
}

fn clique(
    maker: &Maker<'_>,
    part: Part<'_>,
    role: Role,
    (name, replicas, least): (&str, u64, u64),
) -> Result<Value, String> {
    Ok(json!({
        "name": name,
        "labels": maker.pod_labels(part.component),
        "annotations": maker.pod_annotations(part.component),
        "spec": {"roleName": name, "replicas": replicas, "minAvailable": least, "podSpec": maker.pod(part, role)?},
    }))
}
