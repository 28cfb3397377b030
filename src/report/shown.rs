//! A difference as people see it: the same words in every view.

use gatewright_engine::diff::content::ContentDifference;
use gatewright_engine::diff::{Class, Difference, SAME_CONTENT, folded};
use gatewright_engine::plan::conflicts::FieldVerdict;
use gatewright_engine::text::count;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::text::fields;
use super::{ClusterReport, StepReport};

/// Lines of a text value that are shown.
const MOST_LINES: usize = 12;

/// A difference in words.
#[derive(Debug, PartialEq, Eq)]
pub struct Shown {
    /// The path of the field that differs.
    pub path: String,
    /// Those who have written there, in parentheses; empty if nobody else has.
    pub by: String,
    /// The values that differ.
    pub values: Values,
}

/// The values that differ.
#[derive(Debug, PartialEq, Eq)]
pub enum Values {
    /// One value and the other, as JSON; `None` is nothing.
    Pair(Option<String>, Option<String>),
    /// Lines of a text that go or come.
    Lines {
        /// The first of them.
        lines: Vec<Line>,
        /// The number of lines beyond those.
        more: usize,
    },
}

/// A line of a text.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// Whether it comes, or goes.
    pub is_new: bool,
    /// The line, without its end.
    pub text: String,
}

impl Shown {
    /// Returns it as lines of plain text: whether a line comes or goes, if it is a line of a text, and what it says.
    pub fn plain(self) -> Vec<(Option<bool>, String)> {
        let Self { path, by, values } = self;
        let by = if by.is_empty() { by } else { format!("  {by}") };
        match values {
            Values::Pair(before, after) => {
                let text = |value: Option<String>| value.unwrap_or_else(|| "nothing".to_owned());
                vec![(None, format!("{path}: {} -> {}{by}", text(before), text(after)))]
            }
            Values::Lines { lines, more } => {
                let sign = |is_new: bool| if is_new { '+' } else { '-' };
                let line = |Line { is_new, text }: Line| (Some(is_new), format!("  {} {text}", sign(is_new)));
                let rest = (more > 0).then(|| (None, format!("  … {} more", count(more, "line"))));
                let head = (None, format!("{path}:{by}"));
                std::iter::once(head).chain(lines.into_iter().map(line)).chain(rest).collect()
            }
        }
    }
}

/// Says in a few words what else is to be known of a step: that pods are replaced, and why something is missing or extra.
pub fn tags(step: &StepReport) -> Vec<&'static str> {
    let pods = step.rolls_pods().then_some("replaces pods");
    pods.into_iter().chain(step.class.map(Class::word)).collect()
}

/// Puts a difference into words. `decided` says what was decided about the fields of the object.
pub fn shown(difference: &Difference, decided: &[FieldVerdict]) -> Shown {
    let values = match (&difference.before, &difference.after) {
        (Some(_), Some(_)) if let Some(content) = &difference.content => by_meaning(content),
        (Some(Value::String(before)), Some(Value::String(after))) if before.contains('\n') || after.contains('\n') => {
            lines(before, after)
        }
        (before, after) => Values::Pair(before.as_ref().map(folded), after.as_ref().map(folded)),
    };
    Shown { path: difference.path.clone(), by: by(difference, decided), values }
}

/// Puts a difference of a step into words, and says since when it is known if that is later than for the rest of it.
pub fn dated(difference: &Difference, step: &StepReport, cluster: &ClusterReport) -> Shown {
    let mut shown = shown(difference, &step.fields);
    if let Some(mark) = cluster.mark(step.later.get(&difference.path).copied()) {
        shown.by = if shown.by.is_empty() { mark } else { format!("{}  {mark}", shown.by) };
    }
    shown
}

fn by(difference: &Difference, decided: &[FieldVerdict]) -> String {
    let class = difference.class.map(|class| class.word().to_owned());
    let estimated = difference.estimated.then(|| "estimated".to_owned());
    let written = difference.managers.first().map(|manager| {
        let at = manager.time.as_deref().map(|time| format!(" at {time}")).unwrap_or_default();
        format!("last written by {}{at}", manager.name)
    });
    let what = fields::word(difference, decided).filter(|_| written.is_some()).map(str::to_owned);
    let asked = difference.place.as_ref().map(|place| format!("asked for at {place}"));
    let layout = difference.is_layout().then(|| SAME_CONTENT.to_owned());
    let parts: Vec<String> = [layout, class, estimated, asked, written, what].into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!("({})", parts.join("; ")) }
}

/// The values in a document that differ, each with its path: the old one goes, and the new one comes.
fn by_meaning(content: &[ContentDifference]) -> Values {
    let sides = |it: &ContentDifference| {
        let line = |is_new, value: &Option<Value>| {
            let text = format!("{}: {}", it.path, folded(value.as_ref()?));
            Some(Line { is_new, text })
        };
        [line(false, &it.before), line(true, &it.after)]
    };
    let mut lines: Vec<Line> = content.iter().flat_map(sides).flatten().collect();
    let more = lines.len().saturating_sub(MOST_LINES);
    lines.truncate(MOST_LINES);
    Values::Lines { lines, more }
}

fn lines(before: &str, after: &str) -> Values {
    let diff = TextDiff::from_lines(before, after);
    let changes: Vec<_> = diff.iter_all_changes().filter(|change| change.tag() != ChangeTag::Equal).collect();
    let line = |change: &similar::Change<&str>| Line {
        is_new: change.tag() == ChangeTag::Insert,
        text: change.value().trim_end().to_owned(),
    };
    let more = changes.len().saturating_sub(MOST_LINES);
    Values::Lines { lines: changes.iter().take(MOST_LINES).map(line).collect(), more }
}
