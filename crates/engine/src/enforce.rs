//! Bounds: what must hold for the merged parameters of a spec, in CEL.
//!
//! A rule sees the merged parameters, each field of their `spec` under its own name and all of them as `params`, and
//! beside them `resource`, the spec as it is resolved (`gateway` if it is one), and `cluster` with `name` and `labels`. It must yield true. A rule that reads a field that
//! nobody has set does not apply; `has()` asks for one. Everything else that goes wrong is a problem, so that a bound
//! that cannot be checked holds a Gateway as one does that is broken. `quantity()` reads amounts such as `512Mi`.

pub mod expression;
mod quantity;
mod steps;
mod types;
mod walk;
pub mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cel::objects::{Key, Map};
use cel::{Context, ExecutionError, Value as Cel};
use serde_json::{Value, json};

use expression::{Expression, RuleError};
use steps::{MOST_STEPS, Steps, Values};
use walk::written;
use words::{CLUSTER, GATEWAY, OBJECT, PARAMS, RESOURCE, Vocabulary};

use crate::merge::origin::{LayerName, Merged, MergedContent};
use crate::problem::{Place, Problem};
use crate::schema::EACH;
use crate::selector::ClusterFacts;
use crate::spec::overlay::Bound;
use crate::spec::{Document, GATEWAY_API};
use crate::text::listed;
use crate::yaml::Node;

/// The longest list that a rule walks.
const MAX_ITEMS: usize = 1_000;

/// The longest text of a value that is quoted.
const MAX_QUOTED: usize = 60;

/// The most places of one value that are quoted.
const MAX_PLACES: usize = 6;

/// A rule, ready to be checked.
#[derive(Clone, Debug)]
pub struct Rule {
    /// As it was written.
    pub bound: Bound,
    /// The files and the context.
    pub place: Place,
    expression: Expression,
}

/// The facts that rules are checked against: one spec on one cluster.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// Its merged parameters.
    pub parameters: &'a Merged,
    /// The spec.
    pub spec: &'a Document,
    /// The cluster, if it is for one.
    pub cluster: Option<&'a ClusterFacts>,
}

impl Rule {
    /// Reads a rule.
    pub fn new(bound: &Bound, place: Place, words: &Vocabulary<'_>) -> Result<Self, RuleError> {
        let expression = Expression::new(&bound.rule, words)?;
        Ok(Self { bound: bound.clone(), place, expression })
    }

    /// Tells whether it looks at the cluster, so that it may hold on one and not on another.
    pub(crate) fn reads_cluster(&self) -> bool {
        self.expression.reads.iter().any(|path| path[0] == CLUSTER)
    }
}

/// Reads a list of bounds with the place of each, as it stands in a config file that has been checked.
pub fn bounds(file: &str, node: &Node) -> Vec<(Bound, Place)> {
    let file = file.into();
    let bound = |item: &Node| {
        let place = Place::at(&file, item.get("rule")?.position);
        Some((serde_json::from_value(item.to_value()).ok()?, place))
    };
    node.items().iter().filter_map(bound).collect()
}

/// Returns the rules that do not hold, and those that cannot be checked.
pub fn check<'a>(rules: impl IntoIterator<Item = &'a Rule>, facts: &Facts<'_>) -> Vec<Problem> {
    let rules: Vec<&Rule> = rules.into_iter().collect();
    if rules.is_empty() {
        return Vec::new();
    }
    let mut context = Context::with_env(Arc::clone(&quantity::FUNCTIONS));
    // A mapping in which nothing is set is not there at all.
    let paths = rules.iter().flat_map(|rule| &rule.expression.reads).filter(|path| path.len() > 1);
    for path in paths {
        context.add_variable_from_value(path[0].as_str(), Cel::Map(Map { map: Arc::default() }));
    }
    let values = facts.values();
    match facts.add_to(&mut context, &values) {
        Ok(()) => rules.into_iter().filter_map(|rule| check_one(rule, facts, (&context, &values))).collect(),
        Err(message) => rules.into_iter().map(|rule| facts.problem(rule.place.clone(), rule, &message)).collect(),
    }
}

