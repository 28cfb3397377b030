//! The objects that may be compared by a dry run, and those that only an estimate may.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt;
use gatewright_engine::error::Chain;
use gatewright_engine::object::Gvk;
use gatewright_engine::plan::drift::standing::{Compared, Standing};
use tracing::debug;

use crate::cluster::{Cluster, ClusterError};
use crate::reconcile::requests::{join_bounded, only_local};

/// The kinds that may be dry-run, and where.
#[derive(Debug, Default)]
pub(super) struct Rights {
    everywhere: BTreeSet<Gvk>,
    places: BTreeMap<String, BTreeSet<Gvk>>,
}

impl Rights {
    /// Asks the cluster; `places` are the namespaces that have objects, with their kinds. What cannot be asked is not
    /// allowed.
    pub(super) async fn of(
        cluster: &dyn Cluster,
        places: &BTreeMap<String, BTreeSet<Gvk>>,
    ) -> Result<Self, ClusterError> {
        let kinds: BTreeSet<Gvk> = places.values().flatten().cloned().collect();
        if kinds.is_empty() {
            return Ok(Self::default());
        }
        let everywhere = answered(cluster.may_apply(&kinds, None).await)?;
        let open = |kinds: &BTreeSet<Gvk>| kinds.difference(&everywhere).cloned().collect::<BTreeSet<Gvk>>();
        let denied: Vec<(&String, BTreeSet<Gvk>)> = places
            .iter()
            .map(|(namespace, kinds)| (namespace, open(kinds)))
            .filter(|(namespace, kinds)| !namespace.is_empty() && !kinds.is_empty())
            .collect();
        let asked = denied.iter().map(|(namespace, kinds)| {
            cluster.may_apply(kinds, Some(namespace)).map(move |answer| (*namespace, answer)).boxed()
        });
        let mut allowed = BTreeMap::new();
        for (namespace, answer) in join_bounded(asked.collect()).await {
            allowed.insert(namespace.clone(), answered(answer)?);
        }
        Ok(Self { everywhere, places: allowed })
    }

    /// Tells whether the apply of an object may be dry-run.
    pub(super) fn allow(&self, kind: &Gvk, namespace: &str) -> bool {
        self.everywhere.contains(kind) || self.places.get(namespace).is_some_and(|kinds| kinds.contains(kind))
    }
}

fn answered(answer: Result<BTreeSet<Gvk>, ClusterError>) -> Result<BTreeSet<Gvk>, ClusterError> {
    match answer {
        Ok(kinds) => Ok(kinds),
        Err(error) => {
            debug!(error = %Chain(&error), "what may be dry-run is not known");
            only_local(error).map(|_| BTreeSet::new())
        }
    }
}

/// Says which differences are estimated, if some are.
pub(super) fn note(compared: &[Compared]) -> Option<String> {
    let is_estimated = |one: &&Compared| match &one.standing {
        Standing::Found { differences, .. } => differences.iter().any(|difference| difference.estimated),
        Standing::Missing | Standing::Unknown(_) => false,
    };
    let kinds: BTreeSet<&str> = compared.iter().filter(is_estimated).map(|one| one.id.kind.as_str()).collect();
    let kinds: Vec<&str> = kinds.into_iter().collect();
    (!kinds.is_empty()).then(|| {
        format!(
            "some of what differs is estimated, because a dry run was not allowed or not possible: {}",
            kinds.join(", ")
        )
    })
}
