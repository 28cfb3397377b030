//! Values that somebody sets back whenever we correct them: how often, and for how long they are left alone.
//!
//! Three corrections of one field to one value, round after round, are a fight. From then on the field rests: for one
//! round, after the next correction for two, then for four, and so on. When it is as it should be in a round in which
//! nobody has corrected it, the fight is over and forgotten. What is remembered only delays corrections, so that its loss
//! costs nothing.
//!
//! An object that is made and deleted again and again rests in the same way, as a whole (`WHOLE`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::path::FieldPath;
use super::{FieldVerdict, Verdict};
use crate::diff::{Difference, leads_to};
use crate::object::ObjectId;
use crate::text::digest;

/// From so many corrections on it is a fight.
const FIGHT: u32 = 3;

/// The longest rest, in rounds.
const LONGEST_REST: u32 = 64;

/// The path of an object as a whole.
const WHOLE: &str = "";

/// The remembered corrections of a sync on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fights(BTreeMap<String, BTreeMap<String, Fight>>);

/// One field that was corrected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Fight {
    /// A digest of the value to which it was corrected.
    value: String,
    /// In how many rounds without one between them in which it was as it should be.
    corrections: u32,
    /// For how many more rounds it is left alone.
    rest: u32,
}

/// The result of a round for an object.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The object.
    pub id: &'a ObjectId,
    /// The differences that were corrected; empty if there were none.
    pub corrected: &'a [Difference],
    /// The decisions about its fields.
    pub decided: &'a [FieldVerdict],
}

/// Returns the sign of an object that was not there and was made.
pub fn made() -> Difference {
    Difference::new(WHOLE.to_owned(), None, None, Vec::new())
}

/// Returns the sign of an object that is not there and is left alone.
pub fn left_alone() -> FieldVerdict {
    FieldVerdict::new(WHOLE.to_owned(), Verdict::Fighting, Vec::new())
}

impl Fights {
    /// Tells whether there is nothing to remember.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the fields of an object that are left alone in this round, how often they were corrected, and for how many
    /// rounds after this one they are left alone.
    pub(super) fn resting(&self, id: &ObjectId) -> impl Iterator<Item = (FieldPath, u32, u32)> {
        let fights = self.0.get(&id.key()).into_iter().flatten();
        let fights = fights.filter(|(path, fight)| fight.rest > 0 && *path != WHOLE);
        fights.filter_map(|(path, fight)| Some((FieldPath::parse(path).ok()?, fight.corrections, fight.rest - 1)))
    }

    /// Says how often an object was made that somebody deletes each time, and for how many rounds after this one it is
    /// left alone; `None` if it may be made.
    pub(crate) fn deleted(&self, id: &ObjectId) -> Option<(u32, u32)> {
        let fight = self.0.get(&id.key())?.get(WHOLE).filter(|fight| fight.rest > 0)?;
        Some((fight.corrections, fight.rest - 1))
    }

    /// Says of an object that is about to be made, and that somebody has deleted each time, how often it was made then, and
    /// for how many rounds it is left alone after that; `None` if that is no fight.
    pub(crate) fn remade(&self, id: &ObjectId) -> Option<(u32, u32)> {
        let corrections = self.corrections(id, &made());
        (corrections >= FIGHT).then_some((corrections, rest(corrections)))
    }

    /// Says of a difference that is about to be corrected that it is a fight, if it is one.
    pub(super) fn named(&self, id: &ObjectId, difference: &Difference) -> Option<FieldVerdict> {
        let corrections = self.corrections(id, difference);
        let managers = difference.managers.iter().map(|manager| manager.name.clone()).collect();
        let decided = FieldVerdict::new(difference.path.clone(), Verdict::Fighting, managers);
        let rest = Some(rest(corrections));
        (corrections >= FIGHT).then_some(FieldVerdict { corrections: Some(corrections), rest, ..decided })
    }

    /// Returns how often a field was corrected to this value, if it is corrected now.
    fn corrections(&self, id: &ObjectId, difference: &Difference) -> u32 {
        let known = self.0.get(&id.key()).and_then(|fights| fights.get(&difference.path));
        known.filter(|fight| fight.value == value(difference)).map_or(1, |fight| fight.corrections.saturating_add(1))
    }

