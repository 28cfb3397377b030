//! From a context's cluster and user to a checked [`Access`].

use std::net::IpAddr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use gatewright_engine::text::hex;
use http::Uri;
use kube::Config;
use kube::config::Cluster;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::choice::Choice;
use super::material::Piece;
use super::user::Credentials;
use super::{Access, KubeconfigError, Login, Origin, Place, Settings, StandardLookup, user};
use crate::basics::pem::certificates;
use crate::cluster::account::Acting;
use crate::cluster::exec::Plugins;

pub(super) fn check(
    choice: &Choice<'_>,
    name: &str,
    (settings, standard): (&Settings, &StandardLookup),
    mut digest: Sha256,
) -> Result<Access, KubeconfigError> {
    let Choice { place, cluster, user } = choice;
    let server = server(place, cluster, settings, name)?;
    let piece = Piece {
        what: "certificate-authority",
        inline: cluster.certificate_authority_data.as_deref(),
        file: cluster.certificate_authority.as_deref(),
    };
    let authority = piece.read(place, &mut digest)?;
    let no_pem = || place.error("its certificate-authority holds no PEM certificate", piece.hint());
    let authorities = authority.as_deref().map(|pem| certificates(pem).ok_or_else(no_pem)).transpose()?;
    let plugins = Plugins {
        cluster: described(cluster, authority.as_deref()),
        settings: &settings.exec,
        folders: &standard.programs,
        setting: settings.setting(name, "exec"),
        flag: (settings.origin == Origin::Flags).then_some("--allow-exec"),
    };
    let Credentials { identity, login, acting_as } = user::credentials(place, *user, &plugins, &mut digest)?;
    // Behind plain http there is `kubectl proxy`, which brings the credentials itself.
    let anonymous = identity.is_none() && matches!(login, Login::None);
    if anonymous && server.scheme_str() == Some("https") {
        let hint = "give its user a token, a client certificate or an exec plugin";
        return Err(place.error("it has no credentials, and would be anonymous", hint));
    }
    let mut config = Config::new(server);
    config.tls_server_name = cluster.tls_server_name.clone().filter(|name| !name.is_empty());
    config.proxy_url = proxy(place, cluster)?;
    config.disable_compression = cluster.disable_compression.unwrap_or(false);
    config.root_cert = authorities;
    config.accept_invalid_certs = cluster.insecure_skip_tls_verify.unwrap_or(false);
    let acting = acting(place, settings, name)?.or(acting_as);
    Ok(Access { place: place.clone(), config, identity, login, acting, fingerprint: hex(&digest.finalize()) })
}

/// Returns the account of the settings, which were checked when they were read.
fn acting(place: &Place, settings: &Settings, name: &str) -> Result<Option<Acting>, KubeconfigError> {
    let setting = settings.setting(name, "impersonate");
    let acting = settings.impersonate.as_ref().map(|account| Acting::new(account, &setting)).transpose();
    acting.map_err(|error| place.error_as_it_is(format!("{setting}: {error}"), error.hint()))
}

fn server(place: &Place, cluster: &Cluster, settings: &Settings, name: &str) -> Result<Uri, KubeconfigError> {
    let text = cluster.server.as_deref().unwrap_or_default();
    let example = "write it as https://host:port";
    if text.is_empty() {
        return Err(place.error("its cluster has no server", example));
    }
    if text.contains('@') {
        return Err(
            place.error("the address of its server has credentials in it", "move them to the user of the context")
        );
    }
    let uri = text
        .parse::<Uri>()
        .ok()
        .filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some());
    let Some(uri) = uri else {
        // In a Secret whose keys are mixed up it may be anything.
        let quoted = if place.secret.is_some() { String::new() } else { format!(" {text:?}") };
        return Err(place.error(format!("its server{quoted} is not the address of an API server"), example));
    };
    let setting = settings.setting(name, "allowInsecureTls");
    let setting = match settings.origin {
        Origin::Flags => "take the risk in a config file: clusters.NAME.kubeconfig.allowInsecureTls: true".to_owned(),
        _ => format!("set {setting}: true to take the risk"),
    };
    if cluster.insecure_skip_tls_verify == Some(true) && !settings.allow_insecure_tls {
        let hint = format!("give it a certificate-authority; or {setting}");
        return Err(place.error("insecure-skip-tls-verify would send credentials to whoever answers", hint));
    }
    // What listens here is nothing that a Secret should lead to.
    let is_near = place.secret.is_none() && is_this_machine(&uri);
    if uri.scheme_str() == Some("http") && !is_near && !settings.allow_insecure_tls {
        let problem = format!("its server {text:?} would be spoken to without encryption");
        return Err(place.error(problem, format!("use its https address; or {setting}")));
    }
    Ok(uri)
}

fn is_this_machine(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_near = |address: IpAddr| address.to_canonical().is_loopback() || address.is_unspecified();
    host.trim_end_matches('.') == "localhost" || host.parse::<IpAddr>().is_ok_and(is_near)
}

/// A proxy's address may hold a password, so it is never repeated.
fn proxy(place: &Place, cluster: &Cluster) -> Result<Option<Uri>, KubeconfigError> {
    let Some(text) = cluster.proxy_url.as_deref().filter(|text| !text.is_empty()) else { return Ok(None) };
    let uri = text.parse::<Uri>().ok().filter(|uri| matches!(uri.scheme_str(), Some("http" | "https" | "socks5")));
    let problem = || {
        place
            .error("its proxy-url is not the address of a proxy", "write it as http://, https:// or socks5://host:port")
    };
    if place.secret.is_some() && uri.as_ref().is_some_and(is_this_machine) {
        return Err(place.error("its proxy-url leads to this host", "name a proxy that every host reaches"));
    }
    uri.ok_or_else(problem).map(Some)
}

/// Returns what a plugin with `provideClusterInfo` is told, in the words of the protocol.
fn described(cluster: &Cluster, authority: Option<&str>) -> Value {
    let mut described = json!({"server": cluster.server});
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            described[key] = value;
        }
    };
    set("certificate-authority-data", authority.map(|pem| BASE64_STANDARD.encode(pem).into()));
    set("insecure-skip-tls-verify", cluster.insecure_skip_tls_verify.map(Value::from));
    set("tls-server-name", cluster.tls_server_name.clone().map(Value::from));
    set("proxy-url", cluster.proxy_url.clone().map(Value::from));
    let extension = cluster.extensions.iter().flatten().find(|e| e.name == "client.authentication.k8s.io/exec");
    set("config", extension.map(|extension| extension.extension.clone()));
    described
}
