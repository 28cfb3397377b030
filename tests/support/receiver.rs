//! A receiver of webhooks on the loopback address: it answers as it is told and remembers what came.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// The answer to a request; the usual one is 204.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// This status.
    Status(u16),
    /// This status, and a header.
    With(u16, &'static str, String),
    /// None, ever.
    Silence,
}

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// With the query.
    pub(crate) path: String,
    pub(crate) method: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) text: String,
    /// The status that was answered with; nothing for silence.
    pub(crate) status: Option<u16>,
}

impl Received {
    /// Returns what was sent.
    pub(crate) fn body(&self) -> Value {
        serde_json::from_str(&self.text).expect("a notification is JSON")
    }

    /// Returns a header; empty if it is not there.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

#[derive(Default)]
struct Inner {
    answers: VecDeque<Answer>,
    always: Option<Answer>,
    received: Vec<Received>,
}

/// The receiver, which ends with this value.
pub(crate) struct Receiver {
    inner: Arc<Mutex<Inner>>,
    port: u16,
    runtime: Option<Runtime>,
}

impl Receiver {
    /// Starts one.
    pub(crate) fn start() -> Self {
        Self::start_at(0)
    }

    /// Starts one at a port that is free.
    pub(crate) fn start_at(port: u16) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime can be made");
        let inner = Arc::new(Mutex::new(Inner::default()));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = runtime.block_on(TcpListener::bind(address)).expect("the port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let router = Router::new().fallback(receive).with_state(Arc::clone(&inner));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { inner, port, runtime: Some(runtime) }
    }

    /// Returns an address of it.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Gives these answers next, one after the other.
    pub(crate) fn answers(&self, answers: &[Answer]) {
        self.inner().answers.extend(answers.iter().cloned());
    }

    /// Gives this answer from now on, when no other is left.
    pub(crate) fn always(&self, answer: Answer) {
        self.inner().always = Some(answer);
    }

    /// Returns what came, in order.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.inner().received.clone()
    }

    /// Returns what was taken.
    pub(crate) fn taken(&self) -> Vec<Value> {
        let is_taken = |received: &&Received| received.status.is_some_and(|status| status < 300);
        self.received().iter().filter(is_taken).map(Received::body).collect()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // What is silent would be waited for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn receive(
    State(inner): State<Arc<Mutex<Inner>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let header = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
        (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let answer = {
        let mut inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
        let usual = inner.always.clone().unwrap_or(Answer::Status(204));
        let answer = inner.answers.pop_front().unwrap_or(usual);
        let status = match &answer {
            Answer::Status(status) | Answer::With(status, ..) => Some(*status),
            Answer::Silence => None,
        };
        inner.received.push(Received {
            path: uri.to_string(),
            method: method.to_string(),
            headers: headers.iter().map(header).collect(),
            text: String::from_utf8_lossy(&body).into_owned(),
            status,
        });
        answer
    };
    let status = |code| StatusCode::from_u16(code).expect("the test names a status");
    match answer {
        Answer::Status(code) => status(code).into_response(),
        Answer::With(code, name, value) => (status(code), [(name, value)]).into_response(),
        Answer::Silence => std::future::pending().await,
    }
}
