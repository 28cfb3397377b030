//! A folded report for programs: the report as it is, and in `groups` what is the same on several clusters.

use gatewright_engine::diff::Difference;
use gatewright_engine::object::ObjectId;
use serde::Serialize;

use super::{Paragraph, fold_news};
use crate::report::action::StepAction;
use crate::report::{ClusterReport, Report};

/// A report, and what is the same on several of its clusters.
#[derive(Serialize)]
pub(crate) struct Printed<'a> {
    #[serde(flatten)]
    report: &'a Report,
    /// Absent where there is one cluster.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<Group<'a>>,
}

/// Some clusters, and what a report says of each of them and of no other; objects that stay as they are are left out.
#[derive(Serialize)]
struct Group<'a> {
    clusters: Vec<&'a str>,
    #[serde(flatten)]
    part: ClusterReport,
    /// Fields of the steps with other values on one of the clusters than on another.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differing: Vec<Field<'a>>,
}

#[derive(Serialize)]
struct Field<'a> {
    id: ObjectId,
    action: StepAction,
    path: &'a str,
    values: Vec<Value<'a>>,
}

#[derive(Serialize)]
struct Value<'a> {
    clusters: Vec<&'a str>,
    #[serde(flatten)]
    difference: &'a Difference,
}

impl<'a> Printed<'a> {
    /// Folds a report.
    pub(crate) fn of(report: &'a Report) -> Self {
        let groups =
            if report.clusters.len() > 1 { fold_news(report).filter_map(Group::of).collect() } else { Vec::new() };
        Self { report, groups }
    }
}

impl<'a> Group<'a> {
    /// Makes one of a paragraph; `None` if it says nothing but that things are as they should be.
    fn of(paragraph: Paragraph<'a>) -> Option<Self> {
        let Paragraph { clusters, mut part, differing, summary } = paragraph;
        part.trend = None;
        let is_empty = part.steps.is_empty() && part.refusals.is_empty() && part.holds.is_empty();
        if is_empty && summary.is_none() && part.error.is_none() && part.units.is_empty() && part.notes.is_empty() {
            return None;
        }
        let fields = differing.into_iter().flat_map(|((id, action), fields)| {
            fields.into_iter().map(move |field| {
                let value =
                    |(clusters, difference): (super::Clusters<'a>, _)| Value { clusters: clusters.names, difference };
                Field {
                    id: id.clone(),
                    action,
                    path: field.path,
                    values: field.values.into_iter().map(value).collect(),
                }
            })
        });
        let differing = fields.collect();
        Some(Self { clusters: clusters.names, part, differing })
    }
}
