//! The API: JSON documents of known forms, each with its version, under a path that has one, too.

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;
use serde_json::json;

use super::board::{Board, Knowledge};
use super::{events, fleet, hold, rollouts, rounds, target};
use crate::basics::sanitize;

/// The reason why there is no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// There is no such thing.
    Unknown(String),
    /// The daemon has just begun.
    Starting,
    /// A bug.
    Broken,
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(what) => f.write_str(what),
            Self::Starting => f.write_str("the daemon is starting"),
            Self::Broken => f.write_str("the answer cannot be made; the log of the daemon says more"),
        }
    }
}

impl IntoResponse for NoAnswer {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::Unknown(_) => StatusCode::NOT_FOUND,
            Self::Starting => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken => StatusCode::INTERNAL_SERVER_ERROR,
        };
        refusal(status, &self.to_string())
    }
}

/// Answers that there is nothing, and why.
pub(super) fn refusal(status: StatusCode, message: &str) -> Response {
    (status, document(&json!({"schema": "gatewright.dev/error/v1alpha1", "message": message}))).into_response()
}

/// Returns the paths of the API.
pub(super) fn router(board: &Arc<Board>) -> Router {
    Router::new()
        .route("/api/v1/fleet", get(of_fleet))
        .route("/api/v1/syncs/{sync}/clusters/{cluster}", get(of_target))
        .route("/api/v1/approvals", get(of_approvals))
        .route("/api/v1/rollouts", get(of_rollouts))
        .route("/api/v1/rounds", get(of_rounds))
        .route("/api/v1/events", get(events::events))
        .route("/api/v1/{*path}", get(async || NoAnswer::Unknown("there is nothing here".to_owned())))
        .with_state(Arc::clone(board))
}

async fn of_fleet(State(board): State<Arc<Board>>, Query(asked): Query<fleet::Asked>) -> Result<Response, NoAnswer> {
    answer(board, move |_, known| Ok(fleet::fleet(known, &asked))).await
}

async fn of_target(
    State(board): State<Arc<Board>>,
    Path((sync, cluster)): Path<(String, String)>,
    Query(asked): Query<target::Asked>,
) -> Result<Response, NoAnswer> {
    answer(board, move |board, known| target::target(board, known, (&sync, &cluster), &asked)).await
}

async fn of_approvals(State(board): State<Arc<Board>>) -> Result<Response, NoAnswer> {
    answer(board, |board, known| Ok(hold::approvals(board, known))).await
}

async fn of_rollouts(
    State(board): State<Arc<Board>>,
    Query(asked): Query<rollouts::Asked>,
) -> Result<Response, NoAnswer> {
    answer(board, move |board, known| {
        Ok(rollouts::rollouts((&board.state, &known.config), asked.sync.as_deref(), target::MOST))
    })
    .await
}

async fn of_rounds(State(board): State<Arc<Board>>, Query(asked): Query<rounds::Asked>) -> Result<Response, NoAnswer> {
    answer(board, move |_, known| Ok(rounds::rounds(known, &asked))).await
}

/// Makes an answer from what is known, beside the tasks of the daemon, a few at a time.
pub(super) async fn answer<T: Serialize + 'static>(
    board: Arc<Board>,
    make: impl FnOnce(&Board, &Arc<Knowledge>) -> Result<T, NoAnswer> + Send + 'static,
) -> Result<Response, NoAnswer> {
    let running = Arc::clone(&board);
    let _reader = running.readers.acquire().await.map_err(|_| NoAnswer::Broken)?;
    let done = tokio::task::spawn_blocking(move || {
        let known = board.look().ok_or(NoAnswer::Starting)?;
        make(&board, &known).map(|value| document(&value))
    });
    done.await.map_err(|_| NoAnswer::Broken)?
}

pub(super) fn document(value: &impl Serialize) -> Response {
    let mut text = Vec::new();
    match sanitize::write_json(value, &mut text) {
        Ok(()) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
