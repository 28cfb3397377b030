//! What is kept on several clusters, put together; and the text that it is kept as.

use super::*;
use crate::reconcile::rollout::journal::Entry;
use crate::reconcile::rollout::kept::{Share, Shares, Unreadable, decode, encode, merged, suffices};
use crate::reconcile::rollout::record::{Back, Member};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("it is in range")
}

fn share(name: &str, since: i64, stage: Stage) -> Share {
    let member = Member { stage, digest: format!("digest of {name}"), ..Member::going(at(since)) };
    Share {
        unit: gateway(name),
        target: format!("t{since}"),
        revision: format!("r{since}"),
        since: at(since),
        is_first: false,
        entry: Entry { member: Some(member), ..Entry::default() },
    }
}

fn on(clusters: &[(&str, Share)]) -> BTreeMap<String, Shares> {
    let mut all: BTreeMap<String, Shares> = BTreeMap::new();
    for (cluster, share) in clusters {
        all.entry((*cluster).to_owned()).or_default().insert(share.unit.clone(), share.clone());
    }
    all
}

fn halted() -> Stage {
    Stage::Halted("why".to_owned())
}

/// The clusters of a record with the stage of each.
fn stages(record: &Record) -> Vec<(&str, &Stage)> {
    record.members.iter().map(|(name, member)| (name.as_str(), &member.stage)).collect()
}

#[test]
fn the_same_rollout_on_several_clusters_is_one() {
    let first = Share { is_first: true, ..share("edge", 5, halted()) };
    let records =
        merged(&on(&[("a", first), ("b", share("edge", 5, Stage::Healthy)), ("b", share("x", 6, Stage::Going))]));
    let [edge, x] = &records[..] else { unreachable!("there are two units") };
    assert_eq!((edge.target.as_str(), edge.revision.as_str(), edge.first.as_deref()), ("t5", "r5", Some("a")));
    assert_eq!(stages(edge), [("a", &halted()), ("b", &Stage::Healthy)]);
    assert_eq!((stages(x), x.first.as_deref()), (vec![("b", &Stage::Going)], None));
}

#[test]
fn the_newest_rollout_counts_and_what_is_not_good_with_an_earlier_one_belongs_to_it() {
    let records = merged(&on(&[
        ("a", share("edge", 5, halted())),
        ("b", share("edge", 9, Stage::Healthy)),
        ("c", share("edge", 5, Stage::Healthy)),
        ("d", share("edge", 7, Stage::Going)),
    ]));
    assert_eq!((records[0].target.as_str(), records.len()), ("t9", 1));
    assert_eq!(stages(&records[0]), [("a", &halted()), ("b", &Stage::Healthy)]);
    assert!(records[0].members["a"].is_carried && !records[0].members["b"].is_carried);
}

/// An earlier first cluster was lost, and does not know that there is another one.
#[test]
fn of_two_first_clusters_the_one_that_is_worse_off_counts() {
    for (one, other) in [("a", "b"), ("b", "a")] {
        let first = |stage| Share { is_first: true, ..share("edge", 5, stage) };
        let records = merged(&on(&[(one, first(Stage::Healthy)), (other, first(halted()))]));
        assert_eq!(records[0].first.as_deref(), Some(other));
    }
}

#[test]
fn a_text_reads_back_and_without_a_part_there_is_none() {
    let is_signed = |words: &str, signature: Option<&str>| signature == Some(&format!("signed {}", words.len()));
    let sign = |words: &str| Some(format!("signed {}", words.len()));
    assert_eq!(encode(&Shares::new(), sign), None);
    let mut one = share("edge", 5, halted());
    let failure = record::Failure { on: "b".to_owned(), revision: "r".to_owned(), why: "w".to_owned() };
    one.entry.back = Some(Back { digest: "d".to_owned(), failure });
    (one.entry.wants, one.entry.good, one.is_first) = (Some("w".to_owned()), Some("g".to_owned()), true);
    let shares = on(&[("a", one), ("a", share("x", 6, Stage::Healthy))]).remove("a").expect("it is there");
    let text = encode(&shares, sign).expect("there is something");
    assert_eq!(decode(&text, is_signed).ok().as_ref(), Some(&shares));
    assert!(matches!(decode(&text, |_, _| false), Err(Unreadable::Unsigned)));
    assert_eq!(encode(&shares, sign), Some(text), "the same is written in the same words");
}

/// Digests that cannot be packed.
fn many(number: usize, stage: &Stage) -> Shares {
    let one = |index: usize| {
        let mut share = share(&format!("g{index}"), 5, stage.clone());
        let digest = gatewright_engine::text::digest(index.to_string().as_bytes());
        if let Some(member) = &mut share.entry.member {
            member.digest.clone_from(&digest);
        }
        (share.unit.clone(), share)
    };
    (0..number).map(one).collect()
}

#[test]
fn what_has_no_room_is_left_out_if_it_is_healthy_and_is_told_otherwise() {
    let signed = |_: &str, _: Option<&str>| true;
    let mut mixed = many(9000, &Stage::Healthy);
    mixed.extend(on(&[("a", share("edge", 5, halted()))]).remove("a").expect("it is there"));
    let text = encode(&mixed, |_| None).expect("there is something");
    let read = decode(&text, signed).expect("it can be read");
    assert_eq!(read.keys().collect::<Vec<_>>(), [&edge()]);
    let text = encode(&many(9000, &halted()), |_| None).expect("there is something");
    assert!(matches!(decode(&text, signed), Err(Unreadable::TooMuch)));
}

#[test]
fn another_rollout_that_does_not_concern_a_cluster_has_nothing_written_there() {
    let (old, other) = (share("edge", 5, Stage::Healthy), share("edge", 9, Stage::Healthy));
    let there = on(&[("a", old.clone())]).remove("a").expect("it is there");
    let ledger = |shares: &[(&str, Share)]| Ledger { units: merged(&on(shares)), ..Ledger::default() };
    let check = |ledger: &Ledger| suffices(&there, &ledger.shares("a"), ledger);
    assert!(check(&ledger(&[("a", old.clone()), ("b", share("edge", 5, halted()))])));
    assert!(check(&ledger(&[("b", other.clone())])), "it is out of date, and harmless");
    assert!(!check(&ledger(&[("a", other)])));
    assert!(!check(&ledger(&[("b", old)])), "it was a member, and is none any more");
    assert!(!check(&ledger(&[])), "the unit is gone");
}
