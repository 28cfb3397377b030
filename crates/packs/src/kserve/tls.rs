//! Certificates of pods: who makes them, and how pods find them. Private keys are never rendered.

use serde_json::{Value, json};

use super::parameters::{CertManager, Tls};
use super::service::Service;
use super::settings::CertificateVolume;
use super::values::Unit;

/// The source of certificates.
#[derive(Clone, Debug)]
pub(super) enum Certificates {
    /// There are none.
    Off,
    /// cert-manager puts one into the Secret that presets mount.
    Made(CertManager),
    /// The Secret of this name is there.
    Given(String),
}

impl Certificates {
    /// Reads the merged parameters; an answer that names no source is refused.
    pub(super) fn read(tls: Option<&Tls>) -> Result<Self, &'static str> {
        match tls {
            None | Some(Tls::Switch(false) | Tls::Word(_)) => Ok(Self::Off),
            Some(Tls::Switch(true)) => Err("tls must say where certificates come from: certManager or secret"),
            Some(Tls::From(source)) => match (&source.cert_manager, &source.secret) {
                (Some(made), None) => Ok(Self::Made(made.clone())),
                (None, Some(name)) if !name.is_empty() => Ok(Self::Given(name.clone())),
                _ => Err("tls needs one of certManager and secret"),
            },
        }
    }

    /// Tells whether pods speak TLS.
    pub(super) fn is_on(&self) -> bool {
        !matches!(self, Self::Off)
    }
}

/// Adds the request for a certificate.
pub(super) fn add(unit: &mut Unit<'_>) {
    let Certificates::Made(made) = &unit.certificates else { return };
    let name = unit.service.certificate();
    let mut spec = json!({
        "secretName": name,
        "issuerRef": made.issuer_ref,
        "dnsNames": names(unit.service),
        "ipAddresses": ["127.0.0.1"],
        "privateKey": {"rotationPolicy": "Always"},
        "usages": ["server auth", "client auth"],
    });
    if let Some(duration) = &made.duration {
        spec["duration"] = duration.as_str().into();
    }
    let labels = super::workload::labels(unit.service, None);
    unit.add("certificates", json!({"name": name, "labels": labels, "spec": spec}));
}

/// The names of all Services of a service: pods are called by their addresses, which no certificate can name before
/// they exist.
fn names(service: &Service<'_>) -> Vec<String> {
    let services = [service.workload_service(), service.child("-epp-service"), service.child("-tokenizer")];
    let namespace = service.namespace;
    let of = |name: String| {
        let qualified = [
            format!("{name}.{namespace}"),
            format!("{name}.{namespace}.svc"),
            format!("{name}.{namespace}.svc.cluster.local"),
        ];
        std::iter::once(name).chain(qualified)
    };
    std::iter::once("localhost".to_owned()).chain(services.into_iter().flat_map(of)).collect()
}

/// Leads the volumes of a pod to the Secret that there will be.
pub(super) fn apply(pod: &mut Value, unit: &Unit<'_>) {
    let expected = unit.service.certificate();
    let volumes = pod.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten();
    for secret in
        volumes.filter_map(|volume| volume.get_mut("secret")).filter(|it| it["secretName"] == expected.as_str())
    {
        match &unit.certificates {
            Certificates::Given(name) => secret["secretName"] = name.as_str().into(),
            Certificates::Off if unit.settings.certificate_volume == CertificateVolume::Optional => {
                secret["optional"] = true.into();
            }
            Certificates::Off | Certificates::Made(_) => {}
        }
    }
}