fn check_one(rule: &Rule, facts: &Facts<'_>, (context, values): (&Context<'_, '_>, &Values)) -> Option<Problem> {
    let cannot = |what: &str| Some(facts.problem(rule.place.clone(), rule, what));
    match evaluated(&rule.expression, values, context) {
        Ok(Cel::Bool(true)) | Err(ExecutionError::NoSuchKey(_) | ExecutionError::UndeclaredReference(_)) => None,
        Ok(Cel::Bool(false)) => Some(facts.breach(rule)),
        Ok(_) => cannot("it yields neither true nor false"),
        Err(ExecutionError::FunctionError { function, message }) => cannot(&format!("{function}: {message}")),
        Err(ExecutionError::InternalError(message)) => cannot(&message),
        Err(error) => cannot(&error.to_string()),
    }
}

/// Evaluates an expression, as far as its steps lead.
fn evaluated(expression: &Expression, values: &Values, context: &Context<'_, '_>) -> Result<Cel, ExecutionError> {
    let steps = Steps::of(&expression.costs, values);
    let mut context = context.new_inner_scope();
    context.set_variable_resolver(&steps);
    let value = if steps.is_used_up() { Ok(Cel::Null) } else { context.resolve(&expression.root) };
    if steps.is_used_up() {
        let message = format!("it takes more than {MOST_STEPS} steps; walk shorter lists, or look into shorter texts");
        return Err(ExecutionError::InternalError(message));
    }
    value
}

