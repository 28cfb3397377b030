//! Units of which a deployer in the cluster holds objects: what their Gateway says about it.

use futures::FutureExt;
use gatewright_engine::health::{Health, Readiness, health};
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, ObjectId};
use gatewright_engine::plan::Observed;
use gatewright_engine::plan::deployer::{GatewayState, holder};
use gatewright_engine::spec::GATEWAY_API;
use gatewright_engine::unit::{Declaration, Unit};
use serde_json::Value;

use crate::cluster::{Cluster, ClusterError, Reason};
use crate::reconcile::model::Facts;
use crate::reconcile::requests::{join_bounded, only_local};

/// Looks at the Gateways of all units of which a deployer holds something.
pub(super) async fn look(cluster: &dyn Cluster, facts: &Facts, observed: &mut Observed) -> Result<(), ClusterError> {
    let held = facts.units().filter(|unit| held(unit, observed).next().is_some());
    let looks = held.map(|unit| state(cluster, unit).map(|state| (unit.id.clone(), state)).boxed()).collect();
    for (id, state) in join_bounded(looks).await {
        observed.gateways.insert(id, state?);
    }
    Ok(())
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
