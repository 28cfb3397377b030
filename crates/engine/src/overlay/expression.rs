//! Expressions in the texts of an overlay: `{{ cluster.labels.ip }}`, a path to a value of the cluster and nothing more.

use std::fmt;

use crate::selector::ClusterFacts;

/// The forms of an expression, for messages.
const FORMS: &str = "{{ cluster.name }}, {{ cluster.labels.KEY }}, {{ cluster.annotations.KEY }} or {{ values.PATH }}";

/// The characters with which an expression begins.
pub(super) const OPEN: &str = "{{";
const CLOSE: &str = "}}";

/// A path to a value of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expression {
    /// Its name.
    Name,
    /// A label of it.
    Label(String),
    /// An annotation of it.
    Annotation(String),
    /// A value in its row of the table.
    Value(Vec<String>),
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Text that stands for itself.
    Text(String),
    /// An expression.
    Expression(Expression),
}

impl Expression {
    fn read(text: &str) -> Result<Self, String> {
        let key = |key: &str| key.to_owned();
        let is_path = |path: &str| path.split('.').all(|step| !step.is_empty());
        let is_plain = !text.contains(|letter: char| letter.is_whitespace() || "\"'`|(){}[]".contains(letter));
        let found = match text.split_once('.') {
            Some(("cluster", "name")) => Some(Self::Name),
            Some(("cluster", rest)) => match rest.split_once('.') {
                Some(("labels", label)) if !label.is_empty() => Some(Self::Label(key(label))),
                Some(("annotations", annotation)) if !annotation.is_empty() => Some(Self::Annotation(key(annotation))),
                Some(_) | None => None,
            },
            Some(("values", path)) if is_path(path) => Some(Self::Value(path.split('.').map(key).collect())),
            Some(_) | None => None,
        };
        found
            .filter(|_| is_plain)
            .ok_or_else(|| format!("{OPEN} {text} {CLOSE} is no value of a cluster: write {FORMS}"))
    }

    fn of(&self, cluster: &ClusterFacts) -> Option<String> {
        match self {
            Self::Name => Some(cluster.name.clone()),
            Self::Label(key) => cluster.labels.get(key).cloned(),
            Self::Annotation(key) => cluster.annotations.get(key).cloned(),
            Self::Value(_) => None,
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => f.write_str("cluster.name"),
            Self::Label(key) => write!(f, "cluster.labels.{key}"),
            Self::Annotation(key) => write!(f, "cluster.annotations.{key}"),
            Self::Value(path) => write!(f, "values.{}", path.join(".")),
        }
    }
}

/// Reads a text: what stands in quotes between the braces is text, so that `{{ "{{" }}` is how two braces are written.
pub(super) fn parts(text: &str) -> Result<Vec<Part>, String> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once(OPEN) {
        push(&mut parts, before);
        let quoted = after.trim_start().strip_prefix('"').and_then(|quoted| quoted.split_once('"'));
        if let Some((literal, after)) = quoted
            && let Some(after) = after.trim_start().strip_prefix(CLOSE)
        {
            push(&mut parts, literal);
            rest = after;
            continue;
        }
        let Some((expression, after)) = after.split_once(CLOSE) else {
            return Err(format!("an expression begins with {OPEN} here, and does not end with {CLOSE}"));
        };
        parts.push(Part::Expression(Expression::read(expression.trim())?));
        rest = after;
    }
    push(&mut parts, rest);
    Ok(parts)
}

/// Fills a text outside of overlays, where no table is at hand, with the values of a cluster.
///
/// # Errors
///
/// Says in words what is no expression, and which value the cluster does not have.
pub fn fill(text: &str, cluster: &ClusterFacts) -> Result<String, String> {
    let parts = parts(text)?.into_iter().map(|part| match part {
        Part::Text(text) => Ok(text),
        Part::Expression(expression) => expression.of(cluster).ok_or_else(|| {
            format!("{OPEN} {expression} {CLOSE} has no value: cluster {:?} does not have it", cluster.name)
        }),
    });
    parts.collect()
}

fn push(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        _ if text.is_empty() => {}
        Some(Part::Text(before)) => before.push_str(text),
        Some(Part::Expression(_)) | None => parts.push(Part::Text(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let shown = |part: Part| match part {
            Part::Text(text) => format!("{text:?}"),
            Part::Expression(expression) => expression.to_string(),
        };
        let found: Vec<String> = parts(text).expect(text).into_iter().map(shown).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn texts_are_cut_at_expressions() {
        check("plain }} text {", &[r#""plain }} text {""#]);
        check("{{ cluster.name }}", &["cluster.name"]);
        check("{{cluster.labels.topology.kubernetes.io/zone}}", &["cluster.labels.topology.kubernetes.io/zone"]);
        check(
            "a-{{ cluster.annotations.x }}{{ values.pool.v4 }}/24",
            &[r#""a-""#, "cluster.annotations.x", "values.pool.v4", r#""/24""#],
        );
        check(r#"{{ "{{" }} REQ }} {{ values.a }}"#, &[r#""{{ REQ }} ""#, "values.a"]);
        check(r#"{{"a }} b"}}"#, &[r#""a }} b""#]);
    }

    #[test]
    fn a_text_is_filled_whole_or_not_at_all() {
        let labels = [("region".to_owned(), "eu".to_owned())].into();
        let cluster = ClusterFacts { name: "eu-1".to_owned(), labels, ..ClusterFacts::default() };
        let fill = |text: &str| fill(text, &cluster);
        assert_eq!(fill("a"), Ok("a".to_owned()));
        assert_eq!(fill("{{ cluster.name }}/{{cluster.labels.region}}!"), Ok("eu-1/eu!".to_owned()));
        for lacking in ["{{ cluster.labels.zone }}", "{{ cluster.annotations.region }}", "{{ values.region }}"] {
            assert!(fill(lacking).expect_err(lacking).contains("cluster \"eu-1\" does not have it"), "{lacking}");
        }
        assert!(fill("{{ cluster.region }}").is_err());
    }

    #[test]
    fn whatever_is_no_path_is_refused() {
        let texts = "{{ }}|{{ .cluster.name }}|{{ cluster.label.x }}|{{ cluster.labels. }}|{{ cluster.name.x }}|{{ values }}\
                     |{{ values..a }}|{{ values.a b }}|{{ values.a[0] }}|{{ values.{{ cluster.name }} }}|{{ \"a }}|{{ {{ }}";
        for text in texts.split('|') {
            assert!(parts(text).expect_err(text).contains("write {{ cluster.name }}, "), "{text}");
        }
        assert!(parts("a {{ values.a }").expect_err("it does not end").contains("does not end with }}"));
        assert!(parts("{{ values.a | upper }}").is_err());
    }
}
