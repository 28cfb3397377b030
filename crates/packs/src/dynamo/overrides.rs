//! `DYN_DEPLOYMENT_CONFIG`: a variable that says more of a component than its fields, in the way of Dynamo's first versions.
//!
//! The operator reads it where it makes a Deployment or a `LeaderWorkerSet`, and not under Grove.

use serde_json::{Value, json};

use super::model::{Component, fields};
use crate::json::items;

/// The variable: a mapping from components to what their service is started with.
const VARIABLE: &str = "DYN_DEPLOYMENT_CONFIG";

/// Puts what the variable says over a component: its replicas, if it has none, and what it asks for.
pub(super) fn apply(component: &mut Component, env: &[Value]) {
    let own = component.main.get("env").cloned().unwrap_or_default();
    let all = env.iter().chain(items(&own));
    let Some(text) = all.filter(|it| it["name"] == VARIABLE).filter_map(|it| it["value"].as_str()).last() else {
        return;
    };
    let config: Value = serde_json::from_str(text).unwrap_or_default();
    let said = &config[&component.name]["ServiceArgs"];
    component.replicas = component.replicas.or_else(|| said["workers"].as_u64());
    let named = [("cpu", "cpu"), ("memory", "memory"), ("gpu", "nvidia.com/gpu")];
    let asked: Vec<(&str, &Value)> =
        named.iter().filter_map(|(key, name)| Some((*name, said["resources"].get(key)?))).collect();
    if asked.is_empty() {
        return;
    }
    let mut resources = fields(component.main.get("resources").unwrap_or(&Value::Null));
    for part in ["requests", "limits"] {
        let mut quantities = fields(resources.get(part).unwrap_or(&Value::Null));
        quantities.extend(asked.iter().map(|(name, quantity)| ((*name).to_owned(), (*quantity).clone())));
        resources.insert(part.to_owned(), quantities.into());
    }
    component.main.insert("resources".to_owned(), json!(resources));
}
