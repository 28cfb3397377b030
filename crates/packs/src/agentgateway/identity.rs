//! The source of the certificates that a proxy shows to others: Istio, or a SPIFFE agent.

use serde_json::{Value, json};

use super::parameters::Spec;
use super::settings::IstioSettings;

/// Returns the variables that lead a proxy to Istio: what the parameters say, completed by the settings; `None` without
/// Istio.
///
/// Parameters that speak of Istio at all ask for it, unless they say `enabled: false`.
pub(super) fn istio(spec: &Spec, settings: &IstioSettings) -> Option<Vec<(&'static str, String)>> {
    let asked = spec.istio.as_ref().map(|istio| istio.enabled.unwrap_or(true));
    if !asked.unwrap_or(settings.enabled) {
        return None;
    }
    let istio = spec.istio.clone().unwrap_or_default();
    let or = |said: String, setting: &String| if said.is_empty() { setting.clone() } else { said };
    let variables = [
        ("CA_ADDRESS", or(istio.ca_address, &settings.ca_address)),
        ("TRUST_DOMAIN", or(istio.trust_domain, &settings.trust_domain)),
        ("ADDITIONAL_TRUST_DOMAINS", istio.additional_trust_domains.join(",")),
        ("CLUSTER_ID", or(istio.cluster_id, &settings.cluster_id)),
        ("NETWORK", or(istio.network, &settings.network)),
    ];
    Some(variables.into_iter().filter(|(_, value)| !value.is_empty()).collect())
}

/// The socket of a SPIFFE agent, with everything decided.
pub(super) struct Spiffe {
    mount_path: String,
    socket: String,
    driver: String,
    host_path: Option<String>,
}

impl Spiffe {
    /// Returns what the parameters ask for; `None` without SPIFFE.
    pub(super) fn of(spec: &Spec) -> Option<Self> {
        let spiffe = spec.spiffe.clone().filter(|spiffe| spiffe.enabled.unwrap_or(true))?;
        let source = spiffe.source;
        let or = |said: Option<String>, default: &str| {
            said.filter(|text| !text.is_empty()).unwrap_or_else(|| default.to_owned())
        };
        Some(Self {
            mount_path: or(source.mount_path, "/spiffe-workload-api"),
            socket: or(source.socket_name, "spire-agent.sock"),
            driver: or(source.csi.and_then(|csi| csi.driver), "csi.spiffe.io"),
            host_path: source.host_path.map(|folder| folder.path),
        })
    }

    /// Returns the address of the socket in the container.
    pub(super) fn endpoint(&self) -> String {
        format!("unix://{}/{}", self.mount_path.trim_end_matches('/'), self.socket)
    }

    pub(super) fn values(&self) -> Value {
        json!({"mountPath": self.mount_path, "driver": self.driver, "hostPath": self.host_path})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(spec: Value) -> Spec {
        serde_json::from_value(spec).expect("parameters")
    }

    #[test]
    fn istio_is_asked_for_by_parameters_or_settings() {
        let settings = |enabled| IstioSettings { enabled, network: "n".to_owned(), ..IstioSettings::default() };
        let check = |parameters: Value, auto: bool, enabled: bool| {
            let istio = istio(&spec(parameters.clone()), &settings(auto));
            assert_eq!(istio.is_some(), enabled, "{parameters}, {auto}");
        };
        check(json!({}), false, false);
        check(json!({}), true, true);
        check(json!({"istio": {}}), false, true);
        check(json!({"istio": {"enabled": false, "network": "m"}}), true, false);
        let istio = istio(&spec(json!({"istio": {"trustDomain": "d"}})), &settings(false)).expect("it is asked for");
        let ca_address = "https://istiod.istio-system.svc:15012".to_owned();
        let expected = [("CA_ADDRESS", ca_address), ("TRUST_DOMAIN", "d".into()), ("NETWORK", "n".into())];
        assert_eq!(istio, expected);
    }

    #[test]
    fn a_spiffe_socket_has_an_address() {
        let address = |parameters| Spiffe::of(&spec(parameters)).map(|spiffe| spiffe.endpoint());
        assert_eq!(address(json!({"spiffe": {"enabled": false}})), None);
        assert_eq!(address(json!({"spiffe": {}})).as_deref(), Some("unix:///spiffe-workload-api/spire-agent.sock"));
        let source = json!({"mountPath": "/run/", "socketName": "s", "hostPath": {"path": "/var"}});
        assert_eq!(address(json!({"spiffe": {"source": source}})).as_deref(), Some("unix:///run/s"));
    }
}
