//! The existence of objects that no LIST by our label shows: a label does not prove absence.
//!
//! One GET each would tell, and a first round would cost twice as much. Where there are many, the metadata of all objects
//! of their kind in their namespace, or on the cluster, tell the same in a few requests.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt;
use gatewright_engine::object::{Gvk, ObjectId, is_secret};

use crate::cluster::{Cluster, ClusterError, Range};
use crate::reconcile::requests::{join_bounded, only_local};

/// So many GETs may stand in for a LIST: below that a LIST costs more, because it shows others, too.
const FEW: usize = 3;

/// From so many requests on, all objects of a kind are listed instead.
const MANY: usize = 50;

/// Returns those of some objects that exist, or of which that is not known.
pub async fn unconfirmed(
    cluster: &dyn Cluster,
    objects: BTreeMap<ObjectId, Gvk>,
) -> Result<BTreeMap<ObjectId, Gvk>, ClusterError> {
    let looks = ranges(&objects).into_iter().map(|(gvk, namespace)| {
        let range = Range { label: None, namespace };
        cluster.list_metadata(gvk, range).map(move |listed| (gvk, namespace, listed)).boxed()
    });
    let (mut seen, mut there) = (BTreeSet::new(), BTreeSet::new());
    for (gvk, namespace, listed) in join_bounded(looks.collect()).await {
        match listed {
            Ok(Some(listed)) => {
                seen.insert((gvk.clone(), namespace.map(str::to_owned)));
                there.extend(listed.objects.iter().map(|metadata| metadata.id(gvk)));
            }
            Ok(None) => {}
            // Perhaps one may ask for each of them.
            Err(error) => drop(only_local(error)?),
        }
    }
    let was_seen = |id: &ObjectId, gvk: &Gvk| {
        seen.contains(&(gvk.clone(), None)) || seen.contains(&(gvk.clone(), Some(id.namespace.clone())))
    };
    Ok(objects.into_iter().filter(|(id, gvk)| there.contains(id) || !was_seen(id, gvk)).collect())
}

/// Returns what is worth listing: kinds, and a namespace or all.
fn ranges(objects: &BTreeMap<ObjectId, Gvk>) -> Vec<(&Gvk, Option<&str>)> {
    let mut kinds: BTreeMap<&Gvk, BTreeMap<&str, usize>> = BTreeMap::new();
    for (id, gvk) in objects {
        *kinds.entry(gvk).or_default().entry(&id.namespace).or_default() += 1;
    }
    let mut ranges = Vec::new();
    for (gvk, namespaces) in kinds {
        let requests: usize = namespaces.values().map(|number| if *number > FEW { 1 } else { *number }).sum();
        if requests > MANY && !is_secret(&gvk.group, &gvk.kind) {
            ranges.push((gvk, None));
            continue;
        }
        // What has no namespace is listed as a whole.
        let full = namespaces.into_iter().filter(|(_, number)| *number > FEW);
        ranges.extend(full.map(|(namespace, _)| (gvk, Some(namespace).filter(|name| !name.is_empty()))));
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: &str, objects: &[(&str, usize)], expected: &[Option<&str>]) {
        let gvk = Gvk::new("v1", kind);
        let of = |(namespace, number): &(&str, usize)| {
            let name = |n: usize| (ObjectId::new("", kind, namespace, &format!("n{n}")), gvk.clone());
            (0..*number).map(name).collect::<Vec<_>>()
        };
        let objects: BTreeMap<ObjectId, Gvk> = objects.iter().flat_map(of).collect();
        let found: Vec<Option<&str>> = ranges(&objects).into_iter().map(|(_, namespace)| namespace).collect();
        assert_eq!(found, expected, "{kind}");
    }

    #[test]
    fn what_is_listed_costs_less_than_asking_for_each() {
        check("Service", &[("a", 3)], &[]);
        check("Service", &[("a", 4), ("b", 1)], &[Some("a")]);
        let spread: Vec<String> = (0..60).map(|n| format!("ns{n}")).collect();
        let one_each: Vec<(&str, usize)> = spread.iter().map(|name| (name.as_str(), 1)).collect();
        check("Service", &one_each, &[None]);
        check("Secret", &one_each, &[]);
        check("ClusterRole", &[("", 4)], &[None]);
    }
}
