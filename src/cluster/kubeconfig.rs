//! Reading a kubeconfig: which API server, whom to trust, and with which credentials.
//!
//! It lies in a file, or in a Secret of a management cluster ([`stored`]).
//! Everything is checked here, before a client is built from it. A client takes nearly anything: a user that does not
//! exist makes it anonymous, an authority that is no PEM fails only when it connects.
//! Running credential plugins (`exec`) and building clients (`kube`) are done elsewhere.

mod access;
mod choice;
mod material;
pub mod stored;
mod user;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kube::Config;
use kube::config::KubeconfigError as ParseError;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::basics::duration::Period;
use crate::basics::size::Size;
use crate::cluster::account::{Account, Acting};
use crate::cluster::exec::allow::Exec;
use crate::cluster::exec::{Identity, Plugin};
use stored::Stored;

/// The memory for the answers of one cluster, where no setting says otherwise.
pub(crate) const MAX_BYTES: Size = Size(256 << 20);

/// The access to an API server: `clusters.<name>.kubeconfig` in the config file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Settings {
    /// The kubeconfig file; without it the files that kubectl would take.
    pub path: Option<PathBuf>,
    /// The context; without it the file's current one.
    pub context: Option<String>,
    /// Credential plugins.
    pub exec: Exec,
    /// Whether an unverified certificate, or no TLS at all, is good enough for this cluster.
    pub allow_insecure_tls: bool,
    /// The account that requests are made as; without it that of the kubeconfig, which may name another one itself.
    pub impersonate: Option<Account>,
    /// The time limit of one request, with all its tries; a second at least.
    pub timeout: Period,
    /// The most bytes of answers that are held at once: those under way, and the lists of a round.
    pub max_bytes: Size,
    /// The place of these settings.
    #[serde(skip)]
    pub origin: Origin,
}

/// The place of the settings of a kubeconfig, and the kubeconfig itself where it lies in no file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// `clusters.NAME.kubeconfig`.
    #[default]
    Cluster,
    /// `clusterFolderAccess`: the file was found in a folder of clusters.
    Folder,
    /// `clusterSecrets.NAME.kubeconfig`: the way to a management cluster.
    Management,
    /// `clusterSecrets.NAME.access`: it was found in a Secret.
    Secret(Stored),
    /// `--kubeconfig` and `--context`: there is no config file.
    Flags,
}

impl Default for Settings {
    fn default() -> Self {
        let (path, context, exec) = (None, None, Exec::default());
        let timeout = Period(Duration::from_secs(30));
        let impersonate = None;
        let (max_bytes, origin) = (MAX_BYTES, Origin::Cluster);
        Self { path, context, exec, allow_insecure_tls: false, impersonate, timeout, max_bytes, origin }
    }
}

impl Settings {
    /// Tells whether it lies in a Secret that nobody has read.
    pub(crate) fn is_unread(&self) -> bool {
        matches!(&self.origin, Origin::Secret(stored) if stored.is_unread())
    }

    /// Returns where a setting for the kubeconfig of a cluster stands in the config file.
    pub(crate) fn setting(&self, cluster: &str, name: &str) -> String {
        match &self.origin {
            Origin::Cluster => format!("clusters.{cluster}.kubeconfig.{name}"),
            Origin::Flags => format!("clusters.NAME.kubeconfig.{name} in a config file"),
            Origin::Folder => format!("clusterFolderAccess.{name}"),
            Origin::Management => format!("clusterSecrets.{cluster}.kubeconfig.{name}"),
            Origin::Secret(stored) => format!("clusterSecrets.{}.access.{name}", stored.source()),
        }
    }
}

/// The places to look for what the settings name no place of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandardLookup {
    /// The files that are read when the settings name none: the list in `$KUBECONFIG`, else `~/.kube/config`. As with
    /// kubectl, those that do not exist are passed over, and the first that says something wins.
    pub files: Vec<PathBuf>,
    /// The folders of programs: `$PATH`.
    pub programs: Vec<PathBuf>,
}

impl Default for StandardLookup {
    fn default() -> Self {
        Self { files: Vec::new(), programs: ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from).into() }
    }
}

/// All that a client needs to know, checked.
#[derive(Clone, Debug)]
pub struct Access {
    /// The files and the context it comes from, for messages.
    pub place: Place,
    /// The server, the proxy on the way and whom to trust; no credentials, and no limits.
    pub config: Config,
    /// The client certificate.
    pub identity: Option<Identity>,
    /// The login: what else says who we are.
    pub login: Login,
    /// The account that we are to be taken for instead.
    pub(crate) acting: Option<Acting>,
    /// A digest of all files that were read: the same digest, the same access.
    pub fingerprint: String,
}

