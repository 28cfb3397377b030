//! The HTTP endpoints of the daemon: its metrics, and whether it is alive and ready. The dashboard is added by the daemon.
//!
//! Reading only: nothing that is asked here changes anything, so the port needs no login; it listens on loopback unless
//! the config file says otherwise. Orders are files of the state folder and signals; where `http.actions` is on the
//! dashboard writes some of those files, too.

mod bounded;

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::process::metrics::{CONTENT_TYPE, Metrics};
use crate::process::service::{Progress, STUCK_AFTER, Stuck};
use bounded::Bounded;

/// The longest time for answers that are under way after the order to stop.
const GRACE: Duration = Duration::from_secs(2);

/// The answer to a path that does not exist.
const PATHS: &str = "there is nothing here; there is\n\
    /metrics  numbers for Prometheus\n\
    /healthz  whether the daemon is alive\n\
    /readyz   whether it is ready\n\
    /dashboard/  the fleet, where http.dashboard is on\n";

/// The HTTP server as the config file describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Http")]
pub struct Settings {
    /// The address to listen on; null or off switches the server off.
    pub listen: Listen,
    /// Whether the dashboard and its API are served; without it where only this host can ask, on a loopback address.
    pub dashboard: Option<bool>,
    /// Names by which browsers may ask for the dashboard, beside localhost and the address.
    pub names: Vec<HostName>,
    /// Whether people can approve, suspend, resume and reconcile at the dashboard, with the token in dashboard.token in the
    /// state directory.
    pub actions: bool,
    /// The header in which a proxy with a login names the user, for the record.
    pub user_header: Option<UserHeader>,
}

impl Settings {
    /// Tells whether the dashboard is served. Reports say more than metrics: whoever opened the metrics to others has not
    /// opened those.
    pub fn has_dashboard(&self) -> bool {
        match self.listen {
            Listen::Off => false,
            Listen::At(address) => self.dashboard.unwrap_or(address.ip().is_loopback()),
        }
    }
}

/// The name of a host, without a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct HostName(String);

/// A text is no name of a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no name of a host: write it as in gatewright.example.com, without a scheme and without a port")]
pub struct HostNameError(String);

impl TryFrom<String> for HostName {
    type Error = HostNameError;

    fn try_from(text: String) -> Result<Self, HostNameError> {
        let is_label = |label: &str| {
            let is_edge = |edge: Option<char>| edge.is_some_and(|edge| edge.is_ascii_alphanumeric());
            let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '-';
            label.len() <= 63
                && is_edge(label.chars().next())
                && is_edge(label.chars().last())
                && label.chars().all(is_valid)
        };
        let is_name = text.len() <= 253 && text.split('.').all(is_label);
        if is_name { Ok(Self(text.to_ascii_lowercase())) } else { Err(HostNameError(text)) }
    }
}

impl From<HostName> for String {
    fn from(HostName(name): HostName) -> Self {
        name
    }
}

impl PartialEq<str> for HostName {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

/// The name of a header, in small letters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct UserHeader(String);

/// A text is no name of a header that a proxy could set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no name of a header with a user: write it as in X-Forwarded-User")]
pub struct UserHeaderError(String);

/// Headers with credentials, which are to be written down nowhere.
const SECRET: [HeaderName; 3] = [header::AUTHORIZATION, header::PROXY_AUTHORIZATION, header::COOKIE];

impl UserHeader {
    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for UserHeader {
    type Error = UserHeaderError;

    fn try_from(text: String) -> Result<Self, UserHeaderError> {
        match text.parse::<HeaderName>() {
            Ok(name) if !SECRET.contains(&name) => Ok(Self(name.to_string())),
            _ => Err(UserHeaderError(text)),
        }
    }
}

impl From<UserHeader> for String {
    fn from(UserHeader(name): UserHeader) -> Self {
        name
    }
}

/// The address to listen on, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// Nowhere.
    Off,
    /// On this address.
    At(SocketAddr),
}

impl Default for Listen {
    fn default() -> Self {
        Self::At(SocketAddr::from(([127, 0, 0, 1], 8085)))
    }
}

/// A text is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no address to listen on: write an IP address and a port, as in 127.0.0.1:8085 or [::1]:8085, or off")]
pub struct ListenError(String);

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        match text {
            "off" => Ok(Self::Off),
            _ => text.parse().map(Self::At).map_err(|_| ListenError(text.to_owned())),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::At(address) => address.fmt(f),
        }
    }
}

