//! Certificates of pods: who makes them, and how pods find them. Private keys are never rendered.

use serde_json::{Value, json};

use super::parameters::{CertManager, Tls};
use super::pods::list_items;
use super::service::Service;
use super::settings::CertificateVolume;
use super::values::Unit;
use crate::json::without_nulls;

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
    let spec = without_nulls(json!({
        "secretName": name,
        "issuerRef": made.issuer_ref,
        "dnsNames": names(unit.service),
        "ipAddresses": ["127.0.0.1"],
        "privateKey": {"rotationPolicy": "Always"},
        "usages": ["server auth", "client auth"],
        "duration": made.duration,
    }));
    let labels = super::workload::labels(unit.service, None);
    unit.add("certificates", json!({"name": name, "labels": labels, "spec": spec}));
}

/// The names of all Services of a service: pods are called by their addresses, which no certificate can name before
/// they exist.
fn names(service: &Service<'_>) -> Vec<String> {
    let services = [service.workload_service(), service.child("-epp-service"), service.child("-tokenizer")];
    let namespace = format!(".{}", service.namespace);
    let ends = [String::new(), namespace.clone(), format!("{namespace}.svc"), format!("{namespace}.svc.cluster.local")];
    let all = services.iter().flat_map(|name| ends.iter().map(move |end| format!("{name}{end}")));
    std::iter::once("localhost".to_owned()).chain(all).collect()
}

/// Leads the volumes of a pod to the Secret that there will be.
pub(super) fn apply(pod: &mut Value, unit: &Unit<'_>) {
    let expected = unit.service.certificate();
    let secrets = list_items(pod, "volumes").filter_map(|volume| volume.get_mut("secret"));
    for secret in secrets.filter(|it| it["secretName"] == expected) {
        match &unit.certificates {
            Certificates::Given(name) => secret["secretName"] = name.as_str().into(),
            Certificates::Off if unit.settings.certificate_volume == CertificateVolume::Optional => {
                secret["optional"] = true.into();
            }
            Certificates::Off | Certificates::Made(_) => {}
        }
    }
}
