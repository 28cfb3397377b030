use std::convert::Infallible;

use jiff::Timestamp;

use super::*;

fn unit(name: &str) -> ObjectId {
    ObjectId::new("gateway.networking.k8s.io", "Gateway", "shop", name)
}

/// A set of the units a, b and c, by default; of which some were never healthy with it.
fn set(digest: &str, revision: &str, minute: i64, ill: &[&str]) -> Set {
    Set {
        digest: digest.to_owned(),
        revision: revision.to_owned(),
        run: format!("run-of-{digest}"),
        time: Timestamp::from_second(minute * 60).unwrap_or(Timestamp::UNIX_EPOCH),
        objects: 1,
        key: None,
        target: None,
        is_broken: false,
        is_taken_back: false,
        ill: ill.iter().map(|name| unit(name)).collect(),
    }
}

fn healthy_of<'a>(sets: &'a [Set], attempt: &str, missing: &[(&str, &str)]) -> Goal<'a> {
    let units = |set: &Set| -> Result<_, Infallible> {
        let is_there = |name: &&str| !missing.contains(&(set.digest.as_str(), *name));
        Ok(["a", "b", "c"].iter().filter(|name| is_there(name)).map(|name| unit(name)).collect())
    };
    healthy(sets, (attempt, false), units).unwrap_or(Goal { from: None, to: None })
}

fn digest_of<'a>(sets: &'a [Set], attempt: &str, missing: &[(&str, &str)]) -> Option<&'a str> {
    healthy_of(sets, attempt, missing).to.map(|set| set.digest.as_str())
}

#[test]
fn a_set_is_found_by_number_digest_revision_or_run() {
    let sets = [
        set("aa11", "main@sha1:0123", 3, &[]),
        set("1234567890", "main@sha1:4567", 2, &[]),
        set("aa22", "main@sha1:89ab", 1, &[]),
    ];
    let digest = |to| named(&sets, to).map(|set| set.digest.as_str());
    assert_eq!((digest("0"), digest("1"), digest("3")), (Some("aa11"), Some("1234567890"), None));
    assert_eq!((digest("aa2"), digest("aa"), digest("1234")), (Some("aa22"), Some("aa11"), Some("1234567890")));
    assert_eq!((digest("89a"), digest("main@sha1:45")), (Some("aa22"), Some("1234567890")));
    assert_eq!((digest("run-of-aa22"), digest("b")), (Some("aa22"), None));
}

#[test]
fn a_cluster_goes_back_to_the_last_set_that_was_healthy_there() {
    let sets = [
        set("4", "bad-too", 4, &["a"]),
        set("3", "bad", 3, &["a", "b"]),
        set("2", "good", 2, &[]),
        set("1", "old", 1, &[]),
    ];
    assert_eq!(digest_of(&sets, "bad-too", &[]), Some("2"));
    // What was healthy and is wrong all the same goes back by one.
    assert_eq!(digest_of(&sets[2..], "good", &[]), Some("1"));
    assert_eq!(digest_of(&sets[3..], "old", &[]), None);
    assert_eq!(digest_of(&sets[..2], "bad-too", &[]), None);
    assert_eq!(digest_of(&[], "old", &[]), None);
}

#[test]
fn a_cluster_that_the_last_attempt_has_not_reached_stays_where_it_was_healthy() {
    let sets = [set("2", "good", 2, &[]), set("1", "old", 1, &[])];
    assert_eq!(digest_of(&sets, "bad", &[]), Some("2"));
    // Also where something of what it has was never healthy, unless a rollout of that is halted there.
    let ill = [set("3", "half", 3, &["c"]), set("2", "good", 2, &[])];
    assert_eq!(digest_of(&ill, "bad", &[]), Some("3"));
    let units = |_: &Set| -> Result<_, Infallible> { Ok([unit("c")].into()) };
    let goal = healthy(&ill, ("bad", true), units).unwrap_or(Goal { from: None, to: None });
    assert_eq!(goal.to.map(|set| set.digest.as_str()), Some("2"));
    let all = Sets::from([
        ("eu".to_owned(), vec![set("3", "bad", 3, &["a"]), set("2", "good", 2, &[])]),
        ("us".to_owned(), vec![set("2", "good", 2, &[])]),
        ("new".to_owned(), Vec::new()),
    ]);
    assert_eq!(last_attempt(&all), Some("bad"));
}

#[test]
fn a_unit_that_was_never_healthy_keeps_nobody_from_a_set() {
    // The unit c came with set 2, and was never healthy.
    let sets = [set("3", "bad", 3, &["a", "c"]), set("2", "good", 2, &["c"]), set("1", "old", 1, &[])];
    assert_eq!(digest_of(&sets, "bad", &[("1", "c")]), Some("2"));
    // Where it was healthy once, the set in which it was not is passed over.
    assert_eq!(digest_of(&sets, "bad", &[]), Some("1"));
}

#[test]
fn a_set_of_a_broken_source_is_no_place_to_go_back_to_unless_it_was_broken_before() {
    let broken = |set: Set| Set { is_broken: true, ..set };
    let mut sets = [set("3", "bad", 3, &["a"]), broken(set("2", "slip", 2, &[])), set("1", "old", 1, &[])];
    assert_eq!(digest_of(&sets, "bad", &[]), Some("1"));
    sets[0].is_broken = true;
    assert_eq!(digest_of(&sets, "bad", &[]), Some("2"));
}

#[test]
fn what_comes_to_the_same_is_nothing_to_go_back_to() {
    let sets = [set("2", "again", 3, &[]), set("2", "good", 2, &[]), set("1", "old", 1, &[])];
    assert_eq!(digest_of(&sets, "again", &[]), Some("1"));
}

#[test]
fn clusters_that_are_alike_are_one_line() {
    let (bad, good) = (set("3", "main@bad", 3, &["a", "b"]), set("2", "main@good", 2, &[]));
    let goal = |from, to| Goal { from, to };
    let goals = BTreeMap::from([
        ("eu-1".to_owned(), goal(Some(&bad), Some(&good))),
        ("us-1".to_owned(), goal(None, Some(&good))),
        ("us-2".to_owned(), goal(None, Some(&good))),
        ("us-3".to_owned(), goal(Some(&bad), None)),
    ]);
    let lines = lines(&goals);
    assert_eq!(
        lines,
        [
            "on cluster eu-1: back to main@good, from main@bad \
             (Gateway shop/a and 1 other unit were never healthy with it)",
            "on 2 of 4 clusters (us-1, us-2): main@good stays, as nothing newer has come there",
            "on cluster us-3: no earlier set was healthy there; it keeps main@bad \
             (Gateway shop/a and 1 other unit were never healthy with it)",
        ]
    );
}
