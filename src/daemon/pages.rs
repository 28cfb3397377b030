//! Everything that is asked for over HTTP: metrics, health, and the dashboard where it is on.

use std::sync::Arc;

use gatewright_engine::error::Chain;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::DaemonError;
use crate::basics::clock::Clock;
use crate::config::Config;
use crate::dashboard::{self, Board};
use crate::process::http::{self, Listen, Shown};
use crate::schedule::enrolled::Enrolled;
use crate::state::State;

/// Begins to answer requests; returns the board behind the dashboard, if there is one.
pub(super) async fn serve(
    config: &Config,
    shown: Shown,
    (state, clock): (&State, &Arc<dyn Clock>),
    enrolled: &Arc<Enrolled>,
    stop: &CancellationToken,
) -> Result<Option<Arc<Board>>, DaemonError> {
    let settings = &config.settings.http;
    let Listen::At(address) = settings.listen else { return Ok(None) };
    let listener = http::bind(address).await.map_err(DaemonError::Http)?;
    let board = settings.has_dashboard().then(|| Arc::new(Board::new(state.clone(), clock, enrolled, stop)));
    let mut router = http::router(shown);
    let token = settings.actions.then(|| dashboard::make_token(state)).transpose().map_err(DaemonError::State)?;
    if let Some(board) = &board {
        if !address.ip().is_loopback() {
            warn!(%address, "the dashboard can be read from other hosts: http.listen is not a loopback address");
            if token.is_some() {
                warn!(%address, "the token of http.actions is sent in clear unless a proxy with TLS stands before it");
            }
        }
        router = router.merge(dashboard::router(board, settings, token.as_deref()));
        tokio::spawn(Arc::clone(board).watch());
    }
    let stop = stop.clone();
    tokio::spawn(async move {
        if let Err(error) = http::serve(listener, router, stop).await {
            error!(error = %Chain(&error), "metrics and health are not served any more");
        }
    });
    Ok(board)
}
