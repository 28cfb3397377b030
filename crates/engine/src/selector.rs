//! Selecting clusters by name and label, and other things by label.
//!
//! One form for all places where somebody selects: the syncs of a config file and the overlays of a source. What is said
//! must all hold, as in Kubernetes.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The facts about a cluster that are known before anything is rendered for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterFacts {
    /// Its name in the config.
    pub name: String,
    /// Its labels there.
    pub labels: BTreeMap<String, String>,
    /// Its annotations there: values that nothing selects by.
    pub annotations: BTreeMap<String, String>,
    /// Its capabilities; nothing is known where it was not asked.
    pub capabilities: Option<Capabilities>,
    /// Whether it is none of the config, but one that a selector would select.
    pub is_example: bool,
}

/// All clusters that there are, by name, each with its labels.
pub type Fleet = BTreeMap<String, BTreeMap<String, String>>;

/// The capabilities of a cluster, as far as a rendering may depend on them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Capabilities {
    /// The kinds that it serves, by group and kind.
    pub kinds: BTreeSet<(String, String)>,
    /// The packs whose operators are at work there.
    pub operators: BTreeSet<String>,
}

impl Capabilities {
    /// Tells whether it serves a kind.
    pub fn serves(&self, group: &str, kind: &str) -> bool {
        self.kinds.contains(&(group.to_owned(), kind.to_owned()))
    }

    /// Tells whether the operator that provisions the specs of a pack is at work.
    pub fn operates(&self, pack: &str) -> bool {
        self.operators.contains(pack)
    }
}

/// A selection of clusters; everything that is said must hold, and nothing said is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ClusterSelector {
    /// By name.
    pub names: Option<BTreeSet<String>>,
    /// By label.
    pub match_labels: Option<BTreeMap<String, String>>,
    /// By expression over a label.
    pub match_expressions: Option<Vec<Expression>>,
}

/// An expression over a label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expression {
    /// The label.
    pub key: String,
    /// The condition that must hold.
    pub operator: Operator,
    /// For `In` and `NotIn`.
    #[serde(default)]
    pub values: BTreeSet<String>,
}

/// The condition that must hold for a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Operator {
    /// It has one of the values.
    In,
    /// It has none of the values.
    NotIn,
    /// It is there.
    Exists,
    /// It is not there.
    DoesNotExist,
}

impl ClusterSelector {
    /// Tells whether a cluster is meant, where no selector means all of them, and no cluster is in none.
    pub(crate) fn selects_any(selector: Option<&Self>, cluster: Option<&ClusterFacts>) -> bool {
        match (selector, cluster) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(selector), Some(cluster)) => selector.selects(&cluster.name, &cluster.labels),
        }
    }

    /// Tells whether nothing is said, so that nothing is selected.
    pub fn is_empty(&self) -> bool {
        self.names.is_none() && self.match_labels.is_none() && self.match_expressions.is_none()
    }

    /// Returns a cluster that is selected, to see what would be rendered for one; `None` if there can be none.
    ///
    /// Where no name is said, its name says which labels it has.
    pub fn example(&self) -> Option<ClusterFacts> {
        let mut labels = self.match_labels.clone().unwrap_or_default();
        for expression in self.match_expressions.iter().flatten() {
            let value = match expression.operator {
                Operator::In => expression.values.first().cloned(),
                Operator::Exists => Some("any".to_owned()),
                Operator::NotIn | Operator::DoesNotExist => None,
            };
            if let Some(value) = value {
                labels.entry(expression.key.clone()).or_insert(value);
            }
        }
        let name = match &self.names {
            Some(names) => names.first().cloned()?,
            None if labels.is_empty() => "any".to_owned(),
            None => labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(","),
        };
        let is_selected = self.selects(&name, &labels);
        is_selected.then_some(ClusterFacts { name, labels, is_example: true, ..ClusterFacts::default() })
    }

    /// Tells whether a cluster is selected.
    pub fn selects(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        let by_name = self.names.as_ref().is_none_or(|names| names.contains(name));
        !self.is_empty()
            && by_name
            && labels_match(labels, self.match_labels.as_ref(), self.match_expressions.as_deref())
    }
}

/// Tells whether labels are as they are wanted; nothing wanted is always so.
pub(crate) fn labels_match(
    labels: &BTreeMap<String, String>,
    wanted: Option<&BTreeMap<String, String>>,
    expressions: Option<&[Expression]>,
) -> bool {
    let mut wanted = wanted.into_iter().flatten();
    let mut expressions = expressions.into_iter().flatten();
    wanted.all(|(key, value)| labels.get(key) == Some(value)) && expressions.all(|expression| expression.holds(labels))
}

impl Expression {
    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let is_listed = value.is_some_and(|value| self.values.contains(value));
        match self.operator {
            Operator::In => is_listed,
            Operator::NotIn => !is_listed,
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(selector: &str, expected: bool) {
        let selector: ClusterSelector = serde_json::from_str(selector).expect(selector);
        let labels = BTreeMap::from([("region".to_owned(), "eu".to_owned())]);
        assert_eq!(selector.selects("eu-1", &labels), expected, "{selector:?}");
    }

    #[test]
    fn everything_that_is_said_must_hold() {
        check("{}", false);
        check(r#"{"names": ["eu-1", "eu-2"]}"#, true);
        check(r#"{"names": ["eu-2"]}"#, false);
        check(r#"{"matchLabels": {"region": "eu"}}"#, true);
        check(r#"{"names": ["eu-1"], "matchLabels": {"region": "us"}}"#, false);
    }

    #[test]
    fn an_example_is_a_cluster_that_is_selected() {
        let example = |selector: &str| {
            let selector: ClusterSelector = serde_json::from_str(selector).expect(selector);
            let example = selector.example()?;
            assert!(selector.selects(&example.name, &example.labels), "{selector:?}");
            Some(example.name)
        };
        assert_eq!(example(r#"{"names": ["eu-1", "eu-2"]}"#).as_deref(), Some("eu-1"));
        assert_eq!(example(r#"{"matchLabels": {"region": "eu"}}"#).as_deref(), Some("region=eu"));
        let both = r#"{"matchLabels": {"region": "eu"}, "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]},
            {"key": "gpu", "operator": "Exists"}, {"key": "old", "operator": "DoesNotExist"}]}"#;
        assert_eq!(example(both).as_deref(), Some("gpu=any,region=eu,tier=a"));
        let without = r#"{"matchExpressions": [{"key": "old", "operator": "DoesNotExist"}]}"#;
        assert_eq!(example(without).as_deref(), Some("any"));
        let never = r#"{"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}"#;
        assert_eq!(example(never), None);
        assert_eq!(example("{}"), None);
    }

    #[test]
    fn expressions_are_those_of_kubernetes() {
        let check = |expression: &str, expected| check(&format!(r#"{{"matchExpressions": [{expression}]}}"#), expected);
        check(r#"{"key": "region", "operator": "In", "values": ["eu", "us"]}"#, true);
        check(r#"{"key": "region", "operator": "NotIn", "values": ["eu"]}"#, false);
        check(r#"{"key": "env", "operator": "NotIn", "values": ["prod"]}"#, true);
        check(r#"{"key": "region", "operator": "Exists"}"#, true);
        check(r#"{"key": "region", "operator": "DoesNotExist"}"#, false);
    }
}
