//! What the syncs of this installation want beside each other on a cluster, for plans that must not delete what only
//! moves.

use std::collections::BTreeMap;
use std::sync::Arc;

use gatewright_engine::plan::claims::{Claim, Claims, Wanted};

use crate::config::Config;

/// Returns the other syncs that go to a cluster.
pub fn beside<'a>(config: &'a Config, sync: &'a str, cluster: &'a str) -> impl Iterator<Item = &'a str> {
    let others = config.settings.syncs.iter().filter(move |(name, _)| *name != sync);
    let shares = move |(name, settings)| config.clusters_of(settings).contains_key(cluster).then_some(name);
    others.filter_map(move |(name, settings)| shares((name.as_str(), settings)))
}

/// Puts together what the others want, where `known` says what each of those wants that go to the cluster.
///
/// A sync of which it says nothing may want anything.
pub fn claims(config: &Config, sync: &str, cluster: &str, known: &BTreeMap<String, Claim>) -> Claims {
    let others = config.settings.syncs.keys().filter(|name| *name != sync);
    let mut claims: BTreeMap<String, Claim> =
        others.map(|name| (name.clone(), Claim::Known(Arc::new(Wanted::default())))).collect();
    for name in beside(config, sync, cluster) {
        let claim = known.get(name).cloned();
        let unread = || Claim::Unknown("its source has not been read".to_owned());
        claims.insert(name.to_owned(), claim.unwrap_or_else(unread));
    }
    Claims(claims)
}
