//! An object of a unit: what the last round has done with it, and what differs.

use gatewright_engine::object::ObjectId;
use jiff::Timestamp;
use serde::Serialize;

use super::cell::cut;
use super::target::MOST_CHARACTERS;
use crate::report::shown::{Shown, Values, dated, tags};
use crate::report::text::{fields, why};
use crate::report::withheld::RefusalReport;
use crate::report::{ClusterReport, StepReport};

/// The most differences of an object.
const MOST: usize = 50;

/// The object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Object {
    group: String,
    kind: String,
    namespace: String,
    name: String,
    /// The word for what was done with it, or how it stands.
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// Words on what else is to be known, such as that pods are replaced.
    tags: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    /// The place of its spec in the source, as `file:line:column`.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    differences: Vec<Difference>,
    /// Decisions about fields that others write to.
    fields: Vec<String>,
}

/// A field that differs.
#[derive(Serialize)]
struct Difference {
    path: String,
    /// Those who have written it.
    by: String,
    lines: Vec<Line>,
    /// The number of lines beyond those.
    more: usize,
}

/// A value or a line that goes (`-`) or comes (`+`).
#[derive(Serialize)]
struct Line {
    sign: &'static str,
    text: String,
}

impl Object {
    fn of(id: &ObjectId, state: &str) -> Self {
        Self {
            group: id.group.clone(),
            kind: id.kind.clone(),
            namespace: id.namespace.clone(),
            name: id.name.clone(),
            state: state.to_owned(),
            message: None,
            tags: Vec::new(),
            since: None,
            place: None,
            differences: Vec::new(),
            fields: Vec::new(),
        }
    }

    /// Tells of a step.
    pub(super) fn of_step(step: &StepReport, cluster: &ClusterReport) -> Self {
        let differences = step.differences.iter().take(MOST).map(|it| Difference::of(dated(it, step, cluster)));
        Self {
            message: step.said().map(|said| cut(&said, MOST_CHARACTERS)),
            tags: tags(step),
            since: step.since,
            place: step.place.as_ref().map(ToString::to_string),
            differences: differences.collect(),
            fields: fields::lines(step).take(MOST).collect(),
            ..Self::of(&step.id, step.result())
        }
    }

    /// Tells of a step that was not taken.
    pub(super) fn of_refusal(refusal: &RefusalReport) -> Self {
        let message = Some(cut(&why(refusal), MOST_CHARACTERS));
        Self { message, since: refusal.since, ..Self::of(&refusal.id, "refused") }
    }
}

impl Difference {
    fn of(Shown { path, by, values }: Shown) -> Self {
        let line = |is_new: bool, text: String| Line {
            sign: if is_new { "+" } else { "-" },
            text: cut(&text, MOST_CHARACTERS),
        };
        let (lines, more) = match values {
            Values::Pair(before, after) => {
                let pair = [before.map(|text| line(false, text)), after.map(|text| line(true, text))];
                (pair.into_iter().flatten().collect(), 0)
            }
            Values::Lines { lines, more } => (lines.into_iter().map(|it| line(it.is_new, it.text)).collect(), more),
        };
        Self { path, by, lines, more }
    }
}
