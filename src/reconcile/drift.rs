//! A report on a cluster that somebody else looks after: how what the source wants compares with what is there.
//!
//! Nothing is written there, no inventory, no mark, no namespace. Where the credentials may dry-run a change, the
//! cluster itself says what each object would become; where they may only read, that is estimated, and every such line
//! says so. What may be dry-run is asked before anything is tried.

mod compare;
mod live;
mod rights;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gatewright_engine::diff::Class;
use gatewright_engine::health::Readiness;
use gatewright_engine::object::{Object, ObjectId};
use gatewright_engine::plan::Observed;
use gatewright_engine::plan::deployer::settings::proposals;
use gatewright_engine::plan::drift::extra::{Expected, spec_of};
use gatewright_engine::plan::drift::history::{Before, Proof, Sides, class};
use gatewright_engine::plan::drift::standing::{Compared, Standing, wanted};
use gatewright_engine::plan::drift::{live_digest, wanted_digest};
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::plan::refusal::Refusal;
use gatewright_engine::problem::unreadable_files;
use gatewright_engine::unit::{Rendering, Unit};

use crate::cluster::{Cluster, ClusterError, Reason};
use crate::reconcile::health_snapshot::HealthSnapshots;
use crate::reconcile::located::located;
use crate::reconcile::model::{Conclusion, RoundSettings};
use crate::report::action::StepAction;
use crate::report::withheld::RefusalReport;
use crate::report::{ClusterReport, ClusterState, StepReport, UnitReport, UnitState};

/// Compares. What goes wrong is part of the report.
pub(crate) async fn run(cluster: &dyn Cluster, settings: &RoundSettings) -> Conclusion {
    tokio::select! {
        biased;
        () = settings.stop.cancelled() => Conclusion::stopped(),
        compared = compare(cluster, settings) => compared.unwrap_or_else(|error| Conclusion::failed(&error)),
    }
}

async fn compare(cluster: &dyn Cluster, settings: &RoundSettings) -> Result<Conclusion, ClusterError> {
    match cluster.identity().await {
        // Who may only look at some namespaces may not know which cluster it is, and need not.
        Ok(_) | Err(ClusterError { reason: Reason::Forbidden, .. }) => {}
        Err(error) => return Err(error),
    }
    settings.place.take().await;
    let policies = &settings.policies;
    let rendering = match settings.want.rendering().await {
        Ok(rendering) => rendering,
        Err(error) => return Ok(Conclusion::unrendered(&error)),
    };
    let rendering = located(cluster, policies, &rendering).await?.map_or(rendering, Arc::new);
    let (mut observed, unseen) = live::look(cluster, policies, &rendering).await?;
    let sides = sides(policies, &rendering, &observed);
    let before = settings.last.as_ref().filter(|_| settings.is_trusting).map(|last| &last.baseline.sides);
    let proofs = before.map(|before| proofs(before, &sides)).unwrap_or_default();
    let (compared, inexact) = compare::all(cluster, policies, &rendering, &mut observed, proofs).await?;
    let notes = unseen.into_iter().chain(inexact).collect();
    let proposals = proposals(&rendering.units, &observed.live);
    let mut report =
        Writer { settings, rendering: &rendering, observed: &observed, sides }.report(compared, notes).await;
    report.tell_settings(proposals);
    Ok(Conclusion { rendering: Some(rendering), ..Conclusion::of(report) })
}

/// Returns how both sides of all wanted objects look.
fn sides(policies: &Policies, rendering: &Rendering, observed: &Observed) -> BTreeMap<ObjectId, Sides> {
    let masker = &policies.conflicts.masker;
    let of = |(_, object): (_, &Object)| {
        let live = observed.live.get(object.id()).map(|live| live_digest(live, masker)).unwrap_or_default();
        let sides = Sides { wanted: wanted_digest(object, masker), live, matched: None };
        (object.id().clone(), sides)
    };
    wanted(policies, rendering).map(of).collect()
}

/// Returns what is known to match, and how that was found out.
fn proofs(before: &BTreeMap<ObjectId, Sides>, now: &BTreeMap<ObjectId, Sides>) -> BTreeMap<ObjectId, Proof> {
    now.iter().filter_map(|(id, sides)| Some((id.clone(), sides.proof(before.get(id))?))).collect()
}

/// Turns what was found into a report.
struct Writer<'a> {
    settings: &'a RoundSettings,
    rendering: &'a Rendering,
    observed: &'a Observed,
    sides: BTreeMap<ObjectId, Sides>,
}

