//! One request to an API server: when it may go, how long it may take, how often it is tried, and what came back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, DATE, ETAG, HeaderName, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use kube::client::Body;
use kube::core::Status;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout_at};

use super::failure::{Failure, Refusal};
use super::session::{Session, Sessions};
use crate::basics::lock::lock;
use crate::cluster::account::Acting;
use crate::cluster::budget::{Budget, Listing, Reading};
use crate::cluster::permit;

/// More requests at once only add latency.
const AT_ONCE: usize = 8;

/// The most tries of a request in all.
const TRIES: u32 = 3;

/// The wait before the second try, if the server does not say; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// More than any answer but a page of many large objects, which is asked for again with fewer of them.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// The time of a request after one that was not answered at all, for as long as that one has waited.
const SHORT: Duration = Duration::from_secs(3);

/// The most characters that are quoted of words that are no `Status`.
const MAX_QUOTE: usize = 200;

/// A server that answers as soon as this, in microseconds, is so near that packing an answer takes longer than sending it.
const NEAR: u64 = 10_000;

/// Carries requests to one API server, as the user of the kubeconfig or as an account.
#[derive(Clone)]
pub(super) struct Transport {
    way: Arc<Way>,
    /// The account; `None`: that of the session, if it has one.
    acting: Option<Arc<Acting>>,
}

/// The way to one API server, which all accounts share.
struct Way {
    sessions: Sessions,
    places: Semaphore,
    limit: Duration,
    /// Until when the server counts as lost, since it did not answer a request.
    unanswered: Mutex<Option<Instant>>,
    /// The shortest time that an answer has taken, in microseconds.
    distance: AtomicU64,
    budget: Arc<Budget>,
}

/// The answer to a request that was granted.
pub(super) struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
    server: String,
    /// It counts for as long as it is there.
    _reading: Reading,
}

impl Answer {
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_slice(&self.body).map_err(|error| {
            // What it quotes may be a value.
            let what = if error.is_data() { "JSON that is no object" } else { "something else than JSON" };
            Failure::NotKubernetes { what: format!("{} sends {what}", self.server), code: None }
        })
    }

    /// Returns what the server's clock said, in whole seconds.
    pub(super) fn date(&self) -> Option<Timestamp> {
        rfc2822::DateTimeParser::new().parse_timestamp(self.header(DATE)?).ok()
    }

    /// Returns what names this state of what was asked for.
    pub(super) fn tag(&self) -> Option<&str> {
        self.header(ETAG)
    }

    /// Tells whether all is as it was when it had the name that the request quoted.
    pub(super) fn is_as_before(&self) -> bool {
        self.status == StatusCode::NOT_MODIFIED
    }

    /// Returns its length, in bytes.
    pub(super) fn length(&self) -> usize {
        self.body.len()
    }

    fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl Transport {
    /// Sends nothing yet. `limit` is how long a request may take, all tries together, once it is its turn.
    pub(super) fn new(sessions: Sessions, limit: Duration, budget: Budget) -> Self {
        let (places, distance) = (Semaphore::new(AT_ONCE), AtomicU64::new(u64::MAX));
        let way =
            Arc::new(Way { sessions, places, limit, unanswered: Mutex::default(), distance, budget: Arc::new(budget) });
        Self { way, acting: None }
    }

    /// Begins to count the pages of a list.
    pub(super) fn listing(&self) -> Listing {
        Listing::of(&self.way.budget)
    }

    /// Returns what makes the same requests as an account.
    pub(super) fn acting_as(&self, acting: Acting) -> Self {
        Self { way: Arc::clone(&self.way), acting: Some(Arc::new(acting)) }
    }

    /// Looks whether the kubeconfig has changed, so that what is asked next is asked as it says now.
    pub(super) async fn look_afresh(&self) -> Result<(), Failure> {
        self.way.sessions.checked().await.map(drop)
    }

    pub(super) async fn get(&self, address: &str) -> Result<Value, Failure> {
        self.ask(Request::get(address).body(Vec::new())?).await
    }

    /// Sends a request and returns the JSON that comes back.
    pub(super) async fn ask(&self, request: Request<Vec<u8>>) -> Result<Value, Failure> {
        self.answer(request).await?.json()
    }

    pub(super) async fn answer(&self, request: Request<Vec<u8>>) -> Result<Answer, Failure> {
        let _place = self.way.places.acquire().await.expect("nobody closes the semaphore");
        let session = self.way.sessions.current().await?;
        self.ask_in(session, request).await
    }

    /// Sends a request after a look whether the kubeconfig has changed, and returns the JSON that comes back.
    pub(super) async fn ask_afresh(&self, request: Request<Vec<u8>>) -> Result<Value, Failure> {
        let _place = self.way.places.acquire().await.expect("nobody closes the semaphore");
        let session = self.way.sessions.checked().await?;
        self.ask_in(session, request).await?.json()
    }

    /// Sends one request, once, after a look whether the kubeconfig has changed.
    pub(super) async fn probe(&self, address: &str) -> Result<Value, Failure> {
        let session = self.way.sessions.checked().await?;
        let late = Failure::Timeout { server: session.server.clone(), limit: self.way.limit };
        let request = Request::get(address).body(Vec::new())?;
        timeout_at(Instant::now() + self.way.limit, self.once(&session, request)).await.map_err(|_| late)??.json()
    }

    async fn ask_in(&self, session: Arc<Session>, mut request: Request<Vec<u8>>) -> Result<Answer, Failure> {
        if self.way.distance.load(Ordering::Relaxed) < NEAR {
            request.headers_mut().entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        }
        let begun = Instant::now();
        let limit = self.limit_at(begun);
        let late = Failure::Timeout { server: session.server.clone(), limit };
        let deadline = begun + limit;
        if let Ok(answer) = timeout_at(deadline, self.tries(session, &request, deadline)).await {
            if answer.is_ok() {
                *lock(&self.way.unanswered) = None;
            }
            return answer;
        }
        // One that was given less time than it may take proves nothing new.
        if limit == self.way.limit {
            *lock(&self.way.unanswered) = Some(deadline + self.way.limit);
        }
        Err(late)
    }

    /// A server that has just kept silent for as long as it may is lost, and is not waited for again by each request of a
    /// round: it shows quickly whether it is back.
    fn limit_at(&self, now: Instant) -> Duration {
        let is_unanswering = lock(&self.way.unanswered).is_some_and(|end| now < end);
        if is_unanswering { SHORT.min(self.way.limit) } else { self.way.limit }
    }

    async fn tries(
        &self,
        mut session: Arc<Session>,
        request: &Request<Vec<u8>>,
        deadline: Instant,
    ) -> Result<Answer, Failure> {
        let mut renewed = false;
        let mut pause = FIRST_PAUSE;
        let mut tried = 0;
        loop {
            permit::ask()?;
            let sent = Instant::now();
            let mut failure = match self.once(&session, request.clone()).await {
                Ok(answer) => {
                    let took = u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX);
                    self.way.distance.fetch_min(took, Ordering::Relaxed);
                    return Ok(answer);
                }
                Err(failure) => failure,
            };
            if let (true, Failure::Refused(refusal)) = (tried > 0, &mut failure) {
                refusal.is_repeated = true;
            }
            if failure.refusal(401).is_some() && !renewed {
                renewed = true;
                let Some(other) = self.way.sessions.renewed(&session).await? else { return Err(failure) };
                session = other;
                continue;
            }
            tried += 1;
            let Some(wait) = failure.pause(pause) else { return Err(failure) };
            // What the server said is worth more than that time ran out.
            if tried == TRIES || Instant::now() + wait >= deadline {
                return Err(failure);
            }
            sleep(wait).await;
            pause *= 2;
        }
    }

    /// Sends a request, once.
    async fn once(&self, session: &Session, request: Request<Vec<u8>>) -> Result<Answer, Failure> {
        once(session, request, self.acting.as_deref().or(session.acting.as_ref()), &self.way.budget).await
    }
}

