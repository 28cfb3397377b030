//! `gatewright check`.

mod fix;
pub(super) mod form;
mod github;
mod sarif;
mod snippet;
#[cfg(test)]
mod tests;
mod text;
mod watch;

use std::collections::BTreeMap;
use std::path::PathBuf;

use gatewright_engine::spec::GATEWAY_API;
use gatewright_engine::text::count;
use gatewright_engine::unit::Rendering;

use super::render::{Specs, exit_code};
use super::{Context, Failure, complain};
use crate::basics::clock::{Clock as _, SystemClock};
use crate::config::settings::Unclaimed;
use crate::desired::rendering::{Rendered, check_all, problems};
use crate::report::{ProblemReport, named};
use form::Form;

/// Check specs without a cluster: structure, names, references, and that everything renders.
///
/// With a config file, also ./gatewright.yaml or that of the system, everything is checked as each of its clusters would
/// have it, under the overlays that are in force there; without one, under the overlays for all clusters. Overlays that
/// are in force on none of them are checked as for a cluster that they select.
///
/// Exit codes: 0 there is no error, though there may be warnings, 1 there is one, 64 usage. With --fix they say what is
/// left.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files or folders with specs.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The form in which findings are printed.
    #[arg(long = "output", short = 'o', visible_alias = "format", value_name = "FORMAT", default_value = "text")]
    format: Form,
    /// Mend what is mechanical in the files, and check again: fields and kinds with a slip of which only one other can
    /// have been meant, and versions of an API that were replaced by one of the same shape.
    #[arg(long)]
    fix: bool,
    /// Print what would be mended as a patch, and write nothing.
    #[arg(long, requires = "fix")]
    dry_run: bool,
    /// Check again whenever something changes, until it is interrupted.
    #[arg(long, conflicts_with = "fix")]
    watch: bool,
}

/// A source, and what is wrong with it.
pub(super) struct Checked {
    /// The findings, in the order of their places.
    findings: Vec<ProblemReport>,
    /// The lines about what was rendered.
    summary: String,
}

/// The most times in a row that a source is mended: a document has a kind, the fields of its spec, and those below.
const MOST_MENDINGS: usize = 5;

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    if args.watch {
        return watch::run(context, args);
    }
    if args.fix
        && let Some(code) = mend(context, args)?
    {
        return Ok(code);
    }
    once(context, args).map(|checked| code(&checked))
}

/// Mends what can be mended. Returns the exit code if that is only to be shown.
fn mend(context: &Context, args: &Args) -> Result<Option<u8>, Failure> {
    for _ in 0..MOST_MENDINGS {
        let specs = Specs::load(context, &args.paths, None, false)?;
        let checked = check(&specs);
        let mended = fix::mend(&specs, &checked.findings);
        if args.dry_run {
            mended.show(&specs);
            return Ok(Some(code(&checked)));
        }
        // What a wrong word has hidden is found once it is mended.
        if !mended.write(&specs, &args.paths) {
            break;
        }
    }
    Ok(None)
}

/// Reads specs, checks them and prints what is wrong.
fn once(context: &Context, args: &Args) -> Result<Checked, Failure> {
    let specs = Specs::load(context, &args.paths, None, false)?;
    let checked = check(&specs);
    let page = text::Page::on_terminal(&specs.tree, context.has_colored_log());
    args.format.print(&checked.findings, &checked.summary, &page);
    if args.format == Form::Text && !args.fix {
        complain(&fix::advice(&specs, &checked.findings).unwrap_or_default());
    }
    Ok(checked)
}

fn code(checked: &Checked) -> u8 {
    exit_code(checked.findings.iter().map(|finding| &finding.problem))
}

/// Checks specs.
fn check(specs: &Specs) -> Checked {
    let (findings, wanted) = findings(specs);
    Checked { findings, summary: summary(&wanted) }
}

/// Returns all that is wrong with specs, and what they become on each cluster.
pub(super) fn findings(specs: &Specs) -> (Vec<ProblemReport>, Rendered) {
    let wanted = rendered(specs);
    let problems = problems(&wanted.iter().map(|(name, it)| (name.as_str(), it.problems.as_slice())).collect());
    let fleet = specs.config.as_ref().map(|config| config.settings.fleet());
    let overlays = &specs.source.overlays;
    let lost =
        fleet.map(|fleet| [overlays.lost_clusters(&fleet), overlays.lost_rows(&fleet)].concat()).unwrap_or_default();
    let lost = lost.into_iter().map(|problem| ProblemReport { problem, clusters: Vec::new(), since: None });
    (text::masked(lost.chain(problems).collect(), &specs.tree), wanted)
}

/// Renders for each cluster, and for an example of those that only overlays know of.
fn rendered(specs: &Specs) -> Rendered {
    let clusters: Vec<_> = specs.clusters().collect();
    let examples = specs.source.overlays.examples(&clusters);
    let (packs, now) = ((&*specs.packs, applies_unclaimed(specs)), SystemClock::new().now());
    let mut wanted = check_all(&specs.source, packs, now, clusters);
    if !examples.is_empty()
        && let Some(rendering) = wanted.remove("")
    {
        wanted.insert("any other".to_owned(), rendering);
    }
    for example in examples {
        let plain: String = example.name.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
        let name = if wanted.contains_key(&plain) { format!("{plain} (example)") } else { plain };
        let rendered = check_all(&specs.source, packs, now, [example]).into_values();
        wanted.extend(rendered.map(|rendering| (name.clone(), rendering)));
    }
    wanted
}

/// Tells whether a sync of the config file applies documents that no pack claims. Nobody says for which sync some paths
/// are, so that one is enough.
fn applies_unclaimed(specs: &Specs) -> bool {
    let config = specs.config.as_ref();
    config.is_some_and(|config| config.settings.syncs.values().any(|sync| sync.unclaimed == Unclaimed::Apply))
}

/// One line, or one for each group of clusters on which it comes to the same.
fn summary(wanted: &Rendered) -> String {
    let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, rendering) in wanted {
        lines.entry(line(rendering)).or_default().push(name.clone());
    }
    if let (1, Some(line)) = (lines.len(), lines.keys().next()) {
        return format!("{line}\n");
    }
    let lines = lines.into_iter().flat_map(|(line, clusters)| [named(&clusters), format!(": {line}\n")]);
    lines.collect()
}

fn line(rendering: &Rendering) -> String {
    let objects = rendering.units.iter().map(|unit| unit.objects.len()).sum();
    let mut specs = rendering.units.iter().map(|unit| &unit.id).chain(&rendering.broken);
    let spec = if specs.all(|id| id.is_a(GATEWAY_API, "Gateway")) { "Gateway" } else { "spec" };
    let rendered = format!("{} from {}", count(objects, "object"), count(rendering.units.len(), spec));
    let others = [
        (rendering.self_managed.len(), spec, "self-managed"),
        (rendering.broken.len(), spec, "with problems"),
        (rendering.unclaimed.len(), "document", "that no pack claims"),
    ];
    let others = others.into_iter().filter(|(number, ..)| *number > 0);
    let others = others.map(|(number, thing, words)| format!("{} {words}", count(number, thing)));
    [rendered].into_iter().chain(others).collect::<Vec<_>>().join(", ")
}
