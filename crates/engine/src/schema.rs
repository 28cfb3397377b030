//! JSON schemas, as far as Kubernetes and our own settings use them, in a form that is quick to walk.
//!
//! Schemas come from Rust types (through `schemars`; `k8s-openapi` has them for every Kubernetes type) or from the
//! file of a pack. Three readings are Kubernetes': an object that names its properties has no others unless it says
//! so, `x-kubernetes-int-or-string` takes both, and a Quantity has a form. Other keywords are ignored, not refused.

pub(crate) mod kubernetes;

use std::collections::BTreeMap;

use regex::Regex;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// A schema, ready to check values with.
#[derive(Debug)]
pub struct Schema {
    root: Rule,
    definitions: BTreeMap<String, Rule>,
    /// Whether every field may be null, because that takes away what lower layers said.
    pub(crate) takes_nulls: bool,
}

/// The rule that a value must obey. Empty means anything.
#[derive(Debug, Default)]
pub struct Rule {
    reference: Option<String>,
    /// The meaning of the value, in words.
    pub description: Option<String>,
    /// JSON types; any where there is none.
    pub types: Vec<String>,
    /// Fields.
    pub properties: BTreeMap<String, Self>,
    /// Other fields.
    pub additional: Additional,
    pub(crate) required: Vec<String>,
    /// Items of a list.
    pub items: Option<Box<Self>>,
    /// The only values, if they are listed.
    pub values: Vec<Value>,
    pub(crate) range: Range,
    /// The range that the format of a number leaves of it.
    pub(crate) format: Range,
    /// The bounds of the length of a text.
    pub length: Size,
    pub(crate) count: Size,
    /// The form of a text.
    pub pattern: Option<Regex>,
    /// At least one of these must hold.
    pub any_of: Vec<Self>,
    /// Our own: of these fields there must be exactly one.
    pub one_of: Vec<String>,
    /// Our own: what a text must be, in words, instead of its pattern.
    pub form: Option<String>,
    /// Our own: what to tell somebody who writes, or forgets, a field of this name.
    pub slips: BTreeMap<String, String>,
}

/// Bounds of a number, both inclusive.
#[derive(Debug, Default)]
pub(crate) struct Range {
    pub(crate) min: Option<f64>,
    pub(crate) max: Option<f64>,
}

/// Bounds of a length, both inclusive.
#[derive(Debug, Default)]
pub struct Size {
    /// At least.
    pub min: Option<u64>,
    /// At most.
    pub max: Option<u64>,
}

/// The fields that an object may have besides its properties.
#[derive(Debug, Default)]
pub enum Additional {
    /// None.
    #[default]
    Forbidden,
    /// Any.
    Free,
    /// Any whose value obeys this rule.
    Obeying(Box<Rule>),
}

/// A number and a suffix, in one of three styles.
const QUANTITY: &str =
    r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+))?$";
/// The answer of a schema about a path.
pub(crate) enum Found<'a> {
    /// The rule that the value there must obey.
    Rule(&'a Rule),
    /// Anything may stand there.
    Anything,
    /// There is no such field.
    Unknown,
}

/// The step of a path from a list to each of its items.
pub(crate) const EACH: &str = "[]";

/// A schema that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// A pattern is no regular expression that we know.
    #[error("the pattern {0:?} is not a regular expression")]
    Pattern(String, #[source] regex::Error),
    /// A `$ref` leads nowhere.
    #[error("the reference {0:?} leads to no definition")]
    Reference(String),
}

impl Rule {
    /// Returns the name of the rule that it stands for, if it says no more than that.
    pub(crate) fn reference(&self) -> Option<&str> {
        self.reference.as_deref()
    }
}

impl Schema {
    /// Reads a JSON schema.
    pub fn new(schema: &Value) -> Result<Self, SchemaError> {
        let definitions = schema.get("$defs").or_else(|| schema.get("definitions")).and_then(Value::as_object);
        let definitions =
            definitions.into_iter().flatten().map(|(name, schema)| Ok((name.clone(), definition(name, schema)?)));
        let schema =
            Self { root: rule(schema)?, definitions: definitions.collect::<Result<_, _>>()?, takes_nulls: false };
        schema.check_references(&schema.root)?;
        for definition in schema.definitions.values() {
            schema.check_references(definition)?;
        }
        Ok(schema)
    }

