//! The objects that plans change, as a unified diff of YAML: what is on the clusters, and what would be.

use std::collections::BTreeMap;

use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::bodies::Bodies;
use gatewright_engine::yaml;
use owo_colors::{OwoColorize as _, Style};
use serde_json::Value;
use similar::TextDiff;

use super::{Report, named};
use crate::basics::sanitize;

/// The lines that are shown around those that differ.
const AROUND: usize = 3;

/// The name of the side on which an object is not there, as in a patch.
const NOTHING: &str = "/dev/null";

/// One object, and the clusters on which the same becomes of it.
struct Entry<'a> {
    bodies: &'a Bodies,
    text: String,
    clusters: Vec<String>,
}

/// Writes the differences of a report, each once, however many clusters it is on; empty if there are none.
pub fn write(report: &Report, is_colored: bool) -> String {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    let mut known: BTreeMap<(&ObjectId, bool, String), usize> = BTreeMap::new();
    for (cluster, of_cluster) in &report.clusters {
        for bodies in &of_cluster.bodies {
            let text = hunks(bodies);
            if text.is_empty() {
                continue;
            }
            let index = *known.entry((&bodies.id, bodies.is_held, text.clone())).or_insert(entries.len());
            if index == entries.len() {
                entries.push(Entry { bodies, text, clusters: Vec::new() });
            }
            entries[index].clusters.push(cluster.clone());
        }
    }
    entries.iter().map(|entry| entry.write(is_colored)).collect()
}

impl Entry<'_> {
    fn write(&self, is_colored: bool) -> String {
        let Bodies { id, action, is_held, .. } = self.bodies;
        let held = if *is_held { " (held)" } else { "" };
        let title = sanitize::line(&format!("{action} {id}, on {}{held}", named(&self.clusters))).into_owned();
        let lines = std::iter::once(title.as_str()).chain(self.text.lines());
        lines.map(|line| if is_colored { colored(line) } else { format!("{line}\n") }).collect()
    }
}

/// Returns the difference of two states of an object; empty if they read the same.
fn hunks(bodies: &Bodies) -> String {
    let (before, after) = (text(bodies.before.as_ref()), text(bodies.after.as_ref()));
    let path = path(bodies);
    let side = |name: &str, text: &str| if text.is_empty() { NOTHING.to_owned() } else { format!("{name}/{path}") };
    let diff = TextDiff::from_lines(&before, &after);
    diff.unified_diff().context_radius(AROUND).header(&side("live", &before), &side("desired", &after)).to_string()
}

fn text(body: Option<&Value>) -> String {
    body.map(|body| sanitize::lines(&yaml::to_string(body)).into_owned()).unwrap_or_default()
}

/// Names an object as a file: `apps/v1/Deployment/infra/edge.yaml`.
fn path(bodies: &Bodies) -> String {
    let (version, id) = (bodies.gvk.api_version(), &bodies.id);
    let namespace = if id.namespace.is_empty() { String::new() } else { format!("{}/", id.namespace) };
    sanitize::line(&format!("{version}/{}/{namespace}{}.yaml", id.kind, id.name)).into_owned()
}

fn colored(line: &str) -> String {
    let style = match line.as_bytes() {
        [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => Style::new().bold(),
        [b'+', ..] => Style::new().green(),
        [b'-', ..] => Style::new().red(),
        [b'@', ..] => Style::new().cyan(),
        [b' ', ..] | [] => return format!("{line}\n"),
        _ => Style::new().bold(),
    };
    format!("{}\n", line.style(style))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use gatewright_engine::object::Gvk;
    use serde_json::json;

    use super::*;
    use crate::report::ClusterReport;

    fn bodies(name: &str, before: Option<Value>, after: Option<Value>) -> Bodies {
        let id = ObjectId::new("", "Service", "shop", name);
        let gvk = Gvk { group: String::new(), version: "v1".to_owned(), kind: "Service".to_owned() };
        Bodies { id, gvk, action: "update".to_owned(), is_held: false, before, after }
    }

    fn report(clusters: &[(&str, Vec<Bodies>)]) -> Report {
        let of = |(name, bodies): &(&str, Vec<Bodies>)| {
            ((*name).to_owned(), ClusterReport { bodies: bodies.clone(), ..ClusterReport::default() })
        };
        Report { clusters: clusters.iter().map(of).collect::<BTreeMap<_, _>>(), ..Report::default() }
    }

    #[test]
    fn it_is_a_unified_diff_with_a_title() {
        let changed = bodies("a", Some(json!({"a": 1, "b": "x\ny\n"})), Some(json!({"a": 1, "b": "x\nz\n"})));
        let gone = bodies("b", Some(json!({"a": 1})), None);
        let same = bodies("c", Some(json!({"a": 1})), Some(json!({"a": 1})));
        let text = write(&report(&[("eu", vec![changed, gone, same])]), false);
        let expected = "update Service shop/a, on cluster eu
--- live/v1/Service/shop/a.yaml
+++ desired/v1/Service/shop/a.yaml
@@ -1,4 +1,4 @@
 a: 1
 b: |
   x
-  y
+  z
update Service shop/b, on cluster eu
--- live/v1/Service/shop/b.yaml
+++ /dev/null
@@ -1 +0,0 @@
-a: 1
";
        assert_eq!(text, expected);
    }

    #[test]
    fn what_is_the_same_on_several_clusters_is_said_once() {
        let change = |value: u8| bodies("a", Some(json!({"a": 0})), Some(json!({"a": value})));
        let clusters = [("a", vec![change(1)]), ("b", vec![change(2)]), ("c", vec![change(1)])];
        let text = write(&report(&clusters), false);
        let titles: Vec<&str> = text.lines().filter(|line| line.starts_with("update")).collect();
        assert_eq!(titles, ["update Service shop/a, on clusters a, c", "update Service shop/a, on cluster b"]);
    }

    #[test]
    fn what_others_say_does_nothing_to_a_terminal() {
        let hostile = "a\u{1b}[2J\u{202e}";
        let change = bodies(hostile, None, Some(json!({hostile: format!("{hostile}\n{hostile}")})));
        let text = write(&report(&[("eu", vec![change])]), false);
        assert!(text.chars().all(|letter| letter == '\n' || !sanitize::is_hostile(letter)), "{text:?}");
    }
}
