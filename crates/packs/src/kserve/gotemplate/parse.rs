//! From text to a tree.

use serde_json::{Number, Value};

use super::{DEEPEST, Fault};

/// A part of a template.
#[derive(Debug)]
pub(super) enum Node {
    /// Text as it is.
    Text(String),
    /// A value is printed.
    Print(Action),
    /// One of two lists of parts is used, or the first one many times.
    Branch { kind: Branch, head: Action, then: Vec<Self>, otherwise: Vec<Self> },
}

/// The way in which a branch is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Branch {
    /// Whether a value is true.
    If,
    /// The same, and the value becomes the dot.
    With,
    /// Each item of a value becomes the dot.
    Range,
}

/// The action between braces.
#[derive(Debug)]
pub(super) struct Action {
    /// As it was written.
    pub(super) source: String,
    pub(super) pipeline: Pipeline,
}

/// Commands; each takes the result of the one before as its last argument.
pub(super) type Pipeline = Vec<Vec<Operand>>;

/// A part of a command.
#[derive(Debug)]
pub(super) enum Operand {
    /// `.A.B`: fields of the dot.
    Dot(Vec<String>),
    /// `$.A.B`: fields of all data.
    Root(Vec<String>),
    /// `(…).A`.
    Group(Pipeline, Vec<String>),
    /// A text, a number, `true`, `false`.
    Literal(Value),
    /// `nil`.
    Nil,
    /// The name of a function.
    Function(String),
}

enum Piece<'a> {
    Text(&'a str),
    Action(&'a str),
}

pub(super) fn template(text: &str) -> Result<Vec<Node>, Fault> {
    let pieces = split(text)?;
    let mut parser = Parser { pieces: pieces.into_iter(), depth: 0 };
    let (nodes, end) = parser.nodes()?;
    match end {
        None => Ok(nodes),
        Some(end) => Err(fault(&end, "nothing is open here that it could belong to")),
    }
}

fn fault(expression: &str, reason: impl Into<String>) -> Fault {
    Fault { expression: expression.to_owned(), reason: reason.into() }
}

fn split(mut text: &str) -> Result<Vec<Piece<'_>>, Fault> {
    let (mut pieces, mut trims) = (Vec::new(), false);
    while let Some(start) = text.find("{{") {
        let (before, rest) = (&text[..start], &text[start + 2..]);
        let end = end_of_action(rest).ok_or_else(|| fault(rest, "the braces are not closed"))?;
        let action = &rest[..end];
        let (left, action) = action.strip_prefix("- ").map_or((false, action), |action| (true, action));
        let (right, action) = action.strip_suffix(" -").map_or((false, action), |action| (true, action));
        let before = if trims { before.trim_start_matches(' ') } else { before };
        pieces.push(Piece::Text(if left { before.trim_end_matches(' ') } else { before }));
        if !action.trim_start().starts_with("/*") {
            pieces.push(Piece::Action(action));
        }
        trims = right;
        text = &rest[end + 2..];
    }
    pieces.push(Piece::Text(if trims { text.trim_start_matches(' ') } else { text }));
    Ok(pieces)
}

/// Finds the `}}` that is not inside quotes or a comment.
fn end_of_action(text: &str) -> Option<usize> {
    if text.trim_start_matches(['-', ' ']).starts_with("/*") {
        let comment = text.find("*/")?;
        return text[comment..].find("}}").map(|end| comment + end);
    }
    let (mut quote, mut escaped) = (None, false);
    for (index, char) in text.char_indices() {
        match quote {
            _ if escaped => escaped = false,
            Some(open) if char == open => quote = None,
            Some(open) => escaped = open == '"' && char == '\\',
            None if matches!(char, '"' | '`') => quote = Some(char),
            None if text[index..].starts_with("}}") => return Some(index),
            None => {}
        }
    }
    None
}

struct Parser<'a> {
    pieces: std::vec::IntoIter<Piece<'a>>,
    depth: usize,
}

impl Parser<'_> {
    /// Returns all parts up to an `else` or an `end`, and that.
    fn nodes(&mut self) -> Result<(Vec<Node>, Option<String>), Fault> {
        let mut nodes = Vec::new();
        while let Some(piece) = self.pieces.next() {
            let source = match piece {
                Piece::Text(text) => {
                    nodes.push(Node::Text(text.to_owned()));
                    continue;
                }
                Piece::Action(source) => source,
            };
            let word = source.split_whitespace().next().unwrap_or_default();
            nodes.push(match word {
                "else" | "end" => return Ok((nodes, Some(source.to_owned()))),
                "if" => self.branch(Branch::If, source, word)?,
                "with" => self.branch(Branch::With, source, word)?,
                "range" => self.branch(Branch::Range, source, word)?,
                "define" | "template" | "block" | "break" | "continue" => {
                    return Err(fault(source, format!("{word} cannot be used in presets here")));
                }
                _ => Node::Print(action(source, source)?),
            });
        }
        Ok((nodes, None))
    }

    fn branch(&mut self, kind: Branch, source: &str, word: &str) -> Result<Node, Fault> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(fault(source, format!("more than {DEEPEST} branches stand inside each other")));
        }
        let head = action(source, source.trim_start().strip_prefix(word).unwrap_or_default())?;
        let (then, end) = self.nodes()?;
        let end = end.ok_or_else(|| fault(source, "there is no end that belongs to it"))?;
        let mut words = end.split_whitespace();
        let otherwise = match (words.next(), words.next()) {
            (Some("end"), None) => Vec::new(),
            (Some("else"), None) => {
                let (otherwise, end) = self.nodes()?;
                match end.as_deref().map(str::trim) {
                    Some("end") => otherwise,
                    Some(other) => return Err(fault(other, "after an else there can only be an end")),
                    None => return Err(fault(source, "there is no end that belongs to it")),
                }
            }
            (Some("else"), Some("if")) => {
                let inner = end.trim_start().strip_prefix("else").unwrap_or_default().trim_start();
                vec![self.branch(Branch::If, inner, "if")?]
            }
            _ => return Err(fault(&end, "this is neither an else nor an end")),
        };
        self.depth -= 1;
        Ok(Node::Branch { kind, head, then, otherwise })
    }
}

