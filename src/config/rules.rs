//! `rules`: the severity of rules about specs, where it is not the usual one.
//!
//! A rule is turned down with a reason only: whoever reads the file later has to know whether it still holds.

use std::borrow::Cow;
use std::collections::BTreeMap;

use gatewright_engine::rules::{ALL, Rule, Severities, Severity};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::did_you_mean;

/// The settings of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuleSettings {
    /// Its severity.
    pub severity: Level,
    /// The reason, which a lower severity needs.
    #[serde(default)]
    pub reason: Option<String>,
}

/// The severity of a rule, or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Nothing is said.
    Off,
    /// A person should know.
    Warning,
    /// The document is held.
    Error,
}

impl Level {
    const NAMES: [(&str, Self); 3] = [("off", Self::Off), ("warning", Self::Warning), ("error", Self::Error)];

    fn severity(self) -> Option<Severity> {
        match self {
            Self::Off => None,
            Self::Warning => Some(Severity::Warning),
            Self::Error => Some(Severity::Error),
        }
    }
}

impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LevelVisitor)
    }
}

/// Takes `off` as text and as what YAML makes of it, which is false.
struct LevelVisitor;

impl Visitor<'_> for LevelVisitor {
    type Value = Level;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("off, warning or error")
    }

    fn visit_bool<E: de::Error>(self, on: bool) -> Result<Level, E> {
        if on { Err(E::invalid_value(de::Unexpected::Bool(true), &self)) } else { Ok(Level::Off) }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Level, E> {
        let known = Level::NAMES.into_iter().find(|(name, _)| *name == text);
        known.map(|(_, level)| level).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

impl JsonSchema for Level {
    fn schema_name() -> Cow<'static, str> {
        "Level".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "off, warning or error.",
            "enum": ["off", "warning", "error", false],
        })
    }
}

/// Checks the settings of rules, and returns the severities that they give.
pub(super) fn read_all(
    settings: &BTreeMap<String, RuleSettings>,
    mut wrong: impl FnMut(&[&str], String),
) -> Severities {
    let mut severities = Severities::default();
    for (name, setting) in settings {
        let Some(rule) = ALL.iter().find(|rule| rule.id.to_string() == *name) else {
            wrong(&["rules", name], unknown(name));
            continue;
        };
        if let Some(message) = mistake(rule, setting) {
            wrong(&["rules", name, "severity"], message);
        }
        severities.0.insert(rule.id, setting.severity.severity());
    }
    severities
}

fn unknown(name: &str) -> String {
    let ids: Vec<String> = ALL.iter().map(|rule| rule.id.to_string()).collect();
    let hint = match ALL.iter().find(|rule| rule.name == name) {
        Some(rule) => format!("did you mean {:?}?", rule.id.to_string()),
        None => did_you_mean(name, ids.iter().map(String::as_str)),
    };
    format!("there is no rule {name:?} ({hint}); docs/rules has all of them")
}

/// Says why a rule cannot be set so.
fn mistake(rule: &Rule, setting: &RuleSettings) -> Option<String> {
    let Rule { id, name, severity, .. } = rule;
    let is_lower = setting.severity.severity() < Some(*severity);
    let has_reason = setting.reason.as_ref().is_some_and(|reason| !reason.trim().is_empty());
    if rule.is_fixed && is_lower {
        return Some(format!("{id} ({name}) stays an error: nothing can be rendered of what breaks it"));
    }
    let message = || format!("{id} ({name}) is usually {}, and less needs a reason", article(*severity));
    (is_lower && !has_reason).then(|| format!("{} (write reason: beside the severity)", message()))
}

fn article(severity: Severity) -> &'static str {
    match severity {
        Severity::Warning => "a warning",
        Severity::Error => "an error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `rules` of a config file; what is wrong with them, or else what each rule comes to.
    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let value = gatewright_engine::yaml::parse_values(text).expect("it is YAML").remove(0);
        let settings = serde_json::from_value(value).expect("a test knows them");
        let mut said = Vec::new();
        let severities = read_all(&settings, |path, message| said.push(format!("{}: {message}", path.join("."))));
        if said.is_empty() {
            said = severities.0.iter().map(|(id, severity)| format!("{id} {severity:?}")).collect();
        }
        assert_eq!(said, expected, "{text}");
    }

    #[test]
    fn a_rule_is_turned_down_with_a_reason_and_up_without() {
        check("GW010: {severity: off, reason: a team of its own makes them}", &["GW010 None"]);
        check("GW010: {severity: 'off', reason: a team of its own makes them}", &["GW010 None"]);
        check(
            "GW023: {severity: warning, reason: for now}\nGW012: {severity: error}",
            &["GW012 Some(Error)", "GW023 Some(Warning)"],
        );
        check("GW023: {severity: error}", &["GW023 Some(Error)"]);
        let message = "is usually a warning, and less needs a reason (write reason: beside the severity)";
        let message = format!("rules.GW010.severity: GW010 (certificate-not-found) {message}");
        check("GW010: {severity: off}", &[&message]);
        check("GW010: {severity: off, reason: ' '}", &[&message]);
    }

    #[test]
    fn what_is_no_rule_has_a_suggestion() {
        let end = "docs/rules has all of them";
        check(
            "GW010x: {severity: off}",
            &[&format!("rules.GW010x: there is no rule \"GW010x\" (did you mean \"GW010\"?); {end}")],
        );
        let message = "there is no rule \"certificate-not-found\" (did you mean \"GW010\"?)";
        check("certificate-not-found: {severity: off}", &[&format!("rules.certificate-not-found: {message}; {end}")]);
    }

    #[test]
    fn without_what_is_needed_no_rule_can_be_turned_down() {
        let message = "GW001 (class-not-found) stays an error: nothing can be rendered of what breaks it";
        check("GW001: {severity: off, reason: a test}", &[&format!("rules.GW001.severity: {message}")]);
    }
}
