//! The user of a context: who we are, and what proves it.

use std::path::Path;

use kube::config::AuthInfo;
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

use super::material::{Piece, has_private_key};
use super::{KubeconfigError, Login, Place};
use crate::basics::pem::certificates;
use crate::cluster::account::{Account, Acting};
use crate::cluster::exec::{Identity, Plugin, Plugins};

/// The credentials that a user's entry comes to.
pub(super) struct Credentials {
    pub(super) identity: Option<Identity>,
    pub(super) login: Login,
    pub(super) acting_as: Option<Acting>,
}

pub(super) fn credentials(
    place: &Place,
    user: Option<&AuthInfo>,
    plugins: &Plugins<'_>,
    digest: &mut Sha256,
) -> Result<Credentials, KubeconfigError> {
    let Some(user) = user else {
        return Ok(Credentials { identity: None, login: Login::None, acting_as: None });
    };
    if let Some(provider) = &user.auth_provider {
        let problem = format!("its user has the auth-provider {:?}, which Kubernetes has given up", provider.name);
        return Err(place.error(problem, "use an exec plugin such as kubelogin, or a token"));
    }
    let identity = identity(place, user, digest)?;
    let login = login(place, user, plugins, digest)?;
    let acting_as = acting(place, user)?;
    Ok(Credentials { identity, login, acting_as })
}

/// Returns the account of `as` and what goes with it. Without a user an API server would pass over the rest, or refuse it.
fn acting(place: &Place, user: &AuthInfo) -> Result<Option<Acting>, KubeconfigError> {
    let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let account = Account {
        service_account: None,
        user: text(&user.impersonate),
        groups: user.impersonate_groups.clone().unwrap_or_default(),
        uid: text(&user.impersonate_uid),
        extra: user.impersonate_user_extra.clone().unwrap_or_default().into_iter().collect(),
    };
    if account == Account::default() {
        return Ok(None);
    }
    if account.user.is_none() {
        let problem = "its user has as-groups, as-uid or as-user-extra without as";
        return Err(place.error(problem, "add as, or set impersonate in the config file"));
    }
    let because = format!("`as` in {place}");
    let acting = Acting::new(&account, because);
    let acting = acting.map_err(|error| place.error(format!("its as: {error}"), error.hint()))?;
    Ok(Some(if place.secret.is_some() { acting.unnamed() } else { acting }))
}

fn identity(place: &Place, user: &AuthInfo, digest: &mut Sha256) -> Result<Option<Identity>, KubeconfigError> {
    let certificate = Piece {
        what: "client-certificate",
        inline: user.client_certificate_data.as_deref(),
        file: user.client_certificate.as_deref(),
    };
    let key = Piece {
        what: "client-key",
        inline: user.client_key_data.as_ref().map(ExposeSecret::expose_secret),
        file: user.client_key.as_deref(),
    };
    match (certificate.read(place, digest)?, key.read(place, digest)?) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(place.error("its user has a client-certificate without a client-key", "add the key")),
        (None, Some(_)) => {
            Err(place.error("its user has a client-key without a client-certificate", "add the certificate"))
        }
        (Some(pem), Some(_)) if certificates(&pem).is_none() => {
            Err(place.error("its client-certificate is no PEM certificate", certificate.hint()))
        }
        (Some(_), Some(pem)) if !has_private_key(&pem) => {
            Err(place.error("its client-key is no PEM private key without a password", key.hint()))
        }
        (Some(certificate), Some(key)) => Ok(Some(Identity { certificate, key: key.into() })),
    }
}

/// A file wins over the token beside it, as with kubectl.
fn login(place: &Place, user: &AuthInfo, plugins: &Plugins<'_>, digest: &mut Sha256) -> Result<Login, KubeconfigError> {
    if let Some(file) = user.token_file.as_deref().filter(|file| !file.is_empty()) {
        let piece = Piece { what: "tokenFile", inline: None, file: Some(file) };
        let token = piece.read(place, digest)?.unwrap_or_default();
        return Ok(Login::FreshToken(token_of(place, &format!("tokenFile {}", Path::new(file).display()), &token)?));
    }
    if let Some(token) = user.token.as_ref().filter(|token| !token.expose_secret().is_empty()) {
        return Ok(Login::Token(token_of(place, "token", token.expose_secret())?));
    }
    if let Some(exec) = &user.exec {
        return Plugin::new(exec, plugins)
            .map(Login::Plugin)
            .map_err(|error| place.error_as_it_is(error.message, error.hint.unwrap_or_default()));
    }
    match (user.username.as_deref().filter(|name| !name.is_empty()), &user.password) {
        (Some(name), Some(password)) => Ok(Login::Password(name.to_owned(), password.clone())),
        (Some(_), None) => Err(place.error("its user has a username without a password", "add the password")),
        (None, _) => Ok(Login::None),
    }
}

/// Such files end with a line break, which no header may have.
fn token_of(place: &Place, what: &str, text: &str) -> Result<SecretString, KubeconfigError> {
    let token = text.trim();
    let clean = !token.is_empty() && token.chars().all(|character| character.is_ascii_graphic());
    let problem = || place.error(format!("its {what} is empty or no token"), "fetch a new token");
    if clean { Ok(token.into()) } else { Err(problem()) }
}
