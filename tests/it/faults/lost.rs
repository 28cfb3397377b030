//! Requests of which nobody knows whether they were carried out, and others who were faster.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Place, all_of};
use crate::cluster::proxy::{Answer, Seen};

/// More writes than a round has here.
const MOST_WRITES: usize = 40;

/// More faults of a kind than a round meets.
const MOST_FAULTS: usize = 1000;

impl Place {
    /// The requests that the server has carried out.
    fn sorted(&self) -> Vec<String> {
        let mut done = self.proxy.carried_out();
        done.sort();
        done
    }

    /// The requests that it should have carried out where one Gateway takes the place of another and `kept` changes.
    fn exchange(&self, old: &str, new: &str) -> Vec<String> {
        let mut expected: Vec<String> = all_of(new).iter().map(|object| self.line("PATCH", object)).collect();
        expected.extend(["services/kept", "deployments/kept"].map(|object| self.line("PATCH", object)));
        expected.extend(all_of(old).iter().map(|object| self.line("DELETE", object)));
        expected.sort();
        expected
    }
}

/// Tells whether something is the write of this number since now, from 0.
fn nth_write(number: usize) -> impl FnMut(&Seen) -> bool + Send + 'static {
    let mut writes = 0..;
    move |seen| seen.is_write() && writes.next() == Some(number)
}

/// A round that makes, changes and deletes, of which one write after the other meets an end of the connection.
fn any_write_may_meet(answer: &Answer) {
    let place = Place::new("");
    place.site.want(&["gone-0", "kept"], 80);
    place.sync().exits(0).says("8 objects created");
    for number in 0..MOST_WRITES {
        let (old, new) = (format!("gone-{number}"), format!("gone-{}", number + 1));
        place.site.want(&[&new], 80);
        place.site.want(&["kept"], 81 + u16::try_from(number).expect("it is small"));
        place.site.drop(&[&old]);
        place.proxy.recovers();
        place.proxy.answer(1, nth_write(number), answer.clone());
        place.sync().exits(0).says("4 objects created, 2 objects updated, 4 objects deleted");
        assert_eq!(place.sorted(), place.exchange(&old, &new), "write {number} was lost");
        if place.proxy.left() == 1 {
            assert!(number > 12, "only {number} writes were made");
            place.is_settled(&new);
            place.is_settled("kept");
            return;
        }
    }
    unreachable!("a round has fewer writes");
}

#[test]
fn the_answer_to_any_write_may_be_lost() {
    any_write_may_meet(&Answer::Unanswered);
}

#[test]
fn any_write_may_be_lost_on_the_way() {
    any_write_may_meet(&Answer::Lost);
}

#[test]
fn who_was_faster_is_noticed() {
    let place = Place::with("edge");
    place.site.want(&["edge"], 81);
    let (server, namespace) = (place.site.server, place.site.name.clone());
    let meddle = move || {
        server.kubectl_ok(&[
            "annotate",
            "-n",
            &namespace,
            "service/edge",
            "example.com/seen=yes",
            "--field-manager=annotator",
        ]);
    };
    let is_write = |seen: &Seen| seen.is_write() && seen.path.contains("/services/");
    place.proxy.answer(1, is_write, Answer::After(Arc::new(meddle)));
    place.sync().exits(0).says("2 objects updated");
    place.did("PATCH", &["services/edge", "deployments/edge"]);
    let refused = place.proxy.seen().iter().filter(|seen| seen.code == Some(409)).count();
    assert_eq!(refused, 1, "the plan was made before");
    let service = place.site.get("service/edge");
    assert_eq!(service["metadata"]["annotations"]["example.com/seen"], "yes", "what they did stays");
    assert_eq!(service["spec"]["ports"][0]["port"], 81);
    place.is_settled("edge");
}

#[test]
fn who_made_it_first_keeps_it() {
    let place = Place::new("adopt: {policy: never}");
    place.site.want(&["edge"], 80);
    let (server, namespace) = (place.site.server, place.site.name.clone());
    let make = move || {
        server.kubectl_ok(&["create", "configmap", "edge", "-n", &namespace, "--from-literal=theirs=1"]);
    };
    place.proxy.answer(1, |seen| seen.is("PATCH", "/configmaps/edge"), Answer::After(Arc::new(make)));
    place.sync().exits(3).says("adopt.policy is never");
    assert_eq!(place.site.get("configmap/edge")["data"], serde_json::json!({"theirs": "1"}));
    place.did("PATCH", &["serviceaccounts/edge"]);
}

/// No controllers run here, so that no Deployment becomes healthy.
#[test]
fn what_was_changed_with_a_lost_answer_is_awaited_all_the_same() {
    let place = Place::with("edge");
    place.site.want(&["gone"], 80);
    place.sync().exits(0);
    place.site.drop(&["gone"]);
    place.site.want(&["edge"], 81);
    place.configure("wait: {timeout: 1s}");
    place.proxy.recovers();
    let is_write = |seen: &Seen| seen.is_write() && seen.path.contains("/deployments/edge");
    place.proxy.answer(1, is_write, Answer::Unanswered);
    place.sync().exits(1).says("2 objects updated");
    place.did("PATCH", &["services/edge", "deployments/edge"]);
    assert_eq!(place.site.left_of("gone").len(), 4, "nothing is deleted before what was changed is healthy");
}

/// Many faults at once: one request in three meets one, the first time that it is sent.
#[test]
fn a_round_comes_through_many_faults() {
    let passing = [
        Answer::Lost,
        Answer::Unanswered,
        Answer::Truncated,
        Answer::Replaced(504),
        Answer::Refused(503, "shutting down"),
        Answer::Busy(0),
    ];
    let place = Place::new("");
    place.site.want(&["gone-0", "kept"], 80);
    place.sync().exits(0).says("8 objects created");
    let mut met = 0;
    for round in 0..6 {
        let (old, new) = (format!("gone-{round}"), format!("gone-{}", round + 1));
        place.site.want(&[&new], 80);
        place.site.want(&["kept"], 81 + round);
        place.site.drop(&[&old]);
        place.proxy.recovers();
        for (index, answer) in passing.iter().enumerate() {
            let mut known = BTreeSet::new();
            let share = move |seen: &Seen| {
                let request = format!("{round} {} {}", seen.method, seen.path);
                let lot = request.bytes().fold(0_usize, |sum, byte| (sum * 31 + usize::from(byte)) % 1_000_003);
                lot % 18 == index && known.insert(request)
            };
            place.proxy.answer(MOST_FAULTS, share, answer.clone());
        }
        place.sync().exits(0).says("4 objects created, 2 objects updated, 4 objects deleted");
        assert_eq!(place.sorted(), place.exchange(&old, &new), "round {round}");
        met += passing.len() * MOST_FAULTS - place.proxy.left();
    }
    assert!(met > 30, "only {met} requests met a fault");
    place.is_settled("gone-6");
    place.is_settled("kept");
}
