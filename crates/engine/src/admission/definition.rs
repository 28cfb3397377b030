//! A definition of a kind (`CustomResourceDefinition`), made ready for checks when a document needs it first.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::thread;

use jsonschema::{Draft, Validator};
use kube_cel::{CompiledSchema, apply_defaults, compile_schema};
use serde_json::{Map, Value, json};

use crate::schema::{Schema, SchemaError};

/// The stack of the thread that reads rules: the parser of CEL recurses for each parenthesis.
const STACK: usize = 64 << 20;

/// The most parentheses, brackets and braces that may stand around a part of a rule.
const MAX_DEPTH: usize = 100;

/// A definition that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// It is no definition of a kind.
    #[error("it has no {0}")]
    Incomplete(&'static str),
    /// A schema cannot be read.
    #[error("the schema of version {0} cannot be used")]
    Schema(String, #[source] SchemaError),
    /// A schema is none.
    #[error("the schema of version {0} cannot be used: {1}")]
    Form(String, String),
}

/// The definition of a kind.
#[derive(Debug)]
pub struct Definition {
    /// Its group.
    pub group: String,
    /// Its name.
    pub kind: String,
    /// The release of a product that it is of, if other releases may take more than it says.
    pub(super) release: Option<&'static str>,
    /// The text of one that is built in.
    text: Option<&'static str>,
    versions: OnceLock<Versions>,
}

/// The versions that are served, by their names: their schemas, and what becomes of these when a document needs it.
type Versions = BTreeMap<String, (Value, OnceLock<Option<Version>>)>;

/// One version of a kind.
#[derive(Debug)]
pub(super) struct Version {
    /// Types, bounds and names of fields.
    pub(super) shape: Schema,
    /// The same, but for the names of fields.
    open: OnceLock<Option<Schema>>,
    /// The whole schema, as it is published.
    pub(super) schema: Value,
    /// Everything but names of fields, the alternatives among it.
    pub(super) validator: Validator,
    /// The rules in CEL.
    pub(super) rules: CompiledSchema,
}

impl Definition {
    /// Reads a `CustomResourceDefinition`. What its schemas and rules say shows when they are needed.
    pub fn new(definition: &Value) -> Result<Self, DefinitionError> {
        let spec = &definition["spec"];
        let text = |value: &Value, name| value.as_str().map(str::to_owned).ok_or(DefinitionError::Incomplete(name));
        let (group, kind) = (text(&spec["group"], "spec.group")?, text(&spec["names"]["kind"], "spec.names.kind")?);
        Ok(Self { group, kind, release: None, text: None, versions: OnceLock::from(versions(spec)?) })
    }

    /// Takes one that a program is built with, in JSON; it is read when a document needs it.
    pub fn builtin(group: &str, kind: &str, text: &'static str) -> Self {
        let (group, kind) = (group.to_owned(), kind.to_owned());
        Self { group, kind, release: None, text: Some(text), versions: OnceLock::new() }
    }

    /// Says of which release of a product it is, if other releases may take what it does not take.
    #[must_use]
    pub fn of_release(self, release: Option<&'static str>) -> Self {
        Self { release, ..self }
    }

    /// Tries whether it can be used: every schema, and every rule.
    pub fn try_all(&self) -> Result<(), DefinitionError> {
        if self.versions().is_empty() {
            return Err(DefinitionError::Incomplete("version that is served"));
        }
        self.versions().iter().try_for_each(|(name, (schema, _))| {
            let version = Version::new(name, schema)?;
            let errors = version.rules_that_fail();
            errors.map_or(Ok(()), |error| Err(DefinitionError::Form(name.clone(), error)))
        })
    }

    /// Returns the schemas of the versions that are served, as they are published but for `status`.
    pub(crate) fn schemas(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.versions().iter().map(|(name, (schema, _))| (name.as_str(), schema))
    }

    /// Returns the release of a product that it is of, if other releases may take more than it says.
    pub fn release(&self) -> Option<&'static str> {
        self.release
    }

    /// Returns a version, if it can be used.
    pub(super) fn version(&self, name: &str) -> Option<&Version> {
        let (schema, version) = self.versions().get(name)?;
        version.get_or_init(|| Version::new(name, schema).ok()).as_ref()
    }

    fn versions(&self) -> &Versions {
        self.versions.get_or_init(|| {
            let definition: Option<Value> = self.text.and_then(|text| serde_json::from_str(text).ok());
            definition.and_then(|definition| versions(&definition["spec"]).ok()).unwrap_or_default()
        })
    }
}

/// Reads the versions that are served and have a schema.
fn versions(spec: &Value) -> Result<Versions, DefinitionError> {
    let listed = spec["versions"].as_array().ok_or(DefinitionError::Incomplete("spec.versions"))?;
    let served = listed.iter().filter(|version| version["served"] != false);
    let read = served.filter_map(|version| {
        let name = version["name"].as_str().ok_or(DefinitionError::Incomplete("name of a version"));
        let schema = version.pointer("/schema/openAPIV3Schema")?;
        Some(name.map(|name| (name.to_owned(), (with_status(schema.clone()), OnceLock::new()))))
    });
    read.collect()
}