impl Serialize for Listen {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Listen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListenVisitor)
    }
}

/// Takes `off` as text and as what YAML makes of it, which is false.
struct ListenVisitor;

impl Visitor<'_> for ListenVisitor {
    type Value = Listen;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address such as 127.0.0.1:8085, or off")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Listen, E> {
        Ok(Listen::Off)
    }

    fn visit_bool<E: de::Error>(self, on: bool) -> Result<Listen, E> {
        if on { Err(E::invalid_value(de::Unexpected::Bool(true), &self)) } else { Ok(Listen::Off) }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Listen, E> {
        text.parse().map_err(E::custom)
    }
}

impl JsonSchema for Listen {
    fn schema_name() -> Cow<'static, str> {
        "Listen".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "boolean", "null"],
            "description": "An IP address and a port such as 127.0.0.1:8085; off or null for none.",
            "not": {"const": true},
        })
    }
}

/// The reason why the server does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("cannot listen on {address}")]
    Bind { address: SocketAddr, source: io::Error },
    #[error("cannot go on answering HTTP requests")]
    Serve(#[source] io::Error),
}

impl HttpError {
    /// Returns what to do next, a sentence of its own.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        let Self::Bind { source, .. } = self else { return None };
        match source.kind() {
            io::ErrorKind::AddrInUse => Some(
                "another process, perhaps another gatewright, listens there: set http.listen to another port, or to off",
            ),
            io::ErrorKind::PermissionDenied => Some("ports below 1024 are reserved: set http.listen to a higher one"),
            io::ErrorKind::AddrNotAvailable => Some("set http.listen to an address of this host"),
            _ => None,
        }
    }
}

/// The data that the answers are made from.
#[derive(Clone)]
pub(crate) struct Shown {
    /// The numbers.
    pub metrics: Arc<Metrics>,
    /// Whether the loops move.
    pub progress: Progress,
    /// Whether the daemon can do its work: set once the configuration is loaded and every loop runs, and taken back when
    /// it stops.
    pub readiness: Arc<AtomicBool>,
}

/// Begins to listen, and warns when others than this host can connect.
pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener, HttpError> {
    let listener = TcpListener::bind(address).await.map_err(|source| HttpError::Bind { address, source })?;
    if !address.ip().is_loopback() {
        tracing::warn!(%address, "metrics can be read from other hosts: http.listen is not a loopback address");
    }
    Ok(listener)
}

/// Answers requests until it is told to stop, and then for as long as answers are under way, at most two seconds.
pub(crate) async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) -> Result<(), HttpError> {
    let grace = async {
        stop.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    let server = axum::serve(Bounded::new(listener), router).with_graceful_shutdown(stop.clone().cancelled_owned());
    tokio::select! {
        result = server => result.map_err(HttpError::Serve),
        () = grace => Ok(()),
    }
}

/// Returns the paths that there are, for more to be added.
pub(crate) fn router(shown: Shown) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(health))
        .route("/readyz", get(ready))
        .fallback(async || (StatusCode::NOT_FOUND, PATHS))
        .with_state(shown)
}

async fn metrics(State(shown): State<Shown>) -> Response {
    match shown.metrics.encode() {
        Ok(page) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], page).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "cannot write the metrics\n").into_response(),
    }
}

async fn health(State(shown): State<Shown>) -> (StatusCode, String) {
    let stuck = shown.progress.stuck(STUCK_AFTER);
    if stuck.is_empty() {
        return (StatusCode::OK, "ok\n".to_owned());
    }
    let lines = stuck.iter().map(|Stuck { name, silent }| format!("{name} is stuck for {} s\n", silent.as_secs()));
    (StatusCode::SERVICE_UNAVAILABLE, lines.collect())
}

async fn ready(State(shown): State<Shown>) -> (StatusCode, &'static str) {
    if shown.readiness.load(Ordering::Relaxed) {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready: the daemon is starting or stopping\n")
    }
}

#[cfg(test)]
mod tests;
