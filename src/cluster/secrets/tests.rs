use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use gatewright_engine::error::Chain;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::{Format, Found, Secret};
use crate::cluster::exec::allow::Exec;
use crate::cluster::kubeconfig::stored::Stored;
use crate::cluster::kubeconfig::{Access, KubeconfigError, Login, Origin, Settings, StandardLookup, load};

const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
const KEY: &str = "-----BEGIN PRIVATE KEY-----\nsesame\n-----END PRIVATE KEY-----\n";

fn base64(text: &str) -> String {
    BASE64_STANDARD.encode(text)
}

fn secret(name: &str, labels: &Value, data: &[(&str, &str)]) -> Secret {
    let data: Value = data.iter().map(|(key, value)| ((*key).to_owned(), Value::from(base64(value)))).collect();
    let metadata = json!({"name": name, "namespace": "fleet", "labels": labels});
    serde_json::from_value(json!({"metadata": metadata, "data": data})).expect("it is a Secret")
}

fn loaded(found: Found) -> Result<Access, KubeconfigError> {
    let stored = Stored::new("fleet", "Secret fleet/eu of clusterSecrets.fleet", found.content);
    assert!(!format!("{stored:?}").contains("sesame"));
    let exec = Exec { allow: vec!["aws".into()], ..Exec::default() };
    let settings = Settings { exec, origin: Origin::Secret(stored), ..Settings::default() };
    load("eu", &settings, &StandardLookup::default())
}

#[track_caller]
fn refused(found: Found, says: &str, hint: &str) {
    let error = loaded(found).expect_err(says);
    let text = format!("{} ({})", Chain(&error), error.hint);
    assert!(text.starts_with("Secret fleet/eu of clusterSecrets.fleet: "), "{text}");
    assert!(text.contains(says) && text.contains(hint), "{text:?} does not say {says:?} and {hint:?}");
    assert!(!format!("{text} {error:?}").contains("sesame"), "{text}");
}

fn argo(server: &str, config: &str) -> Found {
    let labels = json!({"argocd.argoproj.io/secret-type": "cluster", "env": "prod"});
    let secret = secret("eu", &labels, &[("name", "eu-1\n"), ("server", server), ("config", config)]);
    Format::ArgoCd.read(&secret).expect("it is a cluster")
}

fn argo_with(config: &Value) -> Found {
    argo("https://10.0.0.1:6443", &config.to_string())
}

#[test]
fn a_secret_of_argo_cd_is_a_cluster() {
    let tls = json!({"caData": base64(CERTIFICATE), "serverName": "eu.example.com", "insecure": false});
    let found = argo_with(&json!({"bearerToken": "sesame", "tlsClientConfig": tls, "proxyUrl": "http://proxy:3128"}));
    assert_eq!(found.name.as_deref(), Ok("eu-1"));
    assert_eq!(json!(found.labels), json!({"env": "prod"}), "what finds it says nothing of the cluster");
    let access = loaded(found).expect("it is good");
    assert!(matches!(&access.login, Login::Token(token) if token.expose_secret() == "sesame"));
    assert_eq!(access.config.cluster_url.to_string(), "https://10.0.0.1:6443/");
    assert_eq!(access.config.tls_server_name.as_deref(), Some("eu.example.com"));
    assert_eq!(access.config.root_cert, Some(vec![vec![0, 0, 0]]));
    assert!(access.config.proxy_url.is_some());

    let tls = json!({"certData": base64(CERTIFICATE), "keyData": base64(KEY)});
    let access = loaded(argo_with(&json!({"tlsClientConfig": tls}))).expect("it is good");
    assert!(access.identity.is_some() && matches!(access.login, Login::None));
    let access = loaded(argo_with(&json!({"username": "root", "password": "sesame"}))).expect("it is good");
    assert!(matches!(access.login, Login::Password(name, _) if name == "root"));
    let exec = json!({"command": "aws", "args": ["eks"], "apiVersion": "client.authentication.k8s.io/v1beta1"});
    let access = loaded(argo_with(&json!({"execProviderConfig": exec, "bearerToken": "old"}))).expect("it is allowed");
    assert!(matches!(access.login, Login::Plugin(_)), "the plugin counts");
}

