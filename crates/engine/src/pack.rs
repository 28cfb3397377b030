//! Packs: what knows how to turn one family of specs into objects.
//!
//! A pack is a folder of data (`pack.yaml`, defaults, Tera templates) and, where values must be computed, a
//! [`ValuesGenerator`] in Rust. The renderer knows nothing of gateways, and a generator knows nothing of templates.

pub mod agentgateway;
pub mod gateway;
pub mod kgateway;
pub mod overlay;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::enforce::Rule;
use crate::enforce::words::Vocabulary;
use crate::merge::origin::{Layer, LayerName, Merged};
use crate::merge::{Line, Table};
use crate::object::Object;
use crate::problem::{Place, Problem};
use crate::render::{Renderer, TemplateError};
use crate::schema::{Schema, SchemaError};
use crate::spec::gateway::Gateway;
use crate::spec::listener_set::ListenerSet;
use crate::spec::overlay::Bound;
use crate::spec::{Document, Kind, Kinds, Sense, base_kinds};
use crate::yaml::{self, Node, YamlError};
use overlay::Overlay;

/// The spec that a unit is rendered from, with all that belongs to it.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// The Gateway as it was written.
    pub document: &'a Document,
    /// The Gateway.
    pub gateway: &'a Gateway,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its class.
    pub class: &'a str,
    /// The sets that attach to it, in the order of their names.
    pub listener_sets: &'a [ListenerSet],
    /// The same sets as they were written.
    pub listener_set_documents: &'a [&'a Document],
    /// Its parameters, the lowest layer first, without the built-in one.
    pub layers: &'a [Layer<'a>],
}

impl Subject<'_> {
    /// Returns a problem with the spec as a whole.
    pub fn problem(&self, message: &str) -> Problem {
        Problem::document(self.document.place(), message).about(self.document.id.clone())
    }
}

/// Computes the values that templates need from a spec and its parameters.
pub trait ValuesGenerator: Send + Sync {
    /// Returns the lowest layer of parameters, before what `above` says is merged over it.
    fn defaults(&self, subject: &Subject<'_>, above: &[Layer<'_>]) -> Merged;

    /// Returns the values of every template, or `None` if somebody else provisions this one (*self-managed*).
    fn values(&self, subject: &Subject<'_>, parameters: &Merged) -> Result<Option<Value>, Vec<Problem>>;

    /// Returns remarks about parameters that are allowed and yet hardly what was meant; they hold nothing back.
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
}

/// Changes objects after they are rendered, before they are marked; it may add objects.
pub trait ObjectPostProcessor: Send + Sync {
    /// Returns what becomes of the objects of one unit. `layers` are the parameters, the lowest layer first.
    fn process(
        &self,
        subject: &Subject<'_>,
        layers: &[Layer<'_>],
        objects: Vec<Object>,
    ) -> Result<Vec<Object>, Vec<Problem>>;
}

/// What `pack.yaml` says.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    /// The name, as in `packs.<name>` of the config.
    pub name: String,
    /// The `controllerName`s of classes whose Gateways it renders.
    pub controllers: Vec<String>,
    /// Classes that exist without a document, because the control plane makes them: name to controller.
    #[serde(default)]
    pub classes: BTreeMap<String, String>,
    /// The kind of its parameters.
    pub parameters: ParameterKind,
    /// How layers of parameters merge.
    #[serde(default)]
    pub merge: Vec<Line>,
    /// The templates, in the order in which they are rendered.
    pub templates: Vec<String>,
    /// How its control plane is told that somebody else provisions a Gateway; absent if it cannot be told.
    #[serde(default)]
    pub self_managed: Option<SelfManaged>,
    /// The parameters that patch what is rendered.
    #[serde(default)]
    pub overlays: Vec<Overlay>,
    /// Secrets with a value that is made once, on each cluster.
    #[serde(default)]
    pub generate: Vec<Generated>,
}

/// A Secret with a value that is made once. Templates do not see the value.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Generated {
    /// The template that yields the Secret without the value, or nothing.
    pub template: String,
    /// The field of `data` for the value.
    pub key: String,
    /// How many random bytes it has.
    pub bytes: u16,
    /// How they are written.
    pub encoding: Encoding,
}

/// How random bytes are written as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// Two lower-case digits a byte.
    Hex,
    /// Base64 with padding.
    Base64,
}

/// How a control plane is told that somebody else provisions a Gateway.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SelfManaged {
    /// The `spec` of parameters that say so.
    pub spec: Value,
    /// The field manager of the control plane's own deployer.
    pub deployer: String,
}

