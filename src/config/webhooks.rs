//! The receivers of news: an address, what proves who we are, and how long is tried.
//!
//! An address of the config file is shown and quoted, so it holds no secret; one that is a secret itself stands in a
//! file. Files are read for each try, so that a new token counts at once. Sending is not done here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use http::uri::PathAndQuery;
use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use crate::basics::duration::Period;
use crate::basics::paths::{NoCredentials, Paths};
use crate::basics::private;

/// The length of the shortest key that notifications are signed with, in bytes: that of the specification.
const SHORTEST_KEY: usize = 24;

/// The form in which a receiver gets notifications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WebhookFormat {
    /// The JSON document that docs/schema has the schema of.
    #[default]
    Json,
    /// The same as the data of an event of `CloudEvents` 1.0, in structured mode.
    Cloudevents,
    /// A message for an incoming webhook of Slack, or of what takes the same.
    Slack,
    /// A card for a workflow of Microsoft Teams.
    Teams,
}

/// A receiver of notifications.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WebhookSettings {
    /// The address, without a secret in it.
    pub url: Option<String>,
    /// A file with the address, if that is a secret.
    pub url_file: Option<PathBuf>,
    /// The form in which it gets notifications.
    pub format: WebhookFormat,
    /// A file with a token, which is sent as `Authorization: Bearer`.
    pub token_file: Option<PathBuf>,
    /// A file with the key by which notifications are signed, as `whsec_BASE64` or as text, of 24 bytes or more.
    pub signing_key_file: Option<PathBuf>,
    /// The address of an HTTP proxy by which the receiver is reached.
    pub proxy: Option<String>,
    /// A file with PEM certificates of the authorities that are trusted, instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// The syncs of which it is told; all by default.
    pub syncs: Option<BTreeSet<String>>,
    /// The time limit of one try.
    pub timeout: Period,
    /// The time limit of all tries, from the report on.
    pub retry_for: Period,
    /// The time for which the news of a sync waits for that of its other clusters; 0s has each cluster told by itself.
    pub group_wait: Period,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        let (timeout, retry_for) = (Period(Duration::from_secs(10)), Period(Duration::from_hours(24)));
        let group_wait = Period(Duration::from_secs(30));
        Self {
            url: None,
            url_file: None,
            format: WebhookFormat::default(),
            token_file: None,
            signing_key_file: None,
            proxy: None,
            ca_file: None,
            syncs: None,
            timeout,
            retry_for,
            group_wait,
        }
    }
}

/// Settings that make sense one by one do not do so together, or an address is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookConflict {
    /// There is no address, or there are two.
    #[error("one of `url` and `urlFile` is needed, and only one")]
    NotOne,
    /// The address has another form.
    #[error("the address is not of the form https://HOST/PATH")]
    Address,
    /// There is a user or password in it.
    #[error("the address contains a user name or password")]
    UserInfo,
    /// There is a query in it, which often is a secret.
    #[error("the address contains a query, which may be a secret")]
    Query,
    /// The token would cross the network for all to read.
    #[error("a token is not sent over http: use https")]
    InTheClear,
    /// The proxy is none.
    #[error("`proxy` is not of the form http://HOST:PORT")]
    Proxy,
    /// No try could ever succeed.
    #[error("`timeout` is zero")]
    NoTime,
}

impl WebhookConflict {
    /// Returns what to do next.
    pub fn hint(self) -> Option<&'static str> {
        match self {
            Self::UserInfo => Some("put a token into a file, and name that in tokenFile"),
            Self::Query => Some("put the whole address into a file, and name that in urlFile"),
            Self::Proxy => Some("a proxy that wants a user and password is not supported"),
            Self::NotOne | Self::Address | Self::InTheClear | Self::NoTime => None,
        }
    }
}

