//! The two containers that fetch Istio's certificates and hand them to Envoy.

use serde_json::{Value, json};

use super::parameters::Kube;
use super::values::Wrong;
use crate::gateway;

/// The port on which the `sds` container answers Envoy.
pub(super) const SDS_PORT: u16 = 8234;

pub(super) fn values(kube: &Kube) -> Result<Value, Wrong> {
    let sds = kube.sds_container.clone().unwrap_or_default();
    let proxy = kube.istio.clone().unwrap_or_default().istio_proxy_container.unwrap_or_default();
    let image = |path: &str, image| gateway::image(image).map_err(|message| Wrong::new(path, message));
    let discovery = proxy.istio_discovery_address.unwrap_or_default();
    Ok(json!({
        "sdsPort": SDS_PORT,
        "sds": {
            "image": image("kube.sdsContainer.image.repository", &sds.image)?,
            "pullPolicy": sds.image.pull_policy,
            "logLevel": sds.bootstrap.log_level.unwrap_or_default(),
            "resources": sds.resources,
            "securityContext": sds.security_context,
        },
        "proxy": {
            "image": image("kube.istio.istioProxyContainer.image.repository", &proxy.image)?,
            "pullPolicy": proxy.image.pull_policy,
            "logLevel": format!("--proxyLogLevel={}", proxy.log_level.unwrap_or_default()),
            // No JSON, and yet what Istio's agent takes: it is read as YAML.
            "config": format!("{{\"discoveryAddress\": {discovery} }}\n"),
            "discovery": discovery,
            "mesh": proxy.istio_meta_mesh_id.unwrap_or_default(),
            "cluster": proxy.istio_meta_cluster_id.unwrap_or_default(),
            "resources": proxy.resources,
            "securityContext": proxy.security_context,
        },
    }))
}
