//! Decisions of people at the dashboard, where `http.actions` is on: approve, suspend, resume, reconcile.
//!
//! Each takes the token of this host, which stands in a file that only its owner can read, in a header that no page of
//! somebody else can send. A proxy with a login before it may name the user; that is written down and proves nothing.

mod gate;

use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, FromRequest, Path, Request};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Extension, Json, RequestExt as _, Router};
use gatewright_engine::error::Chain;
use gatewright_engine::plan::guard::token;
use gatewright_engine::text::count;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use tracing::error;

use super::api::{NoAnswer, document, refusal};
use super::board::{Board, Knowledge};
use crate::basics::duration::Period;
use crate::history::approvals::{self, Asked};
use crate::history::audit_log::Actor;
use crate::process::http::Settings;
use crate::state::StateError;
use gate::{Gate, named};

pub(crate) use gate::make_token;

/// The most bytes that a request may have.
const MOST_BYTES: usize = 16 * 1024;

/// The most characters of a reason and of a name.
const MOST_CHARACTERS: usize = 500;

/// The version of the form.
const SCHEMA: &str = "gatewright.dev/actions/v1alpha1";

/// The time for which an approval counts if no round comes, as on the command line.
const APPROVAL: SignedDuration = SignedDuration::from_hours(24);

/// Carries a decision out, and says so.
type CarryOut = fn(&Decision, &Knowledge) -> Result<String, Refused>;

/// A decision that somebody who may has sent.
struct Decision {
    board: Arc<Board>,
    actor: Actor,
    /// The sync, or the token of a hold.
    about: String,
    words: Words,
}

/// The words of a person about a decision.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Words {
    reason: Option<String>,
    /// The time for which it counts.
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
    NotUnderstood(StatusCode, String),
    Unknown(String),
    /// It cannot be done as things are.
    Conflict(String),
    Failed(StateError),
    NoAnswer(NoAnswer),
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        match self {
            Self::NotUnderstood(status, message) => refusal(status, &message),
            Self::Unknown(message) => refusal(StatusCode::NOT_FOUND, &message),
            Self::Conflict(message) => refusal(StatusCode::CONFLICT, &message),
            Self::NoAnswer(why) => why.into_response(),
            Self::Failed(why) => {
                error!(error = %Chain(&why), "a decision at the dashboard cannot be written");
                let message = "it cannot be written, and counts for nothing that does not show it now; the log of the daemon \
                               says more";
                refusal(StatusCode::INTERNAL_SERVER_ERROR, message)
            }
        }
    }
}

impl From<StateError> for Refused {
    fn from(error: StateError) -> Self {
        Self::Failed(error)
    }
}

/// Returns the paths of the actions; without a token the one that says that there are none.
pub(super) fn router(board: &Arc<Board>, settings: &Settings, token: Option<&str>) -> Router {
    let (is_on, user) = (token.is_some(), settings.user_header.clone().filter(|_| token.is_some()));
    let gate = token.map(|token| Arc::new(Gate::new(token, user.clone())));
    let show = async move |headers: HeaderMap| {
        let user = user.as_ref().and_then(|header| named(header, &headers));
        document(&Actions { schema: SCHEMA, is_on, user })
    };
    let actions = Router::new().route("/api/v1/actions", get(show));
    let Some(gate) = gate else { return actions };
    let decisions = Router::new()
        .route("/api/v1/approvals/{token}", by(approve))
        .route("/api/v1/syncs/{sync}/suspend", by(suspend))
        .route("/api/v1/syncs/{sync}/resume", by(resume))
        .route("/api/v1/syncs/{sync}/reconcile", by(reconcile))
        .with_state(Arc::clone(board))
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .layer(middleware::from_fn_with_state(gate, gate::enter));
    actions.merge(decisions)
}

