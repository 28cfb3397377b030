//! The printed forms of reports: the same views for plans and for reports that are kept.

use super::format::Format;
use super::plan::show;
use super::{Context, Failure, emit, stream};
use crate::report::text::Look;
use crate::report::{Report, html, junit, markdown};

/// The form in which a report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum View {
    /// For people.
    Text,
    /// For programs: JSON documents, each on a line of its own. docs/schema has their schemas.
    Json,
    /// The same as YAML documents.
    Yaml,
    /// For a comment on a pull request, at most 60,000 bytes.
    Markdown,
    /// One page for a browser, with everything in it.
    Html,
    /// For whatever shows the results of tests: what differs is a failure.
    Junit,
}

/// The extent to which a text goes into details.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(super) struct Extent {
    /// Leave nothing out: objects that stay as they are, the name of each cluster, every value.
    #[arg(long, short)]
    pub verbose: bool,
    /// One line for clusters that are alike, and one that counts them.
    #[arg(long, conflicts_with = "verbose")]
    pub summary: bool,
}

impl Extent {
    /// Refuses a summary in another form than text, which has all of it.
    pub(super) fn check(self, is_text: bool) -> Result<(), Failure> {
        if self.summary && !is_text {
            let failure = Failure::usage("--summary is a form of text".to_owned());
            return Err(failure.hint("leave out --output, or --summary"));
        }
        Ok(())
    }

    /// Returns the look of a text.
    pub(super) fn look(self, context: &Context) -> Look {
        Look { color: context.color, verbose: self.verbose, summary: self.summary }
    }
}

impl From<Format> for View {
    fn from(format: Format) -> Self {
        match format {
            Format::Text => Self::Text,
            Format::Json => Self::Json,
            Format::Yaml => Self::Yaml,
        }
    }
}

impl View {
    /// Prints one of several reports; tells whether it did: a page has to wait for all of them.
    pub(super) fn print_one(self, context: &Context, report: &Report, extent: Extent) -> bool {
        match self {
            Self::Text => show(context, report, Format::Text, extent),
            Self::Json => show(context, report, Format::Json, extent),
            Self::Yaml => show(context, report, Format::Yaml, extent),
            Self::Markdown | Self::Html | Self::Junit => return false,
        }
        true
    }

    /// Prints what is one page for all reports, if it is one.
    pub(super) fn print_page(self, reports: &[Report]) {
        match self {
            Self::Text | Self::Json | Self::Yaml => {}
            Self::Markdown => emit(&markdown::write(reports, markdown::ROOM)),
            Self::Html => stream(|out| html::write(reports, out)),
            Self::Junit => stream(|out| junit::write(reports, out)),
        }
    }
}