    /// Returns what is to be remembered after a round. Objects that it has not seen through are remembered as before, if
    /// `is_open` says that they are still there.
    #[must_use]
    pub fn after(&self, round: &[Seen<'_>], is_open: impl Fn(&str) -> bool) -> Self {
        let mut after: BTreeMap<_, _> = self.0.clone();
        after.retain(|key, _| is_open(key));
        for seen in round {
            let key = seen.id.key();
            let corrected = seen.corrected.iter().map(|difference| {
                let corrections = self.corrections(seen.id, difference);
                (difference.path.clone(), Fight { value: value(difference), corrections, rest: rest(corrections) })
            });
            let corrected: BTreeMap<String, Fight> = corrected.collect();
            let mut fights = self.still_resting(&key, seen.decided);
            fights.extend(corrected);
            after.remove(&key);
            if !fights.is_empty() {
                after.insert(key, fights);
            }
        }
        Self(after)
    }

    /// The fights of an object from which it has rested in a round, in which their fields still differed.
    fn still_resting(&self, key: &str, decided: &[FieldVerdict]) -> BTreeMap<String, Fight> {
        let is_on = |path: &str| {
            let about = decided.iter().filter(|decided| decided.verdict == Verdict::Fighting);
            about.map(|decided| decided.path.as_str()).any(|other| leads_to(path, other) || leads_to(other, path))
        };
        let fights = self.0.get(key).into_iter().flatten().filter(|(path, fight)| fight.rest > 0 && is_on(path));
        fights.map(|(path, fight)| (path.clone(), Fight { rest: fight.rest - 1, ..fight.clone() })).collect()
    }
}

/// For how many rounds a field is left alone after so many corrections.
fn rest(corrections: u32) -> u32 {
    match corrections.checked_sub(FIGHT) {
        None => 0,
        Some(more) => 1_u32.checked_shl(more).map_or(LONGEST_REST, |rest| rest.min(LONGEST_REST)),
    }
}

fn value(difference: &Difference) -> String {
    let text = difference.after.as_ref().map(ToString::to_string).unwrap_or_default();
    digest(text.as_bytes())[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn id() -> ObjectId {
        ObjectId::new("apps", "Deployment", "infra", "edge")
    }

    fn difference(after: Value) -> Difference {
        Difference {
            path: "spec.replicas".into(),
            before: Some(json!(9)),
            after: Some(after),
            managers: Vec::new(),
            place: None,
            class: None,
            estimated: false,
            content: None,
        }
    }

    /// A round in which somebody has set the value back, or has not.
    fn round(fights: &Fights, value: Option<Value>) -> (Fights, &'static str) {
        let resting = fights.resting(&id()).next();
        let (corrected, decided, word) = match (value, resting) {
            (None, _) => (vec![], vec![], "keeps"),
            (Some(_), Some((path, ..))) => {
                let decided = FieldVerdict::new(path.text().to_owned(), Verdict::Fighting, Vec::new());
                (vec![], vec![decided], "rests")
            }
            (Some(value), None) => {
                let difference = difference(value);
                let word = if fights.named(&id(), &difference).is_some() { "fights" } else { "corrects" };
                (vec![difference], vec![], word)
            }
        };
        let seen = Seen { id: &id(), corrected: &corrected, decided: &decided };
        (fights.after(&[seen], |_| true), word)
    }

    fn check(values: &[Option<u32>], expected: &[&str]) {
        let mut fights = Fights::default();
        let words: Vec<&str> = values
            .iter()
            .map(|value| {
                let (after, word) = round(&fights, value.map(Value::from));
                fights = after;
                word
            })
            .collect();
        assert_eq!(words, expected);
    }

    #[test]
    fn a_fight_is_named_and_rests_longer_and_longer() {
        let flips = [Some(2); 10];
        let words = ["corrects", "corrects", "fights", "rests", "fights", "rests", "rests", "fights", "rests", "rests"];
        check(&flips, &words);
    }

    #[test]
    fn a_fight_that_is_over_is_forgotten() {
        check(
            &[Some(2), Some(2), Some(2), None, Some(2), Some(2), Some(2)],
            &["corrects", "corrects", "fights", "keeps", "corrects", "corrects", "fights"],
        );
    }

    #[test]
    fn another_value_is_no_fight() {
        check(&[Some(2), Some(3), Some(4), Some(5)], &["corrects"; 4]);
    }

    #[test]
    fn an_object_that_somebody_deletes_again_and_again_rests_too() {
        let (mut fights, mut words) = (Fights::default(), Vec::new());
        for _ in 0..8 {
            let rests = fights.deleted(&id());
            let (corrected, decided) =
                if rests.is_some() { (vec![], vec![left_alone()]) } else { (vec![made()], vec![]) };
            words.push(rests);
            fights = fights.after(&[Seen { id: &id(), corrected: &corrected, decided: &decided }], |_| true);
        }
        let made = None;
        assert_eq!(words, [made, made, made, Some((3, 0)), made, Some((4, 1)), Some((4, 0)), made]);
        assert_eq!(fights.resting(&id()).count(), 0, "no field is meant");
        let kept = fights.after(&[Seen { id: &id(), corrected: &[], decided: &[] }], |_| true);
        assert!(kept.is_empty(), "once it stays it is forgotten");
    }

    #[test]
    fn a_rest_has_an_end() {
        assert_eq!([1, 2, 3, 4, 5, 9, 40, u32::MAX].map(rest), [0, 0, 1, 2, 4, 64, 64, 64]);
    }

    #[test]
    fn what_is_gone_is_forgotten_and_what_was_not_seen_is_not() {
        let (fights, _) = round(&Fights::default(), Some(json!(2)));
        assert_eq!(fights.after(&[], |_| true), fights);
        assert!(fights.after(&[], |_| false).is_empty());
    }
}
