//! The authorities that vouch for a control plane: certificates that every proxy gets.

use std::path::PathBuf;

use gatewright_engine::pack::PackError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The authorities by which a proxy knows the control plane; one of the two.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(extend("x-gatewright-one-of" = ["ca", "caFile"]))]
pub struct TlsSettings {
    /// Certificates of authorities, as PEM.
    pub ca: Option<String>,
    /// A file with them, for programs that read files: packs do not, and refuse the setting if it is left over.
    pub ca_file: Option<PathBuf>,
}

/// Certificates that no proxy could use, or nobody should see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaError {
    /// There are none.
    #[error("there is no certificate in it: it must hold -----BEGIN CERTIFICATE-----")]
    NoCertificate,
    /// There is a private key among them.
    #[error("there is a private key in it, which every pod and every reader of ConfigMaps would see")]
    PrivateKey,
    /// Neither `ca` nor what `caFile` names was given.
    #[error("neither ca nor the text of caFile is there")]
    Unread,
}

/// Checks certificates of authorities, and returns them as they go into a ConfigMap.
pub fn authorities(pem: &str) -> Result<String, CaError> {
    if pem.contains("PRIVATE KEY-----") {
        return Err(CaError::PrivateKey);
    }
    if !pem.contains("-----BEGIN CERTIFICATE-----") {
        return Err(CaError::NoCertificate);
    }
    // As a file of YAML would have them: one kind of line ends, and one at the end.
    Ok(format!("{}\n", pem.replace("\r\n", "\n").trim_end()))
}

impl TlsSettings {
    /// Returns the certificates of authorities.
    fn authorities(&self) -> Result<String, CaError> {
        authorities(self.ca.as_deref().ok_or(CaError::Unread)?)
    }

    /// Returns the certificates of authorities by which a control plane is known, if it is asked over TLS.
    pub(crate) fn of_xds(tls: Option<&Self>) -> Result<Option<String>, PackError> {
        tls.map(Self::authorities).transpose().map_err(|error| PackError::Setting("xds.tls", Box::new(error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_certificates_and_nothing_else() {
        let certificate = "-----BEGIN CERTIFICATE-----\r\nMII\r\n-----END CERTIFICATE-----";
        let expected = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n".to_owned();
        assert_eq!(authorities(certificate), Ok(expected));
        assert_eq!(authorities(" \n"), Err(CaError::NoCertificate));
        let key = format!("{certificate}\n-----BEGIN EC PRIVATE KEY-----\nMII\n-----END EC PRIVATE KEY-----\n");
        assert_eq!(authorities(&key), Err(CaError::PrivateKey));
    }

    #[test]
    fn a_file_that_nobody_has_read_is_no_authority() {
        assert_eq!(TlsSettings { ca: None, ca_file: Some("ca.pem".into()) }.authorities(), Err(CaError::Unread));
    }
}
