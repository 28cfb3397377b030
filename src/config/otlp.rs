//! The collector that gets traces and lines of the log by the OpenTelemetry protocol.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::webhooks::{WebhookConflict, WebhookSettings};
use crate::basics::duration::Period;
use crate::basics::paths::{NoCredentials, Paths};

/// A collector, and what it gets: OTLP over HTTP, encoded as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct OtlpSettings {
    /// The address, such as `http://localhost:4318`; `/v1/traces` and `/v1/logs` are added.
    pub url: String,
    /// A file with a token, which is sent as `Authorization: Bearer`.
    pub token_file: Option<PathBuf>,
    /// The address of an HTTP proxy by which the collector is reached.
    pub proxy: Option<String>,
    /// A file with PEM certificates of the authorities that are trusted, instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// The time limit of one export.
    pub timeout: Period,
    /// It gets traces: a span for each round and for each of its parts on each cluster.
    pub traces: bool,
    /// The part of all rounds that are traced, from 0 to 1.
    pub sampling: f64,
    /// It gets the lines of the log that `log.level` lets through.
    pub logs: bool,
}

impl Default for OtlpSettings {
    fn default() -> Self {
        let timeout = Period(Duration::from_secs(10));
        let (url, token_file, proxy, ca_file) = (String::new(), None, None, None);
        Self { url, token_file, proxy, ca_file, timeout, traces: true, sampling: 1.0, logs: true }
    }
}

/// Settings that make sense one by one do not do so together, or one is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OtlpConflict {
    /// The way to the collector cannot be used.
    #[error(transparent)]
    Way(#[from] WebhookConflict),
    /// There is no address.
    #[error("`url` is needed")]
    NoUrl,
    /// The part of rounds is no part.
    #[error("`sampling` is not a number from 0 to 1")]
    Sampling,
    /// The collector would get nothing.
    #[error("`traces` and `logs` are both off")]
    Nothing,
}

impl OtlpConflict {
    /// Returns what to do next.
    pub fn hint(self) -> Option<&'static str> {
        match self {
            Self::NoUrl | Self::Way(WebhookConflict::Address) => {
                Some("write the address of a collector, such as http://localhost:4318")
            }
            Self::Way(WebhookConflict::UserInfo) => Some("put a token into a file, and name that in tokenFile"),
            Self::Way(WebhookConflict::Query) => Some("leave the query out; a token stands in tokenFile"),
            Self::Way(conflict) => conflict.hint(),
            Self::Sampling => None,
            Self::Nothing => Some("leave out `otlp` as a whole"),
        }
    }
}

impl OtlpSettings {
    /// Makes all paths absolute.
    pub fn resolve(&mut self, paths: &Paths) -> Result<(), NoCredentials> {
        for file in [&mut self.token_file, &mut self.ca_file].into_iter().flatten() {
            *file = paths.resolve(file)?;
        }
        Ok(())
    }

    /// Tells what is contradictory or missing.
    pub fn check(&self) -> Result<(), OtlpConflict> {
        match () {
            () if self.url.is_empty() => Err(OtlpConflict::NoUrl),
            () if !(0.0..=1.0).contains(&self.sampling) => Err(OtlpConflict::Sampling),
            () if !self.traces && !self.logs => Err(OtlpConflict::Nothing),
            () => Ok(self.at("").check()?),
        }
    }

    /// Returns the address for one kind of data, with what proves who we are.
    pub fn at(&self, path: &str) -> WebhookSettings {
        WebhookSettings {
            url: Some(format!("{}{path}", self.url.trim_end_matches('/'))),
            token_file: self.token_file.clone(),
            proxy: self.proxy.clone(),
            ca_file: self.ca_file.clone(),
            timeout: self.timeout,
            ..WebhookSettings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_sent_is_refused() {
        let check = |change: &dyn Fn(&mut OtlpSettings)| {
            let mut settings = OtlpSettings { url: "http://localhost:4318/".to_owned(), ..OtlpSettings::default() };
            change(&mut settings);
            settings.check().err()
        };
        assert_eq!(check(&|_| ()), None);
        assert_eq!(check(&|it| it.url.clear()), Some(OtlpConflict::NoUrl));
        assert_eq!(check(&|it| it.url = "collector:4317".to_owned()), Some(WebhookConflict::Address.into()));
        assert_eq!(check(&|it| it.url.push_str("?key=x")), Some(WebhookConflict::Query.into()));
        assert_eq!(check(&|it| it.timeout = Period(Duration::ZERO)), Some(WebhookConflict::NoTime.into()));
        assert_eq!(check(&|it| it.sampling = 10.0), Some(OtlpConflict::Sampling));
        assert_eq!(check(&|it| it.sampling = f64::NAN), Some(OtlpConflict::Sampling));
        assert_eq!(check(&|it| (it.traces, it.logs) = (false, false)), Some(OtlpConflict::Nothing));
    }

    #[test]
    fn a_path_is_added_once() {
        let settings = OtlpSettings { url: "https://otlp.example.com/tenant/".to_owned(), ..OtlpSettings::default() };
        assert_eq!(settings.at("/v1/logs").url.as_deref(), Some("https://otlp.example.com/tenant/v1/logs"));
    }
}
