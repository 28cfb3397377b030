//! The file to which each step adds a line.

use std::fs;

use super::*;

fn path(fleet: &Fleet) -> std::path::PathBuf {
    fleet.folder.path().join("rollouts/gateways.json")
}

fn lines(fleet: &Fleet) -> usize {
    fs::read(path(fleet)).expect("it is there").split(|byte| *byte == b'\n').count()
}

/// A process that was killed has left part of a line; nobody has acted on that.
#[test]
fn half_a_line_is_no_line_and_the_next_takes_its_place() {
    let fleet = fleet(3, false);
    assert!(fleet.rolls("a", "v2", UnitState::Unhealthy));
    let (before, whole) = (fleet.ledger(), fs::read(path(&fleet)).expect("it is there"));
    assert!(!fleet.rolls("b", "v2", UnitState::Changed));
    let (after, longer) = (fleet.ledger(), fs::read(path(&fleet)).expect("it is there"));
    assert!(longer.starts_with(&whole) && before != after, "a step adds a line");
    for end in whole.len()..longer.len() {
        fs::write(path(&fleet), &longer[..end]).expect("a test may");
        assert_eq!(fleet.ledger(), before, "{end} of {}", longer.len());
        assert!(!fleet.again().rolls("b", "v2", UnitState::Changed));
        assert_eq!(fleet.ledger().units[0].wants, after.units[0].wants, "{end} of {}", longer.len());
    }
}

#[test]
fn a_line_that_says_nothing_sensible_lets_nobody_through() {
    let fleet = fleet(2, false);
    assert!(fleet.rolls("a", "v2", UnitState::Changed) && fleet.rolls("b", "v2", UnitState::Changed));
    let good = fs::read(path(&fleet)).expect("it is there");
    let unknown = r#"{"changed":[{"unit":{"group":"","kind":"A","namespace":"b","name":"c"},"clusters":{}}]}"#;
    for line in ["{", "garbage", r#"{"later":1}"#, r#"{"begun":1}"#, unknown] {
        fs::write(path(&fleet), [&good, line.as_bytes(), b"\n"].concat()).expect("a test may");
        let error = record::read(&State::open(fleet.folder.path()), "gateways").expect_err(line);
        let number = good.split(|byte| *byte == b'\n').count();
        assert!(Chain(&error).to_string().contains(&format!("line {number}")), "{line}: {}", Chain(&error));
        assert!(!fleet.rolls("a", "v3", UnitState::Changed), "{line}");
    }
}

/// An earlier version wrote all of it each time, in many lines and in the order in which rollouts began.
#[test]
fn what_an_earlier_version_wrote_is_gone_on_with() {
    let fleet = fleet(3, false);
    assert!(fleet.rolls_unit("a", ("v2", &gateway("zone"), "z"), UnitState::Unhealthy));
    assert!(fleet.rolls_unit("a", ("v2", &edge(), "e"), UnitState::Unhealthy));
    let mut ledger = fleet.ledger();
    ledger.units.reverse();
    fs::write(path(&fleet), serde_json::to_vec_pretty(&ledger).expect("it is JSON")).expect("a test may");
    ledger.units.reverse();
    assert_eq!(fleet.ledger(), ledger);
    let next = fleet.again();
    assert!(!next.rolls_unit("b", ("v2", &edge(), "e"), UnitState::Changed));
    assert!(next.rolls_unit("a", ("v3", &edge(), "e3"), UnitState::Changed));
    assert!(next.rolls_unit("b", ("v3", &edge(), "e3"), UnitState::Changed));
}

/// Else it would grow for ever.
#[test]
fn it_is_written_whole_when_it_has_become_long() {
    let fleet = fleet(2, false);
    let (mut most, mut revision) = (0, 0);
    while revision < 2_000 && lines(fleet.at_least_one()) >= most {
        revision += 1;
        most = lines(&fleet);
        assert!(fleet.rolls("a", &format!("v{revision}"), UnitState::Changed));
    }
    assert!(revision < 2_000, "{most} lines");
    assert_eq!(fleet.ledger().units.len(), 1);
}

impl Fleet {
    fn at_least_one(&self) -> &Self {
        if !path(self).exists() {
            assert!(self.rolls("a", "v0", UnitState::Changed));
        }
        self
    }
}

proptest! {
    // Each step is on the disk before it returns.
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Two processes that take turns, whoever has read what when: each knows what is noted, and nothing is lost.
    #[test]
    fn whoever_writes_knows_what_others_have_written(
        events in prop::collection::vec((0_u8..2, 0_u8..4, 0_u8..3, 0_u8..3, any::<bool>()), 1..40),
    ) {
        let one = fleet(4, false);
        let both = [&one, &one.again()];
        let mut wants = BTreeSet::new();
        for (process, cluster, unit, revision, is_well) in events {
            let (name, target) = (char::from(b'a' + cluster).to_string(), format!("v{revision}"));
            let state = if is_well { UnitState::Changed } else { UnitState::Unhealthy };
            both[usize::from(process)].rolls_unit(&name, (&target, &gateway(&unit.to_string()), &target), state);
            wants.insert(gateway(&unit.to_string()));
            let noted = one.ledger();
            for fleet in both {
                let known = fleet.rollout.look(None, |known| known.ledger.clone());
                prop_assert_eq!(known.expect("it can be read"), noted.clone());
            }
            prop_assert_eq!(noted.units.iter().map(|record| record.unit.clone()).collect::<BTreeSet<_>>(), wants.clone());
        }
    }
}
