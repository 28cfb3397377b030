//! The settings of one git source in the config file.
//!
//! Secrets are never here, only the files that hold them.
//! Whether those files can be read shows at each poll, because they may be replaced at any time.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address::{Address, Transport};
use super::names::{Reference, SubPath};
use crate::basics::duration::Period;
use crate::basics::paths::{NoCredentials, Paths};

/// A git repository, what to read of it, and how to get in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// The address of the repository: `https://…`, `ssh://…`, `git@host:path`, `file://…`, a path, or an open
    /// `http://…`.
    pub url: Address,
    /// The reference to read: a branch, a tag or a commit; the server's default branch if absent.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
    /// The folder, or file, in the repository that holds the specs.
    #[serde(default)]
    pub path: SubPath,
    /// The credentials, and the means to know the server.
    #[serde(default)]
    pub auth: Auth,
    /// The longest time for a poll before it is given up.
    #[serde(default = "crate::source::default_timeout")]
    pub timeout: Period,
}

/// The files that hold secrets, and the user's name.
///
/// Each file is read at each poll, so that a secret that was replaced counts from then on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Auth {
    /// The file with a token, for https.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// The name of the user, for https; with a token most servers take any, and `git` is the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The file with the user's password, for https, instead of a token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
    /// The file with the private key, for ssh.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_key_file: Option<PathBuf>,
    /// The file with the passphrase of the private key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_key_passphrase_file: Option<PathBuf>,
    /// The file with the keys of known ssh servers, in the form that `ssh-keyscan` prints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known_hosts_file: Option<PathBuf>,
    /// A file with PEM certificates of authorities that are trusted beside the system's.
    ///
    /// They count for every https source of this process, and until it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
}

/// Settings that make sense one by one do not do so together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// A setting is for another kind of address.
    #[error("`auth.{setting}` does not apply to an address of the form {form}")]
    Pointless {
        /// The setting below `auth`.
        setting: &'static str,
        /// The kind of address.
        form: &'static str,
    },
    /// Of two settings only one can count.
    #[error("`auth.{0}` and `auth.{1}` exclude each other")]
    Both(&'static str, &'static str),
    /// A setting needs another one.
    #[error("`auth.{0}` needs `auth.{1}`")]
    Without(&'static str, &'static str),
    /// Servers are known by their keys only.
    #[error("ssh needs `auth.{0}`")]
    Ssh(&'static str),
    /// Credentials would cross the network for all to read.
    #[error("credentials are not sent over http: use https")]
    InTheClear,
    /// No poll could ever succeed.
    #[error("`timeout` is zero")]
    NoTime,
}

impl Settings {
    /// Makes all paths absolute.
    pub fn resolve(&mut self, paths: &Paths) -> Result<(), NoCredentials> {
        self.url.resolve(&paths.base);
        let auth = &mut self.auth;
        let files = [
            &mut auth.token_file,
            &mut auth.password_file,
            &mut auth.ssh_key_file,
            &mut auth.ssh_key_passphrase_file,
            &mut auth.known_hosts_file,
            &mut auth.ca_file,
        ];
        for file in files.into_iter().flatten() {
            *file = paths.resolve(file)?;
        }
        Ok(())
    }

    /// Tells what is contradictory or missing.
    pub fn check(&self) -> Result<(), Conflict> {
        let auth = &self.auth;
        let set = auth.set();
        let only = |form, allowed: &[&'static str]| match set.iter().find(|name| !allowed.contains(name)) {
            Some(setting) => Err(Conflict::Pointless { setting, form }),
            None => Ok(()),
        };
        if self.timeout.0.is_zero() {
            return Err(Conflict::NoTime);
        }
        match self.url.transport() {
            Transport::Https(_) => {
                only("https", &["tokenFile", "username", "passwordFile", "caFile"])?;
                auth.check_password()
            }
            Transport::Ssh(..) => {
                only("ssh", &["sshKeyFile", "sshKeyPassphraseFile", "knownHostsFile"])?;
                let needed = ["sshKeyFile", "knownHostsFile"].into_iter().find(|name| !set.contains(name));
                needed.map_or(Ok(()), |name| Err(Conflict::Ssh(name)))
            }
            Transport::Http(_) if auth.token_file.is_some() || auth.password_file.is_some() => {
                Err(Conflict::InTheClear)
            }
            Transport::Http(_) => only("http", &[]),
            Transport::Local(_) => only("file", &[]),
        }
    }
}