/// A kind of parameters.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ParameterKind {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Versions that are read.
    pub versions: Vec<String>,
}

/// One kind of parameters, and what is made of them: an entry of the registry that kgateway's EP-11376 asks for.
pub struct Parameters {
    /// Group, kind and versions.
    pub kind: ParameterKind,
    /// What they must look like.
    pub schema: Schema,
    /// What the schema cannot say.
    pub sense: Option<Sense>,
    /// How layers of them merge.
    pub table: Table,
    /// Spec and parameters to values.
    pub generator: Arc<dyn ValuesGenerator>,
    /// Objects to objects.
    pub post_processor: Option<Arc<dyn ObjectPostProcessor>>,
}

/// A pack, ready for use.
pub struct Pack {
    /// What it claims, and how it merges.
    pub manifest: Manifest,
    /// Values to objects.
    pub renderer: Renderer,
    /// The same for each of `generate`.
    pub generated: Vec<(Generated, Renderer)>,
    /// Its own kind of parameters, which also governs where nobody refers to any.
    pub own: Parameters,
    /// Further kinds that a `parametersRef` may name; their layers lie over each other and over those of `own`, so
    /// that one embeds the fields of the other.
    pub others: Vec<Parameters>,
    /// The layer of the config file, if it says anything.
    pub settings: Option<(Arc<str>, Node)>,
    /// What must hold for the parameters of every unit, and where that is said.
    pub enforce: Vec<(Bound, Place)>,
    /// The same, ready to be checked.
    pub(crate) rules: Vec<Rule>,
}

/// Nobody guesses as many random bytes as this.
const FEWEST_BYTES: u16 = 16;

