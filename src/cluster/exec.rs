//! Credential plugins: the programs that a kubeconfig names under `exec`, such as `aws` or `kubelogin`.
//!
//! This is the only place that starts programs of others, and it starts none that the configuration does not list by name: a
//! kubeconfig may come from somebody who should not decide what runs on this host.
//! The protocol is `client.authentication.k8s.io`, versions `v1` and `v1beta1`; a plugin that wants a terminal is
//! refused. How long an answer is kept, and when a plugin is asked again, is decided by the caller.

pub mod allow;
mod answer;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use jiff::Timestamp;
use kube::config::{ExecConfig, ExecInteractiveMode};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use crate::basics::redact::excerpt;
use allow::{Exec, program};

/// The versions of the protocol that can be spoken.
const VERSIONS: [&str; 2] = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];

/// More than any credential: certificates and keys are a few KiB.
const MAX_ANSWER: u64 = 1024 * 1024;

/// As much of the error output as can matter for the few lines that are quoted.
const MAX_ERRORS: u64 = 16 * 1024;

/// A plugin that may be run.
#[derive(Clone, Debug)]
pub struct Plugin {
    command: String,
    /// The folders where programs are looked for.
    folders: Vec<PathBuf>,
    args: Vec<String>,
    env: Vec<(String, String)>,
    version: String,
    cluster: Option<Value>,
    install_hint: Option<String>,
}

/// The plugins of a cluster: what they may do, and what they are told.
pub struct Plugins<'a> {
    /// The cluster, for one with `provideClusterInfo`.
    pub cluster: Value,
    /// The programs and variables that are allowed.
    pub settings: &'a Exec,
    /// The folders where programs are looked for.
    pub folders: &'a [PathBuf],
    /// The name of the settings, for errors.
    pub setting: String,
    /// The flag of the command line that allows one, where there are no settings.
    pub flag: Option<&'static str>,
}

/// The credential that a plugin gave out: a token, a client certificate, or both.
#[derive(Clone, Debug)]
pub struct Credential {
    /// Bearer token.
    pub token: Option<SecretString>,
    /// Client certificate with its key.
    pub identity: Option<Identity>,
    /// When it ends; `None` if only a refusal by the server tells.
    pub expires: Option<Timestamp>,
}

/// A client certificate and its key, both PEM.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate, with those that lead to its authority.
    pub certificate: String,
    /// The private key.
    pub key: SecretString,
}

/// The reason why a plugin is not run, or gave no credential. Never with a credential in its text.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{message}")]
pub struct PluginError {
    /// The problem, with the plugin's name.
    pub message: String,
    /// Advice on what to do about it.
    pub hint: Option<String>,
}

impl PluginError {
    fn new(message: String) -> Self {
        Self { message, hint: None }
    }

    fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl Plugin {
    /// Reads what a kubeconfig says about a plugin, and refuses one that is not allowed or cannot work in a service.
    ///
    /// What the settings allow by a bare name is the program of that name in the first of the folders that has one,
    /// whatever the kubeconfig says; by an absolute path it is only the program at that path.
    pub fn new(exec: &ExecConfig, plugins: &Plugins<'_>) -> Result<Self, PluginError> {
        let Plugins { cluster, settings, folders, setting, flag } = plugins;
        let command = exec.command.clone().filter(|command| !command.is_empty());
        let command = command.ok_or_else(|| PluginError::new("the credential plugin has no command".to_owned()))?;
        let args = exec.args.clone().unwrap_or_default();
        settings.check(&command, &args, (setting, *flag))?;
        let version = exec.api_version.clone().unwrap_or_default();
        if !VERSIONS.contains(&version.as_str()) {
            let message =
                format!("the credential plugin {command:?} speaks {version:?}, which nobody else does any more");
            return Err(PluginError::new(message).with_hint(format!("write apiVersion: {}", VERSIONS[0])));
        }
        if exec.interactive_mode == Some(ExecInteractiveMode::Always) {
            let message = format!("the credential plugin {command:?} wants a terminal, and a service has none");
            return Err(PluginError::new(message).with_hint("use credentials that need no person"));
        }
        Ok(Self {
            args,
            env: settings.variables(exec, setting)?,
            folders: folders.to_vec(),
            version,
            cluster: exec.provide_cluster_info.then(|| cluster.clone()),
            install_hint: exec.install_hint.as_ref().map(|hint| excerpt(hint)),
            command,
        })
    }

    /// Runs the plugin and returns what it gave out; one that takes longer than `limit` is killed.
    pub async fn run(&self, limit: Duration) -> Result<Credential, PluginError> {
        let Some(program) = program(&self.command, &self.folders) else {
            return Err(self.not_started(&ErrorKind::NotFound.into()));
        };
        let mut child = self.command(&program).spawn().map_err(|error| self.not_started(&error))?;
        let output = tokio::time::timeout(limit, collect(&mut child)).await;
        // Dropping the child kills it if it still runs.
        drop(child);
        let Ok(output) = output else {
            return Err(self.error(&format!("did not answer within {limit:?} and was killed")));
        };
        let output = output.map_err(|error| self.error(&format!("could not be listened to ({error})")))?;
        let (Some(status), answer, errors) = output else {
            return Err(self.error("wrote more than a credential"));
        };
        if !status.success() {
            return Err(self.failed(status, &errors));
        }
        answer::parse(&answer, &self.version).map_err(|problem| self.error(&problem))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that starts programs of others, all of them allowed by name"
    )]
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.args(&self.args).envs(self.env.iter().map(|(name, value)| (name, value)));
        command.env("KUBERNETES_EXEC_INFO", self.request().to_string());
        // What it tells systemd would be taken for our own word.
        command.env_remove("NOTIFY_SOCKET").env_remove("WATCHDOG_USEC").env_remove("WATCHDOG_PID");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    fn request(&self) -> Value {
        let mut request = json!({"apiVersion": self.version, "kind": "ExecCredential", "spec": {"interactive": false}});
        if let Some(cluster) = &self.cluster {
            request["spec"]["cluster"] = cluster.clone();
        }
        request
    }

