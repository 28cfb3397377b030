//! `gatewright inventory claim`.

use gatewright_engine::marks::Marker;
use gatewright_engine::text::count;

use super::failed;
use crate::cli::session::{Answer, Session, unusable};
use crate::cli::{Context, EXIT_FAILED, Failure, print};
use crate::inventory::maintenance::claim::{ForeignInventory, carry_out, plan};

/// Claim what another installation owns under the name of a sync: its inventory, and the marks of its objects.
///
/// No object is made again or deleted, and nothing of it but its marks is changed. Stop the other installation first. It
/// shows what changes hands, and asks; in a script say --yes. After a failure the same command goes on. As on every host
/// that sees a cluster for the first time, the first round after it deletes nothing.
///
/// Exit codes: 0 done, 1 failed or cancelled, 4 the cluster was unreachable, 64 usage or configuration.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The sync.
    #[arg(value_name = "SYNC")]
    sync: String,
    /// The cluster.
    #[arg(long, value_name = "NAME")]
    cluster: String,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let config = context.load()?;
    context.log_quietly(&config)?;
    let session = Session::new(context, &config)?;
    let cluster = session.cluster(&args.cluster)?;
    let _lock = session.state.lock().map_err(|error| unusable(&error))?;
    let installation = session.state.make_installation().map_err(|error| unusable(&error))?;
    let marker = Marker { installation, sync: args.sync.clone() };
    let fail = |error| failed(&args.cluster, &error);
    let Some(foreign) = session.block_on(plan(cluster.as_ref(), &marker)).map_err(fail)? else {
        let message = format!("no other installation has a sync {:?} on cluster {:?}", args.sync, args.cluster);
        return Err(Failure::usage(message));
    };
    print(&shown(&foreign, args));
    if session.confirm(args.yes, "Claim these objects?", "yes")? == Answer::No {
        return Ok(EXIT_FAILED);
    }
    let audit = session.audit(&args.sync, &args.cluster);
    let done = carry_out(cluster.as_ref(), &marker, foreign, audit.as_ref());
    let number = session.block_on(done).map_err(fail)?;
    print(&format!(
        "{} claimed
",
        count(number, "object")
    ));
    Ok(0)
}

fn shown(foreign: &ForeignInventory, args: &Args) -> String {
    let mut out =
        vec![format!("sync {}, cluster {}: owned by installation {}\n", args.sync, args.cluster, foreign.from)];
    for (id, ..) in &foreign.objects {
        out.push(format!("  & {id}\n"));
    }
    for (id, why) in &foreign.left {
        out.push(format!("  ! {id}: {why}; it leaves the inventory\n"));
    }
    let done = foreign.done.len();
    let already = if done == 0 { String::new() } else { format!(", {done} claimed already") };
    out.push(format!("  {} to claim{already}\n", count(foreign.objects.len(), "object")));
    out.concat()
}
