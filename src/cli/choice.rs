//! The clusters that a command is about: by name, by pattern and by label, as kubectl has them.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::selector::{ClusterSelector, Expression, Operator};
use gatewright_engine::text::listed;

use super::named::Named;
use super::{Failure, check_names};
use crate::basics::glob::{fits, is_pattern};
use crate::config::settings::ClusterSettings;

/// The most clusters that a message names.
const MOST_NAMES: usize = 8;

/// A choice of clusters; all of them if nothing is said, and what is said must all hold.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Choice {
    /// Only these clusters: a name, or a pattern such as 'eu-*'; several with commas between them, or given several times.
    #[arg(long = "cluster", value_name = "NAME", value_delimiter = ',')]
    pub named: Vec<String>,
    /// Only clusters with these labels, as in kubectl: 'region=eu,tier!=test', 'region in (eu, us)', gpu, '!gpu'.
    #[arg(long, short = 'l', value_name = "LABELS", value_parser = parse_labels)]
    selector: Option<ClusterSelector>,
}

/// The part of its syncs that a command is about, and how closely it looks.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Part {
    #[command(flatten)]
    pub clusters: Choice,
    /// Only this unit, such as Gateway/infra/edge; may be given several times.
    #[arg(long, value_name = "UNIT")]
    pub only: Vec<Named>,
    /// Compare every object, and not only what has moved since the last round.
    #[arg(long)]
    pub full: bool,
}

impl Part {
    /// Tells whether it is everything, looked at as usual.
    pub(super) fn is_all(&self) -> bool {
        self.clusters.is_of_all() && self.only.is_empty() && !self.full
    }

    /// Returns everything on some clusters.
    pub(super) fn of(clusters: Choice) -> Self {
        Self { clusters, only: Vec::new(), full: false }
    }
}

impl Choice {
    /// Returns these clusters.
    pub(super) fn of_names(names: &[String]) -> Self {
        Self { named: names.to_vec(), selector: None }
    }

    /// Tells whether nothing is said.
    pub(super) fn is_of_all(&self) -> bool {
        self.named.is_empty() && self.selector.is_none()
    }

    /// Returns the names of all that are meant; empty if nothing is said. Patterns and labels mean those among `known` for
    /// which `is_meant` holds; a name is what it is. It is an error if no cluster is left: that would mean all.
    pub(super) fn names(
        &self,
        known: &BTreeMap<String, ClusterSettings>,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<Vec<String>, Failure> {
        if self.is_of_all() {
            return Ok(Vec::new());
        }
        let all = || known.keys().filter(|name| is_meant(name)).cloned();
        let mut names: BTreeSet<String> = if self.named.is_empty() { all().collect() } else { BTreeSet::new() };
        for written in &self.named {
            if !is_pattern(written) {
                check_names("cluster", [written], known)?;
                names.insert(written.clone());
                continue;
            }
            let fitting: Vec<String> = all().filter(|name| fits(written.as_bytes(), name.as_bytes())).collect();
            if fitting.is_empty() {
                return Err(none(&format!("no cluster has a name like {written:?}"), all()));
            }
            names.extend(fitting);
        }
        if let Some(selector) = &self.selector {
            let of_these: Vec<String> = names.iter().cloned().collect();
            names.retain(|name| selector.selects(name, &known[name].labels));
            if names.is_empty() {
                return Err(none("none of the clusters has these labels", of_these.into_iter()));
            }
        }
        Ok(names.into_iter().collect())
    }
}

fn none(message: &str, clusters: impl Iterator<Item = String>) -> Failure {
    Failure::usage(message.to_owned()).hint(format!("looked at: {}", listed(clusters, MOST_NAMES)))
}

/// Reads labels as kubectl's `--selector`: what stands between commas must all hold.
fn parse_labels(text: &str) -> Result<ClusterSelector, String> {
    let expressions = requirements(text).into_iter().map(requirement).collect::<Result<Vec<_>, _>>()?;
    Ok(ClusterSelector { match_expressions: Some(expressions), ..ClusterSelector::default() })
}

/// Splits at the commas that stand in no brackets.
fn requirements(text: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    let split = |letter: char| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    };
    text.split(split).map(str::trim).collect()
}

