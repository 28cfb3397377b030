//! Changing every input, and watching objects.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::Value;

use super::Said;
use super::again::{self, Instead};
use super::inputs::{Case, Input};
use super::spots::{Spot, parts, replaced};
use super::vary::{others, trials};
use super::watched::{Changes, Exchange, WatchedObject};
use crate::diff::{Path, Segment};

/// Objects of one unit under watch.
pub(super) struct Trace<'a> {
    case: &'a Case<'a>,
    /// The objects.
    pub(super) targets: Vec<WatchedObject<'a>>,
    /// Inputs for which nothing else was accepted.
    pub(super) untried: Vec<Said>,
}

/// Part of an input: its number, the input, the part.
type Part<'a> = (usize, &'a Input, Spot);

/// A list in one input: one spot of each of its elements.
type List<'a> = (&'a Input, Vec<&'a Spot>);

impl<'a> Trace<'a> {
    /// Watches objects of a unit.
    pub(super) fn new(case: &'a Case<'a>, targets: Vec<WatchedObject<'a>>) -> Self {
        Self { case, targets, untried: Vec::new() }
    }

    /// Changes everything.
    pub(super) fn run(&mut self) {
        let mut inputs = self.case.inputs();
        inputs.extend(self.case.read());
        let mut refused: Vec<(&Input, &Spot)> = Vec::new();
        for input in &inputs {
            refused.extend(input.leaves.iter().filter(|spot| !self.vary(input, spot)).map(|spot| (input, spot)));
        }
        self.vary_alike(&inputs, &refused);
        // What follows costs as much again, and only finds causes that are weaker.
        if self.is_open() {
            self.vary_lists(&inputs);
        }
        if self.is_open() {
            self.remove_parts(&inputs);
        }
    }

    /// Changes single inputs, and nothing together; documents that a pack looks up are hundreds of lines, and are left out.
    pub(super) fn run_once(&mut self) {
        for input in &self.case.inputs() {
            for spot in &input.leaves {
                self.vary(input, spot);
            }
        }
    }

    fn is_open(&self) -> bool {
        self.targets.iter().any(WatchedObject::is_open)
    }

    fn no_changes(&self) -> Vec<Changes> {
        self.targets.iter().map(|_| Changes::default()).collect()
    }