/// Answers a decision: what it reads and writes are files, and those who watch are told.
fn by(carry_out: CarryOut) -> MethodRouter<Arc<Board>> {
    post(async move |decision: Decision| -> Result<Response, Refused> {
        let done = tokio::task::spawn_blocking(move || {
            let known = decision.board.look().ok_or(Refused::NoAnswer(NoAnswer::Starting))?;
            let done = carry_out(&decision, &known);
            // Of what failed a part may have been written.
            decision.board.decided();
            done.map(|message| document(&Done { schema: SCHEMA, message }))
        });
        done.await.unwrap_or(Err(Refused::NoAnswer(NoAnswer::Broken)))
    })
}

impl FromRequest<Arc<Board>> for Decision {
    type Rejection = Response;

    async fn from_request(mut request: Request, board: &Arc<Board>) -> Result<Self, Response> {
        let Path(about) = request.extract_parts().await.map_err(IntoResponse::into_response)?;
        let Extension(actor) = request.extract_parts().await.map_err(IntoResponse::into_response)?;
        let words = Words::of(request).await.map_err(IntoResponse::into_response)?;
        Ok(Self { board: Arc::clone(board), actor, about, words })
    }
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

fn approve(Decision { board, actor, about, words }: &Decision, known: &Knowledge) -> Result<String, Refused> {
    let Some(token) = token::parse(about) else {
        return Err(Refused::Unknown("this is no token of something that waits".to_owned()));
    };
    let is_known = |asked: &Asked| known.cells.get(&asked.cluster).is_some_and(|it| it.contains_key(&asked.sync));
    let mut waiting = approvals::waiting(&board.state)?;
    waiting.retain(|asked| asked.is_meant_by(&token) && is_known(asked));
    if waiting.is_empty() {
        return Err(Refused::Unknown("this does not wait any more: look at what waits now".to_owned()));
    }
    let period = words.r#for.map_or(Ok(APPROVAL), |period| SignedDuration::try_from(period.0));
    let until = period.ok().and_then(|period| board.clock.now().checked_add(period).ok());
    let too_long = || Refused::NotUnderstood(StatusCode::UNPROCESSABLE_ENTITY, "that is too long a time".to_owned());
    let until = until.ok_or_else(too_long)?;
    for asked in &waiting {
        board.decider(actor).approve(asked, words.reason.as_deref(), until)?;
    }
    let clusters = count(waiting.len(), "cluster");
    Ok(format!("approved on {clusters} for the next round, until {}", until.strftime("%F %H:%M UTC")))
}

fn suspend(Decision { board, actor, about: sync, words }: &Decision, known: &Knowledge) -> Result<String, Refused> {
    check(known, sync)?;
    let reason = words.reason.as_deref().unwrap_or("no reason given");
    let suspension = board.decider(actor).suspend(sync, reason, words.r#for.map(|time| time.0))?;
    Ok(format!("sync {sync} is {}", suspension.words()))
}

fn resume(Decision { board, actor, about: sync, .. }: &Decision, known: &Knowledge) -> Result<String, Refused> {
    check(known, sync)?;
    let was = board.decider(actor).resume(sync)?;
    let was = was.map_or_else(|| "it was not suspended".to_owned(), |was| format!("it was {}", was.words()));
    Ok(format!("sync {sync} has rounds; {was}"))
}

fn reconcile(Decision { board, about: sync, .. }: &Decision, known: &Knowledge) -> Result<String, Refused> {
    check(known, sync)?;
    if known.suspended.contains_key(sync) {
        return Err(Refused::Conflict(format!("sync {sync} is suspended: resume it first")));
    }
    match board.reconcile(sync) {
        0 => Err(Refused::Conflict(format!("no rounds of sync {sync} run on this host: ask the one that has it"))),
        number => Ok(format!("the source is read now, and then a round begins on {}", count(number, "cluster"))),
    }
}

fn check(known: &Knowledge, sync: &str) -> Result<(), Refused> {
    if known.config.settings.syncs.contains_key(sync) {
        return Ok(());
    }
    Err(Refused::Unknown("there is no such sync".to_owned()))
}
