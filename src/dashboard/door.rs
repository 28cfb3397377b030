//! The check of each request: only browsers that ask this host by a name of its own, for a page of ours, are let in.
//!
//! There is no login on this port to look, so that pages of others must not be able to ask in the name of whoever sits at the
//! browser: not by a name of theirs that leads to this address (DNS rebinding), not across origins, not in a frame.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::process::http::{HostName, Listen, Settings};

/// Nothing runs, loads or shows this but what is ours, and text can never become a script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Headers of every answer.
const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
];

/// The names by which this host may be asked.
pub(super) struct Door {
    names: Vec<HostName>,
    /// The address that it listens on; none if that is every address of the host.
    address: Option<IpAddr>,
    /// Whether there is something to decide, and not only to see.
    has_actions: bool,
}

impl Door {
    /// Takes the names from the settings of the server.
    pub(super) fn of(settings: &Settings, has_actions: bool) -> Self {
        let address = match settings.listen {
            Listen::At(address) => Some(address.ip()).filter(|address| !address.is_unspecified()),
            Listen::Off => None,
        };
        Self { names: settings.names.clone(), address, has_actions }
    }

    /// Tells whether a request names this host: everything that it says of that must.
    fn knows(&self, request: &Request) -> bool {
        let mut hosts = request.headers().get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
        let host = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
        host.is_some_and(|host| self.is_ours(&host)) && request.uri().authority().is_none_or(|it| self.is_ours(it))
    }

    /// Names of others lead where they want, and addresses do not. The port may be that of a tunnel.
    fn is_ours(&self, authority: &Authority) -> bool {
        if authority.as_str().contains('@') {
            return false;
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        match host.parse::<IpAddr>() {
            Ok(address) => address.is_loopback() || self.address.is_none_or(|own| own == address),
            Err(_) => host == "localhost" || self.names.iter().any(|name| *name == *host),
        }
    }
}

/// Lets a request in, or says why not; what an answer may be used for stands in its headers.
pub(super) async fn enter(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let is_action = door.has_actions && *request.method() == Method::POST;
    let mut response = if !is_action && !matches!(*request.method(), Method::GET | Method::HEAD) {
        (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET, HEAD")], "the dashboard only shows\n").into_response()
    } else if door.knows(&request) {
        next.run(request).await
    } else {
        let why = "this host has another name here: ask for localhost or its address, or add the name to http.names\n";
        (StatusCode::MISDIRECTED_REQUEST, why).into_response()
    };
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// Refuses what a page of somebody else asks for; programs that are no browsers say nothing of that.
pub(super) async fn same_origin(request: Request, next: Next) -> Response {
    if is_of_others(request.headers()) {
        return (StatusCode::FORBIDDEN, "this is for pages of this host only\n").into_response();
    }
    next.run(request).await
}

fn is_of_others(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all("sec-fetch-site").iter();
    let is_other_site = sites.any(|site| !matches!(site.as_bytes(), b"same-origin" | b"none"));
    let host = headers.get(header::HOST).map(HeaderValue::as_bytes).unwrap_or_default();
    let is_own = |origin: &HeaderValue| {
        let origin = origin.as_bytes();
        let schemes: [&[u8]; 2] = [b"http://", b"https://"];
        schemes.iter().any(|scheme| origin.strip_prefix(*scheme) == Some(host))
    };
    is_other_site || headers.get_all(header::ORIGIN).iter().any(|origin| !is_own(origin))
}
