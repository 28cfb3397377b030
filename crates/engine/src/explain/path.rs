//! Paths as people type them.
//!
//! A path is written as in a plan, `spec.template.spec.containers[proxy].image`. Also understood: keys left
//! out, `[name=…]`, indexes, and names with dots in them without quotes.

use super::spots::Spot;
use crate::check::suggest;
use crate::diff::{Path, Segment};

/// Tells whether a part stands at a path, or below it.
pub(super) fn is_at(spot: &Spot, path: &str) -> bool {
    leads(&spot.path, &spot.steps, path, false)
}

/// Follows a path along segments; `whole` asks that nothing is left of them in the end.
fn leads(segments: &[Segment], steps: &[String], path: &str, whole: bool) -> bool {
    let path = path.strip_prefix('.').unwrap_or(path);
    if path.is_empty() {
        return !whole || segments.is_empty();
    }
    let (Some((segment, segments)), Some((step, steps))) = (segments.split_first(), steps.split_first()) else {
        return false;
    };
    let is_end = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
    let follows = |rest: &str| is_end(rest) && leads(segments, steps, rest, whole);
    let is_element = !matches!(segment, Segment::Field(_));
    spellings(segment, step).iter().any(|spelling| path.strip_prefix(spelling.as_str()).is_some_and(follows))
        || (is_element && leads(segments, steps, path, whole))
}

fn spellings(segment: &Segment, index: &str) -> Vec<String> {
    match segment {
        Segment::Field(name) => {
            vec![
                name.clone(),
                format!("[{name}]"),
                format!("[{name:?}]"),
                format!("['{name}']"),
                name.replace('.', "\\."),
            ]
        }
        Segment::Key(key, value) => vec![
            format!("[{value}]"),
            format!("[{key}={value}]"),
            format!("[{value:?}]"),
            format!("[{index}]"),
            value.clone(),
            index.to_owned(),
        ],
        Segment::Index(_) => vec![format!("[{index}]"), index.to_owned()],
    }
}

/// Returns the path of a part that somebody may have meant by one that leads nowhere.
pub(super) fn nearest(parts: &[Spot], path: &str) -> Option<String> {
    let ends = |spot: &&Spot| {
        let starts = 1..spot.path.len();
        starts.into_iter().any(|start| leads(&spot.path[start..], &spot.steps[start..], path, true))
    };
    if let Some(spot) = parts.iter().filter(ends).min_by_key(|spot| spot.path.len()) {
        return Some(spot.text());
    }
    let texts: Vec<String> = parts.iter().flat_map(|spot| [spot.text(), without_keys(spot)]).collect();
    suggest(path, texts.iter().map(String::as_str)).map(str::to_owned)
}

fn without_keys(spot: &Spot) -> String {
    let fields: Vec<Segment> =
        spot.path.iter().filter(|segment| matches!(segment, Segment::Field(_))).cloned().collect();
    Path(&fields).to_string()
}

/// Returns what stands directly below the longest beginning of a path that leads somewhere.
pub(super) fn beside(parts: &[Spot], path: &str) -> Vec<String> {
    let mut beginning = path;
    loop {
        let around = parts.iter().filter(|spot| leads(&spot.path, &spot.steps, beginning, true));
        let depth = if beginning.is_empty() { Some(0) } else { around.map(|spot| spot.path.len()).min() };
        if let Some(depth) = depth {
            let below = parts.iter().filter(|spot| spot.path.len() == depth + 1 && is_at(spot, beginning));
            let mut texts: Vec<String> = below.map(Spot::text).collect();
            texts.dedup();
            return texts;
        }
        beginning = beginning.rfind(['.', '[']).map_or("", |end| &beginning[..end]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::spots::parts;
    use super::*;
    use serde_json::{Value, json};

    fn object() -> Value {
        json!({
            "metadata": {"labels": {"app.kubernetes.io/name": "edge"}},
            "spec": {"replicas": 2, "containers": [{"name": "proxy", "image": "a", "args": ["x", "y"]}]},
        })
    }

    fn check(path: &str, expected: &[&str]) {
        let spots = super::super::spots::leaves(&object());
        let found: Vec<String> = spots.iter().filter(|spot| is_at(spot, path)).map(Spot::text).collect();
        assert_eq!(found, expected, "{path}");
    }

    #[test]
    fn a_path_leads_to_all_below_it() {
        check("spec.replicas", &["spec.replicas"]);
        check("spec.containers[proxy].args", &["spec.containers[proxy].args[0]", "spec.containers[proxy].args[1]"]);
        check("metadata", &[r#"metadata.labels["app.kubernetes.io/name"]"#]);
        check("spec.repl", &[]);
        check("replicas", &[]);
        check("spec.replicas.x", &[]);
    }

    #[test]
    fn a_path_may_be_written_in_other_ways() {
        for path in ["spec.containers[name=proxy].image", "spec.containers.image", "spec.containers[0].image"] {
            check(path, &["spec.containers[proxy].image"]);
        }
        check(".spec.containers.proxy.args.1", &["spec.containers[proxy].args[1]"]);
        for name in [".app.kubernetes.io/name", r".app\.kubernetes\.io/name", "[app.kubernetes.io/name]"] {
            check(&format!("metadata.labels{name}"), &[r#"metadata.labels["app.kubernetes.io/name"]"#]);
        }
    }

    #[test]
    fn a_path_that_leads_nowhere_has_something_near() {
        let parts = parts(&object());
        let near = |path| nearest(&parts, path);
        assert_eq!(near("spec.replica").as_deref(), Some("spec.replicas"));
        assert_eq!(near("replicas").as_deref(), Some("spec.replicas"));
        assert_eq!(near("containers.image").as_deref(), Some("spec.containers[proxy].image"));
        assert_eq!(near("spec.containers.imgae").as_deref(), Some("spec.containers.image"));
        assert_eq!(near("something.else"), None);
        assert_eq!(beside(&parts, "spec.something"), ["spec.containers", "spec.replicas"]);
        assert_eq!(beside(&parts, "something"), ["metadata", "spec"]);
    }
}