    /// Lets an input say something else at one spot; tells whether anything was accepted.
    fn vary(&mut self, input: &Input, spot: &Spot) -> bool {
        let (mut changes, mut accepted) = (self.no_changes(), 0);
        for other in others(&spot.value).into_iter().chain(self.case.choices(input, spot)) {
            if accepted == trials(&spot.value) {
                break;
            }
            let root = replaced(&input.root, &spot.steps, Some(other.clone()));
            accepted += usize::from(self.watch(&[(input, &root)], (&spot.value, Some(&other)), &mut changes));
        }
        if accepted == 0 {
            let root = replaced(&input.root, &spot.steps, None);
            accepted += usize::from(self.watch(&[(input, &root)], (&spot.value, None), &mut changes));
        }
        self.record(&changes, input, spot);
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
                match &changes {
                    Some(changes) => self.record(changes, input, spot),
                    None => self.untried.push(self.case.said(input, spot)),
                }
            }
        }
    }

    fn vary_together(&self, group: &[(&Input, &Spot)]) -> Option<Vec<Changes>> {
        let (_, first) = group.first().filter(|_| group.len() > 1)?;
        others(&first.value).iter().find_map(|other| {
            let mut roots: Vec<(&Input, Value)> = Vec::new();
            for (input, spot) in group {
                match roots.iter_mut().find(|(known, _)| known.kind == input.kind) {
                    Some((_, root)) => *root = replaced(root, &spot.steps, Some(other.clone())),
                    None => roots.push((input, replaced(&input.root, &spot.steps, Some(other.clone())))),
                }
            }
            let instead: Vec<Instead<'_>> = roots.iter().map(|(input, root)| (*input, root)).collect();
            let mut changes = self.no_changes();
            self.watch(&instead, (&first.value, Some(other)), &mut changes).then_some(changes)
        })
    }

    /// Lets all elements of a list say something else at once, also where several inputs have such a list: each alone
    /// may be enough for a field.
    fn vary_lists(&mut self, inputs: &[Input]) {
        let mut groups: BTreeMap<String, Vec<List<'_>>> = BTreeMap::new();
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

    fn vary_group(&mut self, path: &str, lists: &[&List<'_>]) {
        let mut changes = self.no_changes();
        let spots = lists.iter().flat_map(|(_, spots)| spots);
        for trial in 0..spots.map(|spot| trials(&spot.value)).max().unwrap_or_default() {
            let change = |root: Value, spot: &&Spot| match others(&spot.value).into_iter().nth(trial) {
                Some(other) => replaced(&root, &spot.steps, Some(other)),
                None => root,
            };
            let roots: Vec<Value> =
                lists.iter().map(|(input, spots)| spots.iter().fold(input.root.clone(), change)).collect();
            let instead: Vec<Instead<'_>> = lists.iter().map(|(input, _)| *input).zip(&roots).collect();
            self.watch(&instead, (&Value::Null, None), &mut changes);
        }
        for (target, changes) in self.targets.iter().zip(&mut changes) {
            target.keep_news(changes, &[]);
        }
        for (input, spots) in lists {
            let Some(first) = spots.first() else { continue };
            let value = spots.iter().map(|spot| spot.value.clone()).collect();
            let list = Spot { steps: first.list().unwrap_or_default().to_vec(), value, ..(*first).clone() };
            let said = Said { path: self.case.path(input, path), ..self.case.said(input, &list) };
            for (target, changes) in self.targets.iter_mut().zip(&changes) {
                target.record(changes, &said, &[]);
            }
        }
    }

    /// Lets inputs not say something at all, the smallest parts first: for fields that are there because of it.
    fn remove_parts(&mut self, inputs: &[Input]) {
        let parts = inputs.iter().enumerate().flat_map(|(number, input)| {
            let said = parts(&input.root).into_iter().filter(|part| !part.value.is_null());
            said.map(move |part| (number, input, part))
        });
        let mut parts: Vec<Part<'_>> = parts.collect();
        parts.sort_by_key(|(_, _, part)| Reverse(part.steps.len()));
        let mut found: Vec<(&Part<'_>, Vec<Changes>)> = Vec::new();
        for entry in &parts {
            let (number, input, part) = entry;
            let mut changes = self.no_changes();
            let root = replaced(&input.root, &part.steps, None);
            self.watch(&[(input, &root)], (&part.value, None), &mut changes);
            for (index, changes) in changes.iter_mut().enumerate().filter(|(_, changes)| !changes.is_empty()) {
                let smaller = found.iter().filter(|((of, _, it), _)| of == number && it.steps.starts_with(&part.steps));
                self.targets[index]
                    .keep_news(changes, &smaller.map(|(_, changes)| &changes[index]).collect::<Vec<_>>());
            }
            if changes.iter().any(|changes| !changes.is_empty()) {
                found.push((entry, changes));
            }
        }
        for ((_, input, part), changes) in found {
            self.record(&changes, input, part);
        }
    }

    /// Renders with something exchanged, and notes what has changed; tells whether that was accepted.
    fn watch(&self, instead: &[Instead<'_>], exchange: Exchange<'_>, changes: &mut [Changes]) -> bool {
        let Some(objects) = again::render(self.case, instead) else { return false };
        for (target, changes) in self.targets.iter().zip(changes) {
            target.compare(&objects, exchange, changes);
        }
        true
    }

    fn record(&mut self, changes: &[Changes], input: &Input, spot: &Spot) {
        if changes.iter().all(Changes::is_empty) {
            return;
        }
        let (said, lower) = (self.case.said(input, spot), self.case.lower(input, spot));
        for (target, changes) in self.targets.iter_mut().zip(changes) {
            target.record(changes, &said, &lower);
        }
    }
}

/// Returns the path of a spot, the elements of lists replaced by a star.
fn pattern(path: &[Segment]) -> String {
    let any = |segment: &Segment| match segment {
        Segment::Field(_) => segment.clone(),
        Segment::Key(..) | Segment::Index(_) => Segment::Key("", "*".to_owned()),
    };
    Path(&path.iter().map(any).collect::<Vec<_>>()).to_string()
}
