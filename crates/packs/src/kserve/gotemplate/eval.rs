//! From a tree to text.

use serde_json::Value;

use super::data::{Holds, Item};
use super::parse::{Action, Branch, Node, Operand, Pipeline};
use super::{Fault, LONGEST, MOST_ACTIONS, Steps, functions};

pub(super) fn run(nodes: &[Node], data: &Value, steps: &mut Steps) -> Result<String, Fault> {
    let root = Item::root(data);
    let size = parts(data);
    let mut run = Run { root: &root, text: String::new(), actions: 0, steps, size };
    run.nodes(nodes, &root)?;
    Ok(run.text)
}

/// Returns how many parts a value has.
fn parts(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(parts).sum(),
        Value::Object(fields) => fields.values().map(parts).sum(),
        Value::String(text) => text.len() >> 6,
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// The reason of a text that is too much work, too.
const TOO_LONG: &str = "the text grows too long";

struct Run<'a> {
    root: &'a Item,
    text: String,
    actions: usize,
    steps: &'a mut Steps,
    /// The number of parts of all data: as much as an action may copy.
    size: usize,
}

impl Run<'_> {
    fn nodes(&mut self, nodes: &[Node], dot: &Item) -> Result<(), Fault> {
        for node in nodes {
            match node {
                Node::Text(text) => {
                    self.print(text).map_err(|reason| Fault { expression: text.chars().take(40).collect(), reason })?;
                }
                Node::Print(action) => {
                    let item = self.action(action, dot)?;
                    let text = functions::text(&item.value).map_err(|reason| fault(action, reason))?;
                    self.print(&text).map_err(|reason| fault(action, reason))?;
                }
                Node::Branch { kind, head, then, otherwise } => self.branch(*kind, head, [then, otherwise], dot)?,
            }
        }
        Ok(())
    }

    fn print(&mut self, text: &str) -> Result<(), String> {
        if self.text.len() + text.len() > LONGEST || !self.steps.take(1) {
            return Err(TOO_LONG.to_owned());
        }
        self.text.push_str(text);
        Ok(())
    }

    fn branch(&mut self, kind: Branch, head: &Action, parts: [&[Node]; 2], dot: &Item) -> Result<(), Fault> {
        let [then, otherwise] = parts;
        let item = self.action(head, dot)?;
        let items = match kind {
            Branch::If if item.is_true() => vec![dot.clone()],
            Branch::With if item.is_true() => vec![item],
            Branch::If | Branch::With => Vec::new(),
            Branch::Range => items(item).map_err(|reason| fault(head, reason))?,
        };
        if items.is_empty() {
            return self.nodes(otherwise, dot);
        }
        items.iter().try_for_each(|item| self.nodes(then, item))
    }

    fn action(&mut self, action: &Action, dot: &Item) -> Result<Item, Fault> {
        self.actions += 1;
        let copies = operands(&action.pipeline);
        if self.actions > MOST_ACTIONS || !self.steps.take(1 + copies * self.size) {
            return Err(fault(action, TOO_LONG.to_owned()));
        }
        self.pipeline(&action.pipeline, dot).map_err(|reason| fault(action, reason))
    }

    fn pipeline(&self, pipeline: &Pipeline, dot: &Item) -> Result<Item, String> {
        let mut result = None;
        for command in pipeline {
            result = Some(self.command(command, result, dot)?);
        }
        result.ok_or_else(|| "there is nothing to evaluate".to_owned())
    }

    fn command(&self, command: &[Operand], last: Option<Item>, dot: &Item) -> Result<Item, String> {
        let (first, rest) = command.split_first().ok_or("a command is missing")?;
        let Operand::Function(name) = first else {
            if !rest.is_empty() || last.is_some() {
                return Err("only a function takes arguments".to_owned());
            }
            return self.operand(first, dot);
        };
        if matches!(name.as_str(), "and" | "or") {
            return self.junction(name, rest, last, dot);
        }
        let arguments = rest.iter().map(|operand| self.operand(operand, dot));
        let arguments = arguments.chain(last.map(Ok)).collect::<Result<Vec<_>, _>>()?;
        functions::call(name, &arguments)
    }

    /// `and` and `or` look at no more arguments than they must.
    fn junction(&self, name: &str, rest: &[Operand], last: Option<Item>, dot: &Item) -> Result<Item, String> {
        let mut result = None;
        for argument in rest.iter().map(|operand| self.operand(operand, dot)).chain(last.map(Ok)) {
            let item = argument?;
            if item.is_true() == (name == "or") {
                return Ok(item);
            }
            result = Some(item);
        }
        result.ok_or_else(|| format!("{name} needs an argument"))
    }

    fn operand(&self, operand: &Operand, dot: &Item) -> Result<Item, String> {
        let (item, fields) = match operand {
            Operand::Dot(fields) => (dot.clone(), fields),
            Operand::Root(fields) => (self.root.clone(), fields),
            Operand::Group(pipeline, fields) => (self.pipeline(pipeline, dot)?, fields),
            Operand::Literal(value) => return Ok(Item::plain(value.clone())),
            Operand::Nil => return Ok(Item { value: Value::Null, holds: Holds::Any }),
            Operand::Function(name) => return functions::call(name, &[]),
        };
        fields.iter().try_fold(item, |item, name| item.field(name))
    }
}

/// Returns how many values of the data commands copy.
fn operands(pipeline: &Pipeline) -> usize {
    let copies = |operand: &Operand| match operand {
        Operand::Dot(_) | Operand::Root(_) => 1,
        Operand::Group(pipeline, _) => operands(pipeline),
        Operand::Literal(_) | Operand::Nil | Operand::Function(_) => 0,
    };
    pipeline.iter().flatten().map(copies).sum()
}

fn fault(action: &Action, reason: String) -> Fault {
    Fault { expression: action.source.clone(), reason }
}

fn items(item: Item) -> Result<Vec<Item>, String> {
    let each = |value: Value| Item { value, holds: Holds::Any };
    match item.value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => Ok(items.into_iter().map(each).collect()),
        Value::Object(fields) => Ok(fields.into_iter().map(|(_, value)| each(value)).collect()),
        _ => Err("range needs a list or a map".to_owned()),
    }
}
