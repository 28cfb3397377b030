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

/// Returns all texts of a pack. `root` is `pack.yaml` as it is written, where it matters on which lines they stand.
pub(super) fn texts<'a>(
    files: &BTreeMap<&'a str, &'a str>,
    manifest: &'a Manifest,
    root: Option<&Node>,
) -> Vec<Text<'a>> {
    let template =
        |file: &'a str| Some(Text { file, template: Cow::Borrowed(*files.get(file)?), sees: None, above: 0 });
    let mut texts: Vec<Text<'_>> = templates(files, manifest).into_iter().filter_map(template).collect();
    let expression = |(list, index, field): (&str, usize, &str), text: &str, sees: Option<usize>| {
        let node = root.and_then(|root| root.at([list, &index.to_string(), field]));
        let above = node.map_or(0, |node| node.position.line.saturating_sub(1));
        Text { file: MANIFEST, template: Cow::Owned(format!("{{{{ ({text}) | json }}}}")), sees, above }
    };
    let values = manifest.values.iter().enumerate();
    texts.extend(values.map(|(index, it)| expression(("values", index, "value"), &it.value, Some(index))));
    let templates = manifest.templates.iter().map(|it| it.when.as_deref()).enumerate();
    let conditions = templates.map(|(index, when)| ("templates", index, when));
    let hints = manifest.health.iter().map(|it| it.when.as_deref()).enumerate();
    let conditions = conditions.chain(hints.map(|(index, when)| ("health", index, when)));
    texts.extend(conditions.filter_map(|(list, index, when)| Some(expression((list, index, "when"), when?, None))));
    texts
}

/// Returns the arguments that filters, tests and functions are called with in a pack, and do not have.
pub(super) fn wrong_arguments(files: &BTreeMap<&str, &str>, manifest: &Manifest) -> Vec<Problem> {
    let wrong = |text: &Text<'_>| {
        let faults = unknown_arguments(&tags(&text.template)).into_iter();
        faults.map(|fault| text.problem(fault)).collect::<Vec<_>>()
    };
    let all = |root: Option<&Node>| texts(files, manifest, root).iter().flat_map(wrong).collect::<Vec<_>>();
    let found = all(None);
    // Each start of the program comes by here: the lines are looked up where there is something to tell.
    if found.is_empty() { found } else { all(document(files, MANIFEST).ok().as_ref()) }
}