/// A pack that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// There is no built-in pack of that name.
    #[error("there is no pack {0:?}")]
    Unknown(String),
    /// A file that the pack needs is not there.
    #[error("the pack has no file {0:?}")]
    Missing(String),
    /// A file of the pack is no YAML.
    #[error("cannot read {file:?}, line {line}")]
    Yaml {
        /// The file.
        file: String,
        /// The line.
        line: u32,
        /// What is wrong.
        #[source]
        source: YamlError,
    },
    /// `pack.yaml` does not say what it must.
    #[error("cannot read pack.yaml")]
    Manifest(#[source] serde_json::Error),
    /// The settings of the pack are not what they must be.
    #[error("cannot use the settings of the pack")]
    Settings(#[source] serde_json::Error),
    /// A value that is to be made could be guessed.
    #[error("a generated value of {0} bytes can be guessed, {FEWEST_BYTES} are needed")]
    Guessable(u16),
    /// The authorities that vouch for the control plane are none.
    #[error("cannot use xds.tls")]
    Authorities(#[source] gateway::authorities::CaError),
    /// A template cannot be used.
    #[error("cannot use the templates")]
    Template(#[source] TemplateError),
    /// The schema of the parameters cannot be used.
    #[error("cannot use the schema of the parameters")]
    Schema(#[source] SchemaError),
    /// What is to be enforced cannot be.
    #[error("cannot use its rules:{}", .0.iter().flat_map(|problem| ["\n  ".to_owned(), problem.to_string()]).collect::<String>())]
    Rules(Vec<Problem>),
}

impl Pack {
    /// Returns a built-in pack with the settings of the config file (`packs.<name>`; `null` for none).
    pub fn builtin(name: &str, settings: &Value) -> Result<Self, PackError> {
        match name {
            "agentgateway" => agentgateway::pack(settings),
            "kgateway" => kgateway::pack(settings),
            _ => Err(PackError::Unknown(name.to_owned())),
        }
    }

    /// Puts a pack together from its files.
    pub fn new(
        files: &BTreeMap<&str, &str>,
        schema: Schema,
        generator: Arc<dyn ValuesGenerator>,
    ) -> Result<Self, PackError> {
        let manifest: Manifest =
            serde_json::from_value(document(files, "pack.yaml")?.to_value()).map_err(PackError::Manifest)?;
        let text = |name: &String| Ok((name.clone(), file(files, name)?.to_owned()));
        let templates = manifest.templates.iter().map(text).collect::<Result<Vec<_>, PackError>>()?;
        let (kind, table) = (manifest.parameters.clone(), Table::new(&manifest.merge));
        let generated = manifest.generate.iter().map(|value| {
            if value.bytes < FEWEST_BYTES {
                return Err(PackError::Guessable(value.bytes));
            }
            let renderer = Renderer::new(&[text(&value.template)?]).map_err(PackError::Template)?;
            Ok((value.clone(), renderer))
        });
        let generated = generated.collect::<Result<Vec<_>, PackError>>()?;
        Ok(Self {
            renderer: Renderer::new(&templates).map_err(PackError::Template)?,
            generated,
            manifest,
            own: Parameters { kind, schema, sense: None, table, generator, post_processor: None },
            others: Vec::new(),
            settings: None,
            enforce: Vec::new(),
            rules: Vec::new(),
        })
    }

    /// Adds a kind of parameters: a reference to it leads to its generator, which may ask that of [`Self::own`].
    #[must_use]
    pub fn with_kind(mut self, parameters: Parameters) -> Self {
        self.others.push(parameters);
        self
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

    fn read_rules(&self, kinds: &Kinds) -> Result<Vec<Rule>, PackError> {
        let schema = |kind: &ParameterKind| Some(&kinds.get(&(kind.group.clone(), kind.kind.clone()))?.schema);
        let words = Vocabulary::new(self.kinds().filter_map(|parameters| schema(&parameters.kind)), kinds);
        let (mut rules, mut problems) = (Vec::new(), Vec::new());
        for (bound, place) in &self.enforce {
            match Rule::new(bound, place.clone(), &words) {
                Ok(rule) => rules.push(rule),
                Err(error) => problems.push(error.at(place.clone())),
            }
        }
        if problems.is_empty() { Ok(rules) } else { Err(PackError::Rules(problems)) }
    }

    /// Returns the layer of the config file.
    pub(crate) fn settings_layer(&self) -> Option<Layer<'_>> {
        let (file, node) = self.settings.as_ref()?;
        Some(Layer::new(LayerName::Settings, Arc::clone(file), node))
    }
}

/// Reads the only document of a file of a pack.
pub(crate) fn document(files: &BTreeMap<&str, &str>, name: &str) -> Result<Node, PackError> {
    let mut documents = yaml::parse(file(files, name)?).map_err(|source| PackError::Yaml {
        file: name.to_owned(),
        line: source.position.line,
        source,
    })?;
    documents.pop().ok_or_else(|| PackError::Missing(name.to_owned()))
}

fn file<'a>(files: &BTreeMap<&str, &'a str>, name: &str) -> Result<&'a str, PackError> {
    files.get(name).copied().ok_or_else(|| PackError::Missing(name.to_owned()))
}

/// Packs side by side, and the kinds of documents that they read.
pub struct Packs {
    packs: Vec<Pack>,
    kinds: Kinds,
}

impl Packs {
    /// Puts packs side by side; of two that claim one controller the first holds.
    pub fn new(packs: Vec<Pack>) -> Result<Self, PackError> {
        let mut kinds = base_kinds().map_err(PackError::Schema)?;
        let mut all = Vec::new();
        for mut pack in packs {
            for parameters in std::iter::once(&mut pack.own).chain(&mut pack.others) {
                let ParameterKind { group, kind, versions } = parameters.kind.clone();
                let schema = std::mem::replace(&mut parameters.schema, Schema::anything());
                kinds.insert((group, kind), Kind { versions, namespaced: true, schema, sense: parameters.sense });
            }
            all.push(pack);
        }
        for pack in &mut all {
            pack.rules = pack.read_rules(&kinds)?;
        }
        Ok(Self { packs: all, kinds })
    }

    /// Returns the kinds that can be read.
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// Returns the packs, in their order.
    pub fn all(&self) -> &[Pack] {
        &self.packs
    }

    /// Returns what must hold for the parameters of units, whichever pack renders them.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.packs.iter().flat_map(|pack| &pack.rules)
    }

    /// Returns the pack that renders the Gateways of a controller.
    pub fn of_controller(&self, controller: &str) -> Option<&Pack> {
        self.packs.iter().find(|pack| pack.manifest.controllers.iter().any(|name| name == controller))
    }

    /// Returns the controller of a class that exists without a document.
    pub fn builtin_class(&self, class: &str) -> Option<&str> {
        self.packs.iter().find_map(|pack| pack.manifest.classes.get(class)).map(String::as_str)
    }

    /// Returns the names of the classes that exist without a document.
    pub fn builtin_classes(&self) -> impl Iterator<Item = &str> {
        self.packs.iter().flat_map(|pack| pack.manifest.classes.keys()).map(String::as_str)
    }
}
