//! One try to deliver a notification, to ask a gate of a rollout, or to send traces: the connection, the request, and what the
//! answer means.
//!
//! Neither the address nor an answer is repeated in a message: the one may be a secret, the other may quote it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use gatewright_engine::error::Chain;
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::request::Builder;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::TokioExecutor;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use secrecy::ExposeSecret as _;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::form::Form;
use super::signature::sign;
use crate::basics::duration::Period;
use crate::basics::pem::certificates;
use crate::basics::redact::excerpt;
use crate::config::webhooks::WebhookSettings;

/// The header that every try of one notification carries, so that a receiver can tell that it has it already.
const KEY: &str = "idempotency-key";

/// The longest answer that is read, in bytes.
const MOST_BYTES: usize = 1 << 20;

/// The reason why a try came to nothing.
#[derive(Debug)]
pub(super) struct Failure {
    /// The error, without secrets.
    pub(super) what: String,
    /// Another try would end the same way.
    pub(super) is_final: bool,
    /// The time for which the server asks to be left alone.
    pub(super) wait: Option<Duration>,
}

impl Failure {
    fn passing(what: impl Into<String>) -> Self {
        Self { what: what.into(), is_final: false, wait: None }
    }
}

/// Sends a notification once.
pub(super) async fn post(settings: &WebhookSettings, id: &str, form: Form, now: Timestamp) -> Result<(), Failure> {
    let limit = settings.timeout.0;
    let (settings, id) = (settings.clone(), id.to_owned());
    let key = settings.clone();
    let request = move |address| {
        let request = Request::post(address).header(CONTENT_TYPE, form.content_type).header(KEY, &id);
        let key = key.signing_key().map_err(|error| Failure::passing(Chain(&error).to_string()))?;
        let request = match key {
            Some(key) => sign(request, &key, &id, now, &form.body),
            None => request,
        };
        Ok((request, Bytes::from(form.body)))
    };
    let answered = timeout(limit, async {
        let prepared = spawn_blocking(move || prepare(&settings, request)).await;
        request_once(prepared.map_err(|error| Failure::passing(error.to_string()))??).await
    });
    let late = |_| Failure::passing(format!("no answer within {limit:?}"));
    let answer = answered.await.map_err(late)??;
    judge(answer.status(), answer.headers(), now)
}

/// Asks a question once: the address itself, or a form that is sent there. Returns the code of the answer and its content.
pub(crate) async fn ask(settings: &WebhookSettings, form: Option<String>) -> Result<(StatusCode, Bytes), String> {
    let request = move |address| match form {
        None => (Request::get(address), Bytes::new()),
        Some(form) => {
            let form = Bytes::from(form);
            (Request::post(address).header(CONTENT_TYPE, "application/x-www-form-urlencoded"), form)
        }
    };
    let answer = answered(settings, request).await?;
    Ok((answer.status(), answer.into_body()))
}

/// Sends something once, with the headers that say what it is. Returns the answer, whatever that is.
pub(crate) async fn send_once(
    settings: &WebhookSettings,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response<Bytes>, String> {
    let request = move |address| {
        let request = Request::post(address);
        (headers.iter().fold(request, |request, (name, value)| request.header(name, value)), body)
    };
    answered(settings, request).await
}

async fn answered(
    settings: &WebhookSettings,
    request: impl FnOnce(Uri) -> (Builder, Bytes) + Send + 'static,
) -> Result<Response<Bytes>, String> {
    let limit = settings.timeout.0;
    let settings = settings.clone();
    let answered = timeout(limit, async {
        let prepared = spawn_blocking(move || prepare(&settings, |address| Ok(request(address)))).await;
        let answer = request_once(prepared.map_err(|error| Failure::passing(error.to_string()))??).await?;
        let (parts, body) = answer.into_parts();
        let content = Limited::new(body, MOST_BYTES).collect().await;
        let content = content.map_err(|_| Failure::passing("its answer broke off, or is too long"))?;
        Ok::<_, Failure>(Response::from_parts(parts, content.to_bytes()))
    });
    let late = |_| Failure::passing(format!("no answer within {}", Period(limit)));
    answered.await.map_err(late).flatten().map_err(|failure| failure.what)
}

/// A request, and by which authorities and which proxy it goes.
struct Prepared {
    tls: ClientConfig,
    proxy: Option<Uri>,
    request: Request<Full<Bytes>>,
}

async fn request_once(Prepared { tls, proxy, request }: Prepared) -> Result<Response<Body>, Failure> {
    let mut direct = HttpConnector::new();
    direct.enforce_http(false);
    match proxy {
        Some(proxy) => send(over_tls(tls, Tunnel::new(proxy, direct)), request).await,
        None => send(over_tls(tls, direct), request).await,
    }
}

async fn send(
    connector: impl Connect + Clone + Send + Sync + 'static,
    request: Request<Full<Bytes>>,
) -> Result<Response<Body>, Failure> {
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
    let answer = client.request(request).await;
    answer.map(|answer| answer.map(Body::new)).map_err(|error| Failure::passing(excerpt(&Chain(&error).to_string())))
}

fn over_tls<C>(tls: ClientConfig, connector: C) -> HttpsConnector<C> {
    HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().wrap_connector(connector)
}

/// Reads the files, some of which are on disks that are slow.
fn prepare(
    settings: &WebhookSettings,
    request: impl FnOnce(Uri) -> Result<(Builder, Bytes), Failure>,
) -> Result<Prepared, Failure> {
    let unreadable = |error| Failure::passing(Chain(&error).to_string());
    let (address, token) = (settings.address().map_err(unreadable)?, settings.token().map_err(unreadable)?);
    let proxy = settings.proxy().map_err(|conflict| Failure::passing(conflict.to_string()))?;
    let (request, body) = request(address)?;
    let mut request = request.header(USER_AGENT, concat!("gatewright/", env!("CARGO_PKG_VERSION")));
    if let Some(token) = token {
        let value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()));
        let mut value = value.map_err(|_| Failure::passing("the token cannot be sent: it is no plain text"))?;
        value.set_sensitive(true);
        request = request.header(AUTHORIZATION, value);
    }
    let request = request.body(Full::new(body)).map_err(|_| Failure::passing("the address cannot be used"))?;
    Ok(Prepared { tls: tls(settings)?, proxy, request })
}

