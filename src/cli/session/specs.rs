//! Sessions about specs that the command line names, without a config file.
//!
//! Their state lies in a folder that is gone with them: nothing that a later command could go by.

use std::path::PathBuf;

use gatewright_engine::text::digest;
use tempfile::TempDir;

use super::Session;
use crate::cli::access::load;
use crate::cli::render::{joined, parts};
use crate::cli::{Context, Failure, complain};
use crate::cluster::kubeconfig;
use crate::config::specs::{CLUSTER, SPECS, of};
use crate::source::Snapshot;
use crate::source::directory::revision;

/// The specs that the command line names.
pub(super) struct NamedSpecs {
    /// Their content.
    pub(super) snapshot: Snapshot,
    /// The state directory; removed when this is dropped.
    _state: TempDir,
}

impl<'a> Session<'a> {
    /// Reads specs, and prepares a command about them and the cluster that a kubeconfig leads to.
    pub(in crate::cli) fn of_specs(
        context: &'a Context,
        paths: &[PathBuf],
        kubeconfig: kubeconfig::Settings,
    ) -> Result<Self, Failure> {
        let snapshot = snapshot(paths)?;
        let state = tempfile::Builder::new().prefix("gatewright-").tempdir().map_err(|error| {
            Failure::of(&error).hint("let TMPDIR name a folder in which this user may write; nothing is left in it")
        })?;
        let place = place(load(context, CLUSTER, &kubeconfig)?);
        let config = context.with_flags(of(kubeconfig, state.path(), &context.environment)?);
        context.log_quietly(&config)?;
        let mut session = Self::with_clusters(context, config)?;
        session.specs = Some(NamedSpecs { snapshot, _state: state });
        complain(&format!(
            "gatewright: asks the cluster of {place}, and changes nothing there\n  specs alone own nothing, so none of this \
             deletes anything; only a sync of a config file knows what it has made\n"
        ));
        Ok(session)
    }

    /// Tells whether it is about specs that the command line names.
    pub(in crate::cli) fn is_of_specs(&self) -> bool {
        self.specs.is_some()
    }

    /// Returns the id of an installation that is none: whatever bears another one is not ours.
    pub(in crate::cli) fn no_installation() -> String {
        digest(SPECS.as_bytes())[..32].to_owned()
    }
}

/// Reads all that is named, as it is now. One folder has the revision that it has as a source.
fn snapshot(paths: &[PathBuf]) -> Result<Snapshot, Failure> {
    let parts = parts(paths)?;
    let of_one = if let [(_, tree)] = parts.as_slice() { Some(revision(tree)) } else { None };
    let tree = joined(parts);
    Ok(Snapshot::new(of_one.unwrap_or_else(|| revision(&tree)), tree))
}

/// Names the cluster that a kubeconfig leads to.
fn place(access: kubeconfig::Access) -> String {
    let context = access.place.context.unwrap_or_default();
    let server = access.config.cluster_url.to_string();
    format!("context {context:?} ({})", server.trim_end_matches('/'))
}
