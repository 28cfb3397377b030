//! The HTML view: one file with everything in it, for all clusters at once, that needs no network and no server.
//!
//! It is written piece by piece, so that a large fleet takes no more memory than its reports. What others have named is
//! escaped, and a policy in the page lets nothing run or load but the one script and the one style that are ours.

mod objects;

use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::trend::{Gone, Summary};
use super::warnings::Warning;
use super::{ClusterState, Report};
use crate::basics::sanitize;
use objects::{section, state_of};

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/script.js");

/// Writes reports as one page.
///
/// # Errors
/// Whatever `out` cannot take.
pub fn write(reports: &[Report], out: &mut impl Write) -> io::Result<()> {
    head(out)?;
    warnings(reports, out)?;
    trend(reports, out)?;
    overview(reports, out)?;
    filter(reports, out)?;
    writeln!(out, "<main id=\"objects\">")?;
    for report in reports {
        for (name, cluster) in &report.clusters {
            section(report, name, cluster, out)?;
        }
    }
    writeln!(out, "</main>\n<script>{SCRIPT}</script>\n</body>\n</html>")
}

fn head(out: &mut impl Write) -> io::Result<()> {
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    let (style, script) = (hash(STYLE), hash(SCRIPT));
    let policy =
        format!("default-src 'none'; style-src {style}; script-src {script}; base-uri 'none'; form-action 'none'");
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>gatewright report</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<header><h1>gatewright report</h1></header>"
    )
}

/// What is missing from the picture, and what is wrong with it, before anything else.
fn warnings(reports: &[Report], out: &mut impl Write) -> io::Result<()> {
    let all: Vec<Warning> = reports.iter().flat_map(Warning::all).collect();
    if all.is_empty() {
        return Ok(());
    }
    writeln!(out, "<section aria-labelledby=\"first\"><h2 id=\"first\">To be known first</h2><ul class=\"warnings\">")?;
    for Warning { word, place, message, hint } in all {
        write!(out, "<li><strong>{word}</strong> <bdi>{}</bdi>: {}", Safe(&place), Safe(&message))?;
        if let Some(hint) = hint {
            write!(out, "<br><small>{}</small>", Safe(&hint))?;
        }
        writeln!(out, "</li>")?;
    }
    writeln!(out, "</ul></section>")
}

/// How much has come and gone, and what.
fn trend(reports: &[Report], out: &mut impl Write) -> io::Result<()> {
    let summary = Summary::of(reports);
    let Some(words) = summary.words() else { return Ok(()) };
    writeln!(out, "<section aria-labelledby=\"trend\"><h2 id=\"trend\">{words}</h2>")?;
    for (title, findings) in [("Resolved", &summary.resolved), ("Not looked at", &summary.unseen)] {
        if findings.is_empty() {
            continue;
        }
        writeln!(out, "<details><summary>{title}: {}</summary><ul>", Gone::number(findings))?;
        for gone in findings {
            writeln!(out, "<li><bdi>{}</bdi></li>", Safe(&gone.words()))?;
        }
        writeln!(out, "</ul></details>")?;
    }
    writeln!(out, "</section>")
}

fn overview(reports: &[Report], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "<section aria-labelledby=\"overview\"><h2 id=\"overview\">Clusters</h2><div class=\"wide\" tabindex=\"0\" \
         role=\"group\" aria-labelledby=\"overview\"><table><thead><tr><th scope=\"col\">sync</th><th scope=\"col\">\
         cluster</th><th scope=\"col\">state</th><th scope=\"col\">changes</th><th scope=\"col\" class=\"number\">\
         unchanged</th><th scope=\"col\" class=\"number\">refused</th><th scope=\"col\">trend</th><th scope=\"col\">\
         revision</th><th scope=\"col\">time</th></tr></thead><tbody>"
    )?;
    for report in reports {
        for (name, cluster) in &report.clusters {
            let state = cluster.state.word();
            let is_known = cluster.error.is_none() && cluster.state != ClusterState::Suspended;
            let changes = match cluster.changes().join(", ") {
                _ if !is_known => "unknown".to_owned(),
                changes if changes.is_empty() => "none".to_owned(),
                changes => changes,
            };
            // That none were seen says nothing where nobody could look.
            let number = |number: usize| if is_known || number > 0 { number.to_string() } else { String::new() };
            writeln!(
                out,
                "<tr><td>{}</td><th scope=\"row\">{}</th><td class=\"{state}\">{state}</td><td>{changes}</td>\
                 <td class=\"number\">{}</td><td class=\"number\">{}</td><td>{}</td><td>{}</td><td class=\"time\">{}</td></tr>",
                Safe(&report.sync),
                Safe(name),
                number(cluster.unchanged()),
                number(cluster.not_done().1),
                cluster.trend_in_short(),
                Safe(&report.revision),
                report.finished.strftime("%Y-%m-%d %H:%M:%SZ"),
            )?;
        }
    }
    writeln!(out, "</tbody></table></div></section>")
}

/// What can be chosen from: the clusters, kinds and states that there are.
fn filter(reports: &[Report], out: &mut impl Write) -> io::Result<()> {
    let (mut clusters, mut kinds, mut states) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (name, cluster) in reports.iter().flat_map(|report| &report.clusters) {
        clusters.insert(name.as_str());
        for step in &cluster.steps {
            kinds.insert(step.id.kind.as_str());
            states.insert(state_of(step));
        }
        for refusal in &cluster.refusals {
            kinds.insert(refusal.id.kind.as_str());
            states.insert("refused");
        }
    }
    writeln!(
        out,
        "<form role=\"search\" id=\"filter\" aria-label=\"Filter objects\"><label>Name <input type=\"search\" id=\"name\" \
         placeholder=\"press /\" aria-keyshortcuts=\"/\" autocomplete=\"off\" spellcheck=\"false\"></label>"
    )?;
    for (id, label, choices) in [("cluster", "Cluster", clusters), ("kind", "Kind", kinds), ("state", "State", states)]
    {
        write!(out, "<label>{label} <select id=\"{id}\"><option value=\"\">all</option>")?;
        for choice in choices {
            write!(out, "<option>{}</option>", Safe(choice))?;
        }
        writeln!(out, "</select></label>")?;
    }
    writeln!(out, "<button type=\"reset\">Show all</button> <output id=\"count\"></output></form>")
}

/// A text of others, for between tags and for quoted attributes.
struct Safe<'a>(&'a str);

impl Display for Safe<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = sanitize::line(self.0);
        let mut rest = &*text;
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
            f.write_str(&rest[..at])?;
            write!(f, "&#{};", rest.as_bytes()[at])?;
            rest = &rest[at + 1..];
        }
        f.write_str(rest)
    }
}
