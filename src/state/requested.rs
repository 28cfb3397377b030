//! Rounds that people ask a daemon for at the command line: a request for each sync, which the daemon that holds the state
//! folder takes within a second, and its answer, in a file of its own, which says how far the rounds are.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::state::store::Store;
use crate::state::{State, StateError};

/// The requests, by sync and id: several people may ask at once.
const REQUESTED: Store<Request> = Store::new("requested");

/// The answers to them, by sync.
const ANSWERED: Store<Answer> = Store::new("answered");

/// A request that nobody has taken for so long is nobody's any more.
const LONGEST: SignedDuration = SignedDuration::from_secs(30);

/// A round that somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request {
    /// Stands for this request.
    pub id: String,
    /// The user as the environment of the command names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When it was asked for.
    pub time: Timestamp,
}

/// The answer of a daemon to all requests for rounds of a sync that are open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    /// The requests.
    pub ids: BTreeSet<String>,
    /// The progress on each cluster; there is none if no rounds of the sync run there.
    pub clusters: BTreeMap<String, Progress>,
}

/// The progress of a round on a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Progress {
    /// The source is read, or the round is under way.
    Waits,
    /// A round that has begun after that is over, with a report or without.
    Over {
        /// When it began.
        since: Timestamp,
    },
    /// There will be none, for this reason.
    None(String),
}

/// Asks for a round of a sync.
pub(crate) fn ask(state: &State, sync: &str, request: &Request) -> Result<(), StateError> {
    REQUESTED.write(state, &[sync, &request.id], request)
}

/// Withdraws a request that was not taken.
pub(crate) fn withdraw(state: &State, sync: &str, id: &str) -> Result<(), StateError> {
    REQUESTED.remove(state, &[sync, id])
}

/// Returns the answer to a request; `None` while nobody has taken it, and once its daemon has ended.
pub(crate) fn answer(state: &State, sync: &str, id: &str) -> Option<Answer> {
    ANSWERED.read(state, &[sync]).filter(|answer| answer.ids.contains(id))
}

/// Takes the requests, each with its sync. What is old or cannot be read is nobody's. One that cannot be removed is not taken,
/// because it would be taken again and again: it is an error, and keeps nobody else waiting.
pub(crate) fn take(state: &State, now: Timestamp) -> (Vec<(String, Request)>, Result<(), StateError>) {
    let (mut taken, mut result) = (Vec::new(), Ok(()));
    for (sync, id) in REQUESTED.targets(state) {
        let request = REQUESTED.read(state, &[&sync, &id]);
        if let Err(error) = REQUESTED.remove(state, &[&sync, &id]) {
            result = Err(error);
            continue;
        }
        let is_open = |request: &Request| now.duration_since(request.time).abs() < LONGEST;
        taken.extend(request.filter(is_open).map(|request| (sync, request)));
    }
    (taken, result)
}

/// Says how far the rounds of a sync are.
pub(crate) fn reply(state: &State, sync: &str, answer: &Answer) -> Result<(), StateError> {
    ANSWERED.write(state, &[sync], answer)
}

/// Forgets what another daemon has answered, whose rounds are over.
pub(crate) fn forget_answers(state: &State) -> Result<(), StateError> {
    ANSWERED.names(state, &[]).iter().try_for_each(|sync| ANSWERED.remove(state, &[sync]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_taken_once_and_not_when_it_is_old() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let state = State::open(folder.path());
        let at = |second: i64| Timestamp::from_second(1_000 + second).expect("it is a time");
        let request = |id: &str| Request { id: id.to_owned(), by: Some("anna".to_owned()), time: at(0) };
        let taken = |second: i64| {
            let (taken, result) = take(&state, at(second));
            result.expect("each can be removed");
            taken
        };
        assert_eq!(taken(0), []);
        ask(&state, "edge", &request("one")).expect("it is written");
        assert_eq!(answer(&state, "edge", "one"), None);
        assert_eq!(taken(1), [("edge".to_owned(), request("one"))]);
        assert_eq!(taken(2), []);
        let waits = BTreeMap::from([("c".to_owned(), Progress::Waits)]);
        let told = Answer { ids: BTreeSet::from(["one".to_owned()]), clusters: waits };
        reply(&state, "edge", &told).expect("it is written");
        assert_eq!(answer(&state, "edge", "one"), Some(told));
        assert_eq!(answer(&state, "edge", "two"), None, "it is about another one");
        forget_answers(&state).expect("they are removed");
        assert_eq!(answer(&state, "edge", "one"), None);
        ask(&state, "edge", &request("old")).expect("it is written");
        assert_eq!(taken(60), []);
        state.write("requested/edge/torn.json", b"{").expect("it is written");
        assert_eq!(taken(61), []);
        assert!(REQUESTED.targets(&state).is_empty());
        for id in ["one", "two"] {
            ask(&state, "edge", &request(id)).expect("it is written");
        }
        withdraw(&state, "edge", "one").expect("it is removed");
        assert_eq!(taken(1), [("edge".to_owned(), request("two"))], "who asks withdraws nobody else's");
    }

    #[test]
    fn what_cannot_be_removed_keeps_nobody_waiting_and_is_not_taken() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let state = State::open(folder.path());
        std::fs::create_dir_all(state.path("requested/edge/a.json/x")).expect("a test may");
        let request = Request { id: "b".to_owned(), by: None, time: Timestamp::UNIX_EPOCH };
        ask(&state, "edge", &request).expect("it is written");
        let (taken, result) = take(&state, Timestamp::UNIX_EPOCH);
        assert_eq!(taken, [("edge".to_owned(), request)]);
        assert!(result.is_err(), "it is told");
    }
}
