//! Which cluster answers: recognized by what the last round saw there, or asked.

use std::collections::BTreeMap;

use gatewright_engine::kinds::has_pods;
use gatewright_engine::object::{Gvk, ObjectId, is_secret};

use crate::cluster::{Cluster, ClusterError};
use crate::reconcile::cache::Cache;
use crate::reconcile::metadata::MetadataView;
use crate::reconcile::model::RoundSettings;

/// A cluster that has said who it is, and its metadata of the objects of the last round, if that was about this cluster.
pub(super) struct Recognized {
    pub(super) identity: String,
    pub(super) metadata: Option<MetadataView>,
}

/// Finds out which cluster it is, and looks at the objects of the last round.
///
/// A uid is given once, so whoever shows an object of the last round with the uid that it had then is the cluster of
/// that round. The metadata are asked for anyway, so that this saves a request of each round in which nothing happens.
pub(super) async fn recognize(cluster: &dyn Cluster, settings: &RoundSettings) -> Result<Recognized, ClusterError> {
    let Some(cache) = settings.last_round.as_ref().map(|last_round| &last_round.cache) else {
        let (identity, ()) = tokio::join!(cluster.identity(), render(settings));
        return Ok(Recognized { identity: identity?, metadata: None });
    };
    cluster.expect(&cache.cluster).await?;
    let marker = &settings.policies.marker;
    // One kind at first: whoever does not answer is asked once, and whoever does is asked the rest on the same connection.
    let one_kind = MetadataView::default().widened(cluster, &one_kind(cache), marker).await?;
    let is_recognized = one_kind.as_ref().is_some_and(|view| shows_one_of(cache, view));
    let identity = if is_recognized { cache.cluster.clone() } else { cluster.identity().await? };
    if !is_settled(settings) {
        settings.place.take().await;
    }
    let metadata = match one_kind.filter(|_| cache.are_about(&identity)) {
        Some(view) => view.widened(cluster, &cache.kinds(), marker).await?,
        None => None,
    };
    Ok(Recognized { identity, metadata })
}

/// Tells whether nothing may be left to do: the last round left nothing, and what is wanted is the same. Where it is not,
/// the metadata of all objects are looked at with a place, because all clusters of a fleet see a change at once.
fn is_settled(settings: &RoundSettings) -> bool {
    let no_change = settings.last_round.as_ref().and_then(|last_round| last_round.no_change.as_ref());
    no_change.is_some_and(|no_change| settings.want.key().as_ref() == Some(&no_change.key))
}

/// Renders while the cluster is asked who it is, where it is certain that the round needs it. What is shared by all
/// clusters is made only once; how it went is seen by whoever takes it.
async fn render(settings: &RoundSettings) {
    drop(settings.want.rendering().await);
}

/// Returns the objects of the kind that is looked at first. Secrets would take a request for each namespace.
fn one_kind(cache: &Cache) -> BTreeMap<ObjectId, Gvk> {
    let mut others = cache.objects.iter().filter(|cached| !is_secret(&cached.gvk.group, &cached.gvk.kind));
    let first = others.clone().find(|cached| has_pods(&cached.gvk.kind)).or_else(|| others.next());
    first.map(|cached| (cached.id.clone(), cached.gvk.clone())).into_iter().collect()
}

fn shows_one_of(cache: &Cache, view: &MetadataView) -> bool {
    let is_shown = |uid: &str, id: &ObjectId| view.objects.get(id).is_some_and(|seen| seen.uid == uid);
    cache.objects.iter().any(|cached| is_shown(&cached.uid, &cached.id))
}