impl Version {
    fn new(name: &str, schema: &Value) -> Result<Self, DefinitionError> {
        let shape = Schema::new(&plain(schema)).map_err(|error| DefinitionError::Schema(name.to_owned(), error))?;
        let options = jsonschema::options().with_draft(Draft::Draft4).should_validate_formats(true);
        let validator = options.build(&draft4(schema));
        let validator = validator.map_err(|error| DefinitionError::Form(name.to_owned(), error.to_string()))?;
        let (rules, schema) = (compiled(&readable(schema)), schema.clone());
        Ok(Self { shape, open: OnceLock::new(), validator, rules, schema })
    }

    /// Returns types and bounds of the fields that it names; others are taken as they are.
    pub(super) fn open(&self) -> &Schema {
        let open = self.open.get_or_init(|| Schema::new(&open(&plain(&self.schema))).ok());
        open.as_ref().unwrap_or(&self.shape)
    }

    /// Fills in the defaults.
    pub(super) fn filled(&self, value: &Value) -> Value {
        apply_defaults(&self.schema, value)
    }

    fn rules_that_fail(&self) -> Option<String> {
        let mut open = vec![&self.rules];
        while let Some(schema) = open.pop() {
            if let Some(error) = schema.compilation_errors().first() {
                return Some(error.to_string());
            }
            open.extend(schema.properties.values().chain(schema.items.as_deref()));
            open.extend(schema.additional_properties.as_deref());
        }
        None
    }
}

/// Reads all rules of a schema, where there is room for it.
fn compiled(schema: &Value) -> CompiledSchema {
    thread::scope(|scope| {
        let reading = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || compile_schema(schema));
        reading.ok().and_then(|it| it.join().ok()).unwrap_or_else(|| compile_schema(&json!({})))
    })
}

/// Lets a controller write what it likes: an API server does not look at the status of what people write.
fn with_status(mut schema: Value) -> Value {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("status".to_owned(), json!({"x-kubernetes-preserve-unknown-fields": true}));
    }
    schema
}

/// Walks a schema, the deepest first, and changes each part of it.
fn changed(schema: &Value, change: &impl Fn(&mut Map<String, Value>)) -> Value {
    let Some(fields) = schema.as_object() else { return schema.clone() };
    let below = |it: &Value| changed(it, change);
    let mut fields: Map<String, Value> = fields
        .iter()
        .map(|(key, value)| {
            let value = match (key.as_str(), value) {
                ("properties", Value::Object(map)) => map.iter().map(|(name, it)| (name.clone(), below(it))).collect(),
                ("items" | "additionalProperties" | "not", it) => below(it),
                ("allOf" | "anyOf" | "oneOf", Value::Array(list)) => list.iter().map(below).collect(),
                (_, other) => other.clone(),
            };
            (key.clone(), value)
        })
        .collect();
    change(&mut fields);
    Value::Object(fields)
}

/// Leaves out alternatives, which say nothing of the names and types of fields.
fn plain(schema: &Value) -> Value {
    changed(schema, &|fields| fields.retain(|key, _| !matches!(key.as_str(), "allOf" | "anyOf" | "oneOf" | "not")))
}

/// Takes fields that it does not name.
fn open(schema: &Value) -> Value {
    changed(schema, &|fields| {
        if fields.contains_key("properties") {
            fields.insert("x-kubernetes-preserve-unknown-fields".to_owned(), json!(true));
        }
    })
}

/// Writes what is Kubernetes' own in the words of JSON schemas.
fn draft4(schema: &Value) -> Value {
    changed(schema, &|fields| {
        if fields.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
            fields.insert("type".to_owned(), json!(["integer", "string"]));
        }
        if let Some(ty) = fields.get("type").filter(|_| fields.get("nullable") == Some(&Value::Bool(true))) {
            let types = ty.as_array().cloned().unwrap_or_else(|| vec![ty.clone()]);
            fields.insert("type".to_owned(), types.into_iter().chain([json!("null")]).collect());
        }
    })
}

/// Leaves out rules that nest so deep that reading them could end the process.
fn readable(schema: &Value) -> Value {
    changed(schema, &|fields| {
        if let Some(Value::Array(rules)) = fields.get_mut("x-kubernetes-validations") {
            let text = |rule: &Value, key: &str| depth(rule[key].as_str().unwrap_or_default());
            rules.retain(|rule| text(rule, "rule").max(text(rule, "messageExpression")) <= MAX_DEPTH);
        }
    })
}

/// Returns how many parentheses, brackets, braces and signs before a value stand around a part of a rule, at most.
fn depth(rule: &str) -> usize {
    let (mut depth, mut signs, mut deepest) = (0_usize, 0_usize, 0_usize);
    for char in rule.chars() {
        match char {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '!' | '-' | '?' => signs += 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest + signs
}
