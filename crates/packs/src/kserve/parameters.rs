//! `LLMInferenceServiceParameters`: what a service itself cannot say about how it is provisioned.

use gatewright_engine::spec::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The whole document.
pub type LlmInferenceServiceParameters = Resource<Spec>;

/// Its `spec`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Spec {
    /// The program that makes the objects of the service.
    pub mode: Mode,
    /// Certificates of the pods.
    pub tls: Option<Tls>,
    /// The object by which a gateway calls the scheduler where that speaks TLS; absent: none, as with KServe.
    pub scheduler_trust: Option<Trust>,
    /// The preset of the scheduler: `current`, `legacy`, or the name of an `LLMInferenceServiceConfig`.
    pub scheduler_preset: Option<String>,
    /// The token with which models are loaded from Hugging Face.
    pub hugging_face_token: Option<Token>,
}

/// The object by which a gateway calls a scheduler in TLS: one of these.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(extend("x-gatewright-one-of" = ["destinationRule", "backendTLSPolicy"]))]
pub struct Trust {
    /// A `DestinationRule` for gateways of Istio. It does not verify the certificate, which the scheduler may have signed
    /// itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination_rule: Option<bool>,
    /// A `BackendTLSPolicy` for gateways that know it; it verifies the certificate.
    #[serde(rename = "backendTLSPolicy", skip_serializing_if = "Option::is_none")]
    pub backend_tls_policy: Option<Authority>,
}

/// A certificate authority.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Authority {
    /// The `ConfigMap` with its certificate as `ca.crt`, in the namespace of the service, which somebody else looks after.
    #[schemars(length(min = 1))]
    pub ca_config_map: String,
}

/// A token that is in a Secret.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// The name of the Secret, in the namespace of the service, which somebody else looks after.
    pub secret: String,
    /// Its key there.
    #[serde(default = "Token::key")]
    pub key: String,
}

impl Token {
    /// The variable in which programs look for it, which as a rule is its key too.
    pub const VARIABLE: &str = "HF_TOKEN";

    fn key() -> String {
        Self::VARIABLE.to_owned()
    }
}

/// The program that makes the objects of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// KServe's controller where it is seen at work, else this program; also where nobody can look.
    #[default]
    Auto,
    /// This program.
    Expand,
    /// KServe's controller: the service goes to the cluster as it is.
    Passthrough,
}

/// Certificates of the pods.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Tls {
    /// `off` as YAML reads it: there are none, and nothing is encrypted.
    Switch(bool),
    /// The same as a text.
    Word(Word),
    /// There are some.
    From(Source),
}

/// A word in place of a source of certificates.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Word {
    /// There are none.
    Off,
}

/// The source of certificates: one of these.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(extend("x-gatewright-one-of" = ["certManager", "secret"]))]
pub struct Source {
    /// cert-manager makes one.
    pub cert_manager: Option<CertManager>,
    /// It is in the Secret of this name, as `tls.crt` and `tls.key`, which somebody else looks after.
    pub secret: Option<String>,
}

/// The way in which cert-manager makes certificates.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CertManager {
    /// The issuer that signs.
    pub issuer_ref: IssuerRef,
    /// The time for which they are valid, such as `2160h`; the default is cert-manager's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
}

/// An issuer of cert-manager.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IssuerRef {
    /// Its name.
    pub name: String,
    /// Its kind; `Issuer` if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its group; cert-manager's own if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}
