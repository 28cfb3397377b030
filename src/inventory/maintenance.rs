//! Looking after what is owned, when a person asks for it: inventories rebuilt, objects that stand in none, and what
//! another installation owned.
//!
//! Nothing in here deletes an object.

pub mod claim;
pub mod orphans;
pub mod repair;

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::error::Chain;
use gatewright_engine::inventory::Inventory;
use gatewright_engine::kinds;
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, ObjectId};

use crate::cluster::{Cluster, ClusterError, Reason};

/// The objects that a cluster shows of some kinds, and the kinds that it does not show.
#[derive(Debug, Default)]
pub struct Marked {
    /// The objects.
    pub live: BTreeMap<ObjectId, Live>,
    /// The reasons why kinds cannot be listed.
    pub blind: Vec<String>,
}

/// Returns the kinds to look at: those of inventories, and those that packs render.
pub fn kinds<'a>(known: &kinds::Table, inventories: impl IntoIterator<Item = &'a Inventory>) -> BTreeSet<Gvk> {
    let owned = inventories.into_iter().flat_map(|inventory| inventory.entries.values().map(|entry| entry.gvk.clone()));
    known.rendered().into_iter().chain(owned).collect()
}

/// Lists what bears a label. A kind that the cluster has not holds nothing; one that may not be listed is said.
async fn list_marked(
    cluster: &dyn Cluster,
    kinds: &BTreeSet<Gvk>,
    label: &str,
    value: Option<&str>,
) -> Result<Marked, ClusterError> {
    let mut marked = Marked::default();
    let known = cluster.kinds(kinds).await?;
    marked
        .blind
        .extend(known.unanswered.iter().map(|kind| format!("the part of the API that serves {kind} does not answer")));
    for kind in known.served.into_keys() {
        let listed = match value {
            Some(value) => cluster.list(&kind, (label, value)).await,
            None => cluster.list_bearing(&kind, label).await,
        };
        match listed {
            Ok(live) => marked.live.extend(live.into_iter().map(|live| (live.object.id().clone(), live))),
            Err(error) if matches!(error.reason, Reason::Forbidden | Reason::NotFound) => {
                marked.blind.push(Chain(&error).to_string());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(marked)
}
