//! Findings about one spec or one object that do not stop the rest.
//!
//! A [`Problem`] is data: it is collected with its place, reported, and the round goes on without what it
//! spoils. What stops an operation is an error; what we choose not to do is a refusal (see [`crate::plan`]).

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::mask::Masker;
use crate::object::ObjectId;
use crate::rules;
use crate::text::{count, did_you_mean};
use crate::yaml::Position;

/// A position in a file of a source.
///
/// Lines and columns count from 1; 0 means that only the file is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// Path of the file, relative to the root of its source, or as given on the command line.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl Place {
    /// Names a position in a file.
    pub fn at(file: &Arc<str>, Position { line, column }: Position) -> Self {
        Self { file: Arc::clone(file), line, column }
    }

    /// Names a whole file.
    pub fn file(file: impl Into<Arc<str>>) -> Self {
        Self { file: file.into(), line: 0, column: 0 }
    }
}

/// In one line, as everything is that names one: whoever may name a file may put the end of a line into its name.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for char in self.file.chars() {
            if char.is_control() { write!(f, "{}", char.escape_unicode())? } else { f.write_char(char)? }
        }
        if self.line > 0 { write!(f, ":{}", self.line) } else { Ok(()) }
    }
}

/// Something wrong with one spec or object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Problem {
    /// Its place in the source.
    pub place: Place,
    /// The object it is about, when the document got far enough to have a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectId>,
    /// The description of the problem: lower case, no full stop, user text in quotes.
    pub message: String,
    /// Advice on what to do about it, a sentence of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The extent of the damage.
    pub scope: Scope,
    /// The rule that it breaks, if that has an id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<rules::Id>,
    /// The mechanical mending, if there is only one.
    #[serde(skip)]
    pub fix: Option<Fix>,
}

/// A word that stands at the place of a problem, as a key or a value, and the only one that can have been meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fix {
    /// The word that stands there.
    pub old: String,
    /// The word that was meant.
    pub new: String,
}

/// The part that a problem spoils.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Nothing is held back; a person should know.
    #[serde(rename = "notice")]
    Warning,
    /// The document at this place is not used, nor what depends on it.
    Document,
    /// The whole file cannot be read, so nobody knows what it holds.
    File,
}

impl Problem {
    /// A problem with one document. What looks like a credential in the message is masked.
    pub fn document(place: Place, message: impl Into<String>) -> Self {
        let message = Masker::default().text(&message.into());
        Self { place, object: None, message, hint: None, scope: Scope::Document, rule: None, fix: None }
    }

    /// A problem with the parameters of a Gateway, by the reason that its condition `Accepted` has for this.
    pub fn invalid_parameters(place: Place, message: impl fmt::Display) -> Self {
        Self::document(place, format!("InvalidParameters: {message}")).by(rules::INVALID_PARAMETERS)
    }

    /// A problem that makes a whole file unreadable.
    pub fn file(place: Place, message: impl Into<String>) -> Self {
        Self { scope: Scope::File, ..Self::document(place, message) }
    }

    /// A warning that holds nothing back.
    pub fn warning(place: Place, message: impl Into<String>) -> Self {
        Self { scope: Scope::Warning, ..Self::document(place, message) }
    }

    /// Returns the word that stands in front of a warning among errors; none of an error.
    pub fn mark(&self) -> &'static str {
        if self.scope == Scope::Warning { "warning: " } else { "" }
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Adds what was probably meant, if anything was.
    #[must_use]
    pub(crate) fn meant(self, near: Option<&str>) -> Self {
        Self { hint: did_you_mean(near).or(self.hint), ..self }
    }

    /// Adds the word to write in place of another one, if there is only one.
    #[must_use]
    pub(crate) fn fixed(self, old: &str, new: Option<&str>) -> Self {
        let fix = new.map(|new| Fix { old: old.to_owned(), new: new.to_owned() });
        Self { fix, ..self }
    }

    /// Adds the rule that the problem breaks.
    #[must_use]
    pub fn by(self, rule: rules::Id) -> Self {
        Self { rule: Some(rule), ..self }
    }

    /// Adds the object that the problem is about.
    #[must_use]
    pub fn about(self, object: ObjectId) -> Self {
        Self { object: Some(object), ..self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if let Some(object) = &self.object {
            write!(f, "{object}: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, " ({hint})")?;
        }
        match &self.rule {
            Some(rule) => write!(f, " [{rule}]"),
            None => Ok(()),
        }
    }
}

/// Says how many problems are errors and how many are warnings: `1 error and 2 warnings`.
pub fn counted<'a>(problems: impl IntoIterator<Item = &'a Problem>) -> String {
    let (warnings, errors): (Vec<&Problem>, _) = problems.into_iter().partition(|it| it.scope == Scope::Warning);
    match (errors.len(), warnings.len()) {
        (errors, 0) => count(errors, "error"),
        (0, warnings) => count(warnings, "warning"),
        (errors, warnings) => format!("{} and {}", count(errors, "error"), count(warnings, "warning")),
    }
}

/// Returns the files that could not be read at all.
pub fn unreadable_files(problems: &[Problem]) -> BTreeSet<Arc<str>> {
    problems.iter().filter(|p| p.scope == Scope::File).map(|p| Arc::clone(&p.place.file)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_one_line() {
        let place = Place { line: 3, ..Place::file("a\nb\u{1b}[31mü\u{85}") };
        assert_eq!(place.to_string(), r"a\u{a}b\u{1b}[31mü\u{85}:3");
        assert_eq!(Place::file("").to_string(), "");
    }
}