    /// Returns the values that are allowed at a path of fields and indexes, if only some are.
    pub(crate) fn values_at<'a>(&self, path: impl IntoIterator<Item = &'a str>) -> &[Value] {
        let rule = path.into_iter().try_fold(&self.root, |rule, step| {
            let rule = self.resolve(rule);
            rule.properties.get(step).or(rule.items.as_deref())
        });
        rule.map(|rule| self.resolve(rule).values.as_slice()).unwrap_or_default()
    }

    /// Returns the schema that everything obeys.
    pub fn anything() -> Self {
        let root = Rule { additional: Additional::Free, ..Rule::default() };
        Self { root, definitions: BTreeMap::new(), takes_nulls: false }
    }

    /// Sets whether every field may be null.
    #[must_use]
    pub(crate) fn taking_nulls(self, takes_nulls: bool) -> Self {
        Self { takes_nulls, ..self }
    }

    /// Makes the schema of a Rust type, as it is *read* (so that what has a default is not required).
    pub fn of<T: JsonSchema>() -> Result<Self, SchemaError> {
        let schema = SchemaSettings::draft2020_12().for_deserialize().into_generator().into_root_schema_for::<T>();
        Self::new(schema.as_value())
    }

    /// Returns what the whole must obey.
    pub fn root(&self) -> &Rule {
        self.resolve(&self.root)
    }

    /// Returns the rules that others refer to, by their names.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = (&str, &Rule)> {
        self.definitions.iter().map(|(name, rule)| (name.as_str(), rule))
    }

    /// Follows references until there is something to obey.
    pub fn resolve<'a>(&'a self, mut rule: &'a Rule) -> &'a Rule {
        while let Some(definition) = rule.reference.as_ref().and_then(|name| self.definitions.get(name)) {
            rule = definition;
        }
        rule
    }

    /// Follows a path of fields, and of [`EACH`] where it goes on with the items of a list.
    pub(crate) fn follow<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> Found<'_> {
        let mut rule = self.root();
        for part in path {
            let wanted = if part == EACH { "array" } else { "object" };
            if !rule.types.is_empty() && !rule.types.iter().any(|ty| ty == wanted) {
                return Found::Unknown;
            }
            let below = match (rule.properties.get(part), &rule.additional, &rule.items) {
                (_, _, Some(items)) if part == EACH => items,
                (Some(below), ..) => below,
                (None, Additional::Obeying(below), _) => below,
                (None, Additional::Free, _) => return Found::Anything,
                (None, Additional::Forbidden, _) if !rule.any_of.is_empty() => return Found::Anything,
                (None, Additional::Forbidden, _) => return Found::Unknown,
            };
            rule = self.resolve(below);
        }
        Found::Rule(rule)
    }

    fn check_references(&self, rule: &Rule) -> Result<(), SchemaError> {
        if let Some(name) = rule.reference.as_ref().filter(|name| !self.definitions.contains_key(*name)) {
            return Err(SchemaError::Reference(name.clone()));
        }
        let additional = match &rule.additional {
            Additional::Obeying(rule) => Some(&**rule),
            Additional::Forbidden | Additional::Free => None,
        };
        let below = rule.properties.values().chain(rule.items.as_deref()).chain(additional).chain(&rule.any_of);
        below.into_iter().try_for_each(|rule| self.check_references(rule))
    }
}

/// Reads a definition, and adds to Kubernetes' Quantity the form that its type does not say.
fn definition(name: &str, schema: &Value) -> Result<Rule, SchemaError> {
    let mut rule = rule(schema)?;
    if name.ends_with(".api.resource.Quantity") {
        rule.pattern = Some(regex(QUANTITY)?);
        rule.form = Some("a quantity, such as 500m, 1.5 or 2Gi".to_owned());
    }
    Ok(rule)
}

fn rule(schema: &Value) -> Result<Rule, SchemaError> {
    let mut rule = Rule {
        reference: reference(schema),
        description: schema.get("description").and_then(Value::as_str).map(str::to_owned),
        types: types(schema),
        properties: rules(schema, "properties")?,
        required: strings(schema, "required"),
        items: schema.get("items").map(|items| self::rule(items).map(Box::new)).transpose()?,
        values: values(schema),
        range: Range { min: number(schema, "minimum"), max: number(schema, "maximum") },
        format: format(schema),
        length: size(schema, "minLength", "maxLength"),
        count: size(schema, "minItems", "maxItems"),
        pattern: pattern(schema)?,
        any_of: Vec::new(),
        one_of: strings(schema, "x-gatewright-one-of"),
        form: schema.get("x-gatewright-form").and_then(Value::as_str).map(str::to_owned),
        slips: slips(schema),
        additional: Additional::Forbidden,
    };
    rule.additional = additional(schema, &rule)?;
    add_alternatives(&mut rule, schema)?;
    Ok(rule)
}

