//! One object under watch: what became of its fields when inputs were changed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::blame::Origin;
use super::path::is_at;
use super::spots::{Spot, changed_lines, fates, leaves};
use super::template::Maker;
use super::vary::{carries, text};
use super::{Cause, Effect, Leaf, Said};
use crate::object::Object;

/// The value that an input said, and the one that it says instead; `None` if nothing.
pub(super) type Exchange<'a> = (&'a Value, Option<&'a Value>);

/// The change of one leaf after an input was changed.
struct LeafChange {
    effect: Effect,
    lines: BTreeSet<usize>,
}

/// The changes of an object.
#[derive(Default)]
pub(super) struct Changes {
    /// The leaves that have changed, by their number.
    leaves: BTreeMap<usize, LeafChange>,
    /// Whether it is not there any more.
    is_gone: bool,
}

/// One leaf of an object, and what is known about it.
struct Watched {
    spot: Spot,
    is_wanted: bool,
    /// Each with the number of leaves that it bears on.
    causes: Vec<(usize, Cause)>,
}

/// One object under watch.
pub(super) struct WatchedObject<'a> {
    objects: &'a [Object],
    index: usize,
    watched: Vec<Watched>,
    /// Inputs without which it is not there.
    pub(super) because: Vec<Said>,
}

impl<'a> WatchedObject<'a> {
    /// Watches one of some objects, and tells which of its leaves are wanted.
    pub(super) fn new(objects: &'a [Object], index: usize, is_wanted: impl Fn(&Spot) -> bool) -> Self {
        let watch = |spot: Spot| Watched { is_wanted: is_wanted(&spot), spot, causes: Vec::new() };
        let watched = leaves(objects[index].body()).into_iter().map(watch).collect();
        Self { objects, index, watched, because: Vec::new() }
    }

    /// Returns the object as it is.
    pub(super) fn object(&self) -> &'a Object {
        &self.objects[self.index]
    }

    /// Returns what has a say in what stands at a path or below it.
    pub(super) fn origins(&self, path: &str) -> Vec<Origin> {
        let watched = self.watched.iter().filter(|watched| is_at(&watched.spot, path));
        let causes = watched.flat_map(|watched| &watched.causes);
        causes
            .map(|(breadth, Cause { effect, said, .. })| Origin {
                effect: *effect,
                said: said.clone(),
                breadth: *breadth,
            })
            .collect()
    }

    /// Tells whether there may be causes that are not known.
    pub(super) fn is_open(&self) -> bool {
        self.watched.iter().any(Watched::is_open)
    }

    /// Records what has become of the object among those that were rendered with an exchange.
    pub(super) fn compare(&self, objects: &[Object], (said, other): Exchange<'_>, changes: &mut Changes) {
        let before = self.object().body();
        let after = counterpart(self.objects, self.index, objects).map(Object::body);
        if after == Some(before) {
            return;
        }
        changes.is_gone |= after.is_none();
        for (number, (watched, fate)) in self.watched.iter().zip(fates(before, after)).enumerate() {
            let before = &watched.spot.value;
            // That all fields go with their object is said once.
            if fate == Some(before) || (after.is_none() && !carries(before, fate, said, other)) {
                continue;
            }
            let effect = if carries(before, fate, said, other) { Effect::Sets } else { Effect::Governs };
            let change = changes.leaves.entry(number).or_insert(LeafChange { effect, lines: BTreeSet::new() });
            change.effect = change.effect.min(effect);
            if let (Value::String(before), Some(Value::String(after))) = (before, fate) {
                change.lines.extend(changed_lines(before, after));
            }
        }
    }

    /// Keeps the changes that nothing known explains, nor a smaller part that was changed already.
    pub(super) fn keep_news(&self, changes: &mut Changes, smaller: &[&Changes]) {
        changes.is_gone &= self.because.is_empty() && !smaller.iter().any(|changes| changes.is_gone);
        changes.leaves.retain(|leaf, change| {
            self.watched[*leaf].lacks(change) && !smaller.iter().any(|changes| changes.leaves.contains_key(leaf))
        });
    }

    /// Makes an input the cause of changes.
    pub(super) fn record(&mut self, changes: &Changes, said: &Said, lower: &[Said]) {
        if changes.is_gone && !self.because.contains(said) {
            self.because.push(said.clone());
        }
        for (number, change) in &changes.leaves {
            let Some(watched) = self.watched.get_mut(*number).filter(|watched| watched.is_wanted) else { continue };
            let mut lines = change.lines.clone();
            if let Some((_, known)) = watched.causes.iter_mut().find(|(_, cause)| cause.said == *said) {
                lines.extend(&known.lines);
                known.lines = lines.into_iter().collect();
                continue;
            }
            let lines = lines.into_iter().collect();
            let cause = Cause { effect: change.effect, said: said.clone(), lower: lower.to_vec(), lines };
            watched.causes.push((changes.leaves.len(), cause));
        }
    }

    /// Returns the wanted leaves with what was found.
    pub(super) fn into_leaves(self, maker: &Maker) -> Vec<Leaf> {
        let wanted = self.watched.into_iter().filter(|watched| watched.is_wanted);
        wanted.map(|watched| watched.into_leaf(maker)).collect()
    }
}

