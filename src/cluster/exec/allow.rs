//! The credential plugins that may run, and what a kubeconfig may tell them.
//!
//! A name that is allowed is worth nothing if the kubeconfig says where it leads: so programs are looked for in our own
//! `PATH`, and of the variables in a kubeconfig only those are passed on that are known to choose among what this host
//! has configured, and those that the settings name. Many others make a plugin run or load something else: `PATH` and
//! `LD_PRELOAD`, but also `PYTHONPATH`, `NODE_OPTIONS`, `AWS_CONFIG_FILE`, `CLOUDSDK_PYTHON`.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use kube::config::ExecConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PluginError;

/// Variables that choose an account, a region or a project of those that this host has credentials for.
const VARIABLES: [&str; 13] = [
    "AAD_LOGIN_METHOD",
    "AWS_DEFAULT_REGION",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_STS_REGIONAL_ENDPOINTS",
    "AZURE_CLIENT_ID",
    "AZURE_SUBSCRIPTION_ID",
    "AZURE_TENANT_ID",
    "CLOUDSDK_ACTIVE_CONFIG_NAME",
    "CLOUDSDK_COMPUTE_REGION",
    "CLOUDSDK_CORE_ACCOUNT",
    "CLOUDSDK_CORE_PROJECT",
    "USE_GKE_GCLOUD_AUTH_PLUGIN",
];

/// The programs that may be run to get credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Exec {
    /// The credential plugins that may be run.
    pub allow: Vec<Allowed>,
    /// Variables that a kubeconfig may set for them, beside those that only choose an account, a region or a project.
    pub env: BTreeSet<String>,
}

/// A credential plugin that may be run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Allowed {
    /// The command as it stands in the kubeconfig, with any arguments: a name, or a whole path.
    Command(String),
    /// The command with these arguments and no others.
    Pinned(Pinned),
}

/// A credential plugin that may be run with certain arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pinned {
    /// The command as it stands in the kubeconfig: a name, or a whole path.
    pub command: String,
    /// All of its arguments, in their order.
    #[serde(default)]
    pub args: Vec<String>,
}

impl From<&str> for Allowed {
    fn from(command: &str) -> Self {
        Self::Command(command.to_owned())
    }
}

impl Allowed {
    fn command(&self) -> &str {
        match self {
            Self::Command(command) | Self::Pinned(Pinned { command, .. }) => command,
        }
    }

    fn allows(&self, args: &[String]) -> bool {
        match self {
            Self::Command(_) => true,
            Self::Pinned(pinned) => pinned.args == args,
        }
    }
}

impl Exec {
    /// Refuses a command that is not allowed, or not with its arguments. `setting` is the name of these settings, or there
    /// is a flag in their place.
    pub(super) fn check(
        &self,
        command: &str,
        args: &[String],
        (setting, flag): (&str, Option<&str>),
    ) -> Result<(), PluginError> {
        let mut listed = self.allow.iter().filter(|allowed| allowed.command() == command).peekable();
        if listed.peek().is_none() {
            let message = format!("the credential plugin {command:?} is not allowed to run");
            let hint = match flag {
                Some(flag) => format!("if you trust it, add {flag} {command}"),
                None => format!("if you trust it, add {command:?} to {setting}.allow"),
            };
            return Err(PluginError::new(message).with_hint(hint));
        }
        // Where it leads would depend on the folder that this process was started in.
        if command.contains('/') && !command.starts_with('/') {
            let message = format!("the credential plugin {command:?} is named by a path that is not a whole one");
            return Err(PluginError::new(message).with_hint("write its name alone, or its whole path"));
        }
        if !listed.any(|allowed| allowed.allows(args)) {
            let message = format!("the credential plugin {command:?} is not allowed to run with these arguments");
            let hint = format!("{setting}.allow pins its arguments: compare them with those of the kubeconfig");
            return Err(PluginError::new(message).with_hint(hint));
        }
        Ok(())
    }

