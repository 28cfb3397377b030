//! The status of a Gateway: conditions and addresses.

use serde_json::{Value, json};

/// Returns conditions after a look at a generation; `refusal` says why its parameters cannot be used.
///
/// Conditions of others stay. The time of the last change stays while nothing changes.
pub(super) fn conditions(gateway: &Value, refusal: Option<&str>, now: &str) -> Vec<Value> {
    let before = gateway["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let is_ours = |condition: &Value| TYPES.iter().any(|kind| condition["type"] == **kind);
    let others = before.iter().filter(|condition| !is_ours(condition)).cloned();
    let ours = TYPES.iter().map(|kind| {
        let refusal = refusal.filter(|_| *kind == "Accepted");
        let status = if refusal.is_some() { "False" } else { "True" };
        let old = before.iter().find(|condition| condition["type"] == **kind && condition["status"] == status);
        json!({
            "type": kind, "status": status, "message": refusal.unwrap_or_default(),
            "reason": if refusal.is_some() { "InvalidParameters" } else { kind },
            "observedGeneration": gateway["metadata"]["generation"],
            "lastTransitionTime": old.map_or_else(|| now.into(), |old| old["lastTransitionTime"].clone()),
        })
    });
    ours.chain(others).collect()
}

const TYPES: [&str; 3] = ["Accepted", "Programmed", "ResolvedRefs"];

/// Returns the addresses of a Gateway for which a Service was rendered; `None` if they stay as they are.
pub(super) fn addresses_of_service(gateway: &Value, service: Option<&Value>) -> Option<Vec<Value>> {
    let service = service.filter(|service| is_controlled(service, gateway))?;
    let spec = &service["spec"];
    if spec["type"] == "LoadBalancer" {
        let ingress = service["status"]["loadBalancer"]["ingress"].as_array().cloned().unwrap_or_default();
        return Some(ingress.iter().filter_map(of_ingress).collect());
    }
    let of_cluster = spec["clusterIPs"].as_array().cloned().unwrap_or_default();
    let of_cluster = of_cluster.iter().map(|address| json!({"type": "IPAddress", "value": address}));
    Some(of_cluster.chain(addresses_of_spec(gateway)).collect())
}

/// Returns the addresses of a Gateway that somebody else provisions.
pub(super) fn addresses_of_spec(gateway: &Value) -> Vec<Value> {
    let addresses = gateway["spec"]["addresses"].as_array().cloned().unwrap_or_default();
    let usual = Value::from("IPAddress");
    let of = |it: &Value| json!({"type": it.get("type").unwrap_or(&usual), "value": it["value"]});
    addresses.iter().map(of).collect()
}

fn of_ingress(ingress: &Value) -> Option<Value> {
    let of = |field: &str, kind: &str| {
        let value = ingress[field].as_str().filter(|value| !value.is_empty())?;
        Some(json!({"type": kind, "value": value}))
    };
    of("hostname", "Hostname").or_else(|| of("ip", "IPAddress"))
}

/// Tells whether the controller of an object is a Gateway.
pub(super) fn is_controlled(object: &Value, gateway: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let uid = &gateway["metadata"]["uid"];
    owners.filter(|owner| owner["controller"] == true).any(|owner| owner["kind"] == "Gateway" && owner["uid"] == *uid)
}
