//! The type that an expression yields, as far as that shows without values.

use cel::IdedExpr;
use cel::common::ast::{CallExpr, Expr, LiteralValue, operators};

use super::quantity;
use super::walk::Walk;
use super::words::Meaning;

/// Operators and functions that yield true or false.
pub(super) const PREDICATES: [&str; 13] = [
    operators::LOGICAL_AND,
    operators::LOGICAL_OR,
    operators::LOGICAL_NOT,
    operators::EQUALS,
    operators::NOT_EQUALS,
    operators::GREATER,
    operators::GREATER_EQUALS,
    operators::LESS,
    operators::LESS_EQUALS,
    operators::IN,
    operators::NOT_STRICTLY_FALSE,
    "startsWith",
    "endsWith",
];

/// Operators and functions that yield something else, or may.
pub(super) const FUNCTIONS: [&str; 18] = [
    operators::CONDITIONAL,
    operators::INDEX,
    operators::ADD,
    operators::SUBSTRACT,
    operators::MULTIPLY,
    operators::DIVIDE,
    operators::MODULO,
    operators::NEGATE,
    "size",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "dyn",
    "bool",
    "type",
    quantity::NAME,
];

/// The functions that yield true or false and look like any other.
pub(super) const TESTS: [&str; 2] = ["contains", "matches"];

/// The type that an expression yields, as far as it can be known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Bool,
    Other(&'static str),
    Unknown,
}

impl Walk<'_> {
    /// Returns what an expression yields.
    pub(super) fn type_of(&self, expression: &IdedExpr) -> Type {
        match &expression.expr {
            Expr::Literal(LiteralValue::Boolean(_)) => Type::Bool,
            Expr::Literal(LiteralValue::String(_)) => Type::Other("text"),
            Expr::Literal(_) => Type::Other("a number or another constant"),
            Expr::List(_) => Type::Other("a list"),
            Expr::Map(_) | Expr::Struct(_) => Type::Other("a mapping"),
            Expr::Comprehension(comprehension) => match &comprehension.accu_init.expr {
                Expr::List(_) => Type::Other("a list"),
                _ => Type::Bool,
            },
            Expr::Select(select) if select.test => Type::Bool,
            Expr::Select(_) | Expr::Ident(_) => self.type_at(&expression.expr),
            Expr::Call(call) => self.type_of_call(&expression.expr, call),
            Expr::Unspecified => Type::Unknown,
        }
    }

    fn type_at(&self, expression: &Expr) -> Type {
        match self.path(expression).map(|path| self.words.look_up(&path)) {
            Some(Meaning::Types(types)) if types.contains("boolean") => Type::Bool,
            Some(Meaning::Types(types)) if !types.is_empty() => Type::Other("a value of another type"),
            Some(Meaning::Types(_) | Meaning::Anything | Meaning::Unknown(_)) | None => Type::Unknown,
        }
    }

    fn type_of_call(&self, whole: &Expr, call: &CallExpr) -> Type {
        match call.func_name.as_str() {
            name if PREDICATES.contains(&name) || TESTS.contains(&name) || name == "bool" => Type::Bool,
            operators::CONDITIONAL => {
                let branches = call.args.iter().skip(1).map(|branch| self.type_of(branch));
                branches.reduce(|one, other| if one == Type::Bool { other } else { one }).unwrap_or(Type::Unknown)
            }
            operators::INDEX => self.type_at(whole),
            "dyn" => call.args.first().map_or(Type::Unknown, |value| self.type_of(value)),
            "string" => Type::Other("text"),
            "type" => Type::Other("a type"),
            "bytes" => Type::Other("bytes"),
            operators::ADD => Type::Other("a sum"),
            _ => Type::Other("a number"),
        }
    }
}