    /// Returns the variables that a kubeconfig sets, if it may set all of them. Values are never told.
    pub(super) fn variables(&self, exec: &ExecConfig, setting: &str) -> Result<Vec<(String, String)>, PluginError> {
        let pairs = exec.env.iter().flatten().filter_map(|pair| Some((pair.get("name")?, pair.get("value")?)));
        let mut variables = Vec::new();
        for (name, value) in pairs {
            if !VARIABLES.contains(&name.as_str()) && !self.env.contains(name) {
                let message = format!("the kubeconfig may not set {name:?} for its credential plugin");
                let hint = format!(
                    "it may make the plugin run something else; set it for the service, or add it to {setting}.env"
                );
                return Err(PluginError::new(message).with_hint(hint));
            }
            variables.push((name.clone(), value.clone()));
        }
        Ok(variables)
    }
}

/// Returns the program that a command means: by its whole path, or the first of that name in one of the folders.
pub(super) fn program(command: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    if Path::new(command).is_absolute() {
        return Some(PathBuf::from(command));
    }
    folders.iter().filter(|folder| folder.is_absolute()).map(|folder| folder.join(command)).find(is_program)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};
    use tempfile::TempDir;

    use super::*;

    fn settings(value: Value) -> Exec {
        serde_json::from_value(value).expect("it is valid")
    }

    #[test]
    fn arguments_can_be_pinned() {
        let args = |words: &str| words.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let pinned = json!({"command": "aws", "args": ["eks", "get-token", "--cluster-name", "eu"]});
        let exec = settings(json!({"allow": ["kubelogin", pinned]}));
        let check = |command: &str, words: &str| exec.check(command, &args(words), ("x.exec", None));
        assert!(check("kubelogin", "anything at all").is_ok());
        assert!(check("aws", "eks get-token --cluster-name eu").is_ok());
        for words in ["eks get-token --cluster-name us", "eks get-token --cluster-name eu --debug", "eks get-token"] {
            let error = check("aws", words).expect_err(words);
            assert!(error.message.ends_with("\"aws\" is not allowed to run with these arguments"), "{error}");
        }
        assert!(check("sh", "-c true").is_err());
    }

    #[test]
    fn a_relative_path_leads_nowhere() {
        let exec = settings(json!({"allow": ["./aws", "bin/aws"]}));
        for command in ["./aws", "bin/aws"] {
            let error = exec.check(command, &[], ("x.exec", None)).expect_err(command);
            assert!(error.message.contains("not a whole one"), "{error}");
        }
    }

    #[test]
    fn only_known_variables_are_passed_on() {
        let variables = |exec: &Exec, name: &str| {
            let pair = [("name", name), ("value", "sesame")].map(|(key, value)| (key.to_owned(), value.to_owned()));
            let config = ExecConfig { env: Some(vec![pair.into_iter().collect()]), ..ExecConfig::default() };
            exec.variables(&config, "x.exec")
        };
        let none = Exec::default();
        assert_eq!(variables(&none, "AWS_PROFILE"), Ok(vec![("AWS_PROFILE".to_owned(), "sesame".to_owned())]));
        for name in ["PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "AWS_CONFIG_FILE", "CLOUDSDK_PYTHON", "A"] {
            let error = variables(&none, name).expect_err(name);
            assert!(error.message.contains(name) && !format!("{error:?}").contains("sesame"), "{error:?}");
            let named = settings(json!({"env": [name]}));
            assert!(variables(&named, name).is_ok(), "who names it trusts it");
        }
        assert!(variables(&none, "aws_profile").is_err(), "names are compared to the letter");
    }

    #[test]
    fn a_name_leads_into_folders_with_whole_paths_only() {
        let folder = TempDir::new().expect("temporary folders can be made");
        let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
        for place in [&first, &second] {
            fs::create_dir(place).expect("a temporary folder can be written");
            fs::write(place.join("aws"), "").expect("a temporary folder can be written");
        }
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        mode(&first.join("aws"), 0o644).expect("it is ours");
        mode(&second.join("aws"), 0o755).expect("it is ours");
        let folders = [PathBuf::from("."), PathBuf::from(""), first, second.clone()];
        assert_eq!(program("aws", &folders), Some(second.join("aws")), "what is no program is passed over");
        assert_eq!(program("nope", &folders), None);
    }
}
