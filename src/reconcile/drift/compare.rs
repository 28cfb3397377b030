//! Every wanted object beside what there is of it: by a dry run where that may be asked for, else by an estimate.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::error::Chain;
use gatewright_engine::object::{Gvk, Object, ObjectId};
use gatewright_engine::plan::Observed;
use gatewright_engine::plan::drift::history::Proof;
use gatewright_engine::plan::drift::model::Model;
use gatewright_engine::plan::drift::standing::{Compared, Grounds, standings, wanted};
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::plan::questions::Purpose;
use gatewright_engine::unit::Rendering;
use tracing::debug;

use super::rights::{self, Rights};
use crate::cluster::{Cluster, ClusterError, Reason};
use crate::reconcile::observe::dry_run::ask;

/// Compares all that is wanted; also returns what makes it less than exact, in words.
///
/// What is known to match by a dry run is not compared again; by an estimate, only where no dry run may be asked for.
pub(super) async fn all(
    cluster: &dyn Cluster,
    policies: &Policies,
    rendering: &Rendering,
    observed: &mut Observed,
    mut proofs: BTreeMap<ObjectId, Proof>,
) -> Result<(Vec<Compared>, Vec<String>), ClusterError> {
    let is_open = |id: &ObjectId| observed.live.contains_key(id) && proofs.get(id) != Some(&Proof::DryRun);
    let found: Vec<&Object> =
        wanted(policies, rendering).map(|(_, object)| object).filter(|object| is_open(object.id())).collect();
    let mut places: BTreeMap<String, BTreeSet<Gvk>> = BTreeMap::new();
    for object in &found {
        places.entry(object.id().namespace.clone()).or_default().insert(object.gvk());
    }
    let rights = Rights::of(cluster, &places).await?;
    let denied = found.into_iter().filter(|object| !rights.allow(&object.gvk(), &object.id().namespace));
    let denied: BTreeMap<&ObjectId, Gvk> = denied.map(|object| (object.id(), object.gvk())).collect();
    proofs.retain(|id, proof| *proof == Proof::DryRun || denied.contains_key(id));
    let estimated = denied.iter().filter(|(id, _)| !proofs.contains_key(**id)).map(|(_, gvk)| gvk.clone());
    let (model, unread) = model(cluster, &estimated.collect()).await?;
    observed.unchanged.extend(proofs.keys().cloned());
    observed.unasked.extend(denied.into_keys().cloned());
    ask(cluster, &rendering.units, policies, Purpose::Report, observed).await?;
    let compared = standings(rendering, Grounds { observed, policies, model: &model, proofs: &proofs });
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
