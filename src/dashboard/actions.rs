//! Decisions of people at the dashboard, where `http.actions` is on: approve, suspend, resume, reconcile.
//!
//! Each takes the token of this host, which stands in a file that only its owner can read, in a header that no page of
//! somebody else can send. A proxy with a login before it may name the user; that is written down and proves nothing.

use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, FromRequest, Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use gatewright_engine::error::Chain;
use gatewright_engine::plan::guard::token;
use gatewright_engine::text::{count, digest};
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use tracing::error;

use super::api::document;
use super::board::{Board, Knowledge};
use crate::basics::duration::Period;
use crate::basics::sanitize;
use crate::history::approvals::{self, Asked};
use crate::history::audit_log::Actor;
use crate::process::http::{Settings, UserHeader};
use crate::state::StateError;

/// The file with the token, below the state folder.
pub(crate) const TOKEN: &str = "dashboard.token";

/// The most bytes that a request may have.
const MOST_BYTES: usize = 16 * 1024;

/// The most characters of a reason and of a name.
const MOST_CHARACTERS: usize = 500;

/// The version of the form.
const SCHEMA: &str = "gatewright.dev/actions/v1alpha1";

/// The time for which an approval counts if no round comes, as on the command line.
const APPROVAL: SignedDuration = SignedDuration::from_hours(24);

/// The guard before the actions.
struct Gate {
    /// The digest of the token, so that a comparison tells nothing of it by the time that it takes.
    token: String,
    user: Option<UserHeader>,
}

/// What a person has to say with a decision.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Words {
    reason: Option<String>,
    /// How long it lasts.
    r#for: Option<Period>,
}

/// The answer to a decision.
#[derive(Serialize)]
struct Done {
    schema: &'static str,
    message: String,
}

/// Whether there are actions here, and who asks.
#[derive(Serialize)]
struct Actions {
    schema: &'static str,
    #[serde(rename = "actions")]
    is_on: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
}

/// The reason why nothing was decided.
#[derive(Debug)]
enum Refused {
    NotAllowed,
    NotUnderstood(StatusCode, String),
    Unknown(String),
    /// It cannot be done as things are.
    Conflict(String),
    Failed(StateError),
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let (status, message) = match self {
            Self::NotAllowed => {
                let message = format!("this takes the token of this host: it stands in {TOKEN} in the state directory");
                (StatusCode::UNAUTHORIZED, message)
            }
            Self::NotUnderstood(status, message) => (status, message),
            Self::Unknown(message) => (StatusCode::NOT_FOUND, message),
            Self::Conflict(message) => (StatusCode::CONFLICT, message),
            Self::Failed(why) => {
                error!(error = %Chain(&why), "what was decided at the dashboard cannot be written");
                let message = "it cannot be written, so it does not count; the log of the daemon says more";
                (StatusCode::INTERNAL_SERVER_ERROR, message.to_owned())
            }
        };
        super::api::refusal(status, &message)
    }
}

impl From<StateError> for Refused {
    fn from(error: StateError) -> Self {
        Self::Failed(error)
    }
}

/// Returns the token of this host; makes one if there is none yet.
pub(crate) fn make_token(state: &crate::state::State) -> Result<String, StateError> {
    let _making = state.wait_to_lock("dashboard.lock")?;
    if let Some(bytes) = state.read(TOKEN)? {
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        // An empty file is no leave for everybody.
        if text.len() >= 32 {
            return Ok(text);
        }
    }
    let token = format!("{}{}", crate::state::new_installation(), crate::state::new_installation());
    state.write(TOKEN, format!("{token}\n").as_bytes())?;
    Ok(token)
}

/// Returns the paths of the actions; without a token the one that says that there are none.
pub(super) fn router(board: &Arc<Board>, settings: &Settings, token: Option<&str>) -> Router {
    let user = settings.user_header.clone();
    let has_actions = token.is_some();
    let shown = Router::new().route(
        "/api/v1/actions",
        get(async move |headers: HeaderMap| {
            let user = user.as_ref().and_then(|header| named(header, &headers)).filter(|_| has_actions);
            document(&Actions { schema: SCHEMA, is_on: has_actions, user })
        }),
    );
    let Some(token) = token else { return shown };
    let gate = Arc::new(Gate { token: digest(token.as_bytes()), user: settings.user_header.clone() });
    let actions = Router::new()
        .route("/api/v1/approvals/{token}", post(approve))
        .route("/api/v1/syncs/{sync}/suspend", post(suspend))
        .route("/api/v1/syncs/{sync}/resume", post(resume))
        .route("/api/v1/syncs/{sync}/reconcile", post(reconcile))
        .with_state(Arc::clone(board))
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .layer(middleware::from_fn_with_state(gate, enter));
    shown.merge(actions)
}

/// Lets a request in that has the token.
async fn enter(State(gate): State<Arc<Gate>>, mut request: Request, next: Next) -> Response {
    let mut given = request.headers().get_all(header::AUTHORIZATION).iter();
    let (given, other) = (given.next(), given.next());
    let token = given.and_then(|value| value.to_str().ok()).and_then(|value| value.strip_prefix("Bearer "));
    let is_right = other.is_none() && token.is_some_and(|token| digest(token.trim().as_bytes()) == gate.token);
    if !is_right {
        let mut response = Refused::NotAllowed.into_response();
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return response;
    }
    let user = gate.user.as_ref().and_then(|header| named(header, request.headers()));
    request.extensions_mut().insert(Actor::of_dashboard(user));
    next.run(request).await
}