fn reference(schema: &Value) -> Option<String> {
    let text = schema.get("$ref")?.as_str()?;
    Some(text.rsplit('/').next()?.replace("~1", "/").replace("~0", "~"))
}

fn types(schema: &Value) -> Vec<String> {
    if schema.get("x-kubernetes-int-or-string").and_then(Value::as_bool) == Some(true) {
        return vec!["integer".into(), "string".into()];
    }
    match schema.get("type") {
        Some(Value::String(name)) => vec![name.clone()],
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).filter(|name| *name != "null").map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

fn rules(schema: &Value, key: &str) -> Result<BTreeMap<String, Rule>, SchemaError> {
    let map = schema.get(key).and_then(Value::as_object);
    map.into_iter().flatten().map(|(name, schema)| Ok((name.clone(), rule(schema)?))).collect()
}

fn strings(schema: &Value, key: &str) -> Vec<String> {
    let list = schema.get(key).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn values(schema: &Value) -> Vec<Value> {
    let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    listed.chain(schema.get("const")).filter(|value| !value.is_null()).cloned().collect()
}

fn number(schema: &Value, key: &str) -> Option<f64> {
    schema.get(key).and_then(Value::as_f64)
}

fn format(schema: &Value) -> Range {
    match schema.get("format").and_then(Value::as_str) {
        Some("int32") => Range { min: Some(i32::MIN.into()), max: Some(i32::MAX.into()) },
        _ => Range::default(),
    }
}

fn size(schema: &Value, min: &str, max: &str) -> Size {
    let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
    Size { min: bound(min), max: bound(max) }
}

fn pattern(schema: &Value) -> Result<Option<Regex>, SchemaError> {
    schema.get("pattern").and_then(Value::as_str).map(regex).transpose()
}

fn regex(text: &str) -> Result<Regex, SchemaError> {
    Regex::new(text).map_err(|source| SchemaError::Pattern(text.to_owned(), source))
}

fn slips(schema: &Value) -> BTreeMap<String, String> {
    let map = schema.get("x-gatewright-slips").and_then(Value::as_object);
    let hint = |(field, hint): (&String, &Value)| Some((field.clone(), hint.as_str()?.to_owned()));
    map.into_iter().flatten().filter_map(hint).collect()
}

fn additional(schema: &Value, rule: &Rule) -> Result<Additional, SchemaError> {
    let preserves = schema.get("x-kubernetes-preserve-unknown-fields").and_then(Value::as_bool) == Some(true);
    Ok(match schema.get("additionalProperties") {
        Some(Value::Bool(false)) => Additional::Forbidden,
        Some(Value::Bool(true)) => Additional::Free,
        Some(below) => Additional::Obeying(Box::new(self::rule(below)?)),
        None if preserves || rule.properties.is_empty() => Additional::Free,
        None => Additional::Forbidden,
    })
}

/// Folds `anyOf` and `oneOf` into the rule: the alternative "or null" says nothing, a lone alternative is the rule
/// itself, and alternatives that are constants are a list of values.
fn add_alternatives(rule: &mut Rule, schema: &Value) -> Result<(), SchemaError> {
    let listed = |key: &str| schema.get(key).and_then(Value::as_array).into_iter().flatten();
    let is_null = |schema: &&Value| schema.get("type").and_then(Value::as_str) != Some("null");
    let mut alternatives: Vec<Rule> =
        listed("anyOf").chain(listed("oneOf")).filter(is_null).map(self::rule).collect::<Result<_, _>>()?;
    if alternatives.len() == 1 && rule.properties.is_empty() {
        let (slips, description) = (std::mem::take(&mut rule.slips), rule.description.take());
        *rule = alternatives.remove(0);
        rule.slips.extend(slips);
        rule.description = description.or_else(|| rule.description.take());
    } else if !alternatives.is_empty() && alternatives.iter().all(|rule| !rule.values.is_empty()) {
        rule.types = vec!["string".into()];
        rule.values = alternatives.into_iter().flat_map(|rule| rule.values).collect();
    } else {
        rule.any_of = alternatives;
    }
    Ok(())
}