/// Says whether an expression over `object` holds; what it asks for and is not there makes it false.
pub fn holds(text: &str, object: &Value) -> Result<bool, String> {
    let expression = Expression::new(text, &Vocabulary::of_object()).map_err(|error| error.message)?;
    let mut context = Context::with_env(Arc::clone(&quantity::FUNCTIONS));
    context.add_variable_from_value(OBJECT, cel(object)?);
    let values = Values::new(BTreeMap::from([(OBJECT, object.clone())]));
    match evaluated(&expression, &values, &context) {
        Ok(Cel::Bool(holds)) => Ok(holds),
        Err(ExecutionError::NoSuchKey(_)) => Ok(false),
        Ok(_) => Err("it yields neither true nor false".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// A value that a rule has read: in words, who said it last, and where.
struct Read {
    text: String,
    layer: LayerName,
    place: Place,
}

impl Facts<'_> {
    /// Returns what the rules are about, by the variable that holds it.
    fn values(&self) -> Values {
        let cluster = self.cluster.map(|cluster| json!({"name": cluster.name, "labels": cluster.labels}));
        let params = Some(self.parameters.to_value()).filter(|params| !params.is_null());
        let all = [(RESOURCE, Some(self.spec.value())), (PARAMS, params), (CLUSTER, cluster)];
        Values::new(all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
    }

    fn add_to(&self, context: &mut Context<'_, '_>, values: &Values) -> Result<(), String> {
        for (name, value) in values.iter() {
            let value = cel(value)?;
            if name == RESOURCE && self.spec.id.is_a(GATEWAY_API, "Gateway") {
                context.add_variable_from_value(GATEWAY, value.clone());
            }
            context.add_variable_from_value(name, value);
        }
        if let MergedContent::Map(fields) = &self.parameters.content {
            for (name, field) in fields {
                context.add_variable_from_value(name.as_str(), cel(&field.to_value())?);
            }
        }
        Ok(())
    }

    fn problem(&self, place: Place, rule: &Rule, what: &str) -> Problem {
        let message = format!("the rule {:?} cannot be checked: {what}", rule.bound.rule);
        Problem::document(place, message).about(self.spec.id.clone())
    }

    fn breach(&self, rule: &Rule) -> Problem {
        let all = &rule.expression.reads;
        // A list is read to get at its items.
        let is_whole = |path: &&Vec<String>| !all.iter().any(|other| other != *path && other.starts_with(path));
        let reads: Vec<Read> = all.iter().filter(is_whole).filter_map(|path| self.read(path)).collect();
        let Bound { rule: text, message } = &rule.bound;
        let said = match reads.as_slice() {
            [] => "it breaks".to_owned(),
            [one] => format!("{} breaks", one.text),
            several => {
                format!("{} break", several.iter().map(|read| &*read.text).collect::<Vec<_>>().join(" and "))
            }
        };
        let rule_place = &rule.place;
        // The one to go to is who had the last word; where the pack had it, there is no line to go to.
        let is_written = |read: &&Read| read.layer > LayerName::Builtin && read.place.line > 0;
        let last = reads.iter().filter(is_written).max_by_key(|read| read.layer);
        let place = last.map_or_else(|| rule_place.clone(), |read| read.place.clone());
        let problem = Problem::document(place, format!("{said} the rule {text:?} at {rule_place}"));
        Problem { hint: message.clone(), ..problem.about(self.spec.id.clone()) }
    }

    /// Finds the value at a path, or the list that it is in.
    fn read(&self, path: &[String]) -> Option<Read> {
        let whole: Vec<&str> = path.iter().map(String::as_str).take_while(|part| *part != EACH).collect();
        match whole.as_slice() {
            [CLUSTER, ..] => None,
            [GATEWAY | RESOURCE, below @ ..] => {
                let node = self.spec.root.at(below.iter().copied())?;
                let place = self.spec.at(node.position);
                let text = in_words(path, &node.to_value(), &[place.to_string()].into());
                Some(Read { text, layer: LayerName::Gateway, place })
            }
            [PARAMS, below @ ..] | below => {
                let merged = below.iter().try_fold(self.parameters, |merged, field| merged.get(field))?;
                let last = last_word(merged);
                let mut places = BTreeSet::new();
                collect_places(merged, &mut places);
                let text = in_words(path, &merged.to_value(), &places);
                Some(Read { text, layer: last.layer, place: last.place.clone() })
            }
        }
    }
}

/// Writes a path, its value where that is short enough to quote, and where it was said.
fn in_words(path: &[String], value: &Value, places: &BTreeSet<String>) -> String {
    let is_scalar = !value.is_object() && !value.is_array();
    let value = is_scalar.then(|| format!(" = {value}")).filter(|text| text.len() <= " = ".len() + MAX_QUOTED);
    format!("{}{} ({})", written(path), value.unwrap_or_default(), listed(places, MAX_PLACES))
}

/// Finds the origin of the highest layer within a value.
fn last_word(merged: &Merged) -> &crate::merge::origin::Origin {
    let below = merged.parts().into_iter().map(last_word);
    below.fold(&merged.origin, |last, origin| if origin.layer > last.layer { origin } else { last })
}

/// Collects where the parts of a value were said.
fn collect_places(merged: &Merged, places: &mut BTreeSet<String>) {
    let parts = merged.parts();
    if parts.is_empty() {
        places.insert(merged.origin.to_string());
    }
    for part in parts {
        collect_places(part, places);
    }
}

/// Makes a value of CEL.
fn cel(value: &Value) -> Result<Cel, String> {
    Ok(match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), ..) => Cel::Int(number),
            (None, Some(number), _) => Cel::UInt(number),
            (None, None, number) => Cel::Float(number.unwrap_or_default()),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) if items.len() > MAX_ITEMS => {
            return Err(format!("there is a list of more than {MAX_ITEMS} items"));
        }
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(cel).collect::<Result<_, _>>()?)),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| Ok((Key::from(key.as_str()), cel(value)?)));
            Cel::Map(Map { map: Arc::new(fields.collect::<Result<_, String>>()?) })
        }
    })
}

#[cfg(test)]
mod tests;
