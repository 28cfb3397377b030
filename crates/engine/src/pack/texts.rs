//! The texts of a pack in the templates' language: its templates, and the expressions in `pack.yaml`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::manifest::{Manifest, PART};
use super::{MANIFEST, document};
use crate::problem::{Place, Problem};
use crate::render::calls::{Fault, unknown_arguments};
use crate::render::syntax::tags;
use crate::yaml::Node;

/// A text in the templates' language.
pub(super) struct Text<'a> {
    /// The file that it stands in.
    pub(super) file: &'a str,
    /// The text as a template.
    pub(super) template: Cow<'a, str>,
    /// The number of the computed values that it sees, if those are not all.
    pub(super) sees: Option<usize>,
    /// The number of lines before it.
    above: u32,
}

impl Text<'_> {
    /// Makes a problem of something that is wrong in a line of the template.
    pub(super) fn problem(&self, fault: Fault) -> Problem {
        let place = Place { line: self.above + fault.line, ..Place::file(self.file) };
        Problem { hint: fault.hint, ..Problem::document(place, fault.message) }
    }
}

/// Returns the names of the files that are templates, or parts of some.
pub(super) fn templates<'a>(files: &BTreeMap<&'a str, &str>, manifest: &'a Manifest) -> BTreeSet<&'a str> {
    let named = manifest.templates.iter().map(|template| template.file.as_str());
    let generated = manifest.generate.iter().map(|value| value.template.as_str());
    let parts = files.keys().copied().filter(|name| name.ends_with(PART));
    named.chain(generated).chain(parts).collect()
}

/// Returns all texts of a pack.
pub(super) fn texts<'a>(files: &BTreeMap<&'a str, &'a str>, manifest: &'a Manifest) -> Vec<Text<'a>> {
    let template =
        |file: &'a str| Some(Text { file, template: Cow::Borrowed(*files.get(file)?), sees: None, above: 0 });
    let mut texts: Vec<Text<'_>> = templates(files, manifest).into_iter().filter_map(template).collect();
    let root = document(files, MANIFEST).ok();
    let items = |list: &str| root.as_ref().and_then(|root| root.get(list)).map(Node::items).unwrap_or_default();
    let expression = |item: &Node, field: &str, sees: Option<usize>| {
        let node = item.get(field)?;
        let template = Cow::Owned(format!("{{{{ ({}) | json }}}}", node.as_str()?));
        Some(Text { file: MANIFEST, template, sees, above: node.position.line.saturating_sub(1) })
    };
    let values = items("values").iter().enumerate();
    texts.extend(values.filter_map(|(index, item)| expression(item, "value", Some(index))));
    let conditions = items("templates").iter().chain(items("health"));
    texts.extend(conditions.filter_map(|item| expression(item, "when", None)));
    texts
}

/// Returns the arguments that filters, tests and functions are called with in a pack, and do not have.
pub(super) fn wrong_arguments(files: &BTreeMap<&str, &str>, manifest: &Manifest) -> Vec<Problem> {
    let wrong = |text: &Text<'_>| {
        let faults = unknown_arguments(&tags(&text.template)).into_iter();
        faults.map(|fault| text.problem(fault)).collect::<Vec<_>>()
    };
    texts(files, manifest).iter().flat_map(wrong).collect()
}
