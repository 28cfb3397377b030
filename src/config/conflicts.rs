//! Settings about fields that others write to.

use std::collections::BTreeSet;

use gatewright_engine::plan::conflicts::path::FieldPath;
use gatewright_engine::plan::conflicts::rules::{Ignore, Policy, Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rule for who wins in fields that a manager has set to another value than ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConflictRule {
    /// The manager, as `managedFields` names it; `*` stands for anything.
    pub manager: String,
    /// The kinds; none is all.
    #[serde(default)]
    pub kinds: BTreeSet<String>,
    /// The fields, written as in a plan; none is all.
    #[serde(default)]
    pub paths: Vec<String>,
    /// The policy: what is done.
    pub policy: Policy,
}

/// A field that is not changed once its object exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IgnoreRule {
    /// The kind; `*` stands for anything.
    pub kind: String,
    /// The field, written as in a plan.
    pub path: String,
    /// Only while such a manager writes there; `*` stands for anything.
    #[serde(default)]
    pub manager: Option<String>,
}

impl ConflictRule {
    /// Returns the rule; what is no path was found when the file was read.
    pub fn rule(&self) -> Rule {
        Rule {
            manager: self.manager.clone(),
            kinds: self.kinds.clone(),
            paths: self.paths.iter().filter_map(|path| FieldPath::parse(path).ok()).collect(),
            policy: self.policy,
        }
    }
}

impl IgnoreRule {
    /// Returns the rule; `None` if its path is none, which was found when the file was read.
    pub fn rule(&self) -> Option<Ignore> {
        let path = FieldPath::parse(&self.path).ok()?;
        Some(Ignore { kind: self.kind.clone(), path, manager: self.manager.clone() })
    }
}
