//! The environment, read once.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use gatewright_engine::problem::{Place, Problem};

use super::packs::Builtins;
use super::settings::Settings;
use crate::basics::duration::Period;
use crate::cluster::kubeconfig::StandardLookup;

/// The settings and facts that the environment gives.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// `GATEWRIGHT_CONFIG`: the config file.
    pub config: Option<PathBuf>,
    /// `GATEWRIGHT_STATE_DIR`, `GATEWRIGHT_LOG_LEVEL`, `GATEWRIGHT_LOG_FORMAT`, `GATEWRIGHT_HTTP_LISTEN`,
    /// `GATEWRIGHT_SETTLE`.
    pub overrides: Vec<(&'static str, String)>,
    /// The packs that the program is built with.
    pub builtin: Builtins,
    /// Folders with packs that the command line names.
    pub packs: Vec<PathBuf>,
    /// The kubeconfig files that kubectl would take: `$KUBECONFIG`, else `~/.kube/config`.
    pub kubeconfigs: Vec<PathBuf>,
    /// The folders of `$PATH`.
    pub programs: Vec<PathBuf>,
    /// systemd's `$CREDENTIALS_DIRECTORY`.
    pub credentials: Option<PathBuf>,
    /// systemd's `$NOTIFY_SOCKET`.
    pub notify_socket: Option<OsString>,
    /// systemd's `$WATCHDOG_USEC`.
    pub watchdog: Option<Duration>,
    /// `NO_COLOR` is set.
    pub no_color: bool,
    /// `TERM` says that the terminal knows no way to take a line back.
    pub has_plain_terminal: bool,
    /// The user at the keyboard: `$SUDO_USER`, else `$USER`.
    pub user: Option<String>,
    home: Option<PathBuf>,
    state_home: Option<PathBuf>,
    is_root: bool,
}

/// The variable that names the state directory.
const STATE_DIR: &str = "GATEWRIGHT_STATE_DIR";

/// Variables that override a setting.
const OVERRIDES: [&str; 5] =
    [STATE_DIR, "GATEWRIGHT_LOG_LEVEL", "GATEWRIGHT_LOG_FORMAT", "GATEWRIGHT_HTTP_LISTEN", "GATEWRIGHT_SETTLE"];

impl Environment {
    /// Returns where kubectl would look for a kubeconfig, and for programs.
    pub(crate) fn standard_lookup(&self) -> StandardLookup {
        StandardLookup { files: self.kubeconfigs.clone(), programs: self.programs.clone() }
    }

    /// Returns it for a configuration that is no file of the host's: the state of those is none of its business.
    #[must_use]
    pub(crate) fn without_state_dir(mut self) -> Self {
        self.overrides.retain(|(name, _)| *name != STATE_DIR);
        self
    }

    /// Reads it.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment (invariant 5)")]
    pub fn read() -> Self {
        let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let path = |name: &str| var(name).map(PathBuf::from);
        let home = path("HOME");
        let kubeconfigs = match var("KUBECONFIG") {
            Some(list) => std::env::split_paths(&list).collect(),
            None => home.iter().map(|home| home.join(".kube/config")).collect(),
        };
        let overrides =
            OVERRIDES.into_iter().filter_map(|name| Some((name, var(name)?.to_string_lossy().into_owned())));
        Self {
            config: path("GATEWRIGHT_CONFIG"),
            builtin: Builtins::default(),
            packs: Vec::new(),
            overrides: overrides.collect(),
            kubeconfigs,
            programs: std::env::split_paths(&var("PATH").unwrap_or_else(|| "/usr/bin:/bin".into())).collect(),
            credentials: path("CREDENTIALS_DIRECTORY"),
            notify_socket: var("NOTIFY_SOCKET"),
            watchdog: var("WATCHDOG_USEC").and_then(|text| text.to_str()?.parse().ok()).map(Duration::from_micros),
            no_color: var("NO_COLOR").is_some(),
            has_plain_terminal: var("TERM").is_some_and(|terminal| terminal == "dumb"),
            user: var("SUDO_USER").or_else(|| var("USER")).map(|user| user.to_string_lossy().into_owned()),
            home,
            state_home: path("XDG_STATE_HOME"),
            is_root: std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0),
        }
    }

    /// Returns where the state is kept when nobody says so.
    pub fn state_dir(&self) -> PathBuf {
        let user_state = self.state_home.clone().or_else(|| self.home.as_ref().map(|home| home.join(".local/state")));
        match user_state {
            Some(folder) if !self.is_root => folder.join("gatewright"),
            _ => PathBuf::from("/var/lib/gatewright"),
        }
    }

    /// Puts what the environment says over the settings.
    pub(super) fn apply(&self, settings: &mut Settings) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (name, value) in &self.overrides {
            let mut fail = |message: String| problems.push(Problem::file(Place::file(*name), message));
            match *name {
                STATE_DIR => settings.state_dir = std::path::absolute(value).ok(),
                "GATEWRIGHT_LOG_LEVEL" => settings.log.level.clone_from(value),
                "GATEWRIGHT_LOG_FORMAT" => match serde_json::from_value(value.as_str().into()) {
                    Ok(format) => settings.log.format = format,
                    Err(_) => fail(format!("{value:?} is not one of auto, text, json")),
                },
                "GATEWRIGHT_SETTLE" => match value.parse() {
                    Ok(settle) => settle_all(settings, settle),
                    Err(error) => fail(format!("{error}")),
                },
                _ => match value.parse() {
                    Ok(listen) => settings.http.listen = listen,
                    Err(error) => fail(format!("{error}")),
                },
            }
        }
        problems
    }
}

/// Sets how long every directory has to settle: where everything was just checked out, and nobody writes any more,
/// nobody need wait.
fn settle_all(settings: &mut Settings, settle: Period) {
    for directory in settings.sources.values_mut().filter_map(|source| source.directory.as_mut()) {
        directory.settle = settle;
    }
}
