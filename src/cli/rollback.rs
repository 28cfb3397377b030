//! `gatewright rollback`.

use std::collections::BTreeMap;

use super::choice::Choice;
use super::plan::show;
use super::session::{Prepared, Session, is_chosen};
use super::sync::{How, round_back};
use super::{Context, Failure, check_names, print};
use crate::history::archive::sets::{self, Set};
use crate::history::archive::vault::Vault;
use crate::report::{ClusterState, Mode};

/// Apply what was rendered in an earlier round again, without the source, and suspend the sync.
///
/// After each round that ends well what it rendered is kept. A rollback is a round like any other: it shows its plan,
/// and all guards hold. `gatewright resume SYNC` applies the source again.
///
/// Exit codes: 0 done, 1 failed, 3 held by a guard, 4 a cluster was unreachable, 64 usage or configuration; of several
/// the first of 1, 3, 4, 0.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The sync.
    #[arg(value_name = "SYNC")]
    sync: String,
    /// The set to go back to: how many sets back (1 is the one before the last), or how a digest, a revision or the
    /// name of a run begins.
    #[arg(long, value_name = "SET", default_value = "1")]
    to: String,
    /// List what there is, the newest first, and change nothing.
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    clusters: Choice,
    /// Show what would be done, and change nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    how: How,
}

/// Numbers up to this many digits count sets; longer ones are digests.
const MOST_DIGITS: usize = 3;

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    args.how.check()?;
    let session = Session::open(context)?;
    check_names("sync", [&args.sync], &session.config.settings.syncs)?;
    let clusters = clusters(&session, args)?;
    if args.list {
        return list(&session, args, &clusters);
    }
    let _lock = if args.dry_run { None } else { session.lock_with_siblings()? };
    let prepared = prepare(&session, args, &clusters)?;
    let plan = session.round(&prepared, Mode::Plan);
    let is_held = plan.clusters.values().any(|cluster| cluster.state != ClusterState::Planned);
    if args.dry_run || is_held {
        show(context, &plan, args.how.format, args.how.extent());
        return Ok(plan.exit_code());
    }
    round_back(context, &args.how, &session, prepared)
}

fn clusters(session: &Session<'_>, args: &Args) -> Result<Vec<String>, Failure> {
    let settings = &session.config.settings;
    let selected = session.config.clusters_of(&settings.syncs[&args.sync]);
    let chosen = args.clusters.names(&settings.clusters, |name| selected.contains_key(name))?;
    for name in &chosen {
        if !selected.contains_key(name.as_str()) {
            return Err(Failure::usage(format!("sync {:?} does not select cluster {name:?}", args.sync)));
        }
    }
    Ok(selected.into_keys().filter(|name| is_chosen(&chosen, name)).map(str::to_owned).collect())
}

fn list(session: &Session<'_>, args: &Args, clusters: &[String]) -> Result<u8, Failure> {
    for cluster in clusters {
        print(&format!("cluster {cluster}\n"));
        for (number, set) in known(session, &args.sync, cluster)?.1.iter().enumerate() {
            let Set { digest, revision, run, time, objects, .. } = set;
            let time = time.strftime("%F %T UTC");
            print(&format!("  {number:2}  {digest}  {time}  {revision}  {objects} objects  {run}\n"));
        }
    }
    Ok(0)
}

/// Returns what is kept of a sync on a cluster. Before the first round there is no key, and nothing to read with it.
fn known(session: &Session<'_>, sync: &str, cluster: &str) -> Result<(Option<Vault>, Vec<Set>), Failure> {
    if !sets::exist(&session.state, sync, cluster) {
        return Ok((None, Vec::new()));
    }
    let vault = session.vault()?;
    let sets = sets::list(&vault, sync, cluster)?;
    Ok((Some(vault), sets))
}

/// Finds the set on every cluster before anything is changed on one.
fn prepare(session: &Session<'_>, args: &Args, clusters: &[String]) -> Result<Prepared, Failure> {
    let mut wanted = BTreeMap::new();
    let mut found: Vec<Set> = Vec::new();
    for cluster in clusters {
        let (vault, sets) = known(session, &args.sync, cluster)?;
        let (Some(set), Some(vault)) = (pick(&sets, &args.to), vault) else {
            let count = sets.len();
            let message = format!("sync {:?} has no set {:?} on cluster {cluster:?}, of {count}", args.sync, args.to);
            let hint = "shows what there is; --cluster names others";
            return Err(Failure::usage(message).hint(format!("`gatewright rollback {} --list` {hint}", args.sync)));
        };
        let rendering = sets::load(&vault, &args.sync, cluster, set)?;
        wanted.insert(cluster.clone(), rendering);
        if found.iter().all(|known| known.digest != set.digest) {
            found.push(set.clone());
        }
    }
    let join = |of: fn(&Set) -> &str| found.iter().map(of).collect::<Vec<_>>().join(", ");
    let (digests, mut revisions) = (join(|set| &set.digest), found.iter().map(|set| &set.revision).collect::<Vec<_>>());
    revisions.dedup();
    let revision = revisions.into_iter().cloned().collect::<Vec<_>>().join(", ");
    let settings = &session.config.settings.syncs[&args.sync];
    let mut prepared = session.without_source((&args.sync, settings), clusters, (revision, wanted))?;
    prepared.order.cause = Some(format!("rollback to {digests}"));
    Ok(prepared)
}

fn pick<'a>(sets: &'a [Set], to: &str) -> Option<&'a Set> {
    if to.len() <= MOST_DIGITS
        && let Ok(number) = to.parse::<usize>()
    {
        return sets.get(number);
    }
    let is_it = |set: &&Set| {
        let commit = set.revision.rsplit(':').next().unwrap_or_default();
        [set.digest.as_str(), &set.revision, commit, &set.run].iter().any(|name| name.starts_with(to))
    };
    sets.iter().find(is_it)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn a_set_is_found_by_number_digest_revision_or_run() {
        let set = |digest: &str, revision: &str| Set {
            digest: digest.to_owned(),
            revision: revision.to_owned(),
            run: format!("run-of-{digest}"),
            time: Timestamp::UNIX_EPOCH,
            objects: 1,
            key: None,
        };
        let sets = [set("aa11", "main@sha1:0123"), set("1234567890", "main@sha1:4567"), set("aa22", "main@sha1:89ab")];
        let digest = |to| pick(&sets, to).map(|set| set.digest.as_str());
        assert_eq!((digest("0"), digest("1"), digest("3")), (Some("aa11"), Some("1234567890"), None));
        assert_eq!((digest("aa2"), digest("aa"), digest("1234")), (Some("aa22"), Some("aa11"), Some("1234567890")));
        assert_eq!((digest("89a"), digest("main@sha1:45")), (Some("aa22"), Some("1234567890")));
        assert_eq!((digest("run-of-aa22"), digest("b")), (Some("aa22"), None));
    }
}