    fn error(&self, problem: &str) -> PluginError {
        PluginError::new(format!("the credential plugin {:?} {problem}", self.command))
    }

    fn not_started(&self, error: &std::io::Error) -> PluginError {
        if error.kind() != ErrorKind::NotFound {
            return self.error(&format!("cannot be started ({error})"));
        }
        let hint =
            "install it, or write its whole path in the kubeconfig; the service may have another PATH than your shell";
        let install =
            self.install_hint.as_ref().map(|hint| format!("; the kubeconfig says: {hint}")).unwrap_or_default();
        self.error("is not there").with_hint(format!("{hint}{install}"))
    }

    fn failed(&self, status: ExitStatus, errors: &[u8]) -> PluginError {
        match excerpt(&String::from_utf8_lossy(errors)) {
            said if said.is_empty() => self.error(&format!("failed ({status}) and did not say why")),
            said => self.error(&format!("failed ({status}) and said: {said}")),
        }
    }
}

/// Returns how the plugin ended, what it answered and what else it said; not how it ended if it wrote too much to be
/// waited for.
async fn collect(child: &mut Child) -> std::io::Result<(Option<ExitStatus>, Vec<u8>, Vec<u8>)> {
    let (stdout, stderr) = (child.stdout.take().expect("it is piped"), child.stderr.take().expect("it is piped"));
    let (answer, errors) = tokio::try_join!(read_answer(stdout), read_errors(stderr))?;
    let too_much = u64::try_from(answer.len()).is_ok_and(|length| length > MAX_ANSWER);
    let status = if too_much { None } else { Some(child.wait().await?) };
    Ok((status, answer, errors))
}

/// Reads one byte too much at most. Then the pipe is closed, which ends a program that writes on.
async fn read_answer(pipe: ChildStdout) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.take(MAX_ANSWER + 1).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