async fn once(
    session: &Session,
    mut request: Request<Vec<u8>>,
    acting: Option<&Acting>,
    budget: &Arc<Budget>,
) -> Result<Answer, Failure> {
    if let Some(authorization) = &session.authorization {
        request.headers_mut().insert(AUTHORIZATION, authorization.clone());
    }
    if let Some(acting) = acting {
        request.headers_mut().extend(acting.headers.clone());
    }
    let broken = |error: &(dyn std::error::Error + 'static)| Failure::of_connection(&session.server, error);
    let response = session.client.send(request.map(Body::from)).await.map_err(|error| broken(&error))?;
    let (head, body) = response.into_parts();
    let (bytes, reading) = read(session, body, budget).await?;
    if head.status.is_success() || head.status == StatusCode::NOT_MODIFIED {
        let (status, headers, server) = (head.status, head.headers, session.server.clone());
        return Ok(Answer { status, headers, body: bytes, server, _reading: reading });
    }
    Err(refusal(session, acting, head.status, &head.headers, &bytes))
}

/// Reads what is answered, as long as there is memory for it.
async fn read(session: &Session, mut body: Body, budget: &Arc<Budget>) -> Result<(Vec<u8>, Reading), Failure> {
    let (mut bytes, mut reading) = (Vec::new(), Reading::of(budget));
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Failure::of_connection(&session.server, &error))?;
        let Ok(data) = frame.into_data() else { continue };
        reading.add(data.len())?;
        if bytes.len() + data.len() > MAX_ANSWER {
            return Err(Failure::TooMuch { server: session.server.clone() });
        }
        bytes.extend_from_slice(&data);
    }
    Ok((bytes, reading))
}

/// Reads an answer that is no success: the `Status` of an API server, plain text of one, or something of somebody else.
fn refusal(session: &Session, acting: Option<&Acting>, code: StatusCode, headers: &HeaderMap, body: &[u8]) -> Failure {
    let header = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
    let text: String = String::from_utf8_lossy(body).trim().chars().take(MAX_QUOTE).collect();
    let said = serde_json::from_slice::<Value>(body).ok().filter(|said| said["kind"] == "Status");
    let status = match said.and_then(|said| serde_json::from_value::<Status>(said).ok()) {
        Some(status) => status,
        None if header(CONTENT_TYPE).is_some_and(|kind| kind.starts_with("text/plain")) && !code.is_redirection() => {
            Status::failure(&text, "")
        }
        // A page is not for reading in a terminal.
        None if text.is_empty() || text.starts_with('<') => {
            return not_kubernetes(session, Some(code), &format!("answers {code}"));
        }
        None => return not_kubernetes(session, Some(code), &format!("answers {code}: {text}")),
    };
    let wait = header(RETRY_AFTER).and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
    Failure::Refused(Box::new(Refusal {
        code: code.as_u16(),
        status,
        wait,
        place: session.place.clone(),
        acting: acting.cloned().map(Box::new),
        is_repeated: false,
    }))
}

fn not_kubernetes(session: &Session, code: Option<StatusCode>, what: &str) -> Failure {
    Failure::NotKubernetes { what: format!("{} {what}", session.server), code }
}