impl Changes {
    /// Tells whether nothing has changed.
    pub(super) fn is_empty(&self) -> bool {
        self.leaves.is_empty() && !self.is_gone
    }
}

impl Watched {
    /// Tells whether there may be causes that are not known: there is none, or it is a text of several lines.
    fn is_open(&self) -> bool {
        let is_text = self.spot.value.as_str().is_some_and(|text| text.lines().nth(1).is_some());
        self.is_wanted && (is_text || self.causes.is_empty())
    }

    /// Tells whether nothing is known yet that explains a change.
    fn lacks(&self, change: &LeafChange) -> bool {
        let is_known = |line: &usize| self.causes.iter().any(|(_, cause)| cause.lines.contains(line));
        self.is_wanted && (self.causes.is_empty() || !change.lines.iter().all(is_known))
    }

    /// Orders the causes: what sets the value in the order of the value; then what bears on the fewest fields, of a text
    /// what bears on its lines before what would add some.
    fn into_leaf(mut self, maker: &Maker) -> Leaf {
        let value = &self.spot.value;
        self.causes.sort_by_cached_key(|(breadth, cause)| match cause.effect {
            Effect::Sets => (cause.effect, false, position(value, &cause.said.value)),
            Effect::Governs => (cause.effect, cause.lines.is_empty(), *breadth),
        });
        let path = self.spot.text();
        let fixed = self.causes.is_empty().then(|| maker.fixed(&path));
        Leaf { path, causes: self.causes.into_iter().map(|(_, cause)| cause).collect(), fixed, value: self.spot.value }
    }
}

/// Returns where a value stands in the text of another.
pub(super) fn position(value: &Value, part: &Value) -> usize {
    let found = text(value).zip(text(part)).and_then(|(value, part)| value.find(&part));
    found.unwrap_or_default()
}

/// Returns the object that an object has become: of the same name, or else the next of its kind that is new.
fn counterpart<'o>(before: &[Object], index: usize, after: &'o [Object]) -> Option<&'o Object> {
    let wanted = before.get(index)?.id();
    if let Some(same) = after.iter().find(|object| object.id() == wanted) {
        return Some(same);
    }
    let is_alike = |object: &&Object| object.id().group == wanted.group && object.id().kind == wanted.kind;
    let is_alone = |object: &&Object, others: &[Object]| !others.iter().any(|other| other.id() == object.id());
    let earlier = before[..index].iter().filter(is_alike).filter(|object| is_alone(object, after)).count();
    after.iter().filter(is_alike).filter(|object| is_alone(object, before)).nth(earlier)
}
