//! The addresses of self-managed Gateways.
//!
//! A control plane takes `status.addresses` from the Service that it renders itself. Of a self-managed Gateway it renders
//! none, and takes `spec.addresses` of the Gateway in the cluster. So the copy there says in that field where our Service
//! can be reached; the Gateway in the source, of which the Service is rendered, does not.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::{Value, json};

use super::{Rendering, Unit};
use crate::object::{Object, ObjectId};

/// The most addresses that a Gateway takes (Gateway API, `GatewaySpec.addresses`).
const MOST: usize = 16;

/// Addresses by the Service that has them.
pub type Addresses = BTreeMap<ObjectId, Vec<String>>;

impl Rendering {
    /// Returns the Services whose addresses the copies of their Gateways are to have, each with the copy.
    pub fn addressed(&self) -> impl Iterator<Item = (&Object, &Object)> {
        let units = self.units.iter().filter(|_| self.copies_addresses);
        units.filter_map(|unit| {
            Some((unit.objects.iter().find(|object| object.id().is_a("", "Service"))?, unaddressed(unit)?))
        })
    }

    /// Writes addresses into the copies of Gateways; `None` if there are none to write.
    pub(super) fn with_addresses(&self, addresses: &Addresses) -> Option<Self> {
        let known = |(service, copy): (&Object, &Object)| {
            let addresses = addresses.get(service.id()).filter(|addresses| !addresses.is_empty())?;
            // A load balancer may name one twice, and a Gateway must not.
            let unique: BTreeSet<&String> = addresses.iter().collect();
            Some((copy.id().clone(), unique.into_iter().take(MOST).map(|value| address(value)).collect()))
        };
        let known: BTreeMap<ObjectId, Value> = self.addressed().filter_map(known).collect();
        if known.is_empty() {
            return None;
        }
        let mut rendering = self.clone();
        for unit in rendering.units.iter_mut().filter(|unit| known.contains_key(&unit.id)) {
            unit.map(|object| match known.get(object.id()) {
                Some(addresses) => object.edited(|body| body["spec"]["addresses"] = addresses.clone()),
                None => object,
            });
        }
        Some(rendering)
    }
}

/// The copy of a Gateway that we render, unless its source says at which addresses it is to be.
fn unaddressed(unit: &Unit) -> Option<&Object> {
    let copy = unit.specs.iter().find(|spec| *spec.id() == unit.id).filter(|_| unit.is_told())?;
    copy.body().pointer("/spec/addresses").is_none().then_some(copy)
}

fn address(value: &str) -> Value {
    let kind = if value.parse::<IpAddr>().is_ok() { "IPAddress" } else { "Hostname" };
    json!({"type": kind, "value": value})
}
