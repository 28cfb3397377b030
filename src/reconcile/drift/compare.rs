//! Every wanted object beside what there is of it: by a dry run where that may be asked for, else by an estimate.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt;
use gatewright_engine::diff::Difference;
use gatewright_engine::error::Chain;
use gatewright_engine::live::Live;
use gatewright_engine::object::ObjectId;
use gatewright_engine::object::{Gvk, Object};
use gatewright_engine::plan::conflicts::{FieldVerdict, Verdict};
use gatewright_engine::plan::drift::Pair;
use gatewright_engine::plan::drift::estimate::estimated;
use gatewright_engine::plan::drift::history::Proof;
use gatewright_engine::plan::drift::model::Model;
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::plan::refusal::Reason as Refused;
use gatewright_engine::unit::{Rendering, Unit};
use serde_json::Value;
use tracing::debug;

use super::live::{Seen, wanted};
use super::rights::{self, Rights};
use super::unknown;
use crate::cluster::{Cluster, ClusterError, Precondition, Reason};
use crate::reconcile::observe::dry_run::DryRun;
use crate::reconcile::observe::{join_limited, only_local};

/// How often an object that moves while it is looked at is dry-run.
const DRY_RUN_TRIES: usize = 4;

/// A wanted object, and how it stands.
#[derive(Debug)]
pub(super) struct Compared {
    pub(super) unit: ObjectId,
    pub(super) object: Object,
    pub(super) standing: Standing,
    pub(super) note: Option<String>,
}

/// How a wanted object stands.
#[derive(Debug)]
pub(super) enum Standing {
    /// It is not there.
    Missing,
    /// It is there, and these things of it differ: none, if it is as it should be.
    Found {
        differences: Vec<Difference>,
        /// What is left to others.
        fields: Vec<FieldVerdict>,
        /// How that was found out.
        proof: Proof,
    },
    /// Nobody knows.
    Unknown(Refused),
}

/// Compares all that is wanted; also returns what makes it less than exact, in words.
pub(super) async fn all(
    cluster: &dyn Cluster,
    policies: &Policies,
    rendering: &Rendering,
    seen: &Seen,
    proofs: &BTreeMap<ObjectId, Proof>,
) -> Result<(Vec<Compared>, Vec<String>), ClusterError> {
    let is_open = |id: &ObjectId| seen.live.contains_key(id) && proofs.get(id) != Some(&Proof::DryRun);
    let found = || wanted(policies, rendering).filter(|(_, object)| is_open(object.id()));
    let mut places: BTreeMap<String, BTreeSet<Gvk>> = BTreeMap::new();
    for (_, object) in found() {
        places.entry(object.id().namespace.clone()).or_default().insert(object.gvk());
    }
    let rights = Rights::of(cluster, &places).await?;
    let kinds: BTreeSet<Gvk> = places.into_values().flatten().collect();
    let is_estimated = |kind: &&Gvk| {
        let mut open = found().filter(|(_, object)| !proofs.contains_key(object.id()));
        open.any(|(_, object)| object.gvk() == **kind && !rights.allow(kind, &object.id().namespace))
    };
    let (model, unread) = model(cluster, &kinds.iter().filter(is_estimated).cloned().collect()).await?;
    let pair = &Comparing { cluster, policies, seen, proofs, rights, model };
    let all = wanted(policies, rendering).map(|(unit, object)| pair.compared(unit, object).boxed()).collect();
    let mut compared = join_limited(all).await.into_iter().collect::<Result<Vec<Compared>, ClusterError>>()?;
    compared.sort_by(|a, b| (&a.unit, a.object.id()).cmp(&(&b.unit, b.object.id())));
    let notes = unread.into_iter().chain(rights::note(&compared)).collect();
    Ok((compared, notes))
}

/// Reads what the cluster says about kinds; also returns what could not be read, in words. Without it, an estimate goes
/// by who owns what: everything else has been seen by now, so the part of a server that has the schemas fails alone.
async fn model(cluster: &dyn Cluster, kinds: &BTreeSet<Gvk>) -> Result<(Model, Option<String>), ClusterError> {
    let mut model = Model::default();
    let mut unread: BTreeMap<String, String> = BTreeMap::new();
    let versions: BTreeSet<String> = kinds.iter().map(Gvk::api_version).collect();
    for version in versions {
        match cluster.openapi(&version).await {
            Ok(document) => document.iter().for_each(|document| model.add(document, kinds)),
            Err(error) if matches!(error.reason, Reason::Misconfigured | Reason::Unauthorized) => return Err(error),
            Err(error) => {
                debug!(version, error = %Chain(&error), "its schemas cannot be read");
                unread.insert(version, Chain(&*error.source).to_string());
            }
        }
    }
    let versions: Vec<&str> = unread.keys().map(String::as_str).collect();
    let why = unread.values().next();
    let note = why.map(|why| {
        format!("the schemas of {} cannot be read, so defaults are guessed there: {why}", versions.join(", "))
    });
    Ok((model, note))
}

