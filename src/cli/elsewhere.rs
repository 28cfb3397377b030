//! A cluster that is gone from the config file, and can be reached by a kubeconfig that the command line names.

use std::path::PathBuf;

use super::session::Session;
use super::{Context, Failure};
use crate::config::settings::ClusterSettings;

/// The way to such a cluster.
#[derive(Debug, clap::Args)]
pub(super) struct Elsewhere {
    /// The kubeconfig of a cluster that is gone from the config file; --cluster says which one.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

impl Elsewhere {
    /// Tells whether a command is about one.
    pub(super) fn is_said(&self) -> bool {
        self.kubeconfig.is_some()
    }

    /// Opens a session in which it has the name that `--cluster` says. Plugins may run that `clusterFolderAccess` allows.
    pub(super) fn open<'a>(&self, context: &'a Context, names: &[String]) -> Result<Session<'a>, Failure> {
        let Some(file) = &self.kubeconfig else { return Session::open(context) };
        let mut session = Session::open(context)?;
        let [name] = names else {
            let failure = Failure::usage("--kubeconfig is for one cluster, by the name that it had");
            return Err(failure.hint("say --cluster NAME; `gatewright clusters` lists those that are gone"));
        };
        if session.config.settings.clusters.contains_key(name) {
            let place = session.config.place_of_cluster(name);
            let failure = Failure::usage(format!("cluster {name:?} is configured, in {place}"));
            return Err(failure.hint("leave out --kubeconfig"));
        }
        let file = std::path::absolute(file).map_err(|error| Failure::of(&error))?;
        let kubeconfig = Some(session.config.settings.cluster_folder_access.to(&file));
        let cluster = ClusterSettings { kubeconfig, ..ClusterSettings::default() };
        session.config.settings.clusters.insert(name.clone(), cluster);
        Ok(session)
    }
}
