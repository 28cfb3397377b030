//! The reasons why waiting was in vain: what the worst pod of an object says, and the newest warning.
//!
//! Asked only when time is up, and about a few objects. What cannot be found out is left out.

use std::collections::BTreeMap;

use gatewright_engine::error::Chain;
use gatewright_engine::health::pods::{newest_warning, worst};
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, ObjectId, is_secret};
use tracing::debug;

use crate::basics::redact::said;
use crate::cluster::{Cluster, Search};
use crate::reconcile::model::Unhealthy;

/// About how many objects is asked: with two requests for each.
const MOST: usize = 3;

/// Adds to what is wrong with objects why that is.
pub(super) async fn explain(cluster: &dyn Cluster, seen: &BTreeMap<ObjectId, Live>, unhealthy: &mut Unhealthy) {
    let asked = unhealthy.iter_mut().filter(|(id, _)| !id.namespace.is_empty() && !is_secret(&id.group, &id.kind));
    // What has pods tells more than what waits for others.
    let (mut workloads, others): (Vec<_>, Vec<_>) =
        asked.filter_map(|(id, what)| Some((seen.get(id)?, what))).partition(|(live, _)| selector(live).is_some());
    workloads.extend(others);
    for (live, what) in workloads.into_iter().take(MOST) {
        for cause in causes(cluster, live).await {
            *what = format!("{what}; {cause}");
        }
    }
}

async fn causes(cluster: &dyn Cluster, live: &Live) -> Vec<String> {
    let mut causes = Vec::new();
    let namespace = &live.object.id().namespace;
    let mut uid = live.uid.clone();
    if let Some(labels) = selector(live) {
        let pods = search(cluster, "Pod", Search { namespace, labels: &labels, fields: "" }).await;
        if let Some((pod, trouble)) = worst(pods.iter().map(|pod| pod.object.body())) {
            let of = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
            causes.push(format!("pod {}: {}", of("name"), said(&trouble.what)));
            of("uid").clone_into(&mut uid);
        }
    }
    let fields = format!("involvedObject.uid={uid},type=Warning");
    let events = search(cluster, "Event", Search { namespace, labels: "", fields: &fields }).await;
    let warning = newest_warning(events.iter().map(|event| event.object.body()));
    causes.extend(warning.map(|warning| format!("newest warning: {}", said(&warning))));
    causes
}

async fn search(cluster: &dyn Cluster, kind: &str, search: Search<'_>) -> Vec<Live> {
    cluster.search(&Gvk::new("v1", kind), search).await.unwrap_or_else(|error| {
        debug!(kind, error = %Chain(&error), "cannot find out why objects are not healthy");
        Vec::new()
    })
}

/// The labels by which a workload knows its pods, as a query has them.
fn selector(live: &Live) -> Option<String> {
    let labels = live.object.body().pointer("/spec/selector/matchLabels")?.as_object()?;
    let pairs = labels.iter().filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)));
    Some(pairs.collect::<Vec<_>>().join(",")).filter(|pairs| !pairs.is_empty())
}
