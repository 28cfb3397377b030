//! The page and its parts, which are files of this program: nothing is loaded from elsewhere, and nothing was built.

use axum::Router;
use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;

const PAGE: &str = include_str!("assets/index.html");
const SCRIPTS: [&str; 4] = [
    include_str!("assets/app.js"),
    include_str!("assets/fleet.js"),
    include_str!("assets/details.js"),
    include_str!("assets/actions.js"),
];
const STYLE: &str = include_str!("assets/style.css");
const ICON: &str = include_str!("assets/icon.svg");

/// The path of the page.
pub(super) const PATH: &str = "/dashboard/";

/// Returns the paths of the page.
pub(super) fn router() -> Router {
    Router::new()
        .route("/", get(async || Redirect::to(PATH)))
        .route("/dashboard", get(async || Redirect::to(PATH)))
        .route(PATH, get(async || file("text/html; charset=utf-8", PAGE)))
        .route("/dashboard/app.js", get(async || file("text/javascript; charset=utf-8", SCRIPTS[0])))
        .route("/dashboard/fleet.js", get(async || file("text/javascript; charset=utf-8", SCRIPTS[1])))
        .route("/dashboard/details.js", get(async || file("text/javascript; charset=utf-8", SCRIPTS[2])))
        .route("/dashboard/actions.js", get(async || file("text/javascript; charset=utf-8", SCRIPTS[3])))
        .route("/dashboard/style.css", get(async || file("text/css; charset=utf-8", STYLE)))
        .route("/dashboard/icon.svg", get(async || file("image/svg+xml", ICON)))
}

/// A file of this program: another version has another one, and it is small.
fn file(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")], text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_has_nothing_in_line() {
        let bytes = PAGE.len() + STYLE.len() + ICON.len() + SCRIPTS.iter().map(|script| script.len()).sum::<usize>();
        assert!(bytes < 60_000, "{bytes}");
        for inline in ["<style", " style=", " onclick=", "javascript:", "http://", "https://"] {
            assert!(!PAGE.contains(inline), "{inline}");
        }
        for script in SCRIPTS {
            for risk in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "://"]
            {
                assert!(!script.contains(risk), "{risk}");
            }
        }
    }
}
