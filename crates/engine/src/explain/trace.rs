//! Changing every input and watching one object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::again::{self, Instead};
use super::inputs::{Case, Input};
use super::spots::{Spot, changed_lines, fates, parts, replaced};
use super::template::Maker;
use super::vary::{carries, others, text, trials};
use super::{Cause, Effect, Leaf, Said};
use crate::diff::{Path, Segment};
use crate::object::Object;

/// What became of one leaf when an input was changed.
struct Change {
    effect: Effect,
    lines: BTreeSet<usize>,
}

/// What became of the object.
#[derive(Default)]
struct Changes {
    /// The leaves that have changed, by their number.
    leaves: BTreeMap<usize, Change>,
    /// Whether it is not there any more.
    is_gone: bool,
}

impl Changes {
    fn is_empty(&self) -> bool {
        self.leaves.is_empty() && !self.is_gone
    }
}

/// One leaf of the object, and what is known about it.
struct Watched {
    spot: Spot,
    is_wanted: bool,
    /// Each with the number of leaves that it bears on.
    causes: Vec<(usize, Cause)>,
}

/// One object under watch.
pub(super) struct Trace<'a> {
    case: &'a Case<'a>,
    objects: &'a [Object],
    index: usize,
    watched: Vec<Watched>,
    /// Inputs for which nothing else was accepted.
    pub(super) untried: Vec<Said>,
    /// Inputs without which the object is not there.
    pub(super) because: Vec<Said>,
}

impl<'a> Trace<'a> {
    /// Watches the object at `index`; its leaves are all given, and those that are wanted marked.
    pub(super) fn new(case: &'a Case<'a>, objects: &'a [Object], index: usize, leaves: Vec<(Spot, bool)>) -> Self {
        let watch = |(spot, is_wanted)| Watched { spot, is_wanted, causes: Vec::new() };
        let watched = leaves.into_iter().map(watch).collect();
        Self { case, objects, index, watched, untried: Vec::new(), because: Vec::new() }
    }

    /// Changes everything, and returns the wanted leaves with what was found, and the template.
    pub(super) fn run(&mut self) -> (Vec<Leaf>, Option<String>) {
        let inputs = self.case.inputs();
        let mut refused: Vec<(&Input, &Spot)> = Vec::new();
        for input in &inputs {
            refused.extend(input.leaves.iter().filter(|spot| !self.vary(input, spot)).map(|spot| (input, spot)));
        }
        self.vary_alike(&inputs, &refused);
        // What follows costs as much again, and only finds causes that are weaker.
        if self.has_open() {
            self.vary_lists(&inputs);
        }
        if self.has_open() {
            self.remove_parts(&inputs);
        }
        let maker = Maker::of(self.case, &self.objects[self.index], self.has_open());
        let wanted = std::mem::take(&mut self.watched).into_iter().filter(|watched| watched.is_wanted);
        (wanted.map(|watched| watched.into_leaf(&maker)).collect(), maker.template)
    }

    fn has_open(&self) -> bool {
        self.watched.iter().any(Watched::is_open)
    }

    /// Lets an input say something else at one spot; tells whether anything was accepted.
    fn vary(&mut self, input: &Input, spot: &Spot) -> bool {
        let (mut changes, mut accepted) = (Changes::default(), 0);
        for other in others(&spot.value).into_iter().chain(self.case.choices(input, spot)) {
            if accepted == trials(&spot.value) {
                break;
            }
            let root = replaced(&input.root, &spot.steps, Some(other.clone()));
            accepted += usize::from(self.watch(&[(input, &root)], &spot.value, Some(&other), &mut changes));
        }
        if accepted == 0 {
            let root = replaced(&input.root, &spot.steps, None);
            accepted += usize::from(self.watch(&[(input, &root)], &spot.value, None, &mut changes));
        }
        if !changes.is_empty() {
            let (said, lower) = (self.case.said(input, spot), self.case.lower(input, spot));
            self.record(&changes, &said, &lower);
        }
        accepted > 0
    }

