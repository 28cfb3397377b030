//! Text in the template syntax of Go, as far as presets of KServe use it.
//!
//! There are fields, `if`, `with` and `range` with `else`, pipelines, parentheses, the functions of Go's own that work
//! on values, and those that KServe adds. Variables, `define`, `template`, `block`, `break` and `continue` are not
//! there, and neither is what other tools add to the language: each of them is a fault that names the expression.
//!
//! KServe fills its templates after the whole configuration has become one JSON text, where a line break is written
//! `\n`. So `{{-` and `-}}` take away blanks and never a line break, which is kept here.

mod data;
mod eval;
mod functions;
mod parse;

use std::fmt;

use gatewright_engine::interrupt;
use serde_json::Value;

/// The greatest length that one text may reach, in bytes.
const LONGEST: usize = 1 << 20;

/// The deepest nesting of branches and parentheses.
const DEEPEST: usize = 32;

/// The largest number of actions that one text may run, with all rounds of its loops.
const MOST_ACTIONS: usize = 10_000;

/// The most work that all texts of one service may be: some tenths of a second.
const MOST_STEPS: usize = 2_000_000;

/// The work that is left for the texts of one service: a step for each part of a text that is looked at, and for each
/// value that is copied as many as it has parts.
#[derive(Debug)]
pub(super) struct Steps(usize);

impl Default for Steps {
    fn default() -> Self {
        Self(MOST_STEPS)
    }
}

impl Steps {
    /// Takes some; false if so many are not left.
    fn take(&mut self, steps: usize) -> bool {
        let left = self.0.checked_sub(steps).filter(|_| !interrupt::is_given());
        self.0 = left.unwrap_or_default();
        left.is_some()
    }
}

/// A template that cannot be filled.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The text between the braces.
    pub(super) expression: String,
    /// The mistake in it.
    pub(super) reason: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expression = self.expression.trim();
        match expression.char_indices().nth(120) {
            Some((end, _)) => write!(f, "cannot evaluate {{{{ {}… }}}}: {}", &expression[..end], self.reason),
            None => write!(f, "cannot evaluate {{{{ {expression} }}}}: {}", self.reason),
        }
    }
}

/// Fills a text. `data` has the fields `metadata` and `spec` of the service, and `globalConfig`.
pub(super) fn fill(text: &str, data: &Value, steps: &mut Steps) -> Result<String, Fault> {
    if !text.contains("{{") {
        return Ok(text.to_owned());
    }
    eval::run(&parse::template(text)?, data, steps)
}

#[cfg(test)]
mod tests;