/// Reads the beginning and throws the rest away: a plugin may be talkative.
async fn read_errors(mut pipe: ChildStderr) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    (&mut pipe).take(MAX_ERRORS).read_to_end(&mut bytes).await?;
    tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use secrecy::ExposeSecret as _;
    use tempfile::TempDir;

    use super::*;

    /// A plugin that is a shell script. The shell is what is run: a file that was written a moment ago may still be open
    /// for writing in a process that another test is just starting, and is then no program yet.
    fn plugin(folder: &TempDir, script: &str) -> Plugin {
        let path = folder.path().join("plugin");
        fs::write(&path, script).expect("a temporary folder can be written");
        let args = Some(vec![path.display().to_string()]);
        let exec = ExecConfig { provide_cluster_info: true, args, ..config("sh") };
        new(&exec, json!({"server": "https://a"}), &["sh"]).expect("it is allowed")
    }

    fn new(exec: &ExecConfig, cluster: Value, allow: &[&str]) -> Result<Plugin, PluginError> {
        let settings = Exec { allow: allow.iter().map(|&name| name.into()).collect(), ..Exec::default() };
        let folders = ["/usr/bin", "/bin"].map(PathBuf::from);
        let setting = "clusters.eu.kubeconfig.exec".to_owned();
        Plugin::new(exec, &Plugins { cluster, settings: &settings, folders: &folders, setting, flag: None })
    }

    fn config(command: &str) -> ExecConfig {
        ExecConfig {
            command: Some(command.to_owned()),
            api_version: Some(VERSIONS[0].to_owned()),
            ..ExecConfig::default()
        }
    }

    async fn run(script: &str) -> Result<Credential, PluginError> {
        let folder = TempDir::new().expect("temporary folders can be made");
        plugin(&folder, script).run(Duration::from_secs(20)).await
    }

    async fn fails(script: &str, expected: &str) {
        let error = run(script).await.expect_err(script).message;
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("sesame"), "{error}");
    }

    fn says(status: &str) -> String {
        format!(
            r#"echo '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {status}}}'"#
        )
    }

    #[test]
    fn only_what_is_listed_is_allowed() {
        let allowed = |command: &str, allow: &[&str]| new(&config(command), Value::Null, allow);
        assert!(allowed("aws", &["kubelogin", "aws"]).is_ok());
        assert!(allowed("/opt/bin/aws", &["/opt/bin/aws"]).is_ok());
        assert!(
            allowed("/elsewhere/aws", &["aws", "/opt/bin/aws"]).is_err(),
            "a name says nothing about where a program lies"
        );
        let error = allowed("aws", &[]).expect_err("nothing is listed");
        assert_eq!(error.message, "the credential plugin \"aws\" is not allowed to run");
        assert_eq!(error.hint.as_deref(), Some("if you trust it, add \"aws\" to clusters.eu.kubeconfig.exec.allow"));
    }

    #[test]
    fn plugins_that_cannot_work_are_refused() {
        let refused = |exec: &ExecConfig| new(exec, Value::Null, &["aws"]).expect_err("it cannot work");
        let old = ExecConfig { api_version: Some("client.authentication.k8s.io/v1alpha1".to_owned()), ..config("aws") };
        assert!(refused(&old).message.contains("v1alpha1"));
        let asks = ExecConfig { interactive_mode: Some(ExecInteractiveMode::Always), ..config("aws") };
        assert!(refused(&asks).message.contains("terminal"));
        assert!(refused(&config("")).message.contains("no command"));
    }

    #[tokio::test]
    async fn a_token_arrives_with_its_end() {
        let credential = run(&says(r#"{"token": "sesame", "expirationTimestamp": "2030-01-01T00:00:00Z"}"#)).await;
        let credential = credential.expect("the script prints a credential");
        assert_eq!(credential.token.expect("there is one").expose_secret(), "sesame");
        assert_eq!(credential.expires.map(|time| time.to_string()).as_deref(), Some("2030-01-01T00:00:00Z"));
        assert!(credential.identity.is_none());
    }

    #[tokio::test]
    async fn a_certificate_arrives_with_its_key() {
        let credential = run(&says(r#"{"clientCertificateData": "c", "clientKeyData": "sesame"}"#)).await;
        let identity = credential.expect("the script prints a credential").identity.expect("there is one");
        assert_eq!((identity.certificate.as_str(), identity.key.expose_secret()), ("c", "sesame"));
        fails(&says(r#"{"clientCertificateData": "c"}"#), "without its key").await;
    }

    #[tokio::test]
    async fn the_plugin_is_told_what_it_asks_for() {
        let script = r#"printf '%s' "$KUBERNETES_EXEC_INFO" | grep -q '"server":"https://a"' || exit 3"#;
        assert!(run(&format!("{script}\n{}", says(r#"{"token": "x"}"#))).await.is_ok());
    }

    #[tokio::test]
    async fn nothing_secret_gets_into_an_error() {
        fails(&says(r#"{"token": ["sesame"]}"#), "gave no JSON of an ExecCredential (line 1").await;
        fails("echo open-sesame", "gave no JSON").await;
        fails("echo 'got token: sesame' >&2; exit 3", "failed (exit status: 3) and said: got token: …").await;
        fails("exit 1", "did not say why").await;
        fails(&says("{}"), "neither a token nor a client certificate").await;
        fails(r#"echo '{"apiVersion": "v1", "kind": "Status"}'"#, "gave \"Status\" of \"v1\"").await;
        fails(&says(r#"{"token": "x", "expirationTimestamp": "soon"}"#), "no time").await;
    }

    #[tokio::test]
    async fn a_plugin_that_does_not_end_is_killed() {
        let folder = TempDir::new().expect("temporary folders can be made");
        let error = plugin(&folder, "exec sleep 100").run(Duration::from_millis(200)).await.expect_err("it sleeps");
        assert!(error.message.contains("did not answer within 200ms and was killed"), "{error}");
    }

    #[tokio::test]
    async fn a_plugin_that_writes_on_and_on_is_stopped() {
        fails("exec yes", "wrote more than a credential").await;
        let talkative = format!("head -c 100000 /dev/zero >&2\n{}", says(r#"{"token": "x"}"#));
        assert!(run(&talkative).await.is_ok());
    }

    #[tokio::test]
    async fn a_plugin_that_is_not_installed_says_how_to_get_it() {
        let exec =
            ExecConfig { install_hint: Some("brew install nope".to_owned()), ..config("gatewright-no-such-plugin") };
        let plugin = new(&exec, Value::Null, &["gatewright-no-such-plugin"]).expect("it is allowed");
        let error = plugin.run(Duration::from_secs(20)).await.expect_err("there is no such program");
        assert!(error.message.ends_with("is not there"), "{error}");
        assert!(error.hint.is_some_and(|hint| hint.contains("brew install nope")));
    }
}