    /// Lets what says the same say something else together: one may only be accepted with the other.
    fn vary_alike(&mut self, inputs: &[Input], refused: &[(&Input, &Spot)]) {
        let mut groups: BTreeMap<String, Vec<(&Input, &Spot)>> = BTreeMap::new();
        for (input, spot) in refused {
            groups.entry(spot.value.to_string()).or_default().push((input, spot));
        }
        for group in groups.values() {
            let follows = |spot: &&Spot| group.iter().any(|(_, known)| known.value == spot.value);
            let followers = inputs.iter().flat_map(|input| input.followers.iter().map(move |spot| (input, spot)));
            let followers = followers.filter(|(_, spot)| follows(spot));
            let changes = self.vary_together(&group.iter().copied().chain(followers).collect::<Vec<_>>());
            for (input, spot) in group {
                let (said, lower) = (self.case.said(input, spot), self.case.lower(input, spot));
                match &changes {
                    Some(changes) => self.record(changes, &said, &lower),
                    None => self.untried.push(said),
                }
            }
        }
    }

    fn vary_together(&self, group: &[(&Input, &Spot)]) -> Option<Changes> {
        let (_, first) = group.first().filter(|_| group.len() > 1)?;
        others(&first.value).iter().find_map(|other| {
            let mut roots: Vec<(&Input, Value)> = Vec::new();
            for (input, spot) in group {
                let known = roots.iter_mut().find(|(known, _)| known.kind == input.kind);
                match known {
                    Some((_, root)) => *root = replaced(root, &spot.steps, Some(other.clone())),
                    None => roots.push((input, replaced(&input.root, &spot.steps, Some(other.clone())))),
                }
            }
            let instead: Vec<Instead<'_>> = roots.iter().map(|(input, root)| (*input, root)).collect();
            let mut changes = Changes::default();
            self.watch(&instead, &first.value, Some(other), &mut changes).then_some(changes)
        })
    }

    /// Lets all elements of a list say something else at once, also where several inputs have such a list: each alone
    /// may be enough for a field.
    fn vary_lists(&mut self, inputs: &[Input]) {
        let mut groups: BTreeMap<String, Vec<(&Input, Vec<&Spot>)>> = BTreeMap::new();
        for input in inputs {
            let mut lists: BTreeMap<String, Vec<&Spot>> = BTreeMap::new();
            for spot in input.leaves.iter().filter(|spot| spot.list().is_some()) {
                lists.entry(pattern(&spot.path)).or_default().push(spot);
            }
            for (path, spots) in lists {
                groups.entry(path).or_default().push((input, spots));
            }
        }
        for (path, lists) in &groups {
            lists.iter().filter(|(_, spots)| spots.len() > 1).for_each(|list| self.vary_group(path, &[list]));
        }
        for (path, lists) in groups.iter().filter(|(_, lists)| lists.len() > 1) {
            self.vary_group(path, &lists.iter().collect::<Vec<_>>());
        }
    }

    fn vary_group(&mut self, path: &str, lists: &[&(&Input, Vec<&Spot>)]) {
        let mut changes = Changes::default();
        let spots = lists.iter().flat_map(|(_, spots)| spots);
        for trial in 0..spots.map(|spot| trials(&spot.value)).max().unwrap_or_default() {
            let change = |root: Value, spot: &&Spot| match others(&spot.value).into_iter().nth(trial) {
                Some(other) => replaced(&root, &spot.steps, Some(other)),
                None => root,
            };
            let roots: Vec<Value> =
                lists.iter().map(|(input, spots)| spots.iter().fold(input.root.clone(), change)).collect();
            let instead: Vec<Instead<'_>> = lists.iter().map(|(input, _)| *input).zip(&roots).collect();
            self.watch(&instead, &Value::Null, None, &mut changes);
        }
        changes.leaves.retain(|number, change| self.watched[*number].lacks(change));
        for (input, spots) in lists.iter().filter(|_| !changes.is_empty()) {
            let Some(first) = spots.first() else { continue };
            let value = spots.iter().map(|spot| spot.value.clone()).collect();
            let list = Spot { steps: first.list().unwrap_or_default().to_vec(), value, ..(*first).clone() };
            let said = Said { path: self.case.path(input, path), ..self.case.said(input, &list) };
            self.record(&changes, &said, &[]);
        }
    }

