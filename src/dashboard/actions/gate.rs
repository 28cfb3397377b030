//! The check of each decision: it takes the token of this host.

use std::sync::Arc;

use axum::extract::{Request, State as Shared};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use gatewright_engine::text::digest;

use super::MOST_CHARACTERS;
use crate::basics::sanitize;
use crate::dashboard::api::refusal;
use crate::history::audit_log::Actor;
use crate::process::http::UserHeader;
use crate::state::{State, StateError, new_installation};

/// The file with the token, below the state folder.
const TOKEN: &str = "dashboard.token";

/// The fewest characters of a token: an empty file is no leave for everybody.
const FEWEST: usize = 32;

/// The guard before the actions.
pub(super) struct Gate {
    /// The digest of the token, so that a comparison tells nothing of it by the time that it takes.
    token: String,
    user: Option<UserHeader>,
}

impl Gate {
    /// Makes one for a token, and the header with the user.
    pub(super) fn new(token: &str, user: Option<UserHeader>) -> Self {
        Self { token: digest(token.as_bytes()), user }
    }

    fn is_open_to(&self, headers: &HeaderMap) -> bool {
        let mut given = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(given), None) = (given.next(), given.next()) else { return false };
        let token = given.to_str().ok().and_then(|value| value.strip_prefix("Bearer "));
        token.is_some_and(|token| digest(token.trim().as_bytes()) == self.token)
    }
}

/// Returns the token of this host; makes one if there is none yet.
pub(crate) fn make_token(state: &State) -> Result<String, StateError> {
    let _making = state.wait_to_lock("dashboard.lock")?;
    if let Some(bytes) = state.read(TOKEN)? {
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        if text.len() >= FEWEST {
            return Ok(text);
        }
    }
    let token = format!("{}{}", new_installation(), new_installation());
    state.write(TOKEN, format!("{token}\n").as_bytes())?;
    Ok(token)
}

/// Lets a request in that has the token, and says in whose name it comes.
pub(super) async fn enter(Shared(gate): Shared<Arc<Gate>>, mut request: Request, next: Next) -> Response {
    if !gate.is_open_to(request.headers()) {
        let message = format!("this takes the token of this host: it stands in {TOKEN} in the state directory");
        let mut response = refusal(StatusCode::UNAUTHORIZED, &message);
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return response;
    }
    let user = gate.user.as_ref().and_then(|header| named(header, request.headers()));
    request.extensions_mut().insert(Actor::of_dashboard(user));
    next.run(request).await
}

/// Returns the user whom a proxy names; none where it names several.
pub(super) fn named(header: &UserHeader, headers: &HeaderMap) -> Option<String> {
    let mut values = headers.get_all(header.as_str()).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let name = sanitize::line(value.to_str().ok()?.trim()).chars().take(MOST_CHARACTERS).collect::<String>();
    Some(name).filter(|name| !name.is_empty())
}
