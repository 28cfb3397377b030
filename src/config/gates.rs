//! The gates of rollouts: whoever is asked on each cluster whether a change may go on.
//!
//! An address or a query may take values of the cluster, as overlays do. What proves who we are stands in files.

use std::path::PathBuf;
use std::time::Duration;

use gatewright_engine::overlay::fill;
use gatewright_engine::selector::{ClusterFacts, ClusterSelector};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::webhooks::WebhookSettings;
use crate::basics::duration::Period;
use crate::basics::paths::{NoCredentials, Paths};

/// The path at which Prometheus answers queries.
const QUERIES: &str = "/api/v1/query";

/// A question that is asked on a cluster once what has changed there is healthy.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GateSettings {
    /// Its name, for messages.
    pub name: String,
    /// The clusters on which it is asked; all of them if absent.
    #[serde(default)]
    pub clusters: Option<ClusterSelector>,
    /// The address, with expressions such as `{{ cluster.name }}`: of a check that agrees by a code of 200 to 299, or of
    /// Prometheus.
    pub url: String,
    /// A query that is asked there, and what it has to return; absent: the address itself is asked.
    #[serde(default)]
    pub prometheus: Option<Query>,
    /// A file with a token, which is sent as `Authorization: Bearer`.
    #[serde(default)]
    pub token_file: Option<PathBuf>,
    /// A file with PEM certificates of the authorities that are trusted, instead of the system's.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// The time limit of one answer.
    #[serde(default = "ten_seconds")]
    pub timeout: Period,
    /// For how long it has to agree, at every look.
    #[serde(default = "no_time", rename = "for")]
    pub holds_for: Period,
}

/// A query in Prometheus' language, and the bounds for each number that it returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Query {
    /// The query, with expressions such as `{{ cluster.name }}`.
    pub query: String,
    /// The least that is good.
    #[serde(default)]
    pub min: Option<f64>,
    /// The most that is good.
    #[serde(default)]
    pub max: Option<f64>,
}

/// A gate as it is on one cluster.
#[derive(Clone, Debug)]
pub struct Gate {
    /// Its name.
    pub name: String,
    /// The address that is asked, and the credentials for it.
    pub at: WebhookSettings,
    /// The query, with the values of the cluster, and its bounds.
    pub query: Option<Query>,
    /// For how long it has to agree.
    pub holds_for: Duration,
}

/// A gate on a cluster; one that cannot be asked there says why.
pub type OnCluster = Result<Gate, String>;

fn ten_seconds() -> Period {
    Period(Duration::from_secs(10))
}

fn no_time() -> Period {
    Period(Duration::ZERO)
}

impl GateSettings {
    /// Makes all paths absolute.
    pub fn resolve(&mut self, paths: &Paths) -> Result<(), NoCredentials> {
        for file in [&mut self.token_file, &mut self.ca_file].into_iter().flatten() {
            *file = paths.resolve(file)?;
        }
        Ok(())
    }

    /// Tells whether it is asked on a cluster.
    pub fn is_about(&self, cluster: &ClusterFacts) -> bool {
        self.clusters.as_ref().is_none_or(|clusters| clusters.selects(&cluster.name, &cluster.labels))
    }

    /// Returns the gate on a cluster.
    ///
    /// # Errors
    ///
    /// Says in words which value the cluster lacks, and what can be no address or query.
    pub fn on(&self, cluster: &ClusterFacts) -> Result<Gate, String> {
        let mut url = fill(&self.url, cluster)?;
        if self.prometheus.is_some() {
            url = format!("{}{QUERIES}", url.trim_end_matches('/'));
        }
        let at = WebhookSettings {
            url: Some(url),
            token_file: self.token_file.clone(),
            ca_file: self.ca_file.clone(),
            timeout: self.timeout,
            ..WebhookSettings::default()
        };
        at.address()
            .map_err(|_| "the address is not of the form https://HOST/PATH, without a user, and https with a token")?;
        let query = self.prometheus.as_ref().map(|query| query.on(cluster)).transpose()?;
        Ok(Gate { name: self.name.clone(), at, query, holds_for: self.holds_for.0 })
    }

