//! The forms in which a report is kept in a file.

use std::io;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Report, html, junit, markdown, text};
use crate::basics::sanitize;

/// A form in which a report is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReportFormat {
    /// For programs.
    Json,
    /// For people.
    Text,
    /// For a comment on a pull request.
    Markdown,
    /// For whatever shows the results of tests.
    Junit,
    /// For a browser.
    Html,
}

impl ReportFormat {
    /// Returns how the name of a file of this form ends.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Text => "txt",
            Self::Markdown => "md",
            Self::Junit => "xml",
            Self::Html => "html",
        }
    }

    /// Writes a report in this form.
    ///
    /// # Errors
    /// Those of what it is written to.
    pub fn write(self, report: &Report, out: &mut impl io::Write) -> io::Result<()> {
        let reports = std::slice::from_ref(report);
        match self {
            Self::Json => Ok(sanitize::write_pretty_json(report, out)?),
            Self::Text => text::write_to(report, text::Look::default(), out),
            Self::Markdown => out.write_all(markdown::write(reports, markdown::ROOM).as_bytes()),
            Self::Junit => junit::write(reports, out),
            Self::Html => html::write(reports, out),
        }
    }
}
