//! The steps that a rule may take.
//!
//! CEL counts nothing itself. So every pass of a macro asks for a variable of ours ([`guard`]), and whoever resolves it
//! takes from a budget what the pass costs: the parts of the expression, and the length of the texts that it reads,
//! because looking for a word in a long annotation is not one step. Where nothing is left the macro ends, and with it
//! the rule: the same rule over the same values always takes the same steps.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cel::IdedExpr;
use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, LiteralValue, operators};
use cel::common::types::CelBool;
use cel::common::value::CowVal;
use cel::context::VariableResolver;
use serde_json::Value;

use super::expression::Path;
use super::words::{GATEWAY, PARAMS, RESOURCE};
use crate::interrupt;
use crate::schema::EACH;

/// The most steps of one rule about one spec: some tenths of a second.
pub(super) const MOST_STEPS: u64 = 5_000_000;

/// The bytes that are read in the time of a step.
const BYTES: u64 = 32;

/// The steps in which the pattern of `matches` is read, for each of its bytes: that is done again in every pass.
const PATTERN: u64 = 200;

/// The same for a pattern that says how often something is repeated, or that is not known before.
const REPEATING_PATTERN: u64 = 100_000;

/// The beginning of the name of a macro's variable, before its number; no name in a rule begins so.
const VARIABLE: &str = "@steps";

/// The number that stands for the rule outside of all macros.
pub(super) const OUTSIDE: u64 = 0;

/// The cost of one pass, macros within it left out.
#[derive(Clone, Debug, Default)]
pub(super) struct Cost {
    steps: u64,
    reads: Vec<Operand>,
}

/// A value that is read to its end.
#[derive(Clone, Debug)]
enum Operand {
    At(Path),
    Computed,
}

impl Cost {
    /// Counts a part of the expression.
    pub(super) fn part(&mut self) {
        self.steps += 1;
    }

    /// Counts a value that is read to its end.
    pub(super) fn read(&mut self, value: &Expr, path: Option<Path>) {
        match (value, path) {
            (Expr::Literal(LiteralValue::String(text)), _) => self.steps += text.inner().len() as u64 / BYTES,
            (Expr::Literal(_), _) => {}
            // What a macro has found so far.
            (Expr::Ident(name), _) if name.starts_with('@') => {}
            (Expr::List(list), _) if list.elements.iter().all(|item| matches!(item.expr, Expr::Literal(_))) => {
                self.steps += list.elements.len() as u64;
            }
            (_, Some(path)) => self.reads.push(Operand::At(path)),
            (_, None) => self.reads.push(Operand::Computed),
        }
    }

    /// Counts the pattern of `matches`.
    pub(super) fn pattern(&mut self, pattern: Option<&IdedExpr>) {
        self.steps += match pattern.map(|pattern| &pattern.expr) {
            Some(Expr::Literal(LiteralValue::String(text))) if !text.inner().contains('{') => {
                PATTERN * (1 + text.inner().len() as u64)
            }
            _ => REPEATING_PATTERN,
        };
    }

    fn over(&self, values: &Values) -> u64 {
        let read = |operand: &Operand| match operand {
            Operand::At(path) => values.size_at(path),
            Operand::Computed => values.all,
        };
        self.steps + self.reads.iter().map(|operand| read(operand) / BYTES).sum::<u64>()
    }
}

/// The values that a rule is about, by the variable that holds them, and how large they are.
pub(super) struct Values {
    variables: BTreeMap<&'static str, Value>,
    all: u64,
}

impl Values {
    pub(super) fn new(variables: BTreeMap<&'static str, Value>) -> Self {
        let all = variables.values().map(size).sum();
        Self { variables, all }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.variables.iter().map(|(name, value)| (*name, value))
    }