fn tls(settings: &WebhookSettings) -> Result<ClientConfig, Failure> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().map_err(|error| Failure::passing(error.to_string()))?;
    let config = match settings.authorities().map_err(|error| Failure::passing(Chain(&error).to_string()))? {
        Some((file, pem)) => {
            let unusable =
                || Failure::passing(format!("no certificate is in {}, which `caFile` names", file.display()));
            config.with_root_certificates(roots(&pem).ok_or_else(unusable)?)
        }
        None => config
            .with_native_roots()
            .map_err(|error| Failure::passing(format!("cannot read the certificates of the system: {error}")))?,
    };
    Ok(config.with_no_client_auth())
}

/// Reads certificates; `None` if there are none, or one is broken.
fn roots(pem: &str) -> Option<RootCertStore> {
    let mut roots = RootCertStore::empty();
    certificates(pem)?.into_iter().try_for_each(|der| roots.add(CertificateDer::from(der))).ok()?;
    Some(roots)
}

/// Decides what an answer means. A redirect is not followed: a token must not go where nobody has sent it.
fn judge(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Result<(), Failure> {
    if status.is_success() {
        return Ok(());
    }
    let is_final = match status {
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS => false,
        status => !status.is_server_error(),
    };
    let hint = if status.is_redirection() { ", and redirects are not followed: name the last address" } else { "" };
    let wait = headers.get(RETRY_AFTER).and_then(|value| wish(value.to_str().ok()?, now));
    Err(Failure { what: format!("the receiver answers {status}{hint}"), is_final, wait })
}

/// Reads how long to wait: seconds, or until when.
fn wish(text: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok()?;
    Duration::try_from(until.duration_since(now)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_final_unless_it_may_pass() {
        let check = |code: u16| {
            let status = StatusCode::from_u16(code).expect("it is a code");
            judge(status, &HeaderMap::new(), Timestamp::UNIX_EPOCH).map_err(|failure| failure.is_final)
        };
        for code in [200, 201, 202, 204] {
            assert_eq!(check(code), Ok(()), "{code}");
        }
        for code in [301, 307, 400, 401, 403, 404, 410, 413] {
            assert_eq!(check(code), Err(true), "{code}");
        }
        for code in [408, 425, 429, 500, 502, 503, 504] {
            assert_eq!(check(code), Err(false), "{code}");
        }
    }

    #[test]
    fn a_server_may_say_how_long_to_wait() {
        let now: Timestamp = "2026-11-20T12:00:00Z".parse().expect("it is a time");
        assert_eq!(wish("7", now), Some(Duration::from_secs(7)));
        assert_eq!(wish("Fri, 20 Nov 2026 12:00:30 GMT", now), Some(Duration::from_secs(30)));
        assert_eq!(wish("Fri, 20 Nov 2026 11:00:00 GMT", now), None);
        assert_eq!(wish("soon", now), None);
    }
}
