//! `DYN_DEPLOYMENT_CONFIG`: a variable that says more of a component than its fields, in the way of Dynamo's first versions.
//!
//! The operator reads it where it makes a Deployment or a `LeaderWorkerSet`, and not under Grove.

use gatewright_engine::quantity::Quantity;
use serde_json::Value;

use super::model::{Component, fields};
use crate::json::items;

/// The variable: a mapping from components to what their service is started with.
const VARIABLE: &str = "DYN_DEPLOYMENT_CONFIG";

/// The resources that it may name, with their names in pods.
const RESOURCES: [(&str, &str); 3] = [("cpu", "cpu"), ("memory", "memory"), ("gpu", "nvidia.com/gpu")];

/// Puts what the variable says over a component: its replicas, if it has none, and what it asks for. What cannot be understood
/// is an error: to leave it out and to say nothing would start another graph than was asked for.
pub(super) fn apply(component: &mut Component, env: &[Value]) -> Result<(), String> {
    let own = component.main.get("env").cloned().unwrap_or_default();
    let all = env.iter().chain(items(&own));
    let Some(text) = all.filter(|it| it["name"] == VARIABLE).filter_map(|it| it["value"].as_str()).last() else {
        return Ok(());
    };
    let config: Value = serde_json::from_str(text).map_err(|error| format!("{VARIABLE} is no JSON: {error}"))?;
    let said = &config[&component.name]["ServiceArgs"];
    if let Some(workers) = said.get("workers").filter(|workers| !workers.is_null()) {
        let number = workers.as_u64().filter(|number| *number <= u64::from(i32::MAX.unsigned_abs()));
        let number = number.ok_or_else(|| format!("workers in {VARIABLE} is {workers}, but must be a whole number"))?;
        component.replicas = component.replicas.or(Some(number));
    }
    let mut resources = fields(component.main.get("resources").unwrap_or(&Value::Null));
    for (key, name) in RESOURCES {
        let Some(amount) = said["resources"].get(key).filter(|amount| !amount.is_null()) else { continue };
        if Quantity::of(amount).is_none_or(|amount| amount < Quantity::default()) {
            return Err(format!("{key} in {VARIABLE} is {amount}, but must be a quantity, such as 500m or 2Gi"));
        }
        for part in ["requests", "limits"] {
            let mut quantities = fields(resources.get(part).unwrap_or(&Value::Null));
            quantities.insert(name.to_owned(), amount.clone());
            resources.insert(part.to_owned(), quantities.into());
        }
    }
    if !resources.is_empty() {
        component.main.insert("resources".to_owned(), resources.into());
    }
    Ok(())
}
