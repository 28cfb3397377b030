//! All that can be known of an expression before it has values: what it reads, and what is wrong with it.

use std::collections::{BTreeMap, BTreeSet};

use cel::IdedExpr;
use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators};

use super::expression::{MAX_DEPTH, Path, RuleError};
use super::steps::{Cost, OUTSIDE};
use super::types::{FUNCTIONS, Reads};
use super::words::{Meaning, Vocabulary};
use crate::check::suggest;
use crate::schema::EACH;

/// The deepest nesting of macros.
const MAX_LOOPS: usize = 2;

/// The macros, for who misspells one.
const MACROS: [&str; 6] = ["has", "all", "exists", "exists_one", "map", "filter"];

/// The names of types, for `type(x) == string`.
const TYPES: [&str; 9] = ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "uint"];

/// A walk through an expression.
pub(super) struct Walk<'a> {
    pub(super) words: &'a Vocabulary<'a>,
    /// The variables of macros, with the path of what they stand for.
    scopes: Vec<BTreeMap<String, Option<Path>>>,
    loops: usize,
    depth: u16,
    pub(super) reads: BTreeSet<Path>,
    /// The cost of a pass of each macro.
    pub(super) costs: BTreeMap<u64, Cost>,
    /// The macro that the walk is in.
    within: u64,
    /// Variables that stand for items of a list that is written out.
    small: BTreeSet<String>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(words: &'a Vocabulary<'a>) -> Self {
        let (reads, costs) = (BTreeSet::new(), BTreeMap::new());
        Self { words, scopes: Vec::new(), loops: 0, depth: 0, reads, costs, within: OUTSIDE, small: BTreeSet::new() }
    }

    /// Goes through an expression.
    pub(super) fn expression(&mut self, expression: &IdedExpr) -> Result<(), RuleError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(RuleError::new("the rule nests too deep, or has too many operators in a row"));
        }
        self.cost().part();
        match &expression.expr {
            Expr::Comprehension(comprehension) => self.comprehension(expression.id, comprehension)?,
            other => self.any(other)?,
        }
        self.depth -= 1;
        Ok(())
    }

    fn cost(&mut self) -> &mut Cost {
        self.costs.entry(self.within).or_default()
    }

    /// Tells whether it is an item of a list that the rule itself writes out.
    fn is_small(&self, expression: &Expr) -> bool {
        matches!(expression, Expr::Ident(name) if self.small.contains(name))
    }

    /// Counts the values that a call reads to their end.
    fn count_reads(&mut self, call: &CallExpr) {
        let operands = || call.target.iter().map(|target| &**target).chain(&call.args);
        match FUNCTIONS.iter().find(|(name, ..)| *name == call.func_name) {
            Some((_, _, Reads::Little)) => return,
            Some((_, _, Reads::Shorter)) if operands().any(|one| is_literal(&one.expr)) => return,
            _ => {}
        }
        for operand in operands() {
            if self.is_small(&operand.expr) {
                continue;
            }
            let path = self.path(&operand.expr);
            self.cost().read(&operand.expr, path);
        }
        if call.func_name == "matches" {
            self.cost().pattern(call.args.last());
        }
    }

    fn any(&mut self, expression: &Expr) -> Result<(), RuleError> {
        if let Some(path) = self.path(expression) {
            self.check_path(&path)?;
            self.reads.insert(path);
        }
        match expression {
            // A macro comes with its number.
            Expr::Unspecified | Expr::Literal(_) | Expr::Comprehension(_) => Ok(()),
            Expr::Ident(name) => self.name(name),
            // What stands before the last dot is part of the path, unless it is computed.
            Expr::Select(select) if self.path(expression).is_some() => self.indexes(&select.operand.expr),
            Expr::Select(select) => self.expression(&select.operand),
            Expr::Call(call) => self.call(expression, call),
            Expr::List(list) => {
                self.check_growth(list.elements.iter().all(|element| is_literal(&element.expr)), "a list of values")?;
                list.elements.iter().try_for_each(|element| self.expression(element))
            }
            Expr::Map(map) => {
                self.check_growth(map.entries.is_empty(), "a mapping of values")?;
                map.entries.iter().try_for_each(|entry| self.entry(&entry.expr))
            }
            Expr::Struct(_) => Err(RuleError::new("there are no messages that a rule could make")),
        }
    }

    fn entry(&mut self, entry: &EntryExpr) -> Result<(), RuleError> {
        match entry {
            EntryExpr::StructField(field) => self.expression(&field.value),
            EntryExpr::MapEntry(entry) => self.expression(&entry.key).and_then(|()| self.expression(&entry.value)),
        }
    }

    fn name(&self, name: &str) -> Result<(), RuleError> {
        let is_known = name.starts_with('@') || self.variable(name).is_some() || TYPES.contains(&name);
        if is_known || self.words.is_root(name) {
            return Ok(());
        }
        Err(RuleError::new(format!("there is no {name:?}")).meant(suggest(name, self.words.roots())))
    }

    fn call(&mut self, whole: &Expr, call: &CallExpr) -> Result<(), RuleError> {
        let name = call.func_name.as_str();
        let known = || FUNCTIONS.iter().map(|(known, ..)| *known);
        if !known().any(|known| known == name) {
            let near = suggest(name, known().chain(MACROS).filter(|known| known.chars().all(char::is_alphanumeric)));
            return Err(RuleError::new(format!("there is no function {name:?}")).meant(near));
        }
        if name == operators::INDEX && self.path(whole).is_none() {
            // A mapping has no order, so that the first of its keys could be any.
            if self.path(&call.args[0].expr).is_none() {
                return Err(RuleError::new("only fields can be looked into by []"));
            }
        }
        if let (operators::ADD, [list, item]) = (name, call.args.as_slice())
            && is_own(&list.expr)
            && let Expr::List(list) = &item.expr
        {
            return list.elements.iter().try_for_each(|element| self.collected(element));
        }
        if name == operators::ADD {
            self.check_growth(call.args.iter().any(|argument| is_number(&argument.expr)), "a sum of values")?;
        }
        if self.path(whole).is_some() {
            return self.indexes(whole);
        }
        self.count_reads(call);
        call.target.iter().try_for_each(|target| self.expression(target))?;
        call.args.iter().try_for_each(|argument| self.expression(argument))
    }

    /// Within macros only what is there can be passed on: what is put together there could grow with every pass.
    fn check_growth(&self, is_bounded: bool, what: &str) -> Result<(), RuleError> {
        if self.loops == 0 || is_bounded {
            return Ok(());
        }
        Err(RuleError::new(format!("within a macro, {what} could grow with every pass, and is not allowed")))
    }

    /// Checks what a macro puts into its list.
    fn collected(&mut self, element: &IdedExpr) -> Result<(), RuleError> {
        let passes_on = matches!(&element.expr, Expr::Ident(name) if self.variable(name).is_some());
        if self.loops > 1 && !passes_on {
            return Err(RuleError::new("within a macro, map cannot be used"));
        }
        self.expression(element)
    }

    fn comprehension(&mut self, id: u64, comprehension: &ComprehensionExpr) -> Result<(), RuleError> {
        self.expression(&comprehension.iter_range)?;
        if self.loops == MAX_LOOPS {
            return Err(RuleError::new(format!("macros nest more than {MAX_LOOPS} deep")));
        }
        let range = self.path(&comprehension.iter_range.expr);
        // Each item is copied.
        self.cost().read(&comprehension.iter_range.expr, range.clone());
        let is_list = match &comprehension.iter_range.expr {
            Expr::List(_) | Expr::Comprehension(_) => true,
            _ => range.as_ref().is_some_and(|path| self.words.look_up(path).is_list()),
        };
        // The keys of a mapping come in any order, and what is made of them must not show it.
        if !is_list && matches!(comprehension.accu_init.expr, Expr::List(_)) {
            return Err(RuleError::new("map and filter need a list; use all, exists or exists_one for a mapping"));
        }
        let element = range.filter(|_| is_list).map(|path| path.into_iter().chain([EACH.to_owned()]).collect());
        let is_written = matches!(&comprehension.iter_range.expr, Expr::List(list)
            if list.elements.iter().all(|item| is_literal(&item.expr)));
        let small = self.small.clone();
        if is_written {
            self.small.insert(comprehension.iter_var.clone());
        } else {
            self.small.remove(&comprehension.iter_var);
        }
        self.scopes.push(BTreeMap::from([(comprehension.iter_var.clone(), element)]));
        self.loops += 1;
        let around = std::mem::replace(&mut self.within, id);
        let parts =
            [&comprehension.accu_init, &comprehension.loop_cond, &comprehension.loop_step, &comprehension.result];
        parts.into_iter().try_for_each(|part| self.expression(part))?;
        self.within = around;
        self.small = small;
        self.loops -= 1;
        self.scopes.pop();
        Ok(())
    }

    /// Goes through what stands in brackets along a path.
    fn indexes(&mut self, expression: &Expr) -> Result<(), RuleError> {
        match expression {
            Expr::Select(select) => self.indexes(&select.operand.expr),
            Expr::Call(call) => {
                call.args.iter().skip(1).try_for_each(|index| self.expression(index))?;
                call.args.first().map_or(Ok(()), |base| self.indexes(&base.expr))
            }
            Expr::Ident(name) => self.name(name),
            _ => Ok(()),
        }
    }

    fn check_path(&self, path: &Path) -> Result<(), RuleError> {
        match self.words.look_up(path) {
            Meaning::Types(_) | Meaning::Anything => Ok(()),
            // The name alone is somebody else's mistake.
            Meaning::Unknown(_) if path.len() == 1 => Ok(()),
            Meaning::Unknown(near) => Err(RuleError::new(format!("there is no field {}", written(path))).meant(near)),
        }
    }

    fn variable(&self, name: &str) -> Option<&Option<Path>> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    /// Returns the path of a value, if it is one that can be known now.
    pub(super) fn path(&self, expression: &Expr) -> Option<Path> {
        match expression {
            Expr::Ident(name) => match self.variable(name) {
                Some(path) => path.clone(),
                None => self.words.is_root(name).then(|| vec![name.clone()]),
            },
            Expr::Select(select) => {
                Some(self.path(&select.operand.expr)?.into_iter().chain([select.field.clone()]).collect())
            }
            Expr::Call(CallExpr { func_name, args, .. }) if func_name == operators::INDEX => {
                let base = self.path(&args.first()?.expr)?;
                let part = match &args.get(1)?.expr {
                    Expr::Literal(LiteralValue::String(key)) => key.inner().to_owned(),
                    _ if self.words.look_up(&base).is_list() => EACH.to_owned(),
                    _ => return None,
                };
                Some(base.into_iter().chain([part]).collect())
            }
            _ => None,
        }
    }
}

/// Writes a path as it stands in a rule.
pub(super) fn written(path: &[String]) -> String {
    path.join(".").replace(&format!(".{EACH}"), EACH)
}

/// Tells whether a macro itself has put an expression there; nobody can write a name with that sign.
fn is_own(expression: &Expr) -> bool {
    matches!(expression, Expr::Ident(name) if name.starts_with('@'))
}

fn is_literal(expression: &Expr) -> bool {
    matches!(expression, Expr::Literal(_))
}

fn is_number(expression: &Expr) -> bool {
    matches!(expression, Expr::Literal(LiteralValue::Int(_) | LiteralValue::UInt(_) | LiteralValue::Double(_)))
}