/// The login that says who we are, besides a client certificate.
#[derive(Clone, Debug)]
pub enum Login {
    /// Nothing: the certificate is enough.
    None,
    /// A bearer token that stays the same.
    Token(SecretString),
    /// A bearer token out of a file that something else keeps fresh.
    FreshToken(SecretString),
    /// User name and password.
    Password(String, SecretString),
    /// A credential plugin.
    Plugin(Plugin),
}

/// The origin of an access. Displays as `kubeconfig "/etc/a.yaml", context "admin"`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The files that were read.
    pub files: Vec<PathBuf>,
    /// The context, once it is known.
    pub context: Option<String>,
    /// The Secret that it lies in instead of files.
    pub secret: Option<Box<str>>,
}

/// The reason why a kubeconfig cannot be used. Never with a secret in its text.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct KubeconfigError {
    /// The files and the context.
    pub place: Place,
    /// The problem.
    pub problem: String,
    /// Advice on what to do about it.
    pub hint: String,
    /// The error of the system.
    #[source]
    pub source: Option<Arc<std::io::Error>>,
}

/// Reads and checks the access to the cluster that the configuration calls `cluster`. Blocks on files.
///
/// With `settings.path` (taken as it is: resolve it before) that file must exist, else one file of `standard` must.
pub fn load(cluster: &str, settings: &Settings, standard: &StandardLookup) -> Result<Access, KubeconfigError> {
    let (merged, place, digest) = match &settings.origin {
        Origin::Secret(stored) => stored.read()?,
        origin => material::read(settings.path.as_deref(), (standard, *origin == Origin::Flags))?,
    };
    let choice = choice::choose(&merged, settings, place)?;
    access::check(&choice, cluster, (settings, standard), digest)
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(secret) = &self.secret {
            return f.write_str(secret);
        }
        f.write_str("kubeconfig ")?;
        for (index, file) in self.files.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{:?}", file.to_string_lossy())?;
        }
        match &self.context {
            Some(context) => write!(f, ", context {context:?}"),
            None => Ok(()),
        }
    }
}

