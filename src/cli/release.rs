//! `gatewright release`.

use std::collections::BTreeMap;
use std::sync::Arc;

use gatewright_engine::marks::MANAGED_ANNOTATION;
use gatewright_engine::object::ObjectId;
use gatewright_engine::pack::Packs;
use gatewright_engine::problem::Place;
use gatewright_engine::unit::marked::Marked;
use gatewright_engine::unit::released::Released;
use jiff::Timestamp;

use super::choice::{Choice, Part};
use super::format::Format;
use super::named::Named;
use super::plan::show;
use super::session::{Prepared, Selection, Session};
use super::view::Extent;
use super::{Context, EXIT_FAILED, EXIT_HELD, Failure, worst};
use crate::config::{did_you_mean, settings};
use crate::desired::capabilities;
use crate::history::archive::{About, runs};
use crate::inventory::audit::Audit;
use crate::reconcile::model::Conclusion;
use crate::reconcile::release::{Found, Release, Terms};
use crate::report::{ClusterReport, Mode, Report};

/// Release Gateways to the deployer of their control plane, from which they were adopted, without a restart.
///
/// The source says it first: the annotation gatewright.dev/managed: "false" on each of them. From then on rounds leave
/// everything of such a Gateway as it is. This command then takes the way of `adopt` backwards: every object gets the ownerReference
/// and the field manager of the deployer and loses our marks, the Gateway gets the parameters back that the source names,
/// and the self-managed ones are deleted when the control plane has seen that (up to wait.timeout). Nothing is done if
/// the deployer would change a workload, or would not make one of the objects. It compares with what is on the cluster and
/// with the settings of the pack, which must say what the deployer is.
///
/// It shows what will happen and asks; in a script say --yes. After a failure the same command goes on.
///
/// Exit codes: 0 done, or nothing to do, 1 failed or cancelled, 3 refused, 4 a cluster was unreachable, 64 usage or
/// configuration; of several the first of 64, 1, 3, 4, 0.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The Gateways; nothing is done if the source still wants one of them.
    #[arg(value_name = "Gateway/NAMESPACE/NAME", required = true)]
    units: Vec<Named>,
    /// Only of this sync.
    #[arg(long, value_name = "SYNC")]
    sync: Option<String>,
    #[command(flatten)]
    clusters: Choice,
    /// Show what would be done, and change nothing.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    /// The output format of the report.
    #[arg(long = "output", short = 'o', visible_alias = "format", value_name = "FORMAT", default_value = "text")]
    format: Format,
}

/// One sync that has a Gateway, with what the source says of it for each cluster.
struct Order<'a> {
    unit: &'a Named,
    prepared: &'a Prepared,
    released: BTreeMap<String, Released>,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let session = Session::open(context)?;
    let packs = session.config.packs_of_deployers().map_err(|error| Failure::of_configuration(&error))?;
    let _lock = if args.dry_run { None } else { session.lock_with_siblings()? };
    let installation = session.state.make_installation()?;
    let selection = Selection { sync: args.sync.clone(), part: Part::of(args.clusters.clone()) };
    let mut ready = session.prepare(&selection, &installation)?;
    ready.rounds.retain(|prepared| prepared.order.settings.mode == settings::Mode::Apply);
    // Once for all of them: a sync may render thousands, of which a person names dozens.
    let rendered = ready.rounds.iter().map(|prepared| Ok((prepared, renderings(&session, prepared)?)));
    let rendered: Vec<Rendered<'_>> = rendered.collect::<Result<_, Failure>>()?;
    let mut all = Vec::new();
    for unit in &args.units {
        all.extend(orders(&session, unit, &rendered)?);
    }
    let mut codes = ready.codes;
    for (index, order) in all.iter().enumerate() {
        codes.push(release(context, args, &session, (order, &packs))?);
        session.give_back(all[index + 1..].iter().map(|left| left.prepared.order.sync.as_str()));
    }
    session.send();
    Ok(worst(codes))
}

