//! A server that speaks as much of S3 as is needed, over HTTP as it is: what the requests look like, conditions, pages.

use std::fmt::Write as _;
use std::sync::Mutex as StdMutex;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State as Kept};
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri};
use gatewright_engine::text::digest;
use tokio::net::TcpListener;

use super::*;
use crate::basics::lock::lock;

/// The most objects in one page of a list.
const PAGE: usize = 3;

/// The time in answers, for tests that change the clock of a server; nothing depends on it.
const THEN: &str = "Fri, 20 Nov 2026 12:00:00 GMT";

#[derive(Clone, Default)]
struct Server {
    objects: Arc<StdMutex<BTreeMap<String, Bytes>>>,
    /// Requests that are answered with an error of the server before others are served.
    failing: Arc<StdMutex<usize>>,
    seen: Arc<StdMutex<Vec<String>>>,
}

fn answer(status: StatusCode, body: impl Into<Body>) -> Response<Body> {
    Response::builder().status(status).body(body.into()).expect("it is an answer")
}

fn object(bytes: &Bytes, body: impl Into<Body>) -> Response<Body> {
    let builder = Response::builder().header("etag", tag(bytes)).header("last-modified", THEN);
    builder.header("content-length", bytes.len()).body(body.into()).expect("it is an answer")
}

fn tag(bytes: &Bytes) -> String {
    format!("\"{}\"", digest(bytes))
}

impl Server {
    /// Returns its address.
    async fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
        let address = listener.local_addr().expect("it listens");
        let router = Router::new().fallback(serve).with_state(self.clone());
        drop(tokio::spawn(async move { axum::serve(listener, router).await }));
        format!("http://{address}")
    }

    fn list(&self, query: &BTreeMap<String, String>) -> Response<Body> {
        let prefix = query.get("prefix").cloned().unwrap_or_default();
        let after = query.get("continuation-token").cloned().unwrap_or_default();
        let objects = lock(&self.objects);
        let mut rest = objects.iter().filter(|(key, _)| key.starts_with(&prefix) && **key > after).peekable();
        let mut text = String::new();
        let mut last = String::new();
        for (key, bytes) in rest.by_ref().take(PAGE) {
            let (tag, size) = (tag(bytes), bytes.len());
            let written = write!(
                text,
                "<Contents><Key>{key}</Key><LastModified>2026-11-20T12:00:00.000Z</LastModified>\
                 <ETag>{tag}</ETag><Size>{size}</Size></Contents>"
            );
            written.expect("it is memory");
            last.clone_from(key);
        }
        let more = rest.peek().is_some();
        let next = if more { format!("<NextContinuationToken>{last}</NextContinuationToken>") } else { String::new() };
        let text = format!("<ListBucketResult><IsTruncated>{more}</IsTruncated>{next}{text}</ListBucketResult>");
        answer(StatusCode::OK, text)
    }

    fn put(&self, key: &str, headers: &HeaderMap, bytes: Bytes) -> Response<Body> {
        let mut objects = lock(&self.objects);
        let there = objects.get(key).map(tag);
        let is_new = headers.get("if-none-match").is_some_and(|value| value == "*");
        let is_expected = headers.get("if-match").is_none_or(|value| there.as_deref() == value.to_str().ok());
        if is_new && there.is_some() || !is_expected {
            return answer(StatusCode::PRECONDITION_FAILED, "<Error><Code>PreconditionFailed</Code></Error>");
        }
        let done = object(&bytes, "");
        objects.insert(key.to_owned(), bytes);
        let (mut parts, body) = done.into_parts();
        parts.headers.remove("content-length");
        Response::from_parts(parts, body)
    }

    fn delete(&self, body: &[u8]) -> Response<Body> {
        let text = String::from_utf8_lossy(body).into_owned();
        let keys = text.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next());
        let mut done = String::new();
        for key in keys {
            lock(&self.objects).remove(key);
            write!(done, "<Deleted><Key>{key}</Key></Deleted>").expect("it is memory");
        }
        answer(StatusCode::OK, format!("<DeleteResult>{done}</DeleteResult>"))
    }
}