    /// Lets inputs not say something at all, the smallest parts first: for fields that are there because of it.
    fn remove_parts(&mut self, inputs: &[Input]) {
        let parts = inputs.iter().enumerate().flat_map(|(number, input)| {
            let said = parts(&input.root).into_iter().filter(|part| !part.value.is_null());
            said.map(move |part| (number, input, part))
        });
        let mut parts: Vec<(usize, &Input, Spot)> = parts.collect();
        parts.sort_by_key(|(_, _, part)| std::cmp::Reverse(part.steps.len()));
        let mut found: Vec<(usize, &Input, &Spot, Changes)> = Vec::new();
        for (number, input, part) in &parts {
            let mut changes = Changes::default();
            let root = replaced(&input.root, &part.steps, None);
            self.watch(&[(input, &root)], &part.value, None, &mut changes);
            let smaller = || {
                let below =
                    found.iter().filter(|(of, _, smaller, _)| of == number && smaller.steps.starts_with(&part.steps));
                below.map(|(.., changes)| changes)
            };
            changes.is_gone &= self.because.is_empty() && !smaller().any(|changes| changes.is_gone);
            changes.leaves.retain(|leaf, change| {
                self.watched[*leaf].lacks(change) && !smaller().any(|changes| changes.leaves.contains_key(leaf))
            });
            if !changes.is_empty() {
                found.push((*number, input, part, changes));
            }
        }
        for (_, input, part, changes) in found {
            let (said, lower) = (self.case.said(input, part), self.case.lower(input, part));
            self.record(&changes, &said, &lower);
        }
    }

    /// Renders with `other` in the place of what was `said`, and notes the leaves that have changed; tells whether that
    /// was accepted.
    fn watch(&self, instead: &[Instead<'_>], said: &Value, other: Option<&Value>, changes: &mut Changes) -> bool {
        let Some(objects) = again::render(self.case, instead) else { return false };
        let before = self.objects[self.index].body();
        let after = counterpart(self.objects, self.index, &objects).map(Object::body);
        if after == Some(before) {
            return true;
        }
        changes.is_gone |= after.is_none();
        for (number, (watched, fate)) in self.watched.iter().zip(fates(before, after)).enumerate() {
            let before = &watched.spot.value;
            // That all fields go with their object is said once.
            if fate == Some(before) || (after.is_none() && !carries(before, fate, said, other)) {
                continue;
            }
            let effect = if carries(before, fate, said, other) { Effect::Sets } else { Effect::Governs };
            let change = changes.leaves.entry(number).or_insert(Change { effect, lines: BTreeSet::new() });
            change.effect = change.effect.min(effect);
            if let (Value::String(before), Some(Value::String(after))) = (before, fate) {
                change.lines.extend(changed_lines(before, after));
            }
        }
        true
    }

    fn record(&mut self, changes: &Changes, said: &Said, lower: &[Said]) {
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
}

impl Watched {
    /// Tells whether there may be causes that are not known: there is none, or it is a text of several lines.
    fn is_open(&self) -> bool {
        let is_text = self.spot.value.as_str().is_some_and(|text| text.lines().nth(1).is_some());
        self.is_wanted && (is_text || self.causes.is_empty())
    }

    /// Tells whether nothing is known yet that explains a change.
    fn lacks(&self, change: &Change) -> bool {
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
fn position(value: &Value, part: &Value) -> usize {
    let found = text(value).zip(text(part)).and_then(|(value, part)| value.find(&part));
    found.unwrap_or_default()
}

/// Returns the path of a spot, the elements of lists replaced by a star.
fn pattern(path: &[Segment]) -> String {
    let mut pattern = String::new();
    for fields in path.split_inclusive(|segment| !matches!(segment, Segment::Field(_))) {
        let (is_list, fields) = match fields.split_last() {
            Some((Segment::Key(..) | Segment::Index(_), fields)) => (true, fields),
            _ => (false, fields),
        };
        let text = Path(fields).to_string();
        let dot = if pattern.is_empty() || text.is_empty() || text.starts_with('[') { "" } else { "." };
        pattern = format!("{pattern}{dot}{text}{}", if is_list { "[*]" } else { "" });
    }
    pattern
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
