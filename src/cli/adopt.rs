//! `gatewright adopt`.

use super::session::Selection;
use super::sync::{Manner, rounds};
use super::{Context, Failure};
use crate::report::Report;

/// Adopt Gateways from the deployer of their control plane, without a restart: one round of sync that may do so.
///
/// The deployer must be told to leave the Gateway alone. With `specs: apply` the round does that by itself: it applies
/// the self-managed copy of the Gateway, waits until the control plane has accepted it (up to wait.timeout), takes the
/// ownerReference off every object that the deployer has made and becomes its field manager in place of the deployer, and
/// applies what differs. With `specs: render` the Gateway in the cluster must be self-managed already. `plan --adopt` says
/// beforehand what will differ, and "yes" is asked for as in sync.
///
/// A sync with adopt.deployer: true does the same in every round.
///
/// Exit codes: 0 done, 1 failed, 3 held by a guard or refused, 4 a cluster was unreachable, 64 usage or configuration; of
/// several the first of 1, 3, 4, 0.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    manner: Manner,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    rounds(context, &args.selection, &args.manner, (true, Report::exit_code))
}