async fn serve(
    Kept(server): Kept<Server>,
    method: Method,
    uri: Uri,
    Query(query): Query<BTreeMap<String, String>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    lock(&server.seen).push(format!("{method} {uri}"));
    let is_signed = headers.get("authorization").and_then(|value| value.to_str().ok());
    if !is_signed.is_some_and(|value| value.starts_with("AWS4-HMAC-SHA256 Credential=me/")) {
        return answer(StatusCode::FORBIDDEN, "<Error><Code>AccessDenied</Code><Key>sesame</Key></Error>");
    }
    if std::mem::replace(&mut *lock(&server.failing), 0) > 0 {
        return answer(StatusCode::SERVICE_UNAVAILABLE, "<Error><Code>SlowDown</Code></Error>");
    }
    let Some(key) = uri.path().strip_prefix("/bucket") else { return answer(StatusCode::NOT_FOUND, "") };
    let key = key.trim_start_matches('/');
    let found = lock(&server.objects).get(key).cloned();
    match (method, found) {
        (Method::GET, _) if key.is_empty() => server.list(&query),
        (Method::POST, _) => server.delete(&body),
        (Method::PUT, _) => server.put(key, &headers, body),
        (Method::GET, Some(bytes)) => object(&bytes, bytes.clone()),
        (Method::HEAD, Some(bytes)) => object(&bytes, ""),
        (_, None) => answer(StatusCode::NOT_FOUND, "<Error><Code>NoSuchKey</Code></Error>"),
        _ => answer(StatusCode::METHOD_NOT_ALLOWED, ""),
    }
}

/// The settings for a server of S3.
fn settings_for(endpoint: &str, folder: &Path, key: &str) -> StoreSettings {
    let secrets = folder.join("secrets");
    let text = format!("aws_access_key_id={key}\naws_secret_access_key=sesame\n");
    crate::basics::private::tests::write(&secrets, &text).expect("a test may");
    let options = [("aws_endpoint", endpoint), ("aws_region", "here-1"), ("aws_allow_http", "true")];
    let options = options.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    StoreSettings { url: "s3://bucket/fleet".to_owned(), options, secrets: Some(secrets) }
}

#[tokio::test]
async fn hosts_share_a_bucket() {
    let (folder, [a, b, _]) = folders();
    let server = Server::default();
    let settings = settings_for(&server.start().await, folder.path(), "me");
    let open = |state: &State| Shared::open(&settings, state, Path::new("reports"), "test", true);
    let (a, b) = (Host::start(&a, open), Host::start(&b, open));
    for number in 0..20 {
        a.write(&format!("approvals/t{number}.json"), "1");
    }
    a.flush().await;
    *lock(&server.failing) = 1;
    assert_eq!(b.synchronize().await.taken, 20, "all pages are read, and a server that is busy is asked again");
    lock(&server.seen).clear();
    assert_eq!(b.synchronize().await, Synchronized::default());
    let seen = lock(&server.seen).clone();
    let is_read = |request: &&String| request.starts_with("GET /bucket/fleet/approvals");
    assert_eq!(seen.iter().filter(is_read).count(), 0, "what the list shows to be the same is not read: {seen:?}");

    // Conditions hold.
    b.write("approvals/t1.json", "of b");
    b.flush().await;
    a.write("approvals/t1.json", "of a");
    a.flush().await;
    assert_eq!(a.read("shared/conflicts/approvals/t1.json").as_deref(), Some("of b"));
    a.state.remove("approvals/t2.json").expect("it is removed");
    a.flush().await;
    assert!(!lock(&server.objects).contains_key("fleet/approvals/t2.json"));
    let done = b.synchronize().await;
    assert_eq!(done, Synchronized { taken: 1, removed: 1, ..Synchronized::default() });
    assert_eq!(a.files(), b.files());
    // Whatever else is in the bucket is none of ours.
    lock(&server.objects).insert("fleet-2/approvals/t9.json".to_owned(), Bytes::from_static(b"1"));
    assert_eq!(b.synchronize().await, Synchronized::default());
}

#[tokio::test]
async fn a_server_that_refuses_is_quoted_without_secrets() {
    let (folder, [a, ..]) = folders();
    let server = Server::default();
    let endpoint = server.start().await;
    let settings = settings_for(&endpoint, folder.path(), "another");
    let open = |settings: StoreSettings| {
        let state = State::open(&a).noting();
        Shared::open(&settings, &state, Path::new("reports"), "test", true).expect("the settings are good")
    };
    let error = open(settings.clone()).synchronize(|_| true).await.expect_err("the key is not known");
    assert_eq!(error.to_string(), "cannot list the objects of s3://bucket/fleet");
    let cause = std::error::Error::source(&error).expect("there is one").to_string();
    assert!(cause.contains("403") || cause.contains("AccessDenied"), "{cause}");
    // Over HTTP nothing is sent unless the settings say so.
    lock(&server.seen).clear();
    let mut options = settings.options.clone();
    options.remove("aws_allow_http");
    let refused = open(StoreSettings { options, ..settings }).synchronize(|_| true).await;
    assert!(refused.is_err() && lock(&server.seen).is_empty());
}