/// A sync, and what it wants on each cluster that it applies to.
type Rendered<'a> = (&'a Prepared, Vec<(String, Arc<Marked>)>);

/// Finds the syncs whose source leaves the Gateway to its deployer; each other that has it still wants it.
fn orders<'a>(session: &Session<'_>, unit: &'a Named, rendered: &[Rendered<'a>]) -> Result<Vec<Order<'a>>, Failure> {
    let (mut orders, mut others) = (Vec::new(), Vec::new());
    for (prepared, renderings) in rendered {
        let mut released = BTreeMap::new();
        for (name, rendering) in renderings {
            let of_unit = |id: &ObjectId| unit.is(id, session.kinds());
            if let Some(found) = rendering.units.iter().find(|found| of_unit(&found.id)) {
                return Err(wanted(unit, &found.place));
            }
            if let Some((_, place)) = rendering.flawed.iter().find(|(id, _)| of_unit(id)) {
                let failure = Failure { code: EXIT_HELD, message: format!("{unit} is broken: {place}"), hint: None };
                return Err(failure.hint("`gatewright check` says what is wrong; what exists stays as it is"));
            }
            let found = rendering.released.iter().find(|(id, _)| of_unit(id));
            released.extend(found.map(|(_, found)| (name.clone(), found.clone())));
            others.extend(
                rendering.units.iter().map(|unit| &unit.id).chain(rendering.released.keys()).map(ObjectId::path),
            );
        }
        if !released.is_empty() {
            orders.push(Order { unit, prepared, released });
        }
    }
    if orders.is_empty() && !rendered.iter().any(|(prepared, _)| has_servers(prepared)) {
        return Err(Failure::usage(format!(
            "{unit} goes to directories alone, and no deployer can have it back there"
        )));
    }
    if orders.is_empty() {
        let hint = did_you_mean(&unit.to_string(), others.iter().map(String::as_str));
        let message = format!("{unit} is in no source of these syncs, and only what the source says can go back");
        return Err(Failure::usage(message).hint(hint));
    }
    Ok(orders)
}

fn has_servers(prepared: &Prepared) -> bool {
    prepared.order.clusters.values().any(|cluster| cluster.carries_marks())
}

fn wanted(unit: &Named, place: &Place) -> Failure {
    let message = format!("{unit} is still wanted: {place}");
    let annotate = format!("annotate it there with {MANAGED_ANNOTATION}: \"false\"");
    let hint =
        format!("{annotate}; rounds leave everything of it as it is from then on, and this command gives it back");
    Failure { code: EXIT_HELD, message, hint: Some(hint) }
}

/// Renders what a sync wants on each cluster that it applies to.
fn renderings(session: &Session<'_>, prepared: &Prepared) -> Result<Vec<(String, Arc<Marked>)>, Failure> {
    let mut renderings = Vec::new();
    for (name, want) in &prepared.wanted {
        let Some(cluster) = prepared.order.clusters.get(name).filter(|cluster| cluster.carries_marks()) else {
            continue;
        };
        let mut want = want.clone();
        let completed = capabilities::complete([&mut want], cluster.as_ref());
        session.block_on(completed).map_err(|error| super::inventory::failed(name, &error))?;
        let rendering = session.block_on(want.rendering()).map_err(|error| Failure::of(&error))?;
        renderings.push((name.clone(), rendering));
    }
    Ok(renderings)
}

