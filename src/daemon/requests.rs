//! Rounds that commands on this host ask for, and how far they are.
//!
//! A request is met by the first round on each cluster that begins after the source was read once more: one that happens to
//! begin before may be about what stood there before. Requests outlive a reload.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gatewright_engine::error::Chain;
use jiff::Timestamp;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::Shared;
use crate::basics::lock::lock;
use crate::schedule::enrolled::{AskedRound, Enrolled};
use crate::state::requested::{self, Answer, Progress, Request};
use crate::state::{State, StateError};

/// The interval between two looks.
const POLL: Duration = Duration::from_secs(1);

/// The number of looks after which rounds that are still open are asked for again: what was lost on the way is not waited for
/// for ever.
const REMIND: u32 = 30;

/// The requests that are open, by sync.
#[derive(Default)]
pub(super) struct Requests {
    open: Mutex<BTreeMap<String, Open>>,
}

/// The open requests for rounds of one sync.
struct Open {
    answer: Answer,
    rounds: Vec<AskedRound>,
}

/// Takes requests until the daemon ends.
pub(super) async fn take(shared: Arc<Shared>, stop: CancellationToken) {
    let looks = async {
        if let Err(error) = requested::forget_answers(&shared.state) {
            warn!(error = %Chain(&error), "cannot take back what another daemon has answered");
        }
        let (mut is_told, mut looks) = (false, 0_u32);
        loop {
            sleep(POLL).await;
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(REMIND) {
                shared.requests.remind(&shared.enrolled);
            }
            let (taken, result) = requested::take(&shared.state, shared.clock.now());
            if let (Err(error), false) = (&result, is_told) {
                warn!(error = %Chain(error), "a request for a round cannot be taken: remove it by hand");
            }
            is_told = result.is_err();
            for (sync, request) in taken {
                shared.requests.begin((&sync, &request), &shared.enrolled, &shared.state);
            }
        }
    };
    stop.run_until_cancelled(looks).await;
}

impl Requests {
    fn begin(&self, (sync, request): (&str, &Request), enrolled: &Enrolled, state: &State) {
        let mut open = lock(&self.open);
        let rounds = enrolled.ask(sync);
        info!(sync, clusters = rounds.len(), by = request.by, "a round was asked for");
        let mut answer = open.remove(sync).map(|open| open.answer).unwrap_or_default();
        answer.ids.insert(request.id.clone());
        answer.clusters = rounds.iter().map(|round| (round.cluster.clone(), Progress::Waits)).collect();
        open.insert(sync.to_owned(), Open { answer, rounds });
        tell(&mut open, sync, state);
    }

    /// Notes that a round of a sync on a cluster is over, which began at a time and after a read of its source.
    pub(super) fn over(&self, (sync, cluster): (&str, &str), (since, read): (Timestamp, u64), state: &State) {
        self.change(sync, state, |round| round.is_met_on(cluster, read), || Progress::Over { since });
    }

    /// Notes that there is no round of a sync on a cluster, for a reason that passes.
    pub(super) fn none(&self, (sync, cluster): (&str, &str), (why, read): (&str, u64), state: &State) {
        self.change(sync, state, |round| round.is_met_on(cluster, read), || Progress::None(why.to_owned()));
    }

    /// Notes that a source could not be read: the rounds that need it do not begin.
    pub(super) fn unread(&self, (source, number): (&str, u64), why: &str, state: &State) {
        let is_met = |round: &AskedRound| round.source == source && round.needed <= number;
        let syncs: Vec<String> = lock(&self.open).keys().cloned().collect();
        for sync in syncs {
            self.change(&sync, state, is_met, || Progress::None(why.to_owned()));
        }
    }

    /// Has rounds that are open begin, should they not have. One that is under way still meets its request.
    fn remind(&self, enrolled: &Enrolled) {
        for sync in lock(&self.open).keys() {
            drop(enrolled.ask(sync));
        }
    }

    /// Asks for the rounds that are open once more, because those that were asked for have ended with their configuration.
    pub(super) fn again(&self, enrolled: &Enrolled, state: &State) {
        let mut open = lock(&self.open);
        let syncs: Vec<String> = open.keys().cloned().collect();
        for sync in syncs {
            let rounds = enrolled.ask(&sync);
            let Some(of_sync) = open.get_mut(&sync) else { continue };
            for (cluster, progress) in &mut of_sync.answer.clusters {
                if *progress == Progress::Waits && !rounds.iter().any(|round| round.cluster == *cluster) {
                    *progress = Progress::None("its rounds do not run here any more".to_owned());
                }
            }
            of_sync.rounds = rounds;
            tell(&mut open, &sync, state);
        }
    }

    fn change(&self, sync: &str, state: &State, is_met: impl Fn(&AskedRound) -> bool, progress: impl Fn() -> Progress) {
        let mut open = lock(&self.open);
        let Some(of_sync) = open.get_mut(sync) else { return };
        let mut is_changed = false;
        for round in of_sync.rounds.iter().filter(|round| is_met(round)) {
            if let Some(waiting @ Progress::Waits) = of_sync.answer.clusters.get_mut(&round.cluster) {
                *waiting = progress();
                is_changed = true;
            }
        }
        if is_changed {
            tell(&mut open, sync, state);
        }
    }
}

/// Writes how far the rounds of a sync are. Requests whose rounds are all over are not open any more.
fn tell(open: &mut BTreeMap<String, Open>, sync: &str, state: &State) {
    let Some(of_sync) = open.get(sync) else { return };
    let written: Result<(), StateError> = requested::reply(state, sync, &of_sync.answer);
    if let Err(error) = written {
        warn!(sync, error = %Chain(&error), "cannot answer whoever has asked for a round");
    }
    if !of_sync.answer.clusters.values().any(|progress| *progress == Progress::Waits) {
        open.remove(sync);
    }
}
