//! The text of a rule to an expression whose cost is bounded.
//!
//! CEL has no loops but those of its macros. Here they nest twice at most, and in them nothing can be put together that
//! grows from one to the next, so that what an expression costs is limited by its length and the values that it reads.
//! The rest is counted while it is evaluated (`steps`).

use std::collections::{BTreeMap, BTreeSet};

use cel::IdedExpr;
use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, SelectExpr, operators};
use cel::parser::PrattParser;

use super::steps::{Cost, guard};
use super::types::Type;
use super::walk::Walk;
use super::words::Vocabulary;
use crate::problem::{Place, Problem};
use crate::text::did_you_mean;

/// The longest text of a rule, in bytes.
const MAX_LENGTH: usize = 1_000;

/// The deepest nesting of an expression: a thread has stack for more.
pub(super) const MAX_DEPTH: u16 = 24;

/// A rule that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RuleError {
    /// The mistake in it.
    pub message: String,
    /// A hint at what was probably meant.
    pub hint: Option<String>,
}

impl RuleError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// Returns what is wrong with an expression, if anything is.
    pub(crate) fn of_expression(text: &str, words: &Vocabulary<'_>) -> Option<Self> {
        Expression::new(text, words).err()
    }

    /// Returns it as a problem at a place.
    pub fn at(self, place: Place) -> Problem {
        Problem { hint: self.hint, ..Problem::document(place, self.message) }
    }

    pub(super) fn meant(self, near: Option<&str>) -> Self {
        Self { hint: did_you_mean(near), ..self }
    }
}

/// The path of a value: fields, and [`EACH`] for the items of a list.
pub(super) type Path = Vec<String>;

/// An expression, and what it reads.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    pub(super) root: IdedExpr,
    pub(super) reads: BTreeSet<Path>,
    /// The cost of a pass of each of its macros.
    pub(super) costs: BTreeMap<u64, Cost>,
}

impl Expression {
    /// Parses a text and finds out what can be wrong with it.
    pub(super) fn new(text: &str, words: &Vocabulary<'_>) -> Result<Self, RuleError> {
        if text.len() > MAX_LENGTH {
            let message = format!("the rule has more than {MAX_LENGTH} characters");
            return Err(RuleError { message, hint: Some("write several rules; all of them must hold".to_owned()) });
        }
        let mut root = PrattParser::new().max_recursion_depth(MAX_DEPTH).parse(text).map_err(|errors| {
            let what = errors.errors.first().map(|error| {
                format!("{} at character {}", error.msg.trim_start_matches("Syntax error: "), error.pos.1)
            });
            RuleError::new(format!("the rule is no CEL: {}", what.unwrap_or_default()))
        })?;
        let mut walk = Walk::new(words);
        walk.expression(&root)?;
        if let Type::Other(what) = walk.type_of(&root) {
            return Err(RuleError::new(format!("the rule yields {what}, and not true or false")));
        }
        let (reads, costs) = (walk.reads, walk.costs);
        ask_for_all(&mut root);
        guard_all(&mut root);
        Ok(Self { root, reads, costs })
    }
}

/// Makes `has(a.b.c)` false where there is no `a.b`. In CEL that is an error, and a rule with such an error does not
/// apply, so that a field could be demanded only of who has set the one around it.
fn ask_for_all(expression: &mut IdedExpr) {
    parts(&mut expression.expr).into_iter().for_each(ask_for_all);
    let Expr::Select(select) = &expression.expr else { return };
    let Expr::Select(around) = &select.operand.expr else { return };
    if !select.test {
        return;
    }
    let mut around = IdedExpr { id: 0, expr: Expr::Select(SelectExpr { test: true, ..around.clone() }) };
    ask_for_all(&mut around);
    let args = vec![around, std::mem::take(expression)];
    expression.expr = Expr::Call(CallExpr { func_name: operators::LOGICAL_AND.to_owned(), target: None, args });
}

/// Has every macro ask in each pass whether there are steps left.
fn guard_all(expression: &mut IdedExpr) {
    parts(&mut expression.expr).into_iter().for_each(guard_all);
    if let Expr::Comprehension(comprehension) = &mut expression.expr {
        guard(expression.id, comprehension);
    }
}

/// Returns what an expression consists of.
fn parts(expression: &mut Expr) -> Vec<&mut IdedExpr> {
    match expression {
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) | Expr::Struct(_) => Vec::new(),
        Expr::Select(select) => vec![&mut *select.operand],
        Expr::Call(call) => call.target.iter_mut().map(|target| &mut **target).chain(&mut call.args).collect(),
        Expr::List(list) => list.elements.iter_mut().collect(),
        Expr::Map(map) => map.entries.iter_mut().flat_map(|entry| entry_parts(&mut entry.expr)).collect(),
        Expr::Comprehension(comprehension) => {
            let ComprehensionExpr { iter_range, accu_init, loop_cond, loop_step, result, .. } = &mut **comprehension;
            vec![iter_range, accu_init, loop_cond, loop_step, result]
        }
    }
}

fn entry_parts(entry: &mut EntryExpr) -> Vec<&mut IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&mut field.value],
        EntryExpr::MapEntry(entry) => vec![&mut entry.key, &mut entry.value],
    }
}
