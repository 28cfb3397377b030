//! Pods of what is rendered: fields that no API server takes together, and names that lead nowhere.
//!
//! A template of a pod has a schema wherever it is written, and all of this is within it. An API server refuses it when the
//! workload comes there (`ValidatePodTemplateSpec`), or takes it, and no pod gets ready.

mod amounts;
mod containers;
mod environment;
pub(super) mod forms;
mod handlers;
mod images;
mod ports;
mod references;
mod scheduling;
mod security;
mod shape;
mod values;
mod volumes;

use serde_json::Value;

use super::Id;
use super::objects::Finding;
use super::policies::{self, Policies};
use super::table::POD_VALUE;
use super::texts::Texts;
use crate::kinds;
use crate::object::Object;
use crate::problem::{Problem, Scope};
use crate::references::templates;

/// The template of a pod, and all that was found in it.
struct Pod<'a> {
    /// The object that has the template.
    owner: &'a Object,
    spec: &'a Value,
    texts: &'a Texts<'a>,
    findings: Vec<Finding>,
}

/// The groups of workloads whose templates an API server judges.
pub(super) const OWN_GROUPS: [&str; 3] = ["", "apps", "batch"];

/// Returns what is wrong with the pods of objects that were made of some texts.
pub(super) fn find(
    objects: &[Object],
    texts: &Texts<'_>,
    (kinds, policies): (&kinds::Table, &Policies),
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for owner in objects {
        for template in templates(owner.body(), kinds) {
            let mut pod = Pod { owner, spec: &template["spec"], texts, findings: Vec::new() };
            containers::check(&mut pod);
            amounts::check(&mut pod);
            shape::check(&mut pod);
            ports::check(&mut pod);
            handlers::check(&mut pod);
            values::check(&mut pod);
            scheduling::check(&mut pod);
            environment::check(&mut pod);
            volumes::check(&mut pod);
            references::check(&mut pod);
            images::check(&mut pod, &policies.images);
            if let Some(level) = policies.pod_security {
                security::check(&mut pod, level);
            }
            // Pods of one workload may be made of one template.
            let new = pod.findings.into_iter().filter(|it| !findings.iter().any(|other| is_same(it, other)));
            let new: Vec<Finding> = new.collect();
            findings.extend(new);
        }
    }
    findings
}

fn is_same(one: &Finding, other: &Finding) -> bool {
    (one.rule, &one.wants) == (other.rule, &other.wants)
        && one.problem.place == other.problem.place
        && one.problem.hint == other.problem.hint
}

impl<'a> Pod<'a> {
    /// Adds a finding, at the place where somebody has written it.
    fn add(&mut self, (rule, is_weak): (Id, bool), path: &[&str], (message, hint): (String, String)) {
        let problem = self.problem((rule, path), (message, hint));
        // The pods of other kinds an operator makes, which may fill in what is missing.
        let is_weak = is_weak || !OWN_GROUPS.contains(&self.owner.id().group.as_str());
        self.findings.push(Finding { rule, is_weak, wants: None, problem });
    }

    /// Adds a value that no API server takes.
    fn say(&mut self, path: &[&str], (message, hint): (String, &str)) {
        self.add((POD_VALUE, false), path, (message, hint.to_owned()));
    }

    /// Adds what no operator and no API server makes good.
    fn add_firm(&mut self, rule: Id, path: &[&str], said: (String, String)) {
        let problem = self.problem((rule, path), said);
        self.findings.push(Finding { rule, is_weak: false, wants: None, problem });
    }

    fn problem(&self, (rule, path): (Id, &[&str]), (message, hint): (String, String)) -> Problem {
        let place = self.texts.place(self.spec, path);
        // A document that goes to the cluster by itself is named anyway.
        let is_own = self.texts.id == self.owner.id();
        let message = if is_own { message } else { format!("{}: {message}", self.owner.id()) };
        let problem = Problem { scope: Scope::Document, ..Problem::document(place, message) };
        problem.about(self.texts.id.clone()).hint(hint).by(rule)
    }

    /// Returns its containers, those that run first before the others, each with the list that it stands in.
    fn containers(&self) -> impl Iterator<Item = (&'static str, &'a Value)> + use<'a> {
        let spec = self.spec;
        ["initContainers", "containers"].into_iter().flat_map(move |list| items(&spec[list]).map(move |it| (list, it)))
    }
}

/// Returns the items of a list.
fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Returns the name of an item.
fn name(item: &Value) -> &str {
    text(item, "name")
}

/// Returns the text of a field; empty where there is none.
fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}
