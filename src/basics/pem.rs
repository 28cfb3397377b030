//! Certificates as texts.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// Returns the certificates in a PEM text, each DER; `None` if there are none, or one is broken.
pub(crate) fn certificates(pem: &str) -> Option<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    for section in pem.split("-----BEGIN CERTIFICATE-----").skip(1) {
        let (encoded, _) = section.split_once("-----END CERTIFICATE-----")?;
        let encoded: String = encoded.split_whitespace().collect();
        found.push(BASE64_STANDARD.decode(encoded).ok().filter(|der| !der.is_empty())?);
    }
    (!found.is_empty()).then_some(found)
}
