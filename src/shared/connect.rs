//! Requests to object stores over HTTP: TLS as everywhere else in this program, with the certificates of the system and
//! without proxies, which `object_store` would look for in the environment.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use http::HeaderValue;
use http::header::USER_AGENT;
use http_body_util::BodyExt as _;
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as Plain;
use hyper_util::rt::TokioExecutor;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse, HttpResponseBody,
    HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};
use rustls::ClientConfig;
use rustls::crypto::ring;
use tokio::time::timeout;

/// The time limit of one request, up to the headers of its answer.
pub(super) const LIMIT: Duration = Duration::from_secs(30);

/// The time after which a connection that is not used is closed.
const IDLE: Duration = Duration::from_mins(1);

/// The time limit of a connection: where no machine says who it is, that is known soon.
const CONNECT: Duration = Duration::from_secs(5);

/// Makes clients for what a store needs: itself, and whoever says who this machine is.
#[derive(Debug)]
pub(super) struct Connector(ClientConfig);

impl Connector {
    /// Reads the certificates of the system.
    pub(super) fn new() -> Result<Self, std::io::Error> {
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().map_err(std::io::Error::other)?;
        Ok(Self(config.with_native_roots()?.with_no_client_auth()))
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let builder = HttpsConnectorBuilder::new().with_tls_config(self.0.clone());
        let is_plain = options.get_config_value(&ClientConfigKey::AllowHttp).as_deref() == Some("true");
        let builder = if is_plain { builder.https_or_http() } else { builder.https_only() };
        let mut plain = Plain::new();
        plain.enforce_http(false);
        plain.set_connect_timeout(Some(CONNECT));
        let connector = builder.enable_http1().wrap_connector(plain);
        let client = Client::builder(TokioExecutor::new()).pool_idle_timeout(IDLE).build(connector);
        Ok(HttpClient::new(Service(client)))
    }
}

#[derive(Debug)]
struct Service(Client<HttpsConnector<Plain>, HttpRequestBody>);

#[async_trait::async_trait]
impl HttpService for Service {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let agent = HeaderValue::from_static(concat!("gatewright/", env!("CARGO_PKG_VERSION")));
        request.headers_mut().entry(USER_AGENT).or_insert(agent);
        let answer = timeout(LIMIT, self.0.request(request)).await;
        let answer = answer.map_err(|late| HttpError::new(HttpErrorKind::Timeout, late))?;
        let failed = |error: hyper_util::client::legacy::Error| {
            let kind = if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Request };
            HttpError::new(kind, error)
        };
        let (parts, body) = answer.map_err(failed)?.into_parts();
        let body = body.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error));
        let body = body.map_frame(|frame| frame.map_data(Bytes::from));
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)))
    }
}