/// What all comparisons on a cluster share.
struct Comparing<'a> {
    cluster: &'a dyn Cluster,
    policies: &'a Policies,
    seen: &'a Seen,
    proofs: &'a BTreeMap<ObjectId, Proof>,
    rights: Rights,
    model: Model,
}

impl Comparing<'_> {
    async fn compared(&self, unit: &Unit, object: &Object) -> Result<Compared, ClusterError> {
        let (kind, id) = (object.gvk(), object.id());
        let mut note = unit.notes.get(id).cloned();
        let standing = if self.seen.kinds.unanswered.contains(&kind) {
            unknown(format!("the part of the API that serves {kind} does not answer"))
        } else if !self.seen.kinds.served.contains_key(&kind) {
            Standing::Unknown(Refused::NoSuchKind(kind.to_string()))
        } else if let Some(why) = self.seen.unknown.get(id) {
            unknown(why.clone())
        } else if let Some(proof) = self.proof(object) {
            Standing::Found { differences: Vec::new(), fields: Vec::new(), proof }
        } else if let Some(live) = self.seen.live.get(id) {
            self.found(unit, object, live, &mut note).await?
        } else {
            Standing::Missing
        };
        Ok(Compared { unit: unit.id.clone(), object: object.clone(), standing, note })
    }

    /// How it is known that an object matches, if nothing better is to be had now.
    fn proof(&self, object: &Object) -> Option<Proof> {
        let proof = self.proofs.get(object.id()).copied()?;
        let may_dry_run = || self.rights.allow(&object.gvk(), &object.id().namespace);
        (proof == Proof::DryRun || !may_dry_run()).then_some(proof)
    }

    async fn found(
        &self,
        unit: &Unit,
        object: &Object,
        live: &Live,
        note: &mut Option<String>,
    ) -> Result<Standing, ClusterError> {
        if live.is_terminating() {
            *note = Some("it is being deleted".to_owned());
        }
        // What has a generated value is compared with the value that it has.
        let kept = unit.generated(object.id()).and_then(|generated| generated.kept(live));
        let wanted = kept.as_ref().unwrap_or(object);
        let mut changed = None;
        for _ in 0..DRY_RUN_TRIES {
            let live = changed.as_ref().unwrap_or(live);
            let autoscaler = self.seen.autoscaled.get(object.id());
            let pair = match Pair::new(unit, wanted, live, autoscaler, &self.policies.conflicts) {
                Ok(pair) => pair,
                Err(reason) => return Ok(Standing::Unknown(reason)),
            };
            match self.dry_run(&pair).await? {
                DryRunResult::As(after) => return Ok(self.standing(&pair, &after, false)),
                DryRunResult::Not(why) => {
                    *note = note.take().or(why);
                    return Ok(self.standing(&pair, &estimated(&pair.agreed, live, &self.model), true));
                }
                DryRunResult::Changed => {}
            }
            match self.cluster.get(&object.gvk(), object.id()).await {
                Ok(Some(live)) => changed = Some(live),
                Ok(None) => return Ok(Standing::Missing),
                Err(error) => return Ok(unknown(only_local(error)?)),
            }
        }
        Ok(unknown("somebody changes it again and again while it is looked at".to_owned()))
    }

    async fn dry_run(&self, pair: &Pair<'_>) -> Result<DryRunResult, ClusterError> {
        let (live, object) = (pair.live, &pair.agreed.object);
        if live.is_terminating() || !self.rights.allow(&object.gvk(), &object.id().namespace) {
            return Ok(DryRunResult::Not(None));
        }
        let (uid, resource_version) = (live.uid.clone(), live.resource_version.clone());
        let only_if = Precondition::Unchanged { uid, resource_version };
        let dry_run = DryRun::Change(Box::new(pair.agreed.clone()), live, only_if);
        match dry_run.run(self.cluster).await {
            Ok(after) => Ok(DryRunResult::As(after.object.into_body())),
            Err(error) if error.reason == Reason::Conflict => Ok(DryRunResult::Changed),
            Err(error) => Ok(DryRunResult::Not(Some(only_local(error)?))),
        }
    }

    fn standing(&self, pair: &Pair<'_>, after: &Value, is_estimate: bool) -> Standing {
        let (mut differences, mut fields) = pair.differences(after, &self.policies.conflicts);
        for difference in &mut differences {
            difference.estimated = is_estimate;
        }
        fields.retain(|field| matches!(field.verdict, Verdict::Yielded | Verdict::Ignored));
        let proof = if is_estimate { Proof::Estimate } else { Proof::DryRun };
        Standing::Found { differences, fields, proof }
    }
}

/// What came of a dry run.
enum DryRunResult {
    /// The object would become this.
    As(Value),
    /// There was none, and why if it was tried.
    Not(Option<String>),
    /// The object is another one by now.
    Changed,
}
