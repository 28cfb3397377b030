//! Units of which a deployer in the cluster holds objects: what their Gateway says about it, and what the objects would
//! become if they were adopted.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt;
use gatewright_engine::health::{Health, Readiness, health};
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, Object, ObjectId};
use gatewright_engine::plan::Observed;
use gatewright_engine::plan::deployer::{self, GatewayState, holder};
use gatewright_engine::spec::GATEWAY_API;
use gatewright_engine::unit::{Declaration, Unit};
use serde_json::Value;

use super::{DRY_RUN_TRIES, Scope, dry_run_all, get_again, join_limited, obstacle, only_local};
use crate::cluster::{Cluster, ClusterError, Mode, Reason};

/// Looks at the Gateways of all units of which a deployer holds something.
pub(super) async fn look(cluster: &dyn Cluster, scope: Scope<'_>, observed: &mut Observed) -> Result<(), ClusterError> {
    let held = scope.about().filter(|unit| held(unit, observed).next().is_some());
    let looks = held.map(|unit| state(cluster, unit).map(|state| (unit.id.clone(), state)).boxed()).collect();
    for (id, state) in join_limited(looks).await {
        observed.gateways.insert(id, state?);
    }
    Ok(())
}

/// Dry-runs what would be adopted from the deployer. That is a patch of its own: the result of an apply alone would still have the
/// fields that only the deployer has set.
pub(super) async fn dry_run(
    cluster: &dyn Cluster,
    scope: Scope<'_>,
    observed: &mut Observed,
) -> Result<(), ClusterError> {
    if !scope.policies.adopt_deployer {
        return Ok(());
    }
    let of_unit = |unit| held(unit, observed).map(move |live| (live.object.id().clone(), unit));
    let mut open: BTreeMap<ObjectId, &Unit> = scope.about().flat_map(of_unit).collect();
    for _ in 0..DRY_RUN_TRIES {
        let changed = dry_run_once(cluster, &open, observed).await?;
        if changed.is_empty() {
            break;
        }
        // A status was written in between. What would become of the object as it is now begins with the apply again.
        let objects: Vec<&Object> = scope.wanted().filter(|object| changed.contains(object.id())).collect();
        get_again(cluster, &objects, observed).await?;
        observed.dry_runs.retain(|id, _| !changed.contains(id));
        dry_run_all(cluster, scope, objects, observed).await?;
        open.retain(|id, _| changed.contains(id));
    }
    Ok(())
}

/// Dry-runs the adoption of objects, and returns those that somebody else has written to meanwhile.
async fn dry_run_once(
    cluster: &dyn Cluster,
    objects: &BTreeMap<ObjectId, &Unit>,
    observed: &mut Observed,
) -> Result<BTreeSet<ObjectId>, ClusterError> {
    let candidates = objects.iter().filter_map(|(id, unit)| Some((*unit, observed.live.get(id)?)));
    let patches: Vec<(&Live, Vec<Value>)> = candidates
        .filter_map(|(unit, live)| {
            let applied = observed.dry_runs.get(live.object.id())?.as_ref().ok()?;
            Some((live, deployer::dry_run(unit, live, applied)))
        })
        .collect();
    let mut runs = Vec::with_capacity(patches.len());
    for (live, operations) in &patches {
        let (kind, id) = (live.object.gvk(), live.object.id().clone());
        runs.push(
            async move {
                let run = cluster.patch(&kind, &id, &live.uid, &live.resource_version, operations, Mode::DryRun).await;
                (id, run)
            }
            .boxed(),
        );
    }
    let (mut results, mut changed) = (BTreeMap::new(), BTreeSet::new());
    for (id, run) in join_limited(runs).await {
        match run {
            Ok(live) => drop(results.insert(id, Ok(live))),
            Err(error) if error.reason == Reason::Conflict => drop(changed.insert(id)),
            Err(error) => drop(results.insert(id, Err(obstacle(error)?))),
        }
    }
    observed.dry_runs.extend(results);
    Ok(changed)
}

/// The live objects of a unit that a deployer holds.
fn held<'a>(unit: &'a Unit, observed: &'a Observed) -> impl Iterator<Item = &'a Live> {
    let rendered = unit.objects.iter().chain(unit.generated.iter().map(|generated| &generated.object));
    let live = rendered.filter_map(|object| observed.live.get(object.id()));
    live.filter(|live| holder(unit, live).is_some())
}

async fn state(cluster: &dyn Cluster, unit: &Unit) -> Result<GatewayState, ClusterError> {
    let gvk = Gvk::new(&format!("{GATEWAY_API}/v1"), &unit.id.kind);
    let gateway = match cluster.get(&gvk, &unit.id).await {
        Ok(Some(gateway)) => gateway,
        Ok(None) => return Ok(GatewayState::Absent),
        Err(error) if error.reason == Reason::NotFound => return Ok(GatewayState::Absent),
        Err(error) => return Ok(GatewayState::Unknown(only_local(error)?)),
    };
    let told_by = unit.deployer.as_ref().and_then(|deployer| deployer.told_by.as_ref());
    // Where the Gateway itself is ours to write, what it says now does not matter.
    let Some(declaration) = told_by.filter(|_| unit.specs.is_empty()) else { return Ok(GatewayState::Deployed) };
    match is_self_managed(cluster, &gateway, declaration).await {
        Ok(false) => Ok(GatewayState::Deployed),
        Ok(true) => {
            let accepted = health(gateway.object.body(), Readiness::default()) == Health::Current;
            Ok(GatewayState::SelfManaged { accepted })
        }
        Err(error) => Ok(GatewayState::Unknown(only_local(error)?)),
    }
}

/// Whether the parameters of the Gateway, or those of its class, tell its control plane to leave it alone.
async fn is_self_managed(
    cluster: &dyn Cluster,
    gateway: &Live,
    declaration: &Declaration,
) -> Result<bool, ClusterError> {
    let (id, body) = (gateway.object.id(), gateway.object.body());
    let own = body.pointer("/spec/infrastructure/parametersRef");
    if declares(cluster, own, &id.namespace, declaration).await? {
        return Ok(true);
    }
    let class = body["spec"]["gatewayClassName"].as_str().unwrap_or_default();
    let gvk = Gvk::new(&format!("{GATEWAY_API}/v1"), "GatewayClass");
    let class = cluster.get(&gvk, &ObjectId::new(GATEWAY_API, "GatewayClass", "", class)).await?;
    let reference = class.as_ref().and_then(|class| class.object.body().pointer("/spec/parametersRef"));
    let namespace = reference.and_then(|reference| reference["namespace"].as_str()).unwrap_or_default();
    declares(cluster, reference, namespace, declaration).await
}

async fn declares(
    cluster: &dyn Cluster,
    reference: Option<&Value>,
    namespace: &str,
    declaration: &Declaration,
) -> Result<bool, ClusterError> {
    let Declaration { gvk, spec } = declaration;
    let Some(reference) = reference.filter(|it| it["group"] == *gvk.group && it["kind"] == *gvk.kind) else {
        return Ok(false);
    };
    let name = reference["name"].as_str().unwrap_or_default();
    let parameters = cluster.get(gvk, &ObjectId::new(&gvk.group, &gvk.kind, namespace, name)).await?;
    Ok(parameters.is_some_and(|parameters| says(&parameters.object.body()["spec"], spec)))
}

/// Tells whether one value says all that another says.
fn says(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Object(value), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| value.get(key).is_some_and(|value| says(value, wanted)))
        }
        (value, wanted) => value == wanted,
    }
}
