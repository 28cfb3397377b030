//! The order in which clusters get what replaces pods.

use std::collections::BTreeMap;
use std::time::Duration;

use gatewright_engine::selector::ClusterSelector;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::gates::GateSettings;
use super::settings::ClusterSettings;
use crate::basics::duration::Period;

/// The order in which clusters get what replaces pods.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RolloutSettings {
    /// Whether one cluster gets it before the others do.
    pub strategy: Strategy,
    /// The clusters of which one is the first; all of them if absent. Of several it is the first by name.
    pub first: Option<ClusterSelector>,
    /// The order in which all clusters get it, in place of one before the others; those that no wave selects come last.
    pub waves: Vec<WaveSettings>,
    /// Questions to others: a change is healthy on a cluster once its objects are and all of these agree.
    pub gates: Vec<GateSettings>,
    /// Whether a wave on which a change is not healthy goes back to what was healthy there.
    pub rollback_on_failure: bool,
    /// Whether a revision that comes while another one is rolled out waits for that, under the daemon.
    pub on_new_revision: OnNewRevision,
}

/// Whether a revision that comes while another one is rolled out waits for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnNewRevision {
    /// It does not: it goes to the first cluster at once, and the others wait for that.
    #[default]
    Restart,
    /// It does, as long as that goes well on the clusters that answer.
    Finish,
}

/// Whether one cluster gets what replaces pods before the others do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// It does, and the others follow once it is healthy there.
    #[default]
    Canary,
    /// All of them get it at once.
    All,
}

/// Clusters that get what replaces pods together, once it is healthy on those of the waves before.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WaveSettings {
    /// The clusters; those of the waves before are not among them.
    pub clusters: ClusterSelector,
    /// The most that get it at once; all if absent.
    #[serde(default)]
    pub max_concurrent: Option<Portion>,
    /// On how many it may be unhealthy before everybody else waits.
    #[serde(default)]
    pub max_unavailable: Portion,
    /// For how long it is healthy on each before the next wave.
    #[serde(default = "no_time")]
    pub soak: Period,
    /// Whether a person has to approve it before.
    #[serde(default)]
    pub approval: bool,
}

fn no_time() -> Period {
    Period(Duration::ZERO)
}

/// A number of clusters, or a percentage of those of a wave, as Kubernetes writes it: `2`, `25%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Notation", into = "Notation")]
pub enum Portion {
    /// So many.
    Number(usize),
    /// So many of a hundred.
    Percent(u8),
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Notation {
    Number(usize),
    Text(String),
}

impl WaveSettings {
    /// Tells whether its `maxConcurrent` is none at all.
    pub(crate) fn lets_none_go(&self) -> bool {
        matches!(self.max_concurrent, Some(Portion::Number(0) | Portion::Percent(0)))
    }
}

impl RolloutSettings {
    /// Returns the clusters of each wave, in their order, the rest in one that has no settings.
    pub(crate) fn waves_of(
        &self,
        selected: &BTreeMap<&str, &ClusterSettings>,
    ) -> Vec<(Option<&WaveSettings>, Vec<String>)> {
        let mut left = selected.clone();
        let mut waves = Vec::new();
        for wave in &self.waves {
            let here = left.extract_if(.., |name, cluster| wave.clusters.selects(name, &cluster.labels));
            waves.push((Some(wave), here.map(|(name, _)| name.to_owned()).collect()));
        }
        let rest: Vec<String> = left.into_keys().map(str::to_owned).collect();
        waves.extend(Some((None, rest)).filter(|(_, rest)| !rest.is_empty()));
        waves
    }
}

impl Portion {
    /// Returns how many of a number of clusters this is; of a percentage as many as begin, so that it is never none.
    pub(crate) fn at_least_one(self, of: usize) -> usize {
        match self {
            Self::Number(number) => number.max(1),
            Self::Percent(percent) => (of * usize::from(percent)).div_ceil(100).max(1),
        }
    }

    /// Returns how many of a number of clusters this is at most.
    pub(crate) fn at_most(self, of: usize) -> usize {
        match self {
            Self::Number(number) => number,
            Self::Percent(percent) => of * usize::from(percent) / 100,
        }
    }
}

impl Default for Portion {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl TryFrom<Notation> for Portion {
    type Error = String;

    fn try_from(notation: Notation) -> Result<Self, String> {
        let text = match notation {
            Notation::Number(number) => return Ok(Self::Number(number)),
            Notation::Text(text) => text,
        };
        let percent = text.strip_suffix('%').and_then(|number| number.parse().ok()).filter(|percent| *percent <= 100);
        percent.map(Self::Percent).ok_or_else(|| format!("{text:?} is neither a number nor a percentage such as 25%"))
    }
}

impl From<Portion> for Notation {
    fn from(portion: Portion) -> Self {
        match portion {
            Portion::Number(number) => Self::Number(number),
            Portion::Percent(percent) => Self::Text(format!("{percent}%")),
        }
    }
}

impl JsonSchema for Portion {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Portion".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["integer", "string"],
            "description": "A number of clusters, or a percentage of those of the wave, such as 25%.",
            "minimum": 0,
            "pattern": r"^(100|[1-9]?[0-9])%$",
            "x-gatewright-form": "a number, or a percentage such as 25%",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_portion_is_a_number_or_a_percentage() {
        let read =
            |value: Value| serde_json::from_value::<Portion>(value).map(|it| (it.at_least_one(10), it.at_most(10)));
        let is = |value, expected| assert_eq!(read(value).expect("it is one"), expected);
        is(json!(2), (2, 2));
        is(json!(0), (1, 0));
        is(json!("25%"), (3, 2));
        is(json!("0%"), (1, 0));
        is(json!("100%"), (10, 10));
        for other in [json!("25"), json!("101%"), json!("-1%"), json!(-1), json!(1.5), json!("a"), json!(true)] {
            assert!(read(other.clone()).is_err(), "{other}");
        }
    }
}
