//! The HTML view: one file with everything in it, for all clusters at once, that needs no network and no server.
//!
//! The templates escape what others have named, and a policy in the page lets nothing run or load but the one script and
//! the one style that are ours.

mod objects;

use std::collections::BTreeSet;
use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tera::{Context, Tera};

use super::folded::{Paragraph, fold};
use super::outline::Sections;
use super::trend::{Gone, Summary};
use super::warnings::Warning;
use super::{ClusterState, Report, clusters_of};
use crate::basics::sanitize;
use objects::units;

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/script.js");
const TEMPLATES: [(&str, &str); 3] = [
    ("head.html", include_str!("html/head.html")),
    ("section.html", include_str!("html/section.html")),
    ("foot.html", include_str!("html/foot.html")),
];

/// Writes reports as one page.
///
/// # Errors
/// Whatever `out` cannot take.
pub fn write(reports: &[Report], out: &mut impl Write) -> io::Result<()> {
    let mut templates = Tera::default();
    templates.set_escape_fn(|text, out| tera::escape_html(&sanitize::line(text), out));
    templates.add_raw_templates(TEMPLATES).map_err(io::Error::other)?;
    let mut fill = |name: &str, values: &Value| {
        let text = Context::from_serialize(values).and_then(|values| templates.render(name, &values));
        out.write_all(text.map_err(io::Error::other)?.as_bytes())
    };
    fill("head.html", &head(reports))?;
    for report in reports {
        let sections = Sections::of(report.clusters.values());
        for paragraph in fold(report) {
            let units = units(&paragraph, &sections);
            if !units.is_empty() {
                let (sync, on) = (&report.sync, paragraph.clusters.to_string());
                let names: Vec<_> = paragraph.clusters.names.iter().map(|name| sanitize::line(name)).collect();
                let names = json!(names).to_string();
                fill("section.html", &json!({"sync": sync, "on": on, "clusters": names, "units": units}))?;
            }
        }
    }
    fill("foot.html", &json!({"script": SCRIPT}))
}

/// Everything before the objects: what is missing from the picture comes first.
fn head(reports: &[Report]) -> Value {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text));
    let summary = Summary::of(reports);
    let gone = [("Resolved", &summary.resolved), ("Not looked at", &summary.unseen)];
    let gone = gone.into_iter().filter(|(_, findings)| !findings.is_empty()).map(|(title, findings)| {
        let lines: Vec<String> = findings.iter().map(Gone::words).collect();
        json!({"title": title, "number": Gone::number(findings), "lines": lines})
    });
    let clusters = reports.iter().flat_map(|report| fold(report).filter_map(|paragraph| row(report, &paragraph)));
    json!({
        "style": STYLE, "style_hash": hash(STYLE), "script_hash": hash(SCRIPT),
        "warnings": reports.iter().flat_map(Warning::all).collect::<Vec<_>>(),
        "trend": summary.words(), "gone": gone.collect::<Vec<_>>(),
        "clusters": clusters.collect::<Vec<_>>(), "filters": filters(reports),
    })
}

/// The sum of a report on some clusters, in the table of all.
fn row(report: &Report, paragraph: &Paragraph<'_>) -> Option<Value> {
    let (cluster, on) = (paragraph.summary?, &paragraph.clusters);
    let is_known = cluster.error.is_none() && cluster.state != ClusterState::Suspended;
    let changes = match cluster.changes().join(", ") {
        _ if !is_known => "unknown".to_owned(),
        changes if changes.is_empty() => "none".to_owned(),
        changes => changes,
    };
    // That none were seen says nothing where nobody could look.
    let number = |number: usize| if is_known || number > 0 { number.to_string() } else { String::new() };
    Some(json!({
        "sync": report.sync, "on": on.to_string(), "names": on.names, "state": cluster.state.word(), "changes": changes,
        "unchanged": number(cluster.unchanged()), "refused": number(cluster.not_done().1),
        "trend": cluster.trend_in_short(), "revision": report.revision,
        "time": report.finished.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
    }))
}

/// Writes the choices of the filter: the clusters, kinds and states that there are.
fn filters(reports: &[Report]) -> Value {
    let (mut clusters, mut kinds, mut states) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (_, name, cluster) in clusters_of(reports) {
        clusters.insert(name);
        for step in &cluster.steps {
            kinds.insert(step.id.kind.as_str());
            states.insert(step.result());
        }
        for refusal in cluster.told_refusals() {
            kinds.insert(refusal.id.kind.as_str());
            states.insert("refused");
        }
    }
    json!([
        {"id": "cluster", "label": "Cluster", "choices": clusters},
        {"id": "kind", "label": "Kind", "choices": kinds},
        {"id": "state", "label": "State", "choices": states},
    ])
}