    /// Tells what is wrong with it whatever the cluster.
    pub fn check(&self) -> Result<(), &'static str> {
        let Some(query) = &self.prometheus else { return Ok(()) };
        match (query.min, query.max) {
            _ if query.query.trim().is_empty() => Err("its query is empty"),
            (None, None) => Err("nothing says what is good: set min, max or both"),
            (Some(min), Some(max)) if min > max => Err("min is above max"),
            _ => Ok(()),
        }
    }
}

impl Query {
    /// Fills it. A value that ends a text in the query would ask something else.
    fn on(&self, cluster: &ClusterFacts) -> Result<Self, String> {
        let is_plain = |text: &str| !text.contains(|letter: char| letter.is_control() || "\"'`\\".contains(letter));
        let mut plain = cluster.clone();
        plain.annotations.retain(|_, text| is_plain(text));
        Ok(Self { query: fill(&self.query, &plain)?, ..self.clone() })
    }

    /// Says what is wrong with a number, if something is.
    pub fn objects(&self, number: f64) -> Option<String> {
        match (self.min, self.max) {
            _ if number.is_nan() => Some("the query returns no number (NaN)".to_owned()),
            (Some(min), _) if number < min => Some(format!("{number} is less than {min}")),
            (_, Some(max)) if number > max => Some(format!("{number} is more than {max}")),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;

    fn gate(settings: Value) -> GateSettings {
        serde_json::from_value(settings).expect("the settings of this test are well-formed")
    }

    fn cluster() -> ClusterFacts {
        let of = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let (labels, annotations) = (of("region", "eu"), of("note", "a\"} or vector(0) #"));
        ClusterFacts { name: "eu-1".to_owned(), labels, annotations, ..ClusterFacts::default() }
    }

    #[test]
    fn a_gate_takes_values_of_its_cluster_and_none_that_changes_the_query() {
        let on = |query: &str| {
            let settings = json!({"name": "a", "url": "https://p/", "prometheus": {"query": query, "max": 1}});
            gate(settings).on(&cluster()).map(|gate| gate.query.expect("it has one").query)
        };
        assert_eq!(on("up{c=\"{{ cluster.name }}\"}"), Ok("up{c=\"eu-1\"}".to_owned()));
        assert!(on("up{c=\"{{ cluster.annotations.note }}\"}").is_err());
        assert!(on("up{c=\"{{ cluster.labels.zone }}\"}").expect_err("it has none").contains("cluster.labels.zone"));
        let url = |url: &str, more: Value| {
            let mut settings = json!({"name": "a", "url": url});
            settings.as_object_mut().expect("it is one").extend(more.as_object().expect("it is one").clone());
            gate(settings).on(&cluster()).map(|gate| gate.at.url.expect("it has one"))
        };
        let plain = || json!({});
        assert_eq!(url("http://c/{{ cluster.labels.region }}?a=b", plain()), Ok("http://c/eu?a=b".to_owned()));
        for bad in ["c/", "https://me:secret@c/", "ftp://c/", "https://{{ cluster.annotations.note }}/"] {
            assert!(url(bad, plain()).is_err(), "{bad}");
        }
        assert!(url("http://c/", json!({"tokenFile": "t"})).is_err(), "the token would cross the network");
    }

    #[test]
    fn every_number_has_to_keep_the_bounds() {
        let query = |min: Option<f64>, max: Option<f64>| Query { query: "up".to_owned(), min, max };
        let is_good = |query: &Query, number: f64| query.objects(number).is_none();
        let both = query(Some(0.5), Some(1.0));
        assert!(is_good(&both, 0.5) && is_good(&both, 1.0) && !is_good(&both, 0.4) && !is_good(&both, 1.1));
        assert!(!is_good(&both, f64::NAN) && !is_good(&query(None, Some(1.0)), f64::NAN));
        assert!(
            !is_good(&query(None, Some(1.0)), f64::INFINITY) && !is_good(&query(Some(0.0), None), f64::NEG_INFINITY)
        );
        let check = |min: Value, max: Value| {
            gate(json!({"name": "a", "url": "https://p/", "prometheus": {"query": "up", "min": min, "max": max}}))
                .check()
        };
        assert!(check(json!(1), json!(1)).is_ok() && check(Value::Null, json!(0)).is_ok());
        assert!(check(json!(2), json!(1)).is_err() && check(Value::Null, Value::Null).is_err());
    }
}
