//! Certificates that stand in a source: in a Secret for TLS, or as authorities in a `ConfigMap` or a Secret.
//!
//! Of a key no more is kept than what is wrong with it.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rustls::Error;
use rustls::InconsistentKeys::KeyMismatch;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::found::text;
use crate::problem::Place;
use crate::spec::Document;

/// The key of a certificate in a Secret, of which the first is that of the server.
const CERTIFICATE: &str = "tls.crt";
const PRIVATE_KEY: &str = "tls.key";
/// The key of authorities in a `ConfigMap` or a Secret.
const AUTHORITIES: &str = "ca.crt";

/// The time before its end in which somebody should care for a certificate, in seconds: two weeks, or a third of its
/// time where that is less.
const SOON: i64 = 14 * 24 * 60 * 60;

/// What a document shows of the certificates that listeners may name it for.
#[derive(Clone, Debug)]
pub(super) struct Material {
    pub(super) place: Place,
    /// What is wrong with them, as the end of a sentence.
    pub(super) flaw: Option<String>,
    /// The first certificate for TLS, or that of the authorities which is valid for longest.
    pub(super) certificate: Option<Certificate>,
}

/// What a certificate says.
#[derive(Clone, Debug)]
pub(super) struct Certificate {
    /// Its DNS names.
    pub(super) names: BTreeSet<String>,
    from: Moment,
    until: Moment,
}

/// A second since 1970, and its day.
#[derive(Clone, Debug)]
struct Moment(i64, String);

impl Material {
    /// Reads a certificate for TLS and its key. `None`: a controller fills it in, or it cannot be read here.
    pub(super) fn pair(document: &Document) -> Option<Self> {
        let (mut material, chain) = Self::read(document, CERTIFICATE)?;
        if let Some(chain) = chain {
            material.flaw = flaw_of_key(document, chain);
        }
        Some(material)
    }

    /// Reads authorities.
    pub(super) fn authorities(document: &Document) -> Option<Self> {
        Some(Self::read(document, AUTHORITIES)?.0)
    }

    fn read(document: &Document, key: &str) -> Option<(Self, Option<Vec<CertificateDer<'static>>>)> {
        let is_filled = |field: &&str| document.root.get(field).is_some_and(|node| node.fields().next().is_some());
        let field = ["stringData", "data"].into_iter().find(is_filled).filter(|_| !is_encrypted(document))?;
        let (place, flaw) = (document.place_of(&[field, key]), None);
        let chain = match value(document, key) {
            Some(Ok(pem)) if pem.trim_ascii().is_empty() => return None,
            pem => pem.map_or_else(|| Err(format!("it has no {key}")), |pem| certificates(&pem?, key)),
        };
        Some(match chain {
            Ok((chain, certificate)) => (Self { place, flaw, certificate: Some(certificate) }, Some(chain)),
            Err(flaw) => (Self { place, flaw: Some(flaw), certificate: None }, None),
        })
    }
}

impl Certificate {
    fn read(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let names = certificate.subject_alternative_name().ok()?.map(|names| &names.value.general_names);
        let dns = |name: &GeneralName<'_>| match name {
            GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
            _ => None,
        };
        let [from, until] = [certificate.validity().not_before, certificate.validity().not_after]
            .map(|time| Moment(time.timestamp(), time.to_datetime().date().to_string()));
        Some(Self { names: names.into_iter().flatten().filter_map(dns).collect(), from, until })
    }

    /// Says when it expires or has expired, where that is near, or from when it is valid, as the end of a sentence.
    pub(super) fn expiry(&self, now: i64) -> Option<String> {
        let (Moment(from, first), Moment(until, last)) = (&self.from, &self.until);
        let soon = SOON.min(until.saturating_sub(*from) / 3);
        match now {
            _ if now < *from => Some(format!("is not valid before {first}")),
            _ if now > *until => Some(format!("expired on {last}")),
            _ if now > until.saturating_sub(soon) => Some(format!("expires on {last}")),
            _ => None,
        }
    }

    /// Tells whether it is for the hostname of a listener, or for one of those that a wildcard stands for.
    pub(super) fn covers(&self, hostname: &str) -> bool {
        let hostname = hostname.to_ascii_lowercase();
        let parent = hostname.split_once('.').map(|(_, parent)| format!("*.{parent}"));
        let is_below = |name: &String| hostname.strip_prefix('*').is_some_and(|end| name.ends_with(end));
        self.names.iter().any(|name| *name == hostname || Some(name) == parent.as_ref() || is_below(name))
    }
}

