//! Plans in words: what changes, what is refused and held, and a line that counts it.

use std::collections::BTreeMap;
use std::fmt;

use super::guard::Hold;
use super::refusal::Refusal;
use super::{Plan, Step};

/// One line, and below it a line for the note and for each difference. Secrets are masked.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, word) = self.action.told();
        write!(f, "{sign} {word} {}", self.id)?;
        self.note.iter().try_for_each(|note| write!(f, "\n    {note}"))?;
        self.differences.iter().try_for_each(|difference| write!(f, "\n    {difference}"))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "! {}: {}", self.id, self.reason)
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "held by guard {}: {}\n    {}", self.guard, self.message, self.hint)?;
        self.token.iter().try_for_each(|token| write!(f, "\n    token: {token}"))
    }
}

/// Every step that changes something, everything that is refused or held, and a line that counts the steps.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.changes().try_for_each(|step| writeln!(f, "{step}"))?;
        self.refusals.iter().try_for_each(|refusal| writeln!(f, "{refusal}"))?;
        self.holds.iter().try_for_each(|hold| writeln!(f, "{hold}"))?;
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        self.changes().for_each(|step| *counts.entry(step.action.word()).or_default() += 1);
        let counts: Vec<String> = counts.iter().map(|(word, number)| format!("{number} to {word}")).collect();
        let changes = if counts.is_empty() { "no changes".to_owned() } else { counts.join(", ") };
        write!(f, "plan: {changes}, {} unchanged", self.steps.len() - self.changes().count())?;
        if self.refusals.is_empty() { Ok(()) } else { write!(f, ", {} refused", self.refusals.len()) }
    }
}
