//! Rounds that people ask a daemon for at the command line: a file for each sync, which the daemon that holds the state
//! folder takes within a second.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::state::store::Store;
use crate::state::{State, StateError};

/// The requests, by sync.
const REQUESTED: Store<Request> = Store::new("requested");

/// A request that was taken stays no longer than this for whoever has asked.
const KEPT: SignedDuration = SignedDuration::from_mins(1);

/// A round that somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request {
    /// The user as the environment of the command names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When it was asked for.
    pub time: Timestamp,
    /// On how many clusters a round begins, once the daemon has taken it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<usize>,
}

/// Asks for a round of a sync.
pub(crate) fn ask(state: &State, sync: &str, by: Option<&str>, time: Timestamp) -> Result<(), StateError> {
    REQUESTED.write(state, &[sync], &Request { by: by.map(str::to_owned), time, taken: None })
}

/// Returns on how many clusters a round begins that was asked for; `None` while nobody has taken the request. One that is
/// gone was taken long ago.
pub(crate) fn answer(state: &State, sync: &str) -> Option<usize> {
    REQUESTED.read(state, &[sync]).map_or(Some(1), |request| request.taken)
}

/// Withdraws a request, or what was answered.
pub(crate) fn withdraw(state: &State, sync: &str) -> Result<(), StateError> {
    REQUESTED.remove(state, &[sync])
}

/// Takes what is asked for: `begin` has the rounds of a sync begin, and returns on how many clusters.
pub(crate) fn take(state: &State, now: Timestamp, begin: impl Fn(&str, &Request) -> usize) -> Result<(), StateError> {
    for sync in REQUESTED.names(state, &[]) {
        match REQUESTED.read(state, &[&sync]) {
            Some(Request { taken: Some(_), time, .. }) if now.duration_since(time) < KEPT => {}
            Some(request @ Request { taken: None, .. }) => {
                let taken = Some(begin(&sync, &request));
                REQUESTED.write(state, &[&sync], &Request { taken, ..request })?;
            }
            Some(_) | None => REQUESTED.remove(state, &[&sync])?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_taken_once_and_answered_for_a_minute() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let state = State::open(folder.path());
        let at = |second: i64| Timestamp::from_second(1_000 + second).expect("it is a time");
        let taken = std::cell::RefCell::new(Vec::new());
        let take = |second: i64| {
            take(&state, at(second), |sync, request| {
                taken.borrow_mut().push((sync.to_owned(), request.by.clone()));
                3
            })
        };
        take(0).expect("nothing is asked for");
        ask(&state, "edge", Some("anna"), at(0)).expect("it is written");
        assert_eq!(answer(&state, "edge"), None);
        for second in [1, 2, 30] {
            take(second).expect("it is taken");
            assert_eq!(answer(&state, "edge"), Some(3));
        }
        assert_eq!(*taken.borrow(), [("edge".to_owned(), Some("anna".to_owned()))]);
        take(90).expect("it is removed");
        assert!(REQUESTED.names(&state, &[]).is_empty());
        // What cannot be read is nobody's request.
        state.write("requested/edge.json", b"{").expect("it is written");
        take(91).expect("it is removed");
        assert!(taken.borrow().len() == 1 && REQUESTED.names(&state, &[]).is_empty());
    }
}
