//! Rules about who wins where others write to our fields: what a person has said of it, and what holds where nothing is
//! said.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::path::FieldPath;
use crate::object::ObjectId;
use crate::plan::fields::leaf::Leaf;

/// The treatment of a field that another manager has set to another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// It gets our value, and what the manager has added beside it is removed.
    Take,
    /// It keeps the value that it has, and is not ours any more.
    Yield,
    /// The unit stays as it is, and a person is told.
    Fail,
}

/// A rule that a person has given for the fields of some managers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The managers; `*` stands for anything.
    pub manager: String,
    /// The kinds, perhaps with their groups; none said is all.
    pub kinds: BTreeSet<String>,
    /// The fields; none said is all.
    pub paths: Vec<FieldPath>,
    /// The policy: what is done.
    pub policy: Policy,
}

/// Fields that are never changed once an object exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignore {
    /// The kind, perhaps with its group; `*` stands for anything.
    pub kind: String,
    /// The field.
    pub path: FieldPath,
    /// Only while such a manager writes there.
    pub manager: Option<String>,
}

/// Managers that stand for a person at a terminal, or for nobody any more.
const PEOPLE: [&str; 2] = ["kubectl*", "before-first-apply"];

impl Rule {
    fn covers(&self, manager: &str, id: &ObjectId, leaf: &Leaf, bodies: [&Value; 2]) -> bool {
        is_like(&self.manager, manager)
            && (self.kinds.is_empty() || self.kinds.iter().any(|pattern| is_kind(pattern, id)))
            && (self.paths.is_empty() || self.paths.iter().any(|path| path.means(leaf, bodies)))
    }
}

/// Returns what a person has said about a field of a manager: the first rule that covers it counts.
pub(super) fn said(rules: &[Rule], manager: &str, id: &ObjectId, leaf: &Leaf, bodies: [&Value; 2]) -> Option<Policy> {
    rules.iter().find(|rule| rule.covers(manager, id, leaf, bodies)).map(|rule| rule.policy)
}

/// Returns what is done about the fields of a manager of which nobody has said anything.
pub(super) fn built_in(manager: &str) -> Policy {
    let is_person = PEOPLE.iter().any(|pattern| is_like(pattern, manager));
    if is_person { Policy::Take } else { Policy::Yield }
}

/// Tells whether a pattern means the kind of an object: `Deployment`, of any group, or `Deployment.apps`.
pub(super) fn is_kind(pattern: &str, id: &ObjectId) -> bool {
    is_like(pattern, &id.kind) || is_like(pattern, &format!("{}.{}", id.kind, id.group))
}

/// Tells whether a text is like a pattern, in which `*` stands for anything.
pub(super) fn is_like(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(start) else { return false };
    text.char_indices().map(|(at, _)| at).chain([text.len()]).any(|at| is_like(rest, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_covers_a_field_counts() {
        let rule = |manager: &str, kinds: &[&str], paths: &[&str], policy| Rule {
            manager: manager.to_owned(),
            kinds: kinds.iter().map(ToString::to_string).collect(),
            paths: paths.iter().map(|path| FieldPath::parse(path).expect("it is a path")).collect(),
            policy,
        };
        let rules = [
            rule("kubectl*", &["Deployment"], &["spec.replicas"], Policy::Yield),
            rule("helm", &[], &[], Policy::Take),
            rule("*", &["Service"], &[], Policy::Fail),
        ];
        let of = |manager, kind, field| {
            let leaf = Leaf::of(&["spec", field]);
            let id = ObjectId::new(if kind == "Service" { "" } else { "apps" }, kind, "a", "b");
            said(&rules, manager, &id, &leaf, [&Value::Null, &Value::Null]).unwrap_or_else(|| built_in(manager))
        };
        assert_eq!(of("kubectl-scale", "Deployment", "replicas"), Policy::Yield);
        assert_eq!(of("kubectl-scale", "Deployment", "paused"), Policy::Take);
        assert_eq!(of("helm", "Service", "type"), Policy::Take);
        assert_eq!(of("keda", "Service", "type"), Policy::Fail);
        assert_eq!(of("keda", "Deployment", "replicas"), Policy::Yield);
        assert_eq!(of("before-first-apply", "Deployment", "replicas"), Policy::Take);
    }

    #[test]
    fn a_kind_of_a_rule_may_have_its_group() {
        let knative = ObjectId::new("serving.knative.dev", "Service", "a", "b");
        for (pattern, is) in [
            ("Service", true),
            ("Service.serving.knative.dev", true),
            ("*.knative.dev", true),
            ("Service.", false),
            ("Service.apps", false),
        ] {
            assert_eq!(is_kind(pattern, &knative), is, "{pattern}");
        }
        assert!(is_kind("Service.", &ObjectId::new("", "Service", "a", "b")));
    }

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text, is) in [
            ("kubectl*", "kubectl", true),
            ("kubectl*", "kubectl-edit", true),
            ("kubectl", "kubectl-edit", false),
            ("*-controller", "hpa-controller", true),
            ("*-controller", "hpa-controllers", false),
            ("k*l*", "kubectl", true),
            ("*", "", true),
        ] {
            assert_eq!(is_like(pattern, text), is, "{pattern} {text}");
        }
    }
}
