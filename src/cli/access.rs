//! Flags that lead to a cluster without a config file, and paths that are misspelled.

use std::path::{Path, PathBuf};

use gatewright_engine::check::suggest;

use super::{Context, Failure};
use crate::cluster::exec::allow::{Allowed, Exec};
use crate::cluster::kubeconfig::{self, Origin};

/// The way to a cluster that no config file names.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Access {
    /// The kubeconfig; without it that of kubectl ($KUBECONFIG, else ~/.kube/config).
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig; without it the current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// A credential plugin that the kubeconfig may run, such as aws; may be given several times.
    #[arg(long, value_name = "PLUGIN")]
    allow_exec: Vec<String>,
}

impl Access {
    /// Returns the first flag that was given.
    pub(super) fn flag(&self) -> Option<&'static str> {
        let flags = [
            ("--kubeconfig", self.kubeconfig.is_some()),
            ("--context", self.context.is_some()),
            ("--allow-exec", !self.allow_exec.is_empty()),
        ];
        flags.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag)
    }

    /// Returns the settings of the kubeconfig; its credential plugins are those that were allowed.
    pub(super) fn settings(&self) -> Result<kubeconfig::Settings, Failure> {
        if let Some(lost) = self.kubeconfig.as_ref().filter(|path| !path.exists()) {
            let near = neighbor(lost).map(|near| format!("did you mean {near:?}?"));
            let failure = Failure::usage(format!("there is no kubeconfig {:?}", lost.to_string_lossy()));
            return Err(
                failure.hint(near.unwrap_or_else(|| "without --kubeconfig that of kubectl is taken".to_owned()))
            );
        }
        let path = self.kubeconfig.as_ref().map(std::path::absolute).transpose();
        let allow = self.allow_exec.iter().cloned().map(Allowed::Command).collect();
        Ok(kubeconfig::Settings {
            path: path.map_err(|error| Failure::of(&error))?,
            context: self.context.clone(),
            exec: Exec { allow, ..Exec::default() },
            origin: Origin::Flags,
            ..kubeconfig::Settings::default()
        })
    }

    /// Returns the way to the cluster as it is now, for a config file: what kubectl talks to by itself may be another one
    /// tomorrow.
    pub(super) fn pinned(&self, context: &Context, name: &str) -> Result<kubeconfig::Settings, Failure> {
        let settings = self.settings()?;
        let place = load(context, name, &settings)?.place;
        let path = match place.files.as_slice() {
            [file] => Some(std::path::absolute(file).map_err(|error| Failure::of(&error))?),
            _ => settings.path,
        };
        Ok(kubeconfig::Settings { path, context: place.context, ..settings })
    }
}

/// Reads and checks a kubeconfig, before anything else is done.
pub(super) fn load(
    context: &Context,
    cluster: &str,
    settings: &kubeconfig::Settings,
) -> Result<kubeconfig::Access, Failure> {
    kubeconfig::load(cluster, settings, &context.environment.standard_lookup())
        .map_err(|error| Failure::of_configuration(&error).hint(error.hint.clone()))
}

/// Returns the path that may have been meant by one that is not there: with another name for the first part that is
/// missing.
pub(super) fn neighbor(lost: &Path) -> Option<String> {
    let parts: Vec<_> = lost.components().collect();
    let before = |length: usize| parts[..length].iter().collect::<PathBuf>();
    let missing = (0..parts.len()).find(|index| !before(index + 1).exists())?;
    let folder = before(missing);
    let is_here = folder.as_os_str().is_empty();
    let entries = std::fs::read_dir(if is_here { Path::new(".") } else { &folder }).ok()?.flatten();
    let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let near = suggest(parts[missing].as_os_str().to_str()?, names.iter().map(String::as_str))?;
    let rest: PathBuf = parts[missing + 1..].iter().collect();
    let meant = if rest.as_os_str().is_empty() { folder.join(near) } else { folder.join(near).join(rest) };
    meant.exists().then(|| meant.to_string_lossy().into_owned())
}
