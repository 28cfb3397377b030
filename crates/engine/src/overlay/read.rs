//! A document to an overlay, with everything that can be wrong with it whatever it is about.

use super::Overlay;
use super::filled::node_mut;
use super::patch::OverlayPatch;
use super::table::{ROWS, Table};
use crate::enforce::Rule;
use crate::enforce::words::Vocabulary;
use crate::patch::PatchType;
use crate::problem::Problem;
use crate::spec::overlay::{ClusterOverlay, OverlaySpec};
use crate::spec::{Document, Specs};
use crate::yaml::Content;

impl Overlay {
    /// Reads an overlay whose form has been checked.
    pub(super) fn read(document: &Document, words: &Vocabulary<'_>, specs: &Specs) -> Result<Self, Vec<Problem>> {
        let spec = document.read_with_nulls::<ClusterOverlay>().map_err(|problem| vec![*problem])?.spec;
        let mut overlay = Self::new(document.clone(), spec);
        overlay.table = Table::of(&overlay, specs)?;
        // Clusters share the table; what is filled for each of them is a copy of the rest.
        overlay.spec.values = None;
        if let Some(rows) = node_mut(&mut overlay.document.root, &ROWS) {
            rows.content = Content::Null;
        }
        let mut problems = overlay.find_holes();
        problems.extend(overlay.empty_selectors());
        problems.extend(overlay.wrong_patches());
        problems.extend(overlay.read_rules(words));
        if problems.is_empty() { Ok(overlay) } else { Err(problems) }
    }

    /// Makes an overlay of a document, with nothing in it that has to be looked for.
    pub(crate) fn new(document: Document, spec: OverlaySpec) -> Self {
        Self { document, spec, rules: Vec::new(), holes: Vec::new(), table: None, filled: Vec::new(), lost: Vec::new() }
    }

    /// Returns the patches that can fit nothing.
    fn wrong_patches(&self) -> Vec<Problem> {
        let forms =
            OverlayPatch::of_spec(self).chain(OverlayPatch::of_objects(self)).filter_map(|change| change.check());
        let mut problems: Vec<Problem> = forms.collect();
        for (change, patch) in OverlayPatch::of_objects(self).zip(&self.spec.object_patches) {
            if patch.data_key.is_some() && change.kind == PatchType::Strategic {
                problems.push(change.problem("a document in data is patched by type merge or json"));
            }
            if patch.data_key.is_some() && patch.target.kind != "ConfigMap" {
                problems.push(change.problem("only a ConfigMap has data in which a key can be patched"));
            }
        }
        problems
    }

    /// Reads what it enforces, and returns what cannot be.
    fn read_rules(&mut self, words: &Vocabulary<'_>) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (index, bound) in self.spec.enforce.iter().enumerate() {
            let path = ["spec", "enforce", &index.to_string(), "rule"];
            let place = self.document.place_of(&path);
            match Rule::new(bound, place.clone(), words) {
                Ok(rule) => self.rules.push(rule),
                Err(error) => problems.push(error.at(place).about(self.document.id.clone())),
            }
        }
        problems
    }

    /// A selector that says nothing selects nothing in one place and everything in another: it is said plainly.
    fn empty_selectors(&self) -> Vec<Problem> {
        let is_empty = |field: &str| {
            let node = self.document.root.at(["spec", field]);
            node.is_some_and(|node| node.fields().all(|(_, field)| field.node.content == Content::Null))
        };
        let named = [("clusters", "clusters"), ("target", "Gateways")];
        let problem = |(field, things): (&str, &str)| {
            let problem = self.document.problem(&["spec", field], format!("spec.{field} says nothing"));
            problem.hint(format!("leave it out to have the overlay for all {things}"))
        };
        named.into_iter().filter(|(field, _)| is_empty(field)).map(problem).collect()
    }
}
