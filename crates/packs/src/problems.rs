//! Problems with parts of documents.

use gatewright_engine::problem::Problem;
use gatewright_engine::spec::Document;

/// Returns a problem with a part of a document.
pub(crate) fn problem(document: &Document, path: &[&str], message: impl Into<String>) -> Problem {
    Problem::document(document.place_of(path), message).about(document.id.clone())
}

/// Returns a warning about a part of a document.
pub(crate) fn warning(document: &Document, path: &[&str], message: impl Into<String>) -> Problem {
    Problem::warning(document.place_of(path), message).about(document.id.clone())
}
