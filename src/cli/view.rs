//! The printed forms of reports: the same views for plans and for reports that are kept.

use super::plan::{Format, show};
use super::{Context, emit, stream};
use crate::report::{Report, html, junit, markdown};

/// The form in which a report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum View {
    /// For people.
    Text,
    /// For programs: JSON documents, each on a line of its own. docs/schema has their schemas.
    Json,
    /// For a comment on a pull request, at most 60,000 bytes.
    Markdown,
    /// One page for a browser, with everything in it.
    Html,
    /// For whatever shows the results of tests: what differs is a failure.
    Junit,
}

impl View {
    /// Prints one of several reports; tells whether it did: a page has to wait for all of them.
    pub(super) fn print_one(self, context: &Context, report: &Report, verbose: bool) -> bool {
        match self {
            Self::Text => show(context, report, Format::Text, verbose),
            Self::Json => show(context, report, Format::Json, verbose),
            Self::Markdown | Self::Html | Self::Junit => return false,
        }
        true
    }

    /// Prints what is one page for all reports, if it is one.
    pub(super) fn print_page(self, reports: &[Report]) {
        match self {
            Self::Text | Self::Json => {}
            Self::Markdown => emit(&markdown::write(reports, markdown::ROOM)),
            Self::Html => stream(|out| html::write(reports, out)),
            Self::Junit => stream(|out| junit::write(reports, out)),
        }
    }
}