impl Auth {
    /// Returns the names of the settings that are there.
    fn set(&self) -> Vec<&'static str> {
        let all = [
            ("tokenFile", self.token_file.is_some()),
            ("username", self.username.is_some()),
            ("passwordFile", self.password_file.is_some()),
            ("sshKeyFile", self.ssh_key_file.is_some()),
            ("sshKeyPassphraseFile", self.ssh_key_passphrase_file.is_some()),
            ("knownHostsFile", self.known_hosts_file.is_some()),
            ("caFile", self.ca_file.is_some()),
        ];
        all.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
    }

    fn check_password(&self) -> Result<(), Conflict> {
        match (&self.token_file, &self.username, &self.password_file) {
            (Some(_), _, Some(_)) => Err(Conflict::Both("tokenFile", "passwordFile")),
            (None, None, Some(_)) => Err(Conflict::Without("passwordFile", "username")),
            (None, Some(_), None) => Err(Conflict::Without("username", "passwordFile")),
            (Some(_), _, None) | (None, Some(_), Some(_)) | (None, None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settings(url: &str, auth: &serde_json::Value) -> Settings {
        serde_json::from_value(json!({"url": url, "auth": auth})).expect("the settings of this test are well-formed")
    }

    #[test]
    fn settings_are_read_and_shown_in_the_same_form() {
        let written = json!({
            "url": "git@example.com:a/b.git",
            "ref": {"branch": "release/1.2"},
            "path": "gateways",
            "auth": {"sshKeyFile": "/key", "knownHostsFile": "/known"},
            "timeout": "30s",
        });
        let read: Settings = serde_json::from_value(written.clone()).expect("these settings are well-formed");
        assert_eq!(serde_json::to_value(&read).expect("settings can be shown"), written);
        assert_eq!(read.check(), Ok(()));
    }

    #[test]
    fn paths_and_credentials_become_absolute() {
        let mut settings = settings("./repo", &json!({"tokenFile": "credential:token", "caFile": "ca.pem"}));
        let paths = Paths { base: "/etc/gatewright".into(), credentials: Some("/run/credentials".into()) };
        assert_eq!(settings.resolve(&paths), Ok(()));
        assert_eq!(settings.url.as_str(), "/etc/gatewright/./repo");
        assert_eq!(settings.auth.token_file, Some("/run/credentials/token".into()));
        assert_eq!(settings.auth.ca_file, Some("/etc/gatewright/ca.pem".into()));
    }

    #[test]
    fn names_that_are_options_or_leave_the_repository_are_refused() {
        let read = |value| serde_json::from_value::<Settings>(value).map_err(|error| error.to_string());
        for value in [
            json!({"url": "/r", "ref": {"branch": "--upload-pack=id"}}),
            json!({"url": "/r", "ref": {"tag": "a..b"}}),
            json!({"url": "/r", "ref": {"branch": ""}}),
            json!({"url": "/r", "ref": {"commit": "abc123"}}),
            json!({"url": "/r", "ref": {"branch": "a", "tag": "b"}}),
            json!({"url": "/r", "ref": {}}),
            json!({"url": "/r", "path": "../other"}),
            json!({"url": "/r", "path": "/etc"}),
            json!({"url": "/r", "token": "hunter2"}),
        ] {
            assert!(read(value.clone()).is_err(), "{value}");
        }
    }

    #[test]
    fn settings_that_contradict_each_other_are_named() {
        let check = |url: &str, auth: serde_json::Value| settings(url, &auth).check();
        let https = "https://example.com/a";
        assert_eq!(check(https, json!({"tokenFile": "t", "username": "u"})), Ok(()));
        assert_eq!(check(https, json!({"passwordFile": "p"})), Err(Conflict::Without("passwordFile", "username")));
        assert_eq!(check(https, json!({"username": "u"})), Err(Conflict::Without("username", "passwordFile")));
        let both = json!({"tokenFile": "t", "passwordFile": "p"});
        assert_eq!(check(https, both), Err(Conflict::Both("tokenFile", "passwordFile")));
        assert_eq!(check("http://example.com/a", json!({"tokenFile": "t"})), Err(Conflict::InTheClear));
        assert_eq!(check("git@example.com:a", json!({"sshKeyFile": "k"})), Err(Conflict::Ssh("knownHostsFile")));
        let pointless = Conflict::Pointless { setting: "tokenFile", form: "ssh" };
        assert_eq!(check("git@example.com:a", json!({"tokenFile": "t"})), Err(pointless));
    }
}
