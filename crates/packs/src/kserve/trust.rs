//! The objects by which a gateway calls a scheduler that speaks TLS. KServe leaves them to whoever runs the gateway, and so
//! none is rendered unless the parameters ask for it.

use serde_json::{Value, json};

use super::pods::{MAIN, add_args, add_mount, add_named, container, words};
use super::types::Texts;
use super::values::Unit;

/// The folder in which pods have their certificate.
const FOLDER: &str = "/var/run/kserve/tls";

/// The flag that names the folder, and its older spelling.
const FLAGS: [&str; 2] = ["cert-path", "certPath"];

/// Gives the scheduler of older releases the certificate that is made for it; without one it signs its own.
pub(super) fn certify(pod: &mut Value, unit: &Unit<'_>) {
    if !unit.is_legacy || !unit.certificates.is_on() {
        return;
    }
    let Some(main) = container(pod, MAIN) else { return };
    let is_flag = |word: &str| {
        let name = word.trim_start_matches('-').split('=').next().unwrap_or_default();
        word.starts_with('-') && FLAGS.contains(&name)
    };
    if words(main, "args").chain(words(main, "command")).any(is_flag) {
        return;
    }
    add_args(main, [format!("--cert-path={FOLDER}")]);
    add_mount(pod, json!({"name": "tls-certs", "mountPath": FOLDER, "readOnly": true}));
    // Which Secret it is in the end is said for all pods alike.
    add_named(pod, "volumes", json!({"name": "tls-certs", "secret": {"secretName": unit.service.certificate()}}));
}

/// Adds what has a gateway call the Service of the scheduler in TLS, where it speaks that.
pub(super) fn add(unit: &mut Unit<'_>, service: &str, labels: &Texts) {
    let speaks_tls = unit.is_legacy || unit.certificates.is_on();
    let Some(trust) = unit.trust.filter(|_| speaks_tls) else { return };
    let host = format!("{service}.{}.svc.cluster.local", unit.service.namespace);
    if trust.destination_rule == Some(true) {
        // It is recognized by its Service alone, as by those who call it themselves: its certificate may be its own.
        let spec = json!({"host": host, "trafficPolicy": {"tls": {"mode": "SIMPLE", "insecureSkipVerify": true}}});
        let api = "networking.istio.io/v1beta1";
        unit.add(
            "trust",
            json!({"apiVersion": api, "kind": "DestinationRule", "name": service, "labels": labels, "spec": spec}),
        );
    }
    if let Some(ca) = &trust.backend_tls_policy {
        let authority = json!({"group": "", "kind": "ConfigMap", "name": ca.ca_config_map});
        let spec = json!({
            "targetRefs": [{"group": "", "kind": "Service", "name": service}],
            "validation": {"caCertificateRefs": [authority], "hostname": host},
        });
        let api = "gateway.networking.k8s.io/v1";
        unit.add(
            "trust",
            json!({"apiVersion": api, "kind": "BackendTLSPolicy", "name": service, "labels": labels, "spec": spec}),
        );
    }
}
