//! Overlays of one rank that contradict each other.
//!
//! They do where it matters which of them goes first: what comes of both is then compared, and no rule of merging has to
//! be known here.

use super::Overlay;
use crate::merge::origin::{Layer, LayerName};
use crate::merge::{disagreements, merge_over, origin::Merged};
use crate::pack::Subject;
use crate::problem::Problem;
use crate::resolve::Resolved;

/// Returns the parameters that two overlays of one rank set to different values.
pub(crate) fn of_parameters(resolved: &Resolved<'_>, subject: &Subject<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (start, group) in ranks(&resolved.overlays) {
        let speaking: Vec<(&Overlay, Layer<'_>)> =
            group.iter().filter_map(|overlay| Some((*overlay, overlay.layer()?))).collect();
        if speaking.len() < 2 {
            continue;
        }
        let lowest = below(resolved, subject, start);
        for (index, one) in speaking.iter().enumerate() {
            for other in &speaking[index + 1..] {
                problems.extend(contradictions(resolved, &lowest, one, other));
            }
        }
    }
    problems
}

/// Cuts overlays, the lowest first, into groups of one rank, each with the index of its first.
pub(super) fn ranks<'a, 'b>(overlays: &'b [&'a Overlay]) -> Vec<(usize, &'b [&'a Overlay])> {
    let mut groups = Vec::new();
    let mut start = 0;
    for group in overlays.chunk_by(|one, other| one.rank() == other.rank()) {
        groups.push((start, group));
        start += group.len();
    }
    groups
}

/// Merges everything below the overlay of an index.
fn below(resolved: &Resolved<'_>, subject: &Subject<'_>, index: usize) -> Merged {
    let lower = resolved.overlays[..index].iter().filter(|overlay| overlay.layer().is_some()).count();
    let others = resolved.layers.iter().filter(|layer| layer.name != LayerName::Overlay).count();
    let defaults = resolved.kind.generator.defaults(subject, &resolved.layers);
    merge_over(defaults, &resolved.layers[..others + lower], &resolved.kind.table)
}

fn contradictions(
    resolved: &Resolved<'_>,
    lowest: &Merged,
    (one, layer): &(&Overlay, Layer<'_>),
    (other, other_layer): &(&Overlay, Layer<'_>),
) -> Vec<Problem> {
    let merged = |layers: [&Layer<'_>; 2]| merge_over(lowest.clone(), &layers.map(Layer::clone), &resolved.kind.table);
    let (other_wins, one_wins) = (merged([layer, other_layer]), merged([other_layer, layer]));
    let paths = disagreements(&other_wins, &one_wins, &resolved.kind.table);
    paths.iter().map(|path| contradiction(one, other, path)).collect()
}

fn contradiction(one: &Overlay, other: &Overlay, path: &[String]) -> Problem {
    let written: Vec<&str> = ["spec", "parameters"].into_iter().chain(path.iter().map(String::as_str)).collect();
    let there = other.document.place_of(&written);
    let message = format!("{} contradicts {there}, and both overlays {}", written.join("."), one.rank());
    one.problem(&written, message).hint("give one of them a higher priority, or a more specific target")
}
