//! Packs: what knows how to turn one family of specs into objects.
//!
//! A pack is a folder of data (`pack.yaml`, defaults, Tera templates) and, where values must be computed, a
//! [`ValuesGenerator`] in Rust. The renderer knows nothing of gateways, and a generator knows nothing of templates.

pub mod builtin;
pub mod declared;
pub mod gateway;
pub mod lint;
pub mod manifest;
pub mod overlay;
pub mod overrides;
mod side_by_side;
mod texts;

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::check::{Mistake, check_layer};
use crate::enforce::Rule;
use crate::enforce::expression::RuleError;
use crate::enforce::words::Vocabulary;
use crate::health;
use crate::kinds::name::KindName;
use crate::merge::Table;
use crate::merge::origin::{Layer, LayerName, Merged};
use crate::object::Object;
use crate::problem::{Place, Problem, Scope};
use crate::render::{RenderError, Renderer, TemplateError};
use crate::schema::{Schema, SchemaError};
use crate::selector::Capabilities;
use crate::spec::gateway::Gateway;
use crate::spec::listener_set::ListenerSet;
use crate::spec::overlay::Bound;
use crate::spec::{Document, GATEWAY_API, Kind, Kinds, Sense, Specs};
use crate::tree::files::FilesError;
use crate::yaml::{self, Node, YamlError};
use manifest::{Claim, Generated, Manifest, Nulls, ParameterKind};
use overrides::Override;
pub use side_by_side::Packs;

/// The spec that a unit is rendered from, with all that belongs to it.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// The spec as it was written.
    pub document: &'a Document,
    /// The Gateway; of another spec, one that says nothing but its name.
    pub gateway: &'a Gateway,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its class; empty for what is no Gateway.
    pub class: &'a str,
    /// The sets that attach to it, in the order of their names.
    pub listener_sets: &'a [ListenerSet],
    /// The same sets as they were written.
    pub listener_set_documents: &'a [&'a Document],
    /// Its parameters, the lowest layer first, without the built-in one.
    pub layers: &'a [Layer<'a>],
    /// Everything else that the source holds.
    pub specs: &'a Specs,
    /// The capabilities of the cluster; nothing is known where none was asked.
    pub capabilities: Option<&'a Capabilities>,
}

/// The way in which a spec is provisioned.
#[derive(Clone, Debug, PartialEq)]
pub enum Provision {
    /// It is rendered: the values of every template.
    Values(Value),
    /// Somebody else provisions it (*self-managed*).
    SelfManaged,
    /// An operator in the cluster provisions it: these documents go there, as they are. The spec is among them.
    PassThrough(Vec<Value>),
}

impl Subject<'_> {
    /// Tells whether the spec is a Gateway.
    pub fn is_gateway(&self) -> bool {
        self.document.id.group == GATEWAY_API && self.document.id.kind == "Gateway"
    }

    /// Returns a problem with the spec as a whole.
    pub fn problem(&self, message: &str) -> Problem {
        self.document.problem(&[], message)
    }

    /// Reads merged parameters as a type; a mistake that only the layers together make shows here.
    pub fn read<T: DeserializeOwned>(&self, parameters: &Merged) -> Result<T, Vec<Problem>> {
        serde_json::from_value(parameters.to_value())
            .map_err(|error| vec![self.problem(&format!("cannot use the merged parameters: {error}"))])
    }
}