/// A file that a setting names cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WebhookFileError {
    /// It cannot be read.
    #[error("cannot read {1:?}, which `{0}` names")]
    Read(&'static str, PathBuf, #[source] io::Error),
    /// It holds something else.
    #[error("cannot use {1:?}, which `{0}` names: {2}")]
    Content(&'static str, PathBuf, WebhookConflict),
    /// It is empty, or holds what cannot be sent.
    #[error("cannot use {1:?}, which `{0}` names: there is no {2} in it")]
    Missing(&'static str, PathBuf, &'static str),
}

impl WebhookSettings {
    /// Makes all paths absolute.
    pub fn resolve(&mut self, paths: &Paths) -> Result<(), NoCredentials> {
        for file in [&mut self.url_file, &mut self.token_file, &mut self.signing_key_file, &mut self.ca_file]
            .into_iter()
            .flatten()
        {
            *file = paths.resolve(file)?;
        }
        Ok(())
    }

    /// Tells what is contradictory or missing.
    pub fn check(&self) -> Result<(), WebhookConflict> {
        if self.timeout.0.is_zero() {
            return Err(WebhookConflict::NoTime);
        }
        self.proxy()?;
        match (&self.url, &self.url_file) {
            (Some(url), None) if url.contains('?') => Err(WebhookConflict::Query),
            (Some(url), None) => self.parse(url).map(drop),
            (None, Some(_)) => Ok(()),
            (Some(_), Some(_)) | (None, None) => Err(WebhookConflict::NotOne),
        }
    }

    /// Tells whether it is told of a sync.
    pub fn is_about(&self, sync: &str) -> bool {
        self.syncs.as_ref().is_none_or(|syncs| syncs.contains(sync))
    }

    /// Returns the address, read from its file if it stands in one.
    pub fn address(&self) -> Result<Uri, WebhookFileError> {
        let content = |file: &Path| {
            let file = file.to_owned();
            move |conflict| WebhookFileError::Content("urlFile", file, conflict)
        };
        match (&self.url, &self.url_file) {
            (_, Some(file)) => self.parse(read("urlFile", file, "address")?.expose_secret()).map_err(content(file)),
            (url, None) => {
                self.parse(url.as_deref().unwrap_or_default()).map_err(content(Path::new("the config file")))
            }
        }
    }

    /// Returns the token, if there is to be one.
    pub fn token(&self) -> Result<Option<SecretString>, WebhookFileError> {
        self.token_file.as_deref().map(|file| read("tokenFile", file, "token")).transpose()
    }

    /// Returns the key by which notifications are signed, if they are to be.
    pub fn signing_key(&self) -> Result<Option<Vec<u8>>, WebhookFileError> {
        let Some(file) = &self.signing_key_file else { return Ok(None) };
        let what = "key of 24 bytes or more, as whsec_BASE64 or as text,";
        let key = read("signingKeyFile", file, what)?;
        let missing = || WebhookFileError::Missing("signingKeyFile", file.clone(), what);
        key_bytes(&key).filter(|bytes| bytes.len() >= SHORTEST_KEY).ok_or_else(missing).map(Some)
    }

    /// Returns the address of the proxy, if there is to be one.
    pub fn proxy(&self) -> Result<Option<Uri>, WebhookConflict> {
        let Some(text) = &self.proxy else { return Ok(None) };
        let uri: Uri = text.parse().map_err(|_| WebhookConflict::Proxy)?;
        let is_proxy = uri.scheme_str() == Some("http")
            && uri.host().is_some_and(|host| !host.is_empty())
            && uri.port().is_some()
            && matches!(uri.path_and_query().map(PathAndQuery::as_str), None | Some("/"))
            && !text.contains(['@', '#']);
        if is_proxy { Ok(Some(uri)) } else { Err(WebhookConflict::Proxy) }
    }

    /// Returns the certificates of the authorities as PEM, if they are not the system's.
    pub fn authorities(&self) -> Result<Option<(PathBuf, String)>, WebhookFileError> {
        let Some(file) = &self.ca_file else { return Ok(None) };
        let text = fs::read_to_string(file);
        text.map(|text| Some((file.clone(), text)))
            .map_err(|error| WebhookFileError::Read("caFile", file.clone(), error))
    }

    fn parse(&self, text: &str) -> Result<Uri, WebhookConflict> {
        let (scheme, rest) = text.split_once("://").ok_or(WebhookConflict::Address)?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(WebhookConflict::UserInfo);
        }
        let uri: Uri = text.parse().map_err(|_| WebhookConflict::Address)?;
        match scheme {
            _ if text.contains('#') || uri.host().is_none_or(str::is_empty) => Err(WebhookConflict::Address),
            "http" if self.token_file.is_some() && !is_loopback(&uri) => Err(WebhookConflict::InTheClear),
            "https" | "http" => Ok(uri),
            _ => Err(WebhookConflict::Address),
        }
    }
}

/// Returns the bytes of a key: those of the base64 behind `whsec_`, or those of the text itself.
pub(crate) fn key_bytes(key: &SecretString) -> Option<Vec<u8>> {
    match key.expose_secret().strip_prefix("whsec_") {
        Some(base64) => STANDARD.decode(base64).ok(),
        None => Some(key.expose_secret().as_bytes().to_vec()),
    }
}

