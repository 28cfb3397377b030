//! The output of a credential plugin: an `ExecCredential` with a `status`.
//!
//! Nothing of it goes into an error: the whole of it is secret.

use jiff::Timestamp;
use serde::Deserialize;

use super::{Credential, Identity};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    api_version: String,
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
    expiration_timestamp: Option<String>,
}

/// Reads a plugin's answer, or says what is wrong with it: `gave …`.
pub(super) fn parse(answer: &[u8], version: &str) -> Result<Credential, String> {
    // The error of the parser would quote what it stumbled over.
    let answer: Answer = serde_json::from_slice(answer).map_err(|error| {
        format!("gave no JSON of an ExecCredential (line {}, column {})", error.line(), error.column())
    })?;
    if answer.kind != "ExecCredential" || answer.api_version != version {
        return Err(format!(
            "gave {:?} of {:?}, not an ExecCredential of {version:?}",
            answer.kind, answer.api_version
        ));
    }
    let status = answer.status.ok_or("gave an ExecCredential without a status")?;
    let identity = match (status.client_certificate_data, status.client_key_data) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some(Identity { certificate, key: key.into() }),
        (Some(_), None) => return Err("gave a client certificate without its key".to_owned()),
        (None, Some(_)) => return Err("gave a client key without its certificate".to_owned()),
    };
    if status.token.is_none() && identity.is_none() {
        return Err("gave neither a token nor a client certificate".to_owned());
    }
    let is_token = |token: &String| !token.is_empty() && token.chars().all(|character| character.is_ascii_graphic());
    if !status.token.iter().all(is_token) {
        return Err("gave a token that is empty or no token".to_owned());
    }
    let expires = status.expiration_timestamp.map(|time| time.parse::<Timestamp>()).transpose();
    let expires = expires.map_err(|_| "gave an expirationTimestamp that is no time".to_owned())?;
    Ok(Credential { token: status.token.map(Into::into), identity, expires })
}