/// Returns the user whom a proxy names; none where it names several.
fn named(header: &UserHeader, headers: &HeaderMap) -> Option<String> {
    let mut values = headers.get_all(header.as_str()).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let name = sanitize::line(value.to_str().ok()?.trim()).chars().take(MOST_CHARACTERS).collect::<String>();
    Some(name).filter(|name| !name.is_empty())
}

impl Words {
    /// Reads the body of a request, which has to say that it is JSON: no form of a page can.
    async fn of(request: Request) -> Result<Self, Refused> {
        let Json(words): Json<Self> = Json::from_request(request, &()).await.map_err(|error: JsonRejection| {
            Refused::NotUnderstood(error.status(), format!("the body is no such document: {}", error.body_text()))
        })?;
        let cut = |text: String| text.trim().chars().take(MOST_CHARACTERS).collect::<String>();
        Ok(Self { reason: words.reason.map(cut).filter(|reason| !reason.is_empty()), ..words })
    }
}

async fn approve(
    State(board): State<Arc<Board>>,
    Extension(actor): Extension<Actor>,
    Path(text): Path<String>,
    request: Request,
) -> Result<Response, Refused> {
    let words = Words::of(request).await?;
    decide(board, move |board, known| {
        let Some(token) = token::parse(&text) else {
            return Err(Refused::Unknown("this is no token of something that waits".to_owned()));
        };
        let is_known = |asked: &Asked| known.cells.get(&asked.cluster).is_some_and(|it| it.contains_key(&asked.sync));
        let mut waiting = approvals::waiting(&board.state);
        waiting.retain(|asked| asked.is_meant_by(&token) && is_known(asked));
        if waiting.is_empty() {
            return Err(Refused::Unknown("this does not wait any more: look at what waits now".to_owned()));
        }
        let period = words.r#for.map_or(Ok(APPROVAL), |period| SignedDuration::try_from(period.0));
        let until = period.ok().and_then(|period| board.clock.now().checked_add(period).ok());
        let until = until.ok_or_else(|| {
            Refused::NotUnderstood(StatusCode::UNPROCESSABLE_ENTITY, "that is too long a time".to_owned())
        })?;
        for asked in &waiting {
            board.decider(&actor).approve(asked, words.reason.as_deref(), until)?;
        }
        let clusters = count(waiting.len(), "cluster");
        Ok(format!("approved on {clusters} for the next round, until {}", until.strftime("%F %H:%M UTC")))
    })
    .await
}

async fn suspend(
    State(board): State<Arc<Board>>,
    Extension(actor): Extension<Actor>,
    Path(sync): Path<String>,
    request: Request,
) -> Result<Response, Refused> {
    let words = Words::of(request).await?;
    decide(board, move |board, known| {
        check(known, &sync)?;
        let reason = words.reason.as_deref().unwrap_or("no reason given");
        let suspension = board.decider(&actor).suspend(&sync, reason, words.r#for.map(|time| time.0))?;
        Ok(format!("sync {sync} is {}", suspension.words()))
    })
    .await
}

async fn resume(
    State(board): State<Arc<Board>>,
    Extension(actor): Extension<Actor>,
    Path(sync): Path<String>,
    request: Request,
) -> Result<Response, Refused> {
    Words::of(request).await?;
    decide(board, move |board, known| {
        check(known, &sync)?;
        let was = board.decider(&actor).resume(&sync)?;
        let was = was.map_or_else(|| "it was not suspended".to_owned(), |was| format!("it was {}", was.words()));
        Ok(format!("sync {sync} has rounds; {was}"))
    })
    .await
}

async fn reconcile(
    State(board): State<Arc<Board>>,
    Path(sync): Path<String>,
    request: Request,
) -> Result<Response, Refused> {
    Words::of(request).await?;
    decide(board, move |board, known| {
        check(known, &sync)?;
        if known.suspended.contains_key(&sync) {
            return Err(Refused::Conflict(format!("sync {sync} is suspended: resume it first")));
        }
        match board.reconcile(&sync) {
            0 => Err(Refused::Conflict(format!("no rounds of sync {sync} run on this host: ask the one that has it"))),
            number => Ok(format!("the source is read now, and then a round begins on {}", count(number, "cluster"))),
        }
    })
    .await
}

fn check(known: &Knowledge, sync: &str) -> Result<(), Refused> {
    if known.config.settings.syncs.contains_key(sync) {
        return Ok(());
    }
    Err(Refused::Unknown("there is no such sync".to_owned()))
}

/// Does what was decided, which reads and writes files, and has those who watch told.
async fn decide(
    board: Arc<Board>,
    work: impl FnOnce(&Board, &Knowledge) -> Result<String, Refused> + Send + 'static,
) -> Result<Response, Refused> {
    let starting = || Refused::Conflict("the daemon is starting".to_owned());
    let done = tokio::task::spawn_blocking(move || {
        let known = board.look().ok_or_else(starting)?;
        let message = work(&board, &known)?;
        board.decided();
        Ok(document(&Done { schema: SCHEMA, message }))
    });
    done.await.unwrap_or_else(|_| Err(starting()))
}