#[test]
fn a_secret_of_argo_cd_that_cannot_be_used_says_why() {
    let exec = |command: &str, more: Value| {
        let mut exec = json!({"command": command, "apiVersion": "client.authentication.k8s.io/v1"});
        exec["env"] = more;
        argo_with(&json!({"execProviderConfig": exec}))
    };
    let token = json!({"bearerToken": "sesame"});
    let cases = [
        (argo_with(&json!({"awsAuthConfig": {"clusterName": "sesame"}})), "awsAuthConfig", "aws eks get-token"),
        (exec("argocd-k8s-auth", json!(null)), "not allowed to run", "clusterSecrets.fleet.access.exec.allow"),
        (exec("aws", json!({"LD_PRELOAD": "sesame"})), "may not set \"LD_PRELOAD\"", "clusterSecrets.fleet.access"),
        (argo_with(&json!({"bearerToken": "sesame", "username": "a"})), "a bearerToken and a username", "remove"),
        (argo_with(&json!({"username": "a"})), "username without a password", "add the password"),
        (argo_with(&json!({})), "no credentials", "token"),
        (argo("https://kubernetes.default.svc", "{}"), "the cluster that Argo CD runs in", "matchExpressions"),
        (argo("", &token.to_string()), "it has no server", "writes server"),
        (argo("sesame", &token.to_string()), "its server is not the address", "https://host:port"),
        (argo("http://127.0.0.1:8001", &token.to_string()), "without encryption", "access.allowInsecureTls"),
        (
            argo("https://a", "{\"bearerToken\": \"sesa"),
            "its config is not JSON: line 1, column 21",
            "docs/clusters.md",
        ),
        (argo("https://a", "{\"bearerToken\": sesame}"), "its config is not JSON: line 1", ""),
        (argo("https://a", "{\"tlsClientConfig\": \"sesame\"}"), "not of the form that Argo CD reads: line 1", ""),
        (argo_with(&json!({"bearerToken": "two\nsesames"})), "its token is empty or no token", "fetch"),
        (
            argo_with(&json!({"tlsClientConfig": {"insecure": true}, "bearerToken": "sesame"})),
            "whoever answers",
            "access",
        ),
        (argo_with(&json!({"tlsClientConfig": {"keyData": base64(KEY)}})), "without a client-certificate", ""),
        (argo_with(&json!({"tlsClientConfig": {"caData": "sesame!"}})), "certificate-authority-data is not base64", ""),
        (argo_with(&json!({"bearerToken": "sesame", "proxyUrl": "sesame"})), "proxy-url is not the address", ""),
    ];
    for (found, says, hint) in cases {
        refused(found, says, hint);
    }
    let nameless = secret("eu", &json!({}), &[("server", "https://a"), ("config", "{}")]);
    let found = Format::ArgoCd.read(&nameless).expect("it is a cluster");
    assert_eq!(found.name.map_err(|error| error.problem), Err("it has no name".to_owned()));
}

fn capi(value: &str) -> Found {
    let labels = json!({"cluster.x-k8s.io/cluster-name": "eu", "region": "eu"});
    Format::ClusterApi.read(&secret("eu-kubeconfig", &labels, &[("value", value)])).expect("it is a cluster")
}

fn kubeconfig(cluster: &Value, user: &Value) -> String {
    json!({
        "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": cluster}], "users": [{"name": "a", "user": user}],
    })
    .to_string()
}

#[test]
fn a_secret_of_cluster_api_is_a_cluster() {
    let server = json!({"server": "https://10.0.0.1:6443"});
    let found = capi(&kubeconfig(&server, &json!({"token": "sesame"})));
    assert_eq!((found.name.as_deref(), json!(found.labels)), (Ok("eu"), json!({"region": "eu"})));
    assert!(loaded(found).is_ok());

    let of = |name: &str, labels: Value| Format::ClusterApi.read(&secret(name, &labels, &[]));
    let label = json!({"cluster.x-k8s.io/cluster-name": "eu"});
    assert!(of("eu-ca", label.clone()).is_none(), "its certificates are no cluster");
    assert!(of("eu-user-kubeconfig", label.clone()).is_none(), "nor is the kubeconfig of users");
    assert!(of("eu-kubeconfig", json!({})).is_none());
    refused(of("eu-kubeconfig", label).expect("it is a cluster"), "it has no value", "writes value");
}

#[test]
fn a_kubeconfig_in_a_secret_leads_to_no_file_and_is_not_quoted() {
    let server = json!({"server": "https://10.0.0.1:6443"});
    let of_user = |user: Value| capi(&kubeconfig(&server, &user));
    let authority = json!({"server": "https://a", "certificate-authority": "/etc/hostname"});
    let near = json!({"server": "https://a", "proxy-url": "http://localhost.:3128"});
    let exec = json!({"command": "./aws", "apiVersion": "client.authentication.k8s.io/v1"});
    let cases = [
        (of_user(json!({"tokenFile": "/etc/hostname"})), "its tokenFile is the name of a file"),
        (of_user(json!({"client-certificate": "/etc/hostname"})), "its client-certificate is the name of a file"),
        (capi(&kubeconfig(&authority, &json!({"token": "sesame"}))), "its certificate-authority is the name of a file"),
        (of_user(json!({"exec": exec})), "\"./aws\" is not allowed"),
        (capi(""), "it has no value"),
        (capi(" \n"), "the kubeconfig in it is empty"),
        (capi("users:\n- name: a\n  user: {token: \"sesame"), "is not YAML: line "),
        (capi("sesame: 1\nsesame: 2\n"), "is not YAML: line "),
        (capi("users: sesame\n"), "what is in it is not a kubeconfig"),
        (capi("kind: Config\n"), "it has no current context"),
        (capi("current-context: sesame\ncontexts: [{name: sesame-2, context: {cluster: a}}]\n"), "it has no context …"),
        (capi(&kubeconfig(&json!({"server": "http://sesame:6443/"}), &json!({"token": "a"}))), "its server … would be"),
        (capi(&kubeconfig(&near, &json!({"token": "a"}))), "its proxy-url leads to this host"),
    ];
    for (found, says) in cases {
        refused(found, says, "");
    }
    let mut damaged = secret("eu-kubeconfig", &json!({"cluster.x-k8s.io/cluster-name": "eu"}), &[]);
    damaged.data = Some([("value".to_owned(), "sesame%".to_owned())].into());
    refused(Format::ClusterApi.read(&damaged).expect("it is a cluster"), "its value is not base64 of a text", "");
    assert!(!format!("{damaged:?}").contains("sesame"));
}
