//! The cache of what this host knows of clusters from earlier rounds: a file for each sync and cluster.

use std::sync::Arc;
use std::time::Duration;

use gatewright_engine::error::Chain;
use gatewright_engine::text::digest;
use jiff::{SignedDuration, Timestamp};
use tracing::{debug, warn};

use crate::history::journal;
use crate::reconcile::cache::LastRound;
use crate::reconcile::model::{Conclusion, Order};
use crate::state::store::Store;
use crate::state::{State, StateError};

const KNOWN: Store<LastRound> = Store::new("known");

/// Forgets what is kept of a cluster.
pub(super) fn forget_cluster(state: &State, cluster: &str) -> Result<(), StateError> {
    KNOWN.forget(state, cluster)
}

/// Keeps what is kept of a cluster under another name.
pub(super) fn rename_cluster(state: &State, names: (&str, &str)) -> Result<(), StateError> {
    KNOWN.rename(state, names, |_| true)
}

/// Returns what is known of a cluster from earlier rounds; nothing, now and then, so that everything is compared again.
/// An undo has to see all that it is about.
pub(super) fn recall(order: &Order, cluster: &str, state: &State, now: Timestamp) -> Option<LastRound> {
    if order.full || order.undo.is_some() {
        return None;
    }
    let last_round = KNOWN.read(state, &[&order.sync, cluster])?;
    let age = now.duration_since(last_round.cache.proven?);
    let is_good = !age.is_negative() && age < proof_lasts(order.settings.schedule.full(), &order.sync, cluster);
    is_good.then_some(last_round)
}

/// Tells whether a comparison may rely on what the one before has found to match.
pub(super) fn is_proven(order: &Order, cluster: &str, last: &journal::LastDrift, now: Timestamp) -> bool {
    let proven = last.baseline.proven.as_deref().and_then(|time| time.parse::<Timestamp>().ok());
    let Some(age) = proven.map(|proven| now.duration_since(proven)).filter(|_| !order.full) else { return false };
    !age.is_negative() && age < proof_lasts(order.settings.schedule.full(), &order.sync, cluster)
}

/// Returns for how long a comparison of all objects is valid: as long as the sync says, a twenty-fourth more or less,
/// so that a fleet does not do it all at once.
fn proof_lasts(full: Duration, sync: &str, cluster: &str) -> SignedDuration {
    let drawn = digest(format!("{sync}/{cluster}").as_bytes());
    let share = u8::from_str_radix(&drawn[..2], 16).map_or(0.5, |byte| f64::from(byte) / 255.0);
    SignedDuration::try_from(full.mul_f64((23.0 + 2.0 * share) / 24.0)).unwrap_or(SignedDuration::MAX)
}

/// Forgets it. So it is before an undo: what that leaves behind is not what the source wants, and the next round compares
/// everything.
pub(super) fn forget(order: &Order, cluster: &str, state: &State) {
    if let Err(error) = KNOWN.remove(state, &[&order.sync, cluster]) {
        warn!(cluster, error = %Chain(&error), "cannot forget what is known");
    }
}

/// Keeps what is known of a cluster, and drops from the conclusion what only the next round needs. Losing it costs requests
/// and nothing else; while an inventory is suspect that nobody has noted yet, it has to be read again.
pub(super) fn keep(order: &Order, cluster: &str, conclusion: &mut Conclusion, state: &State, started: Timestamp) {
    if conclusion.is_suspect {
        forget(order, cluster, state);
    } else if let Some(last_round) = conclusion.last_round.as_mut().filter(|_| conclusion.is_new) {
        Arc::make_mut(&mut last_round.cache).proven.get_or_insert(started);
        if let Err(error) = KNOWN.write(state, &[&order.sync, cluster], last_round) {
            debug!(cluster, error = %Chain(&error), "cannot keep what is known");
        }
    }
    if let Some(last_round) = &mut conclusion.last_round {
        last_round.cache = Arc::default();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_fleet_is_not_compared_again_all_at_once() {
        let check = |full: Duration, least: SignedDuration, most: SignedDuration| {
            let lasts = (0..50).map(|n| proof_lasts(full, "gateways", &format!("c{n}")));
            let lasts: BTreeSet<SignedDuration> = lasts.collect();
            assert!(lasts.len() > 20, "{lasts:?}");
            assert!(lasts.iter().all(|time| (least..=most).contains(time)), "{lasts:?}");
        };
        check(Duration::from_hours(24), SignedDuration::from_hours(23), SignedDuration::from_hours(25));
        check(Duration::from_mins(24), SignedDuration::from_mins(23), SignedDuration::from_mins(25));
    }
}
