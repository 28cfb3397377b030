//! Overlays of one rank that contradict each other.
//!
//! They do where it matters which of them goes first: what comes of both is then compared, and no rule of merging and no
//! sort of patch has to be known here.

use serde_json::Value;

use super::Overlay;
use super::patch::{OverlayPatch, Target};
use crate::interrupt;
use crate::merge::origin::{Layer, LayerName, Merged};
use crate::merge::{Table, disagreements, merge_over};
use crate::patch::PatchType;
use crate::problem::{Place, Problem};

/// Cuts overlays, the lowest first, into groups of one rank.
pub(super) fn ranks<'a, 'b>(overlays: &'b [&'a Overlay]) -> impl Iterator<Item = &'b [&'a Overlay]> {
    overlays.chunk_by(|one, other| one.rank() == other.rank())
}

/// Returns the parameters that two overlays of one rank set to different values. `layers` are all layers above
/// `defaults`, those of the overlays last.
pub(crate) fn of_parameters(
    overlays: &[&Overlay],
    layers: &[Layer<'_>],
    table: &Table,
    defaults: impl Fn() -> Merged,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut lower = layers.iter().filter(|layer| layer.name != LayerName::Overlay).count();
    for group in ranks(overlays) {
        let speaking: Vec<(&Overlay, Layer<'_>)> =
            group.iter().filter_map(|overlay| Some((*overlay, overlay.layer()?))).collect();
        if speaking.len() > 1 {
            let lowest = merge_over(defaults(), &layers[..lower], table);
            for (one, other) in pairs(&speaking).take_while(|_| !interrupt::is_given()) {
                problems.extend(parameters(&lowest, table, one, other));
            }
        }
        lower += speaking.len();
    }
    problems
}

fn parameters(
    lowest: &Merged,
    table: &Table,
    (one, layer): &(&Overlay, Layer<'_>),
    (other, other_layer): &(&Overlay, Layer<'_>),
) -> Vec<Problem> {
    let merged = |layers: [&Layer<'_>; 2]| merge_over(lowest.clone(), &layers.map(Layer::clone), table);
    let (other_wins, one_wins) = (merged([layer, other_layer]), merged([other_layer, layer]));
    let problem = |path: &Vec<String>| {
        let path: Vec<&str> = ["spec", "parameters"].into_iter().chain(path.iter().map(String::as_str)).collect();
        let (place, there) = (one.document.place_of(&path), other.document.place_of(&path));
        contradiction(one, place, &path.join("."), &there)
    };
    disagreements(&other_wins, &one_wins, table).iter().map(problem).collect()
}

/// Returns what two overlays of one rank make of a value if it matters which of them is first. The changes of each
/// overlay stand together.
pub(super) fn of_changes(changes: &[Vec<OverlayPatch<'_>>], value: &Value, target: Target<'_>) -> Vec<Problem> {
    let speaking: Vec<&Vec<OverlayPatch<'_>>> = changes.iter().filter(|changes| !changes.is_empty()).collect();
    let speaking = pairs(&speaking).take_while(|_| !interrupt::is_given());
    speaking.filter_map(|(one, other)| of_two(one, other, value, target)).collect()
}

fn of_two(one: &[OverlayPatch<'_>], other: &[OverlayPatch<'_>], value: &Value, target: Target<'_>) -> Option<Problem> {
    let apply = |value: Value, changes: &[OverlayPatch<'_>]| {
        changes.iter().try_fold(value, |value, change| change.apply(&value, target)).ok()
    };
    let other_wins = apply(value.clone(), one).and_then(|value| apply(value, other));
    let one_wins = apply(value.clone(), other).and_then(|value| apply(value, one));
    // Strategic merging puts new items first, and so the order of the lists shows that of the patches.
    let in_order = one.iter().chain(other).any(|change| change.kind != PatchType::Strategic);
    let mut path = Vec::new();
    match (&other_wins, &one_wins) {
        (Some(one), Some(other)) if !differs(one, other, in_order, &mut path) => return None,
        // What is wrong with them has nothing to do with their order.
        (None, None) => return None,
        (Some(_) | None, Some(_) | None) => {}
    }
    let first = one.last()?;
    let what =
        if path.is_empty() { format!("spec.{}", first.list) } else { format!("the patch of {}", path.join(".")) };
    Some(contradiction(first.overlay, nearest(one, &path), &what, &nearest(other, &path)))
}

/// Returns the place of the change that says most about a path: the deepest line, for want of anything better the last.
fn nearest(changes: &[OverlayPatch<'_>], path: &[String]) -> Place {
    let whole: Vec<Place> = changes.iter().map(|change| change.place(&[])).collect();
    let places: Vec<Place> = changes.iter().map(|change| change.place(path)).collect();
    let said = places.iter().zip(&whole).rev().find(|(place, whole)| place != whole);
    said.map_or_else(|| whole[whole.len() - 1].clone(), |(place, _)| place.clone())
}

/// Finds where two values differ; the path leads to the first place.
fn differs(one: &Value, other: &Value, in_order: bool, path: &mut Vec<String>) -> bool {
    match (one, other) {
        (Value::Object(fields), Value::Object(others)) => {
            let keys = fields.keys().chain(others.keys().filter(|key| !fields.contains_key(*key)));
            for key in keys {
                path.push(key.clone());
                let (one, other) = (fields.get(key), others.get(key));
                if differs(one.unwrap_or(&Value::Null), other.unwrap_or(&Value::Null), in_order, path) {
                    return true;
                }
                path.pop();
            }
            false
        }
        (Value::Array(items), Value::Array(others)) if !in_order => sorted(items) != sorted(others),
        (one, other) => one != other,
    }
}

/// Writes the items of a list, and those of the lists in them, in an order that does not depend on theirs.
fn sorted(items: &[Value]) -> Vec<String> {
    fn plain(value: &Value) -> Value {
        match value {
            Value::Array(items) => Value::from(sorted(items)),
            Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), plain(value))).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
        }
    }
    let mut items: Vec<String> = items.iter().map(|item| plain(item).to_string()).collect();
    items.sort();
    items
}

fn pairs<T>(all: &[T]) -> impl Iterator<Item = (&T, &T)> {
    all.iter().enumerate().flat_map(|(index, one)| all[index + 1..].iter().map(move |other| (one, other)))
}

fn contradiction(one: &Overlay, place: Place, what: &str, there: &Place) -> Problem {
    let message = format!("{what} contradicts {there}, and both overlays {}", one.rank());
    Problem::document(place, message)
        .about(one.document.id.clone())
        .hint("give one of them a higher priority, or a more specific target")
}
