//! Trying out what would be mended, all of it together: a source is checked as it would be.

use std::collections::BTreeSet;
use std::sync::Arc;

use gatewright_engine::problem::{Problem, Scope};
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::Source;
use gatewright_engine::yaml::{self, Node};

use super::edit::{self, Edit};
use crate::cli::check::{Checked, check};
use crate::cli::render::Specs;
use crate::report::ProblemReport;

/// The most times that a source is checked to find out what does harm.
const MOST: usize = 40;

/// Edits that are not made, with the reason.
pub(super) type Refused = Vec<(Edit, String)>;

/// A source as it is, and what is wrong in it.
struct Trial<'a> {
    specs: &'a Specs,
    errors: BTreeSet<(Arc<str>, u32, String)>,
    accepted: Vec<Edit>,
    refused: Refused,
    left: usize,
}

/// Parts edits into those that do no harm, together, and the others.
pub(super) fn tried(specs: &Specs, findings: &[ProblemReport], edits: Vec<Edit>) -> (Vec<Edit>, Refused) {
    let errors = errors(findings).map(key).collect();
    let mut trial = Trial { specs, errors, accepted: Vec::new(), refused: Vec::new(), left: MOST };
    trial.accept(edits);
    (trial.accepted, trial.refused)
}

fn errors(findings: &[ProblemReport]) -> impl Iterator<Item = &Problem> {
    findings.iter().map(|finding| &finding.problem).filter(|problem| problem.scope != Scope::Warning)
}

fn key(problem: &Problem) -> (Arc<str>, u32, String) {
    (Arc::clone(&problem.place.file), problem.place.line, problem.message.clone())
}

impl Trial<'_> {
    /// Takes edits that do no harm; of others, each half is tried alone.
    fn accept(&mut self, mut edits: Vec<Edit>) {
        if edits.is_empty() {
            return;
        }
        let harm = match self.left {
            0 => Some("it does harm elsewhere, together with others".to_owned()),
            _ => self.harm(&edits),
        };
        self.left = self.left.saturating_sub(1);
        match harm {
            None => self.accepted.extend(edits),
            Some(reason) if edits.len() == 1 || self.left == 0 => {
                self.refused.extend(edits.into_iter().map(|edit| (edit, reason.clone())));
            }
            Some(_) => {
                let other = edits.split_off(edits.len() / 2);
                self.accept(edits);
                self.accept(other);
            }
        }
    }

    /// Says which harm edits do, beside those that were taken already.
    fn harm(&self, edits: &[Edit]) -> Option<String> {
        let all: Vec<Edit> = self.accepted.iter().chain(edits).cloned().collect();
        let mut tree: Tree = self.specs.tree.clone();
        for (file, (text, edits)) in edit::applied(&self.specs.tree, &all) {
            if !edit::means_the_same(self.specs.tree.text(&file)?, &text, &edits) {
                return Some("more than this word would change".to_owned());
            }
            tree.replace(&file, &text);
        }
        let source = Source::load(&tree, &self.specs.packs, None);
        let specs = Specs { config: self.specs.config.clone(), packs: Arc::clone(&self.specs.packs), source, tree };
        let Checked { findings, .. } = check(&specs);
        let documents = Documents::of(&self.specs.tree, &all, &self.errors);
        let broken = errors(&findings).find(|problem| self.is_harm(problem, &documents))?;
        let Problem { place, message, .. } = broken;
        Some(format!("then there is another error, {place}: {message}"))
    }

    /// What is new is no harm in a document that was mended, and broken before: nobody has looked at it so far.
    fn is_harm(&self, problem: &Problem, documents: &Documents) -> bool {
        let document = documents.at(&problem.place.file, problem.place.line);
        let is_open = document.is_some_and(|it| documents.edited.contains(&it) && documents.broken.contains(&it));
        !self.errors.contains(&key(problem)) && !is_open
    }
}

/// A document, by its file and the line on which it begins.
type Document = (Arc<str>, u32);

/// The documents of mended files.
#[derive(Default)]
struct Documents {
    all: BTreeSet<Document>,
    /// Those with edits.
    edited: BTreeSet<Document>,
    /// Those with errors before.
    broken: BTreeSet<Document>,
}

impl Documents {
    fn of(tree: &Tree, edits: &[Edit], errors: &BTreeSet<(Arc<str>, u32, String)>) -> Self {
        let files: BTreeSet<&Arc<str>> = edits.iter().map(|edit| &edit.place.file).collect();
        let mut documents = Self::default();
        for file in files {
            let roots = yaml::parse(tree.text(file).unwrap_or_default()).unwrap_or_default();
            let items = roots.iter().flat_map(|root| root.get("items").map(Node::items).unwrap_or_default());
            documents.all.extend(roots.iter().chain(items).map(|node| (Arc::clone(file), node.position.line)));
        }
        let at = |file: &Arc<str>, line: u32| documents.at(file, line);
        let edited = edits.iter().filter_map(|edit| at(&edit.place.file, edit.place.line)).collect();
        let broken = errors.iter().filter_map(|(file, line, _)| at(file, *line)).collect();
        Self { edited, broken, ..documents }
    }

    /// Returns the document to which a line belongs.
    fn at(&self, file: &Arc<str>, line: u32) -> Option<Document> {
        let last = self.all.range(..=(Arc::clone(file), line)).next_back()?;
        (last.0 == *file).then(|| last.clone())
    }
}
