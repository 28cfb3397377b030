//! The Secrets of clusters of Argo CD: `name`, `server`, and `config`, which is JSON.
//!
//! Of the other keys `namespaces`, `clusterResources`, `project` and `shard` say what Argo CD does with the cluster, and
//! mean nothing here.

use std::collections::BTreeMap;

use gatewright_engine::text::hex;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::Secret;
use crate::cluster::kubeconfig::stored::{Content, Unusable};

/// The address by which Argo CD means the cluster that it runs in.
const OWN_CLUSTER: &str = "https://kubernetes.default.svc";

/// The name of everything in the kubeconfig that is made of it.
const NAME: &str = "argo-cd";

/// The content of `config`. Keys that are not known are passed over, as Argo CD does.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Target {
    username: String,
    password: String,
    bearer_token: String,
    tls_client_config: Tls,
    exec_provider_config: Option<Exec>,
    aws_auth_config: Option<IgnoredAny>,
    disable_compression: bool,
    proxy_url: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Tls {
    insecure: bool,
    server_name: String,
    ca_data: Option<String>,
    cert_data: Option<String>,
    key_data: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Exec {
    command: String,
    args: Option<Vec<String>>,
    env: Option<BTreeMap<String, String>>,
    api_version: String,
    install_hint: String,
}

/// Returns the name of the cluster.
pub(super) fn name(secret: &Secret) -> Result<String, Unusable> {
    secret.text("name").map(|name| name.trim().to_owned())
}

/// Makes a kubeconfig of it.
pub(super) fn content(secret: &Secret) -> Result<Content, Unusable> {
    let (server, config) = (secret.text("server")?, secret.text("config")?);
    let made_of = hex(&Sha256::digest(&config)) + &server;
    let parsed: Target = serde_json::from_str(&config).map_err(|error| {
        // The words of the parser quote what they are about.
        let what = if error.is_data() { "not of the form that Argo CD reads" } else { "not JSON" };
        let problem = format!("its config is {what}: line {}, column {}", error.line(), error.column());
        Unusable::new(problem, "compare it with docs/clusters.md, or add the cluster to Argo CD again")
    })?;
    parsed.check(server.trim())?;
    Content::of_value(parsed.kubeconfig(server.trim()), made_of.as_bytes())
}

impl Target {
    /// Refuses what would be done without being meant.
    fn check(&self, server: &str) -> Result<(), Unusable> {
        if self.aws_auth_config.is_some() {
            let hint = "use execProviderConfig with `aws eks get-token`, and allow it by access.exec.allow";
            return Err(Unusable::new("its config has awsAuthConfig, which only Argo CD itself can use", hint));
        }
        if !self.bearer_token.is_empty() && !self.username.is_empty() {
            let hint = "remove one of the two";
            return Err(Unusable::new("its config has a bearerToken and a username", hint));
        }
        let has_login = !self.bearer_token.is_empty() || !self.username.is_empty() || self.tls_client_config.is_login();
        if server.trim_end_matches('/') == OWN_CLUSTER && !has_login && self.exec_provider_config.is_none() {
            let problem = "it stands for the cluster that Argo CD runs in, and has no credentials";
            let hint = "name that cluster in clusters, and leave the Secret out by matchExpressions";
            return Err(Unusable::new(problem, hint));
        }
        Ok(())
    }

    fn kubeconfig(self, server: &str) -> Value {
        let tls = self.tls_client_config;
        let cluster = json!({
            "server": server,
            "certificate-authority-data": tls.ca_data,
            "insecure-skip-tls-verify": tls.insecure,
            "tls-server-name": set(tls.server_name),
            "proxy-url": set(self.proxy_url),
            "disable-compression": self.disable_compression,
        });
        let mut user = json!({"client-certificate-data": tls.cert_data, "client-key-data": tls.key_data});
        // With a plugin Argo CD looks at none of the others.
        if let Some(exec) = self.exec_provider_config {
            user["exec"] = exec.of_kubeconfig();
        } else {
            user["token"] = json!(set(self.bearer_token));
            user["password"] = json!(set(self.password));
            user["username"] = json!(set(self.username));
        }
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": NAME,
            "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
            "clusters": [{"name": NAME, "cluster": cluster}],
            "users": [{"name": NAME, "user": user}],
        })
    }
}

impl Tls {
    fn is_login(&self) -> bool {
        self.cert_data.as_ref().is_some_and(|data| !data.is_empty())
    }
}

impl Exec {
    fn of_kubeconfig(self) -> Value {
        let variable = |(name, value)| json!({"name": name, "value": value});
        let env: Vec<Value> = self.env.unwrap_or_default().into_iter().map(variable).collect();
        json!({
            "command": self.command, "args": self.args.unwrap_or_default(), "env": env,
            "apiVersion": self.api_version, "installHint": set(self.install_hint), "interactiveMode": "Never",
        })
    }
}

/// An empty text says nothing.
fn set(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}