/// Tells whether values are not what they look like: SOPS leaves the keys of a document as they are.
fn is_encrypted(document: &Document) -> bool {
    document.root.get("sops").is_some()
}

/// Returns a value of a Secret or a `ConfigMap`, or what is wrong with it.
fn value(document: &Document, key: &str) -> Option<Result<Vec<u8>, String>> {
    let plain = |field| text(&document.root, &[field, key]).map(|text| Ok(text.as_bytes().to_vec()));
    if document.id.kind == "ConfigMap" {
        return plain("data");
    }
    let decode = |encoded: &str| {
        let encoded: String = encoded.split_ascii_whitespace().collect();
        BASE64_STANDARD.decode(encoded).map_err(|_| format!("its {key} is not base64, as all below data must be"))
    };
    plain("stringData").or_else(|| text(&document.root, &["data", key]).map(decode))
}

/// Reads certificates, and says of the one that counts what it says.
fn certificates(pem: &[u8], key: &str) -> Result<(Vec<CertificateDer<'static>>, Certificate), String> {
    let broken = || format!("its {key} holds something else than certificates in PEM");
    let chain: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|_| broken())?;
    let read: Vec<Certificate> =
        chain.iter().map(|der| Certificate::read(der)).collect::<Option<_>>().ok_or_else(broken)?;
    let mut read = read.into_iter();
    let certificate = if key == AUTHORITIES { read.max_by_key(|it| it.until.0) } else { read.next() };
    Ok((chain, certificate.ok_or_else(broken)?))
}

/// Says what is wrong with the key of a certificate, as far as that can be told.
fn flaw_of_key(document: &Document, chain: Vec<CertificateDer<'static>>) -> Option<String> {
    let Some(pem) = value(document, PRIVATE_KEY) else { return Some(format!("it has no {PRIVATE_KEY}")) };
    let key = match pem.map(|pem| PrivateKeyDer::from_pem_slice(&pem)) {
        Err(flaw) => return Some(flaw),
        Ok(Err(_)) => return Some(format!("its {PRIVATE_KEY} holds no private key in PEM that is not encrypted")),
        Ok(Ok(key)) => key,
    };
    // Some sorts of keys are not known here; a data plane may know them.
    let pair = CertifiedKey::new(chain, any_supported_type(&key).ok()?);
    let is_of_another = matches!(pair.keys_match(), Err(Error::InconsistentKeys(KeyMismatch)));
    is_of_another.then(|| format!("its {PRIVATE_KEY} is not the key of the certificate in its {CERTIFICATE}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A certificate for `edge.example.com` and `*.shop.example.com`, of the years 2026 to 2125.
    const PEM: &str = include_str!("x509/edge.pem");

    proptest! {
        /// Whoever may write a Secret may write anything into it.
        #[test]
        fn a_broken_certificate_is_read_or_refused(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            length in 0..400_usize,
        ) {
            let mut der = CertificateDer::from_pem_slice(PEM.as_bytes()).expect("it is PEM").to_vec();
            for (index, byte) in &changes {
                *index.get_mut(&mut der) = *byte;
            }
            let is_whole = changes.is_empty() && length >= der.len();
            der.truncate(length);
            let certificate = Certificate::read(&der);
            prop_assert!(!is_whole || certificate.is_some());
            for now in [i64::MIN, i64::MAX] {
                prop_assert!(certificate.as_ref().is_none_or(|certificate| certificate.expiry(now).is_some()));
            }
        }
    }
}
