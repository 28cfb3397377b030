//! Mending what is mechanical: a word of which only one other can have been meant is written in its place.
//!
//! What is mended is the text: comments, order and layout stay. It is tried out before anything is written, and what
//! would change more than the word, or do harm to another document, is not done.

mod edit;
mod patch;
mod trial;
mod write;

use std::collections::BTreeSet;
use std::path::PathBuf;

use gatewright_engine::problem::{Fix, Place};
use gatewright_engine::text::count;

use crate::cli::render::Specs;
use crate::cli::{complain, emit};
use crate::report::ProblemReport;
use edit::Edit;

/// The mendings of a source.
pub(super) struct Mended {
    /// Those that do what they should and nothing else.
    accepted: Vec<Edit>,
    /// The others, with the reason.
    declined: Vec<(Place, Fix, String)>,
}

/// Finds out which mistakes can be mended.
pub(super) fn mend(specs: &Specs, findings: &[ProblemReport]) -> Mended {
    let (edits, mut declined) = edit::located(fixable(findings), &specs.tree);
    let (accepted, refused) = trial::tried(specs, findings, edits);
    declined.extend(refused.into_iter().map(|(edit, reason)| (edit.place, edit.fix, reason)));
    declined.sort();
    Mended { accepted, declined }
}

/// Says how many mistakes can be mended, as far as that can be told without a trial.
pub(super) fn advice(specs: &Specs, findings: &[ProblemReport]) -> Option<String> {
    let (edits, _) = edit::located(fixable(findings), &specs.tree);
    let mistakes = count(edits.len(), "mistake");
    (!edits.is_empty()).then(|| format!("{mistakes} can be mended: see `gatewright check --fix --dry-run`\n"))
}

fn fixable(findings: &[ProblemReport]) -> BTreeSet<(&Place, &Fix)> {
    let fixable = findings.iter().filter_map(|finding| Some((&finding.problem.place, finding.problem.fix.as_ref()?)));
    fixable.collect()
}

impl Mended {
    /// Writes the files, and says what was changed in them; or, if nothing was, why not. Returns whether anything was.
    pub(super) fn write(self, specs: &Specs, paths: &[PathBuf]) -> bool {
        let (mut declined, mut has_changed) = (self.declined, false);
        let roots = write::roots(paths);
        for (file, (text, edits)) in edit::applied(&specs.tree, &self.accepted) {
            let old = specs.tree.text(&file).unwrap_or_default();
            match write::replace(&roots, &file, old, &text) {
                Ok(()) => {
                    has_changed = true;
                    for edit in &edits {
                        complain(&said(&edit.place, &edit.fix));
                    }
                }
                Err(reason) => {
                    declined.extend(edits.iter().map(|it| (it.place.clone(), it.fix.clone(), reason.clone())));
                }
            }
        }
        if !has_changed {
            tell(&declined);
        }
        has_changed
    }

    /// Prints a patch of what would be written, and says what would not.
    pub(super) fn show(&self, specs: &Specs) {
        for (file, (text, edits)) in edit::applied(&specs.tree, &self.accepted) {
            emit(&patch::unified(&file, specs.tree.text(&file).unwrap_or_default(), &text, &edits));
        }
        tell(&self.declined);
    }
}

fn said(place: &Place, fix: &Fix) -> String {
    format!("{place}: mended: {:?} \u{2192} {:?}\n", fix.old, fix.new)
}

fn tell(declined: &[(Place, Fix, String)]) {
    for (place, fix, reason) in declined {
        complain(&format!("{place}: not mended: {:?} \u{2192} {:?}: {reason}\n", fix.old, fix.new));
    }
}