/// Tells whether what is sent there leaves the host by no network.
fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Reads a secret, without the end of line that editors add.
fn read(setting: &'static str, file: &Path, what: &'static str) -> Result<SecretString, WebhookFileError> {
    let text =
        private::read_to_string(file).map_err(|error| WebhookFileError::Read(setting, file.to_owned(), error))?;
    let text = SecretString::from(text);
    let secret = text.expose_secret().trim();
    let is_one = !secret.is_empty() && !secret.contains(|c: char| c.is_whitespace() || c.is_control());
    let missing = || WebhookFileError::Missing(setting, file.to_owned(), what);
    is_one.then(|| SecretString::from(secret)).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(settings: Value) -> Result<(), WebhookConflict> {
        serde_json::from_value::<WebhookSettings>(settings).expect("the settings of this test are well-formed").check()
    }

    #[test]
    fn an_address_is_https_and_holds_no_secret() {
        let url = |url: &str| check(json!({"url": url}));
        assert_eq!(url("https://example.com/hook"), Ok(()));
        assert_eq!(url("https://example.com:8443"), Ok(()));
        assert_eq!(url("http://example.com/hook"), Ok(()), "nothing is in it that is a secret");
        assert_eq!(url("https://me:hunter2@example.com/"), Err(WebhookConflict::UserInfo));
        assert_eq!(url("https://example.com/?token=hunter2"), Err(WebhookConflict::Query));
        for no in
            ["example.com", "ftp://example.com/", "https://", "https:///a", "https://example.com/#a", "https://a b/"]
        {
            assert_eq!(url(no), Err(WebhookConflict::Address), "{no}");
        }
        assert_eq!(check(json!({})), Err(WebhookConflict::NotOne));
        assert_eq!(check(json!({"url": "https://a/", "urlFile": "b"})), Err(WebhookConflict::NotOne));
        assert_eq!(check(json!({"url": "https://a/", "timeout": "0s"})), Err(WebhookConflict::NoTime));
        let by = |proxy: &str| check(json!({"url": "https://a/", "proxy": proxy}));
        assert_eq!((by("http://proxy.example.com:3128"), by("http://[::1]:3128/")), (Ok(()), Ok(())));
        for no in [
            "proxy",
            "https://a:1",
            "http://a",
            "http://me:hunter2@a:1",
            "http://a:1/b",
            "http://a:1/?b",
            "socks5://a:1",
        ] {
            assert_eq!(by(no), Err(WebhookConflict::Proxy), "{no}");
        }
        let with_token = |url: &str| check(json!({"url": url, "tokenFile": "t"}));
        assert_eq!(with_token("http://example.com/"), Err(WebhookConflict::InTheClear));
        assert_eq!(with_token("http://localhost.example.com/"), Err(WebhookConflict::InTheClear));
        assert_eq!(with_token("http://127.0.0.1:1/"), Ok(()));
        assert_eq!(with_token("http://[::1]:1/"), Ok(()));
    }

    #[test]
    fn a_key_is_long_enough_to_be_one() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("key");
        let settings = WebhookSettings { signing_key_file: Some(file.clone()), ..WebhookSettings::default() };
        for (text, is_key) in [
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", true),
            ("a-long-key-that-is-no-base64", true),
            ("whsec_", false),
            ("whsec_hunter2", false),
            ("whsec_aHVudGVyMg==", false),
            ("hunter2", false),
            ("hunter2 hunter2 hunter2 hunter2", false),
        ] {
            private::tests::write(&file, text).expect("the folder can be written");
            let key = settings.signing_key();
            assert_eq!(key.is_ok(), is_key, "{text}");
            let said = key.err().map(|error| gatewright_engine::error::Chain(&error).to_string()).unwrap_or_default();
            assert!(!said.contains("hunter2") && !said.contains("aHVu"), "{said}");
        }
    }

    #[test]
    fn what_a_file_holds_is_never_repeated() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("url");
        let settings = WebhookSettings { url_file: Some(file.clone()), ..WebhookSettings::default() };
        let said = || gatewright_engine::error::Chain(&settings.address().expect_err("it is no address")).to_string();
        assert!(said().contains("`urlFile` names: No such file"), "{}", said());
        for wrong in
            ["hunter2", "https://me:hunter2@example.com/", "https://hunter2/ https://hunter2/", "ftp://hunter2/"]
        {
            private::tests::write(&file, wrong).expect("the folder can be written");
            assert!(!said().contains("hunter2"), "{}", said());
        }
        private::tests::write(&file, "https://example.com/hook?code=hunter2\n").expect("the folder can be written");
        let address = settings.address().expect("it is one");
        assert_eq!(address, "https://example.com/hook?code=hunter2");
        assert!(!format!("{settings:?}").contains("hunter2"));
    }
}
