//! The dashboard: the fleet as a page for people and as JSON for programs, read from what rounds leave behind.
//!
//! Without `http.actions` it is for reading only: there is no request that changes anything or has a cluster asked, so that
//! nothing that reaches this port can do more than look; who may look is for [`door`] to say, and who may decide for
//! [`actions`].

mod actions;
mod api;
mod board;
mod cell;
mod door;
mod events;
mod fleet;
mod hold;
mod object;
mod page;
pub(crate) mod rollouts;
mod rounds;
mod target;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use axum::middleware;

use crate::process::http::Settings;
pub(crate) use board::Board;

pub(crate) use actions::make_token;

/// Returns the paths of the dashboard, on what a board knows; with a token those of the actions, too.
pub(crate) fn router(board: &Arc<Board>, settings: &Settings, token: Option<&str>) -> Router {
    let door = Arc::new(door::Door::of(settings, token.is_some()));
    let api =
        api::router(board).merge(actions::router(board, settings, token)).layer(middleware::from_fn(door::same_origin));
    let pages = page::router().merge(api);
    pages.layer(middleware::from_fn_with_state(door, door::enter))
}