fn action(source: &str, text: &str) -> Result<Action, Fault> {
    let tokens = tokens(text).map_err(|reason| fault(source, reason))?;
    let mut tokens = tokens.into_iter().peekable();
    let pipeline = pipeline(&mut tokens, 0).map_err(|reason| fault(source, reason))?;
    match tokens.next() {
        None => Ok(Action { source: source.to_owned(), pipeline }),
        Some(_) => Err(fault(source, "a parenthesis is closed that was not opened")),
    }
}

#[derive(Debug)]
enum Token {
    Open,
    /// With the fields of the result that are asked for.
    Close(Vec<String>),
    Pipe,
    Operand(Operand),
}

type Tokens = std::iter::Peekable<std::vec::IntoIter<Token>>;

fn pipeline(tokens: &mut Tokens, depth: usize) -> Result<Pipeline, String> {
    if depth > DEEPEST {
        return Err(format!("more than {DEEPEST} parentheses stand inside each other"));
    }
    let (mut commands, mut command) = (Vec::new(), Vec::new());
    while let Some(token) = tokens.next_if(|token| !matches!(token, Token::Close(_))) {
        let operand = match token {
            Token::Pipe if command.is_empty() => return Err("a command is missing before |".to_owned()),
            Token::Pipe => {
                commands.push(std::mem::take(&mut command));
                continue;
            }
            Token::Open => {
                let inner = pipeline(tokens, depth + 1)?;
                match tokens.next() {
                    Some(Token::Close(fields)) => Operand::Group(inner, fields),
                    _ => return Err("a parenthesis is not closed".to_owned()),
                }
            }
            Token::Operand(operand) => operand,
            Token::Close(_) => return Err("a parenthesis is closed that was not opened".to_owned()),
        };
        command.push(operand);
    }
    if command.is_empty() {
        return Err("there is nothing to evaluate".to_owned());
    }
    commands.push(command);
    Ok(commands)
}

fn tokens(mut text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    loop {
        text = text.trim_start();
        let Some(first) = text.chars().next() else { return Ok(tokens) };
        let (token, rest) = match first {
            '(' => (Token::Open, &text[1..]),
            ')' => fields(&text[1..]).map(|(fields, rest)| (Token::Close(fields), rest))?,
            '|' => (Token::Pipe, &text[1..]),
            '.' => fields(text).map(|(fields, rest)| (Token::Operand(Operand::Dot(fields)), rest))?,
            '$' => fields(&text[1..]).map(|(fields, rest)| (Token::Operand(Operand::Root(fields)), rest))?,
            '"' | '`' => quoted(text).map(|(text, rest)| (literal(text), rest))?,
            '0'..='9' | '-' | '+' => number(text).map(|(number, rest)| (literal(number), rest))?,
            _ if is_word(first) => {
                let (word, rest) = text.split_at(text.find(|char| !is_word(char)).unwrap_or(text.len()));
                let operand = match word {
                    "true" | "false" => Operand::Literal((word == "true").into()),
                    "nil" => Operand::Nil,
                    _ => Operand::Function(word.to_owned()),
                };
                (Token::Operand(operand), rest)
            }
            _ => return Err(format!("{first:?} is not understood here")),
        };
        if rest.starts_with(is_word) && !matches!(token, Token::Open | Token::Pipe) {
            return Err(
                if first == '$' { "variables cannot be used in presets here" } else { "a blank is missing" }.to_owned()
            );
        }
        tokens.push(token);
        text = rest;
    }
}

fn literal(value: impl Into<Value>) -> Token {
    Token::Operand(Operand::Literal(value.into()))
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// Reads `.A.B`, or a dot alone, or nothing.
fn fields(mut text: &str) -> Result<(Vec<String>, &str), String> {
    let mut names = Vec::new();
    while let Some(rest) = text.strip_prefix('.') {
        let end = rest.find(|char| !is_word(char)).unwrap_or(rest.len());
        match (end, names.is_empty()) {
            (0, true) => return Ok((names, rest)),
            (0, false) => return Err("the name of a field is missing after a dot".to_owned()),
            _ => names.push(rest[..end].to_owned()),
        }
        text = &rest[end..];
    }
    Ok((names, text))
}

fn quoted(text: &str) -> Result<(String, &str), String> {
    let not_closed = || "the quotes are not closed".to_owned();
    if let Some(raw) = text.strip_prefix('`') {
        let end = raw.find('`').ok_or_else(not_closed)?;
        return Ok((raw[..end].to_owned(), &raw[end + 1..]));
    }
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<String>();
    match stream.next() {
        Some(Ok(literal)) => Ok((literal, &text[stream.byte_offset()..])),
        _ => Err(not_closed()),
    }
}

fn number(text: &str) -> Result<(Number, &str), String> {
    let end = text.find(|char: char| !(char.is_ascii_alphanumeric() || "+-._".contains(char))).unwrap_or(text.len());
    let digits = text[..end].trim_start_matches('+');
    let whole = digits.parse::<i64>().ok().map(Number::from);
    let number = whole.or_else(|| digits.parse::<f64>().ok().and_then(Number::from_f64));
    number.map(|number| (number, &text[end..])).ok_or_else(|| format!("{digits:?} is no number"))
}
