//! The pack of kgateway: Gateway and `GatewayParameters` to an Envoy that takes its configuration from kgateway.
//!
//! The shape of the objects is that of kgateway's own deployer, so that a data plane can be taken over without a
//! restart. Left out so far, and refused with a sentence rather than ignored: overlays, autoscalers and budgets,
//! Istio's sidecars, TLS to the control plane.

mod bootstrap;
mod container;
mod lint;
mod names;
pub mod parameters;
mod ports;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Pack, PackError, Subject, ValuesGenerator, document};
use crate::merge::origin::{Layer, LayerName, Merged};
use crate::merge::{Table, over};
use crate::problem::Problem;
use crate::schema::Schema;
use crate::yaml::Node;

const FILES: [(&str, &str); 7] = [
    ("pack.yaml", include_str!("../../../../templates/kgateway/pack.yaml")),
    ("defaults.yaml", include_str!("../../../../templates/kgateway/defaults.yaml")),
    ("defaults-waypoint.yaml", include_str!("../../../../templates/kgateway/defaults-waypoint.yaml")),
    ("serviceaccount.yaml", include_str!("../../../../templates/kgateway/serviceaccount.yaml")),
    ("configmap.yaml", include_str!("../../../../templates/kgateway/configmap.yaml")),
    ("service.yaml", include_str!("../../../../templates/kgateway/service.yaml")),
    ("deployment.yaml", include_str!("../../../../templates/kgateway/deployment.yaml")),
];

/// The class whose Gateways are waypoints.
const WAYPOINT_CLASS: &str = "kgateway-waypoint";

/// The release of kgateway that the defaults belong to.
const RELEASE: &str = "v2.4.0";

/// `packs.kgateway` of the config, beside `parameters`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Settings {
    /// Where images come from.
    pub image: ImageSettings,
    /// Where the control plane answers.
    pub xds: XdsSettings,
    /// The label `app.kubernetes.io/managed-by`.
    pub managed_by: String,
    /// The label `app.kubernetes.io/version`, and the version in telemetry; empty leaves both out.
    pub version: String,
    /// Parameters of every Gateway: the shape of `GatewayParameters.spec`, below those of classes.
    #[schemars(with = "Option<parameters::Spec>")]
    pub parameters: Value,
}

/// Where images come from.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ImageSettings {
    /// The registry.
    pub registry: String,
    /// The tag.
    pub tag: String,
    /// The pull policy; empty leaves it to the cluster.
    pub pull_policy: String,
}

/// Where the control plane answers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct XdsSettings {
    /// Host name.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            image: ImageSettings::default(),
            xds: XdsSettings::default(),
            managed_by: "gatewright".to_owned(),
            version: RELEASE.trim_start_matches('v').to_owned(),
            parameters: Value::Null,
        }
    }
}

impl Default for ImageSettings {
    fn default() -> Self {
        Self { registry: "cr.kgateway.dev".to_owned(), tag: RELEASE.to_owned(), pull_policy: "IfNotPresent".to_owned() }
    }
}

impl Default for XdsSettings {
    fn default() -> Self {
        Self { host: "kgateway.kgateway-system.svc.cluster.local".to_owned(), port: 9977 }
    }
}

/// Returns the built-in pack.
pub(super) fn pack(settings: &Value) -> Result<Pack, PackError> {
    let files = BTreeMap::from(FILES);
    let settings = match settings {
        Value::Null => Settings::default(),
        settings => serde_json::from_value(settings.clone()).map_err(PackError::Settings)?,
    };
    let schema = Schema::of::<parameters::GatewayParameters>().map_err(PackError::Schema)?;
    let generator = Generator {
        defaults: document(&files, "defaults.yaml")?,
        waypoint: document(&files, "defaults-waypoint.yaml")?,
        settings,
    };
    Pack::new(&files, schema, Arc::new(generator))
}

/// The values generator.
struct Generator {
    defaults: Node,
    waypoint: Node,
    settings: Settings,
}

impl ValuesGenerator for Generator {
    fn defaults(&self, subject: &Subject<'_>, above: &[Layer<'_>]) -> Merged {
        let layer = |file: &str, node| Merged::of(&Layer::new(LayerName::Builtin, file, node));
        let mut defaults = layer("kgateway/defaults.yaml", &self.defaults);
        if subject.class == WAYPOINT_CLASS {
            defaults = over(defaults, layer("kgateway/defaults-waypoint.yaml", &self.waypoint), &Table::default());
        }
        // Not a filter of the result: contexts that users give, at any layer, must survive.
        if above.iter().any(omits_security_context) {
            defaults.remove_at("kube.envoyContainer.securityContext");
        }
        over(defaults, self.images(), &Table::default())
    }

    fn values(&self, subject: &Subject<'_>, parameters: &Merged) -> Result<Option<Value>, Vec<Problem>> {
        if parameters.get("selfManaged").is_some() {
            return Ok(None);
        }
        let unsupported = unsupported(subject, parameters);
        if !unsupported.is_empty() {
            return Err(unsupported);
        }
        let spec: parameters::Spec = serde_json::from_value(parameters.to_value())
            .map_err(|error| vec![subject.problem(&format!("cannot use the merged parameters: {error}"))])?;
        values::values(&self.settings, subject, &spec.kube.unwrap_or_default()).map(Some)
    }

    fn lint(&self, subject: &Subject<'_>, parameters: &Merged) -> Vec<Problem> {
        lint::lint(subject, parameters)
    }

    fn settings(&self) -> Value {
        let settings = Settings { parameters: Value::Null, ..self.settings.clone() };
        serde_json::to_value(settings).unwrap_or_default()
    }

    fn with_settings(&self, settings: &Value) -> Option<Arc<dyn ValuesGenerator>> {
        let settings = serde_json::from_value(settings.clone()).ok()?;
        Some(Arc::new(Self { defaults: self.defaults.clone(), waypoint: self.waypoint.clone(), settings }))
    }
}

impl Generator {
    /// What the settings of the pack say about images, as parameters.
    fn images(&self) -> Merged {
        let ImageSettings { registry, tag, pull_policy } = &self.settings.image;
        let mut image = json!({"registry": registry, "tag": tag});
        if !pull_policy.is_empty() {
            image["pullPolicy"] = Value::from(pull_policy.as_str());
        }
        Merged::of_value(
            LayerName::Settings,
            "packs.kgateway.image",
            &json!({"kube": {"envoyContainer": {"image": image}}}),
        )
    }
}

fn omits_security_context(layer: &Layer<'_>) -> bool {
    let flag = layer.node.at(["kube", "omitDefaultSecurityContext"]);
    flag.is_some_and(|flag| flag.content == crate::yaml::Content::Bool(true))
}

/// What kgateway renders and this pack does not yet: better no object than half of what was asked for.
fn unsupported(subject: &Subject<'_>, parameters: &Merged) -> Vec<Problem> {
    const FIELDS: [&str; 6] = [
        "deploymentOverlay",
        "serviceOverlay",
        "serviceAccountOverlay",
        "podDisruptionBudget",
        "horizontalPodAutoscaler",
        "verticalPodAutoscaler",
    ];
    let said = FIELDS.iter().filter_map(|field| Some((field, parameters.at(&format!("kube.{field}"))?)));
    said.map(|(field, value)| {
        let message = format!("spec.kube.{field} is not supported yet");
        Problem::document(value.origin.place.clone(), message)
            .about(subject.document.id.clone())
            .hint("the Gateway is left as it is; remove the field to have it rendered without")
    })
    .collect()
}
