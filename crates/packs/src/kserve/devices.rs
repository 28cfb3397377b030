//! Devices that pods claim by dynamic resource allocation, asked for by annotations of a service.

use gatewright_engine::problem::Problem;
use serde_json::{Value, json};

use super::pods::{container, list};
use super::service::Service;

const CLASS: &str = "serving.kserve.io/exp-dra-device-class";
const SELECTOR: &str = "serving.kserve.io/exp-dra-cel-selector";
const COUNT: &str = "serving.kserve.io/exp-dra-device-count";
const CONTAINER: &str = "serving.kserve.io/exp-dra-container-name";

/// The name that pods give their claim.
const CLAIM: &str = "managed-device";

/// Devices that are claimed for a service.
pub(super) struct Devices {
    /// The name of the `ResourceClaimTemplate`.
    pub(super) name: String,
    /// Its `spec`.
    pub(super) spec: Value,
    container: String,
}

/// Reads what a service asks for.
pub(super) fn read(service: &Service<'_>) -> Result<Option<Devices>, Box<Problem>> {
    let annotations = service.annotations();
    let text = |name: &str| annotations.get(name).map(String::as_str).filter(|text| !text.is_empty());
    let Some(class) = text(CLASS) else { return Ok(None) };
    let mut exactly = json!({"deviceClassName": class});
    if let Some(count) = text(COUNT) {
        let number = count.parse::<u32>().ok().filter(|&number| number > 0);
        let number = number.ok_or_else(|| {
            Box::new(service.problem(&["metadata", "annotations", COUNT], format!("{count:?} is no number of devices")))
        })?;
        if number > 1 {
            exactly["count"] = number.into();
        }
    }
    let lines = text(SELECTOR).unwrap_or_default().lines().map(str::trim).filter(|line| !line.is_empty());
    let selectors: Vec<Value> = lines.map(|line| json!({"cel": {"expression": line}})).collect();
    if !selectors.is_empty() {
        exactly["selectors"] = selectors.into();
    }
    let container = text(CONTAINER).unwrap_or("main").to_owned();
    let spec = json!({"spec": {"devices": {"requests": [{"name": "device", "exactly": exactly}]}}});
    Ok(Some(Devices { name: service.child("-managed-dra"), spec, container }))
}

/// Makes a pod claim the devices.
pub(super) fn attach(pod: &mut Value, devices: &Devices) {
    let claims = list(pod, "resourceClaims");
    if !claims.iter().any(|claim| claim["name"] == CLAIM) {
        claims.push(json!({"name": CLAIM, "resourceClaimTemplateName": devices.name}));
    }
    if let Some(container) = container(pod, &devices.container) {
        let claims = list(&mut container["resources"], "claims");
        if !claims.iter().any(|claim| claim["name"] == CLAIM) {
            claims.push(json!({"name": CLAIM}));
        }
    }
}
