//! `pack.yaml`: what a pack claims, and what about it is data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::overlay::OverlayParameter;
use super::{FEWEST_BYTES, MANIFEST, PackError, file, value};
use crate::kinds::Rows;
use crate::merge::Line;
use crate::render::Renderer;
use crate::schema::Schema;

/// The content of `pack.yaml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    /// The name, as in `packs.<name>` of the config.
    pub name: String,
    /// The specs that it renders, beside Gateways.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// Documents that its generator looks up: they are no specs, and no business of anybody else.
    #[serde(default)]
    pub reads: Vec<Claim>,
    /// The `controllerName`s of classes whose Gateways it renders.
    #[serde(default)]
    pub controllers: Vec<String>,
    /// Classes that exist without a document, because the control plane makes them: name to controller.
    #[serde(default)]
    pub classes: BTreeMap<String, String>,
    /// Classes that exist without a document and whose Gateways are left to their controllers: name to controller.
    #[serde(default)]
    pub foreign_classes: BTreeMap<String, String>,
    /// The kind of its parameters.
    pub parameters: ParameterKind,
    /// The rules by which layers of parameters merge.
    #[serde(default)]
    pub merge: Vec<Line>,
    /// The meaning of a field of parameters that is null.
    #[serde(default)]
    pub nulls: Nulls,
    /// The lowest layer of parameters, a file: of a pack without a generator of its own.
    pub defaults: Option<String>,
    /// Values that are computed, in this order: of a pack without a generator of its own.
    #[serde(default)]
    pub values: Vec<Computed>,
    /// The templates, in the order in which they are rendered.
    pub templates: Vec<Template>,
    /// Conditions that must hold for each spec and its merged parameters.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// When objects count as healthy, where their kind alone does not say it.
    #[serde(default)]
    pub health: Vec<HealthHint>,
    /// The kinds of objects that it renders, beside those of Kubernetes.
    #[serde(default)]
    pub kinds: Rows,
    /// The operator that provisions its specs where it is at work.
    pub operator: Option<Operator>,
    /// The way in which its control plane is told that somebody else provisions a Gateway; absent if it cannot be told.
    pub self_managed: Option<SelfManaged>,
    /// By what its objects are known on any cluster, whoever has made them.
    pub traces: Option<Traces>,
    /// The parameters that patch what is rendered.
    #[serde(default)]
    pub overlays: Vec<OverlayParameter>,
    /// Secrets with a generated value, one on each cluster.
    #[serde(default)]
    pub generate: Vec<Generated>,
}

/// The suffix of files with parts of templates: they render nothing by themselves.
pub(super) const PART: &str = ".tera";

impl Manifest {
    /// Reads `pack.yaml`.
    pub(super) fn read(files: &BTreeMap<&str, &str>) -> Result<Self, PackError> {
        serde_json::from_value(value(files, MANIFEST)?).map_err(PackError::Manifest)
    }

    /// Loads the templates, with the parts that they may include.
    pub(super) fn renderer(&self, files: &BTreeMap<&str, &str>) -> Result<Renderer, PackError> {
        let text = |template: &Template| {
            let text = file(files, &template.file)?;
            // On the line on which the template begins, so that its lines keep their numbers.
            let text = template
                .when
                .as_ref()
                .map_or_else(|| text.to_owned(), |when| format!("{{% if {when} %}}{text}{{% endif %}}"));
            Ok((template.file.clone(), text))
        };
        let templates = self.templates.iter().map(text).collect::<Result<Vec<_>, PackError>>()?;
        let parts = files.iter().filter(|(name, _)| name.ends_with(PART));
        let parts: Vec<_> = parts.map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        Renderer::with_parts(&templates, &parts).map_err(PackError::Template)
    }

    /// Loads the conditions of health hints, by their number.
    pub(super) fn conditions(&self) -> Result<Renderer, PackError> {
        let conditions = self.health.iter().enumerate();
        let conditions = conditions.filter_map(|(index, hint)| Some((format!("health.{index}"), hint.when.clone()?)));
        Renderer::of_expressions(conditions).map_err(PackError::Template)
    }

    /// Loads the templates of generated values.
    pub(super) fn generated(&self, files: &BTreeMap<&str, &str>) -> Result<Vec<(Generated, Renderer)>, PackError> {
        let generated = self.generate.iter().map(|value| {
            if value.bytes < FEWEST_BYTES {
                return Err(PackError::Guessable(value.bytes));
            }
            let text = (value.template.clone(), file(files, &value.template)?.to_owned());
            let renderer = Renderer::new(&[text]).map_err(PackError::Template)?;
            Ok((value.clone(), renderer))
        });
        generated.collect()
    }
}

