//! News for those who watch: that there is something new, and not what, so that whoever is slow misses nothing.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, Stream, StreamExt as _};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep_until};

use super::board::Board;

/// A sign of life, so that neither side talks to nobody for long.
const ALIVE: Duration = Duration::from_secs(15);

/// After this a browser is to come again: nobody keeps a place who has gone without a word.
const LONGEST: Duration = Duration::from_mins(15);

/// Answers whoever wants to be told; there is room for some.
pub(super) async fn events(State(board): State<Arc<Board>>) -> Response {
    let Ok(seat) = Arc::clone(&board.watchers).try_acquire_owned() else {
        let why = "too many watch already; ask again now and then\n";
        return (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "60")], why).into_response();
    };
    Sse::new(news(&board, seat)).keep_alive(KeepAlive::new().interval(ALIVE)).into_response()
}

/// The versions of what is known, each when there is one; several at once are one.
fn news(board: &Arc<Board>, seat: OwnedSemaphorePermit) -> impl Stream<Item = Result<Event, Infallible>> + use<> {
    let mut versions = board.version.subscribe();
    versions.mark_changed();
    board.tell();
    let end = (board.stop.clone(), Instant::now() + LONGEST);
    let next = |(mut versions, seat): (watch::Receiver<u64>, OwnedSemaphorePermit)| async {
        versions.changed().await.ok()?;
        let version = *versions.borrow_and_update();
        let event = Event::default().event("change").data(format!("{{\"version\":{version}}}"));
        Some((Ok(event), (versions, seat)))
    };
    stream::unfold((versions, seat), next).take_until(async move {
        tokio::select! {
            () = end.0.cancelled() => {}
            () = sleep_until(end.1) => {}
        }
    })
}