/// Shows the plan of a sync, asks, and carries it out.
fn release(
    context: &Context,
    args: &Args,
    session: &Session<'_>,
    (order, packs): (&Order<'_>, &Packs),
) -> Result<u8, Failure> {
    let prepared = order.prepared;
    let sync = &prepared.order.sync;
    let _locks = if args.dry_run { Vec::new() } else { session.lock_rounds(sync, order.released.keys())? };
    let started = context.clock.now();
    let work = Work { context, session, unit: order.unit, prepared, packs, started };
    let (plan, found) = work.plan(&order.released);
    show(context, &plan, args.format, Extent::default());
    if args.dry_run || found.is_empty() || session.is_stopped() {
        return Ok(plan.exit_code());
    }
    let manager = order.released.values().next().map(|released| released.deployer.manager.as_str()).unwrap_or_default();
    let question = format!("Give {} to {manager}?", order.unit);
    if !session.confirm(args.yes, &question, "yes")? {
        return Ok(EXIT_FAILED);
    }
    session.record_time();
    let report = work.carry_out(&order.released, found)?;
    show(context, &report, args.format, Extent::default());
    session.keep(&report);
    Ok(worst([report.exit_code(), plan.exit_code()]))
}

/// The parts of the work that are the same on all clusters.
#[derive(Clone, Copy)]
struct Work<'a> {
    context: &'a Context,
    session: &'a Session<'a>,
    unit: &'a Named,
    prepared: &'a Prepared,
    packs: &'a Packs,
    started: Timestamp,
}

impl Work<'_> {
    /// Looks at each cluster; returns where something can be done.
    fn plan(&self, released: &BTreeMap<String, Released>) -> (Report, BTreeMap<String, Found>) {
        let (mut clusters, mut all) = (BTreeMap::new(), BTreeMap::new());
        for (name, released) in released {
            let report = self.on(name, released, |release| {
                let found = self.session.block_on(release.look())?;
                let report = release.report(&found);
                if found.is_allowed() && !found.is_nothing() {
                    all.insert(name.clone(), found);
                }
                Ok(report)
            });
            clusters.insert(name.clone(), report);
        }
        (self.report(Mode::Plan, clusters), all)
    }

    fn carry_out(
        &self,
        released: &BTreeMap<String, Released>,
        found: BTreeMap<String, Found>,
    ) -> Result<Report, Failure> {
        let archive = self.session.archive()?;
        let order = &self.prepared.order;
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        let run = runs::name(self.started, &order.sync, &names);
        let mut clusters = BTreeMap::new();
        for (name, found) in found {
            let Some(released) = released.get(&name) else { continue };
            let (run, sync, revision) = (run.clone(), order.sync.clone(), self.prepared.snapshot.revision.clone());
            let about = About { run, sync, cluster: name.clone(), revision, started: self.started };
            let recorder = Arc::new(archive.recorder(about));
            let (acceptance, stop) = (order.settings.wait.timeout.0, self.session.stop());
            let terms = Terms { recorder: &recorder, acceptance, stop };
            let report = self.on(&name, released, |release| self.session.block_on(release.carry_out(found, &terms)));
            clusters.insert(name, report);
        }
        Ok(Report { run, ..self.report(Mode::Apply, clusters) })
    }

    fn on(
        &self,
        name: &str,
        released: &Released,
        work: impl FnOnce(&Release<'_>) -> Result<ClusterReport, crate::cluster::ClusterError>,
    ) -> ClusterReport {
        let order = &self.prepared.order;
        let marker = order.marker();
        let audit: Option<Audit> = self.session.audit(&order.sync, name);
        let release = Release {
            cluster: order.clusters[name].as_ref(),
            released,
            marker: &marker,
            audit: audit.as_ref(),
            facts: self.session.config.settings.clusters[name].facts(name),
            packs: self.packs,
            kinds: &order.kinds,
            masker: &order.masker,
        };
        work(&release).unwrap_or_else(|error| Conclusion::failed(&error).report)
    }

    fn report(&self, mode: Mode, clusters: BTreeMap<String, ClusterReport>) -> Report {
        let order = &self.prepared.order;
        Report {
            cause: Some(format!("release of {}", self.unit)),
            partial: true,
            revision: self.prepared.snapshot.revision.clone(),
            finished: self.context.clock.now().max(self.started),
            clusters,
            ..Report::about((&order.sync, &order.settings.source), mode, self.started)
        }
    }
}