impl Writer<'_> {
    async fn report(&self, compared: Vec<Compared>, notes: Vec<String>) -> ClusterReport {
        let mut report = ClusterReport { state: ClusterState::Compared, ..ClusterReport::default() };
        report.notes = notes;
        let open = self.settings.last.as_ref().map(|last| open(&last.report)).unwrap_or_default();
        let last = self.settings.last.as_ref().filter(|_| self.settings.is_trusting);
        report.baseline.proven = last.and_then(|last| last.baseline.proven.clone());
        for one in compared {
            self.add(one, &open, &mut report);
        }
        self.extra(&open, &mut report).await;
        report.units = self.units(&report);
        report
    }

    fn add(&self, one: Compared, open: &Open, report: &mut ClusterReport) {
        let Compared { unit, id, standing, note } = one;
        let mut sides = self.sides.get(&id).cloned().unwrap_or_default();
        let why = |path: &str, touched: Option<&str>| self.class(&id, path, &sides, touched, open);
        let step = |action| StepReport::new(unit.clone(), id.clone(), action, note.clone());
        let mut matched = None;
        let step = match standing {
            Standing::Unknown(reason) => {
                // What cannot be seen now is compared with what was seen last once it can be.
                let last = self.settings.last.as_ref().and_then(|last| last.baseline.sides.get(&id));
                report.baseline.sides.extend(last.map(|sides| (id.clone(), sides.clone())));
                return report.refusals.push(RefusalReport::from(Refusal { unit, id, reason }));
            }
            Standing::Missing => StepReport { class: Some(why("", None)), ..step(StepAction::Missing) },
            Standing::Found { differences, fields, proof } if differences.is_empty() => {
                matched = Some(proof).filter(|_| fields.is_empty());
                StepReport { fields, ..step(StepAction::Unchanged) }
            }
            Standing::Found { mut differences, fields, .. } => {
                for difference in &mut differences {
                    let touched = difference.managers.first().and_then(|manager| manager.time.clone());
                    difference.class = Some(why(&difference.path, touched.as_deref()));
                }
                StepReport { differences, fields, ..step(StepAction::Different) }
            }
        };
        sides.matched = matched;
        report.baseline.sides.insert(id, sides);
        report.steps.push(step);
    }

    fn class(&self, id: &ObjectId, path: &str, now: &Sides, touched: Option<&str>, open: &Open) -> Class {
        let nothing = BTreeMap::new();
        let before = self.settings.last.as_ref().map(|last| Before {
            sides: last.baseline.sides.get(id),
            time: &last.time,
            open: open.get(id).unwrap_or(&nothing),
        });
        class(before, path, now, touched)
    }

    /// Reports the objects that nobody asks for any more. While a file cannot be read there are none, because it may
    /// ask for anything.
    async fn extra(&self, open: &Open, report: &mut ClusterReport) {
        let unreadable = unreadable_files(&self.rendering.problems);
        if let Some(file) = unreadable.first() {
            report
                .notes
                .push(format!("what is not in the source any more is not looked for, because {file} cannot be read"));
            return;
        }
        let (claims, masker) = (
            self.settings.siblings.claims(&self.settings.policies.kinds).await,
            &self.settings.policies.conflicts.masker,
        );
        let expected = Expected::of(self.rendering);
        for (id, live) in &self.observed.live {
            let traces = &self.rendering.traces;
            let Some(trace) = traces.iter().find(|trace| expected.is_extra(live, trace)) else { continue };
            let unit = spec_of(live, trace);
            if claims.concerns(id, &unit)
                || self.settings.policies.forbids(id).is_some()
                || !self.settings.policies.is_about(&unit)
            {
                continue;
            }
            let sides = Sides { live: live_digest(live, masker), ..Sides::default() };
            let class = self.class(id, "", &sides, None, open);
            report
                .steps
                .push(StepReport { class: Some(class), ..StepReport::new(unit, id.clone(), StepAction::Extra, None) });
            report.baseline.sides.insert(id.clone(), sides);
        }
    }

    fn units(&self, report: &ClusterReport) -> Vec<UnitReport> {
        let different: BTreeSet<&ObjectId> =
            report.steps.iter().filter(|step| step.is_change()).map(|step| &step.unit).collect();
        let unknown: BTreeSet<&ObjectId> = report.refusals.iter().map(|refusal| &refusal.unit).collect();
        let units = self.rendering.units.iter().filter(|unit| self.settings.policies.is_about(&unit.id));
        let (live, known) = (&self.observed.live, const { &BTreeMap::new() });
        let kinds = &self.settings.policies.kinds;
        let snapshots = HealthSnapshots { live, known, kinds, readiness: Some(Readiness::default()) };
        let of = |unit: &Unit| {
            let state = match () {
                () if different.contains(&unit.id) => UnitState::Different,
                () if unknown.contains(&unit.id) => UnitState::Held,
                () => UnitState::Current,
            };
            snapshots.unit_report(unit, state)
        };
        units.map(of).collect()
    }
}

/// The differences of the last drift report: by object and path, with the reason.
type Open = BTreeMap<ObjectId, BTreeMap<String, Option<Class>>>;

fn open(report: &ClusterReport) -> Open {
    let mut open = Open::new();
    for step in report.steps.iter().filter(|step| step.is_change()) {
        let paths = open.entry(step.id.clone()).or_default();
        if step.differences.is_empty() {
            paths.insert(String::new(), step.class);
        }
        paths.extend(step.differences.iter().map(|difference| (difference.path.clone(), difference.class)));
    }
    open
}
