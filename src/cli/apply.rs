//! `gatewright apply`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gatewright_engine::error::Chain;

use super::choice::{Choice, Part};
use super::named::NamedError;
use super::session::{Ready, Selection, Session};
use super::sync::{Manner, carry_out};
use super::{Context, EXIT_FAILED, Failure, complain};
use crate::config::Config;
use crate::config::settings::SourceSettings;
use crate::desired::assemble;
use crate::history::saved_plan::{PlanFile, PlanFileError, PlannedSync};
use crate::report::Report;
use crate::source::git::names::{CommitId, Reference};

/// Carry out a plan that `plan --out` has written: exactly what it shows, and nothing else.
///
/// The revision of the source that was planned is rendered again, a commit of git even if the branch has moved on; a
/// directory must be as it was. Everything is looked at again, and a unit goes ahead only if its steps come out the same:
/// same objects, untouched since, same result. What has changed is refused as stale, and what the plan does not have is left
/// alone. A status that was written meanwhile changes nothing. Guards and approvals count as in every round, and on a
/// terminal "yes" is asked for as in sync.
///
/// Exit codes: 0 done, 1 failed, or something is stale, 3 held by a guard, 4 a cluster was unreachable, 64 usage or
/// configuration, or the file cannot be used; of several the first of 1, 3, 4, 0.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The plan.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Adopt from deployers in the clusters what was planned so with `plan --adopt`; a sync with adopt.deployer: true
    /// needs no word.
    #[arg(long)]
    adopt: bool,
    #[command(flatten)]
    manner: Manner,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    args.manner.how.check()?;
    let file = PlanFile::read(&args.file).map_err(|error| unreadable(&error))?;
    let mut config = context.load_file()?;
    context.log_quietly(&config)?;
    // A source stays the same one at another commit: what is applied is the last that is known of it.
    let sources: BTreeMap<String, String> =
        config.settings.sources.keys().map(|name| (name.clone(), assemble::source_identity(&config, name))).collect();
    for planned in &file.plan.syncs {
        pin(&mut config, planned)?;
        permit(&config, planned, &file.plan, args.adopt)?;
    }
    let session = Session::new(context, config)?;
    let _lock = session.state.lock()?;
    let installation = session.state.installation()?.unwrap_or_default();
    if installation != file.plan.installation {
        let message =
            format!("the plan was made by installation {}, and this one is {installation:?}", file.plan.installation);
        return Err(Failure::usage(message).hint("apply it where it was made, with the same state directory"));
    }
    let plan = file.verified(&session.vault()?).map_err(|error| unreadable(&error))?;
    let mut all = Ready::default();
    for planned in plan.syncs.iter().filter(|planned| !planned.clusters.is_empty()) {
        let mut ready = prepared(&session, &plan, planned, args.adopt)?;
        ready.rounds.iter_mut().for_each(|prepared| prepared.source = sources.get(&planned.source).cloned());
        all.rounds.extend(ready.rounds);
        all.codes.extend(ready.codes);
    }
    all.rounds.sort_by_cached_key(|prepared| session.turn(prepared));
    carry_out(context, &args.manner, &session, all, Report::exit_code)
}

fn unreadable(error: &PlanFileError) -> Failure {
    Failure::usage(Chain(error).to_string()).hint(match error {
        PlanFileError::OtherVersion(..) => "apply it with the version that has written it, or plan again",
        PlanFileError::Read(..) | PlanFileError::Write(..) => {
            "name the file that `gatewright plan --out FILE` has written"
        }
        PlanFileError::NoPlan(_) | PlanFileError::Damaged(_) | PlanFileError::Forged(_) => {
            "plan again with `gatewright plan --out FILE`"
        }
    })
}

/// Has the source read at the commit that was planned.
fn pin(config: &mut Config, planned: &PlannedSync) -> Result<(), Failure> {
    let stale = |what: String| Failure::usage(what).hint("plan again: the config file is not the one of the plan");
    let Some(sync) = config.settings.syncs.get(&planned.sync) else {
        return Err(stale(format!("the plan is about sync {:?}, which is not configured", planned.sync)));
    };
    if sync.source != planned.source {
        let what = format!(
            "sync {:?} has source {:?}, and the plan was made of {:?}",
            planned.sync, sync.source, planned.source
        );
        return Err(stale(what));
    }
    let Some(SourceSettings { git: Some(git), .. }) = config.settings.sources.get_mut(&planned.source) else {
        return Ok(());
    };
    let commit = planned.commit().and_then(|commit| CommitId::try_from(commit.to_owned()).ok());
    let lost = || stale(format!("source {:?} has no revision {:?}", planned.source, planned.revision));
    git.reference = Some(Reference::Commit(commit.ok_or_else(lost)?));
    Ok(())
}

/// Takes no file's word for what only the configuration, or the person at hand, permits.
fn permit(config: &Config, planned: &PlannedSync, plan: &PlanFile, adopt: bool) -> Result<(), Failure> {
    let is_permitted = config.settings.syncs.get(&planned.sync).is_some_and(|sync| sync.adopt.deployer);
    if !plan.adopt || adopt || is_permitted {
        return Ok(());
    }
    let message = format!(
        "the plan takes objects over from deployers, which sync {:?} does not do by itself (adopt.deployer)",
        planned.sync
    );
    Err(Failure::usage(message).hint("add --adopt if that is meant"))
}

/// Reads the source of a sync as it was planned.
fn prepared(session: &Session<'_>, plan: &PlanFile, planned: &PlannedSync, adopt: bool) -> Result<Ready, Failure> {
    let clusters = Choice::of_names(&planned.clusters.keys().cloned().collect::<Vec<_>>());
    let only = plan.only.iter().map(|unit| unit.parse()).collect::<Result<_, NamedError>>();
    let part = Part { only: only.map_err(|error| Failure::of(&error))?, ..Part::of(clusters) };
    let selection = Selection { sync: Some(planned.sync.clone()), part };
    let mut ready = session.prepare(&selection, &plan.installation)?;
    for prepared in &mut ready.rounds {
        if adopt && plan.adopt {
            prepared.order.settings.adopt.adopt_from_deployers();
        }
        prepared.order.pinned = Some(planned.saved());
    }
    let is_same = |revision: &str| match planned.commit() {
        Some(commit) => revision.ends_with(commit),
        None => revision == planned.revision,
    };
    if let Some(other) =
        ready.rounds.iter().map(|prepared| &prepared.snapshot.revision).find(|revision| !is_same(revision))
    {
        complain(&format!(
            "gatewright: source {:?} is at {other} by now, and the plan was made at {}\n  nothing of sync {:?} was changed; plan again\n",
            planned.source, planned.revision, planned.sync
        ));
        return Ok(Ready { rounds: Vec::new(), codes: vec![EXIT_FAILED] });
    }
    Ok(ready)
}