    fn size_at(&self, path: &[String]) -> u64 {
        let Some((root, below)) = path.split_first() else { return self.all };
        let (root, below) = match root.as_str() {
            GATEWAY | RESOURCE => (RESOURCE, below),
            root if self.variables.contains_key(root) => (root, below),
            // The fields of parameters have a variable each.
            _ => (PARAMS, path),
        };
        self.variables.get(root).map_or(0, |value| largest(value, below))
    }
}

/// Returns the size of the largest value at a path.
fn largest(value: &Value, path: &[String]) -> u64 {
    let Some((first, rest)) = path.split_first() else { return size(value) };
    match value {
        Value::Array(items) if first == EACH => items.iter().map(|item| largest(item, rest)).max().unwrap_or(0),
        Value::Object(fields) => fields.get(first).map_or(0, |value| largest(value, rest)),
        _ => 0,
    }
}

fn size(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => BYTES,
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().map(|item| BYTES + size(item)).sum(),
        Value::Object(fields) => fields.iter().map(|(key, value)| BYTES + key.len() as u64 + size(value)).sum(),
    }
}

/// The steps that are left of a rule, and what each pass of its macros takes.
pub(super) struct Steps {
    left: AtomicU64,
    is_used_up: AtomicBool,
    costs: BTreeMap<u64, u64>,
}

impl Steps {
    /// Starts a rule over values.
    pub(super) fn of(costs: &BTreeMap<u64, Cost>, values: &Values) -> Self {
        let costs: BTreeMap<u64, u64> = costs.iter().map(|(id, cost)| (*id, cost.over(values))).collect();
        let steps = Self { left: AtomicU64::new(MOST_STEPS), is_used_up: AtomicBool::default(), costs };
        steps.take(OUTSIDE);
        steps
    }

    /// Tells whether the rule was ended because it took too many.
    pub(super) fn is_used_up(&self) -> bool {
        self.is_used_up.load(Ordering::Relaxed)
    }

    /// Takes what a pass costs; false if so much is not left.
    fn take(&self, id: u64) -> bool {
        let cost = self.costs.get(&id).copied().unwrap_or(1);
        let left = self.left.load(Ordering::Relaxed).checked_sub(cost).filter(|_| !interrupt::is_given());
        self.left.store(left.unwrap_or_default(), Ordering::Relaxed);
        if left.is_none() {
            self.is_used_up.store(true, Ordering::Relaxed);
        }
        left.is_some()
    }
}

impl VariableResolver for Steps {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        let id = variable.strip_prefix(VARIABLE)?.parse().ok()?;
        Some(CowVal::owned(CelBool::from(!self.is_used_up() && self.take(id))))
    }
}

/// Has every pass of a macro ask whether it may go on.
pub(super) fn guard(id: u64, comprehension: &mut ComprehensionExpr) {
    let more = IdedExpr { id: 0, expr: Expr::Ident(format!("{VARIABLE}{id}")) };
    if !matches!(comprehension.accu_init.expr, Expr::List(_)) {
        let condition = std::mem::take(&mut comprehension.loop_cond);
        comprehension.loop_cond = call(operators::LOGICAL_AND, vec![more, condition]);
        return;
    }
    // A list is put together in place only if the condition of the macro is a constant.
    let step = std::mem::take(&mut comprehension.loop_step);
    comprehension.loop_step = match step.expr {
        Expr::Call(CallExpr { func_name, target: None, args }) if func_name == operators::CONDITIONAL => {
            let mut args = args.into_iter();
            let guard = call(operators::LOGICAL_AND, [more].into_iter().chain(args.next()).collect());
            call(operators::CONDITIONAL, [guard].into_iter().chain(args).collect())
        }
        expr => {
            let result = IdedExpr { id: 0, expr: Expr::Ident(comprehension.accu_var.clone()) };
            call(operators::CONDITIONAL, vec![more, IdedExpr { id: step.id, expr }, result])
        }
    };
}

fn call(name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    IdedExpr { id: 0, expr: Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }) }
}
