//! Bytes between a client, the proxy and the API server.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use http::header::{ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, DATE, HOST};
use http::{HeaderName, HeaderValue, Request};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{block_in_place, spawn};

use super::{Answer, Seen, State};
use crate::cluster::reading::config;

/// Headers that concern one connection only, or are the proxy's to say.
const OURS: [HeaderName; 5] = [ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST];

/// An answer on its way back.
struct Response {
    code: u16,
    headers: String,
    body: Vec<u8>,
}

impl Response {
    fn json(code: u16, body: &Value) -> Self {
        Self { code, headers: "Content-Type: application/json\r\n".to_owned(), body: body.to_string().into_bytes() }
    }

    fn status(code: u16, message: &str) -> Self {
        Self::json(code, &json!({"kind": "Status", "apiVersion": "v1", "code": code, "message": message}))
    }

    fn page(kind: &str, body: &str) -> Self {
        Self { code: 200, headers: format!("Content-Type: {kind}\r\n"), body: body.as_bytes().to_vec() }
    }

    fn bytes(&self) -> Vec<u8> {
        let head = format!("HTTP/1.1 {} X\r\n{}Content-Length: {}\r\n\r\n", self.code, self.headers, self.body.len());
        [head.as_bytes(), &self.body].concat()
    }
}

/// Makes the client that speaks to the server.
pub(super) async fn client(kubeconfig: &Path) -> Client {
    let mut config = config(kubeconfig).await;
    // A test that counts requests counts all of them.
    config.default_retry = false;
    Client::try_from(config).expect("the kubeconfig of the test cluster is sound")
}

/// Serves connections until the runtime ends.
pub(super) async fn serve(listener: TcpListener, upstream: Client, state: Arc<Mutex<State>>) {
    while let Ok((stream, _)) = listener.accept().await {
        spawn(converse(stream, upstream.clone(), Arc::clone(&state)));
    }
}

/// Answers requests until one of the two sides has enough.
async fn converse(mut stream: TcpStream, upstream: Client, state: Arc<Mutex<State>>) {
    let mut buffer = Vec::new();
    while let Some((request, seen)) = read(&mut stream, &mut buffer).await {
        if respond(&mut stream, request, seen, &upstream, &state).await.is_none() {
            return;
        }
    }
}

/// Returns `None` if the connection is to end.
async fn respond(
    stream: &mut TcpStream,
    request: Request<Vec<u8>>,
    seen: Seen,
    upstream: &Client,
    state: &Mutex<State>,
) -> Option<()> {
    let (place, answer) = state.lock().unwrap_or_else(PoisonError::into_inner).receive(seen);
    let request = if matches!(answer, Some(Answer::DryRunIgnored)) { without_dry_run(request) } else { request };
    let pass = async || {
        let response = pass(upstream, request).await?;
        state.lock().unwrap_or_else(PoisonError::into_inner).answered(place, response.code);
        Some(response)
    };
    let response = match answer {
        None | Some(Answer::DryRunIgnored) => pass().await?,
        Some(Answer::Lost) => return None,
        Some(Answer::Unanswered) => return pass().await.and(None),
        Some(Answer::Truncated) => {
            let bytes = pass().await?.bytes();
            stream.write_all(&bytes[..bytes.len() - bytes.len() / 4]).await.ok()?;
            return None;
        }
        Some(Answer::Replaced(code)) => {
            pass().await?;
            Response { code, headers: String::new(), body: Vec::new() }
        }
        Some(Answer::Refused(code, message)) => Response::status(code, message),
        Some(Answer::Busy(seconds)) => {
            let response = Response::status(429, "please wait");
            Response { headers: format!("{}Retry-After: {seconds}\r\n", response.headers), ..response }
        }
        Some(Answer::Page(kind, body)) => Response::page(kind, body),
        Some(Answer::Endless) => return endless(stream).await,
        Some(Answer::Silent) => {
            // Whatever comes now is the end.
            stream.read_u8().await.ok()?;
            return None;
        }
        Some(Answer::Changed(change)) => {
            let response = pass().await?;
            let mut body = serde_json::from_slice(&response.body).ok()?;
            change(&mut body);
            Response::json(response.code, &body)
        }
        Some(Answer::Dated(time)) => {
            let response = pass().await?;
            dated(response, time)
        }
        Some(Answer::After(happens)) => {
            block_in_place(|| happens());
            pass().await?
        }
    };
    stream.write_all(&response.bytes()).await.ok()
}

/// Returns a response that bears another time.
fn dated(response: Response, time: Timestamp) -> Response {
    let kind = response.headers.lines().find(|line| !line.starts_with("Date: ")).unwrap_or_default();
    let date = time.strftime("%a, %d %b %Y %H:%M:%S GMT");
    Response { headers: format!("{kind}\r\nDate: {date}\r\n"), ..response }
}

/// Sends blanks, which JSON may begin with, until the client has enough.
async fn endless(stream: &mut TcpStream) -> Option<()> {
    let head = "HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: 1000000000000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.ok()?;
    let blanks = vec![b' '; 1 << 20];
    loop {
        stream.write_all(&blanks).await.ok()?;
    }
}

/// Takes `dryRun` out of a request.
fn without_dry_run(mut request: Request<Vec<u8>>) -> Request<Vec<u8>> {
    let uri = request.uri().to_string().replace("dryRun=All", "");
    *request.uri_mut() = uri.parse().expect("it was an address before");
    request
}

/// Carries a request to the server, and its answer back.
async fn pass(upstream: &Client, request: Request<Vec<u8>>) -> Option<Response> {
    let response = upstream.send(request.map(Body::from)).await.ok()?;
    let (head, body) = response.into_parts();
    let body = body.collect().await.ok()?.to_bytes().to_vec();
    let header = |name| head.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let mut headers = format!("Content-Type: {}\r\n", header(CONTENT_TYPE).unwrap_or("text/plain"));
    headers.extend(header(DATE).map(|date| format!("Date: {date}\r\n")));
    Some(Response { code: head.status.as_u16(), headers, body })
}

/// Reads a request; `None` if the client has enough.
async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<(Request<Vec<u8>>, Seen)> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break at + 4;
        }
        more(stream, buffer).await?;
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    let mut lines = head.lines();
    let (method, rest) = lines.next()?.split_once(' ')?;
    let path = rest.split(' ').next()?;
    let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
    let header = |name: &str| headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| *value);
    let length: usize = header("content-length").and_then(|text| text.parse().ok()).unwrap_or_default();
    while buffer.len() < end + length {
        more(stream, buffer).await?;
    }
    let text = |name| header(name).unwrap_or_default().to_owned();
    let (authorization, accept) = (text("authorization"), text("accept"));
    let mut request = Request::builder().method(method).uri(path).body(buffer[end..end + length].to_vec()).ok()?;
    for (name, value) in &headers {
        let name = HeaderName::try_from(*name).ok()?;
        if !OURS.contains(&name) {
            request.headers_mut().append(name, HeaderValue::try_from(*value).ok()?);
        }
    }
    let seen = Seen { method: method.to_owned(), path: path.to_owned(), authorization, accept, code: None };
    buffer.drain(..end + length);
    Some((request, seen))
}

async fn more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    let read = stream.read_buf(buffer).await.ok()?;
    (read > 0).then_some(())
}
