//! The forms in which a report is kept in a file.

use std::io;

use super::{Report, html, junit, markdown, text};
use crate::config::settings::ReportFormat;

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
    /// None that is known: a report is plain data, and memory takes it.
    pub fn write(self, report: &Report) -> io::Result<Vec<u8>> {
        let reports = std::slice::from_ref(report);
        Ok(match self {
            Self::Json => serde_json::to_vec_pretty(report)?,
            Self::Text => text::write(report, text::Look::default()).into_bytes(),
            Self::Markdown => markdown::write(reports, markdown::ROOM).into_bytes(),
            Self::Junit => junit::write(reports).into_bytes(),
            Self::Html => {
                let mut page = Vec::new();
                html::write(reports, &mut page)?;
                page
            }
        })
    }
}
