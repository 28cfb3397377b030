//! Findings for people: a line that says what is wrong and where, the line of the file with the place marked, and advice.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::{Level, Renderer};
use gatewright_engine::mask::lines::Lines;
use gatewright_engine::problem::{Place, Problem, Scope};
use gatewright_engine::text::count;
use gatewright_engine::tree::Tree;
use owo_colors::{OwoColorize, Style};

use super::snippet::Excerpt;
use crate::basics::sanitize;
use crate::report::ProblemReport;

/// The most findings whose lines are shown; of more, nobody reads them one by one.
const SHOWN: usize = 100;

/// The width of what is no terminal.
const WIDTH: usize = 100;

/// The narrowest terminal in which a line can be read.
const NARROW: usize = 40;

/// The texts that findings are about, and how they are shown.
pub(super) struct Page<'a> {
    tree: &'a Tree,
    is_colored: bool,
    width: usize,
}

/// The lines of the files that were needed so far.
#[derive(Default)]
struct Files<'a> {
    files: BTreeMap<Arc<str>, Option<Lines<'a>>>,
    /// The line that was asked for last: all findings of a file in one line are about it.
    last: Option<(Arc<str>, u32, Vec<Range<usize>>)>,
}

impl<'a> Files<'a> {
    fn lines(&mut self, tree: &'a Tree, file: &Arc<str>) -> Option<&Lines<'a>> {
        let read = || tree.text(file).map(Lines::of);
        self.files.entry(Arc::clone(file)).or_insert_with(read).as_ref()
    }

    fn excerpt(&mut self, tree: &'a Tree, place: &Place) -> Option<Excerpt> {
        let is_last = |(file, line, _): &(Arc<str>, u32, _)| *file == place.file && *line == place.line;
        if !self.last.as_ref().is_some_and(is_last) {
            let hidden = self.lines(tree, &place.file)?.hidden(place.line);
            self.last = Some((Arc::clone(&place.file), place.line, hidden));
        }
        let hidden = self.last.as_ref().map(|(.., hidden)| hidden.clone()).unwrap_or_default();
        Excerpt::of(self.lines(tree, &place.file)?, (place.line, place.column), &hidden)
    }
}

/// Returns findings without the secrets of the files that they are about: a message may quote a value.
pub(super) fn masked(mut findings: Vec<ProblemReport>, tree: &Tree) -> Vec<ProblemReport> {
    let mut last: Option<(Arc<str>, Lines<'_>)> = None;
    for finding in &mut findings {
        let file = &finding.problem.place.file;
        if last.as_ref().is_none_or(|(known, _)| known != file) {
            last = tree.text(file).map(|text| (Arc::clone(file), Lines::of(text)));
        }
        if let Some((_, lines)) = &last {
            finding.problem.message = lines.masked(&finding.problem.message);
        }
    }
    findings
}

impl<'a> Page<'a> {
    /// Makes one for the terminal that standard error is, or for what is none.
    pub(super) fn on_terminal(tree: &'a Tree, is_colored: bool) -> Self {
        let width = terminal_size::terminal_size_of(io::stderr()).map(|(width, _)| usize::from(width.0));
        Self { tree, is_colored, width: width.filter(|width| *width > 0).map_or(WIDTH, |width| width.max(NARROW)) }
    }

    /// Writes findings with the lines that they are about.
    pub(super) fn full(&self, findings: &[ProblemReport]) -> String {
        let renderer = if self.is_colored { Renderer::styled() } else { Renderer::plain() };
        let renderer = renderer.term_width(self.width);
        let (mut out, mut files) = (String::new(), Files::default());
        for finding in findings.iter().take(SHOWN) {
            out += &self.title(finding, false);
            let problem = &finding.problem;
            let hint = problem.hint.as_deref().map(sanitize::lines);
            match files.excerpt(self.tree, &problem.place) {
                Some(excerpt) => {
                    let level = if problem.scope == Scope::Warning { Level::WARNING } else { Level::ERROR };
                    out += &excerpt.drawn(&renderer, level, hint.as_deref());
                    out.push('\n');
                }
                None => out.extend(hint.map(|hint| format!("  = help: {hint}\n"))),
            }
            out.push('\n');
        }
        out.extend(findings.iter().skip(SHOWN).map(|finding| self.title(finding, true)));
        if findings.len() > SHOWN {
            let more = count(findings.len() - SHOWN, "more finding");
            out.extend(["\n", &more, ", without the lines of the files\n"]);
        }
        out
    }

    /// Writes findings in one line each.
    pub(super) fn short(&self, findings: &[ProblemReport]) -> String {
        findings.iter().map(|finding| self.title(finding, true)).collect()
    }

    /// Returns the line that says what is wrong: a place that editors and terminals can follow, and then the rest.
    fn title(&self, finding: &ProblemReport, has_hint: bool) -> String {
        let problem = &finding.problem;
        let (word, style) = match problem.scope {
            Scope::Warning => ("warning", Style::new().yellow().bold()),
            Scope::Document | Scope::File => ("error", Style::new().red().bold()),
        };
        let word = if self.is_colored { word.style(style).to_string() } else { word.to_owned() };
        let hint = problem.hint.clone().filter(|_| has_hint);
        let said = ProblemReport { problem: Problem { hint, ..problem.clone() }, ..finding.clone() }.to_string();
        let said = said.strip_prefix(&format!("{}: ", problem.place)).unwrap_or(&said);
        format!("{}: {word}: {}\n", position(&problem.place), sanitize::line(said))
    }
}

/// Returns a place with all that is known of it.
fn position(place: &Place) -> String {
    let file = sanitize::line(&place.file);
    match (place.line, place.column) {
        (0, _) => file.into_owned(),
        (line, 0) => format!("{file}:{line}"),
        (line, column) => format!("{file}:{line}:{column}"),
    }
}
