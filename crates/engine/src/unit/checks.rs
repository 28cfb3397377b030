//! Rules of a pack that must hold for each spec that it renders.

use crate::enforce::{self, Facts, Rule};
use crate::problem::Problem;
use crate::resolve::Resolved;

/// Returns what does not hold, and what is only to be said.
pub(super) fn check(resolved: &Resolved<'_>, facts: &Facts<'_>) -> (Vec<Problem>, Vec<Problem>) {
    let broken = |is_warning: bool| {
        let checks = resolved.pack.checks.iter().filter(move |(_, warning)| *warning == is_warning);
        checks.flat_map(|(rule, _)| enforce::check([rule], facts)).map(|breach| plain(breach, resolved))
    };
    let warnings = broken(true).map(|problem| Problem { scope: crate::problem::Scope::Warning, ..problem });
    (broken(false).collect(), warnings.collect())
}

/// A check of a pack speaks for itself: what it says is the message, and what nobody has written is about the spec.
fn plain(breach: Problem, resolved: &Resolved<'_>) -> Problem {
    let document = resolved.document;
    let is_written = resolved.files.contains(&breach.place.file);
    let place = if is_written { breach.place } else { document.place() };
    let message = breach.hint.unwrap_or(breach.message);
    Problem {
        place,
        message,
        hint: None,
        object: Some(document.id.clone()),
        scope: breach.scope,
        rule: None,
        fix: None,
    }
}

impl Resolved<'_> {
    /// Returns what must hold for its parameters: what the config file says, and then the overlays.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.pack.rules.iter().chain(self.overlays.iter().flat_map(|overlay| &overlay.rules))
    }
}
