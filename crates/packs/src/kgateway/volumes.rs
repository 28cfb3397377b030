//! Volumes of a pod that are not always there, and where the proxy mounts them.

use std::collections::BTreeSet;

use gatewright_engine::pack::Subject;
use gatewright_engine::text::{cut, hex};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::certificates;
use super::parameters::Kube;
use super::settings::Settings;
use super::values::Wrong;
use crate::gateway::lists::last_wins;

/// Volumes that the template itself has.
const OWN: [&str; 3] = ["envoy-config", "podinfo", "xds-token"];
/// Volumes that it has with Istio.
const OF_ISTIO: [&str; 7] = [
    "credential-socket",
    "istio-certs",
    "istio-envoy",
    "istio-token",
    "istiod-ca-cert",
    "workload-certs",
    "workload-socket",
];
/// The paths at which it mounts them into the proxy.
const OWN_PATHS: [&str; 3] = ["/etc/envoy", "/etc/podinfo", "/var/run/secrets/tokens"];

/// Names of volumes are labels of DNS.
const MAX_NAME: usize = 63;
const PREFIX: &str = "certificate-";
/// Digits of a digest where a name cannot stand as it is.
const DIGITS: usize = 12;

/// The volumes of a pod and their mounts, beside what the template itself says.
pub(super) struct Volumes {
    pub(super) volumes: Vec<Value>,
    /// The mounts by which the proxy finds them.
    pub(super) mounts: Vec<Value>,
}

impl Volumes {
    /// Collects the certificates of listeners and what users add.
    pub(super) fn new(settings: &Settings, subject: &Subject<'_>, kube: &Kube) -> Result<Self, Wrong> {
        let theirs = &kube.pod_template.extra_volumes;
        let mut taken: BTreeSet<&str> = OWN.into_iter().collect();
        if settings.istio.auto_mtls {
            taken.extend(OF_ISTIO);
        }
        let is_ours = |volume: &Value| volume["name"].as_str().is_some_and(|name| taken.contains(name));
        refuse("kube.podTemplate.extraVolumes", "volume", "name", theirs, is_ours)?;
        let mounts = &kube.envoy_container.extra_volume_mounts;
        let is_ours = |mount: &Value| OWN_PATHS.contains(&path(mount));
        refuse("kube.envoyContainer.extraVolumeMounts", "mount", "mountPath", mounts, is_ours)?;
        taken.extend(theirs.iter().filter_map(|volume| volume["name"].as_str()));
        let ours = Self::of_certificates(settings, subject, &taken);
        Ok(Self {
            volumes: last_wins(ours.volumes.into_iter().chain(theirs.iter().cloned()), &["name"]),
            mounts: last_wins(ours.mounts.into_iter().chain(mounts.iter().cloned()), &["mountPath"]),
        })
    }

    fn of_certificates(settings: &Settings, subject: &Subject<'_>, taken: &BTreeSet<&str>) -> Self {
        let (mut volumes, mut mounts) = (Vec::new(), Vec::new());
        if !settings.listener_certificates.mount {
            return Self { volumes, mounts };
        }
        let folder = settings.listener_certificates.path.trim_end_matches('/');
        let mut taken: BTreeSet<String> = taken.iter().map(|&name| name.to_owned()).collect();
        for secret in certificates::secrets(subject).0 {
            let name = volume_name(&secret, &taken);
            mounts.push(json!({"name": name, "mountPath": format!("{folder}/{secret}"), "readOnly": true}));
            // One that is not there yet, or was deleted, must not keep proxies from starting: others are served too.
            volumes.push(json!({"name": name, "secret": {"secretName": secret, "optional": true}}));
            taken.insert(name);
        }
        Self { volumes, mounts }
    }
}

fn path(mount: &Value) -> &str {
    mount["mountPath"].as_str().unwrap_or_default().trim_end_matches('/')
}

/// The API server takes no second volume of a name and no second mount at a path, and without ours there is no proxy.
fn refuse(list: &str, what: &str, field: &str, items: &[Value], is_ours: impl Fn(&Value) -> bool) -> Result<(), Wrong> {
    match items.iter().position(is_ours) {
        None => Ok(()),
        Some(index) => {
            let name = items[index][field].as_str().unwrap_or_default();
            Err(Wrong::new(
                &format!("{list}.{index}.{field}"),
                format!("the {what} {name:?} is one of the proxy's own"),
            ))
        }
    }
}

/// Names the volume of a Secret: after it where that is a label of DNS, otherwise with a part of its digest.
fn volume_name(secret: &str, taken: &BTreeSet<String>) -> String {
    let is_label = secret.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    let plain = format!("{PREFIX}{secret}");
    if is_label && plain.len() <= MAX_NAME && !taken.contains(&plain) {
        return plain;
    }
    let mut digest = hex(&Sha256::digest(secret.as_bytes()));
    loop {
        let kept: String = secret.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let room = MAX_NAME - PREFIX.len() - 1 - DIGITS;
        let name = format!("{PREFIX}{}-{}", cut(&kept, room), &digest[..DIGITS]);
        if !taken.contains(&name) {
            return name;
        }
        digest = hex(&Sha256::digest(digest.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(secret: &str, taken: &[&str], expected: &str) {
        let taken = taken.iter().map(|&name| name.to_owned()).collect();
        let name = volume_name(secret, &taken);
        assert_eq!(name, expected);
        assert!(name.len() <= MAX_NAME && !name.ends_with('-'), "{name}");
    }

    #[test]
    fn every_secret_has_a_volume_of_its_own() {
        check("shop", &[], "certificate-shop");
        check("shop.example.com", &[], "certificate-shop-example-com-951623a26f8b");
        check("shop-example-com", &[], "certificate-shop-example-com");
        check("shop", &["certificate-shop"], "certificate-shop-8d9001d32c6a");
        let (long, other) = ("a".repeat(60), format!("{}b", "a".repeat(60)));
        let (long, other) = (volume_name(&long, &BTreeSet::new()), volume_name(&other, &BTreeSet::new()));
        assert!(long.len() == MAX_NAME && other.len() == MAX_NAME && long != other, "{long}, {other}");
        // The cut is at the dot.
        let (head, secret) = ("a".repeat(37), format!("{}.b.{}", "a".repeat(37), "b".repeat(20)));
        check(&secret, &[], &format!("certificate-{head}-6bd8b59c4a91"));
    }
}
