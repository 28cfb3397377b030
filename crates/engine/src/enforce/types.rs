//! The type that an expression yields, as far as that shows without values.

use cel::IdedExpr;
use cel::common::ast::{CallExpr, Expr, LiteralValue, operators};

use super::quantity;
use super::walk::Walk;
use super::words::Meaning;

/// The operands of a function as it reads them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    /// No more than whether a value is true, or how large a number is.
    Little,
    /// As much of both as the shorter has.
    Shorter,
    All,
}

/// A number is all that most functions yield.
const NUMBER: Type = Type::Other("a number");

/// The operators and functions, with what each yields as far as its name tells, and what it reads.
pub(super) const FUNCTIONS: [(&str, Type, Reads); 33] = [
    (operators::LOGICAL_AND, Type::Bool, Reads::Little),
    (operators::LOGICAL_OR, Type::Bool, Reads::Little),
    (operators::LOGICAL_NOT, Type::Bool, Reads::Little),
    (operators::NOT_STRICTLY_FALSE, Type::Bool, Reads::Little),
    (operators::EQUALS, Type::Bool, Reads::Shorter),
    (operators::NOT_EQUALS, Type::Bool, Reads::Shorter),
    (operators::GREATER, Type::Bool, Reads::Shorter),
    (operators::GREATER_EQUALS, Type::Bool, Reads::Shorter),
    (operators::LESS, Type::Bool, Reads::Shorter),
    (operators::LESS_EQUALS, Type::Bool, Reads::Shorter),
    (operators::IN, Type::Bool, Reads::All),
    ("startsWith", Type::Bool, Reads::All),
    ("endsWith", Type::Bool, Reads::All),
    ("contains", Type::Bool, Reads::All),
    ("matches", Type::Bool, Reads::All),
    ("bool", Type::Bool, Reads::All),
    (operators::CONDITIONAL, Type::Unknown, Reads::Little),
    ("dyn", Type::Unknown, Reads::Little),
    (operators::INDEX, Type::Unknown, Reads::All),
    (operators::SUBSTRACT, NUMBER, Reads::Little),
    (operators::MULTIPLY, NUMBER, Reads::Little),
    (operators::DIVIDE, NUMBER, Reads::Little),
    (operators::MODULO, NUMBER, Reads::Little),
    (operators::NEGATE, NUMBER, Reads::Little),
    ("size", NUMBER, Reads::All),
    ("int", NUMBER, Reads::All),
    ("uint", NUMBER, Reads::All),
    ("double", NUMBER, Reads::All),
    (quantity::NAME, NUMBER, Reads::All),
    (operators::ADD, Type::Other("a sum"), Reads::All),
    ("string", Type::Other("text"), Reads::All),
    ("bytes", Type::Other("bytes"), Reads::All),
    ("type", Type::Other("a type"), Reads::Little),
];

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
            operators::CONDITIONAL => {
                let branches = call.args.iter().skip(1).map(|branch| self.type_of(branch));
                branches.reduce(|one, other| if one == Type::Bool { other } else { one }).unwrap_or(Type::Unknown)
            }
            operators::INDEX => self.type_at(whole),
            "dyn" => call.args.first().map_or(Type::Unknown, |value| self.type_of(value)),
            name => FUNCTIONS.iter().find(|(known, ..)| *known == name).map_or(NUMBER, |(_, yields, _)| *yields),
        }
    }
}