impl Claim {
    /// Returns its name among the kinds that can be used.
    pub(crate) fn name(&self) -> (String, String) {
        (self.group.clone(), self.kind.clone())
    }

    /// Reads the schema of its documents.
    pub(super) fn read_schema(&self, files: &BTreeMap<&str, &str>) -> Result<Schema, PackError> {
        let Some(name) = &self.schema else { return Ok(Schema::anything()) };
        Schema::new(&value(files, name)?).map_err(PackError::Schema)
    }
}

/// A kind of documents that a pack takes for its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Claim {
    /// API group, empty for the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Versions that are read.
    pub versions: Vec<String>,
    /// The file with the JSON schema of the whole document; absent: anything goes.
    pub schema: Option<String>,
}

/// A value that is computed for templates.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Computed {
    /// Its name.
    pub name: String,
    /// An expression of the templates' language.
    pub value: String,
}

/// A template.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "WrittenTemplate")]
pub struct Template {
    /// The file.
    pub file: String,
    /// An expression of the templates' language that must be true; absent: always.
    pub when: Option<String>,
}

/// A template as it is written: its file, or that and a condition.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum WrittenTemplate {
    File(String),
    Conditional { file: String, when: Option<String> },
}

impl From<WrittenTemplate> for Template {
    fn from(written: WrittenTemplate) -> Self {
        match written {
            WrittenTemplate::File(file) => Self { file, when: None },
            WrittenTemplate::Conditional { file, when } => Self { file, when },
        }
    }
}

/// The meaning of a field of parameters that is null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Nulls {
    /// The layer says nothing of it.
    #[default]
    Nothing,
    /// It takes away what lower layers said, defaults included, as in the values of a Helm chart.
    Delete,
}

/// A condition that must hold for a spec and its merged parameters.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// An expression in CEL that must be true: over the fields of the parameters, `resource` and `cluster`.
    pub rule: String,
    /// The message for somebody who breaks it.
    pub message: String,
    /// It is said, and holds nothing back.
    #[serde(default)]
    pub warning: bool,
}

/// When objects count as healthy.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HealthHint {
    /// Their kind.
    pub kind: String,
    /// An expression of the templates' language that must be true; absent: always.
    pub when: Option<String>,
    /// An expression in CEL over `object` that is true once the object is what it should be.
    pub current: String,
    /// The message while it is not true.
    pub message: Option<String>,
}

/// By what an operator is known on a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operator {
    /// Labels of its Deployments; those of one mapping must all be there.
    pub labels: Vec<BTreeMap<String, String>>,
    /// Kinds beside those that are claimed on which it depends what is rendered.
    #[serde(default)]
    pub kinds: Vec<Kind>,
}

/// A Secret with a generated value. Templates do not see the value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Generated {
    /// The template that yields the Secret without the value, or nothing.
    pub template: String,
    /// The field of `data` for the value.
    pub key: String,
    /// The number of its random bytes.
    pub bytes: u16,
    /// The encoding in which they are written.
    pub encoding: Encoding,
}

/// The encoding of random bytes as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// Two lower-case digits a byte.
    Hex,
    /// Base64 with padding.
    Base64,
}

/// The way in which a control plane is told that somebody else provisions a Gateway.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SelfManaged {
    /// The `spec` of parameters that say so.
    pub spec: Value,
    /// The field manager of the control plane's own deployer.
    pub deployer: String,
    /// By what the control plane finds what it deletes of a Gateway that it is told to leave alone, whoever has made it.
    #[serde(default)]
    pub deletes: Option<Traces>,
    /// The settings of the pack that show in what the deployer makes.
    #[serde(default)]
    pub settings: Vec<SettingSource>,
    /// The settings of the pack that the deployer does not have.
    #[serde(default)]
    pub own_settings: Vec<String>,
}

/// A setting of a pack that shows in what a deployer has made of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum SettingSource {
    /// A label of a workload.
    Label {
        /// The setting.
        setting: String,
        /// The label.
        label: String,
    },
    /// The image of a container: `registry` and `tag` of a setting.
    Image {
        /// The setting.
        setting: String,
        /// The container.
        container: String,
    },
}

/// By what the objects of a pack are known.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Traces {
    /// The label that each of them bears; its value names the Gateway.
    pub label: String,
    /// Their kinds.
    pub kinds: Vec<Kind>,
}

/// A kind of objects.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Kind {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
}

/// A kind of parameters; its schema is that of what they say, of a pack without a generator of its own.
pub type ParameterKind = Claim;