/// Computes the values that templates need from a spec and its parameters.
pub trait ValuesGenerator: Send + Sync {
    /// Returns the lowest layer of parameters, before the layers of the subject are merged over it.
    fn defaults(&self, subject: &Subject<'_>) -> Merged;

    /// Decides what becomes of a spec.
    fn values(&self, subject: &Subject<'_>, parameters: &Merged) -> Result<Provision, Vec<Problem>>;

    /// Returns warnings about parameters that are allowed and yet hardly what was meant; they hold nothing back.
    fn lint(&self, _subject: &Subject<'_>, _parameters: &Merged) -> Vec<Problem> {
        Vec::new()
    }

    /// Returns the settings of the pack (`packs.<name>` of the config) that the values are computed with, defaults
    /// included; `null` if there are none. A generator around another one passes this on, and the next.
    fn settings(&self) -> Value {
        Value::Null
    }

    /// Returns the same generator with other settings, or `None` if these cannot be used.
    fn with_settings(&self, _settings: &Value) -> Option<Arc<dyn ValuesGenerator>> {
        None
    }

    /// Returns the documents that are built into it and that specs are made of, such as presets, each with the file of the
    /// pack that it stands in.
    fn documents(&self) -> Vec<Document> {
        Vec::new()
    }

    /// Returns the same generator with other content in one of those documents, or `None` if it has none.
    fn with_document(&self, _document: &Document) -> Option<Arc<dyn ValuesGenerator>> {
        None
    }
}

/// Changes objects after they are rendered, before they are marked; it may add objects.
pub trait ObjectPostProcessor: Send + Sync {
    /// Returns what becomes of the objects of one unit.
    fn process(&self, subject: &Subject<'_>, objects: Vec<Object>) -> Result<Vec<Object>, Vec<Problem>>;
}

/// One kind of parameters, and what is made of them: an entry of the registry of kinds that Gateways may refer to.
pub struct Parameters {
    /// Group, kind and versions.
    pub kind: ParameterKind,
    /// The schema that they must match.
    pub schema: Schema,
    /// The check of what the schema cannot say.
    pub sense: Option<Sense>,
    /// The rules by which layers of them merge.
    pub table: Table,
    /// Spec and parameters to values.
    pub generator: Arc<dyn ValuesGenerator>,
    /// Objects to objects.
    pub post_processor: Option<Arc<dyn ObjectPostProcessor>>,
}

/// A pack, ready for use.
pub struct Pack {
    /// Its manifest: what it claims, and how it merges.
    pub manifest: Manifest,
    /// Values to objects.
    pub renderer: Renderer,
    /// Conditions of the health hints in the manifest, by their number.
    pub(crate) conditions: Renderer,
    /// The kinds of `claims` and `reads`, with what their documents must look like.
    claimed: Vec<(Claim, Schema)>,
    /// The same for each of `generate`.
    pub generated: Vec<(Generated, Renderer)>,
    /// Its own kind of parameters, which also governs where nobody refers to any.
    pub own: Parameters,
    /// Further kinds that a `parametersRef` may name; their layers lie over each other and over those of `own`, so
    /// that one embeds the fields of the other.
    pub others: Vec<Parameters>,
    /// The layer of the config file, if it says anything.
    pub settings: Option<(Arc<str>, Node)>,
    /// The rules that must hold for the parameters of every unit, each with the place that says so.
    pub enforce: Vec<(Bound, Place)>,
    /// The same, ready to be checked.
    pub(crate) rules: Vec<Rule>,
    /// The rules that must hold by the manifest, each with whether a breach is only a warning.
    pub(crate) checks: Vec<(Rule, bool)>,
    /// The same with the settings for some clusters and classes.
    overrides: Vec<Override>,
    /// Whether its folder is all there is to it, so that the names that its templates see are known.
    pub is_declarative: bool,
}

/// The file that says what a pack is.
pub const MANIFEST: &str = "pack.yaml";

/// Nobody guesses as many random bytes as this.
const FEWEST_BYTES: u16 = 16;

/// A pack that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// There is no built-in pack of that name.
    #[error("there is no pack {0:?}")]
    Unknown(String),
    /// The files are those of another pack.
    #[error("its pack.yaml says that the pack is called {0:?}")]
    Name(String),
    /// A file that the pack needs is not there.
    #[error("the pack has no file {0:?}")]
    Missing(String),
    /// Its folder cannot be read.
    #[error("cannot read the pack")]
    Folder(#[source] FilesError),
    /// A file of the pack is no YAML.
    #[error("cannot read {file:?}, line {line}")]
    Yaml {
        /// The file.
        file: String,
        /// The line.
        line: u32,
        /// The mistake in the YAML.
        #[source]
        source: YamlError,
    },
    /// `pack.yaml` does not say what it must.
    #[error("cannot read pack.yaml")]
    Manifest(#[source] serde_json::Error),
    /// It says of a kind what somebody else says otherwise.
    #[error("pack {pack:?} and {other} say different things about the kind {kind}")]
    Kinds {
        /// The pack.
        pack: String,
        /// The other one, in words.
        other: String,
        /// The kind.
        kind: KindName,
    },
    /// The settings of the pack are not what they must be.
    #[error("cannot use the settings of the pack")]
    Settings(#[source] serde_json::Error),
    /// A computed value has a name that templates know already.
    #[error("the computed value {0:?} has a name that is taken")]
    Taken(String),
    /// A value that is to be made could be guessed.
    #[error("a generated value of {0} bytes can be guessed, {FEWEST_BYTES} are needed")]
    Guessable(u16),
    /// A setting is of the right type, and the generator can do nothing with it.
    #[error("cannot use {0}")]
    Setting(&'static str, #[source] Box<dyn Error + Send + Sync>),
    /// A template cannot be used.
    #[error("cannot use the templates")]
    Template(#[source] TemplateError),
    /// Templates call something with arguments that it does not have.
    #[error("cannot use the templates:{}", listed(.0))]
    Arguments(Vec<Problem>),
    /// The schema of the parameters cannot be used.
    #[error("cannot use the schema of the parameters")]
    Schema(#[source] SchemaError),
    /// Rules to enforce that cannot be enforced, or a layer of the config file that is none.
    #[error("cannot use what is said of its parameters:{}", listed(.0))]
    Rules(Vec<Problem>),
}

/// Writes each problem on a line of its own.
fn listed(problems: &[Problem]) -> String {
    problems.iter().flat_map(|problem| ["\n  ".to_owned(), problem.to_string()]).collect()
}

impl Pack {
    /// Puts a pack together from its files, with a generator of its own.
    pub fn new(
        files: &BTreeMap<&str, &str>,
        schema: Schema,
        generator: Arc<dyn ValuesGenerator>,
    ) -> Result<Self, PackError> {
        Self::of_manifest(Manifest::read(files)?, files, schema, generator)
    }

    fn of_manifest(
        manifest: Manifest,
        files: &BTreeMap<&str, &str>,
        schema: Schema,
        generator: Arc<dyn ValuesGenerator>,
    ) -> Result<Self, PackError> {
        let deletes = manifest.nulls == Nulls::Delete;
        let (kind, table) = (manifest.parameters.clone(), Table::new(&manifest.merge).deleting(deletes));
        let schema = schema.taking_nulls(deletes);
        let own = Parameters { kind, schema, sense: None, table, generator, post_processor: None };
        let claimed = manifest.claims.iter().chain(&manifest.reads);
        let claimed = claimed.map(|claim| Ok((claim.clone(), claim.read_schema(files)?)));
        let pack = Self {
            renderer: manifest.renderer(files)?,
            conditions: manifest.conditions()?,
            claimed: claimed.collect::<Result<_, PackError>>()?,
            generated: manifest.generated(files)?,
            manifest,
            own,
            others: Vec::new(),
            settings: None,
            enforce: Vec::new(),
            rules: Vec::new(),
            checks: Vec::new(),
            overrides: Vec::new(),
            is_declarative: false,
        };
        let mistakes = texts::wrong_arguments(files, &pack.manifest);
        if mistakes.is_empty() { Ok(pack) } else { Err(PackError::Arguments(mistakes)) }
    }

    /// Adds a kind of parameters: a reference to it leads to its generator, which may ask that of [`Self::own`].
    #[must_use]
    pub fn with_kind(mut self, parameters: Parameters) -> Self {
        self.others.push(parameters);
        self
    }

    /// Sets what documents of a kind must look like that it claims or reads.
    #[must_use]
    pub fn with_schema(mut self, kind: &str, schema: Schema) -> Self {
        if let Some((_, place)) = self.claimed.iter_mut().find(|(claim, _)| claim.kind == kind) {
            *place = schema;
        }
        self
    }

    /// Tells whether documents of a kind, other than Gateways, are specs that it renders.
    pub fn claims(&self, group: &str, kind: &str) -> bool {
        self.manifest.claims.iter().any(|claim| claim.group == group && claim.kind == kind)
    }

    /// Returns the kinds of parameters that a reference may name.
    pub fn kinds(&self) -> impl Iterator<Item = &Parameters> {
        std::iter::once(&self.own).chain(&self.others)
    }

    /// Sets the layer of the config file: parameters for every unit, below those of classes.
    #[must_use]
    pub fn with_settings(self, file: impl Into<Arc<str>>, node: Node) -> Self {
        Self { settings: Some((file.into(), node)), ..self }
    }

    /// Sets what must hold for the parameters of every unit: bounds, and where they stand.
    #[must_use]
    pub fn with_enforce(self, enforce: Vec<(Bound, Place)>) -> Self {
        Self { enforce, ..self }
    }

    /// Reads what must hold: what the config file says, and what the manifest does.
    /// Gives up the schemas of its kinds, which are the same whatever its settings are.
    fn hand_over(&mut self, kinds: &mut Kinds) {
        for parameters in std::iter::once(&mut self.own).chain(&mut self.others) {
            let (name, versions) = (parameters.kind.name(), parameters.kind.versions.clone());
            let schema = std::mem::replace(&mut parameters.schema, Schema::anything());
            let sense = parameters.sense;
            let read = Kind { sense, is_parameters: true, ..Kind::new(versions, true, schema) };
            kinds.insert(name, read);
        }
        for (claim, schema) in std::mem::take(&mut self.claimed) {
            // The kind of parameters may be claimed too, and has its schema already.
            let name = claim.name();
            // What is only looked up is rendered by nobody.
            let are_names_checked = !self.manifest.reads.iter().any(|read| read.name() == name);
            let read = Kind { are_names_checked, ..Kind::new(claim.versions, true, schema) };
            kinds.entry(name).or_insert(read);
        }
    }

    fn read_rules(&mut self, kinds: &Kinds) -> Result<(), PackError> {
        let schema = |kind: &ParameterKind| Some(&kinds.get(&kind.name())?.schema);
        let words = Vocabulary::new(self.kinds().filter_map(|parameters| schema(&parameters.kind)), kinds);
        let mut problems = self.settings_mistakes(schema(&self.own.kind));
        let mut rule = |bound: &Bound, place: &Place| match Rule::new(bound, place.clone(), &words) {
            Ok(rule) => Some(rule),
            Err(error) => {
                problems.push(error.at(place.clone()));
                None
            }
        };
        let rules = self.enforce.iter().filter_map(|(bound, place)| rule(bound, place)).collect();
        let place = Place::file(format!("{}/{MANIFEST}", self.manifest.name));
        let check = |check: &manifest::Check| {
            let bound = Bound { rule: check.rule.clone(), message: Some(check.message.clone()) };
            Some((rule(&bound, &place)?, check.warning))
        };
        let checks = self.manifest.checks.iter().filter_map(check).collect();
        let of_kinds =
            self.manifest.kinds.values().flat_map(BTreeMap::values).filter_map(|row| row.health.expression());
        let hints = self.manifest.health.iter().map(|hint| hint.current.as_str()).chain(of_kinds);
        problems.extend(hints.filter_map(|current| {
            let error = RuleError::of_expression(current, &Vocabulary::of_object())?;
            Some(error.at(place.clone()))
        }));
        if !problems.is_empty() {
            return Err(PackError::Rules(problems));
        }
        (self.rules, self.checks) = (rules, checks);
        Ok(())
    }

    /// Returns what is wrong with the layer of the config file.
    fn settings_mistakes(&self, schema: Option<&Schema>) -> Vec<Problem> {
        let (Some((file, node)), Some(schema)) = (&self.settings, schema) else { return Vec::new() };
        let path = ["packs", self.manifest.name.as_str(), "parameters"];
        let problem = |mistake: Mistake| {
            let place = Place::at(file, mistake.position);
            Problem { scope: Scope::File, ..mistake.at(place) }
        };
        check_layer(node, schema, "spec", &path).into_iter().map(problem).collect()
    }

    /// Writes onto objects when they count as healthy, where the pack says more than their kind.
    pub(crate) fn with_health(&self, objects: Vec<Object>, values: &Value) -> Result<Vec<Object>, RenderError> {
        let mut hints = Vec::new();
        for (index, hint) in self.manifest.health.iter().enumerate() {
            let holds = hint.when.is_none() || self.conditions.evaluate(&format!("health.{index}"), values)? == true;
            hints.extend(holds.then_some(hint));
        }
        let hinted = |object: Object| match hints.iter().find(|hint| hint.kind == object.id().kind) {
            Some(hint) => {
                let message = hint.message.clone().map(|message| (health::HINT_MESSAGE.to_owned(), message));
                let current = (health::HINT.to_owned(), hint.current.clone());
                object.with_metadata("annotations", [current].into_iter().chain(message))
            }
            None => object,
        };
        Ok(objects.into_iter().map(hinted).collect())
    }

    /// Tells whether what it renders may depend on what the cluster can do.
    pub(crate) fn asks_clusters(&self) -> bool {
        self.manifest.operator.is_some()
    }

    /// Returns the layer of the config file.
    pub(crate) fn settings_layer(&self) -> Option<Layer<'_>> {
        let (file, node) = self.settings.as_ref()?;
        Some(Layer::new(LayerName::Settings, Arc::clone(file), node))
    }
}

/// Reads the settings of a pack; `null` takes the defaults.
pub fn settings<T: DeserializeOwned + Default>(settings: &Value) -> Result<T, PackError> {
    match settings {
        Value::Null => Ok(T::default()),
        settings => serde_json::from_value(settings.clone()).map_err(PackError::Settings),
    }
}

/// Reads the only document of a file of a pack.
pub fn document(files: &BTreeMap<&str, &str>, name: &str) -> Result<Node, PackError> {
    last(files, name, yaml::parse)
}

/// Reads the last document of a file of a pack without positions, which takes half the time.
pub fn value(files: &BTreeMap<&str, &str>, name: &str) -> Result<Value, PackError> {
    last(files, name, yaml::parse_values)
}

fn last<T>(
    files: &BTreeMap<&str, &str>,
    name: &str,
    parse: fn(&str) -> Result<Vec<T>, YamlError>,
) -> Result<T, PackError> {
    let documents = parse(file(files, name)?);
    let mut documents = documents.map_err(|source| {
        let line = source.position.line;
        PackError::Yaml { file: name.to_owned(), line, source }
    })?;
    documents.pop().ok_or_else(|| PackError::Missing(name.to_owned()))
}

fn file<'a>(files: &BTreeMap<&str, &'a str>, name: &str) -> Result<&'a str, PackError> {
    files.get(name).copied().ok_or_else(|| PackError::Missing(name.to_owned()))
}