fn requirement(text: &str) -> Result<Expression, String> {
    let one = |value: &str| BTreeSet::from([value.trim().to_owned()]);
    let (key, operator, values) = if let Some((key, values)) = bracketed(text, " notin ") {
        (key, Operator::NotIn, values)
    } else if let Some((key, values)) = bracketed(text, " in ") {
        (key, Operator::In, values)
    } else if let Some((key, value)) = text.split_once("!=") {
        (key, Operator::NotIn, one(value))
    } else if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        (key, Operator::In, one(value))
    } else if let Some(key) = text.strip_prefix('!') {
        (key, Operator::DoesNotExist, BTreeSet::new())
    } else {
        (text, Operator::Exists, BTreeSet::new())
    };
    let is_word = |text: &str| text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_./".contains(letter));
    let key = key.trim();
    if key.is_empty() || !is_word(key) || !values.iter().all(|value| is_word(value)) {
        let forms = "region=eu, tier!=test, region in (eu, us), region notin (eu), gpu or !gpu";
        return Err(format!("{text:?} is no requirement of labels: write {forms}"));
    }
    Ok(Expression { key: key.to_owned(), operator, values })
}

/// Reads `key in (a, b)`.
fn bracketed<'a>(text: &'a str, word: &str) -> Option<(&'a str, BTreeSet<String>)> {
    let (key, rest) = text.split_once(word)?;
    let values = rest.trim().strip_prefix('(')?.strip_suffix(')')?;
    Some((key, values.split(',').map(|value| value.trim().to_owned()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> BTreeMap<String, ClusterSettings> {
        let clusters = "{eu-1: {directory: {path: a}, labels: {region: eu}},
             eu-2: {directory: {path: b}, labels: {region: eu, tier: test}},
             us-1: {directory: {path: c}, labels: {region: us, gpu: ''}}}";
        let documents = gatewright_engine::yaml::parse_values(clusters).expect("it is YAML");
        serde_json::from_value(documents[0].clone()).expect("a test knows them")
    }

    #[track_caller]
    fn check(names: &[&str], labels: &str, expected: &[&str]) {
        let selector = (!labels.is_empty()).then(|| parse_labels(labels).expect(labels));
        let choice = Choice { named: names.iter().map(|name| (*name).to_owned()).collect(), selector };
        let found = choice.names(&known(), |_| true).map_err(|failure| failure.message);
        assert_eq!(found.unwrap_or_default(), expected, "{names:?} {labels}");
    }

    #[test]
    fn clusters_are_chosen_by_name_pattern_and_label() {
        check(&[], "", &[]);
        check(&["us-1"], "", &["us-1"]);
        check(&["eu-*"], "", &["eu-1", "eu-2"]);
        check(&["us-1", "?u-2"], "", &["eu-2", "us-1"]);
        check(&[], "region=eu", &["eu-1", "eu-2"]);
        check(&[], "region==eu,tier!=test", &["eu-1"]);
        check(&[], "region in (eu, us),!gpu", &["eu-1", "eu-2"]);
        check(&[], "region notin (eu)", &["us-1"]);
        check(&[], "gpu", &["us-1"]);
        check(&["eu-*"], "tier", &["eu-2"]);
    }

    #[test]
    fn where_nothing_is_left_it_is_not_all() {
        let fails = |named: &[&str], labels: Option<&str>| {
            let selector = labels.map(|labels| parse_labels(labels).expect(labels));
            let choice = Choice { named: named.iter().map(|name| (*name).to_owned()).collect(), selector };
            choice.names(&known(), |name| name != "us-1").expect_err("nothing is left").message
        };
        assert_eq!(fails(&["ap-*"], None), r#"no cluster has a name like "ap-*""#);
        assert_eq!(fails(&["us-*"], None), r#"no cluster has a name like "us-*""#);
        assert_eq!(fails(&[], Some("region=ap")), "none of the clusters has these labels");
        assert_eq!(fails(&["eu-1"], Some("tier")), "none of the clusters has these labels");
        assert!(fails(&["eu-3"], None).contains("there is no cluster \"eu-3\""));
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        for text in ["", "a=b,", "=b", "a in b", "a in (b", "a b", "!", "a=b c", "a>1"] {
            assert!(parse_labels(text).is_err(), "{text:?}");
        }
    }
}
