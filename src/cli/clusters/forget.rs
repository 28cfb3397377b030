//! `gatewright clusters forget`.

use std::collections::BTreeSet;

use crate::cli::session::Session;
use crate::cli::{Context, Failure, complain, print};
use crate::config::did_you_mean;
use crate::history::audit_log::Event;
use crate::reconcile::gone;

/// Forget a cluster that is gone from the config file, or what syncs have done on one to which they do not go any more.
///
/// What was applied there stays as it is, and is not told of any more: no cluster is asked or changed. To delete it, first
/// say `destroy SYNC --cluster NAME --kubeconfig FILE`. If the cluster is configured again, this host knows it as little
/// as a new one, and deletes nothing in its first round there.
///
/// Exit codes: 0 it is forgotten, 1 the state cannot be written, 64 usage or configuration: all syncs that have applied
/// something there still select it, or nothing was ever applied there.
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
    let is_configured = session.config.settings.clusters.contains_key(name);
    let syncs = &if is_configured { left(&session, name)? } else { gone(&session, name)? };
    if session.lock_with_siblings()?.is_none() {
        complain(&format!(
            "gatewright: a daemon runs with this state directory; have it read the config file as it is now (systemctl \
             reload gatewright): until it has, it goes on with {name} as with a new cluster\n"
        ));
    }
    // A daemon that has not read its configuration again yet may have a round there.
    let mut locks = Vec::new();
    for sync in syncs {
        locks.extend(session.lock_rounds(sync, [name])?);
    }
    context.audit(&session.state, Event::ClusterForgotten { cluster: name.clone() })?;
    let names: Vec<&str> = syncs.iter().map(String::as_str).collect();
    let names = names.join(", ");
    if is_configured {
        gone::forget_syncs(&session.state, name, syncs)?;
        print(&format!("sync {names} on cluster {name} is forgotten; what it applied there stays as it is\n"));
    } else {
        gone::forget(&session.state, name)?;
        print(&format!("cluster {name} is forgotten; what sync {names} applied there stays as it is\n"));
    }
    Ok(0)
}

/// Returns the syncs that have applied something to a cluster that is gone.
fn gone(session: &Session<'_>, name: &str) -> Result<BTreeSet<String>, Failure> {
    let mut gone = gone::find(&session.config, &session.state);
    gone.remove(name).ok_or_else(|| {
        let failure = Failure::usage(format!("no cluster {name:?} is gone"));
        failure.hint(did_you_mean(name, gone.keys().map(String::as_str)))
    })
}

/// Returns the syncs that have applied something to a cluster that is configured, but not for them.
fn left(session: &Session<'_>, name: &str) -> Result<BTreeSet<String>, Failure> {
    let unselected = gone::unselected(&session.config, &session.state);
    let is_left = |(sync, clusters): (String, BTreeSet<String>)| clusters.contains(name).then_some(sync);
    let syncs: BTreeSet<String> = unselected.into_iter().filter_map(is_left).collect();
    if syncs.is_empty() {
        let place = session.config.place_of_cluster(name);
        let failure = Failure::usage(format!("cluster {name:?} is configured, in {place}"));
        return Err(failure.hint("take it out of there first, and let the daemon read its configuration again"));
    }
    Ok(syncs)
}
