//! Devices that pods claim by dynamic resource allocation, asked for by annotations of a service.

use gatewright_engine::problem::Problem;
use serde_json::{Value, json};

use super::pods::{MAIN, add_named, container};
use super::service::Service;
use crate::json::{said, without_nulls};

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
    pub(super) spec: Value,
    container: String,
}

/// Reads what a service asks for.
pub(super) fn read(service: &Service<'_>) -> Result<Option<Devices>, Box<Problem>> {
    let annotations = service.annotations();
    let text = |name: &str| annotations.get(name).and_then(|text| said(text));
    let Some(class) = text(CLASS) else { return Ok(None) };
    let number = |count: &str| {
        count.parse::<u32>().ok().filter(|&number| number > 0).ok_or_else(|| {
            Box::new(service.problem(&["metadata", "annotations", COUNT], format!("{count:?} is no number of devices")))
        })
    };
    let count = text(COUNT).map(number).transpose()?.filter(|&number| number > 1);
    let lines = text(SELECTOR).unwrap_or_default().lines().map(str::trim).filter(|line| !line.is_empty());
    let selectors: Vec<Value> = lines.map(|line| json!({"cel": {"expression": line}})).collect();
    let selectors = Some(selectors).filter(|selectors| !selectors.is_empty());
    let exactly = without_nulls(json!({"deviceClassName": class, "count": count, "selectors": selectors}));
    let container = text(CONTAINER).unwrap_or(MAIN).to_owned();
    let spec = json!({"spec": {"devices": {"requests": [{"name": "device", "exactly": exactly}]}}});
    Ok(Some(Devices { name: service.child("-managed-dra"), spec, container }))
}

/// Makes a pod claim the devices.
pub(super) fn attach(pod: &mut Value, devices: &Devices) {
    add_named(pod, "resourceClaims", json!({"name": CLAIM, "resourceClaimTemplateName": devices.name}));
    if let Some(container) = container(pod, &devices.container) {
        add_named(&mut container["resources"], "claims", json!({"name": CLAIM}));
    }
}
