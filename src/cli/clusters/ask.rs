//! Asks clusters beside each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use gatewright_engine::error::Chain;

use super::{Kind, Line, Standing};
use crate::cli::choice::{Choice, Part};
use crate::cli::session::{Prepared, Selection, Session, stopped};
use crate::cli::{Failure, worst};
use crate::cluster::right::Right;
use crate::cluster::{Cluster, ClusterError, Reason};
use crate::config::settings::Mode;
use crate::desired::assemble;
use crate::desired::preflight::{self, Preflight, Silence};
use crate::desired::rights::{Extent, rights};
use crate::reconcile::requests::join_at_most;
use crate::report;

/// The clusters that are asked at once: most of the time is spent waiting for those that do not answer.
const AT_ONCE: usize = 32;

/// The rights that are needed, by cluster and sync.
type Needed = BTreeMap<String, BTreeMap<String, BTreeSet<Right>>>;

/// Asks all of them, and writes into the lines what they say; returns the exit codes of sources that cannot be read.
pub(super) fn all(session: &Session<'_>, lines: &mut [Line], limit: Duration) -> Result<Vec<u8>, Failure> {
    let mut needed = Needed::new();
    let codes = need(session, lines, &mut needed);
    let (none, mut clusters): (_, BTreeMap<String, Arc<dyn Cluster>>) = (BTreeMap::new(), BTreeMap::new());
    for line in lines.iter() {
        clusters.insert(line.name.clone(), session.cluster(&line.name)?);
    }
    let asked = clusters.iter().map(|(name, cluster)| {
        let rights = needed.get(name).unwrap_or(&none).iter().map(|(sync, rights)| {
            let asked = assemble::as_account(cluster, sync, &session.config.settings.syncs[sync]);
            (sync.clone(), (asked, rights))
        });
        preflight::ask(cluster.as_ref(), rights.collect(), limit).map(move |answer| (name, answer)).boxed()
    });
    let mut answers: BTreeMap<&String, _> = session.block_on(async {
        tokio::select! {
            answers = join_at_most(asked.collect(), AT_ONCE) => Ok(answers.into_iter().collect()),
            () = session.stop().cancelled() => Err(stopped()),
        }
    })?;
    for line in lines {
        match answers.remove(&line.name) {
            Some(Ok(preflight)) => line.answered(preflight),
            Some(Err(silence)) => line.silent(&silence),
            None => {}
        }
    }
    Ok(codes)
}

/// Finds out which rights the syncs need on the clusters that are API servers. What cannot be found out is told, and keeps
/// nothing else from being asked.
fn need(session: &Session<'_>, lines: &mut [Line], needed: &mut Needed) -> Vec<u8> {
    let servers = lines.iter().filter(|line| line.kind == Some(Kind::ApiServer) && !line.syncs.is_empty());
    let names: Vec<String> = servers.map(|line| line.name.clone()).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let selection = Selection { part: Part::of(Choice::of_names(&names)), ..Selection::default() };
    let mut codes = Vec::new();
    match session.any_installation().and_then(|installation| session.prepare(&selection, &installation)) {
        Ok(ready) => {
            codes.extend(ready.codes);
            for prepared in &ready.rounds {
                codes.extend(need_of(session, prepared, needed));
            }
        }
        Err(failure) => codes.push(failure.tell()),
    }
    for line in lines.iter_mut().filter(|line| line.kind == Some(Kind::ApiServer)) {
        let known = needed.get(&line.name);
        for sync in line.syncs.keys().filter(|sync| known.is_none_or(|known| !known.contains_key(*sync))) {
            let why = "what the sync wants there is not known, because its source cannot be read".to_owned();
            line.unknown.insert(format!("rights of sync {sync}"), why);
        }
    }
    codes
}

fn need_of(session: &Session<'_>, prepared: &Prepared, needed: &mut Needed) -> Option<u8> {
    let settings = &prepared.order.settings;
    let extent = Extent::of(settings, settings.mode == Mode::Report);
    let mut codes = Vec::new();
    for (cluster, want) in &prepared.wanted {
        match session.block_on(want.rendering()) {
            Ok(rendering) => {
                let of_cluster = needed.entry(cluster.clone()).or_default();
                of_cluster
                    .insert(prepared.order.sync.clone(), rights(extent, settings.impersonate.as_ref(), &rendering));
            }
            Err(error) => codes.push(Failure::of(&error).tell()),
        }
    }
    (!codes.is_empty()).then(|| worst(codes))
}

impl Line {
    fn answered(&mut self, preflight: Preflight) {
        self.state = Standing::Reachable;
        (self.identity, self.version) = (preflight.identity, preflight.version);
        match preflight.gateway_api {
            Ok(found) => self.gateway_api = found,
            Err(why) => drop(self.unknown.insert("Gateway API".to_owned(), why)),
        }
        for (sync, missing) in preflight.missing {
            match missing {
                Ok(missing) => {
                    if let Some(of_sync) = self.syncs.get_mut(&sync) {
                        of_sync.missing_rights = Some(missing);
                    }
                }
                Err(why) => drop(self.unknown.insert(format!("rights of sync {sync}"), why)),
            }
        }
    }

    fn silent(&mut self, silence: &Silence) {
        self.state = match silence {
            Silence::TimeUp(_) => Standing::Unreachable,
            Silence::Failed(error) => standing(error),
        };
        let hint = match silence {
            Silence::TimeUp(_) => Some("--timeout gives it longer".to_owned()),
            Silence::Failed(error) => error.hint.clone(),
        };
        self.error = Some(report::Failure { message: Chain(silence).to_string(), hint });
    }
}

fn standing(error: &ClusterError) -> Standing {
    match error.reason {
        Reason::Unreachable => Standing::Unreachable,
        Reason::Misconfigured => Standing::Misconfigured,
        Reason::Unauthorized | Reason::Forbidden => Standing::Refused,
        Reason::NotFound | Reason::Conflict | Reason::Invalid | Reason::Overloaded | Reason::Other => Standing::Failed,
    }
}