/// Returns a text without what is quoted in it.
fn unquoted(text: &str) -> String {
    let (mut left, mut is_quoted, mut is_escaped) = (String::new(), false, false);
    for letter in text.chars() {
        match letter {
            '"' if !is_escaped => {
                left.extend((!is_quoted).then_some('…'));
                is_quoted = !is_quoted;
            }
            _ if is_quoted => {}
            _ => left.push(letter),
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    left
}

impl Place {
    fn of(file: &Path) -> Self {
        Self { files: vec![file.to_owned()], ..Self::default() }
    }

    fn error(&self, problem: impl Into<String>, hint: impl Into<String>) -> KubeconfigError {
        let (mut problem, mut hint) = (problem.into(), hint.into());
        if self.secret.is_some() {
            // In a Secret whose keys are mixed up a name may be anything.
            (problem, hint) = (unquoted(&problem), unquoted(&hint));
        }
        self.error_as_it_is(problem, hint)
    }

    /// Makes an error that names what has to be allowed: a plugin, or a variable of it.
    fn error_as_it_is(&self, problem: impl Into<String>, hint: impl Into<String>) -> KubeconfigError {
        KubeconfigError { place: self.clone(), problem: problem.into(), hint: hint.into(), source: None }
    }

    fn unreadable(&self, what: &str, path: &Path, error: std::io::Error) -> KubeconfigError {
        let hint = match error.kind() {
            std::io::ErrorKind::NotFound => {
                "correct the path: a relative one starts at the folder of the file that it stands in"
            }
            std::io::ErrorKind::PermissionDenied => "let the user that the service runs as read it",
            _ => "see to it that it can be read",
        };
        let mut unreadable = self.error(format!("its {what} {} cannot be read", path.display()), hint);
        unreadable.source = Some(Arc::new(error));
        unreadable
    }

    /// The parser's own words are not repeated: they quote the file, and the file holds secrets.
    fn unparsable(&self, error: &ParseError) -> KubeconfigError {
        let location = match error {
            ParseError::Parse(error) => error.without_snippet().location(),
            _ => None,
        };
        let at = location.map(|at| format!(" (line {}, column {})", at.line(), at.column())).unwrap_or_default();
        self.error(format!("it is not a kubeconfig{at}"), "compare it with the output of `kubectl config view`")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use gatewright_engine::yaml;
    use secrecy::ExposeSecret as _;
    use serde_json::{Value, json};
    use tempfile::TempDir;

    use super::*;

    const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

    fn good() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "admin",
            "contexts": [
                {"name": "admin", "context": {"cluster": "prod", "user": "root"}},
                {"name": "viewer", "context": {"cluster": "prod", "user": "viewer"}},
                {"name": "lost", "context": {"cluster": "prdo", "user": "root"}},
                {"name": "ghost", "context": {"cluster": "prod", "user": "nobody"}},
                {"name": "no-user", "context": {"cluster": "prod"}},
            ],
            "clusters": [{"name": "prod", "cluster": {"server": "https://10.0.0.1:6443"}}],
            "users": [{"name": "root", "user": {"token": "sesame"}}, {"name": "viewer", "user": {}}],
        })
    }

    fn at(context: &str) -> Settings {
        Settings { context: Some(context.to_owned()), ..Settings::default() }
    }

    /// Loads a kubeconfig that differs from the good one in one value.
    fn loaded(pointer: &str, value: Value, settings: Settings) -> Result<Access, KubeconfigError> {
        let folder = TempDir::new().expect("temporary folders can be made");
        fs::write(folder.path().join("pem"), CERTIFICATE).expect("a temporary folder can be written");
        fs::write(folder.path().join("token"), "fresh\n").expect("a temporary folder can be written");
        let mut config = good();
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer has a slash");
        config.pointer_mut(parent).expect("the good one has it")[key] = value;
        let path = folder.path().join("config");
        fs::write(&path, yaml::to_string(&config)).expect("a temporary folder can be written");
        load("eu", &Settings { path: Some(path), ..settings }, &StandardLookup::default())
    }

    fn check(pointer: &str, value: Value, settings: Settings, problem: &str, hint: &str) {
        let error = loaded(pointer, value, settings).expect_err(problem);
        let text = error.to_string();
        assert!(text.contains(problem), "{text:?} does not say {problem:?}");
        assert!(error.hint.contains(hint), "{:?} does not say {hint:?}", error.hint);
        assert!(!format!("{text} {error:?}").contains("sesame"), "{text}");
    }

    #[test]
    fn the_settings_read_as_in_the_config_file() {
        let value = json!({"context": "a", "exec": {"allow": ["aws"]}, "timeout": "1m30s"});
        let settings: Settings = serde_json::from_value(value).expect("it is valid");
        let exec = Exec { allow: vec!["aws".into()], ..Exec::default() };
        assert_eq!(settings, Settings { exec, timeout: Period(Duration::from_secs(90)), ..at("a") });
        let wrong = |value: Value| serde_json::from_value::<Settings>(value).expect_err("it is invalid").to_string();
        assert!(wrong(json!({"timeout": "soon"})).contains("\"soon\" is no duration"));
        assert!(wrong(json!({"contxt": "a"})).contains("unknown field"));
    }

    #[test]
    fn a_good_one_is_taken() {
        let access = loaded("/kind", json!("Config"), Settings::default()).expect("it is good");
        assert_eq!(access.config.cluster_url.to_string(), "https://10.0.0.1:6443/");
        assert!(matches!(access.login, Login::Token(token) if token.expose_secret() == "sesame"));
        assert!(access.place.to_string().ends_with("/config\", context \"admin\""), "{}", access.place);
    }

    #[test]
    fn files_are_found_beside_the_kubeconfig() {
        let user = json!({"tokenFile": "token"});
        let access = loaded("/users/0/user", user, Settings::default()).expect("it is good");
        assert!(matches!(access.login, Login::FreshToken(token) if token.expose_secret() == "fresh"));
        let authority = loaded("/clusters/0/cluster/certificate-authority", json!("pem"), Settings::default());
        assert_eq!(authority.expect("it is good").config.root_cert, Some(vec![vec![0, 0, 0]]));
    }

    #[test]
    fn what_a_context_names_must_be_there() {
        let none = || json!("");
        check(
            "/current-context",
            none(),
            Settings::default(),
            "it has no current context",
            "set kubeconfig.context to one of: \"admin\", \"viewer\"",
        );
        check(
            "/kind",
            json!("Config"),
            at("amdin"),
            "it has no context \"amdin\"",
            "did you mean \"admin\"? there are: ",
        );
        check(
            "/kind",
            json!("Config"),
            at("lost"),
            "context \"lost\": its cluster \"prdo\" is not in the file",
            "did you mean \"prod\"?",
        );
        check(
            "/kind",
            json!("Config"),
            at("ghost"),
            "context \"ghost\": its user \"nobody\" is not in the file",
            "there are: \"root\"",
        );
        check("/kind", json!("Config"), at("no-user"), "no credentials, and would be anonymous", "token");
        check("/kind", json!("Config"), at("viewer"), "no credentials, and would be anonymous", "token");
        check("/contexts", Value::Null, at("a"), "it has no context \"a\"", "the file has none at all");
    }

    #[test]
    fn the_cluster_must_be_one_to_trust() {
        let cases = [
            (json!({}), "its cluster has no server", "https://host:port"),
            (
                json!({"server": "10.0.0.1:6443"}),
                "\"10.0.0.1:6443\" is not the address of an API server",
                "https://host:port",
            ),
            (json!({"server": "https://root:sesame@a"}), "has credentials in it", "move them"),
            (
                json!({"server": "http://a"}),
                "would be spoken to without encryption",
                "clusters.eu.kubeconfig.allowInsecureTls",
            ),
            (
                json!({"server": "https://a", "insecure-skip-tls-verify": true}),
                "to whoever answers",
                "allowInsecureTls",
            ),
            (
                json!({"server": "https://a", "certificate-authority-data": "%"}),
                "certificate-authority-data is not base64",
                "copy",
            ),
            (json!({"server": "https://a", "certificate-authority-data": "c2VzYW1l"}), "no PEM certificate", "copy"),
            (json!({"server": "https://a", "certificate-authority": "gone"}), "certificate-authority", "relative"),
            (json!({"server": "https://a", "proxy-url": "sesame"}), "proxy-url is not the address", "socks5"),
        ];
        for (cluster, problem, hint) in cases {
            check("/clusters/0/cluster", cluster, Settings::default(), problem, hint);
        }
        let risky = Settings { allow_insecure_tls: true, ..Settings::default() };
        let cluster = json!({"server": "https://a", "insecure-skip-tls-verify": true});
        assert!(loaded("/clusters/0/cluster", cluster, risky).is_ok_and(|access| access.config.accept_invalid_certs));
        let proxy = json!({"server": "http://127.0.0.1:8001"});
        assert!(loaded("/clusters/0/cluster", proxy, at("no-user")).is_ok(), "kubectl proxy brings the credentials");
    }

    #[test]
    fn the_user_must_have_what_it_takes() {
        let exec = json!({"command": "aws", "apiVersion": "client.authentication.k8s.io/v1"});
        let cases = [
            (json!({"auth-provider": {"name": "oidc"}}), "auth-provider \"oidc\"", "exec plugin"),
            (json!({"token": "two\nsesames"}), "its token is empty or no token", "fetch"),
            (json!({"tokenFile": "gone"}), "its tokenFile", "relative"),
            (json!({"username": "sesame"}), "username without a password", "password"),
            (json!({"client-certificate": "pem"}), "without a client-key", "key"),
            (json!({"client-key": "pem"}), "without a client-certificate", "certificate"),
            (json!({"client-certificate": "token", "client-key": "pem"}), "client-certificate is no PEM", "copy"),
            (json!({"client-certificate": "pem", "client-key": "pem"}), "client-key is no PEM private key", "copy"),
            (json!({"exec": exec}), "plugin \"aws\" is not allowed", "clusters.eu.kubeconfig.exec.allow"),
        ];
        for (user, problem, hint) in cases {
            check("/users/0/user", user, Settings::default(), problem, hint);
        }
    }

    #[test]
    fn what_is_no_kubeconfig_is_not_quoted() {
        check("/users", json!("sesame"), Settings::default(), "it is not a kubeconfig (line", "kubectl config view");
        let folder = TempDir::new().expect("temporary folders can be made");
        let path = folder.path().join("config");
        let settings = Settings { path: Some(path.clone()), ..Settings::default() };
        let says = || load("eu", &settings, &StandardLookup::default()).expect_err("it cannot be used").to_string();
        assert_eq!(says(), format!("kubeconfig {path:?}: it cannot be read"));
        fs::write(&path, "users:\n - name: \"sesame\n").expect("a temporary folder can be written");
        assert!(says().contains("it is not YAML: line ") && !says().contains("sesame"), "{}", says());
    }

    #[test]
    fn the_standard_files_are_merged_as_kubectl_does() {
        let folder = TempDir::new().expect("temporary folders can be made");
        let file = |name: &str| folder.path().join(name);
        let mut second = good();
        second["current-context"] = json!("lost");
        second["users"] = json!([{"name": "root", "user": {"token": "other"}}]);
        fs::write(file("b"), good().to_string()).expect("a temporary folder can be written");
        fs::write(file("c"), second.to_string()).expect("a temporary folder can be written");
        let load = |names: &[&str]| {
            let standard =
                StandardLookup { files: names.iter().map(|name| file(name)).collect(), ..StandardLookup::default() };
            load("eu", &Settings::default(), &standard)
        };
        let access = load(&["a", "b", "c"]).expect("the first that says something wins");
        assert!(matches!(access.login, Login::Token(token) if token.expose_secret() == "sesame"));
        assert_eq!(access.place.files, [file("b"), file("c")]);
        let other = load(&["b"]).expect("it is good");
        assert_ne!(other.fingerprint, access.fingerprint);
        for (names, problem) in [(&["a"][..], "there is no such file"), (&["a", "d"], "none of these files exists")] {
            let error = load(names).expect_err("there is no file");
            assert!(error.to_string().ends_with(problem), "{error}");
        }
    }
}
