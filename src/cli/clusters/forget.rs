//! `gatewright clusters forget`.

use crate::cli::session::Session;
use crate::cli::{Context, Failure, print};
use crate::config::did_you_mean;
use crate::history::audit_log::Event;
use crate::reconcile::gone;

/// Forget a cluster that is gone from the config file.
///
/// What was applied there stays as it is, and is not told of any more: no cluster is asked or changed. To delete it, first
/// say `destroy SYNC --cluster NAME --kubeconfig FILE`. If the cluster is configured again, this host knows it as little
/// as a new one, and deletes nothing in its first round there.
///
/// Exit codes: 0 it is forgotten, 1 the state cannot be written, 64 usage or configuration: it is still configured, or
/// nothing was ever applied there.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The cluster.
    #[arg(value_name = "NAME")]
    cluster: String,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let session = Session::open(context)?;
    let name = &args.cluster;
    if session.config.settings.clusters.contains_key(name) {
        let place = session.config.place_of_cluster(name);
        let failure = Failure::usage(format!("cluster {name:?} is configured, in {place}"));
        return Err(failure.hint("take it out of there first, and let the daemon read its configuration again"));
    }
    let gone = gone::find(&session.config, &session.state);
    let Some(syncs) = gone.get(name) else {
        let failure = Failure::usage(format!("no cluster {name:?} is gone"));
        return Err(failure.hint(did_you_mean(name, gone.keys().map(String::as_str))));
    };
    // A daemon that has not read its configuration again yet may have a round there.
    let mut locks = Vec::new();
    for sync in syncs {
        locks.extend(session.lock_rounds(sync, [name])?);
    }
    context.audit(&session.state, Event::ClusterForgotten { cluster: name.clone() })?;
    gone::forget(&session.state, name)?;
    let syncs: Vec<&str> = syncs.iter().map(String::as_str).collect();
    print(&format!("cluster {name} is forgotten; what sync {} applied there stays as it is\n", syncs.join(", ")));
    Ok(0)
}
