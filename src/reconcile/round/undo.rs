//! The plan of an undo: what was there before is wanted, as far as nobody else has changed it or has it by now.
//!
//! A dry run does not look whether a clusterIP is free, so that the plan would promise what cannot be. API servers keep
//! an `IPAddress` for each that is in use; older ones do not, and then the write will tell.

use std::collections::BTreeSet;

use gatewright_engine::inventory::Inventory;
use gatewright_engine::object::{Gvk, ObjectId};
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::plan::refusal::{Reason, Refusal};
use gatewright_engine::plan::restore::{Change, Restoration, restoration};
use gatewright_engine::plan::{self, Observed, Plan};
use serde_json::Value;

use crate::cluster::Cluster;

/// Plans to take back what a round has done. What it was not about stays in the inventory.
pub(super) async fn plan(
    cluster: &dyn Cluster,
    changes: &[Change],
    observed: &Observed,
    owned: &Inventory,
    policies: &Policies,
) -> Plan {
    let mut restoration = restoration(changes, observed, owned, &policies.marker);
    leave_out(cluster, &mut restoration, observed).await;
    let left_alone = restoration.refusals.iter().map(|refusal| refusal.id.clone()).collect();
    let policies = Policies { left_alone, ..policies.clone() };
    let mut plan = plan::plan(&restoration.rendering, observed, &restoration.owned, &policies);
    plan.refusals.extend(restoration.refusals);
    for (id, entry) in &owned.entries {
        plan.inventory.entries.entry(id.clone()).or_insert_with(|| entry.clone());
    }
    plan
}

/// Leaves out Services that are to be made with an address that another one has.
async fn leave_out(cluster: &dyn Cluster, restoration: &mut Restoration, observed: &Observed) {
    let mut refusals: Vec<Refusal> = Vec::new();
    for (unit, id, address) in asked_for(restoration, observed) {
        let owner = owner(cluster, &address).await.filter(|owner| *owner != id);
        if let Some(owner) = owner.filter(|_| refusals.iter().all(|refusal| refusal.id != id)) {
            let reason = Reason::NotUndone(format!("its clusterIP {address} belongs to {owner} now"));
            refusals.push(Refusal { unit, id, reason });
        }
    }
    restoration.refuse(refusals);
}

/// The addresses that Services ask for which are to be made: unit, Service, address.
fn asked_for(restoration: &Restoration, observed: &Observed) -> BTreeSet<(ObjectId, ObjectId, String)> {
    let mut asked = BTreeSet::new();
    for unit in &restoration.rendering.units {
        let services = unit.objects.iter().filter(|object| object.id().is_a("", "Service"));
        for service in services.filter(|service| !observed.live.contains_key(service.id())) {
            let spec = &service.body()["spec"];
            let all = spec["clusterIPs"].as_array().into_iter().flatten().chain([&spec["clusterIP"]]);
            let all = all.filter_map(Value::as_str).filter(|address| !["", "None"].contains(address));
            asked.extend(all.map(|address| (unit.id.clone(), service.id().clone(), address.to_owned())));
        }
    }
    asked
}

/// The Service that has an address; `None` if nobody has it, or nobody can tell.
async fn owner(cluster: &dyn Cluster, address: &str) -> Option<ObjectId> {
    let kind = Gvk::new("networking.k8s.io/v1", "IPAddress");
    let id = ObjectId::new("networking.k8s.io", "IPAddress", "", address);
    let live = cluster.get(&kind, &id).await.ok()??;
    let parent = live.object.body().pointer("/spec/parentRef")?;
    let text = |field: &str| parent[field].as_str().unwrap_or_default();
    let kind = if text("resource") == "services" { "Service" } else { text("resource") };
    Some(ObjectId::new(text("group"), kind, text("namespace"), text("name")))
}
