//! An explanation as people read it.

use std::fmt::{self, Write};

use serde_json::Value;

use super::{Cause, Effect, Explanation, Leaf, Said};
use crate::diff::folded;

/// The largest number of inputs named on which a field merely depends, beside those that name lines of it.
const MOST_GOVERNING: usize = 3;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.object == self.unit {
            writeln!(f, "parameters of {} ({})", self.object, self.place)?;
            return self.leaves.iter().try_for_each(|leaf| write_parameter(f, leaf));
        }
        let template = self.template.as_ref().map(|template| format!(" by template {template}")).unwrap_or_default();
        writeln!(f, "{}, rendered for {} ({}){template}", self.object, self.unit, self.place)?;
        self.because.iter().try_for_each(|said| writeln!(f, "there because of {}", in_words(said)))?;
        self.leaves.iter().try_for_each(|leaf| write_leaf(f, leaf))?;
        for said in &self.untried {
            writeln!(f, "not tried, nothing else is accepted there: {}", in_words(said))?;
        }
        Ok(())
    }
}

/// A parameter stands where it is said, so its path is written once.
fn write_parameter(f: &mut fmt::Formatter<'_>, leaf: &Leaf) -> fmt::Result {
    let who = leaf.causes.first().map(|cause| format!(" ({})", who(&cause.said))).unwrap_or_default();
    writeln!(f, "{}: {}{who}", leaf.path, value(&leaf.value))?;
    leaf.causes.iter().try_for_each(|cause| write_lower(f, cause, "  "))
}

fn write_leaf(f: &mut fmt::Formatter<'_>, leaf: &Leaf) -> fmt::Result {
    write!(f, "{}: {}", leaf.path, value(&leaf.value))?;
    if let Some(fixed) = &leaf.fixed {
        return match (&fixed.template, &fixed.value) {
            (Some(template), None) => writeln!(f, " (template {template})"),
            (_, Some(value)) => writeln!(f, " (pack {}, value {value})", fixed.pack),
            (None, None) => writeln!(f, " (pack {})", fixed.pack),
        };
    }
    f.write_char('\n')?;
    let (sets, governs): (Vec<_>, Vec<_>) = leaf.causes.iter().partition(|cause| cause.effect == Effect::Sets);
    for cause in &sets {
        writeln!(f, "  {}{}", in_words(&cause.said), lines(&cause.lines))?;
        write_lower(f, cause, "    ")?;
    }
    let and = if sets.is_empty() { "" } else { "and " };
    let with_lines = governs.iter().filter(|cause| !cause.lines.is_empty()).count();
    let most = MOST_GOVERNING.max(with_lines);
    for cause in governs.iter().take(most) {
        writeln!(f, "  {and}depends on {}{}", in_words(&cause.said), lines(&cause.lines))?;
        write_lower(f, cause, "    ")?;
    }
    match governs.len().saturating_sub(most) {
        0 => Ok(()),
        more => writeln!(f, "  {and}depends on {more} more"),
    }
}

fn write_lower(f: &mut fmt::Formatter<'_>, cause: &Cause, indent: &str) -> fmt::Result {
    cause.lower.iter().try_for_each(|said| writeln!(f, "{indent}over {} ({})", value(&said.value), who(said)))
}

fn in_words(said: &Said) -> String {
    format!("{}: {} ({})", said.path, value(&said.value), who(said))
}

fn who(said: &Said) -> String {
    let place = said.place.iter().map(ToString::to_string);
    let values = said.values.iter().map(|taken| match &taken.place {
        Some(place) => format!("{} at {place}", taken.expression),
        None => taken.expression.clone(),
    });
    [said.by.to_string()].into_iter().chain(place).chain(values).collect::<Vec<_>>().join(", ")
}

fn value(value: &Value) -> String {
    match value.as_str() {
        Some(text) if text.trim_end().contains('\n') => format!("a text of {} lines", text.lines().count()),
        _ => folded(value),
    }
}

/// Writes `, line 4`, or `, lines 4, 6 to 9`.
fn lines(lines: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for line in lines {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *line => *last = *line,
            _ => ranges.push((*line, *line)),
        }
    }
    let text = |(first, last): (usize, usize)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first} to {last}"),
    };
    let texts: Vec<String> = ranges.into_iter().map(text).collect();
    match lines.len() {
        0 => String::new(),
        1 => format!(", line {}", texts.concat()),
        _ => format!(", lines {}", texts.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_written_as_ranges() {
        assert_eq!(lines(&[]), "");
        assert_eq!(lines(&[4]), ", line 4");
        assert_eq!(lines(&[4, 5]), ", lines 4, 5");
        assert_eq!(lines(&[1, 4, 5, 6, 7]), ", lines 1, 4 to 7");
    }
}
