//! Units that are not as they should be: many with the same reason are one line.

use std::collections::BTreeMap;

use gatewright_engine::text::{count, listed};
use owo_colors::Style;

use super::{Writer, in_brackets};
use crate::report::{ClusterReport, UnitReport, UnitState};

/// So many units with one reason have a line each.
const MOST_LINES: usize = 3;

/// So many names stand in a line for more of them.
const MOST_NAMES: usize = 5;

impl Writer {
    /// Writes what is wrong with units, or awaited.
    pub(super) fn units(&mut self, cluster: &ClusterReport) {
        let most = if self.look.verbose { usize::MAX } else { MOST_LINES };
        let told = cluster.units.iter().filter_map(|unit| Some((unit, message(unit)?, cluster.mark(unit.since))));
        let told: Vec<_> = told.map(|(unit, message, mark)| (unit, message, in_brackets(mark))).collect();
        let mut groups: BTreeMap<(&str, &str), Vec<&UnitReport>> = BTreeMap::new();
        for (unit, message, mark) in &told {
            groups.entry((reason(message), mark)).or_default().push(unit);
        }
        for (unit, message, mark) in &told {
            let alike = &groups[&(reason(message), mark.as_str())];
            let line = if alike.len() <= most {
                format!("{}: {message}{mark}", unit.unit)
            } else if alike[0].unit == unit.unit {
                folded(alike, reason(message), mark)
            } else {
                continue;
            };
            self.painted(&format!("  {line}"), Style::new().red(), "");
        }
    }
}

fn folded(units: &[&UnitReport], reason: &str, mark: &str) -> String {
    let names = listed(units.iter().map(|unit| &unit.unit), MOST_NAMES);
    format!("{}: {reason}{mark}: {names}", count(units.len(), "unit"))
}

/// The message about a unit; the steps tell what failed.
fn message(unit: &UnitReport) -> Option<&str> {
    match (unit.state, &unit.message) {
        (_, Some(message)) => Some(message),
        (UnitState::Unhealthy, None) => Some("it is not healthy"),
        _ => None,
    }
}

/// What a message says of an object of the unit, without the name of the object: `Deployment infra/a: its pods are not ready`.
fn reason(message: &str) -> &str {
    match message.split_once(": ") {
        Some((object, reason)) if is_name(object) => reason,
        _ => message,
    }
}

fn is_name(text: &str) -> bool {
    let mut words = text.split(' ');
    let is_kind = words.next().is_some_and(|kind| kind.starts_with(|first: char| first.is_ascii_uppercase()));
    is_kind && words.next().is_some_and(|name| name.contains('/')) && words.next().is_none()
}

#[cfg(test)]
mod tests {
    use gatewright_engine::object::ObjectId;

    use super::*;
    use crate::report::text::{Look, write_to};
    use crate::report::{Mode, Report};

    /// Writes a report of units that are not healthy, each with its message.
    fn written(messages: &[(&str, &str)], verbose: bool) -> Vec<String> {
        let unit = |(name, message): &(&str, &str)| UnitReport {
            message: Some((*message).to_owned()),
            ..UnitReport::new(ObjectId::new("g", "Gateway", "infra", name), UnitState::Unhealthy)
        };
        let cluster = ClusterReport { units: messages.iter().map(unit).collect(), ..ClusterReport::default() };
        let about = Report::about(("edge", "source"), Mode::Apply, jiff::Timestamp::UNIX_EPOCH);
        let report = Report { clusters: [("eu".to_owned(), cluster)].into(), ..about };
        let mut out = Vec::new();
        write_to(&report, Look { verbose, ..Look::default() }, &mut out).expect("a vector takes everything");
        let text = String::from_utf8(out).expect("it is text");
        text.lines().filter(|line| line.contains("infra/")).map(|line| line.trim().to_owned()).collect()
    }

    #[test]
    fn many_units_with_one_reason_are_one_line() {
        let slow =
            ["a", "b", "c", "d", "e", "f"].map(|name| (name, format!("Deployment infra/{name}: it has 1 of 2 pods")));
        let mut messages: Vec<(&str, &str)> = slow.iter().map(|(name, message)| (*name, message.as_str())).collect();
        messages.insert(3, ("x", "Service infra/x: it has no address"));
        let lines = [
            "6 units: it has 1 of 2 pods: Gateway infra/a, Gateway infra/b, Gateway infra/c, Gateway infra/d, \
             Gateway infra/e and 1 more",
            "Gateway infra/x: Service infra/x: it has no address",
        ];
        assert_eq!(written(&messages, false), lines);
        assert_eq!(written(&messages, true).len(), 7, "each has its line where all is told");
        assert_eq!(written(&messages[..3], false).len(), 3, "and where they are few");
    }

    #[test]
    fn a_reason_is_cut_off_behind_a_name_only() {
        assert_eq!(reason("Deployment infra/a: it has: none"), "it has: none");
        assert_eq!(reason("it waits: for infra/a"), "it waits: for infra/a");
        assert_eq!(reason("field spec/a: fought about"), "field spec/a: fought about");
    }
}
