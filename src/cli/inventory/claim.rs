//! `gatewright inventory claim`.

use gatewright_engine::marks::Marker;
use gatewright_engine::text::count;

use super::{Target, failed};
use crate::cli::session::Session;
use crate::cli::{Context, EXIT_FAILED, Failure, print};
use crate::history::audit_log::Event;
use crate::inventory::maintenance::claim::{ForeignInventory, carry_out, plan};

/// Runs the command.
pub(super) fn run(context: &Context, args: &Target) -> Result<u8, Failure> {
    let session = Session::open(context)?;
    let cluster = session.cluster_for(&args.sync, &args.cluster)?;
    let _lock = session.state.lock()?;
    let installation = session.state.make_installation()?;
    let marker = Marker { installation, sync: args.sync.clone() };
    let fail = |error| failed(&args.cluster, &error);
    let Some(foreign) = session.block_on(plan(cluster.as_ref(), &marker)).map_err(fail)? else {
        let message = format!("no other installation has a sync {:?} on cluster {:?}", args.sync, args.cluster);
        return Err(Failure::usage(message));
    };
    print(&shown(&foreign, args));
    if !session.confirm(args.yes, "Claim these objects?", "yes")? {
        return Ok(EXIT_FAILED);
    }
    let (sync, cluster_name, from) = (args.sync.clone(), args.cluster.clone(), foreign.from.clone());
    context.audit(&session.state, Event::InventoryClaimed { sync, cluster: cluster_name, from })?;
    let audit = session.audit(&args.sync, &args.cluster);
    let done = carry_out(cluster.as_ref(), &marker, foreign, audit.as_ref());
    let number = session.block_on(done).map_err(fail)?;
    print(&format!("{} claimed\n", count(number, "object")));
    Ok(0)
}

fn shown(foreign: &ForeignInventory, args: &Target) -> String {
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
